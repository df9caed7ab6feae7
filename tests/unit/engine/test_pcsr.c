// SPDX-License-Identifier: MIT
/* PARTITION: each rule of its descriptor is broken once; the command fails and writes nothing. */
#include "direct_main.h"
#include "pcsr_help.h"
#include "engine/hash/highway.h"
#include "engine/partition/partition.h"

#define UNTOUCHED 0x5a

struct mistake {
	const char *name;
	void (*make)(struct grid *g);
	u16 status;
	u32 field;
};

#define MISTAKE(name, change) \
	static void name(struct grid *g) \
	{ \
		change; \
	}

MISTAKE(no_features, g->head->feature_count = 0)
MISTAKE(many_features, g->head->feature_count = EMBENG_PARTITION_FEATURES_MAX + 1)
MISTAKE(short_stride, g->head->feature_stride -= 8)
MISTAKE(odd_stride, g->head->feature_stride += 4)
MISTAKE(long_desc, g->desc.length += 8)
MISTAKE(short_desc, g->desc.length = sizeof(*g->head) - 8)
MISTAKE(flavour, g->head->flavour = 2)
MISTAKE(bucket, g->head->bucket = 3)
MISTAKE(flags, g->head->flags = 4)
MISTAKE(reserved, g->head->reserved = 1)
MISTAKE(lone_splits, g->head->splits = 1)
MISTAKE(far_splits, {
	g->head->splits = 1ull << 63;
	g->head->flags = EMBENG_PARTITION_MINIBATCHING;
})
MISTAKE(no_cores, g->head->cores = 0)
MISTAKE(many_cores, g->head->cores = EMBENG_PARTITION_CORES_MAX + 2)
MISTAKE(no_device_cores, g->head->device_cores = 0)
MISTAKE(many_device_cores, g->head->device_cores = EMBENG_PARTITION_DEVICE_CORES_MAX + 1)
MISTAKE(cores_do_not_divide, g->head->device_cores = 3)
MISTAKE(jax_not_a_power, {
	g->head->cores = 6;
	g->head->flavour = EMBENG_FLAVOUR_JAX;
})
MISTAKE(no_columns, g->head->columns = 0)
MISTAKE(many_columns, g->head->columns = (1ull << 31) + 4)
MISTAKE(odd_columns, g->head->columns += 1)
MISTAKE(max_ids, g->head->max_ids = PCSR_ITEMS_MAX + 1ull)
MISTAKE(max_unique, g->head->max_unique_ids = PCSR_ITEMS_MAX + 1ull)
MISTAKE(large_buffer, g->head->buffer = PCSR_ITEMS_MAX + 8ull)
MISTAKE(odd_buffer, g->head->buffer = 12)
MISTAKE(samples_length, g->head->samples.length -= 4)
MISTAKE(gains_length, g->head->gains.length += 4)
MISTAKE(result_length, g->head->result.length -= 8)
MISTAKE(form, g->features[0].form = EMBENG_FORM_POOLED)
MISTAKE(id_width, g->features[0].id_width = 2)
MISTAKE(dense_offset_width, g->features[0].offset_width = 8)
MISTAKE(bag_offset_width, g->features[1].offset_width = 0)
MISTAKE(dense_offsets, g->features[0].offsets = g->features[0].ids)
MISTAKE(dense_weights, g->features[0].weights = g->features[0].ids)
MISTAKE(combiner, g->features[0].combiner = 3)
MISTAKE(rotation, g->features[0].rotation = 4)
MISTAKE(no_rows, g->features[0].rows = 0)
MISTAKE(many_rows, g->features[0].rows = 193)
MISTAKE(odd_column_offset, g->features[0].column_offset = 2)
MISTAKE(large_column_offset, g->features[0].column_offset = 132)
MISTAKE(many_samples, g->features[1].sample_count = (1u << 24) + 2)
MISTAKE(odd_samples, g->features[1].sample_count = 3)
MISTAKE(many_ids, g->features[1].id_count = (1u << 24) + 1)
MISTAKE(dense_count, g->features[0].id_count = 5)
MISTAKE(ids_length, g->features[1].ids.length -= 8)
MISTAKE(offsets_length, g->features[1].offsets.length -= 8)
MISTAKE(weights_length, g->features[1].weights.length -= 4)
MISTAKE(ids_key, g->features[0].ids.generation = 6)
MISTAKE(tokens_key, g->head->tokens.generation = 6)
MISTAKE(ids_unaligned, g->features[1].ids.offset += 4)
MISTAKE(first_offset, ((s64 *)(g->d->arena + g->features[1].offsets.offset))[0] = 1)
MISTAKE(falling_offset, ((s64 *)(g->d->arena + g->features[1].offsets.offset))[2] = 0)
MISTAKE(last_offset, ((s64 *)(g->d->arena + g->features[1].offsets.offset))[4] = 5)
MISTAKE(coo_sample, ((s64 *)(g->d->arena + g->features[2].offsets.offset))[2] = 4)
MISTAKE(coo_falls, ((s64 *)(g->d->arena + g->features[2].offsets.offset))[1] = 3)
MISTAKE(id_outside, ((s32 *)(g->d->arena + g->features[0].ids.offset))[3] = 64)
MISTAKE(id_negative, ((s64 *)(g->d->arena + g->features[1].ids.offset))[5] = -1)
MISTAKE(ids_over, g->head->max_ids = 2)
MISTAKE(columns_over, g->head->max_unique_ids = 2)
MISTAKE(bucket_over, {
	g->head->max_ids = 1;
	g->head->flags = 1;
	g->head->bucket = 1;
	g->features[1].column_offset = 0;
})
MISTAKE(small_buffer, g->head->buffer = 8)
MISTAKE(jax_large_buffer, {
	g->head->flavour = EMBENG_FLAVOUR_JAX;
	g->head->max_ids = 8;
	g->head->buffer = 8 * 4 * 2 + 1;
})
MISTAKE(jax_huge_limit, {
	g->head->flavour = EMBENG_FLAVOUR_JAX;
	g->head->max_ids = PCSR_ITEMS_MAX;
})
MISTAKE(few_items, {
	g->head->tokens.length = 4 * 16;
	g->head->samples.length = 4 * 16;
	g->head->gains.length = 4 * 16;
})
MISTAKE(few_pointers, g->head->row_pointers.length = 4 * 15)

