// SPDX-License-Identifier: MIT
/* embeng_preprocess(): each stack as embeng_partition() gives it for a model of that alone. */
#include "preprocess_help.h"
#include "suite.h"
#include "embeng/preprocess.h"

#define POINTERS 4096
#define ITEMS 65536

/* Where embeng_partition() puts the same. */
struct plain {
	int32_t row_pointers[POINTERS], tokens[ITEMS], samples[ITEMS];
	float gains[ITEMS];
	uint32_t max_ids[4], max_unique[4];
	uint64_t required[2], first[2], end[2];
	struct embeng_partitioned out;
};

static struct plain plain;

static void partition_alone(const struct embeng_stacking *s, size_t index, const struct ids *ids,
			    const struct embeng_partition_options *o)
{
	const struct embeng_stack *stack = &s->stacks[index];
	struct embeng *e = opened(stack_model(stack));
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);

	for (size_t k = 0; k < stack->feature_count; k++)
		put_input(b, ids, stack->features[k], (int)k);
	memset(&plain, 0, sizeof(plain));
	plain.out = (struct embeng_partitioned){.size = sizeof(plain.out),
						.row_pointers = plain.row_pointers,
						.row_pointer_capacity = POINTERS,
						.token_ids = plain.tokens,
						.sample_ids = plain.samples,
						.gains = plain.gains,
						.capacity = ITEMS,
						.max_ids = plain.max_ids,
						.max_unique_ids = plain.max_unique,
						.required_buffer = plain.required,
						.core_first = plain.first,
						.core_end = plain.end};
	ck_assert_int_eq(embeng_partition(e, b, o, &plain.out), 0);
	embeng_batch_free(b);
	embeng_close(e);
}

static void assert_same(const struct embeng_partitioned *got)
{
	const struct embeng_partitioned *want = &plain.out;

	ck_assert_uint_eq(got->row_pointer_count, want->row_pointer_count);
	ck_assert_uint_eq(got->row_stride, want->row_stride);
	ck_assert_uint_eq(got->minibatches, want->minibatches);
	ck_assert_uint_eq(got->dropped_ids, want->dropped_ids);
	ck_assert_uint_eq(got->splits, want->splits);
	ck_assert_uint_eq(got->buffer_size, want->buffer_size);
	ck_assert_mem_eq(got->row_pointers, want->row_pointers, 4 * got->row_pointer_count);
	ck_assert_mem_eq(got->max_ids, want->max_ids, sizeof(plain.max_ids));
	ck_assert_mem_eq(got->max_unique_ids, want->max_unique_ids, sizeof(plain.max_unique));
	ck_assert_mem_eq(got->required_buffer, want->required_buffer, sizeof(plain.required));
	ck_assert_mem_eq(got->core_first, want->core_first, sizeof(plain.first));
	ck_assert_mem_eq(got->core_end, want->core_end, sizeof(plain.end));
	for (int c = 0; c < 2; c++) {
		uint64_t at = want->core_first[c], count = want->core_end[c] - at;

		ck_assert_mem_eq(got->token_ids + at, want->token_ids + at, 4 * count);
		ck_assert_mem_eq(got->sample_ids + at, want->sample_ids + at, 4 * count);
		ck_assert_mem_eq(got->gains + at, want->gains + at, 4 * count);
	}
}

static struct embeng_partition_options same_options(const struct embeng_stacking *s,
						    const struct embeng_preprocess_options *o,
						    size_t index, uint64_t splits)
{
	return (struct embeng_partition_options){
		.size = sizeof(struct embeng_partition_options),
		.flavour = s->flavour,
		.sparse_cores = s->sparse_cores,
		.cores_per_device = s->cores_per_device,
		.device = o->device,
		.max_ids_per_partition = o->limits ? o->limits[index].max_ids_per_partition : 0,
		.max_unique_ids_per_partition =
			o->limits ? o->limits[index].max_unique_ids_per_partition : 0,
		.buffer_size = o->limits ? o->limits[index].buffer_size : 0,
		.minibatching = o->minibatching,
		.allow_id_dropping = o->allow_id_dropping,
		.bucket = o->bucket,
		.splits = splits,
	};
}

