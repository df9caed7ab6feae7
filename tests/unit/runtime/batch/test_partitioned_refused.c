// SPDX-License-Identifier: MIT
/*
 * embeng_batch_partitioned(): what does not fit is refused there, items that their stack does not
 * have when the batch is enqueued; inputs can be replaced.
 */
#include "runtime/src/session/session.h"
#undef fail /* session.h defines one, and so does Check */
#include "preprocess_help.h"
#include "embeng/preprocess.h"

/* A batch, and what it was partitioned to, to be changed. */
struct changed {
	struct embeng_stacking *s;
	struct embeng *e;
	struct embeng_batch *b;
	struct embeng_preprocessed *p, copy;
	struct embeng_partitioned stacks[3];
};

static struct changed changed_new(enum embeng_partition_flavour flavour)
{
	static struct ids ids; /* the batch reads it where it is */
	struct changed x = {.s = stacking_of(flavour), .e = opened(whole_model())};

	draw_ids(&ids, 5);
	x.b = whole_batch(x.e, &ids);
	ck_assert_int_eq(embeng_preprocess(x.e, x.b, x.s, NULL, &x.p), 0);
	memcpy(x.stacks, x.p->stacks, sizeof(x.stacks));
	return x;
}

static void changed_free(struct changed *x)
{
	embeng_preprocessed_free(x->p);
	embeng_batch_free(x->b);
	embeng_close(x->e);
	embeng_stacking_free(x->s);
}

#define CHANGED(flavour, change) \
	struct changed x = changed_new(flavour); \
	struct embeng_preprocessed *copy = &x.copy; \
	struct embeng_partitioned *stacks = x.stacks; \
\
	ck_assert_int_eq(embeng_batch_partitioned(x.b, x.s, x.p), 0); \
	*copy = *x.p; \
	copy->stacks = stacks; \
	change

#define ASSERT_BATCH_REFUSED(change, errno_, text) \
	do { \
		CHANGED(EMBENG_PARTITION_TF, change); \
		ck_assert_int_eq(embeng_batch_partitioned(x.b, x.s, copy), -(errno_)); \
		expect_text(text); \
		/* It is as it was. */ \
		ck_assert_int_eq(embeng_enqueue(x.e, x.b, -1), 0); \
		changed_free(&x); \
	} while (0)

/* Only the engine finds these faults; the batch can be given other inputs afterwards. */
#define ASSERT_ENQUEUE_REFUSED(flavour, change, errno_, text) \
	do { \
		CHANGED(flavour, change); \
		ck_assert_int_eq(embeng_batch_partitioned(x.b, x.s, copy), 0); \
		ck_assert_int_eq(embeng_enqueue(x.e, x.b, -1), -(errno_)); \
		expect_text(text); \
		enqueue_again(&x); \
		changed_free(&x); \
	} while (0)

static void enqueue_again(struct changed *x)
{
	struct ids ids;

	draw_ids(&ids, 5);
	for (int f = 0; f < FEATURES; f++)
		put_input(x->b, &ids, f, f);
	ck_assert_int_eq(embeng_enqueue(x->e, x->b, -1), 0);
}

/* The first partition that is not empty is core 0's. */
static size_t first_item(const struct embeng_partitioned *p)
{
	size_t at = 0;

	while (p->token_ids[at] == INT32_MAX)
		at += 8;
	return at;
}

