// SPDX-License-Identifier: MIT
/* Commands that fail, end late or end badly, on queues of the driver. */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "accel_help.h"
#include "descriptors.h"
#include "suite.h"

#define VALIDATED FAKE_NODE ",path=validated"
#define SOON_SECONDS 20

static struct embeng *open_validated(void)
{
	fake_install();
	return open_on(VALIDATED, 1);
}

static void take(enum embeng_queue_kind kind)
{
	fake.takes |= 1u << kind;
}

/* A view of a lookup that the device still has; the fence is the caller's. */
static int begin_view(struct embeng *e, enum embeng_mode mode, struct embeng_activations *a)
{
	int fence = -1;

	*a = (struct embeng_activations){.size = sizeof(*a)};
	ck_assert_int_eq(enqueue_bags(e, mode, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue_fence(e, 0, -1, a, &fence), 0);
	ck_assert_int_ge(fence, 0);
	return fence;
}

static void ends_soon(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SOON_SECONDS;
	ck_assert_msg(!pthread_timedjoin_np(thread, NULL, &until), "it hangs");
}

static void *train(void *e)
{
	train_step(e, 0);
	return NULL;
}

/* Updates that come behind it are not held back for ever. */
START_TEST(a_lookup_that_was_not_submitted)
{
	struct embeng *e = open_validated();
	pthread_t thread;

	fake.fails = DRM_IOCTL_EMBENG_SUBMIT;
	fake.error = -ENOMEM;
	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), -ENOMEM);
	fake.fails = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, train, e), 0);
	ends_soon(thread);
	embeng_close(e);
	nothing_left();
}
END_TEST

/* Rows that are read from another thread while an update waits for its lookup. */
static struct passing {
	struct embeng *e;
	pthread_t trainer, reader;
	enum { WAITS_FOR_LOOKUP, WAITS_FOR_GATE, WAITS_NO_MORE } now;
	bool passed; /* the update was submitted while rows were read */
} passing;

static void *read_rows(void *arg)
{
	float rows[8];

	ck_assert_int_eq(embeng_rows_read(arg, 0, NULL, NULL, 4, rows), 0);
	return NULL;
}

/* Rows are being read by the time that the lookup is done. */
static void shut_gate(void)
{
	ck_assert_int_eq(pthread_create(&passing.reader, NULL, read_rows, passing.e), 0);
	while (!fake_held(EMBENG_QUEUE_TRANSFER))
		sched_yield();
	passing.now = WAITS_FOR_GATE;
	fake_finish(EMBENG_QUEUE_INPUT, EMBENG_STATUS_OK);
}

static void open_gate(void)
{
	passing.now = WAITS_NO_MORE;
	fake_finish(EMBENG_QUEUE_TRANSFER, EMBENG_STATUS_OK);
}

static void watch_gate(unsigned long request, const void *arg)
{
	const struct embeng_accel_submit *s = arg;

	if (!pthread_equal(pthread_self(), passing.trainer))
		return;
	if (request == DRM_IOCTL_EMBENG_SUBMIT &&
	    ((const struct embeng_cmd *)(uintptr_t)s->commands)->opcode == EMBENG_OP_UPDATE)
		passing.passed = fake_held(EMBENG_QUEUE_TRANSFER) != 0;
	if (request != DRM_IOCTL_EMBENG_WAIT)
		return;
	if (passing.now == WAITS_FOR_LOOKUP)
		shut_gate();
	else if (passing.now == WAITS_FOR_GATE)
		open_gate();
}

START_TEST(no_update_passes_a_gate_shut_meanwhile)
{
	struct embeng *e = open_validated();
	struct embeng_activations a;

	take(EMBENG_QUEUE_INPUT);
	take(EMBENG_QUEUE_GRADIENT);
	take(EMBENG_QUEUE_TRANSFER);
	close(begin_view(e, EMBENG_TRAIN, &a));
	passing = (struct passing){.e = e, .trainer = pthread_self()};
	fake.before = watch_gate;
	ck_assert_int_eq(apply_ones(e, 0), 0);
	if (passing.now == WAITS_FOR_GATE)
		open_gate();
	ends_soon(passing.reader);
	fake.before = NULL;
	ck_assert(passing.now == WAITS_NO_MORE && !passing.passed);
	ck_assert_uint_eq(fake_held(EMBENG_QUEUE_GRADIENT), 1);
	fake_finish(EMBENG_QUEUE_GRADIENT, EMBENG_STATUS_OK);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
	nothing_left();
}
END_TEST

