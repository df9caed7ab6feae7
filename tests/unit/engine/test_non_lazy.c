/* SPDX-License-Identifier: MIT */
/*
 * Adam that is not lazy: at every step the rows that no batch touched go through the same
 * arithmetic with a gradient of 0, in tables of several chunks and in tables without features.
 */
#include <stdio.h>

#include "direct_main.h"
#include "direct_model.h"
#include "random_table.h"
#include "variants.h"

#define TABLES 3 /* with a feature; without; without, and lazy */
#define STEPS 3
#define CHUNK 4096 /* rows, of dims up to 64 */
#define TOUCHED 40

struct run {
	struct direct *d;
	struct drawing draw;
	struct ref_table table[TABLES];
	u64 step; /* the optimizer's */
	u64 touched;
};

static const u32 all_cores[] = {1, 2, 3, 4, 7};

static void draw_tables(struct run *r, bool bias_correction)
{
	for (int t = 0; t < TABLES; t++) {
		struct ref_table *table = &r->table[t];

		*table = (struct ref_table){
			.rows = t ? 300 : 2 * CHUNK + 5,
			.dim = 1 + draw_below(&r->draw, 4),
			.optimizer = REF_ADAM,
			.accumulate = true,
			.non_lazy = t < 2,
			.rate = 0.25f,
			.decay = 0.01f,
			.decay_by_rate = draw_below(&r->draw, 2),
			.gradient_min = draw_below(&r->draw, 2) ? 0.125f : -1.0f,
			.gradient_max = 0.75f,
			.weight_min = -1.0f,
			.weight_max = 0.875f,
			.hyper = {0.9f, 0.99f, 1e-3f, draw_below(&r->draw, 2), bias_correction},
		};
		make_table(table);
		for (u64 i = 0; i < (u64)table->rows * table->dim; i++) {
			table->weights[i] = draw_gradient(&r->draw);
			table->slot[0][i] = draw_gradient(&r->draw);
			table->slot[1][i] = fabsf(draw_gradient(&r->draw));
		}
	}
}

static void load(struct run *r)
{
	struct embeng_record_engine e = {
		.replicas = 1, .table_count = TABLES + 1, .feature_count = 1};
	struct embeng_record_table plain = {.rows = 5, .dim = 2}; /* without optimizer */
	struct embeng_record_feature f = {.table = 0};
	struct direct_blob *b = calloc(1, sizeof(*b));

	blob_record(b, EMBENG_RECORD_ENGINE, &e, sizeof(e));
	for (int t = 0; t < TABLES; t++) {
		struct embeng_record_table record = table_record(&r->table[t]);

		blob_record(b, EMBENG_RECORD_TABLE, &record, sizeof(record));
	}
	blob_record(b, EMBENG_RECORD_TABLE, &plain, sizeof(plain));
	blob_record(b, EMBENG_RECORD_FEATURE, &f, sizeof(f));
	blob_seal(b);
	ck_assert_uint_eq(direct_load(r->d, b), 0);
	free(b);
	for (int t = 0; t < TABLES; t++) {
		struct table *to = &r->d->context.model->tables[t];

		memcpy(to->data, r->table[t].weights, to->bytes);
		memcpy(to->slots[0], r->table[t].slot[0], to->bytes);
		memcpy(to->slots[1], r->table[t].slot[1], to->bytes);
	}
}

static u64 state(struct run *r, u16 opcode, u64 value)
{
	struct command *command = direct_command(&r->d->transfer, opcode);
	u64 *steps = direct_memory(r->d, sizeof(*steps), &command->cmd.desc);

	*steps = value;
	command->cmd.after = r->d->context.model->applied;
	ck_assert_uint_eq(direct_do(r->d, command), 0);
	return *steps;
}

static struct embeng_stats stats(struct run *r, u32 table)
{
	struct command *command = direct_command(&r->d->transfer, EMBENG_OP_STATS);
	struct embeng_stats *to = direct_memory(r->d, sizeof(*to), &command->cmd.desc);

	command->cmd.arg = table | EMBENG_STATS_CLEAR;
	command->cmd.after = r->d->context.model->applied;
	ck_assert_uint_eq(direct_do(r->d, command), 0);
	return *to;
}

/* The ends of the table and of its chunks, and some between; each once. */
static void draw_ids(struct run *r, s64 *ids)
{
	static const s64 ends[] = {0, CHUNK - 1, CHUNK, 2 * CHUNK - 1, 2 * CHUNK + 4};
	u64 first = 0;

	for (u64 i = 0; i < 5; i++) {
		if (draw_below(&r->draw, 2))
			ids[first++] = ends[i];
	}
	for (r->touched = first; r->touched < TOUCHED; r->touched++)
		ids[r->touched] = 10 + 100 * (s64)r->touched + draw_below(&r->draw, 80);
}

