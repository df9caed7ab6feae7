// SPDX-License-Identifier: MIT
/* FREEZE, and the step count of a table that was frozen. */
#include "direct_main.h"
#include "direct_model.h"

static const s64 ids[] = {1, 2};

static struct command *freeze_command(struct direct *d, u64 arg)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_FREEZE);

	command->cmd.after = d->context.model->applied;
	command->cmd.arg = arg;
	return command;
}

/* Return: what the command reports, that is whether the table was frozen before. */
static u64 freeze(struct direct *d, u64 action)
{
	struct command *command = freeze_command(d, action << EMBENG_FREEZE_ACTION_SHIFT);
	u64 result;

	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, command), VERDICT_READY);
	result = command->result;
	free(command);
	return result;
}

static void step(struct direct *d, u64 number)
{
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], number, ids, 2).command), 0);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, number, 2, -1)), 0);
}

static float read_row(struct direct *d)
{
	float *data;

	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, 1, 1, (void **)&data), 0);
	return *data;
}

static u64 *state_value(struct direct *d, struct command **command, u16 opcode, u64 arg)
{
	*command = direct_command(&d->transfer, opcode);
	(*command)->cmd.after = d->context.model->applied;
	(*command)->cmd.arg = arg;
	return direct_memory(d, 8, &(*command)->cmd.desc);
}

static u64 read_state(struct direct *d, u64 arg)
{
	struct command *command;
	u64 *value = state_value(d, &command, EMBENG_OP_STATE_READ, arg);

	ck_assert_uint_eq(direct_do(d, command), 0);
	return *value;
}

static u16 write_state(struct direct *d, u64 arg, u64 count)
{
	struct command *command;
	u64 *value = state_value(d, &command, EMBENG_OP_STATE_WRITE, arg);

	*value = count;
	return direct_do(d, command);
}

START_TEST(test_updates_leave_a_frozen_table_alone)
{
	struct small_model m = small_model(4, 1);
	struct direct *d = small_open(&m, 2);

	step(d, 1);
	ck_assert_uint_eq(freeze(d, EMBENG_FREEZE_ASK), 0);
	ck_assert_uint_eq(freeze(d, EMBENG_FREEZE_ON), 0);
	ck_assert_uint_eq(freeze(d, EMBENG_FREEZE_ON), 1);
	step(d, 2);
	ck_assert(read_row(d) == 1.0f);
	ck_assert_uint_eq(d->context.model->tables[0].stats.updated_rows, 2);
	ck_assert_uint_eq(d->context.model->tables[0].stats.unique_ids, 4);
	ck_assert_uint_eq(freeze(d, EMBENG_FREEZE_ASK), 1);
	ck_assert_uint_eq(freeze(d, EMBENG_FREEZE_OFF), 1);
	step(d, 3);
	ck_assert(read_row(d) == 2.0f);
	direct_free(d);
}
END_TEST

START_TEST(test_each_table_counts_its_steps)
{
	struct small_model m = small_model(4, 1);
	struct direct *d = small_open(&m, 1);

	step(d, 1);
	freeze(d, EMBENG_FREEZE_ON);
	step(d, 2);
	step(d, 3);
	ck_assert_uint_eq(read_state(d, 0), 3);
	ck_assert_uint_eq(read_state(d, 1), 1);
	freeze(d, EMBENG_FREEZE_OFF);
	step(d, 4);
	ck_assert_uint_eq(read_state(d, 1), 2);
	ck_assert_uint_eq(write_state(d, 1, 5), EMBENG_STATUS_COUNT);
	ck_assert_uint_eq(write_state(d, 2, 0), EMBENG_STATUS_TABLE);
	ck_assert_uint_eq(read_state(d, 1), 2);
	ck_assert_uint_eq(write_state(d, 1, 0), 0);
	ck_assert_uint_eq(read_state(d, 1), 0);
	ck_assert_uint_eq(write_state(d, 0, 40), 0);
	ck_assert_uint_eq(read_state(d, 1), 40);
	ck_assert_uint_eq(write_state(d, 1, 40), 0);
	ck_assert_uint_eq(read_state(d, 1), 40);
	direct_free(d);
}
END_TEST

static void refused(struct direct *d, u64 arg, u16 status, u64 value, u64 limit)
{
	struct command *command = freeze_command(d, arg);

	ck_assert_int_eq(direct_submit(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, status);
	ck_assert_uint_eq(command->fault.value, value);
	ck_assert_uint_eq(command->fault.limit, limit);
	free(command);
}

START_TEST(test_what_is_refused)
{
	struct small_model m = small_model(4, 1);
	struct direct *d = small_open(&m, 1);

	refused(d, 1, EMBENG_STATUS_TABLE, 1, 1);
	refused(d, 0xffffffff, EMBENG_STATUS_TABLE, 0xffffffff, 1);
	refused(d, 3ull << EMBENG_FREEZE_ACTION_SHIFT, EMBENG_STATUS_RESERVED, 3,
		EMBENG_FREEZE_ASK);
	refused(d, ~0ull << EMBENG_FREEZE_ACTION_SHIFT, EMBENG_STATUS_RESERVED, 0xffffffff,
		EMBENG_FREEZE_ASK);
	direct_free(d);
	m.table.optimizer = EMBENG_OPTIMIZER_NONE;
	d = small_open(&m, 1);
	refused(d, 0, EMBENG_STATUS_TRAINING, 0, 0);
	ck_assert_uint_eq(freeze(d, EMBENG_FREEZE_ON), 1);
	ck_assert_uint_eq(freeze(d, EMBENG_FREEZE_ASK), 1);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *tests[] = {test_updates_leave_a_frozen_table_alone,
				test_each_table_counts_its_steps, test_what_is_refused, NULL};

	return direct_main("frozen", tests);
}