START_TEST(a_released_view_keeps_no_descriptor)
{
	struct embeng *e = open_validated();
	struct embeng_activations a;
	int before = descriptors();

	take(EMBENG_QUEUE_INFERENCE);
	for (int i = 0; i < 20; i++) {
		close(begin_view(e, EMBENG_INFERENCE, &a));
		fake_finish(EMBENG_QUEUE_INFERENCE, EMBENG_STATUS_OK);
		ck_assert_int_eq(embeng_release(e, &a), 0);
		ck_assert_ptr_null(a.token);
	}
	ck_assert_int_eq(descriptors(), before);
	embeng_close(e);
	nothing_left();
}
END_TEST

START_TEST(release_tells_of_a_lookup_that_failed)
{
	struct embeng *e = open_validated();
	struct embeng_activations a;
	int before = descriptors();

	take(EMBENG_QUEUE_INFERENCE);
	/* More than there are slots. */
	for (int i = 0; i < 40; i++) {
		close(begin_view(e, EMBENG_INFERENCE, &a));
		fake_finish(EMBENG_QUEUE_INFERENCE, EMBENG_STATUS_HUNG);
		ck_assert_int_eq(embeng_release(e, &a), -EIO);
		expect_text("lookup: the command made no progress");
		ck_assert_ptr_null(a.token);
		ck_assert_int_eq(embeng_release(e, &a), -EPROTO);
	}
	ck_assert_int_eq(descriptors(), before);
	close(begin_view(e, EMBENG_INFERENCE, &a));
	fake_finish(EMBENG_QUEUE_INFERENCE, EMBENG_STATUS_ABORTED);
	fake_lose(-ESHUTDOWN);
	ck_assert_int_eq(embeng_release(e, &a), -ESHUTDOWN);
	ck_assert_ptr_null(a.token);
	embeng_close(e);
	nothing_left();
}
END_TEST

static void reset_meanwhile(unsigned long request, const void *arg)
{
	(void)arg;
	if (request != DRM_IOCTL_EMBENG_WAIT || !fake_held(EMBENG_QUEUE_TRANSFER))
		return;
	fake_finish(EMBENG_QUEUE_TRANSFER, EMBENG_STATUS_ABORTED);
	fake_lose(-ESHUTDOWN);
}

START_TEST(a_reset_while_the_model_is_loaded)
{
	struct embeng *e = NULL;

	fake_install();
	take(EMBENG_QUEUE_TRANSFER);
	fake.before = reset_meanwhile;
	ck_assert_int_eq(try_open(VALIDATED, 1, &e), -ESHUTDOWN);
	expect_text("was reset");
	ck_assert_ptr_null(e);
	nothing_left();
}
END_TEST

START_TEST(a_failed_lookup_lets_go_of_gradients)
{
	struct embeng *e = open_validated();
	struct embeng_activations a;
	float *data = embeng_buffer_alloc(e, 24);
	const float *features[] = {data};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};

	take(EMBENG_QUEUE_INPUT);
	close(begin_view(e, EMBENG_TRAIN, &a));
	fake_finish(EMBENG_QUEUE_INPUT, EMBENG_STATUS_HUNG);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -EIO);
	ck_assert_int_eq(embeng_buffer_free(e, data), 0);
	embeng_close(e);
	nothing_left();
}
END_TEST

/* A step that the device failed is open again, and those that were given behind it with it. */
START_TEST(a_failed_lookup_is_given_again)
{
	struct embeng *e = open_validated();
	struct embeng_activations a;

	take(EMBENG_QUEUE_INPUT);
	close(begin_view(e, EMBENG_TRAIN, &a));
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	fake_finish(EMBENG_QUEUE_INPUT, EMBENG_STATUS_HUNG);
	ck_assert_int_eq(apply_ones(e, 0), -EIO);
	expect_text("no progress");
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), -EPROTO);
	expect_text("step 2 of replica 0: the lookup of a step before it failed");
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	fake_finish(EMBENG_QUEUE_INPUT, EMBENG_STATUS_OK);
	for (uint64_t step = 1; step <= 2; step++) {
		ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
		ck_assert_uint_eq(a.step, step);
	}
	close(begin_view(e, EMBENG_TRAIN, &a));
	ck_assert_uint_eq(a.step, 3);
	fake_finish(EMBENG_QUEUE_INPUT, EMBENG_STATUS_OK);
	embeng_close(e);
	nothing_left();
}
END_TEST

