// SPDX-License-Identifier: MIT
/*
 * Input and output shapes of features: which ones the model leaves open, and which ones the first
 * batch fixes.
 */
#include "test_batch.h"

static const struct feature open_feature = {.name = "open"};

static struct feature shaped(const int64_t *shape, size_t rank)
{
	struct feature f = {.name = "shaped", .output_rank = rank};

	memcpy(f.output_shape, shape, rank * sizeof(*shape));
	return f;
}

static struct input input_of(const int64_t *shape, size_t rank)
{
	struct input in = {.form = INPUT_CSR, .rank = rank};

	memcpy(in.shape, shape, rank * sizeof(*shape));
	in.samples = (size_t)shape_product(shape, rank, false);
	return in;
}

static struct output output_of(const int64_t *shape, size_t rank)
{
	struct output out = {.rank = rank, .fixed = true};

	memcpy(out.shape, shape, rank * sizeof(*shape));
	return out;
}

static void assert_resolved(const struct feature *f, struct input in, struct output out,
			    const int64_t *shape, size_t rank)
{
	struct output got = {0};

	ck_assert_int_eq(shape_resolve(f, &in, &out, &got), 0);
	ck_assert(got.fixed);
	ck_assert_uint_eq(got.rank, rank);
	ck_assert_mem_eq(got.shape, shape, rank * sizeof(*shape));
}

static int refused(const struct feature *f, struct input in, struct output out)
{
	struct output got = {.rank = 77};
	int code = shape_resolve(f, &in, &out, &got);

	ck_assert_uint_eq(got.rank, 77);
	return code;
}

static const struct output unknown;

START_TEST(test_first_batch_fixes_what_is_open)
{
	assert_resolved(&open_feature, input_of(S(6), 1), unknown, S(6), 1);
	assert_resolved(&open_feature, input_of(S(2, 3), 2), unknown, S(2, 3), 2);
	assert_resolved(&open_feature, input_of(S(6), 1), output_of(S(6), 1), S(6), 1);
	ASSERT_REFUSED(refused(&open_feature, input_of(S(5), 1), output_of(S(6), 1)), EINVAL,
		       "open", "[5]", "[6]");
}
END_TEST

START_TEST(test_configured_shape)
{
	struct feature f = shaped(S(2, 3), 2);

	assert_resolved(&f, input_of(S(2, 3), 2), unknown, S(2, 3), 2);
	assert_resolved(&f, input_of(S(6), 1), unknown, S(2, 3), 2);
	ASSERT_REFUSED(refused(&f, input_of(S(3, 2), 2), unknown), EINVAL, "shaped", "[3, 2]",
		       "[2, 3]", "inconsistent shape");
	ASSERT_REFUSED(refused(&f, input_of(S(2, 3, 1), 3), unknown), EINVAL, "shaped",
		       "[2, 3, 1]");
}
END_TEST

START_TEST(test_unknown_dims_match_anything)
{
	struct feature f = shaped(S(0, 3), 2);

	assert_resolved(&f, input_of(S(5, 3), 2), unknown, S(5, 3), 2);
	ASSERT_REFUSED(refused(&f, input_of(S(5, 2), 2), unknown), EINVAL, "shaped", "[5, 2]",
		       "[?, 3]");
	/* a shape that the first batch has fixed is compared first, then that of the model */
	ASSERT_REFUSED(refused(&f, input_of(S(4, 3), 2), output_of(S(5, 3), 2)), EINVAL, "[4, 3]",
		       "[5, 3]");
	ASSERT_REFUSED(refused(&f, input_of(S(6), 1), unknown), EINVAL, "shaped",
		       "not fully defined", "[?, 3]");
}
END_TEST

START_TEST(test_reshape_of_rank_1_and_2)
{
	struct feature f = shaped(S(2, 3, 2), 3);

	assert_resolved(&f, input_of(S(12), 1), unknown, S(2, 3, 2), 3);
	assert_resolved(&f, input_of(S(4, 3), 2), unknown, S(2, 3, 2), 3);
	ASSERT_REFUSED(refused(&f, input_of(S(4), 1), unknown), EINVAL, "shaped", "4 samples", "12",
		       "[2, 3, 2]", "should be", "factor");
	ASSERT_REFUSED(refused(&f, input_of(S(5), 1), unknown), EINVAL, "5 samples", "12");
	ASSERT_REFUSED(refused(&f, input_of(S(24), 1), unknown), EINVAL, "24 samples", "12");
	f = shaped(S(1, 2, 3, 2), 4);
	ASSERT_REFUSED(refused(&f, input_of(S(2, 3, 2), 3), unknown), EINVAL, "[2, 3, 2]",
		       "[1, 2, 3, 2]");
}
END_TEST

