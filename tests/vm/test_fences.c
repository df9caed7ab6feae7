// SPDX-License-Identifier: MIT
/* Fences of the library: a lookup's sync_file, and gradients that wait for another device's. */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <xf86drm.h>

#include "../unit/support/descriptors.h"
#include "../unit/support/session_help.h"
#include "../unit/support/suite.h"
#include "vgem.h"

#define SOON 60000

static struct embeng *e;
static int vgem;

static void setup(void)
{
	vgem = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(vgem, 0);
	e = open_small(&(struct shape){
		.replicas = 1, .depth = 2, .optimizer = embeng_sgd(1), .combiner = EMBENG_SUM});
}

static void teardown(void)
{
	embeng_close(e);
	close(vgem);
}

/* An unsignalled sync_file of another device, and what signals it. */
static int foreign(struct vgem_fence_signal *signal)
{
	struct drm_mode_create_dumb dumb = {.width = 1024, .height = 1, .bpp = 32};
	struct vgem_fence_attach attach = {.flags = VGEM_FENCE_WRITE};
	struct dma_buf_export_sync_file file = {.flags = DMA_BUF_SYNC_RW};
	int buffer;

	ck_assert_int_eq(drmIoctl(vgem, DRM_IOCTL_MODE_CREATE_DUMB, &dumb), 0);
	attach.handle = dumb.handle;
	ck_assert_int_eq(drmIoctl(vgem, VGEM_FENCE_ATTACH, &attach), 0);
	ck_assert_int_eq(drmPrimeHandleToFD(vgem, dumb.handle, DRM_CLOEXEC | DRM_RDWR, &buffer), 0);
	ck_assert_int_eq(ioctl(buffer, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &file), 0);
	close(buffer);
	signal->fence = attach.out_fence;
	return file.fd;
}

static int ready(int file, int timeout)
{
	struct pollfd p = {.fd = file, .events = POLLIN};

	return poll(&p, 1, timeout);
}

static int dequeue(struct embeng_activations *a, int *file)
{
	*a = (struct embeng_activations){.size = sizeof(*a)};
	return embeng_dequeue_fence(e, 0, -1, a, file);
}

static int hand_in(const float *gradients, const int *files, size_t count)
{
	struct embeng_gradients g = {.size = sizeof(g),
				     .count = 1,
				     .features = &gradients,
				     .fences = files,
				     .fence_count = count};

	return embeng_apply_gradients(e, &g, -1);
}

static float *own_ones(void)
{
	float *gradients = embeng_gradient_buffer(e, 0, 0);

	ck_assert_ptr_nonnull(gradients);
	for (int i = 0; i < 6; i++)
		gradients[i] = 1;
	return gradients;
}

/* Step 1 is looked up, and its gradients wait for the descriptor. */
static void begin(int file)
{
	struct embeng_activations a;
	int there;

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(dequeue(&a, &there), 0);
	ck_assert_int_eq(ready(there, SOON), 1);
	close(there);
	expect_floats(a.features[0].data, (float[]){30, 32, 0, 0, 30, 31}, 6);
	ck_assert_int_eq(hand_in(own_ones(), &file, 1), 0);
	close(file);
}

/* Nobody waits in between: gradients of step 1, lookup of step 2, its gradients. */
START_TEST(test_a_chain_without_waiting)
{
	struct vgem_fence_signal first = {0}, second = {0};
	struct embeng_activations a;
	float rows[8];
	int file, there;

	begin(foreign(&first));
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(dequeue(&a, &there), 0);
	ck_assert_uint_eq(a.step, 2);
	file = foreign(&second);
	ck_assert_int_eq(hand_in(own_ones(), &file, 1), 0);
	close(file);
	/* The other way round: the lookup holds the update back then. */
	ck_assert_int_eq(drmIoctl(vgem, VGEM_FENCE_SIGNAL, &second), 0);
	ck_assert_int_eq(ready(there, 100), 0);
	ck_assert_int_eq(drmIoctl(vgem, VGEM_FENCE_SIGNAL, &first), 0);
	ck_assert_int_eq(ready(there, SOON), 1);
	close(there);
	expect_floats(a.features[0].data, (float[]){28, 30, 0, 0, 29, 30}, 6);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	expect_floats(rows, (float[]){0, 1, 8, 9, 18, 19, 28, 29}, 8);
}
END_TEST

static void *signal_late(void *arg)
{
	usleep(100000);
	return drmIoctl(vgem, VGEM_FENCE_SIGNAL, arg) ? arg : NULL;
}

