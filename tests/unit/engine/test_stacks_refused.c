// SPDX-License-Identifier: MIT
/*
 * LOOKUP of partitioned CSR: what its descriptor and its arrays may not say, one at a time. The
 * same step is given again afterwards.
 */
#include "direct_main.h"
#include "stacks_help.h"

#define LIMIT 40u /* items of a feature */
#define NONE EMBENG_NO_INDEX

static struct grid grids[STACKS];

struct expected {
	u16 status;
	u32 field, feature;
	u64 element, value, limit;
};

static void refused(struct direct *d, struct stacks_lookup *l, struct expected e)
{
	const struct fault *fault = &l->command->fault;

	ck_assert_int_eq(direct_submit(d, l->command), VERDICT_FAILED);
	ck_assert_uint_eq(fault->status, e.status);
	ck_assert_uint_eq(fault->field, e.field);
	ck_assert_uint_eq(fault->feature, e.feature);
	ck_assert_uint_eq(fault->element, e.element);
	ck_assert_uint_eq(fault->value, e.value);
	ck_assert_uint_eq(fault->limit, e.limit);
	ck_assert_uint_eq(d->context.model->replicas[0].accepted, 0);
	free(l->command);
}

static struct direct *open_grids(const struct way *way)
{
	struct direct *d = stacks_open(1, false, 0, LIMIT);
	struct bags b = draw_bags(21);

	for (u32 s = 0; s < STACKS; s++)
		grids[s] = stack_grid(d, s, &b, way);
	return d;
}

/* A good lookup with one change is refused; the good one is not. */
#define REFUSED(change, ...) \
	do { \
		struct stacks_lookup l = lookup_stacks(d, &d->input[0], 1, grids); \
\
		change; \
		refused(d, &l, (struct expected){__VA_ARGS__}); \
	} while (0)

#define ACCEPTED() \
	ck_assert_uint_eq(direct_do(d, lookup_stacks(d, &d->input[0], 1, grids).command), 0)

static const struct way tf = {EMBENG_FLAVOUR_TF, 0, 0};
static const struct way jax = {EMBENG_FLAVOUR_JAX, 0, 0};

START_TEST(test_header)
{
	struct direct *d = open_grids(&tf);
	const u64 at = offsetof(struct embeng_lookup, stack_count);

	REFUSED(l.header->member_count = 65537, EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS, NONE, 0,
		65537, 65536);
	REFUSED(l.header->stack_count = 5, EMBENG_STATUS_COUNT, EMBENG_FIELD_STACKS, NONE, 0, 5, 4);
	REFUSED(l.header->stack_stride = 160, EMBENG_STATUS_STRIDE, EMBENG_FIELD_STACKS, NONE, 0,
		160, 168);
	REFUSED(l.header->stack_stride = 172, EMBENG_STATUS_STRIDE, EMBENG_FIELD_STACKS, NONE, 0,
		172, 168);
	REFUSED(l.header->member_stride = 24, EMBENG_STATUS_STRIDE, EMBENG_FIELD_MEMBERS, NONE, 0,
		24, 32);
	REFUSED(l.header->member_stride = 36, EMBENG_STATUS_STRIDE, EMBENG_FIELD_MEMBERS, NONE, 0,
		36, 32);
	REFUSED(l.command->cmd.desc.length -= 32, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, NONE, 0,
		32 + 4 * 128 + 2 * 168 + 3 * 32, 32 + 4 * 128 + 2 * 168 + 4 * 32);
	REFUSED(l.header->stack_count = 0, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, NONE, at,
		168 | 4 | 32, 0);
	REFUSED((l.header->stack_count = l.header->member_count = 0, l.header->member_stride = 0),
		EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, NONE, at, 168, 0);
	ACCEPTED();
	direct_free(d);
}
END_TEST

START_TEST(test_without_the_capability)
{
	struct direct *d = open_grids(&tf);

	d->engine.caps.features &= ~EMBENG_CAP_PARTITIONED;
	REFUSED((void)0, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, NONE,
		offsetof(struct embeng_lookup, stack_count), 2 | 168 | 4 | 32, 0);
	d->engine.caps.features |= EMBENG_CAP_PARTITIONED;
	ACCEPTED();
	direct_free(d);
}
END_TEST

