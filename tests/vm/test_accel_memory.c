// SPDX-License-Identifier: MIT
/* Queries, buffers, contexts and regions: what is refused, and what memory does. */
#include "../unit/suite.h"
#include "accel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

static struct embeng_accel_context_state state(int file)
{
	struct embeng_accel_context_state out;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_CONTEXT, .size = sizeof(out),
					 .data = (uintptr_t)&out};

	ck_assert_int_eq(accel_call(file, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	return out;
}

START_TEST(test_query)
{
	struct embeng_caps caps = {0};
	struct embeng_accel_device device = {0};
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_CAPS};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	ck_assert_uint_eq(arg.size, sizeof(caps));
	arg.data = (uintptr_t)&caps;
	arg.size = sizeof(caps) - 1;
	REFUSED(ENOSPC, fd, DRM_IOCTL_EMBENG_QUERY);
	ck_assert_uint_eq(arg.size, sizeof(caps));
	ck_assert_uint_eq(caps.queues, 0);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	ck_assert_uint_eq(caps.interface_major, EMBENG_INTERFACE_MAJOR);
	ck_assert_uint_ge(caps.queues, 2);
	ck_assert_uint_gt(caps.table_memory, 0);
	arg.data = 8;
	REFUSED(EFAULT, fd, DRM_IOCTL_EMBENG_QUERY);
	arg.what = 1000;
	REFUSED(EOPNOTSUPP, fd, DRM_IOCTL_EMBENG_QUERY);
	arg = (struct embeng_accel_query){.size = sizeof(device), .data = (uintptr_t)&device};
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	ck_assert_uint_eq(device.boot_state, 3);
	ck_assert_uint_ne(device.firmware_version, 0);
	ck_assert_uint_eq(device.pci_domain, 0xeb0);
	ck_assert_uint_ne(device.registers, 0);
}
END_TEST

START_TEST(test_registers_are_read_only)
{
	struct embeng_accel_device device;
	struct embeng_accel_query arg = {.size = sizeof(device), .data = (uintptr_t)&device};
	const uint32_t *registers;

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	registers = accel_map(fd, device.registers, PAGE, PROT_READ);
	ck_assert_uint_eq(registers[0], 0x474e424du);
	ck_assert_ptr_eq(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			      (off_t)device.registers), MAP_FAILED);
	ck_assert_int_eq(errno, EACCES);
}
END_TEST

/* Longer structures than this kernel knows: a tail of zeros is fine, another is not. */
START_TEST(test_tails)
{
	struct {
		struct embeng_accel_query known;
		uint64_t tail;
	} arg = {.known = {.what = EMBENG_ACCEL_QUERY_CAPS}};
	unsigned long longer = DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_QUERY, arg);

	ck_assert_int_eq(accel_call(fd, longer, &arg), 0);
	arg.known.size = 0;
	arg.tail = 1;
	REFUSED(E2BIG, fd, longer);
	REFUSED(ENOTTY, fd, DRM_IO(DRM_COMMAND_BASE + 0x30));
	REFUSED(ENOTTY, fd, _IO('x', 0));
}
END_TEST

/* Both would oops in a kernel that lets them through to the core. */
START_TEST(test_core_calls_that_want_a_master)
{
	struct drm_auth auth = {0};
	struct drm_unique unique = {0};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GET_MAGIC, &auth), -EOPNOTSUPP);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GET_UNIQUE, &unique), -EOPNOTSUPP);
}
END_TEST

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

	ck_assert_msg(accel_call(fd, DRM_IOCTL_EMBENG_BO_CREATE, &arg) == -wrong_buffers[_i].error,
		      "%s", wrong_buffers[_i].what);
	ck_assert_mem_eq(&arg, &wrong_buffers[_i].arg, sizeof(arg));
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
	ck_assert_ptr_eq(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, (off_t)bo.offset),
			 MAP_FAILED);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_CLOSE, &end), 0);
	ck_assert_uint_eq(bytes[2 * PAGE], 9);
	arg = (struct embeng_accel_bo_info){.handle = bo.handle};
	REFUSED(ENOENT, fd, DRM_IOCTL_EMBENG_BO_INFO);
	arg.reserved = 1;
	REFUSED(EINVAL, fd, DRM_IOCTL_EMBENG_BO_INFO);
}
END_TEST

