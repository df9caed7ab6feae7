// SPDX-License-Identifier: MIT
/*
 * Priorities of queues, mapped and validated: commands that could run now run in the order of
 * priority.
 */
#include "../unit/support/suite.h"
#include "train.h"

#include <unistd.h>

#define READS 3u

static struct train t;

static void setup(void)
{
	t = train_open(1, 0);
}

static void teardown(void)
{
	train_close(&t);
}

static struct ring ring_of(uint32_t priority, uint32_t flags)
{
	struct embeng_accel_queue_create made = accel_queue(EMBENG_QUEUE_TRANSFER, flags);

	made.priority = priority;
	return accel_ring_of(t.fd, made);
}

/* All wait for UPDATE(1): the first in the engine, which takes one of a queue, the others behind. */
static void give_reads(struct ring *ring)
{
	for (uint32_t i = 0; i < READS; i++)
		accel_give(t.fd, ring, train_read(&t, 1));
	while (embeng_observe_sq_head(&accel_header(ring)->sq_head) == 0)
		usleep(1000);
}

/* WAIT goes by the last report, which may be from before the update. */
static void await_reads(const struct ring *ring)
{
	while (embeng_observe_cq_tail(&accel_header(ring)->cq_tail) != READS)
		usleep(1000);
}

static uint64_t take_read(struct ring *ring)
{
	struct embeng_cqe cqe = accel_take(t.fd, ring);

	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_OK);
	return cqe.timestamp;
}

/* The lower one was made and filled first. */
START_TEST(test_a_higher_priority_goes_first)
{
	uint32_t flags = _i ? EMBENG_ACCEL_QUEUE_MAPPED : 0;
	struct embeng_accel_sync out = train_sync(t.fd, 0);
	struct ring low = ring_of(0, flags), high = ring_of(3, flags);
	uint64_t last = 0;

	ck_assert_int_eq(train_give(&t, &t.input[0], train_lookup(&t, 0, 1), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	give_reads(&low);
	give_reads(&high);
	ck_assert_int_eq(train_give(&t, &t.gradient[0], train_update(&t, 0, 1), NULL, NULL), 0);
	await_reads(&high);
	await_reads(&low);
	for (uint32_t i = 0; i < READS; i++)
		last = take_read(&high);
	ck_assert_uint_le(last, take_read(&low));
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_a_higher_priority_goes_first, 0, 2);
}

int main(void)
{
	return suite_main("priority", add);
}
