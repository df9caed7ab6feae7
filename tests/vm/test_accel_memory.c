// SPDX-License-Identifier: MIT
/*
 * Buffers: refused arguments, mapping and sharing of valid ones, and memory of the program that is
 * pinned.
 */
#include "../unit/support/suite.h"
#include "accel.h"
#include "bounced.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define READ EMBENG_REGION_DEVICE_READ
#define WRITE EMBENG_REGION_DEVICE_WRITE

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
	const char *what;
	int error;
	struct embeng_accel_bo_create arg;
} wrong_buffers[] = {
	{"no bytes", EINVAL, {.size = 0}},
	{"flags", EINVAL, {.size = 1, .flags = 1}},
	{"handle", EINVAL, {.size = 1, .handle = 1}},
	{"offset", EINVAL, {.size = 1, .offset = 1}},
	{"size that wraps", EOVERFLOW, {.size = UINT64_MAX}},
	{"more than there is", ENOMEM, {.size = 1ull << 60}},
};

START_TEST(test_buffer_refused)
{
	struct embeng_accel_bo_create arg = wrong_buffers[_i].arg;

	REFUSED_FOR(wrong_buffers[_i].what, wrong_buffers[_i].error, fd,
		    DRM_IOCTL_EMBENG_BO_CREATE);
}
END_TEST

START_TEST(test_buffer)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, 3 * PAGE - 1);
	struct embeng_accel_bo_info arg = {.handle = bo.handle};
	unsigned char *bytes = accel_map(fd, bo.offset, 3 * PAGE, PROT_READ | PROT_WRITE), *again;
	struct drm_gem_close end = {.handle = bo.handle};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_BO_INFO, &arg), 0);
	ck_assert_uint_eq(arg.size, 3 * PAGE);
	ck_assert_uint_eq(arg.offset, bo.offset);
	for (unsigned i = 0; i < 3 * PAGE; i++)
		ck_assert_uint_eq(bytes[i], 0);
	bytes[2 * PAGE] = 9;
	again = accel_map(fd, bo.offset, 3 * PAGE, PROT_READ);
	ck_assert_uint_eq(again[2 * PAGE], 9);
	UNMAPPED(EINVAL, fd, bo.offset, PAGE, PROT_READ, MAP_PRIVATE);
	UNMAPPED(EINVAL, fd, bo.offset, 4 * PAGE, PROT_READ, MAP_SHARED);
	UNMAPPED(EINVAL, fd, bo.offset + (1ull << 40), PAGE, PROT_READ, MAP_SHARED);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_CLOSE, &end), 0);
	ck_assert_uint_eq(bytes[2 * PAGE], 9);
}
END_TEST

static const struct {
	const char *what;
	int error;
	struct embeng_accel_bo_info arg;
} wrong_questions[] = {
	{"reserved", EINVAL, {.reserved = 1}},
	{"size", EINVAL, {.size = 1}},
	{"offset", EINVAL, {.offset = 1}},
	{"no such handle", ENOENT, {.handle = 1000}},
};

START_TEST(test_info_refused)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, PAGE);
	struct embeng_accel_bo_info arg = wrong_questions[_i].arg;
	struct drm_gem_close end = {.handle = bo.handle};

	arg.handle += bo.handle;
	REFUSED_FOR(wrong_questions[_i].what, wrong_questions[_i].error, fd,
		    DRM_IOCTL_EMBENG_BO_INFO);
	arg = (struct embeng_accel_bo_info){.handle = bo.handle};
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_CLOSE, &end), 0);
	REFUSED(ENOENT, fd, DRM_IOCTL_EMBENG_BO_INFO);
}
END_TEST

START_TEST(test_shared_by_dma_buf)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, 2 * PAGE);
	struct drm_prime_handle prime = {.handle = bo.handle, .flags = DRM_CLOEXEC | DRM_RDWR};
	struct embeng_accel_bo_info info = {0};
	int other = accel_open();
	uint32_t *mine = accel_map(fd, bo.offset, 2 * PAGE, PROT_READ | PROT_WRITE), *theirs;

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
	theirs = accel_map(prime.fd, 0, 2 * PAGE, PROT_READ | PROT_WRITE);
	mine[5] = 77;
	ck_assert_uint_eq(theirs[5], 77);
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime), 0);
	info.handle = prime.handle;
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_BO_INFO, &info), 0);
	ck_assert_uint_eq(info.size, 2 * PAGE);
	accel_context(other);
	accel_bind(other, prime.handle, READ | WRITE);
	close(prime.fd);
	close(other);
	ck_assert_uint_eq(theirs[5], 77);
}
END_TEST

static const struct {
	const char *what;
	int error;
	struct embeng_accel_userptr arg;
} wrong_pointers[] = {
	{"flags", EINVAL, {.size = PAGE, .flags = 2}},
	{"handle", EINVAL, {.size = PAGE, .handle = 1}},
	{"no bytes", EINVAL, {.size = 0}},
	{"part of a page", EINVAL, {.size = PAGE + 1}},
	{"address inside a page", EINVAL, {.address = 1, .size = PAGE}},
	{"end that wraps", EOVERFLOW, {.address = PAGE, .size = -(uint64_t)PAGE}},
	{"nothing there", EFAULT, {.address = 2 * PAGE, .size = PAGE}},
	{"nothing behind the first page", EFAULT, {.size = 2 * PAGE}},
	{"more pages than can be counted", ENOMEM, {.size = 1ull << 44}},
};

