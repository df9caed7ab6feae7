// SPDX-License-Identifier: MIT
/*
 * MODEL_LOAD with EMBENG_CMD_EXTENDS: what the longer blob must have in common with the loaded one,
 * when the command is refused, what stays as it is, and that a failure leaves no trace.
 */
#include "direct_main.h"
#include "failing_alloc.h"
#include "engine/lookup/stale.h"
#include "engine/update/update.h"
#include "direct_model.h"

#define ROWS 4
#define NEW_ROWS 6

static const s64 ids[] = {1, 2};

static struct small_model adagrad_model(u32 flags)
{
	struct small_model m = small_model(ROWS, 1);

	m.engine.flags = flags;
	m.engine.step_depth = 3;
	m.table.optimizer = EMBENG_OPTIMIZER_ADAGRAD;
	m.table.slot_count = 1;
	m.table.slot_start[0] = 0x3f800000;
	return m;
}

/* Tables and features behind those of the loaded model. */
struct more {
	u32 tables, features;
	u64 rows;
};

static void write_blob(const struct small_model *m, const struct more *more, struct direct_blob *b)
{
	struct embeng_record_engine engine = m->engine;
	struct embeng_record_table table = m->table;
	struct embeng_record_feature feature = m->feature;

	engine.table_count += more->tables;
	engine.feature_count += more->features;
	memset(b, 0, sizeof(*b));
	blob_record(b, EMBENG_RECORD_ENGINE, &engine, sizeof(engine));
	if (m->engine.table_count)
		blob_record(b, EMBENG_RECORD_TABLE, &table, sizeof(table));
	table.rows = more->rows;
	table.dim = 3;
	for (u32 t = 0; t < more->tables; t++)
		blob_record(b, EMBENG_RECORD_TABLE, &table, sizeof(table));
	if (m->engine.feature_count)
		blob_record(b, EMBENG_RECORD_FEATURE, &feature, sizeof(feature));
	feature.table = engine.table_count - 1;
	for (u32 f = 0; f < more->features; f++)
		blob_record(b, EMBENG_RECORD_FEATURE, &feature, sizeof(feature));
	blob_seal(b);
}

static struct command *extension(struct direct *d, const struct small_model *m,
				 const struct more *more)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_MODEL_LOAD);
	struct direct_blob *b = calloc(1, sizeof(*b));

	write_blob(m, more, b);
	command->cmd.flags = EMBENG_CMD_EXTENDS;
	memcpy(direct_memory(d, b->length, &command->cmd.desc), b->data, b->length);
	free(b);
	return command;
}

static const struct more one_table = {.tables = 1, .rows = NEW_ROWS};

static u16 extend(struct direct *d, const struct small_model *m)
{
	return direct_do(d, extension(d, m, &one_table));
}

static float read_one(struct direct *d, u32 table, u32 slot, u64 row)
{
	float *data;

	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, table, slot, row, 1, (void **)&data),
			  0);
	return *data;
}

static void write_one(struct direct *d, u32 table, float value)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_ROWS_WRITE);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
	u64 bytes = table_row_bytes(&d->context.model->tables[table], 0);
	float *data = direct_memory(d, bytes, &rows->data);

	rows->table = table;
	rows->count = 1;
	command->cmd.after = d->context.model->applied;
	for (u64 i = 0; i < bytes / 4; i++)
		data[i] = value;
	ck_assert_uint_eq(direct_do(d, command), 0);
}

static float look(struct direct *d, u64 step)
{
	struct small_lookup l = small_lookup(d, &d->input[0], step, ids, 2);

	ck_assert_uint_eq(direct_do(d, l.command), 0);
	return *l.out;
}

static void train(struct direct *d, u64 step)
{
	look(d, step);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, step, 2, -1)), 0);
}

