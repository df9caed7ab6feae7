// SPDX-License-Identifier: MIT
/*
 * embeng_interrupt() ends the waits of a handle: one for what the program does, one for a long command,
 * by another thread and by a signal handler. Nothing is lost by it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "session_help.h"

#define IDS (1u << 24)
#define ROWS 20000
#define DIM 64

static struct embeng *interrupted;

static void *interrupt_later(void *e)
{
	usleep(20000);
	embeng_interrupt(e, 1);
	return NULL;
}

static pthread_t begin_interrupt(struct embeng *e)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, interrupt_later, e), 0);
	return thread;
}

/* Without a limit such a wait is refused: this thread alone could end it. */
#define HOUR_NS 3600000000000

static int take(struct embeng *e, int64_t timeout)
{
	struct embeng_activations a = {.size = sizeof(a)};

	return embeng_dequeue(e, 0, timeout, &a);
}

static struct embeng *open_training(void)
{
	return open_small(
		&(struct shape){.combiner = EMBENG_SUM, .optimizer = embeng_sgd(0.5f), .depth = 2});
}

static void expect_interrupted(int ret)
{
	ck_assert_int_eq(ret, -EINTR);
	expect_text("embeng_interrupt()");
}

/* The lookup of step 2 waits for gradients of step 1, which this thread never gives. */
START_TEST(a_wait_for_gradients)
{
	struct embeng *e = open_training();
	pthread_t thread;

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(take(e, -1), 0);
	thread = begin_interrupt(e);
	expect_interrupted(take(e, HOUR_NS));
	pthread_join(thread, NULL);
	/* It stays until it is turned off. */
	expect_interrupted(take(e, HOUR_NS));
	ck_assert_int_eq(take(e, 0), -ETIME);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	embeng_interrupt(e, 0);
	ck_assert_int_eq(take(e, -1), 0);
	embeng_close(e);
}
END_TEST

START_TEST(a_wait_for_room)
{
	struct embeng *e = open_training();

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	embeng_interrupt(e, 1);
	expect_interrupted(enqueue_bags(e, EMBENG_TRAIN, 0, -1));
	ck_assert_int_eq(take(e, 0), 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	embeng_close(e);
}
END_TEST

static void handle_signal(int signal)
{
	(void)signal;
	embeng_interrupt(interrupted, 1);
}

/* A timer's signal comes while the wait sleeps or works, and its handler ends it. */
START_TEST(by_a_signal)
{
	struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART}, before;

	interrupted = open_training();
	ck_assert_int_eq(sigaction(SIGALRM, &action, &before), 0);
	ck_assert_int_eq(enqueue_bags(interrupted, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(interrupted, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(take(interrupted, 0), 0);
	ualarm(20000, 0);
	expect_interrupted(take(interrupted, HOUR_NS));
	sigaction(SIGALRM, &before, NULL);
	embeng_close(interrupted);
}
END_TEST

static struct embeng *open_large(void)
{
	struct embeng_table_config t = {
		.size = sizeof(t), .name = "t", .vocabulary_size = ROWS, .dim = DIM};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	t.initializer = (struct embeng_initializer){EMBENG_INIT_CONSTANT, 1, 0, 0};
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_open("soft:cores=1,memory=64M", m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

static void enqueue_long(struct embeng *e)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	const int64_t splits[] = {0, IDS};
	int32_t *ids = malloc(IDS * sizeof(*ids));

	ck_assert_ptr_nonnull(ids);
	for (uint32_t i = 0; i < IDS; i++)
		ids[i] = (int32_t)(i * 2654435761u % ROWS);
	ck_assert_int_eq(embeng_batch_ragged_splits(b, 0, EMBENG_I32, ids, IDS, splits, 2, NULL, 0),
			 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	embeng_batch_free(b);
	free(ids);
}

/* A bag of 16 million ids takes the device many times as long as it takes until the interrupt. */
START_TEST(a_long_command)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_large();
	pthread_t thread;

	enqueue_long(e);
	thread = begin_interrupt(e);
	expect_interrupted(embeng_dequeue(e, 0, -1, &a));
	pthread_join(thread, NULL);
	embeng_interrupt(e, 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	for (int k = 0; k < DIM; k++)
		ck_assert_float_eq(a.features[0].data[k], 1);
	ck_assert_int_eq(embeng_release(e, &a), 0);
	embeng_close(e);
}
END_TEST

START_TEST(without_a_handle)
{
	embeng_interrupt(NULL, 1);
}
END_TEST

RUN_SUITE("end_wait", a_wait_for_gradients, a_wait_for_room, by_a_signal, a_long_command,
	  without_a_handle)