START_TEST(test_features)
{
	struct direct *d = open_grids(&tf);

	REFUSED(l.features[2].id_width = 4, EMBENG_STATUS_WIDTH, EMBENG_FIELD_IDS, 2, 0, 4, 0);
	REFUSED(l.features[2].offset_width = 8, EMBENG_STATUS_WIDTH, EMBENG_FIELD_ROW_OFFSETS, 2, 0,
		8, 0);
	REFUSED(l.features[2].id_count = 1, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, 2, 0, 1, 0);
	REFUSED(l.features[2].offsets = l.stacks[0].tokens, EMBENG_STATUS_FORM,
		EMBENG_FIELD_ROW_OFFSETS, 2, 0, 0, 0);
	REFUSED(l.features[2].ids = l.stacks[0].tokens, EMBENG_STATUS_FORM, EMBENG_FIELD_IDS, 2, 0,
		0, 0);
	REFUSED(l.features[2].weights = l.stacks[0].gains, EMBENG_STATUS_FORM, EMBENG_FIELD_WEIGHTS,
		2, 0, 0, 0);
	REFUSED(l.features[2].activations.length -= 4, EMBENG_STATUS_LENGTH,
		EMBENG_FIELD_ACTIVATIONS, 2, 0, out_bytes(2) - 4, out_bytes(2));
	REFUSED(l.features[2].activations.generation = 6, EMBENG_STATUS_KEY,
		EMBENG_FIELD_ACTIVATIONS, 2, 0, 6, 0);
	/* Nobody has it as a member. */
	REFUSED(l.members[3].feature = NONE, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, 2, 0,
		EMBENG_FORM_PARTITIONED, EMBENG_FORM_POOLED);
	ACCEPTED();
	direct_free(d);
}
END_TEST

START_TEST(test_stacks)
{
	struct direct *d = open_grids(&tf);
	const u64 items = 4096, pointers = DEVICE_CORES * 8;

	REFUSED(l.stacks[1].flags = 2, EMBENG_STATUS_RESERVED, EMBENG_FIELD_STACKS, 1, 0, 2, 0);
	REFUSED(l.stacks[1].reserved[0] = 4, EMBENG_STATUS_RESERVED, EMBENG_FIELD_STACKS, 1, 0, 4,
		0);
	REFUSED(l.stacks[1].reserved[1] = 8, EMBENG_STATUS_RESERVED, EMBENG_FIELD_STACKS, 1, 0, 8,
		0);
	REFUSED(l.stacks[1].cores = 0, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES, 1, 0, 0, 65536);
	REFUSED(l.stacks[1].cores = 65538, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES, 1, 0, 65538,
		65536);
	REFUSED(l.stacks[1].device_cores = 0, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES, 1, 0, 0, 64);
	REFUSED(l.stacks[1].device_cores = 65, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES, 1, 0, 65,
		64);
	REFUSED(l.stacks[1].device_cores = 3, EMBENG_STATUS_GRID, EMBENG_FIELD_CORES, 1, 0, 4, 3);
	REFUSED(l.stacks[1].minibatches = 0, EMBENG_STATUS_COUNT, EMBENG_FIELD_ROW_POINTERS, 1, 0,
		0, 64);
	REFUSED(l.stacks[1].minibatches = 65, EMBENG_STATUS_COUNT, EMBENG_FIELD_ROW_POINTERS, 1, 0,
		65, 64);
	REFUSED(l.stacks[1].row_stride = 3, EMBENG_STATUS_STRIDE, EMBENG_FIELD_ROW_POINTERS, 1, 0,
		3, 4);
	REFUSED(l.stacks[1].row_pointers.length -= 4, EMBENG_STATUS_LENGTH,
		EMBENG_FIELD_ROW_POINTERS, 1, 0, 4 * pointers - 4, 4 * pointers);
	REFUSED(l.stacks[1].tokens.length -= 4, EMBENG_STATUS_LENGTH, EMBENG_FIELD_TOKENS, 1, 0,
		4 * items - 4, 4 * items);
	REFUSED(l.stacks[1].samples.length -= 4, EMBENG_STATUS_LENGTH, EMBENG_FIELD_SAMPLE_IDS, 1,
		0, 4 * items - 4, 4 * items);
	REFUSED(l.stacks[1].gains.length -= 4, EMBENG_STATUS_LENGTH, EMBENG_FIELD_GAINS, 1, 0,
		4 * items - 4, 4 * items);
	REFUSED(l.stacks[1].item_count = 1ull << 62, EMBENG_STATUS_LENGTH, EMBENG_FIELD_TOKENS, 1,
		0, 4 * items, U64_MAX);
	REFUSED(l.stacks[1].bounds.length -= 8, EMBENG_STATUS_LENGTH, EMBENG_FIELD_BOUNDS, 1, 0,
		16 * DEVICE_CORES - 8, 16 * DEVICE_CORES);
	REFUSED(l.stacks[1].member_count = 0, EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS, 1, 0, 0,
		1);
	REFUSED(l.stacks[1].member_count = 2, EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS, 1, 0, 2,
		1);
	ACCEPTED();
	direct_free(d);
}
END_TEST

