// SPDX-License-Identifier: MIT
/* Regions: what is refused, keys that are stale, tables that are full. */
#include <fcntl.h>

#include "../unit/support/suite.h"
#include "accel.h"

#include <unistd.h>

#define PAGE 4096u
#define READ EMBENG_REGION_DEVICE_READ

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
	struct embeng_accel_bind arg = wrong_bindings[_i].arg;

	arg.handle += bo.handle;
	REFUSED_FOR(wrong_bindings[_i].what, wrong_bindings[_i].error, fd, DRM_IOCTL_EMBENG_BIND);
	ck_assert_uint_eq(accel_state(fd).memory, 4 * PAGE);
	ck_assert_uint_eq(accel_state(fd).regions, 0);
}
END_TEST

static int unbind(int file, struct embeng_mem key)
{
	struct embeng_accel_unbind arg = {.index = key.index, .generation = key.generation};

	return accel_call(file, DRM_IOCTL_EMBENG_UNBIND, &arg);
}

/* An index comes back under another generation: a key that ended names nothing any more. */
START_TEST(test_stale_keys)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, PAGE);
	struct embeng_mem first = accel_bind(fd, bo.handle, READ), second;

	ck_assert_uint_ne(first.generation, 0);
	ck_assert_uint_eq(accel_state(fd).regions, 1);
	ck_assert_int_eq(unbind(fd, first), 0);
	ck_assert_uint_eq(accel_state(fd).regions, 0);
	ck_assert_int_eq(unbind(fd, first), -ENOENT);
	second = accel_bind(fd, bo.handle, READ);
	ck_assert_uint_eq(second.index, first.index);
	ck_assert_uint_ne(second.generation, first.generation);
	ck_assert_int_eq(unbind(fd, first), -ENOENT);
	ck_assert_int_eq(unbind(fd, (struct embeng_mem){.index = second.index}), -ENOENT);
	second.index = 1u << 20;
	ck_assert_int_eq(unbind(fd, second), -ENOENT);
	ck_assert_uint_eq(accel_state(fd).regions, 1);
}
END_TEST

static struct embeng_cmd load_from(struct embeng_mem key)
{
	key.length = PAGE;
	return (struct embeng_cmd){.opcode = EMBENG_OP_MODEL_LOAD, .desc = key};
}

static int submit(struct ring *ring, struct embeng_mem key)
{
	struct embeng_cmd cmd = load_from(key);
	struct embeng_accel_submit arg = {.queue = ring->made.queue,
					  .count = 1,
					  .stride = sizeof(cmd),
					  .commands = (uintptr_t)&cmd,
					  .cq_head = ring->cq_head};

	return accel_call(fd, DRM_IOCTL_EMBENG_SUBMIT, &arg);
}

static uint32_t push(struct ring *ring, struct embeng_mem key)
{
	accel_push(ring, load_from(key));
	return accel_take(fd, ring).status;
}

/* The driver says so of a validated queue, the device of a mapped one. */
START_TEST(test_commands_with_stale_keys)
{
	struct ring validated = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct ring mapped = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	struct embeng_accel_bo_create bo = accel_bo(fd, PAGE);
	struct embeng_mem stale = accel_bind(fd, bo.handle, READ), key;

	ck_assert_int_eq(unbind(fd, stale), 0);
	ck_assert_int_eq(submit(&validated, stale), -ENOENT);
	ck_assert_uint_eq(push(&mapped, stale), EMBENG_STATUS_KEY);
	key = accel_bind(fd, bo.handle, READ);
	ck_assert_uint_eq(key.index, stale.index);
	ck_assert_int_eq(submit(&validated, stale), -ENOENT);
	ck_assert_uint_eq(push(&mapped, stale), EMBENG_STATUS_KEY);
	ck_assert_int_eq(submit(&validated, key), 0);
	ck_assert_uint_eq(accel_take(fd, &validated).status, EMBENG_STATUS_BLOB_FRAME);
	ck_assert_uint_eq(push(&mapped, key), EMBENG_STATUS_BLOB_FRAME);
}
END_TEST

START_TEST(test_table_is_full)
{
	struct embeng_accel_context_create context = {.regions = 2};
	int other = accel_open();
	struct embeng_accel_bo_create bo = accel_bo(other, PAGE);
	struct embeng_accel_bind arg = {.handle = bo.handle, .rights = READ};
	struct drm_prime_handle prime = {
		.handle = accel_bo(fd, 3 * PAGE).handle, .flags = DRM_CLOEXEC, .fd = -1};

	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &context), 0);
	accel_bind(other, bo.handle, READ);
	accel_bind(other, bo.handle, READ);
	REFUSED(ENOSPC, other, DRM_IOCTL_EMBENG_BIND);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime), 0);
	close(prime.fd);
	arg.handle = prime.handle;
	REFUSED(ENOSPC, other, DRM_IOCTL_EMBENG_BIND);
	ck_assert_uint_eq(accel_state(other).memory, PAGE);
	close(other);
}
END_TEST

