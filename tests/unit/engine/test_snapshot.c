// SPDX-License-Identifier: MIT
/* Snapshots: what SNAPSHOT_READ gives while steps and writes go on, and when a snapshot ends. */
#include "direct_main.h"
#include "direct_model.h"

#define ROWS 5000u
#define DIM 24u
#define IDS 15000u /* a third of them are more occurrences of a row than one kernel call sums */

static struct small_model adagrad_model(u64 rows, u32 dim)
{
	struct small_model m = small_model(rows, dim);

	m.table.optimizer = EMBENG_OPTIMIZER_ADAGRAD;
	m.table.slot_count = 1;
	m.table.slot_start[0] = 0x3f800000;
	return m;
}

static struct small_model rowwise_model(u64 rows, u32 dim)
{
	struct small_model m = small_model(rows, dim);

	m.table.optimizer = EMBENG_OPTIMIZER_ROWWISE_ADAGRAD;
	m.table.slot_count = 1;
	m.table.slot_start[0] = 0x3f800000;
	m.table.hyperparameter[0] = 0x3f800000;
	return m;
}

static struct small_model restless_adam(u64 rows, u32 dim)
{
	static const float hyper[] = {0.9f, 0.99f, 1e-3f, 0, 1};
	struct small_model m = small_model(rows, dim);

	m.table.optimizer = EMBENG_OPTIMIZER_ADAM;
	m.table.slot_count = 2;
	m.table.flags |= EMBENG_TABLE_NON_LAZY;
	memcpy(m.table.hyperparameter, hyper, sizeof(hyper));
	return m;
}

/* Return: the number of the snapshot, or 0 with the status in *status. */
static u32 begin(struct direct *d, u16 *status)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_SNAPSHOT);
	u64 *count = direct_memory(d, sizeof(*count), &command->cmd.desc), number = 0;

	command->cmd.after = d->context.model->applied;
	*count = ~0ull;
	if (direct_submit(d, command) == VERDICT_READY && direct_try(d, command) == VERDICT_READY) {
		number = command->result;
		ck_assert_uint_eq(*count, d->context.model->optimizer_steps);
	}
	*status = command->fault.status;
	free(command);
	return (u32)number;
}

static u32 must_begin(struct direct *d)
{
	u16 status;
	u32 number = begin(d, &status);

	ck_assert_uint_eq(status, 0);
	ck_assert_uint_ne(number, 0);
	return number;
}

static u16 end(struct direct *d, u64 number, u64 tables)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_SNAPSHOT_END);

	command->cmd.arg = number | tables << EMBENG_SNAPSHOT_TABLES_SHIFT;
	return direct_do(d, command);
}

static u16 read_rows(struct direct *d, u16 opcode, u32 number, u32 slot, void **data)
{
	struct command *command = direct_command(&d->transfer, opcode);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
	const struct table *t = &d->context.model->tables[0];

	rows->slot = slot;
	rows->count = t->record.rows;
	*data = direct_memory(d, table_array_bytes(t, slot), &rows->data);
	if (opcode == EMBENG_OP_SNAPSHOT_READ)
		command->cmd.arg = number;
	else
		command->cmd.after = d->context.model->applied;
	return direct_do(d, command);
}

/* A copy of an array as it is now. */
static void *live(struct direct *d, u32 slot)
{
	void *data;

	ck_assert_uint_eq(read_rows(d, EMBENG_OP_ROWS_READ, 0, slot, &data), 0);
	return data;
}

static void expect_snapshot(struct direct *d, u32 number, u32 slot, const void *want)
{
	u64 bytes = table_array_bytes(&d->context.model->tables[0], slot);
	void *data;

	ck_assert_uint_eq(read_rows(d, EMBENG_OP_SNAPSHOT_READ, number, slot, &data), 0);
	ck_assert_int_eq(memcmp(data, want, bytes), 0);
}

/* A step of ids that begin at row @first and lie @stride apart; one in three is row 7, the hot one. */
static void step(struct direct *d, u64 number, u64 first, u64 stride)
{
	u64 rows = d->context.model->tables[0].record.rows;
	struct small_lookup l;
	s64 ids[IDS];

	for (u64 i = 0; i < IDS; i++)
		ids[i] = (s64)(i % 3 ? (first + i * stride) % rows : 7);
	l = small_lookup(d, &d->input[0], number, ids, IDS);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, number, IDS, 0.25f)), 0);
	d->used = 0;
}