START_TEST(refused)
{
	ASSERT_BATCH_REFUSED(copy->stack_count = 2, EINVAL, "not as many stacks");
	ASSERT_BATCH_REFUSED(stacks[0].size = 8, EINVAL, "stack a_m: an array is missing");
	ASSERT_BATCH_REFUSED(stacks[1].gains = NULL, EINVAL, "stack c_z: an array is missing");
	ASSERT_BATCH_REFUSED(stacks[1].row_pointers = NULL, EINVAL, "an array is missing");
	ASSERT_BATCH_REFUSED(stacks[1].token_ids = NULL, EINVAL, "an array is missing");
	ASSERT_BATCH_REFUSED(stacks[1].sample_ids = NULL, EINVAL, "an array is missing");
	ASSERT_BATCH_REFUSED(stacks[1].core_first = NULL, EINVAL, "an array is missing");
	ASSERT_BATCH_REFUSED(stacks[1].core_end = NULL, EINVAL, "an array is missing");
	ASSERT_BATCH_REFUSED(stacks[1].row_stride = 3, EINVAL, "minibatches of 3");
	ASSERT_BATCH_REFUSED((stacks[1].row_stride = 1ull << 32,
			      stacks[1].row_pointer_capacity = 1ull << 33,
			      stacks[1].row_pointer_count = 1ull << 33),
			     EINVAL, "of 4294967296");
	ASSERT_BATCH_REFUSED(stacks[1].minibatches = 0, EINVAL, "0 minibatches");
	ASSERT_BATCH_REFUSED(stacks[1].minibatches = 2, EINVAL, "2 minibatches");
	ASSERT_BATCH_REFUSED((stacks[1].minibatches = 65, stacks[1].row_pointer_count = 65 * 16,
			      stacks[1].row_pointer_capacity = 65 * 16),
			     EINVAL, "65 minibatches");
	ASSERT_BATCH_REFUSED(stacks[1].row_pointer_capacity = 15, EINVAL, "16 row pointers");
	ASSERT_BATCH_REFUSED(x.s->features[0].samples = 7, EINVAL, "no multiple of 2");
	ASSERT_BATCH_REFUSED(x.s->features[2].offset += 2, EINVAL,
			     "stack c_z: samples of feature 2");
	ASSERT_BATCH_REFUSED(x.s->tables[2].row_offset = -1, ERANGE,
			     "table z: its rows begin at -1");
	ASSERT_BATCH_REFUSED(x.s->tables[2].row_offset = 1ll << 31, ERANGE, "tokens have 31 bits");
	ASSERT_BATCH_REFUSED(x.s->tables[2].rotation = -1, ERANGE, "table z");
	ASSERT_BATCH_REFUSED(stacks[1].capacity = 8, ERANGE,
			     "stack c_z, core 0: its items are 0 to");
	ASSERT_BATCH_REFUSED(stacks[1].core_first[1] = stacks[1].core_end[1] + 8, ERANGE,
			     "stack c_z, core 1: its items are");
}
END_TEST

START_TEST(refused_by_the_engine)
{
	const enum embeng_partition_flavour tf = EMBENG_PARTITION_TF, jax = EMBENG_PARTITION_JAX;

	ASSERT_ENQUEUE_REFUSED(tf, stacks[1].row_pointers[3] = -1, ERANGE,
			       "stack c_z, core 0, partition 3, minibatch 0: the row pointer -1 is "
			       "below");
	ASSERT_ENQUEUE_REFUSED(
		tf, stacks[1].row_pointers[8 + 3] = 1 << 20, ERANGE,
		"stack c_z, core 1, partition 3, minibatch 0: the row pointer 1048576 "
		"is beyond");
	ASSERT_ENQUEUE_REFUSED(jax, stacks[0].row_pointers[8] = -1, ERANGE,
			       "core 1, partition 0, minibatch 0: the row pointer -1 is below 0");
	ASSERT_ENQUEUE_REFUSED(tf, stacks[1].core_first[1] += 4, EINVAL,
			       "stack c_z, core 1: its "
			       "first item");
	ASSERT_ENQUEUE_REFUSED(tf, stacks[1].core_first[1] = 0, ERANGE,
			       "stack c_z, core 1: its items begin at 0, against");
	ASSERT_ENQUEUE_REFUSED(tf, stacks[1].sample_ids[first_item(&stacks[1])] = 8, ERANGE,
			       "sample 8 is not below 8");
	ASSERT_ENQUEUE_REFUSED(tf, stacks[1].sample_ids[first_item(&stacks[1])] = -1, ERANGE,
			       "stack c_z, core 0, partition 0, item 0: sample -1");
	ASSERT_ENQUEUE_REFUSED(tf, stacks[1].token_ids[first_item(&stacks[1])] = -1, ERANGE,
			       "token -1");
	ASSERT_ENQUEUE_REFUSED(tf, stacks[1].token_ids[first_item(&stacks[1])] = 1000, ERANGE,
			       "core 0, partition 0, item 0: token 1000 is no row of the table of "
			       "feature f2");
	/* z has 70 rows of 96, so that the last of its 24 on each core is padding. */
	ASSERT_ENQUEUE_REFUSED(tf, stacks[1].token_ids[first_item(&stacks[1])] = 39, ERANGE,
			       "token 39");
}
END_TEST

