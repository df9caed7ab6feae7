// SPDX-License-Identifier: MIT
/*
 * Lookups into the caller's memory: the bits of a view, packed and with strides, in buffers and
 * anywhere else, from any number of threads while another trains. Refused calls write nothing.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "session_help.h"

#define ROWS 30
#define SAMPLES 7
#define DIM_A 3
#define DIM_B 16
#define LENGTH 2

/* Features "a" and "b" of tables of their own, and "s", sequences of the first. */
static struct embeng *open_features(void)
{
	const char *const tables[] = {"ta", "tb"};
	const int64_t dims[] = {DIM_A, DIM_B};
	const char *const features[] = {"a", "b", "s"};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	for (int i = 0; i < 2; i++) {
		struct embeng_table_config t = {.size = sizeof(t),
						.name = tables[i],
						.vocabulary_size = ROWS,
						.dim = dims[i],
						.combiner = EMBENG_SUM,
						.optimizer = embeng_sgd(1)};

		ck_assert_int_eq(embeng_model_add_table(m, &t), i);
	}
	for (int i = 0; i < 3; i++) {
		struct embeng_feature_config f = {.size = sizeof(f),
						  .name = features[i],
						  .table = i == 1,
						  .max_sequence_length = i == 2 ? LENGTH : 0};

		ck_assert_int_eq(embeng_model_add_feature(m, &f), i);
	}
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

/* @salt: other ids. Lengths are 0 to 3. */
static struct embeng_batch *make_batch(struct embeng *e, enum embeng_mode mode, int64_t salt)
{
	static _Thread_local int64_t ids[3 * SAMPLES], lengths[SAMPLES];
	struct embeng_batch *b = embeng_batch_new(e, mode, 0);
	size_t count = 0;

	for (int64_t i = 0; i < SAMPLES; i++) {
		lengths[i] = i % 4;
		for (int64_t k = 0; k < lengths[i]; k++)
			ids[count++] = (7 * i + 5 * k + salt) % ROWS;
	}
	for (int f = 0; f < 3; f++)
		ck_assert_int_eq(embeng_batch_ragged(b, f, EMBENG_I64, ids, count, lengths, SAMPLES,
						     NULL, 0),
				 0);
	return b;
}

static const size_t widths[] = {DIM_A, DIM_B, LENGTH *DIM_A};

/* As dequeue() has them, one feature after another. */
static void look_by_view(struct embeng *e, float *out)
{
	struct embeng_batch *b = make_batch(e, EMBENG_INFERENCE, 0);
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	for (size_t f = 0; f < 3; out += SAMPLES * widths[f++])
		memcpy(out, a.features[f].data, SAMPLES * widths[f] * sizeof(*out));
	ck_assert_int_eq(embeng_release(e, &a), 0);
	embeng_batch_free(b);
}

#define ALL (SAMPLES * (DIM_A + DIM_B + LENGTH * DIM_A))

START_TEST(packed_as_a_view)
{
	struct embeng *e = open_features();
	struct embeng_batch *b = make_batch(e, EMBENG_INFERENCE, 0);
	float want[ALL], got[ALL];
	struct embeng_output o[3];
	float *at = got;

	look_by_view(e, want);
	for (size_t f = 0; f < 3; at += SAMPLES * widths[f++])
		o[f] = (struct embeng_output){.data = at, .elements = SAMPLES * widths[f]};
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, 0), 0);
	ck_assert_mem_eq(got, want, sizeof(want));
	/* The middle one is not wanted. */
	memset(got, 0, sizeof(got));
	o[1] = (struct embeng_output){.data = NULL};
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, 0), 0);
	memset(want + SAMPLES * DIM_A, 0, SAMPLES * DIM_B * sizeof(*want));
	ck_assert_mem_eq(got, want, sizeof(want));
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

/* A block of one row a sample, with a column between features that nobody writes. */
static void look_into_block(bool buffer)
{
	enum { ROW = DIM_A + 1 + DIM_B + 1 + LENGTH * DIM_A };
	struct embeng *e = open_features();
	struct embeng_batch *b = make_batch(e, EMBENG_INFERENCE, 0);
	static float memory[SAMPLES * ROW];
	float want[ALL], *block = memory;
	const float *from = want;
	struct embeng_counter_values before = {.size = sizeof(before)}, after = before;
	struct embeng_output o[3];
	size_t column = 0;

	if (buffer)
		block = embeng_buffer_alloc(e, sizeof(memory));
	look_by_view(e, want);
	for (size_t i = 0; i < SAMPLES * ROW; i++)
		block[i] = -7;
	for (size_t f = 0; f < 3; column += widths[f++] + 1)
		o[f] = (struct embeng_output){.data = block + column,
					      .stride = ROW,
					      .elements = (SAMPLES - 1) * ROW + widths[f]};
	embeng_counters(e, &before);
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, 0), 0);
	embeng_counters(e, &after);
	column = 0;
	for (size_t f = 0; f < 3; column += widths[f++] + 1) {
		for (size_t s = 0; s < SAMPLES; s++, from += widths[f]) {
			ck_assert_mem_eq(block + s * ROW + column, from, widths[f] * sizeof(*from));
			if (f < 2)
				ck_assert(block[s * ROW + column + widths[f]] == -7.0f);
		}
	}
	/* Ids and, of what is in a buffer, sequences alone are copied. */
	if (buffer)
		ck_assert_uint_lt(after.bytes_copied - before.bytes_copied,
				  3 * (4 * SAMPLES + 1) * 8 + SAMPLES * LENGTH * DIM_A * 4);
	embeng_batch_free(b);
	if (buffer)
		ck_assert_int_eq(embeng_buffer_free(e, block), 0);
	embeng_close(e);
}

