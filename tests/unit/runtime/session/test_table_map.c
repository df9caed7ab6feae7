// SPDX-License-Identifier: MIT
/*
 * Tables as memory: what a map shows after updates, writes and restores, with and without pipelining,
 * that a table stays where it is while it is mapped, and that live lookups read rows of one moment
 * while others write them. A device with memory of its own has no maps.
 */
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "runtime/src/session/session.h"
#include "runtime/src/session/wait.h"

#undef fail /* session.h defines one, and so does Check */
#include "checkpoint_help.h"

#define HAS_MAPS (!getenv("EMBENG_TEST_DEVICE"))

static int map(struct embeng *e, const char *slot, float **rows)
{
	int64_t stride = 0;
	int ret = embeng_table_map(e, 0, slot, rows, &stride);

	if (!ret)
		ck_assert_int_eq(stride, 2);
	return ret;
}

START_TEST(a_map_shows_updates_and_takes_writes)
{
	struct embeng *e = open_small(
		&(struct shape){.combiner = EMBENG_SUM, .optimizer = embeng_adagrad(1)});
	const float start[] = {0, 1, 10, 11, 20, 21, 30, 31};
	const float new_row[] = {5, 6};
	float *rows = NULL, *sums = NULL, read[8], written[2];
	struct embeng_activations a = {.size = sizeof(a)};

	if (!HAS_MAPS) {
		ck_assert_int_eq(map(e, NULL, &rows), -ENOTSUP);
		ck_assert_int_eq(embeng_table_unmap(e, 0, NULL), -ENOTSUP);
		expect_text("embeng_rows_read()");
		embeng_close(e);
		return;
	}
	ck_assert_int_eq(map(e, NULL, &rows), 0);
	ck_assert_int_eq(map(e, "accumulators", &sums), 0);
	expect_floats(rows, start, 8);
	ck_assert(sums[0] == 0.1f);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_flush(e, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, read), 0);
	expect_floats(rows, read, 8);
	ck_assert(rows[2] < 10.0f && sums[2] == 0.1f + 1.0f);
	rows[4] = 5;
	rows[5] = 6;
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, (const int64_t[]){2}, 1, written), 0);
	expect_floats(written, new_row, 2);
	embeng_close(e);
}
END_TEST

START_TEST(refused_maps)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});
	float *rows;
	int64_t stride;

	ck_assert_int_eq(embeng_table_map(e, 1, NULL, &rows, &stride), -ENOENT);
	ck_assert_int_eq(embeng_table_map(e, -1, NULL, &rows, &stride), -ENOENT);
	ck_assert_int_eq(embeng_table_map(e, 0, "momenta", &rows, &stride), -ENOENT);
	ck_assert_int_eq(embeng_table_map(e, 0, NULL, NULL, &stride), -EINVAL);
	if (HAS_MAPS) {
		ck_assert_int_eq(embeng_table_unmap(e, 0, NULL), -EPROTO);
		expect_text("table t is not mapped");
		ck_assert_int_eq(map(e, NULL, &rows), 0);
		ck_assert_int_eq(map(e, NULL, &rows), 0);
		ck_assert_int_eq(embeng_table_unmap(e, 0, NULL), 0);
		ck_assert_int_eq(embeng_table_unmap(e, 0, NULL), 0);
		ck_assert_int_eq(embeng_table_unmap(e, 0, NULL), -EPROTO);
	}
	embeng_close(e);
}
END_TEST

/* A restore stages copies and puts them in place: by copying where the table is mapped. */
START_TEST(a_restore_leaves_the_table_where_it_is)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_adagrad(1)});
	struct embeng_save_options o = {.size = sizeof(o)};
	const float zeros[8] = {0}, start[] = {0, 1, 10, 11, 20, 21, 30, 31};
	float *rows, *again;
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, &o));
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, 4, zeros), 0);
	if (HAS_MAPS) {
		ck_assert_int_eq(map(e, NULL, &rows), 0);
		expect_floats(rows, zeros, 8);
		help_expect_ok(embeng_restore(e, folder, NULL));
		expect_floats(rows, start, 8);
		ck_assert_int_eq(map(e, NULL, &again), 0);
		ck_assert_ptr_eq(again, rows);
	}
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static struct embeng_serving_input dense_ids(enum embeng_id_type type, const void *ids,
					     const int64_t *count, float *out)
{
	return (struct embeng_serving_input){.size = sizeof(struct embeng_serving_input),
					     .form = EMBENG_DENSE,
					     .type = type,
					     .ids = ids,
					     .id_count = (size_t)*count,
					     .shape = count,
					     .rank = 1,
					     .out = out,
					     .out_elements = 8};
}

