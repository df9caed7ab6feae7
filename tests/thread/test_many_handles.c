// SPDX-License-Identifier: MIT
/*
 * Many handles of one process share the threads of one pool: what they cost together, that they all
 * have the bits of a handle that is alone, that none waits for another's long work, and that any of
 * them can be opened and closed at any time.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/src/session/session.h"
#undef fail /* session.h defines one, and so does Check */
#include "resident.h"
#include "suite.h"

#define ROWS 1000
#define DIM 16
#define SAMPLES_MOST 3000 /* their rows are more than one core does by itself */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static struct embeng *open_rows(const char *device, int64_t rows, int dim,
				struct embeng_optimizer optimizer)
{
	const struct embeng_table_config table = {
		.size = sizeof(table),
		.name = "items",
		.vocabulary_size = rows,
		.dim = dim,
		.combiner = EMBENG_SUM,
		.optimizer = optimizer,
		.initializer = {EMBENG_INIT_UNIFORM, -0.05f, 0.05f, 1}};
	const struct embeng_feature_config feature = {.size = sizeof(feature), .name = "item"};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &table), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &feature), 0);
	ck_assert_msg(!embeng_open(device, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static struct embeng *open_small(const char *device)
{
	return open_rows(device, ROWS, DIM, embeng_adagrad(0.1f));
}

static uint32_t draw(uint64_t *state, uint32_t limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % limit;
}

/* A dense batch of one id a sample. */
static struct embeng_batch *draw_batch(struct embeng *e, enum embeng_mode mode, int64_t *ids,
				       int64_t samples, uint64_t *state)
{
	struct embeng_batch *b = embeng_batch_new(e, mode, 0);

	ck_assert_ptr_nonnull(b);
	for (int64_t i = 0; i < samples; i++)
		ids[i] = draw(state, ROWS);
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, (size_t)samples, &samples, 1),
			 0);
	return b;
}

/* An update and a lookup of their own rows, drawn from @state. */
static void train(struct embeng *e, uint64_t *state)
{
	const int64_t samples = 1 + draw(state, SAMPLES_MOST);
	const size_t elements = (size_t)samples * DIM;
	int64_t *ids = malloc((size_t)samples * sizeof(*ids));
	float *values = malloc(elements * sizeof(*values));
	const float *data = values;
	struct embeng_gradients g = {
		.size = sizeof(g), .count = 1, .features = &data, .elements = &elements};
	struct embeng_output out = {.data = values, .elements = elements};
	struct embeng_batch *b = draw_batch(e, EMBENG_TRAIN, ids, samples, state);

	for (size_t i = 0; i < elements; i++)
		values[i] = (float)draw(state, 2000) / 1000 - 1;
	ck_assert_int_eq(embeng_update(e, b, &g, -1), 0);
	embeng_batch_free(b);
	b = draw_batch(e, EMBENG_INFERENCE, ids, samples, state);
	ck_assert_int_eq(embeng_lookup(e, b, &out, 1, -1), 0);
	embeng_batch_free(b);
	free(values);
	free(ids);
}

static float *read_rows(struct embeng *e)
{
	float *rows = malloc(sizeof(*rows) * ROWS * DIM);

	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, rows), 0);
	return rows;
}

static void expect_rows(struct embeng *e, const float *wanted)
{
	float *rows = read_rows(e);

	ck_assert_mem_eq(rows, wanted, sizeof(*rows) * ROWS * DIM);
	free(rows);
}

#define MANY 100
#define MANY_BYTES (100u << 20)

/* Four cores are three helpers and the thread that serves. */
START_TEST(a_hundred_cost_little)
{
	const int before = count_threads();
	const uint64_t bytes = resident();
	struct embeng *e[MANY];

	for (int i = 0; i < MANY; i++)
		e[i] = open_small("soft:cores=4");
	ck_assert_int_eq(count_threads(), before + 4);
	if (!SANITIZED)
		ck_assert_uint_lt(resident() - bytes, MANY_BYTES);
	for (int i = 0; i < MANY; i++) {
		uint64_t state = 1;

		train(e[i], &state);
	}
	ck_assert_int_eq(count_threads(), before + 4);
	for (int i = 0; i < MANY; i++)
		embeng_close(e[(i + MANY / 2) % MANY]);
	ck_assert_int_eq(count_threads(), before);
}
END_TEST