/* Returns the minibatches of the first stack that has features. */
static uint32_t compare(enum embeng_partition_flavour flavour, uint64_t seed,
			const struct embeng_preprocess_options *o)
{
	struct embeng_stacking *s = stacking_of(flavour);
	struct embeng *e = opened(whole_model());
	struct embeng_preprocessed *p = NULL;
	struct embeng_batch *b;
	uint32_t minibatches = 0;
	uint64_t all = 0;
	struct ids ids;

	draw_ids(&ids, seed);
	b = whole_batch(e, &ids);
	ck_assert_msg(!embeng_preprocess(e, b, s, o, &p), "seed %llu", (unsigned long long)seed);
	for (size_t i = 0; i < p->stack_count; i++)
		all |= p->stacks[i].splits;
	for (size_t i = 0; i < p->stack_count; i++) {
		struct embeng_partition_options alone = same_options(
			s, o, i, flavour == EMBENG_PARTITION_JAX ? all : 0);

		if (!s->stacks[i].feature_count) {
			ck_assert_uint_eq(p->stacks[i].row_pointer_count, 0);
			ck_assert_ptr_null(p->stacks[i].row_pointers);
			continue;
		}
		partition_alone(s, i, &ids, &alone);
		assert_same(&p->stacks[i]);
		minibatches = p->stacks[i].minibatches;
	}
	embeng_preprocessed_free(p);
	embeng_batch_free(b);
	embeng_close(e);
	embeng_stacking_free(s);
	return minibatches;
}

START_TEST(without_limits)
{
	const struct embeng_preprocess_options o = {.size = sizeof(o), .device = 1};

	for (uint64_t seed = 1; seed < 6; seed++) {
		ck_assert_uint_eq(compare(EMBENG_PARTITION_TF, seed, &o), 1);
		ck_assert_uint_eq(compare(EMBENG_PARTITION_JAX, seed, &o), 1);
	}
}
END_TEST

/* m and a are one stack in TF, c and z another; in JAX m and a are apart. */
START_TEST(stacks)
{
	struct embeng_stacking *tf = stacking_of(EMBENG_PARTITION_TF);
	struct embeng_stacking *jax = stacking_of(EMBENG_PARTITION_JAX);

	ck_assert_uint_eq(tf->stack_count, 3);
	ck_assert_str_eq(tf->stacks[0].name, "a_m");
	ck_assert_str_eq(tf->stacks[1].name, "c_z");
	ck_assert_str_eq(tf->stacks[2].name, "d");
	ck_assert_uint_eq(jax->stack_count, 4);
	ck_assert_str_eq(jax->stacks[0].name, "c_z");
	ck_assert_str_eq(jax->stacks[1].name, "m");
	ck_assert_str_eq(jax->stacks[2].name, "a");
	ck_assert_str_eq(jax->stacks[3].name, "d");
	embeng_stacking_free(tf);
	embeng_stacking_free(jax);
}
END_TEST

START_TEST(with_limits)
{
	const struct embeng_stack_limits limits[] = {{7, 7, 0}, {9, 6, 0}, {20, 20, 0}, {1, 1, 0}};
	struct embeng_preprocess_options o = {
		.size = sizeof(o), .limits = limits, .allow_id_dropping = 1};
	uint32_t most = 0;

	for (uint64_t seed = 1; seed < 6; seed++) {
		o.minibatching = 0;
		compare(EMBENG_PARTITION_TF, seed, &o);
		compare(EMBENG_PARTITION_JAX, seed, &o);
		o.minibatching = 1;
		o.bucket = (enum embeng_partition_bucket)(seed % 4);
		most += compare(EMBENG_PARTITION_TF, seed, &o);
		most += compare(EMBENG_PARTITION_JAX, seed, &o);
	}
	ck_assert_uint_gt(most, 15);
}
END_TEST

static struct embeng_preprocessed *preprocess(const struct embeng_stacking *s, uint64_t seed,
					      const struct embeng_preprocess_options *o)
{
	struct embeng_preprocessed *p = NULL;
	struct embeng *e = opened(whole_model());
	struct embeng_batch *b;
	struct ids ids;

	draw_ids(&ids, seed);
	b = whole_batch(e, &ids);
	ck_assert_int_eq(embeng_preprocess(e, b, s, o, &p), 0);
	embeng_batch_free(b);
	embeng_close(e);
	return p;
}

