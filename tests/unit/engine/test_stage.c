// SPDX-License-Identifier: MIT
/* Staged copies of tables and slots: BEGIN, ROWS_WRITE aside, COMMIT, DROP. */
#include "direct_main.h"
#include "direct_model.h"

static struct small_model adagrad_model(u64 rows, u32 dim)
{
	struct small_model m = small_model(rows, dim);

	m.table.optimizer = EMBENG_OPTIMIZER_ADAGRAD;
	m.table.slot_count = 1;
	m.table.slot_start[0] = 0x3f800000;
	return m;
}

static struct command *stage_command(struct direct *d, u32 action, u32 table, u32 slot)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STAGE);

	command->cmd.arg = table | (u64)slot << EMBENG_STAGE_SLOT_SHIFT |
			   (u64)action << EMBENG_STAGE_ACTION_SHIFT;
	command->cmd.after = d->context.model->applied;
	return command;
}

static u16 stage(struct direct *d, u32 action, u32 slot)
{
	return direct_do(d, stage_command(d, action, 0, slot));
}

/* All rows of an array become @value; in the staged copy when @flags says so. */
static u16 write_all(struct direct *d, u32 slot, u16 flags, float value)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_ROWS_WRITE);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
	const struct table *t = &d->context.model->tables[0];
	u64 bytes = table_array_bytes(t, slot);
	float *data = direct_memory(d, bytes, &rows->data);

	rows->slot = slot;
	rows->count = t->record.rows;
	command->cmd.flags = flags;
	command->cmd.after = d->context.model->applied;
	for (u64 i = 0; i < bytes / 4; i++)
		data[i] = value;
	return direct_do(d, command);
}

static void expect_all(struct direct *d, u32 slot, float value)
{
	const struct table *t = &d->context.model->tables[0];
	u64 rows = t->record.rows;
	float *data;

	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, slot, 0, rows, (void **)&data), 0);
	for (u64 i = 0; i < rows * table_width(t, slot); i++)
		ck_assert_msg(data[i] == value, "%a, expected %a", (double)data[i], (double)value);
}

static void commit_swaps(struct small_model m, u64 bytes)
{
	struct direct *d = small_open(&m, 2);
	u64 used = d->engine.table_memory_used;

	ck_assert_uint_eq(used, bytes);
	ck_assert_uint_eq(write_all(d, 0, 0, 5), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 0), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 1), 0);
	ck_assert_uint_eq(d->engine.table_memory_used, 2 * used);
	ck_assert_uint_eq(write_all(d, 0, EMBENG_CMD_STAGED, 7), 0);
	ck_assert_uint_eq(write_all(d, 1, EMBENG_CMD_STAGED, 8), 0);
	expect_all(d, 0, 5);
	expect_all(d, 1, 1);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_COMMIT, 0), 0);
	expect_all(d, 0, 7);
	expect_all(d, 1, 8);
	ck_assert_uint_eq(d->engine.table_memory_used, used);
	direct_free(d);
}

START_TEST(test_commit_swaps_all_staged_copies_at_once)
{
	struct small_model m = adagrad_model(10, 3);

	commit_swaps(m, 10 * (12 + 12));
	m.table.optimizer = EMBENG_OPTIMIZER_ROWWISE_ADAGRAD;
	m.table.hyperparameter[0] = 0x3f800000;
	commit_swaps(m, 10 * (12 + 4));
}
END_TEST

START_TEST(test_a_staged_copy_starts_at_zero)
{
	struct small_model m = adagrad_model(10, 3);
	struct direct *d = small_open(&m, 2);

	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 1), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_COMMIT, 0), 0);
	expect_all(d, 1, 0);
	/* A write outside a stage stays when an empty stage is committed. */
	ck_assert_uint_eq(write_all(d, 0, 0, 5), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_COMMIT, 0), 0);
	expect_all(d, 0, 5);
	direct_free(d);
}
END_TEST

START_TEST(test_drop_forgets_them)
{
	struct small_model m = adagrad_model(10, 3);
	struct direct *d = small_open(&m, 2);
	u64 used = d->engine.table_memory_used;

	ck_assert_uint_eq(write_all(d, 0, 0, 5), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 0), 0);
	ck_assert_uint_eq(write_all(d, 0, EMBENG_CMD_STAGED, 7), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_DROP, 0), 0);
	ck_assert_uint_eq(d->engine.table_memory_used, used);
	ck_assert_uint_eq(write_all(d, 0, EMBENG_CMD_STAGED, 7), EMBENG_STATUS_STAGE);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_COMMIT, 0), 0);
	expect_all(d, 0, 5);
	direct_free(d);
}
END_TEST