static u64 state_of(struct direct *d, u64 which)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STATE_READ);
	u64 *count = direct_memory(d, 8, &command->cmd.desc);

	command->cmd.arg = which;
	command->cmd.after = d->context.model->applied;
	ck_assert_uint_eq(direct_do(d, command), 0);
	return *count;
}

/* Nothing of a model is counted any more once there is none. */
static void end(struct direct *d)
{
	ck_assert_uint_eq(d->context.model->memory,
			  reg_read64(&d->engine, EMBENG_REG_MODEL_MEMORY));
	model_destroy(&d->context);
	ck_assert_uint_eq(reg_read64(&d->engine, EMBENG_REG_MODEL_MEMORY), 0);
	direct_free(d);
}

START_TEST(test_tables_stay_and_new_ones_begin)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = small_open(&m, 2);
	const void *rows, *slots;
	float before[2];

	train(d, 1);
	train(d, 2);
	rows = d->context.model->tables[0].data;
	slots = d->context.model->tables[0].slots[0];
	before[0] = read_one(d, 0, 0, 1);
	before[1] = read_one(d, 0, 1, 1);
	ck_assert(before[0] > 0.0f && before[1] > 1.0f);
	ck_assert_uint_eq(extend(d, &m), 0);
	ck_assert_uint_eq(d->context.model->blob.engine.table_count, 2);
	ck_assert_ptr_eq(d->context.model->tables[0].data, rows);
	ck_assert_ptr_eq(d->context.model->tables[0].slots[0], slots);
	ck_assert(read_one(d, 0, 0, 1) == before[0] && read_one(d, 0, 1, 1) == before[1]);
	ck_assert(read_one(d, 1, 0, NEW_ROWS - 1) == 0.0f);
	ck_assert(read_one(d, 1, 1, NEW_ROWS - 1) == 1.0f);
	ck_assert_uint_eq(state_of(d, 0), 2);
	ck_assert_uint_eq(state_of(d, 1), 2);
	ck_assert_uint_eq(state_of(d, 2), 0);
	ck_assert_uint_eq(d->context.model->tables[0].stats.steps, 2);
	ck_assert_uint_eq(d->engine.table_memory_used, 2 * 4 * (ROWS + NEW_ROWS * 3));
	train(d, 3);
	ck_assert(read_one(d, 0, 0, 1) > before[0]);
	ck_assert_uint_eq(state_of(d, 2), 1);
	end(d);
}
END_TEST

START_TEST(test_again_and_again)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = small_open(&m, 1);

	for (u32 n = 1; n < 5; n++) {
		const struct more more = {.tables = n, .rows = NEW_ROWS};

		train(d, n);
		ck_assert_uint_eq(direct_do(d, extension(d, &m, &more)), 0);
		ck_assert_uint_eq(d->context.model->blob.engine.table_count, 1 + n);
	}
	/* As many as there are already. */
	ck_assert_uint_eq(
		direct_do(d, extension(d, &m, &(struct more){.tables = 4, .rows = NEW_ROWS})), 0);
	/* Fewer than that. */
	ck_assert_uint_eq(extend(d, &m), EMBENG_STATUS_BLOB_VALUE);
	train(d, 5);
	end(d);
}
END_TEST

/* @at: where the difference is told of, from the beginning of its record on. */
static const struct {
	u32 replicas, flags, step_depth, tables, features;
	u64 rows, length;
	u32 record, at;
} differences[] = {
	{.replicas = 1, .at = offsetof(struct embeng_record_engine, replicas)},
	{.flags = EMBENG_ENGINE_GRADIENTS_DROP, .at = offsetof(struct embeng_record_engine, flags)},
	{.step_depth = 1, .at = offsetof(struct embeng_record_engine, step_depth)},
	{.tables = -1u, .at = offsetof(struct embeng_record_engine, table_count)},
	{.features = -1u, .at = offsetof(struct embeng_record_engine, feature_count)},
	{.rows = 0x100, .record = 1, .at = offsetof(struct embeng_record_table, rows) + 1},
	{.length = 3,
	 .record = 2,
	 .at = offsetof(struct embeng_record_feature, max_sequence_length)},
};

