// SPDX-License-Identifier: MIT
/* Inputs of batches: dense, sparse and ragged forms are accepted, and each wrong one is refused. */
#include "test_batch.h"

static struct handle h;
static struct embeng_batch *b;
static const int32_t ids32[6] = {1, 2, 3, 4, 5, 6};
static const int64_t ids64[6] = {1, 2, 3, 4, 5, 6};
static const float weights[6] = {1, 2, 3, 4, 5, 6};

static void setup(void)
{
	h = handle_new(S(2, 3), 2);
	b = embeng_batch_new(&h.e, EMBENG_TRAIN, 0);
	ck_assert_ptr_nonnull(b);
	h.batch = b;
}

static int dense(int feature, size_t count, const int64_t *shape, size_t rank)
{
	return embeng_batch_dense(b, feature, EMBENG_I64, ids64, count, shape, rank);
}

static int sparse(int feature, const int64_t *indices, size_t count, const int64_t *shape,
		  size_t rank)
{
	return embeng_batch_sparse(b, feature, EMBENG_I64, indices, ids64, count, shape, rank, NULL,
				   0);
}

static int ragged(int feature, size_t count, const int64_t *lengths, size_t rows)
{
	return embeng_batch_ragged(b, feature, EMBENG_I32, ids32, count, lengths, rows, NULL, 0);
}

static int splits(int feature, size_t count, const int64_t *row_splits, size_t n)
{
	return embeng_batch_ragged_splits(b, feature, EMBENG_I64, ids64, count, row_splits, n, NULL,
					  0);
}

static void assert_shape(const struct input *in, const int64_t *shape, size_t rank)
{
	ck_assert_uint_eq(in->rank, rank);
	ck_assert_mem_eq(in->shape, shape, rank * sizeof(*shape));
}

static void assert_offsets(const struct input *in, const int64_t *offsets, size_t count)
{
	ck_assert_int_eq(in->form, INPUT_CSR);
	ck_assert_uint_eq(in->samples + 1, count);
	ck_assert_mem_eq(in->offsets, offsets, count * sizeof(*offsets));
}

START_TEST(test_batches)
{
	setup();
	ck_assert_uint_eq(b->count, 3);
	ck_assert_ptr_null(embeng_batch_new(NULL, EMBENG_TRAIN, 0));
	error_set(0, 0, "%s", "");
	ck_assert_ptr_null(embeng_batch_new(&h.e, 2, 0));
	ASSERT_REFUSED((embeng_batch_new(&h.e, EMBENG_TRAIN, 1), -ERANGE), ERANGE, "replica 1");
	ASSERT_REFUSED((embeng_batch_new(&h.e, 2, 0), -EINVAL), EINVAL, "mode 2");
	ASSERT_REFUSED(dense(3, 1, S(1), 1), ENOENT, "feature 3", "3 features");
	ASSERT_REFUSED(dense(-1, 1, S(1), 1), ENOENT, "feature -1");
	ASSERT_REFUSED(embeng_batch_dense(NULL, 0, EMBENG_I32, ids32, 1, S(1), 1), EINVAL, "NULL");
	embeng_batch_free(NULL);
	embeng_batch_reset(NULL, EMBENG_TRAIN);
	handle_free(&h);
}
END_TEST

START_TEST(test_dense_shapes)
{
	struct input *in;

	setup();
	in = &b->inputs[0];
	ck_assert_int_eq(dense(0, 6, S(6), 1), 0);
	ck_assert_int_eq(in->form, INPUT_DENSE);
	ck_assert_uint_eq(in->samples, 6);
	ck_assert_ptr_eq(in->ids, ids64);
	assert_shape(in, S(6), 1);
	ck_assert_int_eq(dense(0, 6, S(6, 1), 2), 0);
	assert_shape(in, S(6), 1);
	ck_assert_int_eq(dense(0, 6, S(2, 3, 1), 3), 0);
	assert_shape(in, S(2, 3), 2);
	ck_assert_uint_eq(input_sample(in, 5), 5);
	in = &b->inputs[1]; /* single ids, also for a sequence feature */
	ck_assert_int_eq(dense(1, 6, S(6), 1), 0);
	assert_shape(in, S(6), 1);
	handle_free(&h);
}
END_TEST

