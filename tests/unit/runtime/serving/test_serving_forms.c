// SPDX-License-Identifier: MIT
/* Forms, shapes, pruning and refusals, with values worked out by hand, over a live engine. */
#include <math.h>

#include "serving_help.h"
#include "suite.h"

static struct embeng *e;
static struct embeng_serving *s;

static void set_up(void)
{
	struct embeng_error error = {.size = sizeof(error)};

	e = open_tables();
	ck_assert_msg(!embeng_serving_live(e, NULL, &s, &error), "%s", error.text);
}

static void tear_down(void)
{
	embeng_serving_close(s);
	embeng_close(e);
}

START_TEST(dense_of_any_rank_is_a_gather)
{
	struct embeng_serving_input in = dense_input(MEAN_BAG, I(3, 1, 3, 0), 4);

	in.shape = I(4);
	in.rank = 1;
	expect_lookup(s, in, SHAPE(4, 2), WANT(30, 31, 10, 11, 30, 31, 0, 1));
	in.shape = I(2, 2, 1);
	in.rank = 3;
	expect_lookup(s, in, SHAPE(2, 2, 1, 2), WANT(30, 31, 10, 11, 30, 31, 0, 1));
	in.id_count = 1;
	in.shape = NULL;
	in.rank = 0;
	expect_lookup(s, in, SHAPE(2), WANT(30, 31));
	in.id_count = 0;
	in.shape = I(0);
	in.rank = 1;
	in.out = NULL;
	ck_assert_int_eq(embeng_serving_lookup(s, &in, 1), 0);
}
END_TEST

START_TEST(dense_refusals)
{
	struct embeng_serving_input in = dense_input(MEAN_BAG, I(3, 1), 2);

	in.shape = I(2, 2);
	in.rank = 2;
	expect_refusal(s, in, -EINVAL, "feature mean_bag: 2 ids for the dense shape [2, 2]");
	in.rank = 9;
	expect_refusal(s, in, -EINVAL, "rank 0 to 8; rank 9 was given");
	in.shape = NULL;
	in.rank = 1;
	expect_refusal(s, in, -EINVAL, "rank 1 was given, and NULL");
	in.shape = I(2);
	weigh(&in, F(1, 1));
	expect_refusal(s, in, -EINVAL,
		       "feature mean_bag: weights are given, but the input is dense");
	in.weights = NULL;
	in.weight_count = 0;
	in.feature = SEQUENCE;
	expect_refusal(s, in, -EINVAL, "sequence feature, but the input is dense");
}
END_TEST

START_TEST(narrow_ids)
{
	const int32_t ids[] = {3, -1, 1};
	struct embeng_serving_input in = sparse_input(MEAN_BAG, NULL, 3, I(0, 0, 0, 1, 1, 0),
						      I(2, 2), 2);

	in.ids = ids;
	in.type = EMBENG_I32;
	expect_lookup(s, in, SHAPE(2, 2), WANT(30, 31, 10, 11));
}
END_TEST

/* Empty bags in the middle and at the end; the second bag is pruned away. */
START_TEST(sparse_prunes)
{
	const int64_t places[] = {0, 0, 0, 1, 1, 0, 3, 0, 3, 1};
	struct embeng_serving_input in = sparse_input(MEAN_BAG, I(1, -5, -1, 2, 3), 5, places,
						      I(5, 3), 2);

	expect_lookup(s, in, SHAPE(5, 2), WANT(10, 11, 0, 0, 0, 0, 25, 26, 0, 0));
	weigh(&in, F(2, 1, 1, 0, 3));
	expect_lookup(s, in, SHAPE(5, 2), WANT(10, 11, 0, 0, 0, 0, 30, 31, 0, 0));
	weigh(&in, F(2, 1, 1, -1, -2));
	expect_lookup(s, in, SHAPE(5, 2), WANT(10, 11, 0, 0, 0, 0, 0, 0, 0, 0));
	in.feature = SQRTN_BAG;
	weigh(&in, F(2, 1, 1, 3, 4));
	expect_lookup(s, in, SHAPE(5, 2),
		      WANT(10, 11, 0, 0, 0, 0, 36, (3 * 21 + 4 * 31) / 5.0f, 0, 0));
	in.feature = SUM_BAG;
	weigh(&in, F(2, 1, 1, -1, 3));
	expect_lookup(s, in, SHAPE(5, 2), WANT(20, 22, 0, 0, 0, 0, 70, 72, 0, 0));
}
END_TEST