/* Keys are checked as all keys are: each array has its own. */
START_TEST(test_arrays)
{
	struct direct *d = open_grids(&tf);

	REFUSED(l.stacks[0].row_pointers.generation = 6, EMBENG_STATUS_KEY,
		EMBENG_FIELD_ROW_POINTERS, 0, 0, 6, 0);
	REFUSED(l.stacks[1].tokens.generation = 6, EMBENG_STATUS_KEY, EMBENG_FIELD_TOKENS, 1, 0, 6,
		0);
	REFUSED(l.stacks[1].samples.offset += 2, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_SAMPLE_IDS,
		1, 0, l.stacks[1].samples.offset, 4);
	REFUSED(l.stacks[1].gains.generation = 8, EMBENG_STATUS_KEY, EMBENG_FIELD_GAINS, 1, 0, 8,
		0);
	REFUSED(l.stacks[1].bounds.offset += 4, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_BOUNDS, 1, 0,
		l.stacks[1].bounds.offset, 8);
	ACCEPTED();
	direct_free(d);
}
END_TEST

START_TEST(test_members)
{
	struct direct *d = open_grids(&tf);
	const u64 last = 0x7fffffffull * CORES;

	REFUSED(l.members[3].reserved = 9, EMBENG_STATUS_RESERVED, EMBENG_FIELD_MEMBERS, 1, 3, 9,
		0);
	REFUSED(l.members[1].rotation = 4, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES, 0, 1, 4, 3);
	REFUSED(l.members[1].column_offset = 2, EMBENG_STATUS_GRID, EMBENG_FIELD_COLUMNS, 0, 1, 2,
		4);
	REFUSED(l.members[1].column_offset = last + CORES, EMBENG_STATUS_COUNT,
		EMBENG_FIELD_COLUMNS, 0, 1, last + CORES, last);
	REFUSED(l.members[1].sample_count = 7, EMBENG_STATUS_GRID, EMBENG_FIELD_MEMBERS, 0, 1, 7,
		2);
	REFUSED(l.members[1].sample_count = 1ull << 40, EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS,
		0, 1, 1ull << 40, 0x7ffffff8);
	REFUSED(l.members[1].feature = FEATURES, EMBENG_STATUS_FEATURE, EMBENG_FIELD_MEMBERS, 0, 1,
		FEATURES, FEATURES);
	REFUSED((l.features[0].form = EMBENG_FORM_POOLED, l.features[0].id_width = 4,
		 l.features[0].offset_width = 8,
		 direct_memory(d, 8 * (SAMPLES + 1), &l.features[0].offsets)),
		EMBENG_STATUS_FORM, EMBENG_FIELD_MEMBERS, 0, 1, 0, EMBENG_FORM_PARTITIONED);
	REFUSED(l.members[3].feature = 1, EMBENG_STATUS_FEATURE, EMBENG_FIELD_MEMBERS, 1, 3, 1, 1);
	REFUSED(l.members[1].sample_count = 4, EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS, 0, 1, 4,
		8);
	ACCEPTED();
	direct_free(d);
}
END_TEST

