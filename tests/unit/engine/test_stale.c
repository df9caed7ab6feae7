// SPDX-License-Identifier: MIT
/*
 * Updates that a DRAIN applies early under pipelining: which commands see them, what ends the
 * staleness of the next LOOKUP, and what happens when there is no memory for the kept rows.
 */
#include "direct_main.h"
#include "direct_model.h"

static const s64 ids[] = {1, 2};

static struct direct *open_pipelined(u8 optimizer, u32 more_flags, u32 cores)
{
	struct small_model m = small_model(4, 1);

	m.engine.flags = EMBENG_ENGINE_PIPELINING;
	m.engine.step_depth = 2;
	m.table.optimizer = optimizer;
	m.table.flags |= more_flags;
	if (optimizer == EMBENG_OPTIMIZER_LION)
		m.table.slot_count = 1;
	return small_open(&m, cores);
}

static float look(struct direct *d, u64 step)
{
	struct small_lookup l = small_lookup(d, &d->input[0], step, ids, 2);

	ck_assert_uint_eq(direct_do(d, l.command), 0);
	return *l.out;
}

/* Rows go up by one, without the update having run. */
static struct command *hand_in(struct direct *d, u64 step)
{
	struct command *command = small_update(d, 0, step, 2, -1);

	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, command), VERDICT_WAIT);
	return command;
}

static u16 drain(struct direct *d, u64 step)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_DRAIN);

	command->cmd.step = step;
	return direct_do(d, command);
}

static float read_row(struct direct *d, u64 row)
{
	float *data;

	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, row, 1, (void **)&data), 0);
	return *data;
}

/* Step 1 is applied before step 2 was looked up; its command then ends without work. */
static struct direct *drained_early(u8 optimizer, u32 more_flags, u32 cores)
{
	struct direct *d = open_pipelined(optimizer, more_flags, cores);
	struct command *update;

	ck_assert(look(d, 1) == 0.0f);
	update = hand_in(d, 1);
	ck_assert_uint_eq(drain(d, 1), 0);
	ck_assert_uint_eq(d->context.model->applied, 1);
	ck_assert_int_eq(direct_try(d, update), VERDICT_READY);
	free(update);
	return d;
}

START_TEST(test_only_the_next_lookup_is_stale)
{
	for (u32 cores = 1; cores < 3; cores++) {
		struct direct *d = drained_early(EMBENG_OPTIMIZER_SGD, 0, cores);
		struct command *update;

		ck_assert(read_row(d, 1) == 1.0f);
		ck_assert(look(d, 2) == 0.0f);
		ck_assert(read_row(d, 1) == 1.0f);
		update = hand_in(d, 2);
		ck_assert(look(d, 3) == 1.0f);
		ck_assert_int_eq(direct_try(d, update), VERDICT_READY);
		ck_assert(read_row(d, 1) == 2.0f);
		free(update);
		direct_free(d);
	}
}
END_TEST

/* A refused LOOKUP is given again, and is as stale. */
START_TEST(test_a_refused_lookup_keeps_the_rows)
{
	struct direct *d = drained_early(EMBENG_OPTIMIZER_SGD, 0, 1);
	struct small_lookup l = small_lookup(d, &d->input[0], 2, ids, 2);

	l.feature->id_width = 5;
	ck_assert_uint_eq(direct_do(d, l.command), EMBENG_STATUS_WIDTH);
	ck_assert(look(d, 2) == 0.0f);
	direct_free(d);
}
END_TEST

/* An optimizer that is not lazy changes all rows, those that no batch touched too. */
START_TEST(test_all_rows_are_kept_where_all_change)
{
	struct direct *d = drained_early(EMBENG_OPTIMIZER_LION, EMBENG_TABLE_NON_LAZY, 2);
	float learned = read_row(d, 1);
	struct command *update;

	ck_assert(learned != 0.0f);
	ck_assert_ptr_nonnull(d->context.model->tables[0].stale.whole);
	ck_assert(look(d, 2) == 0.0f);
	ck_assert(read_row(d, 1) == learned);
	update = hand_in(d, 2);
	ck_assert(look(d, 3) == learned);
	ck_assert_int_eq(direct_try(d, update), VERDICT_READY);
	/* The copy is gone once the next step is applied. */
	ck_assert_ptr_null(d->context.model->tables[0].stale.whole);
	free(update);
	direct_free(d);
}
END_TEST