START_TEST(test_limit)
{
	struct embeng_accel_context_create context = {.memory_limit = 3 * PAGE};
	int other = accel_open();
	struct embeng_accel_bo_create bo = accel_bo(other, 2 * PAGE);
	struct embeng_accel_bo_create arg = {.size = PAGE + 1};
	struct embeng_accel_queue_create queue = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	struct drm_gem_close end = {.handle = bo.handle};
	struct embeng_mem key;

	ck_assert_uint_eq(accel_state(other).memory, 2 * PAGE);
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &context), 0);
	ck_assert_uint_eq(accel_state(other).memory_limit, 3 * PAGE);
	REFUSED(EDQUOT, other, DRM_IOCTL_EMBENG_BO_CREATE);
	/* A buffer is charged once, however often it is bound. */
	accel_bind(other, bo.handle, READ);
	key = accel_bind(other, bo.handle, READ);
	ck_assert_uint_eq(accel_state(other).memory, 2 * PAGE);
	queue.sq_entries = 64;
	queue.cq_entries = 64;
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_QUEUE_CREATE, &queue), -EDQUOT);
	ck_assert_int_eq(unbind(other, key), 0);
	/* The other binding still has the memory. */
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_GEM_CLOSE, &end), 0);
	ck_assert_uint_eq(accel_state(other).memory, 2 * PAGE);
	REFUSED(EDQUOT, other, DRM_IOCTL_EMBENG_BO_CREATE);
	arg.size = PAGE;
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_BO_CREATE, &arg), 0);
	ck_assert_uint_eq(accel_state(other).memory, 3 * PAGE);
	end.handle = arg.handle;
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_GEM_CLOSE, &end), 0);
	ck_assert_uint_eq(accel_state(other).memory, 2 * PAGE);
	close(other);
}
END_TEST

/* A context gets no limit below what its file has already. */
START_TEST(test_limit_is_passed_already)
{
	struct embeng_accel_context_create arg = {.memory_limit = 2 * PAGE - 1};
	int other = accel_open();

	accel_bo(other, 2 * PAGE);
	REFUSED(EDQUOT, other, DRM_IOCTL_EMBENG_CONTEXT_CREATE);
	arg.memory_limit++;
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &arg), 0);
	close(other);
}
END_TEST

/* A buffer of another file is charged to who binds it too, once, until its last key ends. */
START_TEST(test_foreign_buffer)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, 2 * PAGE);
	struct drm_prime_handle prime = {.handle = bo.handle, .flags = DRM_CLOEXEC, .fd = -1};
	int other = accel_open();
	struct embeng_mem first, second;

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
	accel_context(other);
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime), 0);
	ck_assert_uint_eq(accel_state(other).memory, 0);
	first = accel_bind(other, prime.handle, READ);
	second = accel_bind(other, prime.handle, READ);
	ck_assert_uint_eq(accel_state(other).memory, 2 * PAGE);
	ck_assert_int_eq(unbind(other, first), 0);
	ck_assert_uint_eq(accel_state(other).memory, 2 * PAGE);
	ck_assert_int_eq(unbind(other, second), 0);
	ck_assert_uint_eq(accel_state(other).memory, 0);
	ck_assert_uint_eq(accel_state(fd).memory, 2 * PAGE);
	close(prime.fd);
	close(other);
}
END_TEST

/* A context that sets no limit of its own has that of the module's parameter. */
START_TEST(test_limit_of_the_parameter)
{
	int other = accel_open();
	struct embeng_accel_bo_create arg = {.size = (1u << 20) + PAGE};

	accel_write("/sys/module/embeng/parameters/memory_limit_mib", "1");
	accel_context(other);
	accel_write("/sys/module/embeng/parameters/memory_limit_mib", "0");
	ck_assert_uint_eq(accel_state(other).memory_limit, 1u << 20);
	REFUSED(EDQUOT, other, DRM_IOCTL_EMBENG_BO_CREATE);
	arg.size = 1u << 20;
	ck_assert_int_eq(accel_call(other, DRM_IOCTL_EMBENG_BO_CREATE, &arg), 0);
	ck_assert_uint_gt(accel_state(fd).memory_limit, 1u << 20);
	close(other);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_bind_refused, 0,
			    sizeof(wrong_bindings) / sizeof(wrong_bindings[0]));
	tcase_add_test(tc, test_stale_keys);
	tcase_add_test(tc, test_commands_with_stale_keys);
	tcase_add_test(tc, test_table_is_full);
	tcase_add_test(tc, test_limit);
	tcase_add_test(tc, test_limit_is_passed_already);
	tcase_add_test(tc, test_foreign_buffer);
	tcase_add_test(tc, test_limit_of_the_parameter);
}

int main(void)
{
	return suite_main("region", add);
}
