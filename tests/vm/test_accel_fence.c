// SPDX-License-Identifier: MIT
/* Fences in and out of validated submits: order, timelines, other devices. */
#include "../unit/support/suite.h"
#include "train.h"
#include "vgem.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

static struct train t;

static void setup(void)
{
	t = train_open(1, 0);
}

static void teardown(void)
{
	train_close(&t);
}

#define give(ring, cmd, in, out) train_give(&t, ring, cmd, in, out)

/* No fence is late by the wish of its program, nor by that of another queue of the context. */
START_TEST(test_delays_are_short_under_fences)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);
	struct embeng_cmd half = train_nop(EMBENG_ACCEL_FENCED_DELAY_MAX / 2 + 1);
	struct embeng_cmd both[] = {half, half};
	struct ring other = accel_ring(t.fd, EMBENG_QUEUE_TRANSFER, 0);

	ck_assert_int_eq(give(&other, train_nop(EMBENG_ACCEL_FENCED_DELAY_MAX + 1), NULL, &out),
			 -EOPNOTSUPP);
	ck_assert_int_eq(train_submit(t.fd, &other, both, 2, NULL, &out), -EOPNOTSUPP);
	ck_assert_int_eq(give(&t.transfer, half, NULL, NULL), 0);
	ck_assert_int_eq(give(&other, half, NULL, &out), -EAGAIN);
	ck_assert_int_eq(give(&other, train_nop(0), NULL, &out), 0);
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).status, EMBENG_STATUS_OK);
	ck_assert_int_eq(give(&other, half, NULL, &out), 0);
	accel_ring_close(t.fd, &other);
}
END_TEST

START_TEST(test_the_capability_is_told)
{
	struct embeng_accel_device device;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_DEVICE,
					 .size = sizeof(device),
					 .data = (uintptr_t)&device};

	ck_assert_int_eq(accel_call(t.fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	ck_assert_uint_ne(device.flags & EMBENG_ACCEL_CAN_SYNCOBJ, 0);
}
END_TEST

START_TEST(test_binary_out)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);

	ck_assert_int_eq(give(&t.transfer, train_nop(200000), NULL, &out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 1);
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).status, EMBENG_STATUS_OK);
}
END_TEST

/* The out-fence of one step is the in-fence of the next; what was computed is there then. */
START_TEST(test_a_training_on_a_timeline)
{
	struct embeng_accel_sync sync = train_sync(t.fd, 0), before;
	uint64_t value;

	for (uint64_t step = 1; step <= 20; step++) {
		before = sync;
		sync.point = 2 * step - 1;
		ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, step),
				      before.point ? &before : NULL, &sync),
				 0);
		ck_assert_int_eq(train_await(t.fd, sync), 0);
		ck_assert_float_eq(train_output(&t, 0, step), 1.0f - (float)step);
		before = sync;
		sync.point++;
		ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, step), &before, &sync),
				 0);
		t.input[0].cq_head += 2;
		t.gradient[0].cq_head = (uint32_t)step - 1;
	}
	ck_assert_int_eq(train_await(t.fd, sync), 0);
	ck_assert_int_eq(drmSyncobjQuery(t.fd, &sync.handle, &value, 1), 0);
	ck_assert_uint_eq(value, 40);
}
END_TEST

/* Nobody waits in between: all of it is submitted ahead, and the fences keep the order. */
START_TEST(test_a_chain_over_two_queues)
{
	struct embeng_accel_sync sync = train_sync(t.fd, 0), before;
	struct ring other = accel_ring(t.fd, EMBENG_QUEUE_TRANSFER, 0);

	for (uint64_t link = 1; link <= 10; link++) {
		before = sync;
		sync.point = link;
		ck_assert_int_eq(give(link % 2 ? &t.transfer : &other, train_nop(2000),
				      link > 1 ? &before : NULL, &sync),
				 0);
	}
	ck_assert_int_eq(train_await(t.fd, sync), 0);
	for (int i = 0; i < 5; i++) {
		struct embeng_cqe a = accel_take(t.fd, &t.transfer), b = accel_take(t.fd, &other);

		ck_assert_uint_eq(a.status, EMBENG_STATUS_OK);
		ck_assert_uint_le(a.timestamp + 2000000, b.timestamp);
	}
}
END_TEST

