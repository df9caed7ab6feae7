/* SPDX-License-Identifier: MIT */
/* Inputs of lookups on the CPU, and a model on an open engine to look them up in. */
#ifndef TEST_SERVING_HELP_H
#define TEST_SERVING_HELP_H

#include "session_help.h"

#define I(...) ((const int64_t[]){__VA_ARGS__})
#define F(...) ((const float[]){__VA_ARGS__})
#define COUNT(...) (sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static inline struct embeng_serving_input dense_input(int feature, const int64_t *ids, size_t count)
{
	return (struct embeng_serving_input){
		.size = sizeof(struct embeng_serving_input),
		.feature = feature,
		.form = EMBENG_DENSE,
		.type = EMBENG_I64,
		.ids = ids,
		.id_count = count,
	};
}

/* Bags of @ids between @splits. */
static inline struct embeng_serving_input ragged_input(int feature, const int64_t *ids,
						       const int64_t *splits, size_t split_count)
{
	struct embeng_serving_input in = dense_input(feature, ids, (size_t)splits[split_count - 1]);

	in.form = EMBENG_RAGGED;
	in.row_splits = splits;
	in.split_count = split_count;
	return in;
}

static inline struct embeng_serving_input sparse_input(int feature, const int64_t *ids,
						       size_t count, const int64_t *indices,
						       const int64_t *shape, size_t rank)
{
	struct embeng_serving_input in = dense_input(feature, ids, count);

	in.form = EMBENG_SPARSE;
	in.indices = indices;
	in.shape = shape;
	in.rank = rank;
	return in;
}

static inline void weigh(struct embeng_serving_input *in, const float *weights)
{
	in->weights = weights;
	in->weight_count = in->id_count;
}

/* Features of the model of open_tables(), by number. */
enum { SUM_BAG, MEAN_BAG, SQRTN_BAG, SEQUENCE, SHAPED, UNCHECKED, OPEN_SHAPE, FLAT };

static inline void add_table(struct embeng_model *m, const char *name,
			     enum embeng_combiner_name combiner)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = name,
					.vocabulary_size = 4,
					.dim = 2,
					.combiner = combiner,
					.optimizer = embeng_sgd(1)};

	ck_assert_int_ge(embeng_model_add_table(m, &t), 0);
}

static inline void add_feature(struct embeng_model *m, struct embeng_feature_config f)
{
	f.size = sizeof(f);
	ck_assert_int_ge(embeng_model_add_feature(m, &f), 0);
}

/* Tables "sum", "mean", "sqrtn" of 4 x 2, and the features above. */
static inline struct embeng_model *tables_model(void)
{
	struct embeng_model *m = embeng_model_new();

	add_table(m, "sum", EMBENG_SUM);
	add_table(m, "mean", EMBENG_MEAN);
	add_table(m, "sqrtn", EMBENG_SQRTN);
	add_feature(m, (struct embeng_feature_config){.name = "sum_bag", .table = 0});
	add_feature(m, (struct embeng_feature_config){.name = "mean_bag", .table = 1});
	add_feature(m, (struct embeng_feature_config){.name = "sqrtn_bag", .table = 2});
	add_feature(m, (struct embeng_feature_config){
			       .name = "sequence", .table = 1, .max_sequence_length = 2});
	add_feature(
		m, (struct embeng_feature_config){
			   .name = "shaped", .table = 1, .output_rank = 2, .output_shape = {2, 2}});
	add_feature(m, (struct embeng_feature_config){
			       .name = "unchecked", .table = 1, .unchecked_serving = 1});
	add_feature(m, (struct embeng_feature_config){.name = "open_shape",
						      .table = 1,
						      .output_rank = 2,
						      .output_shape = {0, 2}});
	add_feature(m,
		    (struct embeng_feature_config){.name = "flat", .table = 1, .output_rank = 1});
	return m;
}

/* Row r of every table is (10 r, 10 r + 1). */
static inline struct embeng *open_tables(void)
{
	const float rows[] = {0, 1, 10, 11, 20, 21, 30, 31};
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_model *m = tables_model();
	struct embeng *e = NULL;

	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	for (int t = 0; t < 3; t++)
		ck_assert_int_eq(embeng_rows_write(e, t, NULL, NULL, 4, rows), 0);
	return e;
}

/* Looks one input up and compares shape and numbers, which end the list. */
static inline void expect_lookup(const struct embeng_serving *s, struct embeng_serving_input in,
				 const int64_t *shape, size_t rank, const float *want,
				 size_t elements)
{
	int64_t got_shape[EMBENG_MAX_RANK + 1];
	struct embeng_error error = {.size = sizeof(error)};
	float out[64];
	size_t got_rank;
	int ret;

	ck_assert_uint_le(elements, 60);
	for (size_t i = 0; i < 64; i++)
		out[i] = -77;
	in.out = out;
	in.out_elements = elements;
	ret = embeng_serving_shape(s, &in, got_shape, &got_rank);
	embeng_last_error(&error);
	ck_assert_msg(!ret, "shape: %s", error.text);
	ck_assert_uint_eq(got_rank, rank);
	for (size_t i = 0; i < rank; i++)
		ck_assert_int_eq(got_shape[i], shape[i]);
	ret = embeng_serving_lookup(s, &in, 1);
	embeng_last_error(&error);
	ck_assert_msg(!ret, "lookup: %s", error.text);
	expect_floats(out, want, elements);
	ck_assert(out[elements] == -77);
}

/* Checks that a lookup is refused with these words and writes nothing. */
static inline void expect_refusal(const struct embeng_serving *s, struct embeng_serving_input in,
				  int code, const char *words)
{
	float out[64];

	for (size_t i = 0; i < 64; i++)
		out[i] = -77;
	if (!in.out && !in.out_elements) {
		in.out = out;
		in.out_elements = 64;
	}
	ck_assert_int_eq(embeng_serving_lookup(s, &in, 1), code);
	expect_text(words);
	for (size_t i = 0; i < 64; i++)
		ck_assert(out[i] == -77);
}

#define SHAPE(...) I(__VA_ARGS__), COUNT(__VA_ARGS__)
#define WANT(...) F(__VA_ARGS__), COUNT(__VA_ARGS__)

#endif
