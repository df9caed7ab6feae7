// SPDX-License-Identifier: MIT
/*
 * ROWS_FILL of tables that are parts of a larger one: each element has the number that it has in the
 * whole table, for rows that are every n-th or a run, for columns, for both, by range and by list, in
 * parameters, slots and staged copies. Nothing else sees the whole table.
 */
#include "direct_main.h"
#include "direct_model.h"

#define WHOLE_ROWS 60u
#define WHOLE_DIM 23u
#define SEED 0x123456789abcdef0ull

static const struct {
	u64 rows, first, step;
	u32 dim, column;
} parts[] = {
	{WHOLE_ROWS, 0, 1, WHOLE_DIM, 0}, /* all of it */
	{9, 2, 7, WHOLE_DIM, 0},	  /* every seventh row */
	{20, 40, 1, WHOLE_DIM, 0},	  /* the last run */
	{1, 59, 8, WHOLE_DIM, 0},	  /* one row */
	{WHOLE_ROWS, 0, 1, 16, 0},	  /* columns, from and up to any place in a block of 4 */
	{WHOLE_ROWS, 0, 1, 7, 16},	  {WHOLE_ROWS, 0, 1, 6, 5},
	{WHOLE_ROWS, 0, 1, 1, 22},	  {12, 3, 5, 9, 14}, /* both */
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static const u32 optimizers[] = {EMBENG_OPTIMIZER_ADAGRAD, EMBENG_OPTIMIZER_ROWWISE_ADAGRAD};
static const u32 kinds[] = {EMBENG_FILL_CONSTANT, EMBENG_FILL_UNIFORM,
			    EMBENG_FILL_TRUNCATED_NORMAL};

static struct direct *open_part(u32 part, u32 optimizer)
{
	struct small_model m = small_model(parts[part].rows, parts[part].dim);

	m.table.optimizer = (u8)optimizer;
	m.table.slot_count = 1;
	if (optimizer == EMBENG_OPTIMIZER_ROWWISE_ADAGRAD)
		m.table.hyperparameter[0] = 0x3f800000;
	m.shard = (struct embeng_record_shard){
		.whole_rows = WHOLE_ROWS,
		.first_row = parts[part].first,
		.row_step = parts[part].step,
		.whole_dim = WHOLE_DIM,
		.first_column = parts[part].column,
	};
	return small_open(&m, 2);
}

static struct command *fill(struct direct *d, u32 slot, u32 kind, struct embeng_rows **rows)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_ROWS_FILL);

	*rows = direct_memory(d, sizeof(**rows), &command->cmd.desc);
	(*rows)->slot = slot;
	(*rows)->fill = kind;
	(*rows)->a = 0x3e800000; /* 1/4, and 1/2: no number is below 0, which slots do not have */
	(*rows)->b = kind ? 0x3f000000 : 0;
	(*rows)->seed = SEED;
	return command;
}

/* The whole table, from a model without the record. */
static void make_whole(u32 optimizer, u32 slot, u32 kind, float *to)
{
	struct small_model m = small_model(WHOLE_ROWS, WHOLE_DIM);
	struct embeng_rows *rows;
	struct command *command;
	struct direct *d;
	void *data;

	m.table.optimizer = (u8)optimizer;
	m.table.slot_count = 1;
	if (optimizer == EMBENG_OPTIMIZER_ROWWISE_ADAGRAD)
		m.table.hyperparameter[0] = 0x3f800000;
	d = small_open(&m, 1);
	command = fill(d, slot, kind, &rows);
	rows->count = WHOLE_ROWS;
	ck_assert_uint_eq(direct_do(d, command), 0);
	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, slot, 0, WHOLE_ROWS, &data), 0);
	memcpy(to, data, WHOLE_ROWS * table_row_bytes(&d->context.model->tables[0], slot));
	direct_free(d);
}

struct look {
	struct direct *d;
	u32 part, slot, width, whole_width, column;
	const float *whole;
};

/* Row @row must be as in the whole table, or zeros. */
static void expect_row(const struct look *l, const float *data, u64 row, bool filled)
{
	const float *want = l->whole +
			    (parts[l->part].first + row * parts[l->part].step) * l->whole_width +
			    l->column;
	static const float zeros[WHOLE_DIM];

	ck_assert_mem_eq(data + row * l->width, filled ? want : zeros, l->width * 4);
}

static void expect_rows(const struct look *l, const bool *filled)
{
	const u64 count = parts[l->part].rows;
	void *data;

	ck_assert_uint_eq(direct_rows(l->d, EMBENG_OP_ROWS_READ, 0, l->slot, 0, count, &data), 0);
	for (u64 i = 0; i < count; i++)
		expect_row(l, data, i, filled[i]);
}