START_TEST(test_a_difference_is_told_of)
{
	const struct small_model m = adagrad_model(0);
	struct small_model other = m;
	struct direct *d = small_open(&m, 1);
	u64 at = sizeof(struct embeng_blob_header);
	struct command *command;
	float before;

	train(d, 1);
	before = read_one(d, 0, 0, 1);
	other.engine.replicas += differences[_i].replicas;
	other.engine.flags |= differences[_i].flags;
	other.engine.step_depth += differences[_i].step_depth;
	other.engine.table_count += differences[_i].tables;
	other.engine.feature_count += differences[_i].features;
	other.table.rows += differences[_i].rows;
	other.feature.max_sequence_length += (u32)differences[_i].length;
	command = extension(d, &other, &(struct more){0});
	ck_assert_int_eq(direct_submit(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_BLOB_VALUE);
	ck_assert_uint_eq(command->fault.field, EMBENG_FIELD_BLOB);
	if (differences[_i].record > 0)
		at += sizeof(struct embeng_record_engine);
	if (differences[_i].record > 1)
		at += sizeof(struct embeng_record_table);
	ck_assert_uint_eq(command->fault.element, at + differences[_i].at);
	free(command);
	ck_assert(read_one(d, 0, 0, 1) == before);
	train(d, 2);
	ck_assert_uint_eq(extend(d, &m), 0);
	end(d);
}
END_TEST

/* An extension with one more record for the table that is loaded without it is refused. */
static void expect_record_refused(u16 type, const void *record, u32 length)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = small_open(&m, 1);
	struct direct_blob *b = calloc(1, sizeof(*b));
	struct command *command = direct_command(&d->transfer, EMBENG_OP_MODEL_LOAD);

	write_blob(&m, &(struct more){0}, b);
	blob_record(b, type, record, length);
	blob_seal(b);
	command->cmd.flags = EMBENG_CMD_EXTENDS;
	memcpy(direct_memory(d, b->length, &command->cmd.desc), b->data, b->length);
	ck_assert_int_eq(direct_submit(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_BLOB_VALUE);
	ck_assert_uint_eq(command->fault.element, b->length);
	free(command);
	free(b);
	train(d, 1);
	end(d);
}

START_TEST(test_quantizations_are_compared)
{
	const struct embeng_record_quantization q = {
		.num_buckets = 4, .lower = 0xbf800000, .upper = 0x3f800000};

	expect_record_refused(EMBENG_RECORD_QUANTIZATION, &q, sizeof(q));
}
END_TEST

START_TEST(test_shards_are_compared)
{
	const struct embeng_record_shard s = {
		.whole_rows = 2 * ROWS, .first_row = 1, .row_step = 2, .whole_dim = 1};

	expect_record_refused(EMBENG_RECORD_SHARD, &s, sizeof(s));
}
END_TEST

START_TEST(test_nothing_is_loaded)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = direct_new(1, NULL);

	ck_assert_uint_eq(extend(d, &m), EMBENG_STATUS_NO_MODEL);
	direct_free(d);
}
END_TEST

static void expect_busy(struct direct *d, const struct small_model *m, u32 field, u64 value)
{
	struct command *command = extension(d, m, &one_table);

	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_MODEL_BUSY);
	ck_assert_uint_eq(command->fault.field, field);
	ck_assert_uint_eq(command->fault.value, value);
	free(command);
}

START_TEST(test_a_step_is_under_way)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = small_open(&m, 1);

	train(d, 1);
	look(d, 2);
	expect_busy(d, &m, EMBENG_FIELD_STEP, 2);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 2, 2, -1)), 0);
	ck_assert_uint_eq(extend(d, &m), 0);
	end(d);
}
END_TEST