static const struct mistake mistakes[] = {
	{"no features", no_features, EMBENG_STATUS_COUNT, EMBENG_FIELD_FEATURE_COUNT},
	{"many features", many_features, EMBENG_STATUS_COUNT, EMBENG_FIELD_FEATURE_COUNT},
	{"short stride", short_stride, EMBENG_STATUS_STRIDE, EMBENG_FIELD_FEATURE_STRIDE},
	{"odd stride", odd_stride, EMBENG_STATUS_STRIDE, EMBENG_FIELD_FEATURE_STRIDE},
	{"long descriptor", long_desc, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC},
	{"short descriptor", short_desc, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC},
	{"flavour", flavour, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE},
	{"bucket", bucket, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE},
	{"flags", flags, EMBENG_STATUS_RESERVED, EMBENG_FIELD_FLAGS},
	{"reserved", reserved, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED},
	{"splits without minibatching", lone_splits, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED},
	{"splits beyond the buckets", far_splits, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED},
	{"no cores", no_cores, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES},
	{"many cores", many_cores, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES},
	{"no device cores", no_device_cores, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES},
	{"many device cores", many_device_cores, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES},
	{"cores do not divide", cores_do_not_divide, EMBENG_STATUS_GRID, EMBENG_FIELD_CORES},
	{"jax not a power of two", jax_not_a_power, EMBENG_STATUS_GRID, EMBENG_FIELD_CORES},
	{"no columns", no_columns, EMBENG_STATUS_COUNT, EMBENG_FIELD_COLUMNS},
	{"many columns", many_columns, EMBENG_STATUS_COUNT, EMBENG_FIELD_COLUMNS},
	{"odd columns", odd_columns, EMBENG_STATUS_GRID, EMBENG_FIELD_COLUMNS},
	{"max ids", max_ids, EMBENG_STATUS_COUNT, EMBENG_FIELD_MAX_IDS},
	{"max unique ids", max_unique, EMBENG_STATUS_COUNT, EMBENG_FIELD_MAX_UNIQUE_IDS},
	{"large buffer", large_buffer, EMBENG_STATUS_COUNT, EMBENG_FIELD_BUFFER},
	{"odd buffer", odd_buffer, EMBENG_STATUS_GRID, EMBENG_FIELD_BUFFER},
	{"length of samples", samples_length, EMBENG_STATUS_LENGTH, EMBENG_FIELD_SAMPLE_IDS},
	{"length of gains", gains_length, EMBENG_STATUS_LENGTH, EMBENG_FIELD_GAINS},
	{"length of result", result_length, EMBENG_STATUS_LENGTH, EMBENG_FIELD_RESULT},
	{"form", form, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE},
	{"id width", id_width, EMBENG_STATUS_WIDTH, EMBENG_FIELD_IDS},
	{"offset width of dense", dense_offset_width, EMBENG_STATUS_WIDTH,
	 EMBENG_FIELD_ROW_OFFSETS},
	{"offset width of bags", bag_offset_width, EMBENG_STATUS_WIDTH, EMBENG_FIELD_ROW_OFFSETS},
	{"offsets of dense", dense_offsets, EMBENG_STATUS_FORM, EMBENG_FIELD_ROW_OFFSETS},
	{"weights of dense", dense_weights, EMBENG_STATUS_FORM, EMBENG_FIELD_WEIGHTS},
	{"combiner", combiner, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE},
	{"rotation", rotation, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES},
	{"no rows", no_rows, EMBENG_STATUS_COUNT, EMBENG_FIELD_ROWS},
	{"many rows", many_rows, EMBENG_STATUS_COUNT, EMBENG_FIELD_ROWS},
	{"odd column offset", odd_column_offset, EMBENG_STATUS_GRID, EMBENG_FIELD_COLUMNS},
	{"large column offset", large_column_offset, EMBENG_STATUS_COUNT, EMBENG_FIELD_COLUMNS},
	{"many samples", many_samples, EMBENG_STATUS_COUNT, EMBENG_FIELD_SAMPLES},
	{"odd samples", odd_samples, EMBENG_STATUS_GRID, EMBENG_FIELD_SAMPLES},
	{"many ids", many_ids, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS},
	{"count of dense", dense_count, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS},
	{"length of ids", ids_length, EMBENG_STATUS_LENGTH, EMBENG_FIELD_IDS},
	{"length of offsets", offsets_length, EMBENG_STATUS_LENGTH, EMBENG_FIELD_ROW_OFFSETS},
	{"length of weights", weights_length, EMBENG_STATUS_LENGTH, EMBENG_FIELD_WEIGHTS},
	{"key of ids", ids_key, EMBENG_STATUS_KEY, EMBENG_FIELD_IDS},
	{"key of tokens", tokens_key, EMBENG_STATUS_KEY, EMBENG_FIELD_TOKENS},
	{"alignment of ids", ids_unaligned, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_IDS},
	{"first offset", first_offset, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS},
	{"falling offset", falling_offset, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS},
	{"last offset", last_offset, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS},
	{"sample of COO", coo_sample, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS},
	{"falling samples of COO", coo_falls, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS},
	{"id outside", id_outside, EMBENG_STATUS_ID, EMBENG_FIELD_IDS},
	{"negative id", id_negative, EMBENG_STATUS_ID, EMBENG_FIELD_IDS},
	{"ids over the limit", ids_over, EMBENG_STATUS_LIMIT, EMBENG_FIELD_MAX_IDS},
	{"columns over the limit", columns_over, EMBENG_STATUS_LIMIT, EMBENG_FIELD_MAX_UNIQUE_IDS},
	{"bucket over the limit", bucket_over, EMBENG_STATUS_LIMIT, EMBENG_FIELD_MAX_IDS},
	{"small buffer", small_buffer, EMBENG_STATUS_BUFFER, EMBENG_FIELD_BUFFER},
	{"jax: large buffer", jax_large_buffer, EMBENG_STATUS_BUFFER, EMBENG_FIELD_MAX_IDS},
	{"jax: huge limit", jax_huge_limit, EMBENG_STATUS_BUFFER, EMBENG_FIELD_MAX_IDS},
	{"few items", few_items, EMBENG_STATUS_BUFFER, EMBENG_FIELD_TOKENS},
	{"few row pointers", few_pointers, EMBENG_STATUS_BUFFER, EMBENG_FIELD_ROW_POINTERS},
};