static double used_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Each beats four times a second; that is all. */
START_TEST(idle_handles_use_no_processor)
{
	struct embeng *e[MANY];
	double began;

	for (int i = 0; i < MANY; i++)
		e[i] = open_small("soft:cores=4");
	began = used_seconds();
	sleep(1);
	if (!SANITIZED)
		ck_assert_double_lt(used_seconds() - began, 0.1);
	for (int i = 0; i < MANY; i++)
		embeng_close(e[i]);
}
END_TEST

/* The pool is as large as the largest handle asked for, until the last one is closed. */
START_TEST(pool_grows)
{
	const int before = count_threads();
	struct embeng *one = open_small("soft:cores=1"), *three, *two;
	struct embeng_device_info info = {.size = sizeof(info)};

	ck_assert_int_eq(count_threads(), before + 1);
	three = open_small("soft:cores=3");
	ck_assert_int_eq(count_threads(), before + 3);
	two = open_small("soft:cores=2");
	ck_assert_int_eq(count_threads(), before + 3);
	ck_assert_int_eq(embeng_info(two, &info), 0);
	ck_assert_uint_eq(info.cores, 2);
	embeng_close(three);
	ck_assert_int_eq(count_threads(), before + 3);
	embeng_close(one);
	embeng_close(two);
	ck_assert_int_eq(count_threads(), before);
}
END_TEST

#define THREADS 5
#define HANDLES 4 /* that each thread has */
#define STEPS 12

static void *train_some(void *arg)
{
	struct embeng **e = arg;
	uint64_t states[HANDLES];

	for (int h = 0; h < HANDLES; h++)
		states[h] = 77;
	for (int s = 0; s < STEPS; s++)
		for (int h = 0; h < HANDLES; h++)
			train(e[h], &states[h]);
	return NULL;
}

START_TEST(bits_are_those_of_one_alone)
{
	struct embeng *e[THREADS * HANDLES], *alone = open_small("soft:cores=1");
	pthread_t threads[THREADS];
	uint64_t state = 77;
	char device[32];
	float *wanted;

	for (int s = 0; s < STEPS; s++)
		train(alone, &state);
	wanted = read_rows(alone);
	for (int i = 0; i < THREADS * HANDLES; i++) {
		snprintf(device, sizeof(device), "soft:cores=%d", 1 + i % 5);
		e[i] = open_small(device);
	}
	for (int t = 0; t < THREADS; t++)
		ck_assert_int_eq(pthread_create(&threads[t], NULL, train_some, e + t * HANDLES), 0);
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	for (int i = 0; i < THREADS * HANDLES; i++) {
		expect_rows(e[i], wanted);
		embeng_close(e[i]);
	}
	free(wanted);
	embeng_close(alone);
}
END_TEST

struct long_work {
	struct embeng *e;
	int64_t rows;
	int done; /* atomic */
};