START_TEST(test_a_command_uses_the_model)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = small_open(&m, 1);
	struct small_lookup l = small_lookup(d, &d->inference, 0, ids, 2);

	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_READY);
	expect_busy(d, &m, EMBENG_FIELD_OPCODE, 1);
	ck_assert_int_eq(direct_try(d, l.command), VERDICT_READY);
	ck_assert_uint_eq(extend(d, &m), 0);
	free(l.command);
	end(d);
}
END_TEST

/* They see the tables that it adds; those of other queues go on until it runs. */
START_TEST(test_commands_behind_it_wait)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = small_open(&m, 1);
	struct command *command = extension(d, &m, &one_table), *behind, *load;
	struct small_lookup l;

	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	behind = direct_command(&d->transfer, EMBENG_OP_STATE_READ);
	direct_memory(d, 8, &behind->cmd.desc);
	behind->cmd.arg = 2;
	ck_assert_int_eq(direct_submit(d, behind), VERDICT_WAIT);
	ck_assert_uint_eq(d->wait.what, EMBENG_WAIT_NOTHING);
	load = extension(d, &m, &one_table);
	ck_assert_int_eq(direct_submit(d, load), VERDICT_WAIT);
	l = small_lookup(d, &d->inference, 0, ids, 2);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	ck_assert_int_eq(direct_try(d, command), VERDICT_READY);
	ck_assert_uint_eq(direct_do(d, behind), 0);
	ck_assert_uint_eq(direct_do(d, load), 0);
	free(command);
	end(d);
}
END_TEST

/* Bytes of a model that was extended and has done nothing. */
static u64 fresh_memory(const struct small_model *m)
{
	struct direct *d = small_open(m, 1);
	u64 memory;

	ck_assert_uint_eq(extend(d, m), 0);
	memory = d->context.model->memory;
	end(d);
	return memory;
}

/* An update that is held back is applied by a DRAIN; the lookup behind it sees the rows of before. */
START_TEST(test_kept_rows_move_along)
{
	const struct small_model m = adagrad_model(EMBENG_ENGINE_PIPELINING);
	struct direct *d = small_open(&m, 1);
	struct command *update, *drain = direct_command(&d->transfer, EMBENG_OP_DRAIN);
	float row;

	ck_assert(look(d, 1) == 0.0f);
	update = small_update(d, 0, 1, 2, -1);
	ck_assert_int_eq(direct_submit(d, update), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, update), VERDICT_WAIT);
	expect_busy(d, &m, EMBENG_FIELD_STEP, 1);
	drain->cmd.step = 1;
	ck_assert_uint_eq(direct_do(d, drain), 0);
	expect_busy(d, &m, EMBENG_FIELD_OPCODE, 1);
	ck_assert_int_eq(direct_try(d, update), VERDICT_READY);
	ck_assert_uint_eq(extend(d, &m), 0);
	ck_assert_uint_gt(stale_memory(&d->context.model->tables[0]), 0);
	ck_assert_uint_eq(d->context.model->memory,
			  fresh_memory(&m) + stale_memory(&d->context.model->tables[0]));
	row = read_one(d, 0, 0, 1);
	ck_assert(row > 0.0f);
	/* The rows of the new table are written before that lookup, those of the other are not. */
	write_one(d, 1, 5);
	ck_assert(look(d, 2) == 0.0f);
	ck_assert(read_one(d, 0, 0, 1) == row && read_one(d, 1, 0, 0) == 5.0f);
	free(update);
	end(d);
}
END_TEST

START_TEST(test_staged_copies_are_in_the_way)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = small_open(&m, 1);

	for (u32 action = EMBENG_STAGE_BEGIN; action <= EMBENG_STAGE_DROP;
	     action += EMBENG_STAGE_DROP) {
		struct command *stage = direct_command(&d->transfer, EMBENG_OP_STAGE);

		stage->cmd.arg = (u64)action << EMBENG_STAGE_ACTION_SHIFT;
		ck_assert_uint_eq(direct_do(d, stage), 0);
		ck_assert_uint_eq(extend(d, &m),
				  action == EMBENG_STAGE_BEGIN ? EMBENG_STATUS_STAGE : 0);
	}
	end(d);
}
END_TEST