/* The lookup behind an update that failed waits for it in the engine for ever. */
START_TEST(a_failed_update_ends_who_waits_for_a_lookup)
{
	struct embeng *e = open_validated();
	struct embeng_activations a = {.size = sizeof(a)};

	take(EMBENG_QUEUE_GRADIENT);
	train_step(e, 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	fake_finish(EMBENG_QUEUE_GRADIENT, EMBENG_STATUS_INTERNAL);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), -EIO);
	expect_text("step 1: update");
	embeng_close(e);
	nothing_left();
}
END_TEST

/* The flush that gave up holds no later update back. */
START_TEST(a_late_drain_opens_the_gate)
{
	struct embeng *e = open_validated();
	struct embeng_activations a;
	pthread_t thread;

	take(EMBENG_QUEUE_INPUT);
	take(EMBENG_QUEUE_GRADIENT);
	take(EMBENG_QUEUE_TRANSFER);
	close(begin_view(e, EMBENG_TRAIN, &a));
	fake_finish(EMBENG_QUEUE_INPUT, EMBENG_STATUS_OK);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_flush(e, 1000000), -ETIME);
	expect_text("deadline passed while step 1 is applied");
	ck_assert_uint_eq(fake_held(EMBENG_QUEUE_TRANSFER), 1);
	fake_finish(EMBENG_QUEUE_GRADIENT, EMBENG_STATUS_OK);
	fake_finish(EMBENG_QUEUE_TRANSFER, EMBENG_STATUS_OK);
	ck_assert_int_eq(pthread_create(&thread, NULL, train, e), 0);
	while (!fake_held(EMBENG_QUEUE_INPUT))
		sched_yield();
	fake_finish(EMBENG_QUEUE_INPUT, EMBENG_STATUS_OK);
	ends_soon(thread);
	fake_finish(EMBENG_QUEUE_GRADIENT, EMBENG_STATUS_OK);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
	nothing_left();
}
END_TEST

/* A flush ends when the gradients of all replicas are the program's again. */
START_TEST(a_flush_waits_for_each_replica)
{
	struct embeng *e;

	fake_install();
	e = open_on(VALIDATED, 2);
	for (uint32_t r = 0; r < 2; r++)
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, r, -1), 0);
	take(EMBENG_QUEUE_GRADIENT);
	take(EMBENG_QUEUE_TRANSFER);
	for (uint32_t r = 0; r < 2; r++) {
		struct embeng_activations a = {.size = sizeof(a)};

		ck_assert_int_eq(embeng_dequeue(e, r, -1, &a), 0);
		ck_assert_int_eq(apply_ones(e, r), 0);
		if (!r)
			fake_finish(EMBENG_QUEUE_GRADIENT, EMBENG_STATUS_OK);
	}
	ck_assert_int_eq(embeng_flush(e, 1000000), -ETIME);
	fake_finish(EMBENG_QUEUE_TRANSFER, EMBENG_STATUS_OK);
	fake_finish(EMBENG_QUEUE_GRADIENT, EMBENG_STATUS_OK);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
	nothing_left();
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, a_lookup_that_was_not_submitted);
	tcase_add_test(tc, no_update_passes_a_gate_shut_meanwhile);
	tcase_add_test(tc, a_released_view_keeps_no_descriptor);
	tcase_add_test(tc, release_tells_of_a_lookup_that_failed);
	tcase_add_test(tc, a_reset_while_the_model_is_loaded);
	tcase_add_test(tc, a_failed_lookup_lets_go_of_gradients);
	tcase_add_test(tc, a_failed_lookup_is_given_again);
	tcase_add_test(tc, a_failed_update_ends_who_waits_for_a_lookup);
	tcase_add_test(tc, a_late_drain_opens_the_gate);
	tcase_add_test(tc, a_flush_waits_for_each_replica);
}

int main(void)
{
	return suite_main("accel_faults", add);
}
