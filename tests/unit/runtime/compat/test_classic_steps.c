// SPDX-License-Identifier: MIT
/* Steps of the classic interface: bags without zeros, packed samples, gradients alone. */
#include <stdbool.h>

#include "checkpoint_help.h"
#include "embeng/classic.h"

/* Table "t" of 9 x 2, row r (10 r, 10 r + 1); "pooled", and "walk" of 3 places. */
static struct embeng_classic *make(enum embeng_classic_mode mode, struct embeng **e)
{
	const struct embeng_classic_table t = {.size = sizeof(t),
					       .name = "t",
					       .vocabulary_size = 9,
					       .dimension = 2,
					       .combiner = EMBENG_SUM};
	const struct embeng_classic_feature f[] = {
		{.size = sizeof(*f), .name = "walk", .table = "t", .max_sequence_length = 3},
		{.size = sizeof(*f), .name = "pooled", .table = "t"}};
	const struct embeng_classic_spec spec = {.size = sizeof(spec),
						 .tables = &t,
						 .table_count = 1,
						 .features = f,
						 .feature_count = 2,
						 .optimizer = embeng_sgd(0.5f),
						 .has_clipping_limit = 1,
						 .clipping_limit = 6,
						 .batch_size = 2,
						 .mode = mode};
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_classic *c = NULL;
	float rows[18];

	for (int i = 0; i < 18; i++)
		rows[i] = (float)(i / 2 * 10 + i % 2);
	ck_assert_msg(!embeng_classic_new(&spec, &c, &error), "%s", error.text);
	ck_assert_msg(!embeng_open(SMALL, embeng_classic_model(c), e, &error), "%s", error.text);
	help_expect_ok(embeng_rows_write(*e, 0, NULL, NULL, 9, rows));
	return c;
}

/* "pooled": {3, 1}, {}; "walk": {5}, {2, 4, 6}, of four, three that count. */
static void enqueue(struct embeng *e, enum embeng_mode mode)
{
	const int32_t pooled[] = {3, 0, 1, 0, 0, 0};
	const int64_t walk[] = {0, 5, 0, 0, 2, 4, 6, 8}, narrow[] = {2, 3}, wide[] = {2, 4};
	struct embeng_batch *b = embeng_batch_new(e, mode, 0);

	help_expect_ok(embeng_batch_dense(b, 0, EMBENG_I32, pooled, 6, narrow, 2));
	help_expect_ok(embeng_batch_dense(b, 1, EMBENG_I64, walk, 8, wide, 2));
	help_expect_ok(embeng_enqueue(e, b, 0));
	embeng_batch_free(b);
}

START_TEST(activations_are_packed_per_sample)
{
	const float want[2 * 4 * 2] = {40, 42, 50, 51, 0, 0, 0, 0, 0, 0, 20, 21, 40, 41, 60, 61};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_classic *c;
	struct embeng *e;
	float got[16];

	c = make(EMBENG_CLASSIC_TRAINING, &e);
	enqueue(e, EMBENG_INFERENCE);
	help_expect_ok(embeng_dequeue(e, 0, -1, &a));
	ck_assert_uint_eq(a.features[1].lengths_count, 2);
	ck_assert_int_eq(a.features[1].lengths[0], 1);
	ck_assert_int_eq(a.features[1].lengths[1], 3);
	help_expect_ok(embeng_classic_pack(c, &a, 0, got, 16));
	expect_floats(got, want, 16);
	help_expect(embeng_classic_pack(c, &a, 0, got, 15), -EINVAL,
		    "room for 15 floats, table t has [2, 4, 2]");
	help_expect(embeng_classic_pack(c, &a, 1, got, 16), -ENOENT, "there is no table 1");
	help_expect(embeng_classic_pack(NULL, &a, 0, got, 16), -EINVAL, "must be given");
	help_expect(embeng_classic_pack(c, NULL, 0, got, 16), -EINVAL, "must be given");
	help_expect(embeng_classic_pack(c, &a, 0, NULL, 16), -EINVAL, "must be given");
	a.count = 1;
	help_expect(embeng_classic_pack(c, &a, 0, got, 16), -EINVAL, "activations of 1 features");
	a.count = 2;
	help_expect_ok(embeng_release(e, &a));
	embeng_close(e);
	embeng_classic_free(c);
}
END_TEST

