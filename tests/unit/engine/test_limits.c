/* SPDX-License-Identifier: MIT */
/* Limits of a device: counts, rows, statistics and state outside of them are refused. */
#include "direct_main.h"
#include "direct_model.h"
#include "pcsr_help.h"

#define OTHER 2u /* a region of the same memory that the engine may only read */

static const s64 ids[] = {1, 9, 2};
static struct direct_blob blob;

struct expected {
	u16 status;
	u32 field;
	u64 element, value, limit;
};

static void expect_fault(struct direct *d, struct command *command, struct expected e)
{
	ck_assert_uint_eq(command->fault.status, e.status);
	ck_assert_uint_eq(command->fault.field, e.field);
	ck_assert_uint_eq(command->fault.element, e.element);
	ck_assert_uint_eq(command->fault.value, e.value);
	ck_assert_uint_eq(command->fault.limit, e.limit);
	ck_assert_int_eq(d->regions[1].users, 0);
	free(command);
}

static void refused(struct direct *d, struct command *command, struct expected e)
{
	ck_assert_int_eq(direct_submit(d, command), VERDICT_FAILED);
	expect_fault(d, command, e);
}

/* Accepted, and found wrong when its turn comes. */
static void fails(struct direct *d, struct command *command, struct expected e)
{
	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	direct_try(d, command);
	expect_fault(d, command, e);
}

static void read_only(struct direct *d)
{
	d->table[OTHER].generation = 7;
	d->regions[OTHER] = d->regions[1];
	d->regions[OTHER].rights = EMBENG_REGION_DEVICE_READ;
}

/* A lookup of the same ids by both features of a model. */
static struct small_lookup two_features(struct direct *d)
{
	struct small_lookup l = small_lookup(d, &d->inference, 0, ids, 3);
	struct embeng_lookup *header = direct_memory(d, sizeof(*header) + 2 * sizeof(*l.feature),
						     &l.command->cmd.desc);

	*header = *l.header;
	header->feature_count = 2;
	((struct embeng_lookup_feature *)(header + 1))[0] = *l.feature;
	((struct embeng_lookup_feature *)(header + 1))[1] = *l.feature;
	((struct embeng_lookup_feature *)(header + 1))[1].feature = 1;
	return l;
}

START_TEST(test_counts_of_a_batch)
{
	struct small_model m = small_model(10, 1);
	struct small_lookup l;
	struct direct *d;

	m.feature.max_samples = 2;
	d = small_open(&m, 1);
	refused(d, small_lookup(d, &d->input[0], 1, ids, 3).command,
		(struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_SAMPLES, 0, 3, 2});
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 1, ids, 2).command), 0);
	direct_free(d);
	m.feature.max_samples = 0;
	m.feature.max_ids = 2;
	d = small_open(&m, 1);
	refused(d, small_lookup(d, &d->input[0], 1, ids, 3).command,
		(struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, 0, 3, 2});
	direct_free(d);
	m.feature.max_ids = 0;
	d = small_open(&m, 1);
	l = small_lookup(d, &d->input[0], 1, ids, 3);
	l.feature->sample_count = d->engine.caps.samples + 1ull;
	refused(d, l.command,
		(struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_SAMPLES, 0, (1u << 24) + 1,
				  1u << 24});
	l = small_lookup(d, &d->input[0], 1, ids, 3);
	l.feature->id_count = d->engine.caps.ids + 1ull;
	refused(d, l.command,
		(struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, 0, (1u << 24) + 1,
				  1u << 24});
	direct_free(d);
}
END_TEST

/* Positions of a sequence are numbered in 32 bits. */
/* Rows that are read and rows that are written, of all features together. */
START_TEST(test_bytes_that_a_command_moves)
{
	struct small_model m = small_model(10, 4);
	struct direct *d = small_open(&m, 1);
	const u64 three = (3 + 3) * 16;

	d->engine.caps.command_bytes = three - 1;
	refused(d, small_lookup(d, &d->input[0], 1, ids, 3).command,
		(struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_COMMAND_BYTES, 0, three,
				  three - 1});
	d->engine.caps.command_bytes = three;
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 1, ids, 3).command), 0);
	direct_free(d);
	m.engine.feature_count = 2;
	d = small_open(&m, 1);
	d->engine.caps.command_bytes = 2 * three - 1;
	refused(d, two_features(d).command,
		(struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_COMMAND_BYTES, 0, 2 * three,
				  2 * three - 1});
	d->engine.caps.command_bytes = 2 * three;
	ck_assert_uint_eq(direct_do(d, two_features(d).command), 0);
	direct_free(d);
}
END_TEST

