// SPDX-License-Identifier: MIT
/*
 * Suite interrupt: a queue that is armed interrupts once, on its vector, and one that is not armed
 * does not. Queues are mapped ones, because the driver never arms those itself; completions are
 * awaited by looking at the ring, because sleeping in the driver would arm the queue as well.
 *
 * Interrupts are counted by the kernel, for all processors together.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../board/board.h"
#include "checks.h"
#include "vectors.h"

enum { ARMS_QUICK = 8, ARMS_FULL = 64, COALESCED = 8, SILENT_COMMANDS = 16 };
#define ARRIVES_MS 300
#define SETTLE_MS 5
#define SILENCE_MS 300
#define SLEEP_DELAY_US 20000
#define SLEEP_LIMIT_MS 500.0

/* Queues' vectors; where there is one vector, it serves all queues. */
static size_t first_vector(const struct vectors *v)
{
	return v->count > 1 ? 1 : 0;
}

struct interrupt_bench {
	const char *address;
	struct board b;
	struct vectors before, now;
};

static bool open_interrupts(const struct subject *s, struct interrupt_bench *i, struct finding *f)
{
	i->address = s->address;
	if (!vectors_read(s->address, &i->before)) {
		finding_fail(f, "/proc/interrupts has no vector of %s", s->address);
		return false;
	}
	if (!board_open(s->node, &i->b, f))
		return false;
	if (i->b.device.flags & EMBENG_ACCEL_CAN_MAP_QUEUES)
		return true;
	finding_skip(f, "the driver allows no queues that programs arm themselves");
	board_close(&i->b);
	return false;
}

/* Interrupts of queues since @i->before, and the vector that most of them came by. */
static uint64_t count_fired(struct interrupt_bench *i, size_t *vector)
{
	uint64_t sum = 0, most = 0;

	vectors_read(i->address, &i->now);
	for (size_t k = first_vector(&i->before); k < i->now.count; k++) {
		uint64_t fired = i->now.fired[k] - i->before.fired[k];

		sum += fired;
		if (fired > most && vector)
			*vector = k;
		if (fired > most)
			most = fired;
	}
	return sum;
}

/* Waits until so many have come, or it takes too long, and a little longer for those too many. */
static uint64_t await_interrupts(struct interrupt_bench *i, uint64_t wanted, size_t *vector)
{
	int64_t end = board_now_ns() + ARRIVES_MS * 1000000ll;

	while (count_fired(i, vector) < wanted && board_now_ns() < end)
		usleep(1000);
	usleep(SETTLE_MS * 1000);
	return count_fired(i, vector);
}

static bool run_nops(const struct board *b, struct board_queue *q, int count, struct finding *f)
{
	for (int k = 0; k < count; k++) {
		struct embeng_cmd cmd = board_nop((uint64_t)k, 0);
		struct embeng_cqe cqe;

		if (!board_run(b, q, &cmd, &cqe, f))
			return false;
	}
	return true;
}

/* Arms a queue and completes a command, so many times. Return: the vector, or -1. */
static int fire_queue(struct interrupt_bench *i, struct board_queue *q, int arms, struct finding *f)
{
	size_t vector = 0;

	for (int k = 0; k < arms && finding_good(f); k++) {
		uint64_t fired;

		vectors_read(i->address, &i->before);
		board_arm(q, q->cq_head);
		if (!run_nops(&i->b, q, 1, f))
			return -1;
		fired = await_interrupts(i, 1, &vector);
		if (!fired)
			finding_fail(f,
				     "an interrupt was lost: queue %u was armed %d times, and the "
				     "last one brought none within %d ms",
				     q->made.queue, k + 1, ARRIVES_MS);
		else if (fired > 1)
			finding_fail(f,
				     "spurious interrupts: queue %u was armed once, and %" PRIu64
				     " came by vector %zu",
				     q->made.queue, fired, vector);
	}
	return finding_good(f) ? (int)vector : -1;
}

/* Queues are dealt to vectors in turn, so that as many queues as vectors reach each of them. */
static void fire_vectors(struct interrupt_bench *i, int arms, struct finding *f)
{
	size_t first = first_vector(&i->before), count = i->before.count;
	struct board_queue queues[VECTORS_MOST];
	bool seen[VECTORS_MOST] = {false};
	size_t open = 0;

	while (open < count - first && finding_good(f) &&
	       board_queue_open(&i->b, EMBENG_QUEUE_TRANSFER, true, &queues[open], f)) {
		int vector = fire_queue(i, &queues[open], arms, f);

		if (vector >= 0)
			seen[vector] = true;
		open++;
	}
	for (size_t k = first; k < count; k++) {
		if (!seen[k])
			finding_fail(f,
				     "vector %zu of %zu never fired, though %zu queues were armed",
				     k, count, open);
	}
	while (open)
		board_queue_close(&i->b, &queues[--open]);
}