/* A drain cannot pass by what is held: the library waits for it. */
START_TEST(test_rows_wait_for_held_gradients)
{
	struct vgem_fence_signal signal = {0};
	pthread_t thread;
	void *failed;
	float rows[8];

	begin(foreign(&signal));
	ck_assert_int_eq(pthread_create(&thread, NULL, signal_late, &signal), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	expect_floats(rows, (float[]){0, 1, 9, 10, 19, 20, 29, 30}, 8);
	pthread_join(thread, &failed);
	ck_assert_ptr_null(failed);
}
END_TEST

/* A step that waits for gradients from its program can have no fence: the call waits instead. */
START_TEST(test_with_another_enqueued_behind)
{
	struct embeng_activations a;
	int there;

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	for (int step = 0; step < 2; step++) {
		ck_assert_int_eq(dequeue(&a, &there), 0);
		ck_assert_int_eq(ready(there, SOON), 1);
		close(there);
		ck_assert_float_eq(a.features[0].data[0], 30 - 2 * (float)step);
		ck_assert_int_eq(apply_ones(e, 0), 0);
	}
}
END_TEST

/* A call about a step whose gradients are missing runs into its deadline, and says which are. */
START_TEST(test_a_missing_part_is_named)
{
	struct embeng_activations a = {.size = sizeof(a)};
	int there = -7;

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(embeng_dequeue_fence(e, 0, 0, &a, &there), -ETIME);
	expect_text("step 1: gradients of replica 0");
	ck_assert_int_eq(there, -7);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(dequeue(&a, &there), 0);
	ck_assert_int_eq(ready(there, SOON), 1);
	close(there);
	ck_assert_uint_eq(a.step, 2);
}
END_TEST

/* Views end while the engine may still write them, and their fences with them. */
START_TEST(test_views_end_early)
{
	struct embeng_activations a;
	int there, before = descriptors();

	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), 0);
		ck_assert_int_eq(dequeue(&a, &there), 0);
		ck_assert_int_eq(embeng_release(e, &a), 0);
		close(there);
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
		ck_assert_int_eq(dequeue(&a, &there), 0);
		close(there);
		ck_assert_int_eq(apply_ones(e, 0), 0);
	}
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

START_TEST(test_gradients_refused)
{
	const float ones[6] = {1, 1, 1, 1, 1, 1};
	struct vgem_fence_signal signal = {0};
	struct embeng_activations a = {.size = sizeof(a)};
	int file = foreign(&signal), other = open("/dev/null", O_RDONLY);

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue_fence(e, 0, -1, &a, NULL), -EINVAL);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(hand_in(ones, &file, 1), -EINVAL);
	expect_text("must stand in a buffer");
	ck_assert_int_eq(hand_in(own_ones(), NULL, 1), -EINVAL);
	expect_text("none given");
	ck_assert_int_eq(hand_in(own_ones(), &file, EMBENG_FENCES_MAX + 1), -EINVAL);
	expect_text("up to 63");
	ck_assert_int_eq(hand_in(own_ones(), &other, 1), -EINVAL);
	expect_text("is not a sync_file");
	ck_assert_int_eq(drmIoctl(vgem, VGEM_FENCE_SIGNAL, &signal), 0);
	ck_assert_int_eq(hand_in(own_ones(), &file, 1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	close(file);
	close(other);
}
END_TEST

START_TEST(test_not_with_pipelining)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct vgem_fence_signal signal = {0};
	int file = foreign(&signal);

	embeng_close(e);
	e = open_small(&(struct shape){.replicas = 1,
				       .depth = 2,
				       .pipelining = 1,
				       .optimizer = embeng_sgd(1),
				       .combiner = EMBENG_SUM});
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(hand_in(own_ones(), &file, 1), -ENOTSUP);
	expect_text("with pipelining");
	ck_assert_int_eq(drmIoctl(vgem, VGEM_FENCE_SIGNAL, &signal), 0);
	close(file);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_a_chain_without_waiting);
	tcase_add_test(tcase, test_rows_wait_for_held_gradients);
	tcase_add_test(tcase, test_with_another_enqueued_behind);
	tcase_add_test(tcase, test_a_missing_part_is_named);
	tcase_add_test(tcase, test_views_end_early);
	tcase_add_test(tcase, test_gradients_refused);
	tcase_add_test(tcase, test_not_with_pipelining);
}

int main(void)
{
	return suite_main("fences", add);
}