/* The minibatch of each item is that of its bucket, of @starts[1 .. count - 1]. */
static void assert_parted(const struct embeng_partitioned *p, const uint32_t *starts,
			  uint32_t count)
{
	uint64_t seen = 0;

	ck_assert_uint_eq(p->minibatches, count);
	ck_assert_uint_eq(p->row_pointer_count, 2 * count * 8);
	for (uint32_t c = 0; c < 2; c++) {
		uint64_t end = p->core_first[c];

		for (uint32_t m = 0; m < count; m++) {
			for (uint32_t part = 0; part < 8; part++) {
				uint64_t at = (end + 7) / 8 * 8;

				end = (uint64_t)p->row_pointers[(c * count + m) * 8 + part];
				for (; part < 4 && at < end; at++, seen++) {
					uint32_t bucket = ((uint32_t)p->token_ids[at] * 4 + part) %
							  64;

					ck_assert_uint_ge(bucket, starts[m]);
					ck_assert(m + 1 == count || bucket < starts[m + 1]);
				}
			}
		}
	}
	ck_assert_uint_gt(seen, 0);
}

/* Boundaries before buckets 32 and 48, each in its flavour's numbers. */
START_TEST(given_splits)
{
	const uint32_t starts[] = {0, 32, 48};
	const uint64_t masks[] = {UINT64_C(1) << 0 | UINT64_C(1) << 2,
				  UINT64_C(1) << 62 | UINT64_C(1) << 61};

	for (int f = EMBENG_PARTITION_TF; f <= EMBENG_PARTITION_JAX; f++) {
		struct embeng_stacking *s = stacking_of((enum embeng_partition_flavour)f);
		const uint64_t splits[] = {masks[f], masks[f], masks[f], masks[f]};
		const struct embeng_preprocess_options o = {.size = sizeof(o),
							    .minibatching = 1,
							    .splits = splits,
							    .bucket = EMBENG_PARTITION_BUCKET_MOD};
		struct embeng_preprocessed *p = preprocess(s, 7, &o);

		for (size_t i = 0; i < s->stack_count; i++) {
			if (!s->stacks[i].feature_count)
				continue;
			ck_assert_uint_eq(p->stacks[i].splits, masks[f]);
			assert_parted(&p->stacks[i], starts, 3);
		}
		embeng_preprocessed_free(p);
		embeng_stacking_free(s);
	}
}
END_TEST

/* JAX: splits of one stack are those of all; TF: each has its own. */
START_TEST(splits_of_one_stack)
{
	const uint64_t tf_splits[] = {1, 0, 0}, jax_splits[] = {0, UINT64_C(1) << 62, 0, 0};
	struct embeng_preprocess_options o = {
		.size = sizeof(o), .minibatching = 1, .splits = tf_splits};
	struct embeng_stacking *s = stacking_of(EMBENG_PARTITION_TF);
	struct embeng_preprocessed *p = preprocess(s, 3, &o);

	ck_assert_uint_eq(p->stacks[0].minibatches, 2);
	ck_assert_uint_eq(p->stacks[1].minibatches, 1);
	embeng_preprocessed_free(p);
	embeng_stacking_free(s);
	s = stacking_of(EMBENG_PARTITION_JAX);
	o.splits = jax_splits;
	p = preprocess(s, 3, &o);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(p->stacks[i].minibatches, 2);
	embeng_preprocessed_free(p);
	embeng_stacking_free(s);
}
END_TEST

/* With what was learned nothing is dropped, parted or refused; with one less something is. */
START_TEST(learned_limits)
{
	for (int f = EMBENG_PARTITION_TF; f <= EMBENG_PARTITION_JAX; f++) {
		struct embeng_stacking *s = stacking_of((enum embeng_partition_flavour)f);
		struct embeng_stack_seen seen[4] = {{0}};
		struct embeng_stack_limits limits[4];
		struct embeng_preprocess_options o = {.size = sizeof(o)};
		struct embeng_preprocessed *p;

		for (uint64_t seed = 20; seed < 25; seed++) {
			p = preprocess(s, seed, &o);
			ck_assert_int_eq(embeng_limits_note(s, p, seen), 0);
			embeng_preprocessed_free(p);
		}
		ck_assert_int_eq(embeng_limits_suggest(s, seen, 0, limits), 0);
		ck_assert_uint_eq(seen[0].batches, 5);
		ck_assert_uint_eq(limits[0].max_ids_per_partition, seen[0].max_ids);
		o.limits = limits;
		o.allow_id_dropping = o.minibatching = 1;
		for (uint64_t seed = 20; seed < 25; seed++) {
			p = preprocess(s, seed, &o);
			for (size_t i = 0; i < s->stack_count; i++) {
				ck_assert_uint_eq(p->stacks[i].dropped_ids, 0);
				ck_assert_uint_le(p->stacks[i].minibatches, 1);
			}
			embeng_preprocessed_free(p);
		}
		limits[0].max_ids_per_partition--;
		limits[0].buffer_size = 0;
		o.minibatching = 0;
		seen[0].dropped_ids = 0;
		for (uint64_t seed = 20; seed < 25; seed++) {
			p = preprocess(s, seed, &o);
			ck_assert_int_eq(embeng_limits_note(s, p, seen), 0);
			embeng_preprocessed_free(p);
		}
		ck_assert_uint_gt(seen[0].dropped_ids, 0);
		embeng_stacking_free(s);
	}
}
END_TEST