/* Gradients as [2][4][2]; the last walk's fourth id and all zeros have none. */
static const float gradients[16] = {1, 2, 3, 4, 100, 100, 100, 100, 50, 50, 5, 6, 7, 8, 9, 10};

static void expect_updated(struct embeng *e, float multiplier)
{
	/* row: 0 none, 1 and 3 of "pooled", 5, 2, 4, 6 of "walk"; clipped at 6, rate 0.5. */
	const float sums[18] = {0, 0, 1, 2, 5, 6, 1, 2, 7, 8, 3, 4, 9, 10};
	float rows[18];

	help_expect_ok(embeng_flush(e, -1));
	help_expect_ok(embeng_rows_read(e, 0, NULL, NULL, 9, rows));
	for (int i = 0; i < 18; i++) {
		float g = sums[i] * multiplier, was = (float)(i / 2 * 10 + i % 2);

		ck_assert_msg(rows[i] == was - 0.5f * (g > 6 ? 6 : g), "element %d: %g", i,
			      (double)rows[i]);
	}
}

static struct embeng_classic_gradients step(const float *const *tables)
{
	return (struct embeng_classic_gradients){.size = sizeof(struct embeng_classic_gradients),
						 .tables = tables,
						 .table_count = 1};
}

START_TEST(gradients_are_unpacked)
{
	const float *const tables[] = {gradients};
	struct embeng_activations a = {.size = sizeof(a)};

	for (int k = 0; k < 2; k++) {
		struct embeng_classic_gradients g = step(tables);
		struct embeng *e;
		struct embeng_classic *c = make(EMBENG_CLASSIC_TRAINING, &e);

		g.multiplier = k ? 0.5f : 0;
		enqueue(e, EMBENG_TRAIN);
		help_expect(embeng_classic_apply(c, e, &g, 0), -EPROTO, "not dequeued");
		help_expect_ok(embeng_dequeue(e, 0, -1, &a));
		help_expect_ok(embeng_classic_apply(c, e, &g, 0));
		expect_updated(e, k ? 0.5f : 1);
		embeng_close(e);
		embeng_classic_free(c);
	}
}
END_TEST

START_TEST(no_gradients_touch_rows)
{
	const float *const tables[] = {NULL};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_classic_gradients g = step(tables);
	struct embeng_table_stats stats = {.size = sizeof(stats)};
	struct embeng *e;
	struct embeng_classic *c = make(EMBENG_CLASSIC_TRAINING, &e);

	enqueue(e, EMBENG_TRAIN);
	help_expect_ok(embeng_dequeue(e, 0, -1, &a));
	help_expect_ok(embeng_classic_apply(c, e, &g, 0));
	expect_updated(e, 0);
	help_expect_ok(embeng_stats(e, 0, 0, &stats));
	ck_assert_uint_eq(stats.updated_rows, 6);
	embeng_close(e);
	embeng_classic_free(c);
}
END_TEST

/* No activations, no dequeue; what was refused is tried again. */
START_TEST(the_backward_pass_alone)
{
	const float *const tables[] = {gradients};
	const struct embeng_rate rate = {"no such", 1};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_classic_gradients g = step(tables);
	struct embeng *e;
	struct embeng_classic *c = make(EMBENG_CLASSIC_BACKWARD_PASS_ONLY, &e);
	float packed[16];

	help_expect(embeng_classic_apply(c, e, &g, 0), -EPROTO, "nothing is enqueued");
	enqueue(e, EMBENG_TRAIN);
	help_expect(embeng_classic_pack(c, &a, 0, packed, 16), -EPROTO, "backward pass");
	g.rates = &rate;
	g.rate_count = 1;
	help_expect(embeng_classic_apply(c, e, &g, -1), -ENOENT, "no such");
	g.rate_count = 0;
	help_expect_ok(embeng_classic_apply(c, e, &g, -1));
	expect_updated(e, 1);
	embeng_close(e);
	embeng_classic_free(c);
}
END_TEST