static void *work_long(void *arg)
{
	const struct embeng_initializer random = {EMBENG_INIT_TRUNCATED_NORMAL, 0, 1, 3};
	struct long_work *w = arg;

	ck_assert_int_eq(embeng_rows_fill(w->e, 0, NULL, 0, (size_t)w->rows, &random), 0);
	__atomic_store_n(&w->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

#define SMALL_LOOKUPS 5

/* Takes completions, and does nothing for the engine. */
static bool is_idle(struct embeng *e)
{
	uint32_t in_flight = 0;
	struct ring *ring;

	pthread_mutex_lock(&e->lock);
	session_reap(e);
	for (uint32_t i = 0; (ring = session_ring(e, i)); i++)
		in_flight += ring->in_flight;
	pthread_mutex_unlock(&e->lock);
	return !in_flight;
}

/*
 * The only thread of the pool is at work for another handle, and this one works for nobody. Return: false:
 * the other work was done first.
 */
static bool look_up_beside(struct long_work *w, struct embeng *e, uint64_t *state)
{
	static int64_t ids[SAMPLES_MOST];
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_batch *b = draw_batch(e, EMBENG_INFERENCE, ids, SAMPLES_MOST, state);
	bool beside;

	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	embeng_batch_free(b);
	while (!is_idle(e) && !__atomic_load_n(&w->done, __ATOMIC_SEQ_CST))
		usleep(200);
	beside = !__atomic_load_n(&w->done, __ATOMIC_SEQ_CST);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(embeng_release(e, &a), 0);
	return beside;
}

START_TEST(small_work_is_done_beside_long_work)
{
	struct long_work w = {.rows = SANITIZED ? 600000 : 1000000};
	struct embeng *small = open_small("soft:cores=1");
	uint64_t state = 5;
	pthread_t thread;

	w.e = open_rows("soft:cores=1", w.rows, 128, embeng_sgd(0.1f));
	ck_assert_int_eq(pthread_create(&thread, NULL, work_long, &w), 0);
	while (is_idle(w.e))
		usleep(200);
	for (int i = 0; i < SMALL_LOOKUPS; i++)
		ck_assert(look_up_beside(&w, small, &state));
	pthread_join(thread, NULL);
	embeng_close(w.e);
	embeng_close(small);
}
END_TEST

#define ROUNDS 60

/* Opens, trains and closes handles of its own, in any order. */
static void *come_and_go(void *arg)
{
	uint64_t state = *(uint64_t *)arg;
	struct embeng *e[HANDLES] = {NULL};
	uint64_t states[HANDLES];
	char device[32];

	for (int round = 0; round < ROUNDS; round++) {
		uint32_t h = draw(&state, HANDLES), what = draw(&state, 4);

		snprintf(device, sizeof(device), "soft:cores=%u", 1 + draw(&state, 4));
		if (!e[h]) {
			e[h] = open_small(device);
			states[h] = draw(&state, 1000);
		} else if (what) {
			train(e[h], &states[h]);
		} else {
			embeng_close(e[h]);
			e[h] = NULL;
		}
	}
	for (int h = 0; h < HANDLES; h++)
		embeng_close(e[h]);
	return NULL;
}

START_TEST(handles_come_and_go)
{
	const int before = count_threads();
	const char *given = getenv("EMBENG_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	uint64_t seeds[THREADS];
	pthread_t threads[THREADS];

	printf("EMBENG_TEST_SEED=%llu\n", (unsigned long long)seed);
	for (int t = 0; t < THREADS; t++) {
		seeds[t] = seed + (uint64_t)t;
		ck_assert_int_eq(pthread_create(&threads[t], NULL, come_and_go, &seeds[t]), 0);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	ck_assert_int_eq(count_threads(), before);
}
END_TEST

/* Threads of the pool are at work or asleep when the process ends. */
START_TEST(process_ends_with_open_handles)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		for (int i = 0; i < HANDLES; i++) {
			uint64_t state = (uint64_t)i;

			train(open_small("soft:cores=3"), &state);
		}
		exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 7);
}
END_TEST

static void add(TCase *t)
{
	tcase_set_timeout(t, 240);
	tcase_add_test(t, a_hundred_cost_little);
	tcase_add_test(t, idle_handles_use_no_processor);
	tcase_add_test(t, pool_grows);
	tcase_add_test(t, bits_are_those_of_one_alone);
	tcase_add_test(t, small_work_is_done_beside_long_work);
	tcase_add_test(t, handles_come_and_go);
	tcase_add_test(t, process_ends_with_open_handles);
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* A sanitizer may start a thread of its own with the first one, which is not to be counted. */
int main(void)
{
	pthread_t first;

	if (!pthread_create(&first, NULL, do_nothing, NULL))
		pthread_join(first, NULL);
	return suite_main("many_handles", add);
}