/* direct_free() checks that the table memory is whole again. */
START_TEST(test_an_unloaded_model_takes_its_staged_copies_along)
{
	struct small_model m = adagrad_model(10, 3);
	struct direct *d = small_open(&m, 2);

	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 0), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 1), 0);
	direct_free(d);
}
END_TEST

START_TEST(test_beginning_twice_is_refused)
{
	struct small_model m = adagrad_model(10, 3);
	struct direct *d = small_open(&m, 2);

	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 1), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 1), EMBENG_STATUS_STAGE);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 0), 0);
	direct_free(d);
}
END_TEST

START_TEST(test_no_space_says_how_much)
{
	struct small_model m = adagrad_model(10, 3);
	struct direct *d = small_open(&m, 2);
	struct command *command = stage_command(d, EMBENG_STAGE_BEGIN, 0, 1);

	d->engine.caps.table_memory = 3 * 120 + 40;
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 0), 0);
	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_NO_SPACE);
	ck_assert_uint_eq(command->fault.value, 120);
	ck_assert_uint_eq(command->fault.limit, 40);
	free(command);
	ck_assert_uint_eq(d->engine.table_memory_used, 3 * 120);
	/* As much as there is can be taken, and is counted. */
	d->engine.caps.table_memory = 4 * 120;
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 1), 0);
	ck_assert_uint_eq(d->engine.table_memory_used, 4 * 120);
	direct_free(d);
}
END_TEST

static void refuse(u32 action, u32 table, u32 slot, u16 status)
{
	struct small_model m = adagrad_model(10, 3);
	struct direct *d = small_open(&m, 1);
	u64 used = d->engine.table_memory_used;

	ck_assert_uint_eq(direct_do(d, stage_command(d, action, table, slot)), status);
	ck_assert_uint_eq(d->engine.table_memory_used, used);
	direct_free(d);
}

START_TEST(test_what_is_not_there_is_refused)
{
	refuse(EMBENG_STAGE_DROP + 1, 0, 0, EMBENG_STATUS_RESERVED);
	refuse(EMBENG_STAGE_BEGIN, 1, 0, EMBENG_STATUS_TABLE);
	refuse(EMBENG_STAGE_BEGIN, 0, 2, EMBENG_STATUS_SLOT);
	refuse(EMBENG_STAGE_COMMIT, 1, 0, EMBENG_STATUS_RESERVED);
	refuse(EMBENG_STAGE_COMMIT, 0, 1, EMBENG_STATUS_RESERVED);
	refuse(EMBENG_STAGE_DROP, 1, 0, EMBENG_STATUS_RESERVED);
	refuse(EMBENG_STAGE_DROP, 0, 1, EMBENG_STATUS_RESERVED);
}
END_TEST

/* A step that looked its rows up before the swap updates the fresh ones. */
START_TEST(test_a_step_in_flight_goes_on_with_the_fresh_rows)
{
	struct small_model m = small_model(10, 1);
	struct direct *d = small_open(&m, 3);
	s64 ids[] = {4, 7};
	struct small_lookup l = small_lookup(d, &d->input[0], 1, ids, 2);
	float *data;

	ck_assert_uint_eq(direct_do(d, l.command), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN, 0), 0);
	ck_assert_uint_eq(write_all(d, 0, EMBENG_CMD_STAGED, 7), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_COMMIT, 0), 0);
	ck_assert(l.out[0] == 0 && l.out[1] == 0);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 2, 2.0f)), 0);
	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, 3, 5, (void **)&data), 0);
	ck_assert(data[0] == 7 && data[1] == 5 && data[2] == 7 && data[3] == 7 && data[4] == 5);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_commit_swaps_all_staged_copies_at_once,
				      test_a_staged_copy_starts_at_zero,
				      test_drop_forgets_them,
				      test_an_unloaded_model_takes_its_staged_copies_along,
				      test_beginning_twice_is_refused,
				      test_no_space_says_how_much,
				      test_what_is_not_there_is_refused,
				      test_a_step_in_flight_goes_on_with_the_fresh_rows,
				      NULL};

	return direct_main("stage", tests);
}