START_TEST(test_handles_are_of_the_file)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, PAGE);
	int other = accel_open();
	struct embeng_accel_bo_info arg = {.handle = bo.handle};

	REFUSED(ENOENT, other, DRM_IOCTL_EMBENG_BO_INFO);
	ck_assert_ptr_eq(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, other, (off_t)bo.offset),
			 MAP_FAILED);
	ck_assert_int_eq(errno, EACCES);
	close(other);
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

START_TEST(test_context)
{
	struct embeng_accel_context_create arg = {0};
	int other = accel_open();

	REFUSED(EBUSY, fd, DRM_IOCTL_EMBENG_CONTEXT_CREATE);
	ck_assert_uint_eq(state(fd).status, EMBENG_ACCEL_CONTEXT_ALIVE);
	ck_assert_uint_eq(state(other).status, EMBENG_ACCEL_CONTEXT_NONE);
	arg.flags = 1;
	REFUSED(EINVAL, other, DRM_IOCTL_EMBENG_CONTEXT_CREATE);
	arg = (struct embeng_accel_context_create){.regions = 1u << 30};
	REFUSED(EINVAL, other, DRM_IOCTL_EMBENG_CONTEXT_CREATE);
	close(other);
}
END_TEST

START_TEST(test_device_has_so_many_contexts)
{
	struct embeng_accel_context_create arg = {.regions = 1};
	int files[300], count = 0, ret = 0;

	while (!ret && count < 300) {
		files[count] = accel_open();
		ret = accel_call(files[count++], DRM_IOCTL_EMBENG_CONTEXT_CREATE, &arg);
	}
	ck_assert_int_eq(ret, -ENOSPC);
	close(files[0]);
	ck_assert_int_eq(accel_call(files[count - 1], DRM_IOCTL_EMBENG_CONTEXT_CREATE, &arg), 0);
	while (--count > 0)
		close(files[count]);
}
END_TEST

/* Each is valid but for what comes last. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define BIND .rights = READ

static const struct {
	const char *what;
	int error;
	struct embeng_accel_bind arg;
} wrong_bindings[] = {
	{"no rights", EINVAL, {BIND, .rights = 0}},
	{"unknown rights", EINVAL, {BIND, .rights = 4}},
	{"offset inside a page", EINVAL, {BIND, .offset = 1}},
	{"offset at the end", EINVAL, {BIND, .offset = 4 * PAGE}},
	{"beyond the end", EINVAL, {BIND, .offset = PAGE, .length = 3 * PAGE + 1}},
	{"end that wraps", EOVERFLOW, {BIND, .offset = PAGE, .length = UINT64_MAX}},
	{"index", EINVAL, {BIND, .index = 1}},
	{"generation", EINVAL, {BIND, .generation = 1}},
	{"no such handle", ENOENT, {BIND, .handle = 1000}},
};

START_TEST(test_bind_refused)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, 4 * PAGE);
	struct embeng_accel_bind arg = wrong_bindings[_i].arg, before;

	arg.handle += bo.handle;
	before = arg;
	ck_assert_msg(accel_call(fd, DRM_IOCTL_EMBENG_BIND, &arg) == -wrong_bindings[_i].error,
		      "%s", wrong_bindings[_i].what);
	ck_assert_mem_eq(&arg, &before, sizeof(arg));
}
END_TEST

START_TEST(test_bind_needs_context)
{
	int other = accel_open();
	struct embeng_accel_bo_create bo = accel_bo(other, PAGE);
	struct embeng_accel_bind arg = {.handle = bo.handle, .rights = READ};

	REFUSED(ENOENT, other, DRM_IOCTL_EMBENG_BIND);
	close(other);
}
END_TEST

START_TEST(test_keys)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, PAGE);
	struct embeng_mem first = accel_bind(fd, bo.handle, READ), second;
	struct embeng_accel_unbind arg = {.index = first.index, .generation = first.generation};
	int other = accel_open();

	accel_context(other);
	REFUSED(ENOENT, other, DRM_IOCTL_EMBENG_UNBIND);
	close(other);
	ck_assert_uint_ne(first.generation, 0);
	ck_assert_uint_eq(state(fd).regions, 1);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_UNBIND, &arg), 0);
	REFUSED(ENOENT, fd, DRM_IOCTL_EMBENG_UNBIND);
	second = accel_bind(fd, bo.handle, READ);
	ck_assert_uint_eq(second.index, first.index);
	ck_assert_uint_ne(second.generation, first.generation);
	REFUSED(ENOENT, fd, DRM_IOCTL_EMBENG_UNBIND);
	arg.index = 1u << 20;
	REFUSED(ENOENT, fd, DRM_IOCTL_EMBENG_UNBIND);
}
END_TEST

START_TEST(test_table_is_full)
{
	struct embeng_accel_context_create context = {.regions = 2};
	int other = accel_open();
	struct embeng_accel_bo_create bo = accel_bo(other, PAGE);
	struct embeng_accel_bind arg = {.handle = bo.handle, .rights = READ};

	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &context), 0);
	accel_bind(other, bo.handle, READ);
	accel_bind(other, bo.handle, READ);
	REFUSED(ENOSPC, other, DRM_IOCTL_EMBENG_BIND);
	close(other);
}
END_TEST

START_TEST(test_limit)
{
	struct embeng_accel_context_create context = {.memory_limit = 3 * PAGE};
	int other = accel_open();
	struct embeng_accel_bo_create bo = accel_bo(other, 2 * PAGE);
	struct embeng_accel_bind arg = {.handle = bo.handle, .rights = READ};
	struct embeng_accel_queue_create queue = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_mem key;
	struct embeng_accel_unbind end;

	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &context), 0);
	key = accel_bind(other, bo.handle, READ);
	ck_assert_uint_eq(state(other).memory, 2 * PAGE);
	ck_assert_uint_eq(state(other).memory_limit, 3 * PAGE);
	REFUSED(EDQUOT, other, DRM_IOCTL_EMBENG_BIND);
	queue.sq_entries = 64;
	queue.cq_entries = 64;
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_QUEUE_CREATE, &queue), -EDQUOT);
	end = (struct embeng_accel_unbind){.index = key.index, .generation = key.generation};
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_UNBIND, &end), 0);
	ck_assert_uint_eq(state(other).memory, 0);
	close(other);
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
};

START_TEST(test_userptr_refused)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct embeng_accel_userptr arg = wrong_pointers[_i].arg;

	if (wrong_pointers[_i].error == EINVAL)
		arg.address += (uintptr_t)memory;
	ck_assert_msg(accel_call(fd, DRM_IOCTL_EMBENG_USERPTR, &arg) == -wrong_pointers[_i].error,
		      "%s", wrong_pointers[_i].what);
	ck_assert_uint_eq(arg.handle, wrong_pointers[_i].arg.handle);
}
END_TEST

static uint32_t device_flags(void)
{
	struct embeng_accel_device device = {0};
	struct embeng_accel_query arg = {.size = sizeof(device), .data = (uintptr_t)&device};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	return device.flags;
}

/* Where the device would see a copy (swiotlb=force), the driver says so and refuses. */
static bool refused_for_copies(struct embeng_accel_userptr arg)
{
	if (device_flags() & EMBENG_ACCEL_CAN_USERPTR)
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
	ck_assert_uint_eq(state(fd).memory, 4 * PAGE);
}
END_TEST

