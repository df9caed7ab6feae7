// SPDX-License-Identifier: MIT
/* The rungs of recovery that the driver climbs by itself, each brought about by a fault. */
#include <poll.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"
#include "fault_file.h"

#define TIMEOUT "/sys/module/embeng/parameters/admin_timeout_ms"
#define ANSWER_TIMEOUT "/sys/module/embeng/parameters/answer_timeout_ms"
#define HANG_MS "/sys/module/embeng/parameters/hang_ms"

static int fd;
static struct embeng_mem key;

static void setup(void)
{
	struct embeng_accel_bo_create bo;

	accel_write(TIMEOUT, "300");
	accel_write(ANSWER_TIMEOUT, "6000");
	fd = accel_open();
	accel_context(fd);
	bo = accel_bo(fd, 4096);
	key = accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);
}

static void teardown(void)
{
	close(fd);
	accel_write(TIMEOUT, "20000");
	accel_write(ANSWER_TIMEOUT, "20000");
	accel_write(HANG_MS, "10000");
}

static int unbind(void)
{
	struct embeng_accel_unbind arg = {key.index, key.generation};

	return accel_call(fd, DRM_IOCTL_EMBENG_UNBIND, &arg);
}

/* The driver looks at its ring now and then: a lost interrupt costs time, nothing else. */
START_TEST(test_lost_interrupt)
{
	struct embeng_accel_resets before = accel_resets(fd);

	fault_arm("lose_interrupt", 1);
	ck_assert_int_eq(unbind(), 0);
	fault_arm("lose_interrupt", 0);
	ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_ALIVE);
}
END_TEST

/* No answer to an INVALIDATE: the memory is not freed before the engine was reset. */
START_TEST(test_no_answer)
{
	struct embeng_accel_resets before = accel_resets(fd);

	fault_arm("drop_completion", 1);
	ck_assert_int_eq(unbind(), 0);
	ck_assert_uint_eq(accel_resets(fd).engines, before.engines + 1);
	ck_assert_uint_eq(accel_resets(fd).functions, before.functions);
	ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence + 1);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	accel_works();
}
END_TEST

/* Nor when the engine does nothing at all, and nobody else looks after it. */
START_TEST(test_no_answer_of_a_dead_engine)
{
	struct embeng_accel_resets before = accel_resets(fd);

	accel_write(HANG_MS, "0");
	fault_arm("engine_dies", 1);
	while (fault_get("engine_dies", "count"))
		usleep(1000);
	ck_assert_int_eq(unbind(), 0);
	ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence + 1);
	ck_assert_uint_eq(accel_resets(fd).functions, before.functions + 1);
	ck_assert_uint_eq(accel_health(fd).cause, EMBENG_ACCEL_CAUSE_NO_ANSWER);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	accel_works();
}
END_TEST

/*
 * The device does not let a queue go on: its context is ended, and no other. @_i: the queue is mapped.
 */
START_TEST(test_queue_is_refused)
{
	struct embeng_accel_resets before = accel_resets(fd), after;
	struct embeng_accel_reset reset = {.rung = EMBENG_ACCEL_RESET_QUEUE};
	struct embeng_accel_wait wait = {.queue = EMBENG_ACCEL_ANY_QUEUE};
	int other = accel_open();
	struct ring ring, own;

	accel_context(other);
	ring = accel_ring(other, EMBENG_QUEUE_TRANSFER, 0);
	own = accel_ring(fd, EMBENG_QUEUE_TRANSFER, _i ? EMBENG_ACCEL_QUEUE_MAPPED : 0);
	reset.queue = own.made.queue;
	fault_arm("refuse_mapping", 1);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &reset), -ESHUTDOWN);
	ck_assert_uint_eq(fault_get("refuse_mapping", "count"), 0);
	after = accel_resets(fd);
	ck_assert_uint_eq(after.contexts, before.contexts + 1);
	ck_assert_uint_eq(after.engines, before.engines);
	ck_assert_uint_eq(after.functions, before.functions);
	ck_assert_uint_eq(after.sequence, before.sequence);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	ck_assert_uint_eq(accel_health(fd).rung, EMBENG_ACCEL_RESET_CONTEXT);
	ck_assert_uint_eq(accel_health(fd).cause, EMBENG_ACCEL_CAUSE_REFUSED);
	ck_assert_uint_eq(accel_header(&own)->dead, 1);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &wait), -ESHUTDOWN);
	ck_assert_int_eq(unbind(), 0);
	/* The other context goes on, with its queue. */
	ck_assert_uint_eq(accel_state(other).status, EMBENG_ACCEL_CONTEXT_ALIVE);
	accel_give(other, &ring, (struct embeng_cmd){.cookie = 9});
	ck_assert_uint_eq(accel_take(other, &ring).cookie, 9);
	close(other);
	accel_works();
}
END_TEST

/* A queue that the device refuses from the beginning costs nothing at all. */
START_TEST(test_new_queue_is_refused)
{
	struct embeng_accel_resets before = accel_resets(fd);
	struct embeng_accel_queue_create arg = accel_queue(EMBENG_QUEUE_TRANSFER, 0);

	fault_arm("refuse_mapping", 1);
	REFUSED(EIO, fd, DRM_IOCTL_EMBENG_QUEUE_CREATE);
	ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence);
	ck_assert_uint_eq(accel_resets(fd).contexts, before.contexts);
	ck_assert_uint_eq(accel_state(fd).queues, 0);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, &arg), 0);
}
END_TEST

/* And where the engine does not boot then, the function is reset. */
START_TEST(test_no_boot)
{
	struct embeng_accel_resets before = accel_resets(fd);
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_ENGINE};

	fault_arm("firmware_refuses", 1);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	ck_assert_uint_eq(accel_resets(fd).engines, before.engines + 1);
	ck_assert_uint_eq(accel_resets(fd).functions, before.functions + 1);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	accel_works();
}
END_TEST

/* By an interrupt, minutes before the driver would look. */
START_TEST(test_a_fault_is_told)
{
	struct embeng_accel_resets before = accel_resets(fd);
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	struct pollfd watched = {.fd = fd, .events = POLLIN};

	accel_write(HANG_MS, "600000");
	fault_arm("ecc_uncorrectable", 1);
	accel_push(&ring, (struct embeng_cmd){.cookie = 3});
	do {
		ck_assert_int_eq(poll(&watched, 1, 60000), 1);
	} while (!(watched.revents & POLLERR));
	accel_write(HANG_MS, "10000");
	/* No query waits for a reset. */
	while (accel_state(fd).status == EMBENG_ACCEL_CONTEXT_IN_RESET)
		usleep(1000);
	ck_assert_uint_eq(accel_resets(fd).engines, before.engines + 1);
	ck_assert_uint_eq(accel_health(fd).cause, EMBENG_ACCEL_CAUSE_FAULT);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	accel_works();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_lost_interrupt);
	tcase_add_test(tcase, test_no_answer);
	tcase_add_test(tcase, test_no_answer_of_a_dead_engine);
	tcase_add_loop_test(tcase, test_queue_is_refused, 0, 2);
	tcase_add_test(tcase, test_new_queue_is_refused);
	tcase_add_test(tcase, test_no_boot);
	tcase_add_test(tcase, test_a_fault_is_told);
}

int main(void)
{
	return suite_main("rungs", add);
}