/* Copies that outlive the arena's next use. */
static void *copy_of(struct direct *d, u32 slot)
{
	u64 bytes = table_array_bytes(&d->context.model->tables[0], slot);
	void *copy = malloc(bytes);

	memcpy(copy, live(d, slot), bytes);
	return copy;
}

static void steps_are_not_seen(struct small_model m, u32 cores)
{
	struct direct *d = small_open(&m, cores);
	void *data, *slot;
	u32 number;

	step(d, 1, 0, 3);
	data = copy_of(d, 0);
	slot = copy_of(d, 1);
	number = must_begin(d);
	expect_snapshot(d, number, 0, data);
	for (u64 n = 2; n < 8; n++) {
		step(d, n, n * 577, n);
		expect_snapshot(d, number, 0, data);
		expect_snapshot(d, number, 1, slot);
	}
	ck_assert_int_ne(memcmp(live(d, 0), data, ROWS * DIM * 4), 0);
	ck_assert_int_ne(memcmp(live(d, 1), slot, table_array_bytes(d->context.model->tables, 1)),
			 0);
	ck_assert_uint_eq(end(d, number, 1), 0);
	free(data);
	free(slot);
	direct_free(d);
}

START_TEST(test_steps_are_not_seen)
{
	steps_are_not_seen(adagrad_model(ROWS, DIM), 1);
	steps_are_not_seen(adagrad_model(ROWS, DIM), 3);
}
END_TEST

START_TEST(test_steps_are_not_seen_in_a_slot_of_one_number)
{
	steps_are_not_seen(rowwise_model(ROWS, DIM), 1);
	steps_are_not_seen(rowwise_model(ROWS, DIM), 3);
}
END_TEST

START_TEST(test_rows_that_no_id_names_are_not_seen_changing)
{
	steps_are_not_seen(restless_adam(ROWS, DIM), 1);
	steps_are_not_seen(restless_adam(ROWS, DIM), 3);
}
END_TEST

/* Training with a snapshot gives the bits of training without one. */
START_TEST(test_steps_are_the_same)
{
	struct small_model m = adagrad_model(ROWS, DIM);
	struct direct *a = small_open(&m, 2), *b = small_open(&m, 2);

	must_begin(b);
	for (u64 n = 1; n < 4; n++) {
		step(a, n, n * 31, n);
		step(b, n, n * 31, n);
	}
	ck_assert_int_eq(memcmp(live(a, 0), live(b, 0), ROWS * DIM * 4), 0);
	ck_assert_int_eq(memcmp(live(a, 1), live(b, 1), ROWS * DIM * 4), 0);
	direct_free(a);
	direct_free(b);
}
END_TEST

/* Rows 2, 9, 2 or, without a list, rows 3 and 4. */
static u16 write_some(struct direct *d, u16 opcode, u32 slot, bool list)
{
	struct command *command = direct_command(&d->transfer, opcode);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
	u32 width = table_width(&d->context.model->tables[0], slot);
	u64 *ids;

	rows->slot = slot;
	rows->count = list ? 3 : 2;
	if (list) {
		ids = direct_memory(d, 3 * sizeof(*ids), &rows->ids);
		ids[0] = ids[2] = 2;
		ids[1] = 9;
	} else {
		rows->first = 3;
	}
	if (opcode == EMBENG_OP_ROWS_WRITE)
		memset(direct_memory(d, rows->count * width * 4, &rows->data), 0x40,
		       rows->count * width * 4);
	else
		rows->a = rows->b = 0x40000000;
	command->cmd.after = d->context.model->applied;
	return direct_do(d, command);
}

static void writes_are_not_seen(struct small_model m)
{
	struct direct *d = small_open(&m, 2);
	void *data = live(d, 0), *slot = live(d, 1);
	u32 number = must_begin(d);

	ck_assert_uint_eq(write_some(d, EMBENG_OP_ROWS_WRITE, 0, true), 0);
	ck_assert_uint_eq(write_some(d, EMBENG_OP_ROWS_WRITE, 1, false), 0);
	ck_assert_uint_eq(write_some(d, EMBENG_OP_ROWS_FILL, 1, true), 0);
	ck_assert_uint_eq(write_some(d, EMBENG_OP_ROWS_FILL, 0, false), 0);
	ck_assert_int_ne(memcmp(live(d, 0), data, 10 * 3 * 4), 0);
	expect_snapshot(d, number, 0, data);
	expect_snapshot(d, number, 1, slot);
	direct_free(d);
}

START_TEST(test_writes_are_not_seen)
{
	writes_are_not_seen(adagrad_model(10, 3));
	writes_are_not_seen(rowwise_model(10, 3));
}
END_TEST

