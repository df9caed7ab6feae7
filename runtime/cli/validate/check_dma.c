// SPDX-License-Identifier: MIT
/*
 * Suite dma through the device node: that commands end without transfer errors, memory of the
 * program that is pinned, buffers that two files share, and the limits of a region. Each of them
 * needs keys that a check has made itself.
 *
 * All memory belongs to a struct dma_bench for the time of one check.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "../frame/random.h"
#include "../board/board.h"
#include "checks.h"

#define PAGE 4096u
#define PIN_PAGES 64u
#define ROW_BYTES (BOARD_DIM * sizeof(float))
enum { NOPS = 64, PIN_MOVES = 16 };

struct dma_bench {
	struct board b;
	struct board_queue q;
	struct random draw;
};

static bool dma_open(const struct subject *s, struct dma_bench *d, struct finding *f)
{
	d->draw = random_seeded(s->seed + s->round, RANDOM_SAMPLES);
	if (!board_open(s->node, &d->b, f))
		return false;
	if (!board_queue_open(&d->b, EMBENG_QUEUE_TRANSFER, false, &d->q, f)) {
		board_close(&d->b);
		return false;
	}
	if (board_load(&d->b, &d->q, f))
		return true;
	board_queue_close(&d->b, &d->q);
	board_close(&d->b);
	return false;
}

static void dma_close(struct dma_bench *d)
{
	board_queue_close(&d->b, &d->q);
	board_close(&d->b);
}

void check_dma_transfers(const struct subject *s, struct finding *f)
{
	struct board_queue q;
	struct board b;

	if (!board_open(s->node, &b, f))
		return;
	if (!board_queue_open(&b, EMBENG_QUEUE_TRANSFER, false, &q, f)) {
		board_close(&b);
		return;
	}
	for (uint64_t k = 0; k < NOPS && finding_good(f); k++) {
		struct embeng_cmd cmd = board_nop(k, 0);
		struct embeng_cqe cqe;

		if (board_run(&b, &q, &cmd, &cqe, f) && cqe.status)
			finding_fail(f, "command %" PRIu64 " that moves no rows failed: %s", k,
				     board_status_text(cqe.status));
	}
	board_queue_close(&b, &q);
	board_close(&b);
}

/* Rows of @at must move without a fault. */
static bool move_keyed_rows(struct dma_bench *d, uint16_t opcode, uint64_t first, uint64_t count,
			    const struct embeng_mem *at, struct finding *f)
{
	int status = board_rows(&d->b, &d->q, opcode, first, count, at, f);

	if (status > 0)
		finding_fail(f, "%s of %" PRIu64 " rows at offset %" PRIu64 " failed: %s",
			     opcode == EMBENG_OP_ROWS_WRITE ? "a write" : "a read", count,
			     (uint64_t)at->offset, board_status_text((uint32_t)status));
	return !status;
}

/* Moves rows from one memory through the table into another, and compares all of the latter. */
static void move_through(struct dma_bench *d, const struct board_memory *from,
			 const struct board_memory *to, struct finding *f)
{
	uint64_t room = from->bytes / ROW_BYTES, count = 1 + random_below(&d->draw, room / 2);
	uint64_t first = random_below(&d->draw, BOARD_ROWS - count);
	uint64_t out = 4 * random_below(&d->draw, (from->bytes - count * ROW_BYTES) / 4);
	uint64_t in = 4 * random_below(&d->draw, (to->bytes - count * ROW_BYTES) / 4);
	struct embeng_mem source = from->key, target = to->key;
	uint32_t *words = from->data;

	for (size_t i = 0; i < from->bytes / sizeof(*words); i++)
		words[i] = (uint32_t)random_next(&d->draw);
	memset(to->data, 0, to->bytes);
	source.offset = out;
	target.offset = in;
	source.length = target.length = count * ROW_BYTES;
	if (!move_keyed_rows(d, EMBENG_OP_ROWS_WRITE, first, count, &source, f) ||
	    !move_keyed_rows(d, EMBENG_OP_ROWS_READ, first, count, &target, f))
		return;
	if (memcmp((char *)to->data + in, (char *)from->data + out, count * ROW_BYTES) != 0)
		finding_fail(f,
			     "%" PRIu64 " rows from offset %" PRIu64 " to offset %" PRIu64
			     " are not what was written",
			     count, out, in);
	memset((char *)to->data + in, 0, count * ROW_BYTES);
	for (size_t i = 0; i < to->bytes; i++)
		if (((char *)to->data)[i])
			finding_fail(f,
				     "the device wrote to byte %zu, outside of the %" PRIu64
				     " bytes from %" PRIu64 " on",
				     i, count * ROW_BYTES, in);
}

static void run_pinned_moves(struct dma_bench *d, void *pages, struct finding *f)
{
	struct board_memory pinned, buffer;

	if (!board_memory_pin(&d->b, pages, PIN_PAGES * PAGE, &pinned, f))
		return;
	if (board_memory_new(&d->b, PIN_PAGES * PAGE, &buffer, f)) {
		for (int k = 0; k < PIN_MOVES && finding_good(f); k++)
			move_through(d, k & 1 ? &buffer : &pinned, k & 1 ? &pinned : &buffer, f);
		board_memory_free(&d->b, &buffer);
	}
	board_memory_free(&d->b, &pinned);
}