/* Behind an early update a lookup for training exchanges the whole table of such an optimizer. */
START_TEST(rows_of_before_are_put_in_place)
{
	struct embeng_optimizer adam = embeng_adam(1);
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e[2];
	float *rows = NULL, read[2][8], first = 0;

	adam.lazy_adam = EMBENG_OFF;
	for (size_t i = 0; i < 2; i++)
		e[i] = open_small(&(struct shape){.optimizer = adam, .pipelining = 1});
	if (HAS_MAPS)
		ck_assert_int_eq(map(e[0], NULL, &rows), 0);
	for (size_t n = 0; n < 4; n++) {
		for (size_t i = 0; i < 2; i++) {
			ck_assert_int_eq(enqueue_bags(e[i], EMBENG_TRAIN, 0, 0), 0);
			ck_assert_int_eq(embeng_dequeue(e[i], 0, 0, &a), 0);
			if (!i)
				first = a.features[0].data[0];
			else
				ck_assert(first == a.features[0].data[0]);
			ck_assert_int_eq(apply_ones(e[i], 0), 0);
			ck_assert_int_eq(embeng_rows_read(e[i], 0, NULL, NULL, 4, read[i]), 0);
		}
		expect_floats(read[0], read[1], 8);
		if (rows)
			expect_floats(rows, read[1], 8);
	}
	embeng_close(e[0]);
	embeng_close(e[1]);
}
END_TEST

START_TEST(narrow_ids_of_live_lookups)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});
	const int32_t ids[] = {3, 0, 4, 1, -1};
	const int64_t two[] = {2};
	const float want[] = {30, 31, 0, 1};
	float out[8] = {0};
	struct embeng_serving *serving = NULL;
	struct embeng_serving_input in = dense_ids(EMBENG_I32, ids, two, out);

	ck_assert_int_eq(embeng_serving_live(e, NULL, &serving, NULL), 0);
	ck_assert_int_eq(embeng_serving_lookup(serving, &in, 1), 0);
	expect_floats(out, want, 4);
	in.ids = ids + 2;
	ck_assert_int_eq(embeng_serving_lookup(serving, &in, 1), -ERANGE);
	expect_text("sample 0: id 4");
	in.ids = ids + 3;
	ck_assert_int_eq(embeng_serving_lookup(serving, &in, 1), -ERANGE);
	expect_text("sample 1: id -1");
	embeng_serving_close(serving);
	embeng_close(e);
}
END_TEST

#define THREADS 4
#define ROUNDS 300
#define MANY 20000

static struct embeng *open_many(struct embeng_optimizer optimizer)
{
	const struct help_table table = {"t", MANY, 2, optimizer};
	const struct embeng_initializer zeros = {.kind = EMBENG_INIT_CONSTANT};
	struct embeng *e = help_open(SMALL, &table, 1);

	ck_assert_int_eq(embeng_rows_fill(e, 0, NULL, 0, MANY, &zeros), 0);
	return e;
}

struct server {
	struct embeng *e;
	int wrong;
	int rounds; /* 0: until it is told to stop */
	bool stop;  /* atomic */
};

static bool is_stopped(const struct server *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_RELAXED);
}

/* All rows hold the same number at any moment. */
static void *serve_often(void *arg)
{
	struct server *s = arg;
	const int64_t ids[] = {0, MANY / 3, 2 * MANY / 3, MANY - 1}, shape[] = {4};
	struct embeng_serving *serving = NULL;

	s->wrong = embeng_serving_live(s->e, NULL, &serving, NULL) != 0;
	for (int n = 0; !s->wrong && (s->rounds ? n < s->rounds : !is_stopped(s)); n++) {
		float out[8] = {-1};
		struct embeng_serving_input in = dense_ids(EMBENG_I64, ids, shape, out);

		s->wrong += embeng_serving_lookup(serving, &in, 1) != 0;
		for (size_t i = 1; i < 8; i++)
			s->wrong += out[i] != out[0];
	}
	embeng_serving_close(serving);
	return NULL;
}