/* Whatever the form, and also where validation would drop the id. */
START_TEST(weights_that_are_not_finite)
{
	static const float bad[] = {NAN, INFINITY, -INFINITY};
	const int64_t places[] = {0, 0, 0, 1, 2, 0};
	struct embeng_serving_input in;

	for (int i = 0; i < 3; i++) {
		in = sparse_input(MEAN_BAG, I(1, 2, 3), 3, places, I(3, 2), 2);
		weigh(&in, F(1, 1, bad[i]));
		expect_refusal(s, in, -ERANGE, "feature mean_bag, sample 2: weight 2 is ");
		in = ragged_input(SUM_BAG, I(1, 2, 3), I(0, 0, 2, 3), 4);
		weigh(&in, F(1, bad[i], 1));
		expect_refusal(s, in, -ERANGE, "feature sum_bag, sample 1: weight 1 is ");
		expect_refusal(s, in, -ERANGE, "not finite; correct it");
	}
	in = ragged_input(SUM_BAG, I(1, 2, 3), I(0, 0, 2, 3), 4);
	weigh(&in, F(0, 0, 0x1p127f));
	expect_lookup(s, in, SHAPE(3, 2), WANT(0, 0, 0, 0, 30 * 0x1p127f, 31 * 0x1p127f));
}
END_TEST

/* An id that validation drops for its weight is not checked: it may be outside the table. */
START_TEST(sparse_prunes_before_it_checks)
{
	struct embeng_serving_input in = sparse_input(MEAN_BAG, I(1, 99), 2, I(0, 0, 0, 1), I(1, 2),
						      2);

	weigh(&in, F(1, 0));
	expect_lookup(s, in, SHAPE(1, 2), WANT(10, 11));
	in.feature = SUM_BAG;
	expect_refusal(s, in, -ERANGE, "feature sum_bag, sample 0: id 99 is outside table sum");
}
END_TEST

START_TEST(unchecked_takes_weights_as_they_are)
{
	struct embeng_serving_input in = sparse_input(UNCHECKED, I(1, 3), 2, I(0, 0, 0, 1), I(1, 2),
						      2);

	weigh(&in, F(3, -1));
	expect_lookup(s, in, SHAPE(1, 2), WANT(0, 1));
	weigh(&in, F(1, -1));
	expect_lookup(s, in, SHAPE(1, 2), WANT(0, 0));
	in.weights = NULL;
	in.weight_count = 0;
	in.ids = I(1, -3);
	expect_refusal(s, in, -ERANGE, "feature unchecked, sample 0: id -3 is outside table mean");
	/* from rank 3 on ids are always validated */
	in.indices = I(0, 0, 0, 0, 0, 1);
	in.shape = I(1, 1, 2);
	in.rank = 3;
	expect_lookup(s, in, SHAPE(1, 1, 2), WANT(10, 11));
}
END_TEST

START_TEST(sparse_of_rank_3_keeps_its_leading_dims)
{
	const int64_t places[] = {0, 0, 1, 0, 2, 0, 0, 2, 4, 1, 0, 0};
	struct embeng_serving_input in = sparse_input(SHAPED, I(1, 2, 3, 0), 4, places, I(2, 3, 5),
						      3);
	const float want[] = {10, 11, 0, 0, 25, 26, 0, 1, 0, 0, 0, 0};

	expect_lookup(s, in, SHAPE(2, 3, 2), want, 12);
	in.feature = SEQUENCE;
	expect_lookup(s, in, SHAPE(2, 3, 2), want, 12);
}
END_TEST

START_TEST(sparse_sequence)
{
	const int64_t places[] = {0, 0, 0, 1, 0, 2, 2, 0};
	struct embeng_serving_input in = sparse_input(SEQUENCE, I(1, 2, 3, 3), 4, places, I(3, 3),
						      2);

	expect_lookup(s, in, SHAPE(3, 2, 2), WANT(10, 11, 20, 21, 0, 0, 0, 0, 30, 31, 0, 0));
	in.ids = I(1, -1, 3, 3);
	expect_lookup(s, in, SHAPE(3, 2, 2), WANT(10, 11, 30, 31, 0, 0, 0, 0, 30, 31, 0, 0));
	weigh(&in, F(1, 1, 1, 1));
	expect_refusal(s, in, -EINVAL, "feature sequence: a sequence feature takes no weights");
}
END_TEST