START_TEST(gradients_refused)
{
	const float *const tables[] = {gradients};
	struct embeng_classic_gradients g = step(tables);
	struct embeng *e, *other;
	struct embeng_classic *c = make(EMBENG_CLASSIC_TRAINING, &e);
	struct embeng_classic *reads = make(EMBENG_CLASSIC_INFERENCE, &other);

	help_expect(embeng_classic_apply(reads, other, &g, 0), -EPROTO, "the mode is inference");
	help_expect(embeng_classic_apply(c, other, &g, 0), -EINVAL, "another model");
	help_expect(embeng_classic_apply(NULL, e, &g, 0), -EINVAL, "must be given");
	help_expect(embeng_classic_apply(c, NULL, &g, 0), -EINVAL, "must be given");
	help_expect(embeng_classic_apply(c, e, NULL, 0), -EINVAL, "must be given");
	g.size = 8;
	help_expect(embeng_classic_apply(c, e, &g, 0), -EINVAL, "must be given");
	g = step(tables);
	g.table_count = 2;
	help_expect(embeng_classic_apply(c, e, &g, 0), -EINVAL, "gradients of 2 tables");
	g = step(NULL);
	help_expect(embeng_classic_apply(c, e, &g, 0), -EINVAL, "gradients of 0 tables");
	g = step(tables);
	g.replica = 1;
	help_expect(embeng_classic_apply(c, e, &g, 0), -ERANGE, "replica 1");
	embeng_close(e);
	embeng_close(other);
	embeng_classic_free(c);
	embeng_classic_free(reads);
}
END_TEST

START_TEST(zeros_of_one_dimension_are_empty_bags)
{
	const int32_t pooled[] = {0, 4}, walk[] = {7, 0};
	const int64_t shape[] = {2};
	const float want[16] = {0, 0, 70, 71, 0, 0, 0, 0, 40, 41};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e;
	struct embeng_classic *c = make(EMBENG_CLASSIC_TRAINING, &e);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	float got[16];

	help_expect_ok(embeng_batch_dense(b, 0, EMBENG_I32, pooled, 2, shape, 1));
	help_expect_ok(embeng_batch_dense(b, 1, EMBENG_I32, walk, 2, shape, 1));
	help_expect_ok(embeng_enqueue(e, b, 0));
	help_expect_ok(embeng_dequeue(e, 0, -1, &a));
	help_expect_ok(embeng_classic_pack(c, &a, 0, got, 16));
	expect_floats(got, want, 16);
	help_expect_ok(embeng_release(e, &a));
	embeng_batch_free(b);
	embeng_close(e);
	embeng_classic_free(c);
}
END_TEST

/* Only dense inputs: a sparse or ragged 0 is row 0. */
START_TEST(zeros_of_ragged_inputs_stay)
{
	const int32_t ids[] = {0, 1};
	const int64_t lengths[] = {2, 0}, shape[] = {2, 1, 1};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e;
	struct embeng_classic *c = make(EMBENG_CLASSIC_TRAINING, &e);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);

	help_expect_ok(embeng_batch_ragged(b, 0, EMBENG_I32, ids, 2, lengths, 2, NULL, 0));
	help_expect_ok(embeng_batch_ragged(b, 1, EMBENG_I32, ids, 2, lengths, 2, NULL, 0));
	help_expect_ok(embeng_enqueue(e, b, 0));
	help_expect_ok(embeng_dequeue(e, 0, -1, &a));
	ck_assert(a.features[0].data[0] == 10 && a.features[0].data[1] == 12);
	ck_assert_int_eq(a.features[1].lengths[0], 2);
	help_expect_ok(embeng_release(e, &a));
	help_expect(embeng_batch_dense(b, 0, EMBENG_I32, ids, 2, shape, 3), -EINVAL,
		    "[samples] or [samples, n]; rank 3");
	help_expect(embeng_batch_dense(b, 0, EMBENG_I32, ids, 2, NULL, 1), -EINVAL, "rank 0");
	help_expect(embeng_batch_dense(b, 0, EMBENG_I32, ids, 2, shape, 0), -EINVAL, "rank 0");
	help_expect(embeng_batch_dense(b, 0, EMBENG_I32, ids, 1, shape, 2), -EINVAL,
		    "1 ids for the dense shape");
	embeng_batch_free(b);
	embeng_close(e);
	embeng_classic_free(c);
}
END_TEST

