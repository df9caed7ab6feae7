// SPDX-License-Identifier: MIT
/*
 * Two open files of a device: objects of one are unknown to the other, whether the other has a
 * context or not.
 */
#include "../unit/support/suite.h"
#include "accel.h"

#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define MAPPED EMBENG_ACCEL_QUEUE_MAPPED
#define BOTH (PROT_READ | PROT_WRITE)
#define UNKNOWN(given, request) REFUSED_WITH(given, #request, ENOENT, theirs, request)

/* @mine has what @theirs asks for. */
static int mine, theirs;
static struct embeng_accel_bo_create bo;
static struct embeng_mem key;
static struct ring mapped, validated;

static void setup(void)
{
	mine = accel_open();
	theirs = accel_open();
	accel_context(mine);
	bo = accel_bo(mine, PAGE);
	key = accel_bind(mine, bo.handle, EMBENG_REGION_DEVICE_READ);
	mapped = accel_ring(mine, EMBENG_QUEUE_TRANSFER, MAPPED);
	validated = accel_ring(mine, EMBENG_QUEUE_TRANSFER, 0);
}

static void teardown(void)
{
	close(theirs);
	close(mine);
}

static void ask_for_buffers(void)
{
	struct embeng_accel_bo_info info = {.handle = bo.handle};
	struct embeng_accel_bind bind = {.handle = bo.handle, .rights = EMBENG_REGION_DEVICE_READ};
	struct embeng_accel_unbind unbind = {.index = key.index, .generation = key.generation};
	struct drm_prime_handle prime = {.handle = bo.handle, .fd = -1};

	UNKNOWN(info, DRM_IOCTL_EMBENG_BO_INFO);
	UNKNOWN(bind, DRM_IOCTL_EMBENG_BIND);
	UNKNOWN(unbind, DRM_IOCTL_EMBENG_UNBIND);
	UNKNOWN(prime, DRM_IOCTL_PRIME_HANDLE_TO_FD);
	UNMAPPED(EACCES, theirs, bo.offset, PAGE, BOTH, MAP_SHARED);
}

static void ask_for_queue(const struct ring *ring)
{
	uint32_t queue = ring->made.queue;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP};
	struct embeng_blob_header blob = {
		.magic = EMBENG_BLOB_MAGIC, .version = EMBENG_BLOB_VERSION, .length = sizeof(blob)};
	struct embeng_accel_submit submit = {
		.queue = queue, .count = 1, .stride = sizeof(cmd), .commands = (uintptr_t)&cmd};
	struct embeng_accel_wait wait = {.queue = queue, .count = 1};
	struct embeng_accel_model_load load = {
		.queue = queue, .blob = (uintptr_t)&blob, .length = sizeof(blob)};
	struct embeng_accel_reset reset = {.rung = EMBENG_ACCEL_RESET_QUEUE, .queue = queue};
	struct embeng_accel_queue_destroy destroy = {.queue = queue};

	UNKNOWN(submit, DRM_IOCTL_EMBENG_SUBMIT);
	UNKNOWN(wait, DRM_IOCTL_EMBENG_WAIT);
	UNKNOWN(load, DRM_IOCTL_EMBENG_MODEL_LOAD);
	UNKNOWN(reset, DRM_IOCTL_EMBENG_RESET);
	UNKNOWN(destroy, DRM_IOCTL_EMBENG_QUEUE_DESTROY);
	UNMAPPED(ENOENT, theirs, ring->made.ring, PAGE, PROT_READ, MAP_SHARED);
}

static uint64_t nop(struct ring *ring, uint64_t cookie)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP, .cookie = cookie};
	struct embeng_accel_submit arg = {.queue = ring->made.queue,
					  .count = 1,
					  .stride = sizeof(cmd),
					  .commands = (uintptr_t)&cmd,
					  .cq_head = ring->cq_head};

	if (ring->doorbell)
		accel_push(ring, cmd);
	else
		ck_assert_int_eq(accel_call(mine, DRM_IOCTL_EMBENG_SUBMIT, &arg), 0);
	return accel_take(mine, ring).cookie;
}

/* Nothing of what was asked harmed who has it. */
static void expect_whole(void)
{
	struct embeng_accel_unbind unbind = {.index = key.index, .generation = key.generation};

	ck_assert_uint_eq(accel_state(mine).queues, 2);
	ck_assert_uint_eq(nop(&mapped, 5), 5);
	ck_assert_uint_eq(nop(&validated, 6), 6);
	ck_assert_int_eq(accel_call(mine, DRM_IOCTL_EMBENG_UNBIND, &unbind), 0);
}

START_TEST(test_nothing_is_known_to_another)
{
	if (_i)
		accel_context(theirs);
	ask_for_buffers();
	ask_for_queue(&mapped);
	ask_for_queue(&validated);
	UNMAPPED(ENOENT, theirs, mapped.made.doorbell, PAGE, BOTH, MAP_SHARED);
	expect_whole();
}
END_TEST

/* A key of another context is none of this one's, on either way. */
START_TEST(test_keys_are_of_the_context)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_MODEL_LOAD, .desc = key};
	struct embeng_accel_submit arg = {
		.count = 1, .stride = sizeof(cmd), .commands = (uintptr_t)&cmd};
	struct ring ring;

	cmd.desc.length = PAGE;
	accel_context(theirs);
	arg.queue = accel_ring(theirs, EMBENG_QUEUE_TRANSFER, 0).made.queue;
	REFUSED(ENOENT, theirs, DRM_IOCTL_EMBENG_SUBMIT);
	ring = accel_ring(theirs, EMBENG_QUEUE_TRANSFER, MAPPED);
	accel_push(&ring, cmd);
	ck_assert_uint_eq(accel_take(theirs, &ring).status, EMBENG_STATUS_KEY);
	expect_whole();
}
END_TEST

/* Calls that need a context are refused while the file has none. */
START_TEST(test_no_context)
{
	struct embeng_accel_bo_create own = accel_bo(theirs, PAGE);
	struct embeng_accel_bind bind = {.handle = own.handle, .rights = EMBENG_REGION_DEVICE_READ};
	struct embeng_accel_unbind unbind = {.generation = 1};
	struct embeng_accel_queue_create create = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_accel_wait wait = {.queue = EMBENG_ACCEL_ANY_QUEUE};
	struct embeng_accel_reset reset = {.rung = EMBENG_ACCEL_RESET_QUEUE, .queue = 1};

	UNKNOWN(bind, DRM_IOCTL_EMBENG_BIND);
	UNKNOWN(unbind, DRM_IOCTL_EMBENG_UNBIND);
	UNKNOWN(create, DRM_IOCTL_EMBENG_QUEUE_CREATE);
	UNKNOWN(wait, DRM_IOCTL_EMBENG_WAIT);
	UNKNOWN(reset, DRM_IOCTL_EMBENG_RESET);
	ck_assert_uint_eq(accel_state(theirs).memory, PAGE);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_nothing_is_known_to_another, 0, 2);
	tcase_add_test(tc, test_keys_are_of_the_context);
	tcase_add_test(tc, test_no_context);
}

int main(void)
{
	return suite_main("other_file", add);
}