/* A device that is older than this input. */
START_TEST(not_of_this_device)
{
	struct changed x = changed_new(EMBENG_PARTITION_TF);

	x.e->device->info.features &= ~(uint64_t)EMBENG_CAP_PARTITIONED;
	ck_assert_int_eq(embeng_batch_partitioned(x.b, x.s, x.p), -ENOTSUP);
	expect_text("does not take partitioned CSR");
	ck_assert_int_eq(embeng_enqueue(x.e, x.b, -1), 0);
	changed_free(&x);
}
END_TEST

/* A batch that is partitioned already has no ids left to be partitioned. */
START_TEST(not_partitioned_twice)
{
	struct changed x = changed_new(EMBENG_PARTITION_TF);
	struct embeng_preprocessed *again = NULL;

	ck_assert_int_eq(embeng_batch_partitioned(x.b, x.s, x.p), 0);
	ck_assert_int_eq(embeng_preprocess(x.e, x.b, x.s, NULL, &again), -EINVAL);
	expect_text("is partitioned already");
	changed_free(&x);
}
END_TEST

static void expect_features(struct embeng *e, struct embeng_batch *b, int first,
			    const struct embeng_activations *want)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	for (int f = first; f < FEATURES; f++)
		ck_assert_mem_eq(a.features[f].data, want->features[f].data,
				 4 * (size_t)(feature_specs[f].samples *
					      table_specs[feature_specs[f].table].dim));
}

/* Features may be given other inputs, one and all; the rest of their stacks stays. */
START_TEST(replaced_inputs)
{
	struct changed x = changed_new(EMBENG_PARTITION_JAX);
	struct embeng_activations whole = {.size = sizeof(whole)}, want = whole;
	struct ids ids;

	draw_ids(&ids, 5);
	ck_assert_int_eq(embeng_enqueue(x.e, x.b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(x.e, 0, -1, &whole), 0);
	ck_assert_int_eq(embeng_batch_partitioned(x.b, x.s, x.p), 0);
	ck_assert_int_eq(embeng_enqueue(x.e, x.b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(x.e, 0, -1, &want), 0);
	put_input(x.b, &ids, 0, 0);
	put_input(x.b, &ids, 1, 1);
	expect_features(x.e, x.b, 2, &want);
	for (int f = 2; f < FEATURES; f++)
		put_input(x.b, &ids, f, f);
	expect_features(x.e, x.b, 0, &whole);
	changed_free(&x);
}
END_TEST

START_TEST(arguments)
{
	struct embeng_stacking *s = stacking_of(EMBENG_PARTITION_TF);
	struct embeng *e = opened(whole_model());
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_preprocessed none = {0};

	ck_assert_int_eq(embeng_batch_partitioned(NULL, s, &none), -EINVAL);
	expect_text("no batch");
	ck_assert_int_eq(embeng_batch_partitioned(b, NULL, &none), -EINVAL);
	expect_text("no stacking");
	ck_assert_int_eq(embeng_batch_partitioned(b, s, NULL), -EINVAL);
	expect_text("not as many stacks");
	s->model_hash++;
	ck_assert_int_eq(embeng_batch_partitioned(b, s, &none), -EINVAL);
	expect_text("another model");
	embeng_batch_free(b);
	embeng_close(e);
	embeng_stacking_free(s);
}
END_TEST

RUN_SUITE("partitioned batch, refused", refused, refused_by_the_engine, not_of_this_device,
	  not_partitioned_twice, replaced_inputs, arguments)
