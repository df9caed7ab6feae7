// SPDX-License-Identifier: MIT
/*
 * LOOKUP of partitioned CSR: what PARTITION wrote is looked up and updated as its items say, to
 * the bit, and close to what the ids themselves give.
 */
#include <math.h>

#include "direct_main.h"
#include "stacks_help.h"

static const struct way ways[] = {
	{EMBENG_FLAVOUR_TF, 0, 0},
	{EMBENG_FLAVOUR_JAX, 0, 0},
	{EMBENG_FLAVOUR_TF, EMBENG_PARTITION_MINIBATCHING, 8},
	{EMBENG_FLAVOUR_JAX, EMBENG_PARTITION_MINIBATCHING, 8},
	{EMBENG_FLAVOUR_TF, EMBENG_PARTITION_DROPPING, 3},
	{EMBENG_FLAVOUR_JAX, EMBENG_PARTITION_DROPPING, 3},
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* Items of one sample of a stack's core, in their order, as ids with their gains as weights. */
static void take_sample(const struct grid *g, u32 core, u32 sample, u32 table, struct bags *b,
			u32 f, u64 *n)
{
	const struct embeng_partition_result *r = grid_result(g);
	bool own = g->head->flavour == EMBENG_FLAVOUR_JAX &&
		   !(g->head->flags & EMBENG_PARTITION_MINIBATCHING);
	u64 at = grid_cores(g)[DEVICE_CORES + core], origin = own ? at : 0;

	for (u32 m = 0; m < r->minibatches; m++) {
		for (u32 p = 0; p < CORES; p++) {
			u64 end = origin +
				  (u64)g->row_pointers[(core * r->minibatches + m) * r->row_stride +
						       p];

			for (; at < end; at++) {
				if (g->samples[at] != sample)
					continue;
				b->ids[f][*n] = row_at(table, p, g->tokens[at]);
				b->weights[f][(*n)++] = g->gains[at];
			}
			at = (end + 7) / 8 * 8;
		}
	}
}

static struct bags bags_of_items(const struct grid grids[STACKS])
{
	struct bags b = {0};

	for (u32 s = 0; s < STACKS; s++) {
		u32 before = 0;

		for (u32 i = 0; i < stacks[s].count; i++) {
			u32 f = stacks[s].features[i], each = features[f].samples / DEVICE_CORES;
			u64 n = 0;

			for (u32 k = 0; k < features[f].samples; k++) {
				take_sample(&grids[s], k / each, before + k % each,
					    features[f].table, &b, f, &n);
				b.offsets[f][k + 1] = n;
			}
			before += each;
		}
	}
	return b;
}

static void make_grids(struct direct *d, const struct bags *b, const struct way *way,
		       struct grid grids[STACKS])
{
	for (u32 s = 0; s < STACKS; s++)
		grids[s] = stack_grid(d, s, b, way);
}

static void compare_bits(struct direct *d, const struct stacks_lookup *got, struct direct *plain,
			 const struct stacks_lookup *want)
{
	for (u32 f = 0; f < FEATURES; f++)
		ck_assert_mem_eq(got->out[f], want->out[f], out_bytes(f));
	for (u32 t = 0; t < TABLES; t++) {
		const struct table *x = &d->context.model->tables[t];
		const struct table *y = &plain->context.model->tables[t];

		ck_assert_mem_eq(x->data, y->data, 4 * tables[t].rows * tables[t].dim);
		ck_assert_uint_eq(x->stats.ids, y->stats.ids);
		ck_assert_uint_eq(x->stats.unique_ids, y->stats.unique_ids);
	}
}

/* Both ways through two steps of training and an inference. */
static void train_as_items(const struct way *way, u64 seed)
{
	struct direct *d = stacks_open(1, false, 0, 0), *plain = stacks_open(1, true, 0, 0);
	struct stacks_lookup got, want;
	struct grid grids[STACKS];

	stacks_fill(d);
	stacks_fill(plain);
	for (u64 step = 1; step <= 2; step++) {
		struct bags b = draw_bags(seed + step), items;

		make_grids(d, &b, way, grids);
		items = bags_of_items(grids);
		got = lookup_stacks(d, &d->input[0], step, grids);
		want = lookup_bags(plain, &plain->input[0], step, &items);
		ck_assert_uint_eq(direct_do(d, got.command), 0);
		ck_assert_uint_eq(direct_do(plain, want.command), 0);
		ck_assert_uint_eq(stacks_update(d, step), 0);
		ck_assert_uint_eq(stacks_update(plain, step), 0);
		compare_bits(d, &got, plain, &want);
		got = lookup_stacks(d, &d->inference, step, grids);
		want = lookup_bags(plain, &plain->inference, step, &items);
		ck_assert_uint_eq(direct_do(d, got.command), 0);
		ck_assert_uint_eq(direct_do(plain, want.command), 0);
		compare_bits(d, &got, plain, &want);
	}
	direct_free(d);
	direct_free(plain);
}

START_TEST(test_as_the_items_say)
{
	for (size_t w = 0; w < WAYS; w++) {
		for (u64 seed = 100; seed < 200; seed += 20)
			train_as_items(&ways[w], seed);
	}
}
END_TEST

/* The minibatches of a way are more than one, its dropping drops: the test above sees them. */
START_TEST(test_the_ways_differ)
{
	struct direct *d = stacks_open(1, false, 0, 0);
	struct bags b = draw_bags(101);

	for (size_t w = 0; w < WAYS; w++) {
		struct grid g = stack_grid(d, 0, &b, &ways[w]);

		ck_assert_int_eq(grid_result(&g)->minibatches > 1,
				 ways[w].flags == EMBENG_PARTITION_MINIBATCHING);
		ck_assert_int_eq(grid_result(&g)->dropped_ids > 0,
				 ways[w].flags == EMBENG_PARTITION_DROPPING);
	}
	direct_free(d);
}
END_TEST

/* 4 ulp of a sum of magnitudes, which the numbers are. */
static void assert_close(const float *got, const float *want, u64 count)
{
	for (u64 i = 0; i < count; i++)
		ck_assert_msg(fabsf(got[i] - want[i]) <= 4.0f * ldexpf(want[i], -23),
			      "%llu: %.9g, not %.9g", (unsigned long long)i, (double)got[i],
			      (double)want[i]);
}

static void train_close(const struct way *way, u64 seed)
{
	struct direct *d = stacks_open(1, false, 0, 0), *plain = stacks_open(1, false, 0, 0);
	struct bags b = draw_bags(seed);
	struct stacks_lookup got, want;
	struct grid grids[STACKS];

	stacks_fill(d);
	stacks_fill(plain);
	make_grids(d, &b, way, grids);
	got = lookup_stacks(d, &d->input[0], 1, grids);
	want = lookup_bags(plain, &plain->input[0], 1, &b);
	ck_assert_uint_eq(direct_do(d, got.command), 0);
	ck_assert_uint_eq(direct_do(plain, want.command), 0);
	ck_assert_uint_eq(stacks_update(d, 1), 0);
	ck_assert_uint_eq(stacks_update(plain, 1), 0);
	for (u32 f = 0; f < FEATURES; f++)
		assert_close(got.out[f], want.out[f], out_bytes(f) / 4);
	for (u32 t = 0; t < TABLES; t++)
		assert_close((float *)d->context.model->tables[t].data,
			     (float *)plain->context.model->tables[t].data,
			     tables[t].rows * tables[t].dim);
	direct_free(d);
	direct_free(plain);
}

START_TEST(test_close_to_the_ids)
{
	for (u64 seed = 300; seed < 340; seed++)
		train_close(&ways[seed % 4], seed);
}
END_TEST

/* Distinct ids of each sample, in the order in which partitions have them. */
static struct bags sorted_bags(u64 seed)
{
	struct bags b = draw_bags(seed);

	for (u32 f = 0; f < FEATURES; f++) {
		u32 rotation = tables[features[f].table].rotation;

		for (u32 s = 0; s < features[f].samples; s++) {
			u64 first = b.offsets[f][s], count = b.offsets[f][s + 1] - first;

			/* One of each partition, then more tokens of the last. */
			for (u64 k = 0; k < count && k < CORES; k++)
				b.ids[f][first + k] = (s64)(k + CORES - rotation) % CORES;
			for (u64 k = CORES; k < count; k++)
				b.ids[f][first + k] = b.ids[f][first + k - 1] + CORES;
		}
	}
	return b;
}

START_TEST(test_sums_without_duplicates_are_the_same_bits)
{
	const struct way way = {EMBENG_FLAVOUR_JAX, 0, 0};

	for (u64 seed = 500; seed < 510; seed++) {
		struct direct *d = stacks_open(1, true, 0, 0), *plain = stacks_open(1, true, 0, 0);
		struct bags b = sorted_bags(seed);
		struct stacks_lookup got, want;
		struct grid grids[STACKS];

		stacks_fill(d);
		stacks_fill(plain);
		for (u32 s = 0; s < STACKS; s++) {
			struct grid *g = &grids[s];
			struct fault fault;

			*g = stack_grid(d, s, &b, &way);
			for (u32 i = 0; i < stacks[s].count; i++)
				g->features[i].combiner = EMBENG_COMBINER_SUM;
			ck_assert_uint_eq(grid_run(g, &fault), 0);
		}
		got = lookup_stacks(d, &d->input[0], 1, grids);
		want = lookup_bags(plain, &plain->input[0], 1, &b);
		ck_assert_uint_eq(direct_do(d, got.command), 0);
		ck_assert_uint_eq(direct_do(plain, want.command), 0);
		ck_assert_uint_eq(stacks_update(d, 1), 0);
		ck_assert_uint_eq(stacks_update(plain, 1), 0);
		compare_bits(d, &got, plain, &want);
		direct_free(d);
		direct_free(plain);
	}
}
END_TEST

static void train(struct direct *d, const struct way *way, struct stacks_lookup *l)
{
	struct bags b = draw_bags(7);
	struct grid grids[STACKS];

	stacks_fill(d);
	make_grids(d, &b, way, grids);
	*l = lookup_stacks(d, &d->input[0], 1, grids);
	ck_assert_uint_eq(direct_do(d, l->command), 0);
	ck_assert_uint_eq(stacks_update(d, 1), 0);
}

START_TEST(test_same_bits_for_any_cores)
{
	struct direct *one = stacks_open(1, false, 0, 0);
	struct stacks_lookup want, got;

	train(one, &ways[2], &want);
	for (u32 cores = 2; cores <= 8; cores++) {
		struct direct *d = stacks_open(cores, false, 0, 0);

		train(d, &ways[2], &got);
		compare_bits(d, &got, one, &want);
		direct_free(d);
	}
	direct_free(one);
}
END_TEST

/* With pipelining the update of a step waits until the next was looked up; so it does here. */
START_TEST(test_pipelined)
{
	struct direct *d = stacks_open(1, false, EMBENG_ENGINE_PIPELINING, 0);
	struct direct *plain = stacks_open(1, true, EMBENG_ENGINE_PIPELINING, 0);
	struct stacks_lookup got, want;
	struct grid grids[STACKS];

	stacks_fill(d);
	stacks_fill(plain);
	for (u64 step = 1; step <= 6; step++) {
		struct bags b = draw_bags(900 + step), items;

		make_grids(d, &b, &ways[step % WAYS], grids);
		items = bags_of_items(grids);
		got = lookup_stacks(d, &d->input[0], step, grids);
		want = lookup_bags(plain, &plain->input[0], step, &items);
		ck_assert_uint_eq(direct_do(d, got.command), 0);
		ck_assert_uint_eq(direct_do(plain, want.command), 0);
		compare_bits(d, &got, plain, &want);
		if (step == 1)
			continue;
		ck_assert_uint_eq(stacks_update(d, step - 1), 0);
		ck_assert_uint_eq(stacks_update(plain, step - 1), 0);
	}
	direct_free(d);
	direct_free(plain);
}
END_TEST

/* Once each step has had its turn nothing is allocated any more. */
START_TEST(test_memory_is_kept)
{
	struct direct *d = stacks_open(1, false, 0, 0);
	struct bags b = draw_bags(11);
	struct grid grids[STACKS];
	u64 held = 0;

	make_grids(d, &b, &ways[0], grids);
	for (u64 step = 1; step <= 12; step++) {
		if (step == 7)
			held = reg_read64(&d->engine, EMBENG_REG_MODEL_MEMORY);
		ck_assert_uint_eq(direct_do(d, lookup_stacks(d, &d->input[0], step, grids).command),
				  0);
		ck_assert_uint_eq(stacks_update(d, step), 0);
	}
	ck_assert_uint_gt(held, 0);
	ck_assert_uint_eq(reg_read64(&d->engine, EMBENG_REG_MODEL_MEMORY), held);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_as_the_items_say,	      test_the_ways_differ,
		test_close_to_the_ids,	      test_sums_without_duplicates_are_the_same_bits,
		test_same_bits_for_any_cores, test_pipelined,
		test_memory_is_kept,	      NULL,
	};

	return direct_main("stacks", tests);
}
