// SPDX-License-Identifier: MIT
/* The rungs that the driver climbs by itself, each brought about by a fault. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../unit/suite.h"
#include "accel.h"
#include "fault_file.h"

#define TIMEOUT "/sys/module/embeng/parameters/admin_timeout_ms"

static int fd;
static struct embeng_mem key;

static void set_timeout(const char *ms)
{
	int file = open(TIMEOUT, O_WRONLY);

	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(write(file, ms, strlen(ms)), (ssize_t)strlen(ms));
	close(file);
}

static void setup(void)
{
	struct embeng_accel_bo_create bo;

	set_timeout("300");
	fd = accel_open();
	accel_context(fd);
	bo = accel_bo(fd, 4096);
	key = accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);
}

static void teardown(void)
{
	close(fd);
	set_timeout("20000");
}

static int unbind(void)
{
	struct embeng_accel_unbind arg = {key.index, key.generation};

	return accel_call(fd, DRM_IOCTL_EMBENG_UNBIND, &arg);
}

static struct embeng_accel_resets resets(void)
{
	struct embeng_accel_resets out;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_RESETS, .size = sizeof(out),
					 .data = (uintptr_t)&out};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	return out;
}

static void works(void)
{
	int other = accel_open();
	struct ring ring;

	accel_context(other);
	ring = accel_ring(other, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	accel_push(&ring, (struct embeng_cmd){.cookie = 6});
	ck_assert_uint_eq(accel_take(other, &ring).cookie, 6);
	close(other);
}

/* The driver looks at its ring now and then: a lost interrupt costs time, nothing else. */
START_TEST(test_lost_interrupt)
{
	struct embeng_accel_resets before = resets();

	fault_arm("lose_interrupt", 1);
	ck_assert_int_eq(unbind(), 0);
	fault_arm("lose_interrupt", 0);
	ck_assert_uint_eq(resets().sequence, before.sequence);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_ALIVE);
}
END_TEST

/* No answer to an INVALIDATE: the memory is not freed before the engine was reset. */
START_TEST(test_no_answer)
{
	struct embeng_accel_resets before = resets();

	fault_arm("drop_completion", 1);
	ck_assert_int_eq(unbind(), 0);
	ck_assert_uint_eq(resets().engines, before.engines + 1);
	ck_assert_uint_eq(resets().functions, before.functions);
	ck_assert_uint_eq(resets().sequence, before.sequence + 1);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	works();
}
END_TEST

/* And where the engine does not boot then, the function is reset. */
START_TEST(test_no_boot)
{
	struct embeng_accel_resets before = resets();
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_ENGINE};

	fault_arm("firmware_refuses", 1);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	ck_assert_uint_eq(resets().engines, before.engines + 1);
	ck_assert_uint_eq(resets().functions, before.functions + 1);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	works();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_lost_interrupt);
	tcase_add_test(tcase, test_no_answer);
	tcase_add_test(tcase, test_no_boot);
}

int main(void)
{
	return suite_main("ladder", add);
}