void check_dma_userptr(const struct subject *s, struct finding *f)
{
	struct dma_bench d;
	void *pages;

	if (!dma_open(s, &d, f))
		return;
	pages = mmap(NULL, PIN_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (!(d.b.device.flags & EMBENG_ACCEL_CAN_USERPTR))
		finding_skip(f, "the driver pins no memory of programs here (bounce buffers)");
	else if (pages == MAP_FAILED)
		finding_fail(f, "out of memory");
	else
		run_pinned_moves(&d, pages, f);
	if (pages != MAP_FAILED)
		munmap(pages, PIN_PAGES * PAGE);
	dma_close(&d);
}

/* The buffer of one file as a handle of another one. */
static bool share_buffer(const struct board *owner, const struct board *user,
			 const struct board_memory *m, struct board_memory *out, struct finding *f)
{
	int shared, err = drmPrimeHandleToFD(owner->fd, m->handle, DRM_CLOEXEC | DRM_RDWR, &shared);

	*out = (struct board_memory){.data = m->data, .bytes = m->bytes};
	if (err) {
		finding_fail(f, "a buffer cannot be exported as dma-buf: %s", strerror(errno));
		return false;
	}
	err = drmPrimeFDToHandle(user->fd, shared, &out->handle) ? errno : 0;
	close(shared);
	if (err == EOPNOTSUPP)
		finding_skip(f, "the driver imports no buffers here (bounce buffers)");
	else if (err)
		finding_fail(f, "a dma-buf cannot be imported: %s", strerror(err));
	if (err)
		return false;
	err = board_bind(user, out->handle, EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE,
			 0, out->bytes, &out->key);
	if (err)
		finding_fail(f, "an imported dma-buf cannot be bound: %s", strerror(-err));
	return !err;
}

/* Another file makes the buffer, and this one's device writes into it. */
static void run_shared_moves(struct dma_bench *d, const struct board *other, struct finding *f)
{
	struct board_memory theirs, ours, own;

	if (!board_memory_new(other, PIN_PAGES * PAGE, &theirs, f))
		return;
	if (share_buffer(other, &d->b, &theirs, &ours, f) &&
	    board_memory_new(&d->b, PIN_PAGES * PAGE, &own, f)) {
		for (int k = 0; k < PIN_MOVES && finding_good(f); k++)
			move_through(d, k & 1 ? &ours : &own, k & 1 ? &own : &ours, f);
		board_memory_free(&d->b, &own);
	}
	board_memory_free(&d->b, &ours);
	board_memory_free(other, &theirs);
}

void check_dma_shared(const struct subject *s, struct finding *f)
{
	struct dma_bench d;
	struct board other;

	if (!dma_open(s, &d, f))
		return;
	if (board_open(s->node, &other, f)) {
		run_shared_moves(&d, &other, f);
		board_close(&other);
	}
	dma_close(&d);
}

static void expect_refusal(struct dma_bench *d, uint16_t opcode, const struct embeng_mem *at,
			   uint32_t expected, const char *what, struct finding *f)
{
	int status = finding_good(f) ? board_rows(&d->b, &d->q, opcode, 0, 1, at, f) : -1;

	if (status >= 0 && (uint32_t)status != expected)
		finding_fail(f, "%s: status %d, not %u (%s)", what, status, expected,
			     board_status_text(expected));
}

/* A region refuses accesses that it does not allow, and no others. */
static void probe_region(struct dma_bench *d, const struct board_memory *m, struct finding *f)
{
	struct embeng_mem at, read_only;
	int err;

	err = board_bind(&d->b, m->handle, EMBENG_REGION_DEVICE_READ, PAGE, PAGE, &read_only);
	if (err) {
		finding_fail(f, "a part of a buffer cannot be bound: %s", strerror(-err));
		return;
	}
	at = read_only;
	at.length = ROW_BYTES;
	expect_refusal(d, EMBENG_OP_ROWS_WRITE, &at, EMBENG_STATUS_OK, "a region that may be read",
		       f);
	expect_refusal(d, EMBENG_OP_ROWS_READ, &at, EMBENG_STATUS_RIGHTS,
		       "a region that may not be written", f);
	at.offset = PAGE - ROW_BYTES + 4;
	expect_refusal(d, EMBENG_OP_ROWS_WRITE, &at, EMBENG_STATUS_BOUNDS,
		       "an access beyond the end of a region", f);
	at.offset = 0;
	at.generation++;
	expect_refusal(d, EMBENG_OP_ROWS_WRITE, &at, EMBENG_STATUS_KEY, "a key that was guessed",
		       f);
	at.generation--;
	if (board_unbind(&d->b, &read_only))
		finding_fail(f, "a region cannot be ended");
	expect_refusal(d, EMBENG_OP_ROWS_WRITE, &at, EMBENG_STATUS_KEY, "a region that has ended",
		       f);
}

void check_dma_regions(const struct subject *s, struct finding *f)
{
	struct board_memory m;
	struct dma_bench d;

	if (!dma_open(s, &d, f))
		return;
	if (board_memory_new(&d.b, 4 * PAGE, &m, f)) {
		probe_region(&d, &m, f);
		board_memory_free(&d.b, &m);
	}
	dma_close(&d);
}