START_TEST(test_no_memory_applies_nothing)
{
	struct direct *d = open_pipelined(EMBENG_OPTIMIZER_LION, EMBENG_TABLE_NON_LAZY, 1);
	u64 room = d->engine.caps.table_memory;
	struct command *update;

	look(d, 1);
	update = hand_in(d, 1);
	d->engine.caps.table_memory = d->engine.table_memory_used + 4 * sizeof(float) - 1;
	ck_assert_uint_eq(drain(d, 1), EMBENG_STATUS_NO_MEMORY);
	ck_assert_uint_eq(d->context.model->applied, 0);
	ck_assert(read_row(d, 1) == 0.0f);
	ck_assert(look(d, 2) == 0.0f);
	ck_assert_int_eq(direct_try(d, update), VERDICT_READY);
	ck_assert(read_row(d, 1) != 0.0f);
	free(update);
	d->engine.caps.table_memory = room;
	direct_free(d);
}
END_TEST

/* A write of row 3 alone: the next lookup sees it, and so the update as well. */
static u16 write_rows(struct direct *d, u16 flags, u64 count)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_ROWS_WRITE);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);

	rows->first = 3;
	rows->count = count;
	direct_memory(d, count * 4, &rows->data);
	command->cmd.flags = flags;
	command->cmd.after = d->context.model->applied;
	return direct_do(d, command);
}

static u16 stage(struct direct *d, u32 action)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STAGE);

	command->cmd.arg = (u64)action << EMBENG_STAGE_ACTION_SHIFT;
	command->cmd.after = d->context.model->applied;
	return direct_do(d, command);
}

static u16 write_state(struct direct *d, u64 count)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STATE_WRITE);
	u64 *value = direct_memory(d, 8, &command->cmd.desc);

	*value = count;
	command->cmd.after = d->context.model->applied;
	return direct_do(d, command);
}

static void write_nothing(struct direct *d)
{
	ck_assert_uint_eq(write_rows(d, 0, 0), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN), 0);
	ck_assert_uint_eq(write_rows(d, EMBENG_CMD_STAGED, 1), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_DROP), 0);
	ck_assert_uint_eq(write_rows(d, 0, 2), EMBENG_STATUS_ROW);
	ck_assert_uint_eq(write_state(d, EMBENG_STEP_COUNT_MAX + 1), EMBENG_STATUS_COUNT);
}

static void write_a_row(struct direct *d)
{
	ck_assert_uint_eq(write_rows(d, 0, 1), 0);
}

static void write_a_step(struct direct *d)
{
	ck_assert_uint_eq(write_state(d, 7), 0);
}

static void fill_a_row(struct direct *d)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_ROWS_FILL);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);

	rows->count = 1;
	command->cmd.after = d->context.model->applied;
	ck_assert_uint_eq(direct_do(d, command), 0);
}

static const struct {
	void (*write)(struct direct *d);
	float next;
} writes[] = {{write_nothing, 0}, {write_a_row, 1}, {write_a_step, 1}, {fill_a_row, 1}};

START_TEST(test_writes_end_it)
{
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		struct direct *d = drained_early(EMBENG_OPTIMIZER_SGD, 0, 1);
		float next;

		writes[i].write(d);
		next = look(d, 2);
		ck_assert_msg(next == writes[i].next, "write %zu: %g, expected %g", i, (double)next,
			      (double)writes[i].next);
		direct_free(d);
	}
}
END_TEST

/* The staged copy is of zeros: what the lookup sees is neither the update nor the rows before. */
START_TEST(test_a_commit_is_seen)
{
	struct direct *d = drained_early(EMBENG_OPTIMIZER_SGD, 0, 1);
	struct command *update;

	ck_assert(look(d, 2) == 0.0f);
	update = hand_in(d, 2);
	ck_assert_uint_eq(drain(d, 2), 0);
	ck_assert_int_eq(direct_try(d, update), VERDICT_READY);
	free(update);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_COMMIT), 0);
	ck_assert(look(d, 3) == 0.0f);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *tests[] = {test_only_the_next_lookup_is_stale,
				test_a_refused_lookup_keeps_the_rows,
				test_all_rows_are_kept_where_all_change,
				test_no_memory_applies_nothing,
				test_writes_end_it,
				test_a_commit_is_seen,
				NULL};

	return direct_main("stale", tests);
}
