// SPDX-License-Identifier: MIT
/*
 * Output shapes that are fixed before the first batch (docs/spec/semantics.md 5.2), and the batches
 * that are refused from then on.
 */
#include "test_model.h"

#define SHAPE(...) \
	((struct embeng_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
			       .dims = {__VA_ARGS__}})
#define OPEN ((struct embeng_shape){0})

/* One table; a feature per entry: a sequence length, or an output shape. */
struct wanted {
	int64_t sequence;
	struct embeng_shape output;
};

static struct embeng_model *model_of(const struct wanted *wanted, size_t count)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("t");

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	for (size_t i = 0; i < count; i++) {
		struct embeng_feature_config f = feature_config(NULL);

		f.max_sequence_length = wanted[i].sequence;
		f.output_rank = wanted[i].output.rank;
		memcpy(f.output_shape, wanted[i].output.dims, sizeof(f.output_shape));
		ck_assert_int_eq(embeng_model_add_feature(m, &f), (int)i);
	}
	return m;
}

#define MODEL(...) \
	model_of((const struct wanted[]){__VA_ARGS__}, \
		 COUNT(((const struct wanted[]){__VA_ARGS__})))

static void assert_shape(const struct embeng_model *m, size_t feature, struct embeng_shape want)
{
	struct embeng_shape got = {.rank = 77};

	ck_assert_int_eq(embeng_model_output_shape(m, feature, &got), 0);
	ck_assert_uint_eq(got.rank, want.rank);
	ck_assert_mem_eq(got.dims, want.dims, want.rank * sizeof(got.dims[0]));
}

static int shapes(struct embeng_model *m, struct embeng_shape shape)
{
	return embeng_model_build_shapes(m, &shape, 1);
}

START_TEST(test_integer)
{
	struct embeng_model *m = MODEL({0}, {.sequence = 5}, {.output = SHAPE(7)},
				       {.output = SHAPE(2, 3)}, {.output = SHAPE(0)},
				       {.sequence = 1});

	assert_shape(m, 0, OPEN);
	assert_shape(m, 2, SHAPE(7));
	assert_shape(m, 4, SHAPE(0));
	ck_assert_int_eq(embeng_model_build(m, 7), 0);
	assert_shape(m, 0, SHAPE(7));
	assert_shape(m, 1, SHAPE(7, 5));
	assert_shape(m, 2, SHAPE(7));
	assert_shape(m, 3, SHAPE(2, 3));
	assert_shape(m, 4, SHAPE(7));
	assert_shape(m, 5, SHAPE(7, 1));
	embeng_model_free(m);
}
END_TEST

START_TEST(test_second_build_does_nothing)
{
	struct embeng_model *m = MODEL({0}, {0});

	ck_assert_int_eq(
		embeng_model_build_shapes(m, (const struct embeng_shape[]){SHAPE(4), OPEN}, 2), 0);
	assert_shape(m, 1, OPEN);
	ck_assert_int_eq(embeng_model_build(m, 9), 0);
	assert_shape(m, 0, SHAPE(4));
	assert_shape(m, 1, SHAPE(9));
	ck_assert_int_eq(embeng_model_build(m, 3), 0);
	assert_shape(m, 0, SHAPE(4));
	assert_shape(m, 1, SHAPE(9));
	embeng_model_free(m);
}
END_TEST

