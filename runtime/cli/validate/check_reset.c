// SPDX-License-Identifier: MIT
/*
 * Suite reset: the rungs of the recovery ladder that a program may ask for. After each the device
 * works, what had to be lost is lost and says so, the rung is counted, and no counter of work falls.
 *
 * Resets of the engine and of the function end the contexts of all programs, so that the suite runs
 * only with the caller's consent.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../board/board.h"
#include "checks.h"

#define BACK_LIMIT_MS 3000.0
enum { WAITING = 3 };

static const char *const counters[] = {"counters/commands", "counters/batches", "counters/ids",
				       "counters/bytes_read", "busy_time_ns"};
#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

static void read_counters(const struct subject *s, uint64_t values[COUNTERS])
{
	for (size_t k = 0; k < COUNTERS; k++) {
		if (!subject_number(s, counters[k], &values[k]))
			values[k] = 0;
	}
}

static void judge_counters(const struct subject *s, const uint64_t before[COUNTERS],
			   struct finding *f)
{
	uint64_t now[COUNTERS];

	read_counters(s, now);
	for (size_t k = 0; k < COUNTERS; k++) {
		if (now[k] < before[k])
			finding_fail(f, "%s fell from %" PRIu64 " to %" PRIu64 " in a reset",
				     counters[k], before[k], now[k]);
	}
}

static void judge_aborted(struct board_queue *q, struct finding *f)
{
	for (uint64_t k = 0; k < WAITING && finding_good(f); k++) {
		struct embeng_cqe cqe;
		int err = board_take(q, 10 * BOARD_SECOND, &cqe);

		if (err)
			finding_fail(f, "command %" PRIu64 " of a queue that was reset: %s", k,
				     strerror(-err));
		else if (cqe.cookie != k || cqe.status != EMBENG_STATUS_ABORTED)
			finding_fail(f,
				     "command %" PRIu64 " of a queue that was reset ended with "
				     "status %u, not %u",
				     k, cqe.status, EMBENG_STATUS_ABORTED);
	}
}

static void judge_nop(const struct board *b, struct board_queue *q, struct finding *f)
{
	struct embeng_cmd cmd = board_nop(77, 0);
	struct embeng_cqe cqe;

	if (finding_good(f) && board_run(b, q, &cmd, &cqe, f) && (cqe.cookie != 77 || cqe.status))
		finding_fail(f, "a command after the reset: cookie %" PRIu64 ", %s",
			     (uint64_t)cqe.cookie, board_status_text(cqe.status));
}

static void reset_one_queue(const struct board *b, struct board_queue *q, struct finding *f)
{
	struct embeng_accel_reset reset = {.rung = EMBENG_ACCEL_RESET_QUEUE,
					   .queue = q->made.queue};
	struct embeng_accel_resets before, after;
	struct embeng_accel_context_state state;
	int err;

	if (!board_resets(b, &before, f))
		return;
	for (uint64_t k = 0; k < WAITING; k++) {
		struct embeng_cmd cmd = board_nop(k, k ? 0 : EMBENG_NOP_DELAY_MAX);

		board_submit(b, q, &cmd, NULL);
	}
	err = board_call(b, DRM_IOCTL_EMBENG_RESET, &reset);
	if (err)
		finding_fail(f, "a queue cannot be reset: %s", strerror(-err));
	judge_aborted(q, f);
	judge_nop(b, q, f);
	if (!board_resets(b, &after, f) || !board_context(b, &state, f))
		return;
	if (after.queues != before.queues + 1)
		finding_fail(f, "resets of queues went from %" PRIu64 " to %" PRIu64 ", not by one",
			     (uint64_t)before.queues, (uint64_t)after.queues);
	if (state.status != EMBENG_ACCEL_CONTEXT_ALIVE || after.sequence != before.sequence)
		finding_fail(f, "the reset of a queue lost a context");
}

void check_reset_queue(const struct subject *s, struct finding *f)
{
	struct board_queue q;
	struct board b;

	if (!board_open(s->node, &b, f))
		return;
	if (board_queue_open(&b, EMBENG_QUEUE_TRANSFER, false, &q, f)) {
		reset_one_queue(&b, &q, f);
		board_queue_close(&b, &q);
	}
	board_close(&b);
}

/* A context made after the reset works. */
static void judge_revival(const struct subject *s, struct finding *f)
{
	struct board_queue q;
	struct board b;

	if (!finding_good(f) || !board_open(s->node, &b, f))
		return;
	if (board_queue_open(&b, EMBENG_QUEUE_TRANSFER, false, &q, f)) {
		judge_nop(&b, &q, f);
		board_queue_close(&b, &q);
	}
	board_close(&b);
}

static void judge_lost_context(const struct board *b, struct finding *f)
{
	struct embeng_accel_context_state state;

	if (finding_good(f) && board_context(b, &state, f) &&
	    state.status != EMBENG_ACCEL_CONTEXT_LOST)
		finding_fail(f, "the context of before the reset has state %u, not %u (lost)",
			     state.status, EMBENG_ACCEL_CONTEXT_LOST);
}

static void judge_rung(const struct board *b, const struct embeng_accel_resets *before,
		       enum embeng_reset what, struct finding *f)
{
	bool function = what == EMBENG_RESET_FUNCTION;
	struct embeng_accel_resets after;

	if (!finding_good(f) || !board_resets(b, &after, f))
		return;
	if (after.wedged)
		finding_fail(f, "the device did not come back");
	if (after.engines - before->engines != !function ||
	    after.functions - before->functions != function)
		finding_fail(f,
			     "one reset of the %s was asked for, but %" PRIu64
			     " of the engine and %" PRIu64 " of the function were needed",
			     function ? "function" : "engine",
			     (uint64_t)(after.engines - before->engines),
			     (uint64_t)(after.functions - before->functions));
	if (after.sequence != before->sequence + 1)
		finding_fail(f,
			     "resets that lose contexts went from %" PRIu64 " to %" PRIu64
			     ", not by one",
			     (uint64_t)before->sequence, (uint64_t)after.sequence);
}

static void reset_device(const struct subject *s, enum embeng_reset what, struct finding *f)
{
	struct embeng_accel_resets before;
	uint64_t work[COUNTERS];
	int64_t began;
	struct board b;
	double ms;

	if (!board_open(s->node, &b, f))
		return;
	read_counters(s, work);
	if (board_resets(&b, &before, f)) {
		began = board_now_ns();
		finding_library(f, embeng_device_reset(s->device, what), "a reset");
		ms = (double)(board_now_ns() - began) / 1e6;
		finding_figure(f, ms, BACK_LIMIT_MS, "ms");
		judge_rung(&b, &before, what, f);
		judge_lost_context(&b, f);
		judge_revival(s, f);
		judge_counters(s, work, f);
		if (ms > BACK_LIMIT_MS)
			finding_fail(f, "the device came back after %.0f ms, more than %.0f", ms,
				     BACK_LIMIT_MS);
	}
	board_close(&b);
}

void check_reset_engine(const struct subject *s, struct finding *f)
{
	reset_device(s, EMBENG_RESET_ENGINE, f);
}

void check_reset_function(const struct subject *s, struct finding *f)
{
	reset_device(s, EMBENG_RESET_FUNCTION, f);
}
