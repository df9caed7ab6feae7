/* SPDX-License-Identifier: MIT */
/*
 * ROWS_WRITE, ROWS_READ and ROWS_FILL: large tables, rows by list, and commands that fail without
 * writing.
 */
#include "direct_main.h"
#include "direct_model.h"

START_TEST(test_a_table_of_2_to_33_rows)
{
	struct small_model m = small_model(1ull << 33, 1);
	struct direct *d = small_open(&m, 3);
	s64 ids[] = {(1ll << 33) - 1, 0, 1ll << 32, (1ll << 33) - 1};
	struct small_lookup l;
	struct command *update;
	float *data;

	ck_assert_uint_eq(d->engine.table_memory_used, 4ull << 33);
	ck_assert_uint_eq(
		direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, (1ull << 33) - 2, 2, (void **)&data), 0);
	ck_assert(data[0] == 0.0f && data[1] == 0.0f);
	l = small_lookup(d, &d->input[0], 1, ids, 4);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	update = small_update(d, 0, 1, 4, -1.5f);
	ck_assert_uint_eq(direct_do(d, update), 0);
	ck_assert_uint_eq(
		direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, (1ull << 33) - 2, 2, (void **)&data), 0);
	ck_assert(data[0] == 0.0f && data[1] == 3.0f);
	l = small_lookup(d, &d->input[0], 2, ids, 4);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	ck_assert(l.out[0] == 3.0f && l.out[1] == 1.5f && l.out[2] == 1.5f && l.out[3] == 3.0f);
	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, 1ull << 33, 1, (void **)&data),
			  EMBENG_STATUS_ROW);
	direct_free(d);
}
END_TEST

START_TEST(test_rows_by_list_keep_the_later_one)
{
	struct small_model m = small_model(10, 2);
	struct direct *d = small_open(&m, 4);
	struct command *command = direct_command(&d->transfer, EMBENG_OP_ROWS_WRITE);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
	float values[] = {1, 2, 3, 4, 5, 6}, *data;
	u64 ids[] = {4, 7, 4};

	rows->count = 3;
	memcpy(direct_memory(d, sizeof(ids), &rows->ids), ids, sizeof(ids));
	memcpy(direct_memory(d, sizeof(values), &rows->data), values, sizeof(values));
	ck_assert_uint_eq(direct_do(d, command), 0);
	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, 4, 4, (void **)&data), 0);
	ck_assert(data[0] == 5 && data[1] == 6 && data[2] == 0 && data[6] == 3 && data[7] == 4);
	direct_free(d);
}
END_TEST

/* A slot of one number: a row of data is one number, in lists, fills and faults. */
START_TEST(test_rows_of_one_number)
{
	struct small_model m = small_model(10, 3);
	struct command *command;
	struct embeng_rows *rows;
	float values[] = {1, 2, -3}, *data;
	u64 ids[] = {4, 9, 7};
	struct direct *d;

	m.table.optimizer = EMBENG_OPTIMIZER_ROWWISE_ADAGRAD;
	m.table.slot_count = 1;
	m.table.slot_start[0] = m.table.hyperparameter[0] = 0x3f800000;
	d = small_open(&m, 2);
	for (int bad = 1; bad >= 0; bad--) {
		command = direct_command(&d->transfer, EMBENG_OP_ROWS_WRITE);
		rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
		rows->slot = 1;
		rows->count = 2 + bad;
		memcpy(direct_memory(d, 8 * rows->count, &rows->ids), ids, 8 * rows->count);
		memcpy(direct_memory(d, 4 * rows->count, &rows->data), values, 4 * rows->count);
		if (!bad) {
			ck_assert_uint_eq(direct_do(d, command), 0);
			continue;
		}
		ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
		ck_assert_int_eq(direct_try(d, command), VERDICT_FAILED);
		ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_NUMBER);
		ck_assert_uint_eq(command->fault.element, 2);
		free(command);
	}
	command = direct_command(&d->transfer, EMBENG_OP_ROWS_FILL);
	rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
	rows->slot = 1;
	rows->first = 5;
	rows->count = 2;
	rows->a = 0x40a00000;
	ck_assert_uint_eq(direct_do(d, command), 0);
	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 1, 0, 10, (void **)&data), 0);
	for (u32 i = 0; i < 10; i++)
		ck_assert(data[i] == (i == 4 ? 1 : i == 5 || i == 6 ? 5 : i == 9 ? 2 : 1));
	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, 0, 10, (void **)&data), 0);
	for (u32 i = 0; i < 30; i++)
		ck_assert(data[i] == 0);
	direct_free(d);
}
END_TEST

START_TEST(test_nothing_is_written_when_a_row_is_outside)
{
	struct small_model m = small_model(10, 1);
	struct direct *d = small_open(&m, 1);
	struct command *command = direct_command(&d->transfer, EMBENG_OP_ROWS_WRITE);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
	float values[] = {1, 2};
	u64 ids[] = {4, 10};

	rows->count = 2;
	memcpy(direct_memory(d, sizeof(ids), &rows->ids), ids, sizeof(ids));
	memcpy(direct_memory(d, sizeof(values), &rows->data), values, sizeof(values));
	ck_assert_int_eq(direct_submit(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_ROW);
	ck_assert_uint_eq(command->fault.element, 1);
	ck_assert_uint_eq(command->fault.value, 10);
	ck_assert_uint_eq(command->fault.limit, 10);
	ck_assert_uint_eq(d->context.model->tables[0].data[4], 0);
	free(command);
	direct_free(d);
}
END_TEST

START_TEST(test_what_does_not_fit_says_how_much)
{
	struct small_model m = small_model(1ull << 40, 64);
	struct direct *d = direct_new(1, NULL);
	struct direct_blob *b = calloc(1, sizeof(*b));
	struct command *command = direct_command(&d->transfer, EMBENG_OP_MODEL_LOAD);

	small_blob(&m, b);
	memcpy(direct_memory(d, b->length, &command->cmd.desc), b->data, b->length);
	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_NO_SPACE);
	ck_assert_uint_eq(command->fault.value, 1ull << 48);
	ck_assert_uint_eq(command->fault.limit, 1ull << 44);
	ck_assert_ptr_null(d->context.model);
	free(command);
	free(b);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_a_table_of_2_to_33_rows,
				      test_rows_by_list_keep_the_later_one,
				      test_rows_of_one_number,
				      test_nothing_is_written_when_a_row_is_outside,
				      test_what_does_not_fit_says_how_much,
				      NULL};

	return direct_main("rows", tests);
}
