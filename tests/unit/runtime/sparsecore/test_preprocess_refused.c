// SPDX-License-Identifier: MIT
/* embeng_preprocess() and the learned limits refuse arguments with one thing wrong at a time. */
#include <math.h>
#include <stdbool.h>

#include "preprocess_help.h"
#include "suite.h"
#include "embeng/preprocess.h"

struct call {
	struct embeng *e;
	struct embeng_batch *b;
	struct embeng_stacking *s;
	struct embeng_preprocess_options o;
	struct embeng_stack_limits limits[4];
	uint64_t splits[4];
	struct ids ids;
	struct embeng_preprocessed *out;
};

static void call_init(struct call *c, enum embeng_partition_flavour flavour)
{
	*c = (struct call){
		.e = opened(whole_model()), .s = stacking_of(flavour), .o = {.size = sizeof(c->o)}};
	draw_ids(&c->ids, 1);
	c->b = whole_batch(c->e, &c->ids);
	c->o.limits = c->limits;
	c->o.splits = c->splits;
}

static void call_free(struct call *c)
{
	embeng_batch_free(c->b);
	embeng_close(c->e);
	embeng_stacking_free(c->s);
}

/* It is fine as it is, and refused after the change. */
#define ASSERT_CALL_REFUSED(flavour, change, errno_, text) \
	do { \
		struct call c; \
\
		call_init(&c, flavour); \
		ck_assert_int_eq(embeng_preprocess(c.e, c.b, c.s, &c.o, &c.out), 0); \
		embeng_preprocessed_free(c.out); \
		c.out = NULL; \
		change; \
		ck_assert_int_eq(embeng_preprocess(c.e, c.b, c.s, &c.o, &c.out), -(errno_)); \
		expect_text(text); \
		ck_assert_ptr_null(c.out); \
		call_free(&c); \
	} while (0)

#define TF_REFUSED(change, errno_, text) \
	ASSERT_CALL_REFUSED(EMBENG_PARTITION_TF, change, errno_, text)
#define JAX_REFUSED(change, errno_, text) \
	ASSERT_CALL_REFUSED(EMBENG_PARTITION_JAX, change, errno_, text)

START_TEST(options)
{
	TF_REFUSED(c.o.size = 8, EINVAL, "embeng_preprocess_options");
	TF_REFUSED(c.o.device = 2, ERANGE, "device 2");
	TF_REFUSED(c.o.bucket = 4, EINVAL, "bucket 4");
	TF_REFUSED(c.limits[1].max_ids_per_partition = INT32_MAX, ERANGE, "max_ids_per_partition");
	TF_REFUSED(c.limits[1].max_unique_ids_per_partition = INT32_MAX, ERANGE,
		   "max_unique_ids_per_partition");
	TF_REFUSED(c.limits[1].buffer_size = 12, EINVAL, "12 is not a multiple of 8");
	TF_REFUSED(c.limits[0].max_ids_per_partition = 1, ERANGE, "too many ids");
	TF_REFUSED(c.o.max_ids_per_sample = 1, ERANGE, "raise buffer_size");
	TF_REFUSED(c.o.max_ids_per_sample = UINT64_MAX, ERANGE, "stack a_m: max_ids_per_sample");
	TF_REFUSED(c.splits[1] = 1, EINVAL, "splits 0x1");
	TF_REFUSED((c.splits[1] = UINT64_C(1) << 63, c.o.minibatching = 1), EINVAL, "2^63");
	JAX_REFUSED((c.limits[2].max_ids_per_partition = 64, c.limits[2].buffer_size = 1024),
		    ERANGE, "larger than 512");
}
END_TEST

/* Gains are made of weights: the feature, its sample and the weight are named, not an item. */
START_TEST(weights_that_are_not_finite)
{
	TF_REFUSED(c.ids.weights[1][0] = NAN, ERANGE, "feature f1, sample 0: weight 0 is nan");
	JAX_REFUSED(c.ids.weights[1][0] = -INFINITY, ERANGE, "weight 0 is -inf, which is not");
	TF_REFUSED(c.ids.weights[4][c.ids.counts[4] - 1] = INFINITY, ERANGE, "feature f4, sample ");
	JAX_REFUSED(c.ids.weights[4][1] = NAN, ERANGE, "weight 1 is nan, which is not finite");
}
END_TEST

/* A buffer for so many ids of each sample of the stack, in TF. */
START_TEST(buffers_by_sample)
{
	for (int flavour = EMBENG_PARTITION_TF; flavour <= EMBENG_PARTITION_JAX; flavour++) {
		struct call c;
		size_t items[2][4];

		call_init(&c, (enum embeng_partition_flavour)flavour);
		c.o.limits = NULL;
		for (int run = 0; run < 2; run++) {
			c.o.max_ids_per_sample = run ? 40 : 0;
			ck_assert_int_eq(embeng_preprocess(c.e, c.b, c.s, &c.o, &c.out), 0);
			for (size_t i = 0; i < c.s->stack_count; i++)
				items[run][i] = c.out->stacks[i].buffer_size;
			embeng_preprocessed_free(c.out);
		}
		for (size_t i = 0; i < c.s->stack_count; i++) {
			bool tf = flavour == EMBENG_PARTITION_TF && c.s->stacks[i].feature_count;

			ck_assert_uint_eq(items[1][i],
					  tf ? 40 * (uint64_t)c.s->stacks[i].samples : items[0][i]);
		}
		call_free(&c);
	}
}
END_TEST