START_TEST(a_block_of_all_features)
{
	look_into_block(false);
}
END_TEST

START_TEST(a_block_in_a_buffer)
{
	look_into_block(true);
}
END_TEST

START_TEST(refused_outputs_stay_as_they_are)
{
	struct embeng *e = open_features();
	struct embeng_batch *b = make_batch(e, EMBENG_INFERENCE, 0);
	struct embeng_batch *train = make_batch(e, EMBENG_TRAIN, 0);
	float got[3][SAMPLES * DIM_B] = {{0}};
	const float zeros[3][SAMPLES * DIM_B] = {{0}};
	struct embeng_output o[3];
	const int64_t strange[] = {ROWS};

	for (size_t f = 0; f < 3; f++)
		o[f] = (struct embeng_output){.data = got[f], .elements = SAMPLES * DIM_B};
	ck_assert_int_eq(embeng_lookup(e, train, o, 3, 0), -EINVAL);
	expect_text("the batch is for training");
	ck_assert_int_eq(embeng_lookup(e, b, o, 2, 0), -EINVAL);
	expect_text("outputs of 2 features, the model has 3");
	o[1].elements--;
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, 0), -EINVAL);
	expect_text("feature b: its output has room for 111 floats, 112 are needed for 7 samples");
	o[1].elements++;
	o[2].stride = LENGTH * DIM_A - 1;
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, 0), -EINVAL);
	expect_text("feature s: its outputs are 5 floats apart, a sample has 6");
	o[2].stride = SIZE_MAX / 2;
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, 0), -EINVAL);
	o[2].stride = 0;
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, strange, 1, (const int64_t[]){1}, 1),
			 0);
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, 0), -ERANGE);
	expect_text("feature a, sample 0: id 30");
	ck_assert_mem_eq(got, zeros, sizeof(got));
	embeng_batch_free(b);
	embeng_batch_free(train);
	embeng_close(e);
}
END_TEST