START_TEST(test_userptr_refused)
{
	char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	struct embeng_accel_userptr arg = wrong_pointers[_i].arg;

	munmap(memory + PAGE, PAGE);
	if (arg.address < PAGE)
		arg.address += (uintptr_t)memory;
	REFUSED_FOR(wrong_pointers[_i].what, wrong_pointers[_i].error, fd,
		    DRM_IOCTL_EMBENG_USERPTR);
}
END_TEST

/* Where the device would see a copy, and there alone, the driver says so and refuses. */
static bool refused_for_copies(struct embeng_accel_userptr arg)
{
	ck_assert_int_eq(!(accel_device(fd).flags & EMBENG_ACCEL_CAN_USERPTR), bounced());
	if (!bounced())
		return false;
	REFUSED(EOPNOTSUPP, fd, DRM_IOCTL_EMBENG_USERPTR);
	return true;
}

START_TEST(test_userptr)
{
	void *memory = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct embeng_accel_userptr arg = {.address = (uintptr_t)memory, .size = 4 * PAGE};
	struct embeng_accel_bo_info info = {0};
	struct embeng_accel_bind bind = {.rights = WRITE};
	struct drm_prime_handle prime = {.flags = DRM_CLOEXEC, .fd = -1};

	REFUSED(EFAULT, fd, DRM_IOCTL_EMBENG_USERPTR);
	arg.flags = EMBENG_ACCEL_USERPTR_READ_ONLY;
	if (refused_for_copies(arg))
		return;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_USERPTR, &arg), 0);
	info.handle = arg.handle;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_BO_INFO, &info), 0);
	ck_assert_uint_eq(info.offset, 0);
	ck_assert_uint_eq(info.size, 4 * PAGE);
	bind.handle = arg.handle;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_BIND, &bind), -EACCES);
	accel_bind(fd, arg.handle, READ);
	ck_assert_uint_eq(accel_state(fd).memory, 4 * PAGE);
	prime.handle = arg.handle;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), -EOPNOTSUPP);
}
END_TEST

/* One page in two buffers: each is the device's for itself. */
START_TEST(test_userptr_twice)
{
	void *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	struct embeng_accel_userptr first = {.address = (uintptr_t)memory, .size = 2 * PAGE};
	struct embeng_accel_userptr second = {.address = (uintptr_t)memory + PAGE, .size = PAGE};
	struct drm_gem_close end = {0};

	if (refused_for_copies(first))
		return;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_USERPTR, &first), 0);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_USERPTR, &second), 0);
	ck_assert_uint_ne(first.handle, second.handle);
	end.handle = first.handle;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_CLOSE, &end), 0);
	accel_bind(fd, second.handle, READ | WRITE);
	ck_assert_uint_eq(accel_state(fd).memory, PAGE);
}
END_TEST

START_TEST(test_userptr_is_locked_memory)
{
	void *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	struct embeng_accel_userptr arg = {.address = (uintptr_t)memory, .size = 4 * PAGE};
	struct rlimit limit = {3 * PAGE, 3 * PAGE};
	struct drm_gem_close end = {0};
	int status;

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	ck_assert_int_eq(setuid(65534), 0);
	REFUSED(ENOMEM, fd, DRM_IOCTL_EMBENG_USERPTR);
	arg.size = 2 * PAGE;
	if (refused_for_copies(arg))
		return;
	/* Memory that could not be pinned is not counted. */
	ck_assert_int_eq(munmap((char *)memory + 3 * PAGE, PAGE), 0);
	arg.address += 2 * PAGE;
	for (int i = 0; i < 3; i++)
		REFUSED(EFAULT, fd, DRM_IOCTL_EMBENG_USERPTR);
	arg.address -= 2 * PAGE;
	/* Nor can children pin more than the user may, and leave it pinned behind them. */
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child)
			_exit(accel_call(fd, DRM_IOCTL_EMBENG_USERPTR, &arg) != (i ? -ENOMEM : 0));
		ck_assert_int_gt(child, 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
	}
	/* The first handle of the child is the lowest that this file has. */
	end.handle = 1;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_CLOSE, &end), 0);
	for (int i = 0; i < 3; i++) {
		arg = (struct embeng_accel_userptr){.address = (uintptr_t)memory, .size = 2 * PAGE};
		ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_USERPTR, &arg), 0);
		end.handle = arg.handle;
		ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_CLOSE, &end), 0);
	}
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_buffer_refused, 0,
			    sizeof(wrong_buffers) / sizeof(wrong_buffers[0]));
	tcase_add_test(tc, test_buffer);
	tcase_add_loop_test(tc, test_info_refused, 0,
			    sizeof(wrong_questions) / sizeof(wrong_questions[0]));
	tcase_add_test(tc, test_shared_by_dma_buf);
	tcase_add_loop_test(tc, test_userptr_refused, 0,
			    sizeof(wrong_pointers) / sizeof(wrong_pointers[0]));
	tcase_add_test(tc, test_userptr);
	tcase_add_test(tc, test_userptr_twice);
	tcase_add_test(tc, test_userptr_is_locked_memory);
}

int main(void)
{
	return suite_main("memory", add);
}