START_TEST(test_empty_inputs)
{
	struct feature f = shaped(S(0, 3), 2);
	struct input none = input_of(S(0), 1), partly = input_of(S(2, 0), 2),
		     some = input_of(S(2, 1), 2);

	assert_resolved(&open_feature, none, unknown, S(0), 1);
	assert_resolved(&open_feature, partly, unknown, S(2, 0), 2);
	assert_resolved(&f, input_of(S(0, 3), 2), unknown, S(0, 3), 2);
	ASSERT_REFUSED(refused(&f, partly, unknown), EINVAL, "shaped", "[2, 0]", "[?, 3]");
	f = shaped(S(2, 3), 2);
	ASSERT_REFUSED(refused(&f, none, unknown), EINVAL, "shaped", "0 samples", "6 positions");
	ck_assert_int_eq(shape_check_filled(&open_feature, &some), 0);
	ASSERT_REFUSED(shape_check_filled(&open_feature, &none), EINVAL, "open", "empty");
	ASSERT_REFUSED(shape_check_filled(&open_feature, &partly), EINVAL, "open", "dimension 1");
}
END_TEST

START_TEST(test_products)
{
	ck_assert_int_eq(shape_product(S(2, 3, 4), 3, false), 24);
	ck_assert_int_eq(shape_product(S(2, 0, 4), 3, false), 0);
	ck_assert_int_eq(shape_product(S(2, 0, 4), 3, true), 8);
	ck_assert_int_eq(shape_product(S(2, -1), 2, true), -1);
	ck_assert_int_eq(shape_product(S((int64_t)1 << 31, (int64_t)1 << 31), 2, false),
			 (int64_t)1 << 62);
	ck_assert_int_eq(shape_product(S((int64_t)1 << 32, (int64_t)1 << 31), 2, false), -1);
	ck_assert_int_eq(shape_product(S(0, INT64_MAX, 2), 3, false), -1);
}
END_TEST

START_TEST(test_text)
{
	int64_t least[12];
	char text[SHAPE_TEXT];

	shape_text(text, S(2, 0, -3), 3, true);
	ck_assert_str_eq(text, "[2, ?, -3]");
	shape_text(text, S(2, 0), 2, false);
	ck_assert_str_eq(text, "[2, 0]");
	shape_text(text, NULL, 0, false);
	ck_assert_str_eq(text, "[]");
	for (size_t i = 0; i < COUNT(least); i++)
		least[i] = INT64_MIN;
	shape_text(text, least, COUNT(least), false);
	ck_assert_uint_lt(strlen(text), SHAPE_TEXT);
	ck_assert_str_eq(text + strlen(text) - 3, "...");
}
END_TEST

START_TEST(test_batch_resolves_every_feature)
{
	const int64_t ids[6] = {0};
	struct output outputs[3] = {0}, resolved[3] = {0};
	struct handle h = handle_new(S(2, 3), 2);
	struct embeng_batch *b = embeng_batch_new(&h.e, EMBENG_TRAIN, 0);

	h.batch = b;
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 5, S(5), 1), 0);
	ck_assert_int_eq(embeng_batch_ragged(b, 1, EMBENG_I64, ids, 3, S(1, 2), 2, NULL, 0), 0);
	ASSERT_REFUSED(batch_check(b, outputs, resolved), EINVAL, "shaped", "no input");
	ck_assert_uint_eq(resolved[0].rank, 0);
	ck_assert_int_eq(embeng_batch_dense(b, 2, EMBENG_I64, ids, 6, S(6), 1), 0);
	ck_assert_int_eq(batch_check(b, outputs, resolved), 0);
	ck_assert_uint_eq(outputs[0].rank, 0);
	ck_assert_uint_eq(resolved[0].rank, 1);
	ck_assert_int_eq(resolved[0].shape[0], 5);
	ck_assert_uint_eq(resolved[1].rank, 2);
	ck_assert_int_eq(resolved[1].shape[1], 4);
	ck_assert_uint_eq(resolved[2].rank, 2);
	ck_assert_int_eq(resolved[2].shape[1], 3);
	memcpy(outputs, resolved, sizeof(outputs));
	ck_assert_int_eq(embeng_batch_ragged(b, 1, EMBENG_I64, ids, 3, S(1, 1, 1), 3, NULL, 0), 0);
	ASSERT_REFUSED(batch_check(b, outputs, resolved), EINVAL, "seq", "[3, 4]", "[2, 4]");
	handle_free(&h);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_first_batch_fixes_what_is_open,
		test_configured_shape,
		test_unknown_dims_match_anything,
		test_reshape_of_rank_1_and_2,
		test_empty_inputs,
		test_products,
		test_text,
		test_batch_resolves_every_feature,
	};

	return run_tests("shape", tests, COUNT(tests));
}
