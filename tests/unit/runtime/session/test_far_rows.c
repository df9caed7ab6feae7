// SPDX-License-Identifier: MIT
/*
 * Rows beyond 32 bits, through the whole stack: tables of 2^33 rows in memory of which
 * only the pages of a few rows are ever touched, and index computations at 2^40 rows.
 */
#include "resident.h"
#include "session_help.h"

#include <stdbool.h>

#define FAR ((int64_t)1 << 33)
#define ROWS 6

/* First, last, both sides of 2^32 and of 2^31. */
static const int64_t rows[ROWS] = {0,	      (1ll << 31) - 1, (1ll << 32) - 1,
				   1ll << 32, (1ll << 32) + 5, FAR - 1};

static struct embeng *open_far(struct embeng_optimizer optimizer, int64_t dim, int64_t count)
{
	const struct embeng_slot_start start = {"accumulators", {.kind = EMBENG_INIT_CONSTANT}};
	struct embeng_table_config t = {.size = sizeof(t),
					.vocabulary_size = count,
					.dim = dim,
					.combiner = EMBENG_SUM,
					.optimizer = optimizer,
					.initializer = {.kind = EMBENG_INIT_CONSTANT},
					.slot_starts = &start,
					.slot_start_count = optimizer.kind == EMBENG_ADAGRAD};
	struct embeng_feature_config f = {.size = sizeof(f)};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_msg(!embeng_open("soft:cores=3,memory=16384G", m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

/* A bag with row k and, but for the first, row 0: which is in all of them. */
static int enqueue_far(struct embeng *e, enum embeng_mode mode)
{
	int64_t ids[2 * ROWS], lengths[ROWS];
	struct embeng_batch *b = embeng_batch_new(e, mode, 0);
	size_t count = 0;
	int ret;

	for (size_t k = 0; k < ROWS; k++) {
		ids[count++] = rows[k];
		if (k)
			ids[count++] = 0;
		lengths[k] = k ? 2 : 1;
	}
	ret = embeng_batch_ragged(b, 0, EMBENG_I64, ids, count, lengths, ROWS, NULL, 0);
	ck_assert_int_eq(ret, 0);
	ret = embeng_enqueue(e, b, 0);
	embeng_batch_free(b);
	return ret;
}

static void expect_activations(struct embeng *e, const float *want, bool release)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	expect_floats(a.features[0].data, want, ROWS);
	if (release)
		ck_assert_int_eq(embeng_release(e, &a), 0);
}

static void step(struct embeng *e, const float *want)
{
	const float ones[ROWS] = {1, 1, 1, 1, 1, 1}, *features[] = {ones};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};

	ck_assert_int_eq(enqueue_far(e, EMBENG_TRAIN), 0);
	expect_activations(e, want, false);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, 0), 0);
}

static void expect_rows(struct embeng *e, const char *slot, const float *want)
{
	float got[ROWS];

	ck_assert_int_eq(embeng_rows_read(e, 0, slot, rows, ROWS, got), 0);
	expect_floats(got, want, ROWS);
}

static void write_rows(struct embeng *e)
{
	const float start[ROWS] = {1, 2, 3, 4, 5, 6};

	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, rows, ROWS, start), 0);
	expect_rows(e, NULL, start);
}

/* No page of the 32 GiB but those of the rows: two MiB each, at most two arrays. */
static void assert_sparse(uint64_t before)
{
	ck_assert_uint_le(resident() - before, 2 * ROWS * (2u << 20) + (64u << 20));
}

START_TEST(trains_with_sgd)
{
	const float sums[ROWS] = {1, 3, 4, 5, 6, 7};
	/* row 0 is in six bags, the others in one: w - 0.5 * gradient sum */
	const float trained[ROWS] = {-2, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f};
	const float sums_after[ROWS] = {-2, -0.5f, 0.5f, 1.5f, 2.5f, 3.5f};
	uint64_t before = resident();
	struct embeng *e = open_far(embeng_sgd(0.5f), 1, FAR);
	float neighbors[3];

	write_rows(e);
	step(e, sums);
	expect_rows(e, NULL, trained);
	ck_assert_int_eq(enqueue_far(e, EMBENG_INFERENCE), 0);
	expect_activations(e, sums_after, true);
	ck_assert_int_eq(
		embeng_rows_read(e, 0, NULL, (const int64_t[]){FAR - 2, 1, 6}, 3, neighbors), 0);
	expect_floats(neighbors, (const float[]){0, 0, 0}, 3);
	assert_sparse(before);
	embeng_close(e);
}
END_TEST