START_TEST(sparse_refusals)
{
	struct embeng_serving_input in = sparse_input(MEAN_BAG, I(1, 2), 2, I(0, 0, 1, 0), I(2, 2),
						      2),
				    bad = in;

	bad.rank = 1;
	expect_refusal(s, bad, -EINVAL, "needs a shape of rank 2 to 9; rank 1 was given");
	bad = in;
	bad.indices = NULL;
	expect_refusal(s, bad, -EINVAL, "indices are NULL for 2 values");
	bad = in;
	bad.indices = I(1, 0, 0, 0);
	expect_refusal(s, bad, -EINVAL, "indices[1] comes after indices[0]");
	bad.indices = I(0, 0, 1, 2);
	expect_refusal(s, bad, -ERANGE, "indices[1][1] is 2, not within 0 and 2");
	bad = in;
	bad.shape = I(-2, 2);
	expect_refusal(s, bad, -EINVAL, "the sparse shape [-2, 2] has a negative length");
	bad = in;
	bad.shape = I(INT64_MAX / 2, 2);
	expect_refusal(s, bad, -EINVAL, "is more than memory holds");
}
END_TEST

START_TEST(ragged_never_prunes)
{
	struct embeng_serving_input in = ragged_input(MEAN_BAG, I(1, 3, 2), I(0, 2, 2, 3), 4);

	expect_lookup(s, in, SHAPE(3, 2), WANT(20, 21, 0, 0, 20, 21));
	weigh(&in, F(3, -1, 0));
	expect_lookup(s, in, SHAPE(3, 2), WANT(0, 1, 0, 0, 0, 0));
	in.ids = I(1, 3, -2);
	expect_refusal(s, in, -ERANGE,
		       "feature mean_bag, sample 2: id -2 is outside table mean, "
		       "which has rows 0 to 3");
	in.ids = I(1, 4, 2);
	expect_refusal(s, in, -ERANGE, "feature mean_bag, sample 0: id 4 is outside table mean");
}
END_TEST

START_TEST(ragged_sequence)
{
	struct embeng_serving_input in = ragged_input(SEQUENCE, I(1, 2, 3, 3), I(0, 3, 3, 4), 4);

	expect_lookup(s, in, SHAPE(3, 2, 2), WANT(10, 11, 20, 21, 0, 0, 0, 0, 30, 31, 0, 0));
}
END_TEST

/* [2, 2] from four bags, from two that become sequences of two, from one of four. */
START_TEST(ragged_fills_an_output_shape)
{
	const char no_factor[] = "output shape set in the FeatureConfig should be the factor";
	struct embeng_serving_input in = ragged_input(SHAPED, I(1, 3, 2, 0), I(0, 2, 2, 3, 4), 5);

	expect_lookup(s, in, SHAPE(2, 2, 2), WANT(20, 21, 0, 0, 20, 21, 0, 1));
	in = ragged_input(SHAPED, I(1, 3, 2, 0), I(0, 3, 4), 3);
	expect_lookup(s, in, SHAPE(2, 2, 2), WANT(10, 11, 30, 31, 0, 1, 0, 0));
	weigh(&in, F(5, 5, 5, 5));
	expect_lookup(s, in, SHAPE(2, 2, 2), WANT(10, 11, 30, 31, 0, 1, 0, 0));
	in = ragged_input(SHAPED, I(1, 3, 2), I(0, 3), 2);
	expect_lookup(s, in, SHAPE(2, 2, 2), WANT(10, 11, 30, 31, 20, 21, 0, 0));
	in = ragged_input(SHAPED, I(1, 3, 2), I(0, 1, 2, 3), 4);
	expect_refusal(s, in, -EINVAL, no_factor);
	in = ragged_input(SHAPED, I(1, 3, 2), I(0, 1, 2, 2, 3, 3, 3, 3, 3), 9);
	expect_refusal(s, in, -EINVAL, no_factor);
	in = ragged_input(SHAPED, NULL, I(0), 1);
	expect_refusal(s, in, -EINVAL, no_factor);
	in = ragged_input(FLAT, I(1, 3, 2), I(0, 2, 3), 3);
	expect_lookup(s, in, SHAPE(2, 2), WANT(20, 21, 20, 21));
	in = ragged_input(OPEN_SHAPE, I(1, 3), I(0, 1, 2), 3);
	expect_refusal(s, in, -EINVAL, "output shape [?, 2] is not fully defined");
}
END_TEST

