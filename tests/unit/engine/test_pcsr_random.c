// SPDX-License-Identifier: MIT
/*
 * PARTITION against items sorted one by one, to the bit: more ids than fit one chunk, any
 * form, width and combiner of inputs, keys that fill more than one word; and the same bits for
 * any number of cores and every kernel variant.
 */
#include "direct_main.h"
#include "pcsr_help.h"
#include "engine/partition/partition.h"
#include "variants.h"

#define SAMPLES 512u
#define MOST 40u

struct item {
	u32 core, partition, token, row, place;
	float gain;
};

struct random {
	u64 state;
};

static u32 below(struct random *r, u64 limit)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (u32)((r->state >> 33) % limit);
}

/* Ids of a sample: below MOST; one; none or two, and one for each on the average. */
enum spread { MANY, ALONE, UNEVEN };

/* One feature of the three: its rows, and whether its ids crowd. */
struct shape {
	u32 cores, device_cores, rows;
	u32 crowd; /* ids below this, mostly */
	u8 combiner, id_width;
	bool coo, weighted;
	enum spread spread;
};

static u32 draw_bag(enum spread spread, u32 sample, struct random *r)
{
	switch (spread) {
	case ALONE:
		return 1;
	case UNEVEN:
		return sample < 2 ? 2 * sample : 1;
	default:
		return below(r, MOST);
	}
}

static void put_id(const struct embeng_partition_feature *f, void *ids, u64 k, u64 id)
{
	if (f->id_width == 8)
		((s64 *)ids)[k] = (s64)id;
	else
		((s32 *)ids)[k] = (s32)id;
}

static u64 get_id(const struct embeng_partition_feature *f, const void *ids, u64 k)
{
	return f->id_width == 8 ? ((const u64 *)ids)[k] : ((const u32 *)ids)[k];
}

/* Offsets of all forms, kept by the test. */
static u64 bags[GRID_FEATURES][SAMPLES + 1];

static void fill_feature(struct grid *g, u32 index, const struct shape *shape, struct random *r)
{
	struct embeng_partition_feature *f = &g->features[index];
	u64 ids = 0;
	float *weights;
	void *data;

	for (u32 s = 0; s < SAMPLES; s++) {
		bags[index][s] = ids;
		ids += draw_bag(shape->spread, s, r);
	}
	bags[index][SAMPLES] = ids;
	f->form = shape->coo ? EMBENG_FORM_COO : EMBENG_FORM_CSR;
	f->id_width = shape->id_width;
	f->offset_width = shape->coo ? 4 : 8;
	f->combiner = shape->combiner;
	f->rows = shape->rows;
	f->rotation = index % shape->cores;
	f->sample_count = SAMPLES;
	f->id_count = ids;
	data = direct_memory(g->d, ids * f->id_width, &f->ids);
	for (u64 k = 0; k < ids; k++)
		put_id(f, data, k, below(r, below(r, 4) ? shape->crowd : shape->rows));
	data = direct_memory(g->d, shape->coo ? 4 * ids : 8 * (SAMPLES + 1), &f->offsets);
	for (u32 s = 0; s <= SAMPLES; s++) {
		if (!shape->coo)
			((u64 *)data)[s] = bags[index][s];
		for (u64 k = bags[index][s]; shape->coo && s < SAMPLES && k < bags[index][s + 1];
		     k++)
			((u32 *)data)[k] = s;
	}
	weights = shape->weighted ? grid_weights(g, index) : NULL;
	for (u64 k = 0; weights && k < ids; k++)
		weights[k] = (float)below(r, 1u << 20) / 262144.0f - 1.0f;
}

