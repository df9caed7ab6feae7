// SPDX-License-Identifier: MIT
/* The program's side of a ring, against memory that the test writes as a device would. */
#include <stdlib.h>

#include "runtime/src/device/ring.h"
#include "session_help.h"

#define ENTRIES 2u

struct fake {
	struct ring ring;
	struct embeng_ring_header *header;
	struct embeng_cqe *cq;
	struct embeng_doorbell doorbell;
};

static void set_up(struct fake *f)
{
	struct device_queue q = {.layout = embeng_ring_layout(ENTRIES, 2 * ENTRIES, 0),
				 .doorbell = &f->doorbell};

	q.ring = calloc(1, q.layout.size);
	ck_assert_int_eq(ring_open(&f->ring, &q), 0);
	f->header = (struct embeng_ring_header *)q.ring;
	f->cq = (struct embeng_cqe *)(q.ring + q.layout.cq);
}

static void complete(struct fake *f, uint64_t cookie, uint16_t flags)
{
	uint32_t tail = f->header->cq_tail;

	f->cq[tail % (2 * ENTRIES)] = (struct embeng_cqe){.cookie = cookie, .flags = flags};
	f->header->cq_tail = tail + 1;
}

START_TEST(fills_and_empties)
{
	struct fake f = {0};
	struct request a = {0}, b = {0}, c = {0};
	struct embeng_cmd cmd = {0};
	uint64_t first;

	set_up(&f);
	ck_assert_int_eq(ring_submit(&f.ring, &cmd, &a), 0);
	first = cmd.cookie;
	ck_assert_int_eq(ring_submit(&f.ring, &cmd, &b), 0);
	ck_assert_uint_eq(f.doorbell.sq_tail, 2);
	ck_assert_int_eq(ring_submit(&f.ring, &cmd, &c), -EAGAIN);
	f.header->sq_head = 2;
	complete(&f, first, EMBENG_CQE_ACCEPTED);
	ck_assert(ring_reap(&f.ring));
	ck_assert(a.accepted && !a.done);
	complete(&f, first, EMBENG_CQE_DONE);
	ck_assert(ring_reap(&f.ring));
	ck_assert(!f.ring.strayed);
	complete(&f, 99, EMBENG_CQE_DONE);    /* a device that lies */
	complete(&f, first, EMBENG_CQE_DONE); /* twice */
	ck_assert(ring_reap(&f.ring));
	ck_assert(f.ring.strayed);
	ck_assert_uint_eq(f.ring.stray, 99);
	ck_assert(a.done && !b.done);
	ck_assert_uint_eq(f.doorbell.cq_head, 4);
	ck_assert_int_eq(ring_submit(&f.ring, &cmd, &c), 0);
	ring_abandon(&f.ring, &c);
	complete(&f, cmd.cookie, EMBENG_CQE_DONE);
	ck_assert(ring_reap(&f.ring));
	ck_assert(!c.done);
	ck_assert_uint_eq(f.ring.in_flight, 1);
	free(f.ring.queue.ring);
	ring_close(&f.ring);
}
END_TEST

/* Completions alone free no place: a command that the device has not fetched is never overwritten. */
START_TEST(keeps_what_was_not_fetched)
{
	struct fake f = {0};
	struct request a[3] = {{0}};
	struct embeng_cmd cmd = {0};

	set_up(&f);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		ck_assert_int_eq(ring_submit(&f.ring, &cmd, &a[i]), 0);
		complete(&f, cmd.cookie, EMBENG_CQE_DONE);
	}
	ck_assert(ring_reap(&f.ring));
	ck_assert_uint_eq(f.ring.in_flight, 0);
	ck_assert_int_eq(ring_submit(&f.ring, &cmd, &a[2]), -EAGAIN);
	ck_assert_uint_eq(f.doorbell.sq_tail, ENTRIES);
	f.header->sq_head = 1;
	ck_assert_int_eq(ring_submit(&f.ring, &cmd, &a[2]), 0);
	ck_assert_int_eq(ring_submit(&f.ring, &cmd, &a[0]), -EAGAIN);
	free(f.ring.queue.ring);
	ring_close(&f.ring);
}
END_TEST

START_TEST(reads_reports_whole)
{
	struct fake f = {0};
	struct embeng_queue_report report;

	set_up(&f);
	ck_assert(!ring_report(&f.ring, &report));
	f.header->report.epoch = 3;
	ck_assert(!ring_report(&f.ring, &report));
	f.header->report = (struct embeng_queue_report){.epoch = 4, .step = 9, .tail = 1};
	ck_assert(ring_report(&f.ring, &report));
	ck_assert_uint_eq(report.step, 9);
	ck_assert(!ring_dead(&f.ring));
	f.header->dead = 1;
	ck_assert(ring_dead(&f.ring));
	free(f.ring.queue.ring);
	ring_close(&f.ring);
}
END_TEST

RUN_SUITE("ring_client", fills_and_empties, keeps_what_was_not_fetched, reads_reports_whole)
