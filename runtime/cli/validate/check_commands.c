// SPDX-License-Identifier: MIT
/*
 * Suite device, check commands: commands that do nothing go to the device and come back. Each is
 * completed once, in order, with its cookie and in time, over rings that the driver fills and over
 * rings that the program fills.
 *
 * A status that says that the engine failed is not judged: commands came and went as they should,
 * and suites dma and memory look at what the engine did.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../frame/random.h"
#include "../board/board.h"
#include "checks.h"

enum { BURST = 32, BURSTS_QUICK = 8, BURSTS_FULL = 128, SETTLE_US = 1000 };
#define COMMAND_LIMIT_MS 1000.0

struct burst {
	const char *path;
	uint64_t cookies[BURST];
	uint32_t first; /* index of the first command */
	double slowest_ms;
};

static void judge_completion(const struct burst *t, uint32_t k, const struct embeng_cqe *cqe,
			     struct finding *f)
{
	if (cqe->cookie != t->cookies[k])
		finding_fail(f,
			     "%s queue: command %u was completed with cookie 0x%" PRIx64
			     ", not 0x%" PRIx64,
			     t->path, t->first + k, (uint64_t)cqe->cookie, t->cookies[k]);
	else if (cqe->index != t->first + k)
		finding_fail(f, "%s queue: command %u was completed in the place of command %u",
			     t->path, cqe->index, t->first + k);
	else if (cqe->flags != EMBENG_CQE_DONE)
		finding_fail(f, "%s queue: command %u was completed with flags 0x%x, not 0x%x",
			     t->path, t->first + k, cqe->flags, EMBENG_CQE_DONE);
	else if (cqe->status != EMBENG_STATUS_OK && cqe->status != EMBENG_STATUS_INTERNAL)
		finding_fail(f, "%s queue: command %u failed: %s", t->path, t->first + k,
			     board_status_text(cqe->status));
}

static void take_burst(struct burst *t, struct board_queue *q, struct finding *f)
{
	for (uint32_t k = 0; k < BURST && finding_good(f); k++) {
		int64_t began = board_now_ns();
		struct embeng_cqe cqe;
		int err = board_take(q, 2 * BOARD_SECOND, &cqe);
		double ms = (double)(board_now_ns() - began) / 1e6;

		if (ms > t->slowest_ms)
			t->slowest_ms = ms;
		if (err == -ETIME)
			finding_fail(f, "%s queue: command %u was not completed within %.0f ms",
				     t->path, t->first + k, ms);
		else if (err)
			finding_fail(f, "%s queue: the device was lost at command %u", t->path,
				     t->first + k);
		else
			judge_completion(t, k, &cqe, f);
	}
}

static void run_burst(struct burst *t, const struct board *b, struct board_queue *q,
		      struct random *draw, struct finding *f)
{
	t->first = q->sq_tail;
	for (int k = 0; k < BURST; k++) {
		struct embeng_cmd cmd = board_nop(t->cookies[k] = random_next(draw), 0);
		int err = board_submit(b, q, &cmd, NULL);

		if (err)
			finding_fail(f, "%s queue: a command is refused: %s", t->path,
				     strerror(-err));
	}
	if (finding_good(f))
		take_burst(t, q, f);
}

static void run_bursts(const struct subject *s, const struct board *b, bool mapped,
		       double *slowest_ms, struct finding *f)
{
	struct random draw = random_seeded(s->seed + s->round, RANDOM_ORDER);
	struct burst t = {.path = mapped ? "mapped" : "validated"};
	int bursts = s->full ? BURSTS_FULL : BURSTS_QUICK;
	struct board_queue q;

	if (!board_queue_open(b, EMBENG_QUEUE_TRANSFER, mapped, &q, f))
		return;
	for (int k = 0; k < bursts && finding_good(f) && !finding_interrupted(f); k++)
		run_burst(&t, b, &q, &draw, f);
	usleep(SETTLE_US);
	if (finding_good(f) && board_ready(&q))
		finding_fail(f, "%s queue: more completions than commands", t.path);
	if (t.slowest_ms > *slowest_ms)
		*slowest_ms = t.slowest_ms;
	board_queue_close(b, &q);
}

void check_device_commands(const struct subject *s, struct finding *f)
{
	double slowest_ms = 0;
	struct board b;

	if (!board_open(s->node, &b, f))
		return;
	run_bursts(s, &b, false, &slowest_ms, f);
	if (finding_good(f) && b.device.flags & EMBENG_ACCEL_CAN_MAP_QUEUES)
		run_bursts(s, &b, true, &slowest_ms, f);
	finding_figure(f, slowest_ms, COMMAND_LIMIT_MS, "ms");
	if (slowest_ms > COMMAND_LIMIT_MS)
		finding_fail(f, "a command that does nothing took %.0f ms, more than %.0f",
			     slowest_ms, COMMAND_LIMIT_MS);
	board_close(&b);
}