static struct command *dense_partition(struct direct *d, u64 count)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_PARTITION);
	struct grid g = grid_new(d, 1, 1, 1, count + 8);

	grid_dense(&g, 0, count);
	command->cmd.desc = g.desc;
	return command;
}

START_TEST(test_bytes_that_a_partition_moves)
{
	struct small_model m = small_model(10, 4);
	struct direct *d = small_open(&m, 1);

	d->engine.caps.command_bytes = 64 * 10;
	ck_assert_uint_eq(direct_do(d, dense_partition(d, 10)), 0);
	refused(d, dense_partition(d, 11),
		(struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_COMMAND_BYTES, 0, 64 * 11,
				  64 * 10});
	direct_free(d);
}
END_TEST

START_TEST(test_positions_of_a_sequence)
{
	struct small_model m = small_model(10, 1);
	struct small_lookup l;
	struct direct *d;

	m.feature.max_sequence_length = 1u << 16;
	d = small_open(&m, 1);
	l = small_lookup(d, &d->input[0], 1, ids, 3);
	l.feature->form = EMBENG_FORM_CSR;
	l.feature->offset_width = 8;
	l.feature->sample_count = 1u << 16;
	refused(d, l.command,
		(struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_SAMPLES, 0, 1u << 16,
				  (1u << 16) - 1});
	direct_free(d);
}
END_TEST

static struct command *weighted(struct direct *d, u32 bits)
{
	struct small_lookup l = small_lookup(d, &d->input[0], 1, ids, 3);
	u64 offsets[] = {0, 3};
	u32 weights[] = {0x3f800000, bits, 0x3f800000};

	l.feature->form = EMBENG_FORM_CSR;
	l.feature->offset_width = 8;
	l.feature->sample_count = 1;
	l.feature->activations.length = 4;
	memcpy(direct_memory(d, sizeof(offsets), &l.feature->offsets), offsets, sizeof(offsets));
	memcpy(direct_memory(d, sizeof(weights), &l.feature->weights), weights, sizeof(weights));
	return l.command;
}

START_TEST(test_weights_that_are_not_finite)
{
	static const u32 bad[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xff800001};
	static const u32 checks[][2] = {
		{0, 0},
		{EMBENG_ENGINE_GRADIENTS_DROP, 0},
		{0, EMBENG_FEATURE_FINITE_WEIGHTS},
		{EMBENG_ENGINE_GRADIENTS_ALLOW, EMBENG_FEATURE_FINITE_WEIGHTS},
	};
	struct small_model m = small_model(10, 1);
	struct direct *d;

	for (u32 k = 0; k < sizeof(checks) / sizeof(*checks); k++) {
		m.engine.flags = checks[k][0];
		m.feature.flags = checks[k][1];
		d = small_open(&m, 1);
		for (u32 i = 0; i < 4; i++)
			refused(d, weighted(d, bad[i]),
				(struct expected){EMBENG_STATUS_WEIGHT, EMBENG_FIELD_WEIGHTS, 1,
						  bad[i], 0x7f800000});
		ck_assert_uint_eq(direct_do(d, weighted(d, 0x7f7fffff)), 0);
		direct_free(d);
	}
	m.engine.flags = EMBENG_ENGINE_GRADIENTS_ALLOW;
	m.feature.flags = 0;
	d = small_open(&m, 1);
	ck_assert_uint_eq(direct_do(d, weighted(d, bad[2])), 0);
	direct_free(d);
}
END_TEST

START_TEST(test_a_table_without_optimizer_only_serves)
{
	struct small_model m = small_model(10, 1);
	struct direct *d;

	m.table.optimizer = EMBENG_OPTIMIZER_NONE;
	d = small_open(&m, 1);
	refused(d, small_lookup(d, &d->input[0], 1, ids, 3).command,
		(struct expected){EMBENG_STATUS_TRAINING, EMBENG_FIELD_TABLE, 0, 0, 0});
	refused(d, small_update(d, 0, 1, 3, 1),
		(struct expected){EMBENG_STATUS_STEP_ORDER, EMBENG_FIELD_STEP, 0, 1, 1});
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->inference, 0, ids, 3).command), 0);
	direct_free(d);
}
END_TEST

static struct command *rows_command(struct direct *d, u16 opcode, struct embeng_rows **rows)
{
	struct command *command = direct_command(&d->transfer, opcode);

