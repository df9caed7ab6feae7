/* SPDX-License-Identifier: MIT */
/* The engine's count of memory that it holds is what the port gave it. */
#include "direct_main.h"
#include "direct_model.h"

static u64 table_memory(struct direct *d)
{
	return reg_read64(&d->engine, EMBENG_REG_TABLE_MEMORY_USED);
}

static u64 model_memory(struct direct *d)
{
	return reg_read64(&d->engine, EMBENG_REG_MODEL_MEMORY);
}

static u16 stage(struct direct *d, u64 action)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STAGE);

	command->cmd.arg = action << EMBENG_STAGE_ACTION_SHIFT;
	return direct_do(d, command);
}

static struct direct *open_adagrad(void)
{
	struct small_model m = small_model(100, 4);

	m.table.optimizer = EMBENG_OPTIMIZER_ADAGRAD;
	m.table.slot_count = 1;
	m.table.slot_start[0] = 0x3f800000;
	return small_open(&m, 1);
}

START_TEST(test_grow_to)
{
	ck_assert_uint_eq(grow_to(0, 0), 8);
	ck_assert_uint_eq(grow_to(0, 100), 133);
	ck_assert_uint_eq(grow_to(133, 133), 133);
	ck_assert_uint_eq(grow_to(133, 134), 134 + 33 + 8);
	ck_assert_uint_eq(grow_to(8, U64_MAX), U64_MAX);
}
END_TEST

START_TEST(test_grow_counts)
{
	struct engine engine = {.config.registers = calloc(1, EMBENG_REGISTERS_SIZE)};
	struct model model = {.engine = &engine};
	u64 have = 0;
	void *p = NULL;

	ck_assert_int_eq(grow(&model, &p, &have, 100), 0);
	ck_assert_uint_eq(have, 133);
	ck_assert_uint_eq(model.memory, 133);
	ck_assert_int_eq(grow(&model, &p, &have, 120), 0);
	ck_assert_uint_eq(model.memory, 133);
	ck_assert_int_eq(grow(&model, &p, &have, 200), 0);
	ck_assert_uint_eq(model.memory, 258);
	ck_assert_uint_eq(reg_read64(&engine, EMBENG_REG_MODEL_MEMORY), 258);
	port_free(p);
	free(engine.config.registers);
}
END_TEST

START_TEST(test_tables_and_staged_copies)
{
	struct direct *d = open_adagrad();

	ck_assert_uint_eq(table_memory(d), 2 * 1600);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN), 0);
	ck_assert_uint_eq(table_memory(d), 3 * 1600);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_COMMIT), 0);
	ck_assert_uint_eq(table_memory(d), 2 * 1600);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN), 0);
	ck_assert_uint_eq(stage(d, EMBENG_STAGE_DROP), 0);
	ck_assert_uint_eq(table_memory(d), 2 * 1600);
	direct_free(d);
}
END_TEST

/* A context that dies frees a staged table with its model: once, and with the lock already held. */
START_TEST(test_context_dies_with_a_staged_table)
{
	struct direct *d = open_adagrad();

	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN), 0);
	port_lock(d->engine.lock);
	model_destroy(&d->context);
	port_unlock(d->engine.lock);
	ck_assert_uint_eq(table_memory(d), 0);
	ck_assert_uint_eq(model_memory(d), 0);
	direct_free(d);
}
END_TEST

START_TEST(test_unload_with_a_staged_table)
{
	struct direct *d = open_adagrad();

	ck_assert_uint_eq(stage(d, EMBENG_STAGE_BEGIN), 0);
	ck_assert_uint_eq(direct_do(d, direct_command(&d->transfer, EMBENG_OP_MODEL_UNLOAD)), 0);
	ck_assert_uint_eq(table_memory(d), 0);
	ck_assert_uint_eq(model_memory(d), 0);
	direct_free(d);
}
END_TEST

START_TEST(test_refused_model_holds_nothing)
{
	struct small_model m = small_model(1ull << 42, 4096);
	struct direct *d = direct_new(1, NULL);
	struct direct_blob b;

	small_blob(&m, &b);
	ck_assert_uint_eq(direct_load(d, &b), EMBENG_STATUS_NO_SPACE);
	ck_assert_uint_eq(table_memory(d), 0);
	ck_assert_uint_eq(model_memory(d), 0);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_grow_to,
		test_grow_counts,
		test_tables_and_staged_copies,
		test_context_dies_with_a_staged_table,
		test_unload_with_a_staged_table,
		test_refused_model_holds_nothing,
		NULL,
	};

	return direct_main("memory", tests);
}
