// SPDX-License-Identifier: MIT
/* The rungs of recovery that the driver climbs by itself, each brought about by a fault. */
#include <poll.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"
#include "fault_file.h"

#define TIMEOUT "/sys/module/embeng/parameters/admin_timeout_ms"
#define HANG_MS "/sys/module/embeng/parameters/hang_ms"

static int fd;
static struct embeng_mem key;

static void setup(void)
{
	struct embeng_accel_bo_create bo;

	accel_write(TIMEOUT, "300");
	fd = accel_open();
	accel_context(fd);
	bo = accel_bo(fd, 4096);
	key = accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);
}

static void teardown(void)
{
	close(fd);
	accel_write(TIMEOUT, "20000");
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
	tcase_add_test(tcase, test_no_boot);
	tcase_add_test(tcase, test_a_fault_is_told);
}

int main(void)
{
	return suite_main("rungs", add);
}