START_TEST(test_later_submits_wait_behind)
{
	struct embeng_accel_sync in = train_sync(t.fd, 0);
	struct ring other = accel_ring(t.fd, EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_cmd first = {.cookie = 1}, second = {.cookie = 2}, third = {.cookie = 3};
	struct embeng_cqe slow, cqe;
	struct embeng_accel_wait wait = {
		.queue = t.transfer.made.queue, .count = 1, .cq_head = t.transfer.cq_head};

	ck_assert_int_eq(give(&other, train_nop(300000), NULL, &in), 0);
	ck_assert_int_eq(give(&t.transfer, first, NULL, NULL), 0);
	ck_assert_int_eq(give(&t.transfer, second, &in, NULL), 0);
	ck_assert_int_eq(give(&t.transfer, third, NULL, NULL), 0);
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).cookie, 1);
	/* They are submitted: the program is not told that nothing will come. */
	wait.cq_head = t.transfer.cq_head;
	wait.deadline_ns = accel_now() + 20000000;
	ck_assert_int_eq(accel_call(t.fd, DRM_IOCTL_EMBENG_WAIT, &wait), -ETIME);
	slow = accel_take(t.fd, &other);
	cqe = accel_take(t.fd, &t.transfer);
	ck_assert_uint_eq(cqe.cookie, 2);
	ck_assert_uint_ge(cqe.timestamp, slow.timestamp);
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).cookie, 3);
}
END_TEST

/* Signalled already, by the host. */
START_TEST(test_in_fence_of_the_host)
{
	struct embeng_accel_sync in = train_sync(t.fd, 0), out = train_sync(t.fd, 0);

	ck_assert_int_eq(drmSyncobjSignal(t.fd, &in.handle, 1), 0);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), &in, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 1);
}
END_TEST

/* An unsignalled fence of another driver's, in a syncobj of ours. */
static uint32_t foreign_fence(int vgem, struct embeng_accel_sync sync)
{
	struct drm_mode_create_dumb dumb = {.width = 1024, .height = 1, .bpp = 32};
	struct vgem_fence_attach attach = {.flags = VGEM_FENCE_WRITE};
	struct dma_buf_export_sync_file export = {.flags = DMA_BUF_SYNC_RW};
	int buffer;

	ck_assert_int_eq(drmIoctl(vgem, DRM_IOCTL_MODE_CREATE_DUMB, &dumb), 0);
	attach.handle = dumb.handle;
	ck_assert_int_eq(drmIoctl(vgem, VGEM_FENCE_ATTACH, &attach), 0);
	ck_assert_int_eq(drmPrimeHandleToFD(vgem, dumb.handle, DRM_CLOEXEC | DRM_RDWR, &buffer), 0);
	ck_assert_int_eq(ioctl(buffer, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &export), 0);
	ck_assert_int_eq(drmSyncobjImportSyncFile(t.fd, sync.handle, export.fd), 0);
	close(export.fd);
	close(buffer);
	return attach.out_fence;
}

START_TEST(test_in_fence_of_another_device)
{
	struct embeng_accel_sync in = train_sync(t.fd, 0), out = train_sync(t.fd, 0);
	int vgem = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
	struct vgem_fence_signal signal = {0};

	ck_assert_int_ge(vgem, 0);
	signal.fence = foreign_fence(vgem, in);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), &in, &out), 0);
	usleep(100000);
	ck_assert_int_eq(train_status(t.fd, out), 0);
	ck_assert_int_eq(drmIoctl(vgem, VGEM_FENCE_SIGNAL, &signal), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 1);
	close(vgem);
}
END_TEST

START_TEST(test_poll_a_sync_file)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);
	struct pollfd p = {.events = POLLIN};

	ck_assert_int_eq(give(&t.transfer, train_nop(100000), NULL, &out), 0);
	p.fd = train_sync_file(t.fd, out);
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_int_eq(poll(&p, 1, 10000), 1);
	ck_assert_int_eq(p.revents, POLLIN);
	close(p.fd);
}
END_TEST