START_TEST(live_lookups_beside_writes)
{
	struct embeng *e = open_many((struct embeng_optimizer){0});
	struct server servers[THREADS];
	pthread_t threads[THREADS];
	struct embeng_initializer all = {.kind = EMBENG_INIT_CONSTANT};

	for (size_t i = 0; i < THREADS; i++) {
		servers[i] = (struct server){.e = e, .rounds = ROUNDS};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, serve_often, &servers[i]), 0);
	}
	for (int n = 0; n <= ROUNDS; n++) {
		all.a = (float)n;
		ck_assert_int_eq(embeng_rows_fill(e, 0, NULL, 0, MANY, &all), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(servers[i].wrong, 0);
	}
	embeng_close(e);
}
END_TEST

/* The readers never pause, and yet updates come in between. */
START_TEST(updates_beside_readers_that_go_on)
{
	const int64_t id[] = {1}, one[] = {1};
	const float gradient[] = {1, 1}, *features[] = {gradient}, want[] = {-50, -50};
	struct embeng *e = open_many(embeng_sgd(1));
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct server servers[THREADS];
	pthread_t threads[THREADS];
	float row[2];

	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, id, 1, one, 1), 0);
	for (size_t i = 0; i < THREADS; i++) {
		servers[i] = (struct server){.e = e};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, serve_often, &servers[i]), 0);
	}
	for (int n = 0; n < 50; n++)
		ck_assert_int_eq(embeng_update(e, b, &g, -1), 0);
	for (size_t i = 0; i < THREADS; i++)
		__atomic_store_n(&servers[i].stop, true, __ATOMIC_RELAXED);
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(servers[i].wrong, 0);
	}
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, id, 1, row), 0);
	expect_floats(row, want, 2);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

struct update {
	struct embeng *e;
	struct embeng_batch *b;
	int ret;
};

static void *update_once(void *arg)
{
	struct update *u = arg;
	const float gradient[] = {1, 1}, *features[] = {gradient};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};

	u->ret = embeng_update(u->e, u->b, &g, -1);
	return NULL;
}

static void *serve_once(void *arg)
{
	struct server *s = arg;
	const int64_t id = 1, one = 1;
	struct embeng_serving *serving = NULL;
	float out[8] = {0};
	struct embeng_serving_input in = dense_ids(EMBENG_I64, &id, &one, out);

	s->wrong = embeng_serving_live(s->e, NULL, &serving, NULL) ||
		   embeng_serving_lookup(serving, &in, 1) || out[0] != -1 || out[1] != -1;
	embeng_serving_close(serving);
	return NULL;
}

static bool is_shut_out(struct embeng *e)
{
	bool waits;

	pthread_mutex_lock(&e->lock);
	waits = e->shut_out;
	pthread_mutex_unlock(&e->lock);
	return waits;
}

/* A reader that comes while an update waits for earlier readers sees what the update makes. */
START_TEST(later_readers_let_the_update_go_first)
{
	const int64_t id = 1, one = 1;
	struct embeng *e = open_many(embeng_sgd(1));
	struct update update = {.e = e, .b = embeng_batch_new(e, EMBENG_TRAIN, 0)};
	struct server later = {.e = e};
	pthread_t threads[2];

	if (!HAS_MAPS) { /* readers there send commands, which have an order */
		embeng_batch_free(update.b);
		embeng_close(e);
		return;
	}
	ck_assert_int_eq(embeng_batch_dense(update.b, 0, EMBENG_I64, &id, 1, &one, 1), 0);
	pthread_mutex_lock(&e->lock);
	ck_assert_int_eq(direct_enter(e, deadline_never(), "an earlier reader"), 0);
	pthread_mutex_unlock(&e->lock);
	ck_assert_int_eq(pthread_create(&threads[0], NULL, update_once, &update), 0);
	while (!is_shut_out(e))
		usleep(1000);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, serve_once, &later), 0);
	/* Time for a reader that would not wait; one that waits passes however long this is. */
	usleep(50000);
	pthread_mutex_lock(&e->lock);
	direct_leave(e);
	pthread_mutex_unlock(&e->lock);
	for (size_t i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_int_eq(update.ret, 0);
	ck_assert_int_eq(later.wrong, 0);
	embeng_batch_free(update.b);
	embeng_close(e);
}
END_TEST

RUN_SUITE("table map", a_map_shows_updates_and_takes_writes, refused_maps,
	  a_restore_leaves_the_table_where_it_is, rows_of_before_are_put_in_place,
	  narrow_ids_of_live_lookups, live_lookups_beside_writes, updates_beside_readers_that_go_on,
	  later_readers_let_the_update_go_first)