	*rows = direct_memory(d, sizeof(**rows), &command->cmd.desc);
	(*rows)->first = 2;
	(*rows)->count = 3;
	if (opcode != EMBENG_OP_ROWS_FILL)
		direct_memory(d, 3 * 2 * 4, &(*rows)->data);
	return command;
}

#define REFUSE_ROWS(op, set, ...) \
	do { \
		struct embeng_rows *rows; \
		struct command *command = rows_command(d, EMBENG_OP_ROWS_##op, &rows); \
		set; \
		refused(d, command, (struct expected){__VA_ARGS__}); \
	} while (0)

START_TEST(test_row_access)
{
	struct small_model m = small_model(10, 2);
	struct direct *d = small_open(&m, 2);

	read_only(d);
	REFUSE_ROWS(READ, command->cmd.desc.length -= 8, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, 0,
		    sizeof(*rows) - 8, sizeof(*rows));
	REFUSE_ROWS(READ, rows->table = 1, EMBENG_STATUS_TABLE, EMBENG_FIELD_TABLE, 0, 1, 1);
	REFUSE_ROWS(READ, rows->slot = 1, EMBENG_STATUS_SLOT, EMBENG_FIELD_SLOT, 0, 1, 0);
	REFUSE_ROWS(READ, rows->reserved = 6, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, 0, 6,
		    0);
	REFUSE_ROWS(READ, rows->ids = rows->data, EMBENG_STATUS_FORM, EMBENG_FIELD_ROWS, 0, 2, 0);
	REFUSE_ROWS(READ, rows->first = 8, EMBENG_STATUS_ROW, EMBENG_FIELD_ROWS, 0, 10, 10);
	REFUSE_ROWS(READ, rows->first = 11, EMBENG_STATUS_ROW, EMBENG_FIELD_ROWS, 0, 11, 10);
	REFUSE_ROWS(READ, rows->seed = 1, EMBENG_STATUS_RESERVED, EMBENG_FIELD_FILL, 0, 0, 0);
	REFUSE_ROWS(WRITE, rows->fill = 1, EMBENG_STATUS_RESERVED, EMBENG_FIELD_FILL, 0, 1, 0);
	REFUSE_ROWS(WRITE, rows->data.length = 20, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DATA, 0, 20,
		    24);
	REFUSE_ROWS(READ, rows->data.index = OTHER, EMBENG_STATUS_RIGHTS, EMBENG_FIELD_DATA, 0,
		    EMBENG_REGION_DEVICE_WRITE, EMBENG_REGION_DEVICE_READ);
	REFUSE_ROWS(WRITE, rows->data.offset = 2, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_DATA, 0, 2,
		    4);
	REFUSE_ROWS(WRITE, rows->first = 0; direct_memory(d, 16, &rows->ids), EMBENG_STATUS_LENGTH,
					    EMBENG_FIELD_IDS, 0, 16, 24);
	REFUSE_ROWS(FILL, rows->fill = 3, EMBENG_STATUS_FORM, EMBENG_FIELD_FILL, 0, 3, 2);
	REFUSE_ROWS(FILL, direct_memory(d, 24, &rows->data), EMBENG_STATUS_FORM, EMBENG_FIELD_DATA,
		    0, 0, 0);
	REFUSE_ROWS(FILL, rows->count = 9, EMBENG_STATUS_ROW, EMBENG_FIELD_ROWS, 0, 10, 10);
	direct_free(d);
}
END_TEST

START_TEST(test_a_fill_stays_in_its_range)
{
	struct small_model m = small_model(10, 2);
	struct direct *d = small_open(&m, 2);
	const u32 *w = d->context.model->tables[0].data;
	struct embeng_rows *rows;
	struct command *command = rows_command(d, EMBENG_OP_ROWS_FILL, &rows);

	rows->a = 0x40400000;
	ck_assert_uint_eq(direct_do(d, command), 0);
	for (u32 i = 0; i < 20; i++)
		ck_assert_uint_eq(w[i], i >= 4 && i < 10 ? 0x40400000 : 0);
	direct_free(d);
}
END_TEST

static struct command *stats(struct direct *d, u64 arg)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STATS);

	direct_memory(d, sizeof(struct embeng_stats), &command->cmd.desc);
	command->cmd.arg = arg;
	return command;
}

