/* SPDX-License-Identifier: MIT */
/*
 * Steps of several tables: each table is updated as if it were alone, also with other calls in
 * between.
 */
#include "session_help.h"

enum { TABLES = 2, ROWS = 1000, DIM = 2, FEW = 500 };

/* "few" and "many", rows of zeros, one feature each. */
static struct embeng *open_two(void)
{
	static const char *const names[TABLES] = {"few", "many"};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	for (int t = 0; t < TABLES; t++) {
		struct embeng_table_config table = {.size = sizeof(table),
						    .name = names[t],
						    .vocabulary_size = ROWS,
						    .dim = DIM,
						    .optimizer = embeng_sgd(1)};
		struct embeng_feature_config feature = {
			.size = sizeof(feature), .name = names[t], .table = t};

		ck_assert_int_eq(embeng_model_add_table(m, &table), t);
		ck_assert_int_eq(embeng_model_add_feature(m, &feature), t);
	}
	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	for (int t = 0; t < TABLES; t++) {
		static const float zeros[ROWS * DIM];

		ck_assert_int_eq(embeng_rows_write(e, t, NULL, NULL, ROWS, zeros), 0);
	}
	return e;
}

/* Rows [0, FEW) of the one and all of the other, a sample each. */
static void look_up(struct embeng *e)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	const int64_t samples[TABLES] = {FEW, ROWS};
	int64_t ids[ROWS];

	for (int i = 0; i < ROWS; i++)
		ids[i] = i;
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, FEW, &samples[0], 1), 0);
	ck_assert_int_eq(embeng_batch_dense(b, 1, EMBENG_I64, ids, ROWS, &samples[1], 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	embeng_batch_free(b);
}

static void apply_all_ones(struct embeng *e)
{
	static float ones[ROWS * DIM];
	const float *features[TABLES] = {ones, ones};
	const size_t elements[TABLES] = {FEW * DIM, ROWS * DIM};
	struct embeng_gradients g = {
		.size = sizeof(g), .count = TABLES, .features = features, .elements = elements};

	for (int i = 0; i < ROWS * DIM; i++)
		ones[i] = 1;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, 0), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
}

static void expect_updated(struct embeng *e, int table, int rows)
{
	float got[ROWS * DIM];

	ck_assert_int_eq(embeng_rows_read(e, table, NULL, NULL, ROWS, got), 0);
	for (int i = 0; i < ROWS * DIM; i++)
		ck_assert_msg(got[i] == (i < rows * DIM ? -1.0f : 0.0f), "table %d, row %d: %a",
			      table, i / DIM, (double)got[i]);
}

/*
 * Statistics sort what the update is going to need, and other tables need more memory for it.
 * Both tables are too large to be taken whole by a core, which sorts for itself.
 */
START_TEST(statistics_leave_the_step_as_it_is)
{
	for (int asked = 0; asked < TABLES; asked++) {
		struct embeng_table_stats s = {.size = sizeof(s)};
		struct embeng *e = open_two();

		look_up(e);
		ck_assert_int_eq(embeng_stats(e, asked, 0, &s), 0);
		ck_assert_uint_eq(s.unique_ids, asked ? ROWS : FEW);
		apply_all_ones(e);
		expect_updated(e, 0, FEW);
		expect_updated(e, 1, ROWS);
		embeng_close(e);
	}
}
END_TEST

RUN_SUITE("tables", statistics_leave_the_step_as_it_is, NULL)