void check_interrupt_vectors(const struct subject *s, struct finding *f)
{
	int arms = s->full ? ARMS_FULL : ARMS_QUICK;
	struct interrupt_bench i;
	struct vectors begin;

	if (!open_interrupts(s, &i, f))
		return;
	begin = i.before;
	fire_vectors(&i, arms, f);
	vectors_read(s->address, &i.now);
	if (finding_good(f) && i.now.fired[0] == begin.fired[0])
		finding_fail(f, "vector 0 never fired, though queues were made and ended");
	finding_note(f, "%zu vectors, %d interrupts of each, none too many", i.now.count, arms);
	board_close(&i.b);
}

void check_interrupt_silence(const struct subject *s, struct finding *f)
{
	struct interrupt_bench i;
	struct board_queue q;
	uint64_t fired;

	if (!open_interrupts(s, &i, f))
		return;
	if (board_queue_open(&i.b, EMBENG_QUEUE_TRANSFER, true, &q, f)) {
		usleep(SETTLE_MS * 1000);
		vectors_read(s->address, &i.before);
		run_nops(&i.b, &q, SILENT_COMMANDS, f);
		usleep(SILENCE_MS * 1000);
		fired = count_fired(&i, NULL);
		finding_figure(f, (double)fired, 0, "interrupts");
		if (fired)
			finding_fail(
				f, "spurious interrupts: %" PRIu64 " came, and no queue was armed",
				fired);
		board_queue_close(&i.b, &q);
	}
	board_close(&i.b);
}

void check_interrupt_coalescing(const struct subject *s, struct finding *f)
{
	struct interrupt_bench i;
	struct board_queue q;
	uint64_t early, fired;

	if (!open_interrupts(s, &i, f))
		return;
	if (board_queue_open(&i.b, EMBENG_QUEUE_TRANSFER, true, &q, f)) {
		vectors_read(s->address, &i.before);
		board_arm(&q, q.cq_head + COALESCED - 1);
		run_nops(&i.b, &q, COALESCED - 1, f);
		usleep(SETTLE_MS * 1000);
		early = count_fired(&i, NULL);
		run_nops(&i.b, &q, 1, f);
		fired = await_interrupts(&i, 1, NULL);
		if (early)
			finding_fail(f, "an interrupt for %d completions came after %d", COALESCED,
				     COALESCED - 1);
		else if (fired != 1)
			finding_fail(f, "%" PRIu64 " interrupts came for %d completions, not 1",
				     fired, COALESCED);
		board_queue_close(&i.b, &q);
	}
	board_close(&i.b);
}

/* The driver looks at a queue once a second even without an interrupt, which is too late here. */
static double sleep_once(const struct board *b, struct board_queue *q, struct finding *f)
{
	struct embeng_cmd cmd = board_nop(1, SLEEP_DELAY_US);
	struct embeng_accel_wait wait = {.queue = q->made.queue, .cq_head = q->cq_head, .count = 1};
	int64_t began = board_now_ns();
	struct embeng_cqe cqe;
	int err = board_submit(b, q, &cmd, NULL);

	wait.deadline_ns = began + 10 * BOARD_SECOND;
	err = err ? err : board_call(b, DRM_IOCTL_EMBENG_WAIT, &wait);
	err = err ? err : board_take(q, BOARD_SECOND, &cqe);
	if (err)
		finding_fail(f, "a sleep until a command is completed failed: %s", strerror(-err));
	return (double)(board_now_ns() - began - SLEEP_DELAY_US * 1000ll) / 1e6;
}

void check_interrupt_sleep(const struct subject *s, struct finding *f)
{
	double longest_ms = 0;
	struct board_queue q;
	struct board b;

	if (!board_open(s->node, &b, f))
		return;
	if (board_queue_open(&b, EMBENG_QUEUE_TRANSFER, false, &q, f)) {
		for (int k = 0; k < ARMS_QUICK && finding_good(f); k++) {
			double ms = sleep_once(&b, &q, f);

			if (ms > longest_ms)
				longest_ms = ms;
		}
		finding_figure(f, longest_ms, SLEEP_LIMIT_MS, "ms");
		if (longest_ms > SLEEP_LIMIT_MS)
			finding_fail(f,
				     "a sleeper woke %.0f ms after its command was complete: the "
				     "interrupt was lost",
				     longest_ms);
		board_queue_close(&b, &q);
	}
	board_close(&b);
}