START_TEST(test_another_one_ends_it)
{
	struct small_model m = adagrad_model(10, 3);
	struct direct *d = small_open(&m, 2);
	u32 first = must_begin(d), second = must_begin(d);
	void *data;

	ck_assert_uint_ne(first, second);
	ck_assert_uint_eq(read_rows(d, EMBENG_OP_SNAPSHOT_READ, first, 0, &data),
			  EMBENG_STATUS_SNAPSHOT);
	ck_assert_uint_eq(read_rows(d, EMBENG_OP_SNAPSHOT_READ, 0, 0, &data),
			  EMBENG_STATUS_SNAPSHOT);
	ck_assert_uint_eq(end(d, first, 1), EMBENG_STATUS_SNAPSHOT);
	expect_snapshot(d, second, 0, live(d, 0));
	ck_assert_uint_eq(end(d, second, 0), 0);
	expect_snapshot(d, second, 0, live(d, 0));
	direct_free(d);
}
END_TEST

START_TEST(test_its_memory_is_given_back)
{
	struct small_model m = adagrad_model(ROWS, DIM);
	struct direct *d = small_open(&m, 2);
	u64 used = d->engine.table_memory_used;
	u32 number = must_begin(d);
	void *data;

	ck_assert_uint_eq(d->engine.table_memory_used, used + 4 * ROWS);
	step(d, 1, 0, 1);
	ck_assert_uint_gt(d->engine.table_memory_used, used + 4 * ROWS);
	ck_assert_uint_eq(end(d, number, U32_MAX), 0);
	ck_assert_uint_eq(d->engine.table_memory_used, used);
	ck_assert_uint_eq(read_rows(d, EMBENG_OP_SNAPSHOT_READ, number, 0, &data),
			  EMBENG_STATUS_SNAPSHOT);
	ck_assert_uint_eq(end(d, number, 1), EMBENG_STATUS_SNAPSHOT);
	direct_free(d);
}
END_TEST

/* A step never fails for want of memory for a snapshot. */
START_TEST(test_without_memory_it_ends)
{
	struct small_model m = adagrad_model(ROWS, DIM);
	struct direct *d = small_open(&m, 2);
	u64 used = d->engine.table_memory_used;
	u16 status;
	void *data;
	u32 number;

	d->engine.caps.table_memory = used + 4 * ROWS - 1;
	ck_assert_uint_eq(begin(d, &status), 0);
	ck_assert_uint_eq(status, EMBENG_STATUS_NO_MEMORY);
	ck_assert_uint_eq(d->engine.table_memory_used, used);
	d->engine.caps.table_memory = used + 4 * ROWS;
	number = must_begin(d);
	step(d, 1, 0, 1);
	ck_assert_uint_eq(d->context.model->applied, 1);
	ck_assert_uint_eq(d->engine.table_memory_used, used);
	ck_assert_uint_eq(read_rows(d, EMBENG_OP_SNAPSHOT_READ, number, 0, &data),
			  EMBENG_STATUS_SNAPSHOT);
	direct_free(d);
}
END_TEST

START_TEST(test_a_commit_ends_it)
{
	struct small_model m = adagrad_model(10, 3);
	struct direct *d = small_open(&m, 2);
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STAGE);
	u32 number = must_begin(d);
	void *data;

	command->cmd.arg = (u64)EMBENG_STAGE_COMMIT << EMBENG_STAGE_ACTION_SHIFT;
	ck_assert_uint_eq(direct_do(d, command), 0);
	ck_assert_uint_eq(read_rows(d, EMBENG_OP_SNAPSHOT_READ, number, 0, &data),
			  EMBENG_STATUS_SNAPSHOT);
	direct_free(d);
}
END_TEST

/* direct_free() checks that the table memory is whole again. */
START_TEST(test_an_unloaded_model_takes_it_along)
{
	struct small_model m = adagrad_model(ROWS, DIM);
	struct direct *d = small_open(&m, 2);

	must_begin(d);
	step(d, 1, 0, 1);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_steps_are_not_seen,
				      test_steps_are_not_seen_in_a_slot_of_one_number,
				      test_rows_that_no_id_names_are_not_seen_changing,
				      test_steps_are_the_same,
				      test_writes_are_not_seen,
				      test_another_one_ends_it,
				      test_its_memory_is_given_back,
				      test_without_memory_it_ends,
				      test_a_commit_ends_it,
				      test_an_unloaded_model_takes_it_along,
				      NULL};

	return direct_main("snapshot", tests);
}