static int by_place(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	const u32 keys[][2] = {{x->core, y->core},
			       {x->partition, y->partition},
			       {x->token, y->token},
			       {x->row, y->row},
			       {x->place, y->place}};

	for (u32 i = 0; i < 5; i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	return 0;
}

static float scale_of_bag(const struct embeng_partition_feature *f, const float *weights, u64 first,
			  u64 last)
{
	double sum = 0;

	for (u64 k = first; k < last; k++) {
		double w = weights ? (double)weights[k] : 1;

		sum += f->combiner == EMBENG_COMBINER_MEAN ? w : w * w;
	}
	if (f->combiner == EMBENG_COMBINER_SUM)
		return 1;
	if (f->combiner == EMBENG_COMBINER_SQRTN)
		sum = __builtin_sqrt(sum);
	return sum == 0 ? 0 : (float)(1 / sum);
}

static u64 list_feature(const struct grid *g, u32 index, struct item *items, u64 count)
{
	const struct embeng_partition_feature *f = &g->features[index];
	u32 cores = g->head->cores, samples = SAMPLES / g->head->device_cores;
	const void *ids = g->d->arena + f->ids.offset;
	const float *weights = mem_given(&f->weights)
				       ? (const float *)(g->d->arena + f->weights.offset)
				       : NULL;

	for (u32 s = 0; s < SAMPLES; s++) {
		float scale = scale_of_bag(f, weights, bags[index][s], bags[index][s + 1]);

		for (u64 k = bags[index][s]; k < bags[index][s + 1]; k++) {
			u64 id = get_id(f, ids, k);
			u64 column = (id + f->rotation) % cores + id / cores * cores +
				     f->column_offset;

			items[count] = (struct item){s / samples,
						     (u32)(column % cores),
						     (u32)(column / cores),
						     index * samples + s % samples,
						     (u32)count,
						     scale * (weights ? weights[k] : 1.0f)};
			count++;
		}
	}
	return count;
}

/* Items as they must come, equal ones made one. */
static u64 list_items(const struct grid *g, struct item **out)
{
	struct item *items;
	u64 count = 0, kept = 0;

	for (u32 i = 0; i < GRID_FEATURES; i++)
		count += g->features[i].id_count;
	items = calloc(count + 1, sizeof(*items));
	count = 0;
	for (u32 i = 0; i < GRID_FEATURES; i++)
		count = list_feature(g, i, items, count);
	qsort(items, count, sizeof(*items), by_place);
	for (u64 k = 0; k < count; k++) {
		struct item *last = kept ? &items[kept - 1] : NULL;

		if (last && last->core == items[k].core && last->partition == items[k].partition &&
		    last->token == items[k].token && last->row == items[k].row)
			last->gain += items[k].gain;
		else
			items[kept++] = items[k];
	}
	*out = items;
	return kept;
}

static void check_padding(const struct grid *g, u64 at)
{
	const u32 two_to_31 = 0x4f000000;

	for (; at % PCSR_ALIGN; at++) {
		ck_assert_uint_eq(g->tokens[at], PCSR_PAD_ID);
		ck_assert_uint_eq(g->samples[at], PCSR_PAD_ID);
		ck_assert(!memcmp(&g->gains[at], &two_to_31, 4));
	}
}

/* The most that any core has of a partition: items, and tokens that differ. */
static void check_totals(const struct grid *g, const struct item *items, u64 count)
{
	const u32 *told = (const u32 *)(grid_result(g) + 1);
	u32 cores = g->head->cores, ids = 0, columns = 0;
	u32 *most = calloc(2 * cores, sizeof(*most));

	for (u64 k = 0; k < count; k++) {
		const struct item *last = k ? &items[k - 1] : NULL, *i = &items[k];
		bool begins = !last || last->core != i->core || last->partition != i->partition;

		ids = begins ? 1 : ids + 1;
		columns = begins ? 1 : columns + (last->token != i->token);
		most[i->partition] = ids > most[i->partition] ? ids : most[i->partition];
		most[cores + i->partition] = columns > most[cores + i->partition]
						     ? columns
						     : most[cores + i->partition];
	}
	for (u32 i = 0; i < 2 * cores; i++)
		ck_assert_msg(told[i] == most[i], "%u: %u, expected %u", i, told[i], most[i]);
	free(most);
}

static void check_all(const struct grid *g)
{
	const struct embeng_partition_result *result = grid_result(g);
	struct item *items;
	u64 count = list_items(g, &items), k = 0, at = 0;

	ck_assert_uint_eq(result->minibatches, 1);
	for (u32 c = 0; c < g->head->device_cores; c++) {
		for (u32 p = 0; p < g->head->cores; p++) {
			u64 end = (u64)g->row_pointers[c * result->row_stride + p];

			for (at = (at + 7) / 8 * 8; at < end; at++, k++) {
				ck_assert_uint_lt(k, count);
				ck_assert_msg(items[k].core == c && items[k].partition == p &&
						      items[k].token == g->tokens[at] &&
						      items[k].row == g->samples[at],
					      "item %llu of core %u, partition %u",
					      (unsigned long long)k, c, p);
				ck_assert_msg(!memcmp(&items[k].gain, &g->gains[at], 4),
					      "item %llu: gain %a, expected %a",
					      (unsigned long long)k, (double)g->gains[at],
					      (double)items[k].gain);
			}
			check_padding(g, at);
		}
	}
	ck_assert_uint_eq(k, count);
	check_totals(g, items, count);
	free(items);
}

static struct grid make(struct direct *d, const struct shape *shape, u64 seed)
{
	struct grid g = grid_new(d, GRID_FEATURES, shape->cores, shape->device_cores, 1u << 17);
	struct random r = {seed};
	u64 rows = (shape->rows + shape->cores - 1) / shape->cores * shape->cores;

	for (u32 i = 0; i < GRID_FEATURES; i++) {
		fill_feature(&g, i, shape, &r);
		g.features[i].column_offset = i * rows;
	}
	g.head->columns = GRID_FEATURES * rows;
	return g;
}

static const struct shape shapes[] = {
	{64, 4, 1000000, 1000000, EMBENG_COMBINER_SUM, 4, false, true, MANY},
	{64, 4, 100000, 200, EMBENG_COMBINER_MEAN, 8, true, false, MANY},
	{8, 2, 5000, 3, EMBENG_COMBINER_SQRTN, 8, false, true, MANY},
	{1, 1, 600000000, 600000000, EMBENG_COMBINER_SUM, 4, true, true, MANY},
	{6, 2, 3000, 50, EMBENG_COMBINER_MEAN, 4, false, true, MANY},
	{4, 1, 500000000, 100, EMBENG_COMBINER_SUM, 8, false, false, MANY},
	{512, 8, 1000, 1000, EMBENG_COMBINER_SUM, 4, false, false, MANY},
	{16, 4, 300, 300, EMBENG_COMBINER_SUM, 4, false, true, MANY},
	{64, 64, 500000000, 500000000, EMBENG_COMBINER_SUM, 4, false, false, MANY},
	/* Too many partitions for a digit of the sort. */
	{4096, 2, 1000000, 1000000, EMBENG_COMBINER_SUM, 4, false, true, MANY},
	{4096, 2, 1000000, 200, EMBENG_COMBINER_SUM, 8, false, false, MANY},
	/* All of a core sorted at once, with and without equal ids. */
	{64, 4, 1000, 1000, EMBENG_COMBINER_SUM, 4, false, true, ALONE},
	{64, 2, 3000, 40, EMBENG_COMBINER_MEAN, 8, true, false, ALONE},
	{4, 1, 100, 100, EMBENG_COMBINER_SQRTN, 4, false, true, ALONE},
	{8, 1, 100000, 100000, EMBENG_COMBINER_SUM, 8, true, true, ALONE},
	{64, 4, 1000, 5, EMBENG_COMBINER_MEAN, 4, false, false, UNEVEN},
	{16, 1, 400, 3, EMBENG_COMBINER_SUM, 8, true, true, UNEVEN},
	{2, 1, 1, 1, EMBENG_COMBINER_SUM, 4, false, false, UNEVEN},
	{8, 1, 300, 3, EMBENG_COMBINER_SQRTN, 4, false, false, ALONE},
};

/* Shapes with no equal ids; many, with weights; many, without; ids nearly alone, and alone. */
static const u32 compared[] = {0, 2, 5, 16, 18};

START_TEST(test_items_are_those_sorted_one_by_one)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct direct *d = direct_new(1, NULL);
		struct grid g = make(d, &shapes[i], 20240229 + i);
		struct fault fault;

		ck_assert_uint_eq(grid_run(&g, &fault), 0);
		check_all(&g);
		direct_free(d);
	}
}
END_TEST