/* Some rows in the middle by a range, some others by a list that has one twice, then all. */
static void fill_part(const struct look *l, u32 kind)
{
	const u64 count = parts[l->part].rows, first = count / 3, some = count / 4;
	const u64 ids[] = {count - 1, 0, count - 1};
	bool filled[WHOLE_ROWS] = {0};
	struct embeng_rows *rows;
	struct command *command = fill(l->d, l->slot, kind, &rows);

	rows->first = first;
	rows->count = some;
	ck_assert_uint_eq(direct_do(l->d, command), 0);
	for (u64 i = first; i < first + some; i++)
		filled[i] = true;
	expect_rows(l, filled);
	command = fill(l->d, l->slot, kind, &rows);
	rows->count = 3;
	memcpy(direct_memory(l->d, sizeof(ids), &rows->ids), ids, sizeof(ids));
	ck_assert_uint_eq(direct_do(l->d, command), 0);
	filled[0] = filled[count - 1] = true;
	expect_rows(l, filled);
	command = fill(l->d, l->slot, kind, &rows);
	rows->count = count;
	ck_assert_uint_eq(direct_do(l->d, command), 0);
	memset(filled, true, sizeof(filled));
	expect_rows(l, filled);
}

START_TEST(test_parts_are_filled_as_the_whole)
{
	const u32 part = (u32)_i;
	float whole[WHOLE_ROWS * WHOLE_DIM];

	for (u32 o = 0; o < 2; o++)
		for (u32 slot = 0; slot < 2; slot++)
			for (u32 kind = 0; kind < 3; kind++) {
				const bool one = optimizers[o] ==
							 EMBENG_OPTIMIZER_ROWWISE_ADAGRAD &&
						 slot;
				struct look l = {.d = open_part(part, optimizers[o]),
						 .part = part,
						 .slot = slot,
						 .width = one ? 1 : parts[part].dim,
						 .whole_width = one ? 1 : WHOLE_DIM,
						 .column = one ? 0 : parts[part].column,
						 .whole = whole};

				make_whole(optimizers[o], slot, kinds[kind], whole);
				fill_part(&l, kinds[kind]);
				direct_free(l.d);
			}
}
END_TEST

static void stage(struct direct *d, u64 action)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STAGE);

	command->cmd.arg = action << EMBENG_STAGE_ACTION_SHIFT;
	ck_assert_uint_eq(direct_do(d, command), 0);
}

/* A staged copy is filled as the table is. */
START_TEST(test_a_staged_copy)
{
	const u32 part = PARTS - 1;
	struct direct *d = open_part(part, EMBENG_OPTIMIZER_ADAGRAD);
	float whole[WHOLE_ROWS * WHOLE_DIM];
	struct look l = {d, part, 0, parts[part].dim, WHOLE_DIM, parts[part].column, whole};
	bool filled[WHOLE_ROWS] = {0};
	struct embeng_rows *rows;
	struct command *command;

	make_whole(EMBENG_OPTIMIZER_ADAGRAD, 0, EMBENG_FILL_UNIFORM, whole);
	stage(d, EMBENG_STAGE_BEGIN);
	command = fill(d, 0, EMBENG_FILL_UNIFORM, &rows);
	command->cmd.flags = EMBENG_CMD_STAGED;
	rows->count = parts[part].rows;
	ck_assert_uint_eq(direct_do(d, command), 0);
	expect_rows(&l, filled);
	stage(d, EMBENG_STAGE_COMMIT);
	memset(filled, true, sizeof(filled));
	expect_rows(&l, filled);
	direct_free(d);
}
END_TEST

/* Rows are counted in the part, and slots begin where the TABLE says. */
START_TEST(test_the_rest_is_of_the_part)
{
	struct direct *d = open_part(1, EMBENG_OPTIMIZER_ADAGRAD);
	const s64 ids[] = {8, 0};
	struct small_lookup l;
	struct embeng_rows *rows;
	struct command *command = fill(d, 0, EMBENG_FILL_UNIFORM, &rows);
	float *data;

	rows->first = 8;
	rows->count = 2;
	ck_assert_int_eq(direct_submit(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_ROW);
	ck_assert_uint_eq(command->fault.value, 9);
	ck_assert_uint_eq(command->fault.limit, 9);
	free(command);
	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, 0, 9, (void **)&data), 0);
	for (u32 i = 0; i < 9 * WHOLE_DIM; i++)
		ck_assert(data[i] == 0.0f);
	command = fill(d, 0, EMBENG_FILL_UNIFORM, &rows);
	rows->first = 8;
	rows->count = 1;
	ck_assert_uint_eq(direct_do(d, command), 0);
	l = small_lookup(d, &d->inference, 0, ids, 2);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	ck_assert(l.out[0] >= 0.25f && l.out[WHOLE_DIM] == 0.0f);
	direct_free(d);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rows_shard");
	TCase *all = tcase_create("shard");

	tcase_set_timeout(all, 60);
	tcase_add_loop_test(all, test_parts_are_filled_as_the_whole, 0, PARTS);
	tcase_add_test(all, test_a_staged_copy);
	tcase_add_test(all, test_the_rest_is_of_the_part);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