/* -- batches by number --------------------------------------------------- */

static struct embeng_model *shaped(const int64_t *lengths, size_t count, bool one_table)
{
	struct embeng_model *m = embeng_model_new();

	for (size_t i = 0; i < count; i++) {
		struct embeng_table_config t = {.size = sizeof(t), .vocabulary_size = 4, .dim = 1};
		struct embeng_feature_config f = {
			.size = sizeof(f), .output_rank = 2, .output_shape = {lengths[i], 1}};

		f.table = !i || !one_table ? embeng_model_add_table(m, &t) : 0;
		ck_assert_int_eq(embeng_model_add_feature(m, &f), (int)i);
	}
	return m;
}

START_TEST(counts_by_common_divisor)
{
	const int64_t two[] = {4, 6}, same[] = {2, 2, 2};
	struct embeng_model *m = shaped(two, 2, false);
	int64_t batch = 0, counts[3] = {0};

	help_expect_ok(embeng_classic_counts(m, &batch, counts));
	ck_assert(batch == 2 && counts[0] == 2 && counts[1] == 3);
	embeng_model_free(m);
	m = shaped(two, 2, true);
	help_expect_ok(embeng_classic_counts(m, &batch, counts));
	ck_assert(batch == 2 && counts[0] == 5);
	embeng_model_free(m);
	m = shaped(same, 3, false);
	help_expect_ok(embeng_classic_counts(m, &batch, counts));
	ck_assert(batch == 2 && counts[0] == 1 && counts[1] == 1 && counts[2] == 1);
	embeng_model_free(m);
	m = embeng_model_new();
	help_expect_ok(embeng_classic_counts(m, &batch, counts));
	ck_assert_int_eq(batch, 0);
	embeng_model_free(m);
}
END_TEST

START_TEST(counts_refused)
{
	const int64_t open[] = {4, 0}, large[] = {INT64_MAX, INT64_MAX};
	const int64_t prime[] = {INT64_MAX, INT64_MAX - 1};
	struct embeng_model *m = shaped(open, 2, false);
	int64_t batch = 7, counts[2] = {7, 7};

	help_expect(embeng_classic_counts(m, &batch, counts), -EINVAL, "feature_1: its output");
	help_expect(embeng_classic_counts(NULL, &batch, counts), -EINVAL, "must be given");
	help_expect(embeng_classic_counts(m, NULL, counts), -EINVAL, "must be given");
	help_expect(embeng_classic_counts(m, &batch, NULL), -EINVAL, "must be given");
	embeng_model_free(m);
	m = shaped(large, 2, true);
	help_expect_ok(embeng_classic_counts(m, &batch, counts));
	ck_assert(batch == INT64_MAX && counts[0] == 2);
	embeng_model_free(m);
	m = shaped(prime, 2, true);
	help_expect(embeng_classic_counts(m, &batch, counts), -ERANGE, "table_0: num_features");
	ck_assert(batch == INT64_MAX && counts[0] == 2);
	embeng_model_free(m);
}
END_TEST

RUN_SUITE("classic steps", activations_are_packed_per_sample, gradients_are_unpacked,
	  no_gradients_touch_rows, the_backward_pass_alone, gradients_refused,
	  zeros_of_one_dimension_are_empty_bags, zeros_of_ragged_inputs_stay,
	  counts_by_common_divisor, counts_refused)
