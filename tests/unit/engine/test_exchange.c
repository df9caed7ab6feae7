/* SPDX-License-Identifier: MIT */
/*
 * UNIQUE, POOL, SUM and LOOKUP of form ROWS: lists by host under each placement and policy, sums of
 * many runs for any number of cores, zeros that keep their sign, and each rule broken once.
 */
#include <math.h>

#include "direct_main.h"
#include "direct_model.h"
#include "exchange_help.h"

#define ANY 77u /* nobody wrote here */

static u32 bits_of(float x)
{
	u32 bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* -- UNIQUE ---------------------------------------------------------------- */

struct list {
	struct swap s;
	u64 *rows, *counts;
	s32 *places[2];
};

static const s64 bag_ids[] = {7, 2, 7, -1, 0, 10, 7, 9, 2, 2};
static const s64 bag_ends[] = {3, 6, 6, 10};
static const s64 dense_ids[] = {9, 3, 9};

/* Bags of ids, the first with some outside a table of 10 rows, and a dense feature. */
static struct list new_list(struct direct *d, u32 hosts, u32 placement, u32 policy)
{
	struct list l = {.s = swap_new(d, EMBENG_OP_UNIQUE, 2, hosts, 10, 0)};

	l.s.head->placement = placement;
	l.s.table->out_of_range = (u8)policy;
	swap_ids(&l.s, 0, bag_ids, 4, bag_ends);
	swap_ids(&l.s, 1, dense_ids, 3, NULL);
	l.rows = direct_memory(d, 8 * 8, &l.s.table->rows);
	l.counts = direct_memory(d, 8ull * hosts, &l.s.table->result);
	for (u32 f = 0; f < 2; f++) {
		l.places[f] = direct_memory(d, 4 * l.s.features[f].id_count, &l.s.features[f].data);
		for (u64 i = 0; i < l.s.features[f].id_count; i++)
			l.places[f][i] = ANY;
	}
	for (u32 i = 0; i < 8; i++)
		l.rows[i] = ANY;
	return l;
}

static void expect_list(struct list *l, const u64 *rows, u64 count, const u64 *counts,
			const s32 *bags, const s32 *dense)
{
	struct fault fault;
	u64 result;

	ck_assert_uint_eq(swap_run(&l->s, &fault, &result), 0);
	ck_assert_uint_eq(result, count);
	for (u64 i = 0; i < 8; i++)
		ck_assert_uint_eq(l->rows[i], i < count ? rows[i] : ANY);
	ck_assert_mem_eq(l->counts, counts, 8ull * l->s.head->hosts);
	ck_assert_mem_eq(l->places[0], bags, sizeof(bag_ids) / 2);
	ck_assert_mem_eq(l->places[1], dense, sizeof(dense_ids) / 2);
}

START_TEST(test_lists_by_host)
{
	struct direct *d = direct_new(2, "portable");
	struct list l = new_list(d, 3, EMBENG_PLACEMENT_MOD, EMBENG_OUT_OF_RANGE_DROP);

	/* Rows 0, 3 and 9 are host 0's, 7 is host 1's, 2 is host 2's. */
	expect_list(&l, (u64[]){0, 1, 3, 2, 0}, 5, (u64[]){3, 1, 1},
		    (s32[]){3, 4, 3, -1, 0, -1, 3, 2, 4, 4}, (s32[]){2, 1, 2});
	/* Rows 0 to 3, 4 to 6 and 7 to 9. */
	l = new_list(d, 3, EMBENG_PLACEMENT_DIV, EMBENG_OUT_OF_RANGE_ZERO);
	expect_list(&l, (u64[]){0, 2, 3, 0, 2}, 5, (u64[]){3, 0, 2},
		    (s32[]){3, 1, 3, -1, 0, -1, 3, 4, 1, 1}, (s32[]){4, 2, 4});
	/* -1 becomes row 0 and 10 becomes row 9. */
	l = new_list(d, 1, EMBENG_PLACEMENT_DIV, EMBENG_OUT_OF_RANGE_CLAMP);
	expect_list(&l, (u64[]){0, 2, 3, 7, 9}, 5, (u64[]){5},
		    (s32[]){3, 1, 3, 0, 0, 4, 3, 4, 1, 1}, (s32[]){4, 2, 4});
	/* More hosts than rows: the last ones have none. */
	l = new_list(d, 12, EMBENG_PLACEMENT_DIV, EMBENG_OUT_OF_RANGE_DROP);
	expect_list(&l, (u64[]){0, 0, 0, 0, 0}, 5, (u64[]){1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0},
		    (s32[]){3, 1, 3, -1, 0, -1, 3, 4, 1, 1}, (s32[]){4, 2, 4});
	direct_free(d);
}
END_TEST

/* With DROP the ids behind one that is left out move up, with ZERO it takes a position. */
START_TEST(test_a_sequence_has_no_rows_behind_its_length)
{
	struct direct *d = direct_new(2, "portable");
	struct list l = new_list(d, 1, EMBENG_PLACEMENT_MOD, EMBENG_OUT_OF_RANGE_DROP);

	l.s.features[0].max_sequence_length = 2;
	expect_list(&l, (u64[]){0, 2, 3, 7, 9}, 5, (u64[]){5},
		    (s32[]){3, 1, -1, -1, 0, -1, 3, 4, -1, -1}, (s32[]){4, 2, 4});
	l = new_list(d, 1, EMBENG_PLACEMENT_MOD, EMBENG_OUT_OF_RANGE_ZERO);
	l.s.features[0].max_sequence_length = 1;
	expect_list(&l, (u64[]){3, 7, 9}, 3, (u64[]){3},
		    (s32[]){1, -1, -1, -1, -1, -1, 1, -1, -1, -1}, (s32[]){2, 0, 2});
	/* A pooled form has no sequence. */
	l = new_list(d, 1, EMBENG_PLACEMENT_MOD, EMBENG_OUT_OF_RANGE_ZERO);
	l.s.features[0].max_sequence_length = 1;
	l.s.features[0].form = EMBENG_FORM_POOLED;
	expect_list(&l, (u64[]){0, 2, 3, 7, 9}, 5, (u64[]){5},
		    (s32[]){3, 1, 3, -1, 0, -1, 3, 4, 1, 1}, (s32[]){4, 2, 4});
	direct_free(d);
}
END_TEST

START_TEST(test_a_batch_without_ids)
{
	struct direct *d = direct_new(1, "portable");
	struct swap s = swap_new(d, EMBENG_OP_UNIQUE, 1, 2, 1ull << 40, 0);
	struct fault fault;
	u64 *counts, result;

	swap_ids(&s, 0, NULL, 0, NULL);
	counts = direct_memory(d, 16, &s.table->result);
	counts[0] = counts[1] = ANY;
	ck_assert_uint_eq(swap_run(&s, &fault, &result), 0);
	ck_assert_uint_eq(result + counts[0] + counts[1], 0);
	direct_free(d);
}
END_TEST

/* Numbers of rows beyond 32 bits. */
START_TEST(test_lists_of_large_tables)
{
	const s64 ids[] = {(1ll << 40) - 1, 5, (1ll << 40) - 1, 1ll << 33};
	struct direct *d = direct_new(2, "portable");
	struct swap s = swap_new(d, EMBENG_OP_UNIQUE, 1, 2, 1ull << 40, 0);
	struct fault fault;
	u64 *rows, *counts;
	s32 *places;

	s.head->placement = EMBENG_PLACEMENT_MOD;
	swap_ids(&s, 0, ids, 4, NULL);
	rows = direct_memory(d, 24, &s.table->rows);
	counts = direct_memory(d, 16, &s.table->result);
	places = direct_memory(d, 16, &s.features[0].data);
	ck_assert_uint_eq(swap_run(&s, &fault, NULL), 0);
	ck_assert_mem_eq(rows, ((u64[]){1ull << 32, 2, (1ull << 39) - 1}), 24);
	ck_assert_mem_eq(counts, ((u64[]){1, 2}), 16);
	ck_assert_mem_eq(places, ((s32[]){2, 1, 2, 0}), 16);
	direct_free(d);
}
END_TEST

/* -- POOL and SUM ------------------------------------------------------------ */

struct held {
	struct swap s;
	float *rows, *sums, *data;
};

/* Three rows of two columns, two samples: rows 0, 2, 2 and row 0 weighted. */
static struct held new_held(struct direct *d, u16 opcode, u32 combiner)
{
	static const s64 places[] = {0, 2, 2, 0, -1}, ends[] = {3, 5};
	static const float weights[] = {0.5f, 2.0f, -1.0f, 4.0f, 1.0f};
	struct held h = {.s = swap_new(d, opcode, 1, 0, 3, 2)};

	h.s.table->combiner = (u8)combiner;
	h.s.table->out_of_range = EMBENG_OUT_OF_RANGE_ZERO;
	swap_ids(&h.s, 0, places, 2, ends);
	if (combiner != EMBENG_COMBINER_MAX)
		memcpy(direct_memory(d, sizeof(weights), &h.s.features[0].weights), weights,
		       sizeof(weights));
	if (opcode == EMBENG_OP_POOL || combiner == EMBENG_COMBINER_MAX) {
		h.rows = direct_memory(d, 24, &h.s.table->rows);
		for (u32 i = 0; i < 6; i++)
			h.rows[i] = 1.0f + (float)i;
	}
	if (opcode == EMBENG_OP_SUM) {
		h.sums = direct_memory(d, 24, &h.s.table->result);
		for (u32 i = 0; i < 6; i++)
			h.sums[i] = (float)ANY;
	}
	h.data = direct_memory(d, 16, &h.s.features[0].data);
	for (u32 i = 0; opcode == EMBENG_OP_SUM && i < 4; i++)
		h.data[i] = 1.0f + (float)i;
	return h;
}

static void expect_floats(struct held *h, const float *got, const float *want, size_t count)
{
	struct fault fault;
	u64 result;

	ck_assert_uint_eq(swap_run(&h->s, &fault, &result), 0);
	ck_assert_uint_eq(result, 5);
	ck_assert_mem_eq(got, want, count * sizeof(float));
}

START_TEST(test_pools_rows_that_came)
{
	struct direct *d = direct_new(2, "portable");
	struct held h = new_held(d, EMBENG_OP_POOL, EMBENG_COMBINER_SUM);
	const float scale = (float)(1 / 1.5);

	/* 0.5 * (1, 2) + (2 - 1) * (5, 6), and 4 * (1, 2). */
	expect_floats(&h, h.data, (float[]){5.5f, 7, 4, 8}, 4);
	h = new_held(d, EMBENG_OP_POOL, EMBENG_COMBINER_MEAN);
	/* Zeros count as one id, of weight 1. */
	expect_floats(&h, h.data, (float[]){5.5f * scale, 7 * scale, 4 * 0.2f, 8 * 0.2f}, 4);
	h = new_held(d, EMBENG_OP_POOL, EMBENG_COMBINER_MEAN);
	h.s.table->out_of_range = EMBENG_OUT_OF_RANGE_DROP;
	expect_floats(&h, h.data + 2, (float[]){1, 2}, 2);
	h = new_held(d, EMBENG_OP_POOL, EMBENG_COMBINER_MAX);
	expect_floats(&h, h.data, (float[]){5, 6, 1, 2}, 4);
	direct_free(d);
}
END_TEST

START_TEST(test_sums_gradients_of_rows)
{
	struct direct *d = direct_new(2, "portable");
	struct held h = new_held(d, EMBENG_OP_SUM, EMBENG_COMBINER_SUM);

	/* Row 0: 0.5 * (1, 2) + 4 * (3, 4). Nobody names row 1. Row 2: 2 * (1, 2) - (1, 2). */
	expect_floats(&h, h.sums, (float[]){12.5f, 17, 0, 0, 1, 2}, 6);
	h = new_held(d, EMBENG_OP_SUM, EMBENG_COMBINER_MAX);
	/* Row 2 holds the largest numbers of the first sample, row 0 those of the second. */
	expect_floats(&h, h.sums, (float[]){3, 4, 0, 0, 1, 2}, 6);
	h = new_held(d, EMBENG_OP_SUM, EMBENG_COMBINER_SUM);
	h.s.features[0].data = (struct embeng_mem){0};
	expect_floats(&h, h.sums, (float[]){0, 0, 0, 0, 0, 0}, 6);
	direct_free(d);
}
END_TEST

#define MANY 9000u
#define DIM 3u

static float gradient(u64 sample, u32 column)
{
	return (float)((sample * 2654435761u >> 7) % 1000 + column) * 0x1.1p-9f - 0.7f;
}

/* Runs of 256, from left to right. */
static void sum_by_hand(u64 first, u64 step, float sum[DIM])
{
	for (u32 c = 0; c < DIM; c++) {
		u64 n = 0;
		float run = 0;

		sum[c] = 0;
		for (u64 s = first; s < MANY; s += step) {
			run += gradient(s, c);
			if (++n % KERNEL_RUN && s + step < MANY)
				continue;
			sum[c] = n <= KERNEL_RUN ? run : sum[c] + run;
			run = 0;
		}
	}
}

/* Row 1 has two of three samples, which is more than one bounded call may sum. */
START_TEST(test_a_row_of_many_runs)
{
	static s64 places[MANY];
	float want[2][DIM];

	for (u64 i = 0; i < MANY; i++)
		places[i] = 1;
	sum_by_hand(0, 1, want[1]);
	for (u32 cores = 1; cores <= 3; cores++) {
		struct direct *d = direct_new(cores, NULL);
		struct held h = {.s = swap_new(d, EMBENG_OP_SUM, 1, 0, 2, DIM)};
		struct fault fault;

		swap_ids(&h.s, 0, places, MANY, NULL);
		h.sums = direct_memory(d, sizeof(want), &h.s.table->result);
		h.data = direct_memory(d, 4ull * MANY * DIM, &h.s.features[0].data);
		for (u64 i = 0; i < (u64)MANY * DIM; i++)
			h.data[i] = gradient(i / DIM, (u32)(i % DIM));
		ck_assert_uint_eq(swap_run(&h.s, &fault, NULL), 0);
		ck_assert_mem_eq(h.sums + DIM, want[1], sizeof(want[1]));
		for (u32 c = 0; c < DIM; c++)
			ck_assert_uint_eq(bits_of(h.sums[c]), 0);
		direct_free(d);
	}
}
END_TEST

START_TEST(test_numbers_that_are_not_finite)
{
	struct direct *d = direct_new(1, "portable");
	struct held h = new_held(d, EMBENG_OP_SUM, EMBENG_COMBINER_SUM);
	struct fault fault;

	h.data[3] = INFINITY;
	ck_assert_uint_eq(swap_run(&h.s, &fault, NULL), EMBENG_STATUS_GRADIENT);
	ck_assert_uint_eq(fault.field, EMBENG_FIELD_GRADIENTS);
	ck_assert_uint_eq(fault.feature, 0);
	ck_assert_uint_eq(fault.element, 3);
	ck_assert_float_eq(h.sums[0], (float)ANY);
	h.s.head->flags = EMBENG_EXCHANGE_NON_FINITE;
	expect_floats(&h, h.sums, (float[]){12.5f, INFINITY, 0, 0, 1, 2}, 6);
	h = new_held(d, EMBENG_OP_POOL, EMBENG_COMBINER_SUM);
	((float *)(void *)(d->arena + h.s.features[0].weights.offset))[1] = NAN;
	ck_assert_uint_eq(swap_run(&h.s, &fault, NULL), EMBENG_STATUS_WEIGHT);
	ck_assert_uint_eq(fault.element, 1);
	h.s.head->flags = EMBENG_EXCHANGE_NON_FINITE;
	ck_assert_uint_eq(swap_run(&h.s, &fault, NULL), 0);
	ck_assert_float_eq(h.data[2], 4);
	direct_free(d);
}
END_TEST

/* -- LOOKUP of form ROWS -------------------------------------------------------- */

START_TEST(test_gathered_rows_keep_their_bits)
{
	static const s64 ids[] = {4, 2, 4};
	static const u32 forms[] = {EMBENG_FORM_DENSE, EMBENG_FORM_ROWS};
	struct small_model m = small_model(10, 3);
	struct direct *d = small_open(&m, 2);
	u32 *table = d->context.model->tables[0].data;

	for (u32 i = 0; i < 30; i++)
		table[i] = bits_of(i % 2 ? -0.0f : (float)i);
	for (u32 k = 0; k < 2; k++) {
		struct small_lookup l = small_lookup(d, &d->inference, 0, ids, 3);
		const u32 *out;

		l.feature->form = (u8)forms[k];
		out = (const u32 *)(void *)(d->arena + l.feature->activations.offset);
		ck_assert_uint_eq(direct_do(d, l.command), 0);
		for (u32 i = 0; i < 9; i++) {
			u32 want = table[3 * (u32)ids[i / 3] + i % 3];

			ck_assert_uint_eq(out[i], k || want != bits_of(-0.0f) ? want : 0);
		}
	}
	direct_free(d);
}
END_TEST

/* -- refused ---------------------------------------------------------------------- */

struct expected {
	u16 status;
	u32 field, feature;
	u64 element, value, limit;
};

static void refused(struct swap s, struct expected e)
{
	struct fault fault;

	ck_assert_uint_eq(swap_run(&s, &fault, NULL), e.status);
	ck_assert_uint_eq(fault.field, e.field);
	ck_assert_uint_eq(fault.feature, e.feature);
	ck_assert_uint_eq(fault.element, e.element);
	ck_assert_uint_eq(fault.value, e.value);
	ck_assert_uint_eq(fault.limit, e.limit);
}

#define NONE EMBENG_NO_INDEX
#define REFUSED(status, field, ...) \
	refused(s, (struct expected){EMBENG_STATUS_##status, EMBENG_FIELD_##field, __VA_ARGS__})

START_TEST(test_every_rule_of_a_head)
{
	struct direct *d = direct_new(1, "portable");
	struct swap s;

#define UNIQUE() (s = new_list(d, 3, 0, EMBENG_OUT_OF_RANGE_DROP).s)
#define HEAD() (UNIQUE(), s.head)
	HEAD()->table_count = 0;
	REFUSED(COUNT, TABLE_COUNT, NONE, 0, 0, EMBENG_EXCHANGE_TABLES_MAX);
	HEAD()->table_count = 4097;
	REFUSED(COUNT, TABLE_COUNT, NONE, 0, 4097, EMBENG_EXCHANGE_TABLES_MAX);
	HEAD()->feature_count = 0;
	REFUSED(COUNT, FEATURE_COUNT, NONE, 0, 0, EMBENG_EXCHANGE_FEATURES_MAX);
	HEAD()->table_stride = 60;
	REFUSED(STRIDE, TABLE, NONE, 0, 60, 64);
	HEAD()->feature_stride = 120;
	REFUSED(STRIDE, FEATURE_STRIDE, NONE, 0, 120, 128);
	HEAD()->table_count = 2;
	REFUSED(LENGTH, DESC, NONE, 0, 32 + 64 + 256, 32 + 128 + 256);
	HEAD()->flags = EMBENG_EXCHANGE_NON_FINITE;
	REFUSED(RESERVED, FLAGS, NONE, 0, 1, 0);
	HEAD()->reserved = 9;
	REFUSED(RESERVED, RESERVED, NONE, 0, 9, 0);
	HEAD()->hosts = 0;
	REFUSED(COUNT, HOSTS, NONE, 0, 0, EMBENG_EXCHANGE_HOSTS_MAX);
	HEAD()->hosts = 65537;
	REFUSED(COUNT, HOSTS, NONE, 0, 65537, EMBENG_EXCHANGE_HOSTS_MAX);
	HEAD()->placement = 2;
	REFUSED(FORM, HOSTS, NONE, 0, 2, 1);
	UNIQUE();
	s.desc.length = 24;
	REFUSED(LENGTH, DESC, NONE, 0, 24, 32);
	UNIQUE();
	d->engine.caps.features &= ~EMBENG_CAP_EXCHANGE;
	REFUSED(OPCODE, OPCODE, NONE, 0, EMBENG_OP_UNIQUE, EMBENG_OP_SNAPSHOT_END);
	direct_free(d);
}
END_TEST

START_TEST(test_every_rule_of_a_list)
{
	struct direct *d = direct_new(1, "portable");
	struct swap s;

#define TABLE() (UNIQUE(), s.table)
	TABLE()->reserved = 3;
	REFUSED(RESERVED, TABLE, 0, 0, 3, 0);
	TABLE()->dim = 1;
	REFUSED(COUNT, TABLE, 0, 0, 1, 0);
	TABLE()->combiner = 1;
	REFUSED(FORM, TABLE, 0, 0, 1, 0);
	TABLE()->out_of_range = 4;
	REFUSED(FORM, TABLE, 0, 0, 4, 3);
	TABLE()->row_count = 0;
	REFUSED(COUNT, ROWS, 0, 0, 0, ~0ull >> 1);
	TABLE()->row_count = 1ull << 63;
	REFUSED(COUNT, ROWS, 0, 0, 1ull << 63, ~0ull >> 1);
	TABLE()->rows.length = 31;
	REFUSED(LENGTH, ROWS, 0, 0, 31, 24);
	TABLE()->rows.length = 32;
	REFUSED(COUNT, ROWS, 0, 0, 5, 4);
	TABLE()->result.length = 16;
	REFUSED(LENGTH, RESULT, 0, 0, 16, 24);
	TABLE()->out_of_range = EMBENG_OUT_OF_RANGE_ERROR;
	REFUSED(ID, IDS, 0, 3, (u64)-1, 10);
	UNIQUE();
	s.features[1].reserved1 = 2;
	REFUSED(RESERVED, RESERVED, 1, 0, 2, 0);
	UNIQUE();
	s.features[1].table = 1;
	REFUSED(TABLE, FEATURE_INDEX, 1, 0, 1, 1);
	UNIQUE();
	s.features[1].form = EMBENG_FORM_COO;
	REFUSED(FORM, NONE, 1, 0, 3, 2);
	UNIQUE();
	s.features[1].weights = s.features[1].ids;
	REFUSED(FORM, WEIGHTS, 1, 0, 0, 0);
	UNIQUE();
	s.features[1].data.length = 8;
	REFUSED(LENGTH, DATA, 1, 0, 8, 12);
	UNIQUE();
	s.features[0].offsets.length = 32;
	REFUSED(LENGTH, ROW_OFFSETS, 0, 0, 32, 40);
	direct_free(d);
}
END_TEST

START_TEST(test_every_rule_of_rows_that_came)
{
	struct direct *d = direct_new(1, "portable");
	struct swap s;

#define HELD(op, combiner) (s = new_held(d, EMBENG_OP_##op, EMBENG_COMBINER_##combiner).s)
	HELD(POOL, SUM);
	s.head->hosts = 1;
	REFUSED(COUNT, HOSTS, NONE, 0, 1, 0);
	HELD(POOL, SUM);
	s.head->flags = 2;
	REFUSED(RESERVED, FLAGS, NONE, 0, 2, 1);
	HELD(POOL, SUM);
	s.table->dim = 0;
	REFUSED(COUNT, TABLE, 0, 0, 0, 4096);
	HELD(POOL, SUM);
	s.table->dim = 4097;
	REFUSED(COUNT, TABLE, 0, 0, 4097, 4096);
	HELD(POOL, SUM);
	s.table->combiner = 4;
	REFUSED(FORM, TABLE, 0, 0, 4, 3);
	HELD(POOL, SUM);
	s.table->out_of_range = EMBENG_OUT_OF_RANGE_CLAMP;
	REFUSED(FORM, TABLE, 0, 0, 1, 3);
	HELD(POOL, SUM);
	s.table->out_of_range = EMBENG_OUT_OF_RANGE_ERROR;
	REFUSED(ID, IDS, 0, 4, (u64)-1, 3);
	HELD(POOL, SUM);
	s.table->rows.length = 16;
	REFUSED(LENGTH, ROWS, 0, 0, 16, 24);
	HELD(POOL, SUM);
	s.table->result = s.table->rows;
	REFUSED(FORM, RESULT, 0, 0, 24, 0);
	HELD(POOL, SUM);
	s.features[0].data.length = 8;
	REFUSED(LENGTH, ACTIVATIONS, 0, 0, 8, 16);
	HELD(POOL, MAX);
	s.features[0].weights = s.features[0].ids;
	REFUSED(FORM, WEIGHTS, 0, 0, 0, 0);
	HELD(SUM, SUM);
	s.table->rows = s.table->result;
	REFUSED(FORM, ROWS, 0, 0, 24, 0);
	HELD(SUM, SUM);
	s.table->result.length = 8;
	REFUSED(LENGTH, RESULT, 0, 0, 8, 24);
	HELD(SUM, SUM);
	s.features[0].data.length = 8;
	REFUSED(LENGTH, GRADIENTS, 0, 0, 8, 16);
	HELD(SUM, MAX);
	s.table->rows = (struct embeng_mem){0};
	REFUSED(LENGTH, ROWS, 0, 0, 0, 24);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_lists_by_host,
				      test_a_sequence_has_no_rows_behind_its_length,
				      test_a_batch_without_ids,
				      test_lists_of_large_tables,
				      test_pools_rows_that_came,
				      test_sums_gradients_of_rows,
				      test_a_row_of_many_runs,
				      test_numbers_that_are_not_finite,
				      test_gathered_rows_keep_their_bits,
				      test_every_rule_of_a_head,
				      test_every_rule_of_a_list,
				      test_every_rule_of_rows_that_came,
				      NULL};

	return direct_main("exchange", tests);
}
