// SPDX-License-Identifier: MIT
/*
 * A wait is ended as hopeless if its own thread has to give the gradients that it waits for. One that waits
 * for an update which another thread has handed in is not, however many handles share the threads of the pool.
 */
#include <pthread.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "embeng.h"
#include "suite.h"

#define HANDLES 8
#define STEPS 300
#define SAMPLES 6000 /* more than the thread that enqueues does by itself */
#define DIM 16
#define ROWS 5000

/* A pipelined handle: one thread looks up, two steps ahead of the other's updates at most. */
struct trainer {
	struct embeng *e;
	pthread_t threads[2];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t looked, updated;
	int code;
	char text[EMBENG_ERROR_TEXT];
};

static void note_code(struct trainer *t, int code)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	if (!code)
		return;
	embeng_last_error(&error);
	t->code = code;
	memcpy(t->text, error.text, sizeof(t->text));
}

/* Waits until @count is at least @least. Return: whether nothing has failed. */
static bool await_count(struct trainer *t, const uint64_t *count, uint64_t least)
{
	bool well;

	pthread_mutex_lock(&t->lock);
	while (!t->code && *count < least)
		pthread_cond_wait(&t->changed, &t->lock);
	well = !t->code;
	pthread_mutex_unlock(&t->lock);
	return well;
}

static void count_step(struct trainer *t, uint64_t *count, int code)
{
	pthread_mutex_lock(&t->lock);
	note_code(t, code);
	++*count;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

static void *look_up(void *arg)
{
	struct trainer *t = arg;
	struct embeng_batch *b = embeng_batch_new(t->e, EMBENG_TRAIN, 0);
	int64_t *ids = malloc(SAMPLES * sizeof(*ids)), shape[] = {SAMPLES};

	for (uint64_t step = 1; step <= STEPS; step++) {
		struct embeng_activations act = EMBENG_INIT(embeng_activations);
		int ret;

		if (!await_count(t, &t->updated, step > 2 ? step - 2 : 0))
			break;
		for (uint64_t i = 0; i < SAMPLES; i++)
			ids[i] = (int64_t)((step * 7919 + i * 31) % ROWS);
		embeng_batch_reset(b, EMBENG_TRAIN);
		ret = embeng_batch_dense(b, 0, EMBENG_I64, ids, SAMPLES, shape, 1);
		ret = ret ? ret : embeng_enqueue(t->e, b, -1);
		ret = ret ? ret : embeng_dequeue(t->e, 0, -1, &act);
		count_step(t, &t->looked, ret);
	}
	free(ids);
	embeng_batch_free(b);
	return NULL;
}

static void *update(void *arg)
{
	struct trainer *t = arg;
	float *gradients = calloc((size_t)SAMPLES * DIM, sizeof(*gradients));
	const float *features[] = {gradients};

	for (uint64_t step = 1; step <= STEPS && await_count(t, &t->looked, step); step++)
		count_step(t, &t->updated,
			   embeng_apply_gradients(t->e,
						  &EMBENG_INIT(embeng_gradients, .count = 1,
							       .features = features,
							       .multiplier = 1.0f),
						  -1));
	free(gradients);
	return NULL;
}

static void open_trainer(struct trainer *t)
{
	struct embeng_model *model = embeng_model_new();

	ck_assert_int_eq(
		embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "items",
							   .vocabulary_size = ROWS, .dim = DIM,
							   .combiner = EMBENG_SUM,
							   .optimizer = embeng_adagrad(0.1f))),
		0);
	ck_assert_int_eq(embeng_model_add_feature(
				 model, &EMBENG_INIT(embeng_feature_config, .name = "item")),
			 0);
	ck_assert_int_eq(
		embeng_model_set_engine(model, &EMBENG_INIT(embeng_engine_config, .pipelining = 1)),
		0);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &t->e, NULL), 0);
	embeng_model_free(model);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
}

START_TEST(updates_of_another_thread_are_waited_for)
{
	static struct trainer trainers[HANDLES];

	for (int i = 0; i < HANDLES; i++)
		open_trainer(&trainers[i]);
	for (int i = 0; i < HANDLES; i++) {
		pthread_create(&trainers[i].threads[0], NULL, look_up, &trainers[i]);
		pthread_create(&trainers[i].threads[1], NULL, update, &trainers[i]);
	}
	for (int i = 0; i < HANDLES; i++) {
		pthread_join(trainers[i].threads[0], NULL);
		pthread_join(trainers[i].threads[1], NULL);
		ck_assert_msg(!trainers[i].code, "handle %d: %d, %s", i, trainers[i].code,
			      trainers[i].text);
		ck_assert_uint_eq(trainers[i].updated, STEPS);
		embeng_close(trainers[i].e);
	}
}
END_TEST

/* The control: nobody else has the view whose gradients are missing. */
START_TEST(a_hopeless_wait_ends)
{
	struct trainer t = {0};
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	const int64_t ids[] = {1}, shape[] = {1};
	struct embeng_batch *b;

	open_trainer(&t);
	b = embeng_batch_new(t.e, EMBENG_TRAIN, 0);
	for (int step = 1; step <= 3; step++) {
		embeng_batch_reset(b, EMBENG_TRAIN);
		ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 1, shape, 1), 0);
		ck_assert_int_eq(embeng_enqueue(t.e, b, -1), 0);
		ck_assert_int_eq(embeng_dequeue(t.e, 0, -1, &act), step < 3 ? 0 : -EDEADLK);
	}
	embeng_batch_free(b);
	embeng_close(t.e);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, updates_of_another_thread_are_waited_for);
	tcase_add_test(tcase, a_hopeless_wait_ends);
}

int main(void)
{
	return suite_main("hopeless", add_tests);
}
