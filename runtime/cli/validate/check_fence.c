// SPDX-License-Identifier: MIT
/*
 * Suite fences: a command that waits for a fence runs after the one that signals it, a fence signals
 * when its command is complete and not before, and an error goes from fence to fence.
 *
 * Syncobjs belong to the board's file and end with it, at the latest.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/sync_file.h>
#include <xf86drm.h>

#include "../board/board.h"
#include "checks.h"

enum { LINKS = 16 };
#define LINK_US 2000u
#define HELD_US 100000u
#define SIGNAL_LIMIT_MS 1000.0

/* Two queues on one board. */
struct fence_bench {
	struct board b;
	struct board_queue q[2];
};

static bool open_fences(const struct subject *s, struct fence_bench *t, struct finding *f)
{
	if (!board_open(s->node, &t->b, f))
		return false;
	if (!(t->b.device.flags & EMBENG_ACCEL_CAN_SYNCOBJ))
		finding_skip(f, "the driver has no fences");
	if (finding_good(f) && board_queue_open(&t->b, EMBENG_QUEUE_TRANSFER, false, &t->q[0], f)) {
		if (board_queue_open(&t->b, EMBENG_QUEUE_TRANSFER, false, &t->q[1], f))
			return true;
		board_queue_close(&t->b, &t->q[0]);
	}
	board_close(&t->b);
	return false;
}

static void close_fences(struct fence_bench *t)
{
	board_queue_close(&t->b, &t->q[1]);
	board_queue_close(&t->b, &t->q[0]);
	board_close(&t->b);
}

static bool make_sync(const struct board *b, struct embeng_accel_sync *sync, struct finding *f)
{
	*sync = (struct embeng_accel_sync){0};
	if (!drmSyncobjCreate(b->fd, 0, &sync->handle))
		return true;
	finding_fail(f, "a syncobj cannot be made: %s", strerror(errno));
	return false;
}

static bool give_fenced(const struct fence_bench *t, struct board_queue *q,
			const struct embeng_cmd *cmd, const struct board_syncs *syncs,
			struct finding *f)
{
	int err = board_submit(&t->b, q, cmd, syncs);

	if (err)
		finding_fail(f, "a command with fences is refused: %s", strerror(-err));
	return !err;
}

/* A sync_file of the fence, or -1. */
static int export_fence(const struct fence_bench *t, const struct embeng_accel_sync *sync,
			struct finding *f)
{
	int file = -1;

	if (drmSyncobjExportSyncFile(t->b.fd, sync->handle, &file))
		finding_fail(f, "a fence cannot be exported as sync_file: %s", strerror(errno));
	return file;
}

/* 1 if it has signalled, 0 if not, or the negative errno that it signalled. */
static int read_fence(int file)
{
	struct sync_file_info info = {0};

	return ioctl(file, SYNC_IOC_FILE_INFO, &info) ? -errno : info.status;
}

static bool submit_chain(struct fence_bench *t, struct embeng_accel_sync *sync, struct finding *f)
{
	for (uint64_t link = 1; link <= LINKS && finding_good(f); link++) {
		struct embeng_accel_sync in = *sync, out = *sync;
		struct embeng_cmd cmd = board_nop(link, LINK_US);
		const struct board_syncs syncs = {link > 1 ? &in : NULL, &out};

		in.point = link - 1;
		out.point = link;
		give_fenced(t, &t->q[link & 1], &cmd, &syncs, f);
	}
	return finding_good(f);
}

static void take_chain(struct fence_bench *t, struct finding *f)
{
	uint64_t before = 0;

	for (uint64_t link = 1; link <= LINKS && finding_good(f); link++) {
		struct embeng_cqe cqe;
		int err = board_take(&t->q[link & 1], 10 * BOARD_SECOND, &cqe);

		if (err)
			finding_fail(f, "command %" PRIu64 " of a chain of fences: %s", link,
				     strerror(-err));
		else if (cqe.status || cqe.cookie != link)
			finding_fail(f,
				     "command %" PRIu64 " of a chain of fences: cookie %" PRIu64
				     ", %s",
				     link, (uint64_t)cqe.cookie, board_status_text(cqe.status));
		else if (before && cqe.timestamp < before + LINK_US * 1000u)
			finding_fail(f,
				     "command %" PRIu64 " ended %" PRId64 " us after the one whose "
				     "fence it waited for, but takes %u us",
				     link, (int64_t)(cqe.timestamp - before) / 1000, LINK_US);
		if (!err)
			before = cqe.timestamp;
	}
}