START_TEST(test_shapes_of_inputs)
{
	static const struct {
		struct wanted feature;
		struct embeng_shape input, want;
	} cases[] = {
		{{0}, SHAPE(6), SHAPE(6)},
		{{0}, SHAPE(6, 9), SHAPE(6)},
		{{0}, SHAPE(6, 1), SHAPE(6)},
		{{0}, SHAPE(6, 0), SHAPE(6)},
		{{0}, SHAPE(2, 3, 4), SHAPE(2, 3)},
		{{0}, SHAPE(1, 2, 3, 4, 5, 6, 7, 8), SHAPE(1, 2, 3, 4, 5, 6, 7)},
		{{.sequence = 5}, SHAPE(6, 9), SHAPE(6, 5)},
		{{.sequence = 5}, SHAPE(6, 0), SHAPE(6, 5)},
		{{.sequence = 5}, SHAPE(6, 1), SHAPE(6)},
		{{.sequence = 5}, SHAPE(6), SHAPE(6)},
		{{.sequence = 5}, SHAPE(2, 3, 9), SHAPE(2, 3)},
		/* an output shape: compared, unknown lengths are wildcards on both sides */
		{{.output = SHAPE(2, 3)}, SHAPE(2, 3, 9), SHAPE(2, 3)},
		{{.output = SHAPE(0, 3)}, SHAPE(2, 3, 9), SHAPE(2, 3)},
		{{.output = SHAPE(2, 3)}, SHAPE(0, 3, 9), SHAPE(2, 3)},
		{{.output = SHAPE(0, 3)}, SHAPE(2, 0, 9), SHAPE(2, 3)},
		{{.output = SHAPE(2, 3)}, OPEN, SHAPE(2, 3)},
		/* a rank of 1 or 2 below it is the reshape: not compared */
		{{.output = SHAPE(2, 3)}, SHAPE(5), SHAPE(2, 3)},
		{{.output = SHAPE(2, 3, 2)}, SHAPE(5, 5, 5), SHAPE(2, 3, 2)},
		/* an output shape makes a feature pooled */
		{{.sequence = 5, .output = SHAPE(6)}, SHAPE(6, 9), SHAPE(6)},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct embeng_model *m = model_of(&cases[i].feature, 1);

		ck_assert_int_eq(shapes(m, cases[i].input), 0);
		assert_shape(m, 0, cases[i].want);
		embeng_model_free(m);
	}
}
END_TEST

#define REFUSED(feature, input, errno_, ...) \
	do { \
		const struct wanted wanted_ = feature; \
		struct embeng_model *m_ = model_of(&wanted_, 1); \
\
		ASSERT_REFUSED(shapes(m_, input), errno_, "feature_0", __VA_ARGS__); \
		assert_shape(m_, 0, wanted_.output); \
		embeng_model_free(m_); \
	} while (0)
#define OF(...) ((struct wanted){__VA_ARGS__})

START_TEST(test_refusals)
{
	struct embeng_shape huge = SHAPE((int64_t)1 << 32, (int64_t)1 << 31, 1);

	REFUSED(OF(.output = SHAPE(2, 3)), SHAPE(2, 4, 9), EINVAL, "inconsistent shape", "[2, 4]",
		"[2, 3]");
	REFUSED(OF(.output = SHAPE(4)), SHAPE(5), EINVAL, "inconsistent shape", "[5]", "[4]");
	REFUSED(OF(.output = SHAPE(6)), SHAPE(2, 3, 9), EINVAL, "inconsistent shape", "[2, 3]",
		"[6]");
	REFUSED(OF(.output = SHAPE(1, 2, 3, 2)), SHAPE(1, 2, 3, 2), EINVAL, "inconsistent shape",
		"[1, 2, 3]");
	REFUSED(OF(0), SHAPE(0), EINVAL, "not fully defined", "[?]");
	REFUSED(OF(0), SHAPE(2, 0, 9), EINVAL, "not fully defined", "[2, ?]");
	REFUSED(OF(.sequence = 3), SHAPE(0, 4), EINVAL, "not fully defined", "[?, 3]");
	REFUSED(OF(.output = SHAPE(0, 3)), SHAPE(0, 3, 9), EINVAL, "not fully defined", "[?, 3]");
	REFUSED(OF(.output = SHAPE(0, 3)), SHAPE(6), EINVAL, "not fully defined", "[?, 3]");
	REFUSED(OF(0), SHAPE(2, -1), ERANGE, "-1", "length 1");
	REFUSED(OF(0), huge, ERANGE, "64 bits");
	huge = SHAPE(1);
	huge.rank = EMBENG_MAX_RANK + 1;
	REFUSED(OF(0), huge, EINVAL, "rank 9", "8");
}
END_TEST

START_TEST(test_failure_changes_nothing)
{
	struct embeng_model *m = MODEL({0}, {.output = SHAPE(0, 3)}, {0});

	ASSERT_REFUSED(embeng_model_build(m, 6), EINVAL, "feature_1", "not fully defined");
	ASSERT_REFUSED(embeng_model_build(m, 0), ERANGE, "batch_size 0");
	ASSERT_REFUSED(embeng_model_build_shapes(m, &SHAPE(6), 1), EINVAL, "1 shapes", "3");
	for (size_t f = 0; f < 3; f += 2)
		assert_shape(m, f, OPEN);
	assert_shape(m, 1, SHAPE(0, 3));
	embeng_model_free(m);
}
END_TEST

