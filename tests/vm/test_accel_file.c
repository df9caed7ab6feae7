// SPDX-License-Identifier: MIT
/* A file of the device: queries, registers, unknown calls, its context. */
#include "../unit/support/suite.h"
#include "accel.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define QUERY DRM_IOCTL_EMBENG_QUERY
#define CREATE DRM_IOCTL_EMBENG_CONTEXT_CREATE

static int fd;

static void setup(void)
{
	fd = accel_open();
	accel_context(fd);
}

static void teardown(void)
{
	close(fd);
}

static const struct {
	uint32_t what;
	uint32_t size;
} queries[] = {
	{EMBENG_ACCEL_QUERY_DEVICE, sizeof(struct embeng_accel_device)},
	{EMBENG_ACCEL_QUERY_CAPS, sizeof(struct embeng_caps)},
	{EMBENG_ACCEL_QUERY_CONTEXT, sizeof(struct embeng_accel_context_state)},
	{EMBENG_ACCEL_QUERY_RESETS, sizeof(struct embeng_accel_resets)},
	{EMBENG_ACCEL_QUERY_HEALTH, sizeof(struct embeng_accel_health)},
	{EMBENG_ACCEL_QUERY_COUNTERS, 0},
};

/* Its size for nothing, no byte of it without room for all, nothing beyond it. */
START_TEST(test_query_is_sized)
{
	struct embeng_accel_query arg = {.what = queries[_i].what};
	unsigned char answer[1024];
	uint32_t size;

	ck_assert_int_eq(accel_call(fd, QUERY, &arg), 0);
	size = arg.size;
	ck_assert_uint_le(size + 1, sizeof(answer));
	ck_assert_uint_eq(size, queries[_i].size ? queries[_i].size : size / 8 * 8);
	memset(answer, 0x5a, sizeof(answer));
	arg.data = (uintptr_t)answer;
	arg.size = size - 1;
	ck_assert_int_eq(accel_call(fd, QUERY, &arg), -ENOSPC);
	ck_assert_uint_eq(arg.size, size);
	for (uint32_t i = 0; i < sizeof(answer); i++)
		ck_assert_uint_eq(answer[i], 0x5a);
	arg.size = size + 1;
	ck_assert_int_eq(accel_call(fd, QUERY, &arg), 0);
	ck_assert_uint_eq(arg.size, size);
	ck_assert_uint_eq(answer[size], 0x5a);
}
END_TEST

START_TEST(test_query_refused)
{
	struct embeng_accel_query arg = {.what = 1000};

	REFUSED(EOPNOTSUPP, fd, QUERY);
	arg = (struct embeng_accel_query){
		.what = EMBENG_ACCEL_QUERY_CAPS, .size = sizeof(struct embeng_caps), .data = 8};
	REFUSED(EFAULT, fd, QUERY);
}
END_TEST

static struct embeng_caps caps(int file)
{
	struct embeng_caps out;
	struct embeng_accel_query arg = {
		.what = EMBENG_ACCEL_QUERY_CAPS, .size = sizeof(out), .data = (uintptr_t)&out};

	ck_assert_int_eq(accel_call(file, QUERY, &arg), 0);
	return out;
}

START_TEST(test_query)
{
	struct embeng_accel_device device = accel_device(fd);

	ck_assert_uint_eq(caps(fd).interface_major, EMBENG_INTERFACE_MAJOR);
	ck_assert_uint_ge(caps(fd).queues, 2);
	ck_assert_uint_gt(caps(fd).table_memory, 0);
	ck_assert_uint_eq(device.boot_state, 3);
	ck_assert_uint_ne(device.firmware_version, 0);
	ck_assert_uint_eq(device.pci_domain, 0xeb0);
	ck_assert_uint_ne(device.registers, 0);
}
END_TEST

START_TEST(test_registers_are_read_only)
{
	uint64_t at = accel_device(fd).registers;
	const uint32_t *registers = accel_map(fd, at, PAGE, PROT_READ);

	ck_assert_uint_eq(registers[0], 0x474e424du);
	ck_assert_int_eq(mprotect((void *)registers, PAGE, PROT_READ | PROT_WRITE), -1);
	ck_assert_int_eq(errno, EACCES);
	UNMAPPED(EACCES, fd, at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED);
	UNMAPPED(EINVAL, fd, at, PAGE, PROT_READ, MAP_PRIVATE);
	UNMAPPED(EINVAL, fd, at, 16 * PAGE, PROT_READ, MAP_SHARED);
	UNMAPPED(EINVAL, fd, at + PAGE, PAGE, PROT_READ, MAP_SHARED);
}
END_TEST

START_TEST(test_registers_need_rights)
{
	uint64_t at = accel_device(fd).registers;

	ck_assert_int_eq(setuid(65534), 0);
	ck_assert_uint_eq(accel_device(fd).registers, 0);
	UNMAPPED(EACCES, fd, at, PAGE, PROT_READ, MAP_SHARED);
}
END_TEST

