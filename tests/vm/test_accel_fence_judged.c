// SPDX-License-Identifier: MIT
/* A validated submit may have an out-fence only if everything it waits for was submitted before. */
#include "../unit/support/suite.h"
#include "train.h"

#include <string.h>
#include <unistd.h>

#define MAPPED EMBENG_ACCEL_QUEUE_MAPPED
#define give(ring, cmd, in, out) train_give(&t, ring, cmd, in, out)

static struct train t;

static void setup(void)
{
	t = train_open(1, 0);
}

static void teardown(void)
{
	train_close(&t);
}

static void expect_applied(uint64_t step)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);

	ck_assert_int_eq(give(&t.transfer, train_read(&t, step), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 1);
}

START_TEST(test_predecessors_come_first)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);

	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 1), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	/* UPDATE(1) is not submitted. */
	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 2), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&t.transfer, train_read(&t, 1), NULL, &out), -EAGAIN);
	/* Submitted ahead without a fence: nothing behind it has one either. */
	ck_assert_int_eq(give(&t.transfer, train_read(&t, 1), NULL, NULL), 0);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, 1), NULL, NULL), 0);
	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 2), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_float_eq(train_output(&t, 0, 2), -1.0f);
	expect_applied(1);
}
END_TEST

START_TEST(test_all_replicas_come_first)
{
	struct embeng_accel_sync out;

	train_close(&t);
	t = train_open(2, 0);
	out = train_sync(t.fd, 0);
	for (uint32_t r = 0; r < 2; r++) {
		ck_assert_int_eq(give(&t.input[r], train_lookup(&t, r, 1), NULL, &out), 0);
		ck_assert_int_eq(train_await(t.fd, out), 0);
	}
	ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, 1), NULL, &out), -EAGAIN);
	/* An update that was refused does not count as one that came first. */
	ck_assert_int_eq(give(&t.gradient[1], train_update(&t, 1, 1), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, 1), NULL, NULL), 0);
	ck_assert_int_eq(give(&t.input[1], train_lookup(&t, 1, 2), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&t.gradient[1], train_update(&t, 1, 1), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	expect_applied(1);
	ck_assert_int_eq(give(&t.input[1], train_lookup(&t, 1, 2), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_float_eq(train_output(&t, 1, 2), -1.0f);
}
END_TEST

START_TEST(test_pipelined)
{
	struct embeng_accel_sync out;

	train_close(&t);
	t = train_open(1, EMBENG_ENGINE_PIPELINING);
	out = train_sync(t.fd, 0);
	for (uint64_t step = 1; step <= 3; step++) {
		ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, step), NULL, &out), 0);
		ck_assert_int_eq(train_await(t.fd, out), 0);
		ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, step), NULL, &out),
				 -EOPNOTSUPP);
		ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, step), NULL, NULL), 0);
	}
	/* The third update is held until the fourth lookup. */
	ck_assert_float_eq(train_output(&t, 0, 3), -1.0f);
	ck_assert_int_eq(give(&t.transfer, train_read(&t, 3), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&t.gradient[0], train_nop(0), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 4), NULL, NULL), 0);
	expect_applied(3);
}
END_TEST