START_TEST(trains_with_adagrad)
{
	const float sums[ROWS] = {1, 3, 4, 5, 6, 7}, squares[ROWS] = {36, 1, 1, 1, 1, 1};
	/* g / sqrt(g * g) is 1 */
	const float trained[ROWS] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f};
	uint64_t before = resident();
	struct embeng *e = open_far(embeng_adagrad(0.5f), 1, FAR);

	write_rows(e);
	step(e, sums);
	expect_rows(e, "accumulators", squares);
	expect_rows(e, NULL, trained);
	assert_sparse(before);
	embeng_close(e);
}
END_TEST

START_TEST(counts_hot_rows)
{
	const float sums[ROWS] = {1, 3, 4, 5, 6, 7};
	struct embeng_table_stats s = {.size = sizeof(s)};
	struct embeng *e = open_far(embeng_sgd(0.5f), 1, FAR);
	uint64_t cores[3] = {0};

	write_rows(e);
	step(e, sums);
	ck_assert_int_eq(embeng_stats(e, 0, 0, &s), 0);
	ck_assert_uint_eq(s.unique_ids, ROWS);
	ck_assert_int_eq(s.hot[0].row, 0);
	ck_assert_uint_eq(s.hot[0].count, ROWS);
	for (size_t k = 1; k < ROWS; k++)
		ck_assert_int_eq(s.hot[k].row, rows[k]);
	cores[0] = ROWS - 1;
	for (size_t k = 0; k < ROWS; k++)
		cores[rows[k] % 3]++;
	for (size_t k = 0; k < 3; k++)
		ck_assert_uint_eq(s.core_ids[k], cores[k]);
	embeng_close(e);
}
END_TEST

START_TEST(fills_and_reads_a_far_range)
{
	const struct embeng_initializer seven = {.kind = EMBENG_INIT_CONSTANT, .a = 7};
	struct embeng *e = open_far(embeng_sgd(0.5f), 1, FAR);
	float got[5];

	ck_assert_int_eq(embeng_rows_fill(e, 0, NULL, (1ll << 32) - 1, 3, &seven), 0);
	ck_assert_int_eq(
		embeng_rows_read(e, 0, NULL,
				 (const int64_t[]){(1ll << 32) - 2, (1ll << 32) - 1, 1ll << 32,
						   (1ll << 32) + 1, (1ll << 32) + 2},
				 5, got),
		0);
	expect_floats(got, (const float[]){0, 7, 7, 7, 0}, 5);
	ck_assert_int_eq(embeng_rows_fill(e, 0, NULL, FAR - 1, 2, &seven), -ERANGE);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, &(int64_t){FAR}, 1, got), -ERANGE);
	embeng_close(e);
}
END_TEST

START_TEST(refuses_the_first_id_behind)
{
	const int64_t ids[] = {FAR}, shape[] = {1};
	struct embeng *e = open_far(embeng_sgd(0.5f), 1, FAR);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);

	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 1, shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), -ERANGE);
	expect_text("8589934592");
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

/* Rows start by their whole number: not by its low 32 bits. */
START_TEST(starts_by_all_64_bits)
{
	const struct embeng_initializer random = {.kind = EMBENG_INIT_UNIFORM, .b = 1, .seed = 5};
	const int64_t far[] = {((int64_t)1 << 40) - 1, (1ll << 32) - 1};
	struct embeng *e = open_far(embeng_sgd(0.5f), 1, (int64_t)1 << 40);
	float got[2];

	for (size_t k = 0; k < 2; k++)
		ck_assert_int_eq(embeng_rows_fill(e, 0, NULL, far[k], 1, &random), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, far, 2, got), 0);
	ck_assert(got[0] > 0 && got[1] > 0 && got[0] != got[1]);
	embeng_close(e);
}
END_TEST

/* 12 TiB of address space. */
START_TEST(trains_at_2_to_the_40)
{
	const int64_t far[] = {((int64_t)1 << 40) - 1, 1ll << 39}, shape[] = {2};
	const float start[] = {3, 4, 5, 6, 7, 8}, ones[] = {1, 1, 1, 1, 1, 1};
	const float trained[] = {2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f}, *features[] = {ones};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_far(embeng_sgd(0.5f), 3, (int64_t)1 << 40);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	float got[6];

	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, far, 2, start), 0);
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, far, 2, shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	expect_floats(a.features[0].data, start, 6);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, far, 2, got), 0);
	expect_floats(got, trained, 6);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

RUN_SUITE("far rows", trains_with_sgd, trains_with_adagrad, counts_hot_rows,
	  fills_and_reads_a_far_range, refuses_the_first_id_behind, starts_by_all_64_bits,
	  trains_at_2_to_the_40)