static u64 *bound(struct direct *d, const struct stacks_lookup *l, u32 stack, u32 k)
{
	return (u64 *)(d->arena + l->stacks[stack].bounds.offset) + k;
}

/* Without its last member the first stack has no place for its items, so it gets none. */
static void leave_member(struct direct *d, struct stacks_lookup *l)
{
	l->stacks[0].member_count--;
	l->members[2] = l->members[3];
	memset(bound(d, l, 0, 0), 0, l->stacks[0].bounds.length);
	memset(d->arena + l->stacks[0].row_pointers.offset, 0, l->stacks[0].row_pointers.length);
}

START_TEST(test_members_left_over)
{
	struct direct *d = open_grids(&tf);

	REFUSED(leave_member(d, &l), EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS, NONE, 0, 4, 3);
	direct_free(d);
}
END_TEST

START_TEST(test_bounds)
{
	struct direct *d = open_grids(&tf);
	u64 kept[2 * DEVICE_CORES];
	struct stacks_lookup first = lookup_stacks(d, &d->input[0], 1, grids);

	memcpy(kept, bound(d, &first, 0, 0), sizeof(kept));
	free(first.command);
	ck_assert_uint_gt(kept[1], 0);
#define BOUND(k, to, ...) \
	REFUSED(*bound(d, &l, 0, k) = (to), __VA_ARGS__); \
	*bound(d, &first, 0, k) = kept[k]
	BOUND(1, kept[1] + 4, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_BOUNDS, 0, 1, kept[1] + 4, 8);
	BOUND(3, 4097, EMBENG_STATUS_BUFFER, EMBENG_FIELD_BOUNDS, 0, 3, 4097, 4096);
	BOUND(3, U64_MAX, EMBENG_STATUS_BUFFER, EMBENG_FIELD_BOUNDS, 0, 3, U64_MAX, 4096);
	BOUND(3, kept[1] - 1, EMBENG_STATUS_BUFFER, EMBENG_FIELD_BOUNDS, 0, 3, kept[1] - 1,
	      kept[1]);
	BOUND(1, kept[1] - 8, EMBENG_STATUS_BUFFER, EMBENG_FIELD_BOUNDS, 0, 1, kept[1] - 8,
	      kept[2]);
	ACCEPTED();
	direct_free(d);
}
END_TEST

/* Core 1 of the stack, where there are items before. */
static void refuse_pointers(const struct way *way)
{
	struct direct *d = open_grids(way);
	bool own = way == &jax;
	u64 first = grid_cores(&grids[0])[DEVICE_CORES + 1], end = grid_cores(&grids[0])[5];
	s32 *pointers = grids[0].row_pointers + 8, kept[8];
	u64 origin = own ? first : 0;

	memcpy(kept, pointers, sizeof(kept));
#define POINTER(k, to, ...) \
	REFUSED(pointers[k] = (to), __VA_ARGS__); \
	memcpy(pointers, kept, sizeof(kept))
	POINTER(0, -1, EMBENG_STATUS_BUFFER, EMBENG_FIELD_ROW_POINTERS, 0, 8, (u64)-1,
		first - origin);
	POINTER(2, kept[1] - 1, EMBENG_STATUS_BUFFER, EMBENG_FIELD_ROW_POINTERS, 0, 10,
		(u64)kept[1] - 1, (u64)kept[1]);
	POINTER(3, INT32_MAX, EMBENG_STATUS_BUFFER, EMBENG_FIELD_ROW_POINTERS, 0, 11, INT32_MAX,
		end - origin);
	if (!own) {
		POINTER(0, (s32)first - 1, EMBENG_STATUS_BUFFER, EMBENG_FIELD_ROW_POINTERS, 0, 8,
			first - 1, first);
	}
	/* Those beyond the grid's cores are not looked at. */
	pointers[5] = -1;
	ACCEPTED();
	direct_free(d);
}

START_TEST(test_row_pointers)
{
	refuse_pointers(&tf);
	refuse_pointers(&jax);
}
END_TEST