START_TEST(test_arguments_of_statistics)
{
	struct small_model m = small_model(10, 1);
	struct direct *d = small_open(&m, 1);
	struct command *command;

	read_only(d);
	refused(d, stats(d, 1ull << 34),
		(struct expected){EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG, 0, 1ull << 34,
				  (4ull << 32) - 1});
	d->engine.caps.features &= ~EMBENG_CAP_STATS_NOW;
	refused(d, stats(d, EMBENG_STATS_NOW),
		(struct expected){EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG, 0, EMBENG_STATS_NOW,
				  (2ull << 32) - 1});
	d->engine.caps.features |= EMBENG_CAP_STATS_NOW;
	refused(d, stats(d, 1),
		(struct expected){EMBENG_STATUS_TABLE, EMBENG_FIELD_TABLE, 0, 1, 1});
	command = stats(d, 0);
	command->cmd.desc.length -= 8;
	refused(d, command,
		(struct expected){EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, 0,
				  sizeof(struct embeng_stats) - 8, sizeof(struct embeng_stats)});
	command = stats(d, 0);
	command->cmd.desc.index = OTHER;
	refused(d, command,
		(struct expected){EMBENG_STATUS_RIGHTS, EMBENG_FIELD_DESC, 0,
				  EMBENG_REGION_DEVICE_WRITE, EMBENG_REGION_DEVICE_READ});
	command = stats(d, EMBENG_STATS_NOW);
	command->cmd.desc.length -= 8;
	refused(d, command,
		(struct expected){EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, 0,
				  sizeof(struct embeng_stats) - 8, sizeof(struct embeng_stats)});
	ck_assert_uint_eq(direct_do(d, stats(d, EMBENG_STATS_CLEAR)), 0);
	direct_free(d);
}
END_TEST

static struct command *state(struct direct *d, u16 opcode, u64 **value)
{
	struct command *command = direct_command(&d->transfer, opcode);

	*value = direct_memory(d, 8, &command->cmd.desc);
	command->cmd.after = d->context.model->applied;
	return command;
}

START_TEST(test_state_counts_optimizer_steps)
{
	struct small_model m = small_model(10, 1);
	struct direct *d = small_open(&m, 1);
	struct command *command;
	u64 *value;

	read_only(d);
	command = state(d, EMBENG_OP_STATE_WRITE, &value);
	*value = 41;
	ck_assert_uint_eq(direct_do(d, command), 0);
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 1, ids, 3).command), 0);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 3, 1)), 0);
	ck_assert_uint_eq(direct_do(d, state(d, EMBENG_OP_STATE_READ, &value)), 0);
	ck_assert_uint_eq(*value, 42);
	command = state(d, EMBENG_OP_STATE_WRITE, &value);
	*value = EMBENG_STEP_COUNT_MAX + 1;
	fails(d, command,
	      (struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_DATA, 0,
				EMBENG_STEP_COUNT_MAX + 1, EMBENG_STEP_COUNT_MAX});
	ck_assert_uint_eq(direct_do(d, state(d, EMBENG_OP_STATE_READ, &value)), 0);
	ck_assert_uint_eq(*value, 42);
	command = state(d, EMBENG_OP_STATE_WRITE, &value);
	*value = EMBENG_STEP_COUNT_MAX;
	ck_assert_uint_eq(direct_do(d, command), 0);
	command = state(d, EMBENG_OP_STATE_READ, &value);
	command->cmd.desc.length = 16;
	refused(d, command, (struct expected){EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, 0, 16, 8});
	command = state(d, EMBENG_OP_STATE_READ, &value);
	command->cmd.desc.index = OTHER;
	refused(d, command,
		(struct expected){EMBENG_STATUS_RIGHTS, EMBENG_FIELD_DESC, 0,
				  EMBENG_REGION_DEVICE_WRITE, EMBENG_REGION_DEVICE_READ});
	direct_free(d);
}
END_TEST

#define IN(record, member) offsetof(struct embeng_record_##record, member)
#define ENGINE_AT sizeof(struct embeng_blob_header)
#define TABLE_AT (ENGINE_AT + sizeof(struct embeng_record_engine))
#define FEATURE_AT (TABLE_AT + sizeof(struct embeng_record_table))
#define REFUSE_BLOB(set, element, value, limit) \
	do { \
		struct small_model m = small_model(10, 4); \
		struct command *command = direct_command(&d->transfer, EMBENG_OP_MODEL_LOAD); \
		set; \
		small_blob(&m, &blob); \
		memcpy(direct_memory(d, blob.length, &command->cmd.desc), blob.data, blob.length); \
		refused(d, command, \
			(struct expected){EMBENG_STATUS_BLOB_VALUE, EMBENG_FIELD_BLOB, element, \
					  value, limit}); \
	} while (0)