START_TEST(ragged_refusals)
{
	struct embeng_serving_input in = ragged_input(MEAN_BAG, I(1, 2), I(0, 1, 2), 3), bad = in;

	bad.row_splits = NULL;
	expect_refusal(s, bad, -EINVAL, "row_splits are missing");
	bad.row_splits = I(1, 1, 2);
	expect_refusal(s, bad, -EINVAL, "row_splits[0] is 1");
	bad.row_splits = I(0, 2, 1);
	expect_refusal(s, bad, -EINVAL, "row_splits[2] falls from 2 to 1");
	bad.row_splits = I(0, 1, 3);
	expect_refusal(s, bad, -EINVAL, "row_splits end at row_splits[2] 3, not at the 2 ids");
	bad = in;
	weigh(&bad, F(1, 2));
	bad.weight_count = 1;
	expect_refusal(s, bad, -EINVAL, "1 weights for 2 ids");
	bad = in;
	bad.ids = NULL;
	expect_refusal(s, bad, -EINVAL, "ids are NULL, their count is 2");
}
END_TEST

START_TEST(calls_that_are_no_lookup)
{
	struct embeng_serving_input in = ragged_input(MEAN_BAG, I(1, 2), I(0, 1, 2), 3), bad = in;
	int64_t shape[9];
	float out[4];
	size_t rank;

	bad.feature = 8;
	expect_refusal(s, bad, -ENOENT, "there is no feature 8; the model has 8 features");
	bad = in;
	bad.form = (enum embeng_input_form)3;
	expect_refusal(s, bad, -EINVAL, "form 3 is none of EMBENG_DENSE");
	bad = in;
	bad.type = 2;
	expect_refusal(s, bad, -EINVAL, "id type 2 is neither");
	bad = in;
	bad.size = 8;
	expect_refusal(s, bad, -EINVAL, "struct embeng_serving_input: size 8 is not possible");
	bad = in;
	bad.out = out;
	bad.out_elements = 3;
	expect_refusal(s, bad, -EINVAL, "feature mean_bag: room for 3 floats, the output has 4");
	bad.out = NULL;
	bad.out_elements = 4;
	expect_refusal(s, bad, -EINVAL, "feature mean_bag: out is NULL");
	ck_assert_int_eq(embeng_serving_lookup(NULL, &in, 1), -EINVAL);
	ck_assert_int_eq(embeng_serving_lookup(s, NULL, 1), -EINVAL);
	ck_assert_int_eq(embeng_serving_lookup(s, NULL, 0), 0);
	ck_assert_int_eq(embeng_serving_shape(s, &in, shape, NULL), -EINVAL);
	ck_assert_int_eq(embeng_serving_shape(s, &in, NULL, &rank), -EINVAL);
	ck_assert_int_eq(embeng_serving_shape(NULL, &in, shape, &rank), -EINVAL);
}
END_TEST

/* The second of two inputs is wrong: the first one's output stays as it was. */
START_TEST(nothing_is_written_when_one_is_wrong)
{
	float out[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct embeng_serving_input in[2] = {ragged_input(MEAN_BAG, I(1, 2), I(0, 1, 2), 3),
					     ragged_input(SUM_BAG, I(1, 9), I(0, 1, 2), 3)};

	in[0].out = out;
	in[1].out = out + 4;
	in[0].out_elements = in[1].out_elements = 4;
	ck_assert_int_eq(embeng_serving_lookup(s, in, 2), -ERANGE);
	expect_text("feature sum_bag, sample 1: id 9");
	expect_floats(out, F(1, 2, 3, 4, 5, 6, 7, 8), 8);
	in[1].ids = I(1, 3);
	ck_assert_int_eq(embeng_serving_lookup(s, in, 2), 0);
	expect_floats(out, F(10, 11, 20, 21, 10, 11, 30, 31), 8);
}
END_TEST

static void add(TCase *tcase)
{
	const TTest *const tests[] = {
		dense_of_any_rank_is_a_gather,
		dense_refusals,
		narrow_ids,
		sparse_prunes,
		weights_that_are_not_finite,
		sparse_prunes_before_it_checks,
		unchecked_takes_weights_as_they_are,
		sparse_of_rank_3_keeps_its_leading_dims,
		sparse_sequence,
		sparse_refusals,
		ragged_never_prunes,
		ragged_sequence,
		ragged_fills_an_output_shape,
		ragged_refusals,
		calls_that_are_no_lookup,
		nothing_is_written_when_one_is_wrong,
	};

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		tcase_add_test(tcase, tests[i]);
}

int main(void)
{
	return suite_main("serving_forms", add);
}