START_TEST(test_a_snapshot_ends)
{
	const struct small_model m = adagrad_model(0);
	struct direct *d = small_open(&m, 1);
	struct command *snapshot = direct_command(&d->transfer, EMBENG_OP_SNAPSHOT);

	direct_memory(d, 8, &snapshot->cmd.desc);
	ck_assert_uint_eq(direct_do(d, snapshot), 0);
	train(d, 1);
	ck_assert_uint_eq(d->context.model->snapshot, 1);
	ck_assert_uint_eq(extend(d, &m), 0);
	ck_assert_uint_eq(d->context.model->snapshot, 0);
	ck_assert_ptr_null(d->context.model->tables[0].kept.places);
	/* A later snapshot has another number. */
	ck_assert_uint_eq(d->context.model->snapshots, 1);
	train(d, 2);
	end(d);
}
END_TEST

START_TEST(test_no_space)
{
	const struct small_model m = adagrad_model(0);
	const struct more large = {.tables = 1, .rows = 1ull << 40};
	struct direct *d = small_open(&m, 1);
	u64 used = d->engine.table_memory_used;

	train(d, 1);
	ck_assert_uint_eq(direct_do(d, extension(d, &m, &large)), EMBENG_STATUS_NO_SPACE);
	ck_assert_uint_eq(d->engine.table_memory_used, used);
	train(d, 2);
	end(d);
}
END_TEST

/* Each allocation fails once; until none does the model is as it was, and goes on. */
START_TEST(test_without_memory)
{
	const struct small_model m = adagrad_model(0);
	const struct more more = {.tables = 2, .features = 1, .rows = NEW_ROWS};
	struct direct *d = small_open(&m, 2);
	u64 memory, used = d->engine.table_memory_used, step = 0;
	u32 failures = 0;
	bool failed;

	do {
		struct command *command = extension(d, &m, &more);

		train(d, ++step);
		memory = d->context.model->memory;
		scarce_begin(failures + 1);
		if (direct_submit(d, command) == VERDICT_READY)
			direct_try(d, command);
		failed = scarce_end();
		failures += failed;
		if (failed) {
			ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_NO_MEMORY);
			ck_assert_uint_eq(d->context.model->blob.engine.table_count, 1);
			ck_assert_uint_eq(d->engine.table_memory_used, used);
			ck_assert_uint_eq(d->context.model->memory, memory);
		} else {
			ck_assert_uint_eq(command->fault.status, 0);
		}
		free(command);
	} while (failed);
	ck_assert_uint_gt(failures, 20);
	ck_assert_uint_eq(d->context.model->blob.engine.table_count, 3);
	ck_assert_uint_eq(d->context.model->applied, step);
	end(d);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("extend");
	TCase *all = tcase_create("all");

	tcase_add_test(all, test_tables_stay_and_new_ones_begin);
	tcase_add_test(all, test_again_and_again);
	tcase_add_loop_test(all, test_a_difference_is_told_of, 0,
			    (int)(sizeof(differences) / sizeof(differences[0])));
	tcase_add_test(all, test_quantizations_are_compared);
	tcase_add_test(all, test_shards_are_compared);
	tcase_add_test(all, test_nothing_is_loaded);
	tcase_add_test(all, test_a_step_is_under_way);
	tcase_add_test(all, test_a_command_uses_the_model);
	tcase_add_test(all, test_commands_behind_it_wait);
	tcase_add_test(all, test_kept_rows_move_along);
	tcase_add_test(all, test_staged_copies_are_in_the_way);
	tcase_add_test(all, test_a_snapshot_ends);
	tcase_add_test(all, test_no_space);
	tcase_add_test(all, test_without_memory);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