START_TEST(suggested_numbers)
{
	struct embeng_stacking *s = stacking_of(EMBENG_PARTITION_TF);
	struct embeng_stack_seen seen[] = {{1, 10, 7, 33, 0}, {2, 3, 3, 32, 0}, {0}};
	struct embeng_stack_limits limits[3];

	ck_assert_int_eq(embeng_limits_suggest(s, seen, 25, limits), 0);
	ck_assert_uint_eq(limits[0].max_ids_per_partition, 13);
	ck_assert_uint_eq(limits[0].max_unique_ids_per_partition, 9);
	ck_assert_uint_eq(limits[0].buffer_size, 2 * 48);
	/* 4 ids in each of 4 partitions are 32 items, not 40. */
	ck_assert_uint_eq(limits[1].buffer_size, 2 * 32);
	ck_assert_uint_eq(limits[2].max_ids_per_partition, 1);
	ck_assert_uint_eq(limits[2].buffer_size, 2 * 8);
	seen[0] = (struct embeng_stack_seen){.batches = 1};
	ck_assert_int_eq(embeng_limits_suggest(s, seen, 0, limits), 0);
	ck_assert_uint_eq(limits[0].max_ids_per_partition, 1);
	ck_assert_uint_eq(limits[0].max_unique_ids_per_partition, 1);
	embeng_stacking_free(s);
}
END_TEST

/* A table that no feature uses has its rows and its turn in the rotation all the same. */
START_TEST(unused_table_between)
{
	const struct embeng_stacking_options so = {
		.size = sizeof(so), .sparse_cores = 8, .cores_per_device = 2};
	const int64_t ids[] = {5, 3}, shape[] = {2};
	struct embeng_model *m = embeng_model_new();
	struct embeng_stacking *s = NULL;
	struct embeng_preprocessed *p = NULL;
	struct embeng_feature_config f = {
		.size = sizeof(f), .name = "f", .table = 2, .output_rank = 1, .output_shape = {2}};
	struct embeng_batch *b;
	struct embeng *e;

	for (int t = 0; t < 3; t++) {
		const char *const names[] = {"a", "b", "c"};
		struct embeng_table_config c = {.size = sizeof(c),
						.name = names[t],
						.vocabulary_size = 50,
						.dim = 4,
						.optimizer = embeng_sgd(0.5f)};

		ck_assert_int_eq(embeng_model_add_table(m, &c), t);
	}
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_stacking_make(m, &so, &s), 0);
	e = opened(m);
	b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 2, shape, 1), 0);
	ck_assert_int_eq(embeng_preprocess(e, b, s, NULL, &p), 0);
	/* (5 + 4) % 8 and (3 + 4) % 8: partition 1 of the first core, 7 of the second. */
	ck_assert_int_eq(p->stacks[0].row_pointers[1], 1);
	ck_assert_int_eq(p->stacks[0].token_ids[0], 2 * 8);
	ck_assert_int_eq(p->stacks[0].row_pointers[8 + 7], 9);
	ck_assert_int_eq(p->stacks[0].token_ids[8], 2 * 8);
	embeng_preprocessed_free(p);
	embeng_batch_free(b);
	embeng_close(e);
	embeng_stacking_free(s);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, stacks);
	tcase_add_test(tcase, unused_table_between);
	tcase_add_test(tcase, without_limits);
	tcase_add_test(tcase, with_limits);
	tcase_add_test(tcase, given_splits);
	tcase_add_test(tcase, splits_of_one_stack);
	tcase_add_test(tcase, learned_limits);
	tcase_add_test(tcase, suggested_numbers);
}

int main(void)
{
	return suite_main("preprocess", add);
}