/* Three features, dense, bags and COO, of 4 samples; their ids are all in column % 4 == 0 or 1. */
static struct grid good(struct direct *d)
{
	const s32 dense[] = {0, 4, 8, 12};
	const s64 bag_offsets[] = {0, 3, 3, 4, 6}, bag_ids[] = {0, 4, 0, 1, 60, 5};
	const s64 coo_samples[] = {0, 2, 2}, coo_ids[] = {8, 8, 16};
	struct grid g = grid_new(d, 3, 4, 2, 64);
	s64 *offsets, *ids;

	memcpy(grid_dense(&g, 0, 4), dense, sizeof(dense));
	ids = grid_bags(&g, 1, 4, 6, &offsets);
	memcpy(ids, bag_ids, sizeof(bag_ids));
	memcpy(offsets, bag_offsets, sizeof(bag_offsets));
	for (u32 i = 0; i < 6; i++)
		grid_weights(&g, 1)[i] = 1;
	ids = grid_bags(&g, 2, 4, 3, &offsets);
	memcpy(ids, coo_ids, sizeof(coo_ids));
	memcpy(offsets, coo_samples, sizeof(coo_samples));
	g.features[2].form = EMBENG_FORM_COO;
	g.features[2].offsets.length = 24;
	memset(g.tokens, UNTOUCHED, 4 * 64);
	memset(g.row_pointers, UNTOUCHED, 4 * 16);
	return g;
}