static void reference(struct run *r, const s64 *ids, float gradient)
{
	for (int t = 0; t < TABLES; t++) {
		struct ref_table *table = &r->table[t];
		u8 *touched = calloc(table->rows, 1);

		for (u64 i = 0; t == 0 && i < r->touched; i++)
			touched[ids[i]] = 1;
		for (int64_t i = 0; table->non_lazy && i < table->rows * table->dim; i++)
			ref_optimize(table, i, touched[i / table->dim] ? gradient : 0.0f, 0.25f,
				     1.0f, r->step);
		free(touched);
	}
}

static void same(const u32 *got, const float *want, u64 count, const char *what, int table)
{
	for (u64 i = 0; i < count; i++) {
		if (got[i] != bits_of(want[i]))
			ck_abort_msg("%s of table %d, element %llu: %#x, not %a", what, table,
				     (unsigned long long)i, got[i], (double)want[i]);
	}
}

static void compare(const struct run *r)
{
	for (int t = 0; t < TABLES; t++) {
		const struct table *got = &r->d->context.model->tables[t];
		const struct ref_table *want = &r->table[t];
		u64 count = (u64)want->rows * want->dim;

		same(got->data, want->weights, count, "weights", t);
		same(got->slots[0], want->slot[0], count, "momenta", t);
		same(got->slots[1], want->slot[1], count, "velocities", t);
	}
}

static void train_step(struct run *r, u64 number)
{
	float gradient = draw_gradient(&r->draw);
	s64 ids[TOUCHED];

	draw_ids(r, ids);
	r->step++;
	ck_assert_uint_eq(
		direct_do(r->d,
			  small_lookup(r->d, &r->d->input[0], number, ids, r->touched).command),
		0);
	ck_assert_uint_eq(direct_do(r->d, small_update(r->d, 0, number, r->touched, gradient)), 0);
	reference(r, ids, gradient);
	compare(r);
}

static void check_stats(struct run *r)
{
	struct embeng_stats s = stats(r, 0);

	ck_assert_uint_eq(s.steps, STEPS);
	ck_assert_uint_eq(s.updated_rows, STEPS * TOUCHED);
	ck_assert_uint_eq(s.untouched_rows, STEPS * (2 * CHUNK + 5 - TOUCHED));
	s = stats(r, 1);
	ck_assert_uint_eq(s.updated_rows, 0);
	ck_assert_uint_eq(s.untouched_rows, STEPS * 300);
	s = stats(r, 2);
	ck_assert_uint_eq(s.updated_rows, 0);
	ck_assert_uint_eq(s.untouched_rows, 0);
	s = stats(r, 1);
	ck_assert_uint_eq(s.untouched_rows, 0);
}

static void train_all_rows(u32 i, u32 cores, const char *variant)
{
	struct run r = {.draw = {60 + i}};

	printf("seed %u, %s, %u cores\n", 60 + i, variant, cores);
	r.d = direct_new(cores, variant);
	draw_tables(&r, i % 2);
	load(&r);
	if (i % 3)
		r.step = state(&r, EMBENG_OP_STATE_WRITE, 1000 * i);
	for (u64 step = 1; step <= STEPS; step++)
		train_step(&r, step);
	ck_assert_uint_eq(state(&r, EMBENG_OP_STATE_READ, 0), r.step);
	check_stats(&r);
	for (int t = 0; t < TABLES; t++)
		free_table(&r.table[t]);
	direct_free(r.d);
}

START_TEST(test_all_rows_at_every_step)
{
	const struct kernel_ops *ops;
	u32 seed = 0;

	for_each_variant(ops)
		for (u32 c = 0; c < sizeof(all_cores) / sizeof(all_cores[0]); c++)
			train_all_rows(seed++, all_cores[c], ops->name);
}
END_TEST

/* A touched row whose gradient is 0, and one that is not touched: no difference. */
START_TEST(test_no_gradient_is_a_gradient_of_zero)
{
	struct small_model m = small_model(3, 2);
	const s64 id = 1;
	struct direct *d;

	m.table.optimizer = EMBENG_OPTIMIZER_ADAM;
	m.table.slot_count = 2;
	m.table.flags |= EMBENG_TABLE_NON_LAZY;
	m.table.hyperparameter[0] = m.table.hyperparameter[1] = bits_of(0.5f);
	m.table.hyperparameter[2] = bits_of(1.0f);
	m.table.slot_start[0] = bits_of(4.0f);
	m.table.slot_start[1] = bits_of(8.0f);
	d = small_open(&m, 2);
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 1, &id, 1).command), 0);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 1, 0.0f)), 0);
	for (u32 i = 0; i < 6; i++) {
		const struct table *table = &d->context.model->tables[0];

		/* 1 * 2 / (sqrt(4) + 1) */
		ck_assert_uint_eq(table->data[i], bits_of(-2.0f / 3));
		ck_assert_uint_eq(table->slots[0][i], bits_of(2.0f));
		ck_assert_uint_eq(table->slots[1][i], bits_of(4.0f));
	}
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_all_rows_at_every_step,
				      test_no_gradient_is_a_gradient_of_zero, NULL};

	return direct_main("non_lazy", tests);
}