/* All that came out, the gaps between cores too. */
static u8 *whole(const struct grid *g)
{
	u64 bytes = g->head->tokens.length, pointers = g->head->row_pointers.length;
	u64 result = g->head->result.length;
	u8 *copy = malloc(3 * bytes + pointers + result);

	memcpy(copy, g->tokens, bytes);
	memcpy(copy + bytes, g->samples, bytes);
	memcpy(copy + 2 * bytes, g->gains, bytes);
	memcpy(copy + 3 * bytes, g->row_pointers, pointers);
	memcpy(copy + 3 * bytes + pointers, g->result, result);
	return copy;
}

static void limit_grid(struct grid *g, u16 flags)
{
	g->head->flags = flags;
	g->head->max_ids = flags ? 60 : 0;
	g->head->bucket = EMBENG_BUCKET_MOD;
}

static void compare_cores(const struct shape *shape, u16 flags, const char *variant, const u8 *want)
{
	const u32 cores[] = {1, 2, 3, 4, 7};

	for (u32 i = 0; i < 5; i++) {
		struct direct *d = direct_new(cores[i], variant);
		struct grid g = make(d, shape, 7);
		struct fault fault;
		u8 *got;

		d->engine.inline_bytes = 0;
		limit_grid(&g, flags);
		ck_assert_uint_eq(grid_run(&g, &fault), 0);
		got = whole(&g);
		ck_assert_msg(!memcmp(got, want,
				      3 * g.head->tokens.length + g.head->row_pointers.length +
					      g.head->result.length),
			      "%s, %u cores, flags %u", variant, cores[i], flags);
		free(got);
		direct_free(d);
	}
}

static void compare_variants(const struct shape *shape, u16 flags)
{
	struct direct *d = direct_new(1, "portable");
	struct grid g = make(d, shape, 7);
	struct fault fault;
	u8 *want;

	limit_grid(&g, flags);
	ck_assert_uint_eq(grid_run(&g, &fault), 0);
	ck_assert_int_eq(grid_result(&g)->dropped_ids != 0, flags != 0);
	want = whole(&g);
	for (u32 v = 0; kernel_variant(v); v++) {
		if (variant_or_skip(v, "same bits"))
			compare_cores(shape, flags, kernel_variant(v), want);
	}
	free(want);
	direct_free(d);
}

START_TEST(test_same_bits_for_any_cores_and_variant)
{
	const u16 flags[] = {0, EMBENG_PARTITION_DROPPING,
			     EMBENG_PARTITION_DROPPING | EMBENG_PARTITION_MINIBATCHING};

	for (u32 i = 0; i < 3 * sizeof(compared) / sizeof(compared[0]); i++)
		compare_variants(&shapes[compared[i / 3]], flags[i % 3]);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_items_are_those_sorted_one_by_one,
		test_same_bits_for_any_cores_and_variant,
		NULL,
	};

	return direct_main("partitioned CSR, random", tests);
}
