// SPDX-License-Identifier: MIT
/* One handle for many threads: from a checkpoint, and over an engine that trains. */
#include <pthread.h>

#include "checkpoint_help.h"
#include "serving_help.h"

#define THREADS 6
#define ROUNDS 200
#define ROWS 40000 /* x 64 floats: three chunks, checked by whoever comes first */
#define DIM 64

struct reader {
	struct embeng_serving *s;
	uint64_t salt;
	int failed;
};

static void *read_rows(void *arg)
{
	struct reader *r = arg;
	int64_t ids[8];
	float out[8 * DIM];
	struct embeng_serving_input in = dense_input(0, ids, 8);

	in.shape = I(8);
	in.rank = 1;
	in.out = out;
	in.out_elements = 8 * DIM;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (uint64_t k = 0; k < 8; k++)
			ids[k] = (int64_t)((round * 8 + k + r->salt) * 7919 % ROWS);
		r->failed |= embeng_serving_lookup(r->s, &in, 1);
		for (uint64_t i = 0; i < 8 * DIM; i++)
			r->failed |= out[i] !=
				     help_value(0, 0, (uint64_t)ids[i / DIM] * DIM + i % DIM, 3);
	}
	return NULL;
}

/* All of them begin at once on chunks that nobody checked yet; two handles besides. */
START_TEST(readers_of_a_checkpoint)
{
	const struct help_table table = {.name = "t", .rows = ROWS, .dim = DIM};
	struct embeng *e = help_open(SMALL, &table, 1);
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_serving *s;
	struct reader readers[THREADS];
	pthread_t threads[THREADS];
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 3);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	ck_assert_msg(!embeng_serving_open(folder, NULL, 0, &s, &error), "%s", error.text);
	for (uint64_t i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){.s = s, .salt = i * 1000};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_rows, &readers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(readers[i].failed, 0);
	}
	embeng_serving_close(s);
	folder_remove(folder);
}
END_TEST

struct watcher {
	struct embeng_serving *s;
	int failed, seen;
};

/* Row 1 falls by one a step, its columns together, and never rises again. */
static void *watch_rows(void *arg)
{
	struct watcher *w = arg;
	float out[2], last = 10;
	struct embeng_serving_input in = dense_input(0, I(1), 1);

	in.shape = I(1);
	in.rank = 1;
	in.out = out;
	in.out_elements = 2;
	while (!w->failed && last > 10 - 50) {
		w->failed |= embeng_serving_lookup(w->s, &in, 1) != 0;
		w->failed |= out[1] != out[0] + 1 || out[0] > last;
		last = out[0];
		w->seen++;
	}
	return NULL;
}

START_TEST(watchers_of_an_engine_that_trains)
{
	struct embeng *e = open_small(
		&(struct shape){.combiner = EMBENG_SUM, .optimizer = embeng_sgd(1)});
	struct embeng_error error = {.size = sizeof(error)};
	struct watcher watchers[2] = {{0}};
	pthread_t threads[2];
	struct embeng_serving *s;

	ck_assert_msg(!embeng_serving_live(e, NULL, &s, &error), "%s", error.text);
	for (int i = 0; i < 2; i++) {
		watchers[i].s = s;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, watch_rows, &watchers[i]), 0);
	}
	for (int i = 0; i < 50; i++) {
		struct embeng_activations a = {.size = sizeof(a)};

		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
		ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
		ck_assert_int_eq(apply_ones(e, 0), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(watchers[i].failed, 0);
		ck_assert_int_gt(watchers[i].seen, 0);
	}
	embeng_serving_close(s);
	embeng_close(e);
}
END_TEST

RUN_SUITE("serving", readers_of_a_checkpoint, watchers_of_an_engine_that_trains)