START_TEST(test_each_mistake_is_told)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct direct *d = direct_new(2, NULL);
		struct grid g = good(d);
		struct fault fault;
		u16 status = grid_run(&g, &fault);

		ck_assert_msg(!status, "%s: without it, status %u", mistakes[i].name, status);
		memset(g.tokens, UNTOUCHED, 4 * 64);
		memset(g.row_pointers, UNTOUCHED, 4 * 16);
		mistakes[i].make(&g);
		status = grid_run(&g, &fault);
		ck_assert_msg(status == mistakes[i].status, "%s: status %u", mistakes[i].name,
			      status);
		ck_assert_msg(fault.field == mistakes[i].field, "%s: field %u", mistakes[i].name,
			      fault.field);
		for (u32 k = 0; k < 64; k++)
			ck_assert_msg(((u8 *)g.tokens)[k] == UNTOUCHED &&
					      ((u8 *)g.row_pointers)[k] == UNTOUCHED,
				      "%s: byte %u written", mistakes[i].name, k);
		direct_free(d);
	}
}
END_TEST

START_TEST(test_the_place_of_an_id_at_fault)
{
	struct direct *d = direct_new(4, NULL);
	struct grid g = good(d);
	struct fault fault;

	/* The core that meets it first is another's: the first place counts. */
	((s64 *)(d->arena + g.features[1].ids.offset))[5] = 64;
	((s64 *)(d->arena + g.features[2].ids.offset))[0] = 99;
	ck_assert_uint_eq(grid_run(&g, &fault), EMBENG_STATUS_ID);
	ck_assert_uint_eq(fault.feature, 1);
	ck_assert_uint_eq(fault.element, 5);
	ck_assert_uint_eq(fault.value, 64);
	ck_assert_uint_eq(fault.limit, 64);
	direct_free(d);
}
END_TEST

START_TEST(test_needs_no_model_and_a_transfer_queue)
{
	struct direct *d = direct_new(1, NULL);
	struct grid g = good(d);
	struct fault fault;

	ck_assert_ptr_null(d->context.model);
	ck_assert_uint_eq(grid_run(&g, &fault), 0);
	ck_assert_uint_eq(grid_result(&g)->minibatches, 1);
	direct_free(d);
}
END_TEST

/* Worked out with the published algorithm, whose own test values another program checked. */
START_TEST(test_hash_of_a_column)
{
	ck_assert_uint_eq(highway_column(0), 0x286118c966bafb07);
	ck_assert_uint_eq(highway_column(1), 0x655193192efacaa7);
	ck_assert_uint_eq(highway_column(64), 0x63a744c19b19e02e);
	ck_assert_uint_eq(highway_column(0x7fffffff), 0xd3a183578274bdae);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_each_mistake_is_told,
		test_the_place_of_an_id_at_fault,
		test_needs_no_model_and_a_transfer_queue,
		test_hash_of_a_column,
		NULL,
	};

	return direct_main("partitioned CSR", tests);
}