/* Longer structures than this kernel knows: a tail of zeros is fine, another is not. */
START_TEST(test_tails)
{
	struct {
		struct embeng_accel_query known;
		uint64_t tail;
	} arg = {.known = {.what = EMBENG_ACCEL_QUERY_CAPS}}, *last;
	unsigned long longer = DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_QUERY, arg);
	char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);

	ck_assert_int_eq(accel_call(fd, longer, &arg), 0);
	arg.known.size = 0;
	arg.tail = 1;
	REFUSED(E2BIG, fd, longer);
	munmap(page + PAGE, PAGE);
	last = (void *)(page + PAGE - sizeof(last->known));
	ck_assert_int_eq(accel_call(fd, longer, last), -EFAULT);
	ck_assert_uint_eq(last->known.size, 0);
}
END_TEST

/* Shorter ones are filled up with zeros: a query of a size, without where to. */
START_TEST(test_short)
{
	struct {
		uint32_t what, size;
	} arg = {.what = EMBENG_ACCEL_QUERY_CAPS};

	ck_assert_int_eq(accel_call(fd, DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_QUERY, arg), &arg),
			 0);
	ck_assert_uint_eq(arg.size, sizeof(struct embeng_caps));
}
END_TEST

/* Also a known one in another direction: half of its copying would be left out. */
START_TEST(test_unknown_calls)
{
	struct embeng_accel_query query = {.what = EMBENG_ACCEL_QUERY_CAPS};
	uint64_t arg = 0;

	REFUSED(ENOTTY, fd, DRM_IO(DRM_COMMAND_BASE + DRM_EMBENG_RESET + 1));
	REFUSED(ENOTTY, fd, DRM_IO(DRM_COMMAND_END - 1));
	REFUSED(ENOTTY, fd, _IO('x', DRM_COMMAND_BASE));
	REFUSED_WITH(query, "only in", ENOTTY, fd,
		     DRM_IOW(DRM_COMMAND_BASE + DRM_EMBENG_QUERY, struct embeng_accel_query));
	REFUSED_WITH(query, "only out", ENOTTY, fd,
		     DRM_IOR(DRM_COMMAND_BASE + DRM_EMBENG_QUERY, struct embeng_accel_query));
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_BO_CREATE, (void *)8), -EFAULT);
}
END_TEST

/* The first two would oops in a kernel that lets them through to the core. */
START_TEST(test_core_calls_that_are_refused)
{
	struct drm_auth auth = {0};
	struct drm_unique unique = {0};
	struct drm_gem_flink flink = {.handle = accel_bo(fd, 4096).handle};
	struct drm_gem_open open = {.name = 1};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GET_MAGIC, &auth), -EOPNOTSUPP);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GET_UNIQUE, &unique), -EOPNOTSUPP);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_FLINK, &flink), -EOPNOTSUPP);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_OPEN, &open), -EOPNOTSUPP);
}
END_TEST

START_TEST(test_context)
{
	struct embeng_accel_context_create arg = {0};
	int other = accel_open();

	REFUSED(EBUSY, fd, CREATE);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_ALIVE);
	arg.flags = 1;
	REFUSED(EINVAL, other, CREATE);
	arg = (struct embeng_accel_context_create){.regions = caps(fd).regions + 1};
	REFUSED(EINVAL, other, CREATE);
	arg.regions = UINT32_MAX;
	REFUSED(EINVAL, other, CREATE);
	ck_assert_uint_eq(accel_state(other).status, EMBENG_ACCEL_CONTEXT_NONE);
	arg.regions = caps(fd).regions;
	ck_assert_int_eq(accel_call(other, CREATE, &arg), 0);
	close(other);
}
END_TEST

START_TEST(test_device_has_so_many_contexts)
{
	struct embeng_accel_context_create arg = {.regions = 1};
	int files[300], count = 0, ret = 0;

	while (!ret && count < 300) {
		files[count] = accel_open();
		ret = accel_call(files[count++], CREATE, &arg);
	}
	ck_assert_int_eq(ret, -ENOSPC);
	close(files[0]);
	ck_assert_int_eq(accel_call(files[count - 1], CREATE, &arg), 0);
	while (--count > 0)
		close(files[count]);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_query_is_sized, 0, sizeof(queries) / sizeof(queries[0]));
	tcase_add_test(tc, test_query_refused);
	tcase_add_test(tc, test_query);
	tcase_add_test(tc, test_registers_are_read_only);
	tcase_add_test(tc, test_registers_need_rights);
	tcase_add_test(tc, test_tails);
	tcase_add_test(tc, test_short);
	tcase_add_test(tc, test_unknown_calls);
	tcase_add_test(tc, test_core_calls_that_are_refused);
	tcase_add_test(tc, test_context);
	tcase_add_test(tc, test_device_has_so_many_contexts);
}

int main(void)
{
	return suite_main("file", add);
}