START_TEST(test_arguments)
{
	struct embeng_model *m = MODEL({0});
	struct embeng_shape shape = {.rank = 77};

	ASSERT_REFUSED(embeng_model_build(NULL, 1), EINVAL, "no model");
	ASSERT_REFUSED(embeng_model_build_shapes(NULL, &shape, 1), EINVAL, "model");
	ASSERT_REFUSED(embeng_model_build_shapes(m, NULL, 1), EINVAL, "shapes");
	ASSERT_REFUSED(embeng_model_output_shape(NULL, 0, &shape), EINVAL, "model");
	ASSERT_REFUSED(embeng_model_output_shape(m, 0, NULL), EINVAL, "shape");
	ASSERT_REFUSED(embeng_model_output_shape(m, 1, &shape), ENOENT, "feature 1");
	ck_assert_uint_eq(shape.rank, 77);
	embeng_model_free(m);
}
END_TEST

/* Samples of one id each into feature 0, ragged. */
static int enqueue(struct embeng *e, size_t samples)
{
	const int64_t ids[32] = {0};
	int64_t lengths[32];
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	int ret;

	for (size_t i = 0; i < samples; i++)
		lengths[i] = 1;
	ret = embeng_batch_ragged(b, 0, EMBENG_I64, ids, samples, lengths, samples, NULL, 0);
	ck_assert_int_eq(ret, 0);
	ret = embeng_enqueue(e, b, 0);
	embeng_batch_free(b);
	return ret;
}

static struct embeng *opened(struct embeng_model *m)
{
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_open("soft:cores=1,memory=1M", m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

static void take(struct embeng *e, struct embeng_shape want)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_uint_eq(a.features[0].rank, want.rank);
	ck_assert_mem_eq(a.features[0].shape, want.dims, want.rank * sizeof(want.dims[0]));
	ck_assert_int_eq(embeng_release(e, &a), 0);
}

START_TEST(test_first_batch_must_fit)
{
	struct embeng_model *m = MODEL({0});
	struct embeng *e;

	ck_assert_int_eq(embeng_model_build(m, 4), 0);
	e = opened(m);
	assert_shape(embeng_get_model(e), 0, SHAPE(4));
	ASSERT_REFUSED(enqueue(e, 5), EINVAL, "feature_0", "inconsistent shape", "[5]", "[4]",
		       "build");
	ck_assert_int_eq(enqueue(e, 4), 0);
	take(e, SHAPE(4, 3));
	embeng_close(e);
}
END_TEST

START_TEST(test_first_batch_of_a_sequence_must_fit)
{
	struct embeng_model *m = MODEL({.sequence = 2});
	struct embeng *e;

	ck_assert_int_eq(embeng_model_build(m, 4), 0);
	e = opened(m);
	ASSERT_REFUSED(enqueue(e, 3), EINVAL, "[3, 2]", "[4, 2]");
	ck_assert_int_eq(enqueue(e, 4), 0);
	take(e, SHAPE(4, 2, 3));
	embeng_close(e);
}
END_TEST

/* Built [2, 3] out of [2, 3, bag]: six flat samples fill it in row-major order. */
START_TEST(test_flat_batch_fills_what_was_built)
{
	struct embeng_model *m = MODEL({0});
	struct embeng *e;

	ck_assert_int_eq(shapes(m, SHAPE(2, 3, 9)), 0);
	e = opened(m);
	ASSERT_REFUSED(enqueue(e, 5), EINVAL, "5 samples", "6 positions");
	ck_assert_int_eq(enqueue(e, 6), 0);
	take(e, SHAPE(2, 3, 3));
	embeng_close(e);
}
END_TEST

/* A shape says nothing about what is stored: checkpoints of either are the other's. */
START_TEST(test_hash_is_the_same)
{
	struct embeng_model *m = MODEL({0});
	uint64_t hash = embeng_model_hash(m);

	ck_assert_int_eq(embeng_model_build(m, 4), 0);
	ck_assert_uint_eq(embeng_model_hash(m), hash);
	embeng_model_free(m);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_integer,
		test_second_build_does_nothing,
		test_shapes_of_inputs,
		test_refusals,
		test_failure_changes_nothing,
		test_arguments,
		test_first_batch_must_fit,
		test_first_batch_of_a_sequence_must_fit,
		test_flat_batch_fills_what_was_built,
		test_hash_is_the_same,
	};

	return run_tests("build", tests, COUNT(tests));
}