START_TEST(test_models_beyond_the_device)
{
	struct direct *d = direct_new(1, NULL);

	REFUSE_BLOB(m.engine.replicas = 5, ENGINE_AT + IN(engine, replicas), 5, 4);
	REFUSE_BLOB(m.engine.flags = 8, ENGINE_AT + IN(engine, flags), 8, 7);
	REFUSE_BLOB(m.engine.table_count = 65, ENGINE_AT + IN(engine, table_count), 65, 64);
	REFUSE_BLOB(m.engine.feature_count = 65, ENGINE_AT + IN(engine, feature_count), 65, 64);
	REFUSE_BLOB(m.engine.rate_count = 64 * 24 + 1, ENGINE_AT + IN(engine, rate_count),
		    64 * 24 + 1, 64 * 24);
	REFUSE_BLOB(m.engine.step_depth = 5, ENGINE_AT + IN(engine, step_depth), 5, 4);
	REFUSE_BLOB(m.table.rows = 1ull << 63, TABLE_AT + IN(table, rows), 1ull << 63,
		    U64_MAX >> 1);
	REFUSE_BLOB(m.table.dim = 0, TABLE_AT + IN(table, dim), 0, 1);
	REFUSE_BLOB(m.table.max_norm = 0x7f800000, TABLE_AT + IN(table, max_norm), 0x7f800000,
		    0x7f7fffff);
	REFUSE_BLOB(m.table.weight_decay = 0x7fc00000, TABLE_AT + IN(table, weight_decay),
		    0x7fc00000, 0x7f7fffff);
	REFUSE_BLOB(m.table.clip_gradient_max = 0x7fc00000, TABLE_AT + IN(table, clip_gradient_max),
		    0x7fc00000, 0);
	REFUSE_BLOB(m.table.slot_start[6] = 0x7fc00000, TABLE_AT + IN(table, slot_start) + 24,
		    0x7fc00000, 0);
	REFUSE_BLOB(m.feature.table = 1, FEATURE_AT + IN(feature, table), 1, 1);
	REFUSE_BLOB(m.feature.flags = 2, FEATURE_AT + IN(feature, flags), 2, 1);
	REFUSE_BLOB(m.feature.reserved = 9, FEATURE_AT + IN(feature, reserved), 9, 0);
	REFUSE_BLOB(m.feature.max_sequence_length = (1u << 24) + 1,
		    FEATURE_AT + IN(feature, max_sequence_length), (1u << 24) + 1, 1u << 24);
	REFUSE_BLOB(m.feature.max_samples = (1u << 24) + 1, FEATURE_AT + IN(feature, max_samples),
		    (1u << 24) + 1, 1u << 24);
	REFUSE_BLOB(m.feature.max_ids = (1u << 24) + 1, FEATURE_AT + IN(feature, max_ids),
		    (1u << 24) + 1, 1u << 24);
	direct_free(d);
}
END_TEST

/* Without tables there is no table that a feature could name. */
START_TEST(test_a_feature_of_no_table)
{
	struct direct *d = direct_new(1, NULL);
	struct small_model m = small_model(10, 4);
	struct command *command = direct_command(&d->transfer, EMBENG_OP_MODEL_LOAD);

	m.engine.table_count = 0;
	m.feature.table = 1u << 20;
	memset(&blob, 0, sizeof(blob));
	blob_record(&blob, EMBENG_RECORD_ENGINE, &m.engine, sizeof(m.engine));
	blob_record(&blob, EMBENG_RECORD_FEATURE, &m.feature, sizeof(m.feature));
	blob_seal(&blob);
	memcpy(direct_memory(d, blob.length, &command->cmd.desc), blob.data, blob.length);
	refused(d, command,
		(struct expected){EMBENG_STATUS_BLOB_VALUE, EMBENG_FIELD_BLOB,
				  TABLE_AT + IN(feature, table), 1u << 20, 0});
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_counts_of_a_batch,
				      test_bytes_that_a_command_moves,
				      test_bytes_that_a_partition_moves,
				      test_positions_of_a_sequence,
				      test_weights_that_are_not_finite,
				      test_a_table_without_optimizer_only_serves,
				      test_row_access,
				      test_a_fill_stays_in_its_range,
				      test_arguments_of_statistics,
				      test_state_counts_optimizer_steps,
				      test_models_beyond_the_device,
				      test_a_feature_of_no_table,
				      NULL};

	return direct_main("limits", tests);
}