static void other_table(struct call *c)
{
	const struct embeng_stacking_options o = {.size = sizeof(o), .sparse_cores = 4};
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "other",
					.vocabulary_size = 9,
					.dim = 1,
					.optimizer = embeng_sgd(0.5f)};
	struct embeng_model *m = whole_model();

	ck_assert_int_ge(embeng_model_add_table(m, &t), 0);
	embeng_stacking_free(c->s);
	ck_assert_int_eq(embeng_stacking_make(m, &o, &c->s), 0);
	embeng_model_free(m);
}

static void without_input(struct call *c)
{
	embeng_batch_reset(c->b, EMBENG_INFERENCE);
	for (int f = 0; f < FEATURES; f++) {
		if (f != 3)
			put_input(c->b, &c->ids, f, f);
	}
}

static void wrong_id(struct call *c)
{
	c->ids.ids[3][2] = 300;
}

START_TEST(batches)
{
	TF_REFUSED(other_table(&c), EINVAL, "another model");
	TF_REFUSED(without_input(&c), EINVAL, "feature f3: no input, stack a_m");
	TF_REFUSED(wrong_id(&c), ERANGE, "feature f3, sample 2: id 300 is outside table a");
	TF_REFUSED(c.s->features[4].samples = 9, EINVAL,
		   "feature f4: 8 samples, the stacking is of 9");
	TF_REFUSED(c.s->stacks[1].rows_per_core = INT64_C(1) << 30, ERANGE, "stack c_z");
}
END_TEST

START_TEST(arguments)
{
	struct embeng_preprocessed *out = NULL;
	struct call c;

	call_init(&c, EMBENG_PARTITION_TF);
	ck_assert_int_eq(embeng_preprocess(NULL, c.b, c.s, &c.o, &out), -EINVAL);
	ck_assert_int_eq(embeng_preprocess(c.e, NULL, c.s, &c.o, &out), -EINVAL);
	expect_text("embeng_preprocess: the batch");
	ck_assert_int_eq(embeng_preprocess(c.e, c.b, NULL, &c.o, &out), -EINVAL);
	expect_text("no stacking");
	ck_assert_int_eq(embeng_preprocess(c.e, c.b, c.s, &c.o, NULL), -EINVAL);
	ck_assert_ptr_null(out);
	ck_assert_int_eq(embeng_preprocess(c.e, c.b, c.s, NULL, &out), 0);
	embeng_preprocessed_free(out);
	embeng_preprocessed_free(NULL);
	call_free(&c);
}
END_TEST

START_TEST(limits)
{
	struct embeng_stack_seen seen[] = {{1, 1, 1, 8, 0}, {1, 1, 1, 8, 0}, {0}};
	const struct embeng_stack_seen good = seen[1];
	struct embeng_stack_limits made[3] = {{77, 77, 77}, {77, 77, 77}, {77, 77, 77}};
	struct embeng_stacking *s = stacking_of(EMBENG_PARTITION_TF);
	struct embeng_preprocessed none = {0};

	ck_assert_int_eq(embeng_limits_note(NULL, &none, seen), -EINVAL);
	ck_assert_int_eq(embeng_limits_note(s, NULL, seen), -EINVAL);
	ck_assert_int_eq(embeng_limits_note(s, &none, NULL), -EINVAL);
	ck_assert_int_eq(embeng_limits_note(s, &none, seen), -EINVAL);
	expect_text("3 stacks, the batch 0");
	ck_assert_int_eq(embeng_limits_suggest(NULL, seen, 0, made), -EINVAL);
	ck_assert_int_eq(embeng_limits_suggest(s, NULL, 0, made), -EINVAL);
	ck_assert_int_eq(embeng_limits_suggest(s, seen, 0, NULL), -EINVAL);
	seen[1].batches = 0;
	ck_assert_int_eq(embeng_limits_suggest(s, seen, 0, made), -EINVAL);
	expect_text("stack c_z: no batch was seen");
	seen[1] = good;
	seen[1].max_ids = UINT64_MAX;
	ck_assert_int_eq(embeng_limits_suggest(s, seen, 0, made), -ERANGE);
	seen[1] = good;
	seen[1].max_unique_ids = INT32_MAX;
	ck_assert_int_eq(embeng_limits_suggest(s, seen, 0, made), -ERANGE);
	seen[1] = good;
	seen[1].core_buffer = INT32_MAX / 2;
	ck_assert_int_eq(embeng_limits_suggest(s, seen, 101, made), -ERANGE);
	seen[1].max_ids = INT32_MAX / 2;
	ck_assert_int_eq(embeng_limits_suggest(s, seen, 0, made), -ERANGE);
	expect_text("buffer");
	ck_assert_uint_eq(made[0].max_ids_per_partition, 77);
	seen[1] = good;
	ck_assert_int_eq(embeng_limits_suggest(s, seen, UINT32_MAX, made), 0);
	embeng_stacking_free(s);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, options);
	tcase_add_test(tcase, weights_that_are_not_finite);
	tcase_add_test(tcase, buffers_by_sample);
	tcase_add_test(tcase, batches);
	tcase_add_test(tcase, arguments);
	tcase_add_test(tcase, limits);
}

int main(void)
{
	return suite_main("preprocess_refused", add);
}
