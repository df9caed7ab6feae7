// SPDX-License-Identifier: MIT
/*
 * Indices of regions whose generations are used up. Nobody binds a region 2^32 times in a test: the
 * driver under it is one in which generations begin close to the last one, the scene of a mutation
 * (tests/mutation/mutations_kmod.py).
 */
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"

#define REGIONS 2u

static int fd;
static uint32_t handle;

static void setup(void)
{
	struct embeng_accel_context_create arg = {.regions = REGIONS};

	fd = accel_open();
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &arg), 0);
	handle = accel_bo(fd, 4096).handle;
}

static void teardown(void)
{
	close(fd);
}

static int unbind(struct embeng_mem key)
{
	struct embeng_accel_unbind arg = {.index = key.index, .generation = key.generation};

	return accel_call(fd, DRM_IOCTL_EMBENG_UNBIND, &arg);
}

static struct embeng_mem bind_buffer(void)
{
	return accel_bind(fd, handle, EMBENG_REGION_DEVICE_READ);
}

/* Binds and unbinds the lowest index until its generations are used up. Return: its last key. */
static struct embeng_mem use_up(void)
{
	struct embeng_mem key = bind_buffer();

	ck_assert_uint_gt(key.generation, UINT32_MAX - 16);
	while (key.generation != UINT32_MAX) {
		struct embeng_mem before = key;

		ck_assert_int_eq(unbind(key), 0);
		key = bind_buffer();
		ck_assert_uint_eq(key.index, before.index);
		ck_assert_uint_eq(key.generation, before.generation + 1);
	}
	ck_assert_int_eq(unbind(key), 0);
	return key;
}

START_TEST(test_index_is_retired)
{
	struct embeng_mem last = use_up(), next = bind_buffer();

	ck_assert_uint_ne(next.index, last.index);
	ck_assert_uint_ne(next.generation, 0);
	ck_assert_int_eq(unbind(last), -ENOENT);
	ck_assert_int_eq(unbind(next), 0);
}
END_TEST

START_TEST(test_all_are_retired)
{
	struct embeng_accel_bind arg = {.handle = handle, .rights = EMBENG_REGION_DEVICE_READ};

	for (uint32_t i = 0; i < REGIONS; i++)
		ck_assert_uint_eq(use_up().index, i);
	REFUSED(ENOSPC, fd, DRM_IOCTL_EMBENG_BIND);
	ck_assert_uint_eq(accel_state(fd).regions, 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_index_is_retired);
	tcase_add_test(tcase, test_all_are_retired);
}

int main(void)
{
	return suite_main("retired", add);
}