/*
 * A submit reserves room for its completions when it is made, whether it waits for a fence or not.
 */
START_TEST(test_room)
{
	struct embeng_accel_sync in = train_sync(t.fd, 0), out = train_sync(t.fd, 0);
	struct ring other = accel_ring(t.fd, EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_cmd cmds[16] = {{.opcode = EMBENG_OP_NOP}};

	ck_assert_int_eq(give(&other, train_nop(300000), NULL, &in), 0);
	ck_assert_int_eq(train_submit(t.fd, &t.transfer, cmds, 16, &in, NULL), 0);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), NULL, NULL), -ENOSPC);
	ck_assert_int_eq(accel_wait(t.fd, &t.transfer, 16), 0);
	/* 16 unread: room for 16 more, read or not, and a fence that does not hang on it. */
	ck_assert_int_eq(train_submit(t.fd, &t.transfer, cmds, 16, NULL, &out), 0);
	ck_assert_int_eq(train_await(t.fd, out), 0);
	ck_assert_int_eq(train_status(t.fd, out), 1);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), NULL, &out), -ENOSPC);
}
END_TEST

static const struct {
	const char *what;
	int error;
	struct embeng_accel_sync sync;
	bool in;
} wrong_syncs[] = {
	{"no such in", ENOENT, {.handle = 1000}, true},
	{"no such out", ENOENT, {.handle = 1000}, false},
	{"reserved of in", EINVAL, {.handle = 1, .reserved = 1}, true},
	{"reserved of out", EINVAL, {.handle = 1, .reserved = 1}, false},
	{"nothing submitted", EINVAL, {.handle = 1}, true},
	{"point not submitted", EINVAL, {.handle = 1, .point = 7}, true},
};

START_TEST(test_refused)
{
	struct embeng_accel_sync valid = train_sync(t.fd, 0), sync = wrong_syncs[_i].sync;
	struct embeng_cmd nop = train_nop(0);
	struct embeng_accel_submit arg = {.queue = t.transfer.made.queue,
					  .count = 1,
					  .stride = 64,
					  .commands = (uintptr_t)&nop,
					  .cq_head = t.transfer.cq_head};

	ck_assert_uint_eq(valid.handle, 1);
	ck_assert_msg(give(&t.transfer, nop, wrong_syncs[_i].in ? &sync : NULL,
			   wrong_syncs[_i].in ? NULL : &sync) == -wrong_syncs[_i].error,
		      "%s", wrong_syncs[_i].what);
	arg.in_count = 1;
	arg.in_syncs = 8;
	REFUSED(EFAULT, t.fd, DRM_IOCTL_EMBENG_SUBMIT);
	arg.in_count = EMBENG_ACCEL_SYNCS_MAX + 1;
	REFUSED(EINVAL, t.fd, DRM_IOCTL_EMBENG_SUBMIT);
	arg.in_count = arg.in_syncs = 0;
	arg.out_count = EMBENG_ACCEL_SYNCS_MAX + 1;
	arg.out_syncs = 8;
	REFUSED(EINVAL, t.fd, DRM_IOCTL_EMBENG_SUBMIT);
	arg.out_count = 1;
	REFUSED(EFAULT, t.fd, DRM_IOCTL_EMBENG_SUBMIT);
	/* None of them took a place. */
	ck_assert_int_eq(give(&t.transfer, nop, NULL, NULL), 0);
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).index, 1);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_delays_are_short_under_fences);
	tcase_add_test(tc, test_the_capability_is_told);
	tcase_add_test(tc, test_binary_out);
	tcase_add_test(tc, test_a_training_on_a_timeline);
	tcase_add_test(tc, test_a_chain_over_two_queues);
	tcase_add_test(tc, test_later_submits_wait_behind);
	tcase_add_test(tc, test_in_fence_of_the_host);
	tcase_add_test(tc, test_in_fence_of_another_device);
	tcase_add_test(tc, test_poll_a_sync_file);
	tcase_add_test(tc, test_room);
	tcase_add_loop_test(tc, test_refused, 0, sizeof(wrong_syncs) / sizeof(wrong_syncs[0]));
}

int main(void)
{
	return suite_main("fence", add);
}