void check_fence_order(const struct subject *s, struct finding *f)
{
	struct embeng_accel_sync sync;
	struct fence_bench t;

	if (!open_fences(s, &t, f))
		return;
	if (make_sync(&t.b, &sync, f) && submit_chain(&t, &sync, f))
		take_chain(&t, f);
	close_fences(&t);
}

static void watch_fence(struct fence_bench *t, int file, struct finding *f)
{
	struct pollfd p = {.fd = file, .events = POLLIN};
	struct embeng_cqe cqe;
	int err, state = read_fence(file);
	int64_t done;

	if (state)
		finding_fail(f, "the fence of a command that runs says %d, not 0", state);
	err = board_take(&t->q[0], 10 * BOARD_SECOND, &cqe);
	done = board_now_ns();
	if (err)
		finding_fail(f, "a command with a fence was not completed: %s", strerror(-err));
	if (!finding_good(f))
		return;
	if (poll(&p, 1, 10000) != 1)
		finding_fail(f, "the fence of a complete command did not signal within 10 s");
	finding_figure(f, (double)(board_now_ns() - done) / 1e6, SIGNAL_LIMIT_MS, "ms");
	if (f->measured > SIGNAL_LIMIT_MS)
		finding_fail(f, "the fence signalled %.0f ms after its command was complete",
			     f->measured);
	state = read_fence(file);
	if (state != 1)
		finding_fail(f, "the fence of a complete command says %d, not 1", state);
}

void check_fence_signal(const struct subject *s, struct finding *f)
{
	struct embeng_cmd cmd = board_nop(1, HELD_US);
	struct embeng_accel_sync sync;
	struct fence_bench t;
	int file = -1;

	if (!open_fences(s, &t, f))
		return;
	if (make_sync(&t.b, &sync, f) &&
	    give_fenced(&t, &t.q[0], &cmd, &(struct board_syncs){.out = &sync}, f))
		file = export_fence(&t, &sync, f);
	if (file >= 0) {
		watch_fence(&t, file, f);
		close(file);
	}
	close_fences(&t);
}

static void judge_fence_error(const struct fence_bench *t, const struct embeng_accel_sync *sync,
			      const char *what, struct finding *f)
{
	int file = finding_good(f) ? export_fence(t, sync, f) : -1, state;

	if (file < 0)
		return;
	state = read_fence(file);
	if (state != -ERANGE)
		finding_fail(f, "%s says %d, not -ERANGE", what, state);
	close(file);
}

static void take_status(struct board_queue *q, uint32_t status, const char *what, struct finding *f)
{
	struct embeng_cqe cqe;
	int err = finding_good(f) ? board_take(q, 10 * BOARD_SECOND, &cqe) : -ECANCELED;

	if (err)
		finding_fail(f, "%s was not completed: %s", what, strerror(-err));
	else if (cqe.status != status)
		finding_fail(f, "%s ended with status %u, not %u (%s)", what, cqe.status, status,
			     board_status_text(status));
}

/* The first command takes a while, so that the second is submitted before it fails. */
static void run_failing_pair(struct fence_bench *t, struct finding *f)
{
	struct embeng_cmd fails = board_nop(1, HELD_US), follows = board_nop(2, 0);
	struct embeng_accel_sync first, second;

	fails.arg |= EMBENG_STATUS_ID;
	if (!make_sync(&t->b, &first, f) || !make_sync(&t->b, &second, f) ||
	    !give_fenced(t, &t->q[0], &fails, &(struct board_syncs){.out = &first}, f) ||
	    !give_fenced(t, &t->q[1], &follows, &(struct board_syncs){&first, &second}, f))
		return;
	take_status(&t->q[0], EMBENG_STATUS_ID, "a command that fails", f);
	take_status(&t->q[1], EMBENG_STATUS_ABORTED, "a command that waited for it", f);
	if (finding_good(f))
		drmSyncobjWait(t->b.fd, &second.handle, 1, board_now_ns() + BOARD_SECOND, 0, NULL);
	judge_fence_error(t, &first, "the fence of a command that failed", f);
	judge_fence_error(t, &second, "the fence of a command that waited for it", f);
}

void check_fence_error(const struct subject *s, struct finding *f)
{
	struct fence_bench t;

	if (!open_fences(s, &t, f))
		return;
	run_failing_pair(&t, f);
	close_fences(&t);
}