START_TEST(views_in_hand_leave_no_place)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1), .depth = 1});
	struct embeng_activations a[2] = {{.size = sizeof(a[0])}, {.size = sizeof(a[0])}};
	const int64_t ids[] = {3};
	float got[2] = {0};
	const float want[] = {30, 31};
	struct embeng_output o = {.data = got, .elements = 2};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);

	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 1, (const int64_t[]){1}, 1), 0);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
		ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a[i]), 0);
	}
	ck_assert_int_eq(embeng_lookup(e, b, &o, 1, -1), -EBUSY);
	ck_assert_int_eq(embeng_release(e, &a[0]), 0);
	ck_assert_int_eq(embeng_lookup(e, b, &o, 1, -1), 0);
	expect_floats(got, want, 2);
	ck_assert_int_eq(embeng_release(e, &a[1]), 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

/* Registered memory takes in what lies between the multiple of 8 before it and its start. */
START_TEST(registered_memory_begins_at_a_multiple_of_8)
{
	static _Alignas(8) int32_t block[4];
	struct embeng *e = open_features();

	if (!getenv("EMBENG_TEST_DEVICE")) {
		ck_assert_int_eq(embeng_memory_register(e, block + 1, 4), 0);
		ck_assert_int_eq(embeng_memory_register(e, block, 4), -EEXIST);
		ck_assert_int_eq(embeng_memory_register(e, block + 2, 4), 0);
		ck_assert_int_eq(embeng_memory_unregister(e, block + 1), 0);
		ck_assert_int_eq(embeng_memory_register(e, block, 8), 0);
	}
	embeng_close(e);
}
END_TEST

/* Registered memory, at any address, is used in place: no byte is copied. */
START_TEST(registered_memory_is_used_in_place)
{
	static int32_t block[3 * SAMPLES + 1];
	static float out[SAMPLES * (DIM_A + DIM_B) + 1];
	struct embeng *e = open_features();
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	int32_t *ids = block + 1; /* at a multiple of 4 that is none of 8, or the other way round */
	struct embeng_counter_values before = {.size = sizeof(before)}, after = before;
	struct embeng_output o[3] = {
		{.data = out + 1, .elements = SAMPLES * DIM_A},
		{.data = out + 1 + SAMPLES * DIM_A, .elements = SAMPLES * DIM_B}};
	float row[DIM_B];

	for (int i = 0; i < 3 * SAMPLES; i++)
		ids[i] = i;
	if (getenv("EMBENG_TEST_DEVICE")) {
		ck_assert_int_eq(embeng_memory_register(e, ids, 4), -ENOTSUP);
		expect_text("other memory is copied");
		embeng_batch_free(b);
		embeng_close(e);
		return;
	}
	ck_assert_int_eq(embeng_memory_register(e, ids, 3 * SAMPLES * 4), 0);
	ck_assert_int_eq(embeng_memory_register(e, out, sizeof(out)), 0);
	for (int f = 0; f < 3; f++)
		ck_assert_int_eq(embeng_batch_dense(b, f, EMBENG_I32, ids + f * SAMPLES, SAMPLES,
						    (const int64_t[]){SAMPLES}, 1),
				 0);
	embeng_counters(e, &before);
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, -1), 0);
	embeng_counters(e, &after);
	ck_assert_uint_eq(after.bytes_copied, before.bytes_copied);
	ck_assert_int_eq(embeng_rows_read(e, 1, NULL, (const int64_t[]){SAMPLES}, 1, row), 0);
	ck_assert_mem_eq(out + 1 + SAMPLES * DIM_A, row, sizeof(row));
	ck_assert_int_eq(embeng_memory_register(e, ids + 3, 4), -EEXIST);
	ck_assert_int_eq(embeng_memory_register(e, out, 1), -EEXIST);
	ck_assert_int_eq(embeng_memory_register(e, NULL, 4), -EINVAL);
	ck_assert_int_eq(embeng_memory_register(e, ids, 0), -EINVAL);
	ck_assert_int_eq(embeng_memory_register(e, ids, SIZE_MAX), -EINVAL);
	ck_assert_int_eq(embeng_buffer_free(e, out), -EINVAL);
	ck_assert_int_eq(embeng_memory_unregister(e, ids + 3), -EINVAL);
	expect_text("is not the start of registered memory");
	ck_assert_int_eq(embeng_memory_unregister(e, ids), 0);
	ck_assert_int_eq(embeng_memory_unregister(e, ids), -EINVAL);
	/* Then it is copied again. */
	embeng_counters(e, &before);
	ck_assert_int_eq(embeng_lookup(e, b, o, 3, -1), 0);
	embeng_counters(e, &after);
	ck_assert_uint_eq(after.bytes_copied, before.bytes_copied + 3 * SAMPLES * 4);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

#define THREADS 8
#define ROUNDS 200

struct reader {
	struct embeng *e;
	int64_t salt;
	int wrong;
};

/* Each row of "ta" always has one number in all its columns: a lookup sees no half of an update. */
static void *read_often(void *arg)
{
	struct reader *r = arg;
	struct embeng_batch *b = make_batch(r->e, EMBENG_INFERENCE, r->salt);

	for (int n = 0; n < ROUNDS; n++) {
		float out[SAMPLES * DIM_A];
		struct embeng_output o[3] = {{.data = out, .elements = SAMPLES * DIM_A}};

		r->wrong += embeng_lookup(r->e, b, o, 3, -1) != 0;
		for (size_t s = 0; s < SAMPLES; s++)
			r->wrong += out[s * DIM_A] != out[s * DIM_A + 1] ||
				    out[s * DIM_A] != out[s * DIM_A + 2];
	}
	embeng_batch_free(b);
	return NULL;
}

static void train_once(struct embeng *e, struct embeng_batch *b)
{
	static float ones[SAMPLES * DIM_B];
	const float *features[] = {ones, ones, ones};
	struct embeng_gradients g = {.size = sizeof(g), .count = 3, .features = features};

	for (size_t i = 0; i < SAMPLES * DIM_B; i++)
		ones[i] = -1;
	ck_assert_int_eq(embeng_update(e, b, &g, -1), 0);
}

START_TEST(many_threads_beside_training)
{
	struct embeng *e = open_features();
	struct embeng_batch *b = make_batch(e, EMBENG_TRAIN, 3);
	struct reader readers[THREADS];
	float zeros[ROWS * DIM_A] = {0};
	pthread_t threads[THREADS];

	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, ROWS, zeros), 0);
	for (size_t i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){.e = e, .salt = (int64_t)i};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_often, &readers[i]), 0);
	}
	for (int n = 0; n < ROUNDS; n++)
		train_once(e, b);
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(readers[i].wrong, 0);
	}
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

RUN_SUITE("lookup into", packed_as_a_view, a_block_of_all_features, a_block_in_a_buffer,
	  refused_outputs_stay_as_they_are, views_in_hand_leave_no_place,
	  many_threads_beside_training, registered_memory_begins_at_a_multiple_of_8,
	  registered_memory_is_used_in_place)