/* One page in two buffers: each is the device's for itself. */
START_TEST(test_userptr_twice)
{
	void *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
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
	ck_assert_uint_eq(state(fd).memory, PAGE);
}
END_TEST

START_TEST(test_userptr_is_locked_memory)
{
	void *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	struct embeng_accel_userptr arg = {.address = (uintptr_t)memory, .size = 4 * PAGE};
	struct rlimit limit = {3 * PAGE, 3 * PAGE};
	struct drm_gem_close end = {0};

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	ck_assert_int_eq(setuid(65534), 0);
	REFUSED(ENOMEM, fd, DRM_IOCTL_EMBENG_USERPTR);
	arg.size = 2 * PAGE;
	if (refused_for_copies(arg))
		return;
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
	tcase_add_test(tc, test_query);
	tcase_add_test(tc, test_registers_are_read_only);
	tcase_add_test(tc, test_tails);
	tcase_add_test(tc, test_core_calls_that_want_a_master);
	tcase_add_loop_test(tc, test_buffer_refused, 0,
			    sizeof(wrong_buffers) / sizeof(wrong_buffers[0]));
	tcase_add_test(tc, test_buffer);
	tcase_add_test(tc, test_handles_are_of_the_file);
	tcase_add_test(tc, test_shared_by_dma_buf);
	tcase_add_test(tc, test_context);
	tcase_add_test(tc, test_device_has_so_many_contexts);
	tcase_add_loop_test(tc, test_bind_refused, 0,
			    sizeof(wrong_bindings) / sizeof(wrong_bindings[0]));
	tcase_add_test(tc, test_bind_needs_context);
	tcase_add_test(tc, test_keys);
	tcase_add_test(tc, test_table_is_full);
	tcase_add_test(tc, test_limit);
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