START_TEST(test_dense_refused)
{
	int64_t high[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

	setup();
	ASSERT_REFUSED(dense(0, 1, S(1), 0), EINVAL, "bag", "rank 0");
	ASSERT_REFUSED(dense(0, 1, NULL, 1), EINVAL, "bag", "rank");
	ASSERT_REFUSED(dense(0, 1, high, 10), EINVAL, "bag", "rank 10");
	ASSERT_REFUSED(dense(0, 6, S(2, 3), 2), EINVAL, "bag", "[2, 3]", "end in 1");
	ASSERT_REFUSED(dense(0, 6, S(5), 1), EINVAL, "bag", "6 ids", "[5]");
	ASSERT_REFUSED(dense(0, 6, S(-6), 1), EINVAL, "bag", "[-6]");
	ASSERT_REFUSED(dense(0, 0, S((int64_t)1 << 32, (int64_t)1 << 32, 1), 3), EINVAL, "bag",
		       "64 bits");
	ASSERT_REFUSED(embeng_batch_dense(b, 0, 2, ids64, 6, S(6), 1), EINVAL, "bag", "type 2");
	ASSERT_REFUSED(embeng_batch_dense(b, 0, EMBENG_I64, NULL, 6, S(6), 1), EINVAL, "bag",
		       "NULL", "6");
	ASSERT_REFUSED(embeng_batch_dense(b, 0, EMBENG_I64, ids64, SIZE_MAX, S(6), 1), ERANGE,
		       "bag", "memory");
	handle_free(&h);
}
END_TEST

START_TEST(test_sparse_to_offsets)
{
	struct input *in;

	setup();
	in = &b->inputs[0];
	ck_assert_int_eq(embeng_batch_sparse(b, 0, EMBENG_I32,
					     S(0, 0, 0, 3, 2, 1, 3, 0, 3, 1, 3, 1), ids32, 6,
					     S(5, 4), 2, weights, 6),
			 0);
	assert_offsets(in, S(0, 2, 2, 3, 6, 6), 6);
	assert_shape(in, S(5), 1);
	ck_assert_ptr_eq(in->weights, weights);
	ck_assert_int_eq(in->type, EMBENG_I32);
	ck_assert_uint_eq(input_sample(in, 0), 0);
	ck_assert_uint_eq(input_sample(in, 1), 0);
	ck_assert_uint_eq(input_sample(in, 2), 2);
	ck_assert_uint_eq(input_sample(in, 5), 3);
	ck_assert_int_eq(sparse(0, S(0, 2, 4, 1, 0, 0), 2, S(2, 3, 5), 3), 0);
	assert_offsets(in, S(0, 0, 0, 1, 2, 2, 2), 7);
	assert_shape(in, S(2, 3), 2);
	ck_assert_ptr_null(in->weights);
	ck_assert_int_eq(sparse(0, S(1, 1, 1, 0), 2, S(2, 2), 2), 0);
	assert_offsets(in, S(0, 0, 2), 3); /* ids of a bag may come in any order */
	in = &b->inputs[1];		   /* a sequence feature pools from rank 3 on */
	ck_assert_int_eq(sparse(1, S(0, 0, 0), 1, S(2, 2, 2), 3), 0);
	ck_assert(in->pooled);
	assert_shape(in, S(2, 2), 2);
	in = &b->inputs[0];
	ck_assert_int_eq(sparse(0, NULL, 0, S(3, 0), 2), 0);
	assert_offsets(in, S(0, 0, 0, 0), 4);
	ck_assert_int_eq(sparse(1, S(0, 1, 1, 0), 2, S(2, 9), 2), 0);
	assert_shape(&b->inputs[1], S(2, 4), 2);
	assert_offsets(&b->inputs[1], S(0, 1, 2), 3);
	handle_free(&h);
}
END_TEST

START_TEST(test_sparse_refused)
{
	int64_t high[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

	setup();
	ASSERT_REFUSED(sparse(0, S(0), 1, S(5), 1), EINVAL, "bag", "rank 1");
	ASSERT_REFUSED(sparse(0, high, 0, high, 10), EINVAL, "bag", "rank 10");
	ASSERT_REFUSED(sparse(0, S(0), 1, NULL, 2), EINVAL, "bag", "rank");
	ASSERT_REFUSED(sparse(0, S(0, 0), 1, S(-5, 2), 2), EINVAL, "bag", "[-5, 2]");
	ASSERT_REFUSED(sparse(0, S(0, 0), 1, S(5, -2), 2), EINVAL, "bag", "[5, -2]");
	ASSERT_REFUSED(sparse(0, NULL, 0, S((int64_t)1 << 32, (int64_t)1 << 32, 1), 3), EINVAL,
		       "bag", "64 bits");
	ASSERT_REFUSED(sparse(0, NULL, 0, S((int64_t)1 << 60, 1), 2), ENOMEM, "bag",
		       "1152921504606846976");
	ASSERT_REFUSED(sparse(0, NULL, 1, S(5, 2), 2), EINVAL, "bag", "indices", "1 values");
	ASSERT_REFUSED(sparse(0, S(0, 0, 5, 0), 2, S(5, 2), 2), ERANGE, "bag",
		       "indices[1][0] is 5");
	ASSERT_REFUSED(sparse(0, S(0, 0, 1, -1), 2, S(5, 2), 2), ERANGE, "indices[1][1] is -1",
		       "2");
	ASSERT_REFUSED(sparse(0, S(1, 0, 2, 0, 1, 1), 3, S(5, 2), 2), EINVAL, "bag", "indices[2]",
		       "indices[1]");
	ASSERT_REFUSED(sparse(0, S(1, 0, 0, 1), 2, S(5, 2), 2), EINVAL, "bag", "indices[1]");
	handle_free(&h);
}
END_TEST

START_TEST(test_ragged_forms)
{
	struct input *in;
	const int64_t *given = S(0, 2, 2, 6);

	setup();
	in = &b->inputs[0];
	ck_assert_int_eq(ragged(0, 6, S(2, 0, 3, 1, 0), 5), 0);
	assert_offsets(in, S(0, 2, 2, 5, 6, 6), 6);
	assert_shape(in, S(5), 1);
	ck_assert_int_eq(splits(0, 6, given, 4), 0);
	assert_offsets(in, given, 4);
	ck_assert_ptr_eq(in->offsets, given);
	ck_assert_int_eq(ragged(1, 3, S(3, 0), 2), 0);
	assert_shape(&b->inputs[1], S(2, 4), 2);
	ck_assert_int_eq(splits(1, 6, given, 4), 0);
	assert_shape(&b->inputs[1], S(3, 4), 2);
	handle_free(&h);
}
END_TEST

START_TEST(test_ragged_refused)
{
	setup();
	ASSERT_REFUSED(ragged(0, 6, S(7, -1), 2), EINVAL, "bag", "row_lengths[0] 7");
	ASSERT_REFUSED(ragged(0, 6, S(2, -1), 2), EINVAL, "bag", "row_lengths[1] is -1");
	ASSERT_REFUSED(ragged(0, 6, S(1, INT64_MAX, INT64_MAX, 3), 4), EINVAL, "row_lengths[1]");
	ASSERT_REFUSED(ragged(0, 6, S(2, 3), 2), EINVAL, "bag", "to 5", "6 ids");
	ASSERT_REFUSED(ragged(0, 6, NULL, 2), EINVAL, "bag", "row_lengths", "NULL");
	ASSERT_REFUSED(ragged(0, 0, S(0), (size_t)1 << 60), ENOMEM, "bag");
	ASSERT_REFUSED(splits(0, 6, NULL, 2), EINVAL, "bag", "row_splits");
	ASSERT_REFUSED(splits(0, 6, S(0), 0), EINVAL, "bag", "row_splits");
	ASSERT_REFUSED(splits(0, 6, S(1, 6), 2), EINVAL, "row_splits[0] is 1");
	ASSERT_REFUSED(splits(0, 6, S(0, 4, 3, 6), 4), EINVAL, "row_splits[2]", "4 to 3");
	ASSERT_REFUSED(splits(0, 6, S(0, -1, 6), 3), EINVAL, "row_splits[1]", "0 to -1");
	ASSERT_REFUSED(splits(0, 6, S(0, INT64_MAX, INT64_MIN + 7, 6), 4), EINVAL, "row_splits[2]",
		       "9223372036854775807 to -9223372036854775801");
	ASSERT_REFUSED(splits(0, 6, S(0, 5), 2), EINVAL, "row_splits[1] 5", "6 ids");
	ASSERT_REFUSED(splits(0, 6, S(0, 7), 2), EINVAL, "row_splits[1] 7", "6 ids");
	handle_free(&h);
}
END_TEST

START_TEST(test_weights_refused)
{
	setup();
	ASSERT_REFUSED(embeng_batch_ragged(b, 0, EMBENG_I32, ids32, 6, S(6), 1, weights, 5), EINVAL,
		       "bag", "5 weights", "6 ids");
	ASSERT_REFUSED(embeng_batch_ragged(b, 0, EMBENG_I32, ids32, 6, S(6), 1, NULL, 6), EINVAL,
		       "bag", "weights", "NULL");
	ASSERT_REFUSED(
		embeng_batch_ragged_splits(b, 1, EMBENG_I32, ids32, 6, S(0, 6), 2, weights, 6),
		EINVAL, "seq", "weights");
	ASSERT_REFUSED(
		embeng_batch_sparse(b, 1, EMBENG_I32, S(0, 0), ids32, 1, S(1, 1), 2, weights, 1),
		EINVAL, "seq", "weights");
	handle_free(&h);
}
END_TEST

START_TEST(test_refusal_is_kept_for_the_batch)
{
	struct output outputs[3] = {0}, resolved[3] = {0};

	setup();
	ck_assert_int_eq(ragged(0, 6, S(2, 3), 2), -EINVAL);
	ck_assert_int_eq(ragged(1, 3, S(3, 0), 2), 0);
	ck_assert_int_eq(dense(2, 6, S(6), 1), 0);
	ASSERT_REFUSED(batch_check(b, outputs, resolved), EINVAL, "bag", "to 5");
	ck_assert_uint_eq(resolved[1].rank, 0);
	ck_assert_int_eq(ragged(0, 6, S(2, 4), 2), 0);
	ck_assert_int_eq(batch_check(b, outputs, resolved), 0);
	ck_assert_int_eq(sparse(0, S(9, 0), 1, S(5, 2), 2), -ERANGE);
	ASSERT_REFUSED(batch_check(b, outputs, resolved), ERANGE, "indices[0][0] is 9");
	embeng_batch_reset(b, EMBENG_INFERENCE);
	ck_assert_int_eq(b->mode, EMBENG_INFERENCE);
	ASSERT_REFUSED(batch_check(b, outputs, resolved), EINVAL, "bag", "no input");
	handle_free(&h);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_batches,		test_dense_shapes,    test_dense_refused,
		test_sparse_to_offsets, test_sparse_refused,  test_ragged_forms,
		test_ragged_refused,	test_weights_refused, test_refusal_is_kept_for_the_batch,
	};

	return run_tests("batch_input", tests, COUNT(tests));
}