START_TEST(test_drain)
{
	struct embeng_accel_sync in = train_sync(t.fd, 0), out = train_sync(t.fd, 0);
	struct embeng_cmd drain = {.opcode = EMBENG_OP_DRAIN, .step = 1};

	ck_assert_int_eq(give(&t.transfer, train_nop(300000), NULL, &in), 0);
	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 1), &in, &out), 0);
	/* The engine does not know of the lookup yet, which a drain must cover. */
	ck_assert_int_eq(give(&t.transfer, drain, NULL, NULL), -EAGAIN);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(give(&t.transfer, drain, NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
}
END_TEST

START_TEST(test_model_loaded_by_command)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);
	struct embeng_cmd unload = {.opcode = EMBENG_OP_MODEL_UNLOAD};
	struct embeng_cmd lookup = train_lookup(&t, 0, 1);

	ck_assert_int_eq(give(&t.transfer, unload, NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 1);
	ck_assert_int_eq(give(&t.input[0], lookup, NULL, &out), -EOPNOTSUPP);
	ck_assert_int_eq(train_load(&t, 1, 0), 0);
	do {
		ck_assert_uint_eq(accel_take(t.fd, &t.transfer).status, EMBENG_STATUS_OK);
	} while (t.transfer.cq_head < 3);
	ck_assert_int_eq(give(&t.input[0], lookup, NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_float_eq(train_output(&t, 0, 1), 0.0f);
}
END_TEST

static struct embeng_cmd fence_on(const struct ring *ring, uint32_t index)
{
	struct embeng_fence_point point = {.queue = ring->made.queue, .index = index};

	memcpy(t.data + 60000, &point, sizeof(point));
	return (struct embeng_cmd){.opcode = EMBENG_OP_FENCE,
				   .desc = {t.key.index, t.key.generation, 60000, sizeof(point)}};
}

START_TEST(test_fence_points)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);
	struct ring mapped = accel_ring(t.fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct ring other = accel_ring(t.fd, EMBENG_QUEUE_TRANSFER, 0);

	ck_assert_int_eq(give(&t.transfer, fence_on(&mapped, 0), NULL, &out), -EOPNOTSUPP);
	ck_assert_int_eq(give(&t.transfer, fence_on(&other, 0), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&other, train_nop(100000), NULL, NULL), 0);
	ck_assert_int_eq(give(&t.transfer, fence_on(&other, 0), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_uint_eq(accel_take(t.fd, &other).status, EMBENG_STATUS_OK);
	/* Without an out-fence it may wait for what comes, and what is behind it waits too. */
	ck_assert_int_eq(give(&t.transfer, fence_on(&other, 1), NULL, NULL), 0);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&other, train_nop(0), NULL, NULL), 0);
	/* WAIT goes by the last report, which may be from before the command it waited for. */
	while (embeng_observe_cq_tail(&accel_header(&t.transfer)->cq_tail) < 3)
		usleep(1000);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
}
END_TEST

/* A fence on a point of a queue waits for commands before the point alone, not for those behind. */
START_TEST(test_a_fence_waits_no_further)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);
	struct ring other = accel_ring(t.fd, EMBENG_QUEUE_TRANSFER, 0);

	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 1), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(give(&other, train_nop(100000), NULL, NULL), 0);
	/* UPDATE(1) is not submitted. */
	ck_assert_int_eq(give(&other, train_read(&t, 1), NULL, NULL), 0);
	ck_assert_int_eq(give(&t.transfer, fence_on(&other, 0), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 1);
	ck_assert_int_eq(give(&t.transfer, fence_on(&other, 1), NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, 1), NULL, NULL), 0);
	ck_assert_int_eq(give(&t.transfer, fence_on(&other, 1), NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 1);
}
END_TEST

START_TEST(test_a_mapped_training)
{
	int fd = accel_open();
	struct embeng_accel_sync out = train_sync(fd, 0);
	struct embeng_cmd drain = {.opcode = EMBENG_OP_DRAIN, .step = 1}, nop = train_nop(0);
	struct ring transfer;

	accel_context(fd);
	transfer = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	accel_ring(fd, EMBENG_QUEUE_INPUT, MAPPED);
	ck_assert_int_eq(train_submit(fd, &transfer, &drain, 1, NULL, &out), -EOPNOTSUPP);
	ck_assert_int_eq(train_submit(fd, &transfer, &nop, 1, NULL, &out), 0);
	ck_assert_int_eq(train_await(fd, out), 0);
	close(fd);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_predecessors_come_first);
	tcase_add_test(tc, test_all_replicas_come_first);
	tcase_add_test(tc, test_pipelined);
	tcase_add_test(tc, test_drain);
	tcase_add_test(tc, test_model_loaded_by_command);
	tcase_add_test(tc, test_fence_points);
	tcase_add_test(tc, test_a_fence_waits_no_further);
	tcase_add_test(tc, test_a_mapped_training);
}

int main(void)
{
	return suite_main("fence_judged", add);
}