START_TEST(test_items)
{
	struct direct *d = open_grids(&tf);
	struct grid *g = &grids[0];
	/* The first item of core 1 is of partition 0. */
	u64 at = grid_cores(g)[DEVICE_CORES + 1];
	u32 sample = g->samples[at], token = g->tokens[at], rows = SAMPLES * 5 / 4;
	float gain = g->gains[at];

#define ITEM(array, to, from, ...) \
	REFUSED(g->array[at] = (to), __VA_ARGS__); \
	g->array[at] = (from)
	ck_assert_uint_gt(g->row_pointers[8], (s32)at);
	ITEM(samples, rows, sample, EMBENG_STATUS_SAMPLE, EMBENG_FIELD_SAMPLE_IDS, 0, at, rows,
	     rows);
	ITEM(samples, (u32)-1, sample, EMBENG_STATUS_SAMPLE, EMBENG_FIELD_SAMPLE_IDS, 0, at,
	     (u64)-1, rows);
	/* A sample of the first member is one of table 0, whose 50 rows have 13 in partition 0. */
	g->samples[at] = 0;
	ITEM(tokens, 13, token, EMBENG_STATUS_ID, EMBENG_FIELD_TOKENS, 0, at, 13, 13);
	ITEM(tokens, (u32)-1, token, EMBENG_STATUS_ID, EMBENG_FIELD_TOKENS, 0, at, (u64)-1, 13);
	/* One of the last is of table 1: 16 tokens later, row 2 in partition 0; rows 2 to 30. */
	g->samples[at] = rows - 1;
	ITEM(tokens, 15, token, EMBENG_STATUS_ID, EMBENG_FIELD_TOKENS, 0, at, 15, 24);
	ITEM(tokens, 24, token, EMBENG_STATUS_ID, EMBENG_FIELD_TOKENS, 0, at, 24, 24);
	g->samples[at] = sample;
	ITEM(gains, __builtin_inff(), gain, EMBENG_STATUS_WEIGHT, EMBENG_FIELD_GAINS, 0, at,
	     0x7f800000, 0x7f800000);
	ITEM(gains, __builtin_nanf(""), gain, EMBENG_STATUS_WEIGHT, EMBENG_FIELD_GAINS, 0, at,
	     0x7fc00000, 0x7f800000);
	ACCEPTED();
	direct_free(d);
}
END_TEST

/* More items than the model gives a feature. */
START_TEST(test_limit_of_a_feature)
{
	struct direct *d = stacks_open(1, false, 0, 3);
	struct bags b = draw_bags(21);

	for (u32 s = 0; s < STACKS; s++)
		grids[s] = stack_grid(d, s, &b, &tf);
	for (u32 k = 0; k < 4096; k++) /* all of one feature, whatever token is in its table */
		grids[0].samples[k] = 0;
	for (u32 k = 0; k < 4096; k++)
		grids[0].tokens[k] = 1;
	REFUSED((void)0, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, 3, 0, 4, 3);
	direct_free(d);
}
END_TEST

/* Samples of nobody are passed over, whatever their tokens; so features may come another way. */
START_TEST(test_nobody)
{
	struct direct *d = open_grids(&tf), *plain = open_grids(&tf);
	struct bags b = draw_bags(21);
	struct stacks_lookup l = lookup_stacks(d, &d->input[0], 1, grids);
	struct stacks_lookup want = lookup_bags(plain, &plain->input[0], 1, &b);

	stacks_fill(d);
	stacks_fill(plain);
	ck_assert_uint_eq(l.members[1].feature, 0);
	l.members[1].feature = NONE;
	l.members[1].column_offset = 1024;
	lookup_bag(d, &l.features[0], &b, 0);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	ck_assert_uint_eq(direct_do(plain, want.command), 0);
	ck_assert_mem_eq(l.out[0], want.out[0], out_bytes(0));
	ck_assert_uint_eq(stacks_update(d, 1), 0);
	direct_free(d);
	direct_free(plain);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_header,
		test_without_the_capability,
		test_features,
		test_stacks,
		test_arrays,
		test_members,
		test_members_left_over,
		test_bounds,
		test_row_pointers,
		test_items,
		test_limit_of_a_feature,
		test_nobody,
		NULL,
	};

	return direct_main("stacks, refused", tests);
}
