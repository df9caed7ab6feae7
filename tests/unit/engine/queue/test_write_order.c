// SPDX-License-Identifier: MIT
/*
 * A command that changes rows at once, or tells counts, runs after the LOOKUPs that were accepted before it and
 * can run, and before all others. The queue of writes has the higher priority here, so that nothing else puts a
 * LOOKUP first.
 */
#include "fake_model.h"
#include "rig.h"
#include "suite.h"

enum { LOOKUP = 1, WRITE, LATER, OTHER };

static struct rig *rig;
static struct rig_queue *lookups, *transfer;

static struct rig_queue *queue_of(u32 context, u32 kind, u32 priority)
{
	struct embeng_admin_cmd cmd = {.kind = (u16)kind,
				       .context = context,
				       .priority = (u8)priority,
				       .sq_entries = 16,
				       .cq_entries = 32};

	return rig_queue_of(rig, cmd, 0);
}

/* A queue of @kind in @context, and one for writes in context 0. */
static void start(u32 context, u32 kind, u32 priority)
{
	fake = (struct fake_model){.admitted = U64_MAX, .ready = 1};
	rig = rig_new(1, 0);
	rig_context(rig, 1);
	lookups = queue_of(context, kind, 0);
	transfer = queue_of(0, EMBENG_QUEUE_TRANSFER, priority);
}

static void accept(struct rig_queue *q, const struct embeng_cmd *cmd)
{
	rig_submit(q, cmd);
	engine_run(rig->engine, ENGINE_RUN_ACCEPT);
	ck_assert_uint_eq(fake.runs, 0);
}

static void expect_order(u64 first, u64 second)
{
	engine_run(rig->engine, ENGINE_RUN_ALL);
	ck_assert_uint_eq(fake.log[0], first);
	ck_assert_uint_eq(fake.log[1], second);
}

static const struct embeng_cmd lookup = {.opcode = EMBENG_OP_LOOKUP, .cookie = LOOKUP, .step = 1};

static const struct {
	u16 opcode, flags;
	u64 arg;
	bool waits;
} writes[] = {
	{EMBENG_OP_ROWS_WRITE, 0, 0, true},
	{EMBENG_OP_ROWS_FILL, 0, 0, true},
	{EMBENG_OP_STAGE, 0, (u64)EMBENG_STAGE_COMMIT << EMBENG_STAGE_ACTION_SHIFT, true},
	{EMBENG_OP_ROWS_WRITE, EMBENG_CMD_STAGED, 0, false},
	{EMBENG_OP_STAGE, 0, (u64)EMBENG_STAGE_BEGIN << EMBENG_STAGE_ACTION_SHIFT, false},
	{EMBENG_OP_STAGE, 0, (u64)EMBENG_STAGE_DROP << EMBENG_STAGE_ACTION_SHIFT, false},
	{EMBENG_OP_STATS, 0, 0, true},
	{EMBENG_OP_STATS, 0, EMBENG_STATS_CLEAR, true},
	{EMBENG_OP_STATS, 0, EMBENG_STATS_NOW, false},
	{EMBENG_OP_ROWS_READ, 0, 0, false},
	{EMBENG_OP_STATE_WRITE, 0, 0, false},
};

static struct embeng_cmd make_write(int i)
{
	return (struct embeng_cmd){.opcode = writes[i].opcode,
				   .flags = writes[i].flags,
				   .cookie = WRITE,
				   .arg = writes[i].arg};
}

START_TEST(a_write_follows_lookups)
{
	static const u32 kinds[] = {EMBENG_QUEUE_INPUT, EMBENG_QUEUE_INFERENCE};
	const struct embeng_cmd write = make_write(_i);

	for (int k = 0; k < 2; k++) {
		struct embeng_cmd first = lookup;

		start(0, kinds[k], 1);
		first.step = kinds[k] == EMBENG_QUEUE_INPUT;
		accept(lookups, &first);
		accept(transfer, &write);
		if (writes[_i].waits)
			expect_order(LOOKUP, WRITE);
		else
			expect_order(WRITE, LOOKUP);
		rig_free(rig);
	}
}
END_TEST

/* The lookups of a queue follow each other, and the write follows the last that came before it. */
START_TEST(a_write_follows_all_of_a_queue)
{
	const struct embeng_cmd write = make_write(0);
	struct embeng_cmd more = lookup;

	start(0, EMBENG_QUEUE_INPUT, 1);
	fake.ready = 3;
	accept(lookups, &more);
	more.step = 2;
	accept(lookups, &more);
	accept(transfer, &write);
	more = (struct embeng_cmd){.opcode = EMBENG_OP_LOOKUP, .cookie = LATER, .step = 3};
	accept(lookups, &more);
	expect_order(LOOKUP, LOOKUP);
	ck_assert_uint_eq(fake.log[2], WRITE);
	ck_assert_uint_eq(fake.log[3], LATER);
	rig_free(rig);
}
END_TEST

START_TEST(a_write_waits_for_no_update)
{
	const struct embeng_cmd write = make_write(0);
	struct embeng_cmd far = lookup;

	start(0, EMBENG_QUEUE_INPUT, 1);
	far.step = 2;
	accept(lookups, &far);
	accept(transfer, &write);
	engine_run(rig->engine, ENGINE_RUN_ALL);
	ck_assert_uint_eq(fake.runs, 1);
	ck_assert_uint_eq(fake.log[0], WRITE);
	rig_free(rig);
}
END_TEST

START_TEST(others_are_not_waited_for)
{
	const struct embeng_cmd read = {.opcode = EMBENG_OP_ROWS_READ, .cookie = OTHER};
	const struct embeng_cmd write = make_write(0);

	/* One that comes after the write. */
	start(0, EMBENG_QUEUE_INPUT, 1);
	accept(transfer, &write);
	accept(lookups, &lookup);
	expect_order(WRITE, LOOKUP);
	rig_free(rig);
	/* One of another context; the order is by the high priority alone. A context counts for itself. */
	start(1, EMBENG_QUEUE_INPUT, 2);
	accept(lookups, &lookup);
	accept(transfer, &read);
	accept(transfer, &write);
	expect_order(OTHER, WRITE);
	ck_assert_uint_eq(fake.log[2], LOOKUP);
	rig_free(rig);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_write_follows_lookups, 0,
			    (int)(sizeof(writes) / sizeof(*writes)));
	tcase_add_test(tcase, a_write_follows_all_of_a_queue);
	tcase_add_test(tcase, a_write_waits_for_no_update);
	tcase_add_test(tcase, others_are_not_waited_for);
}

int main(void)
{
	return suite_main("write_order", add_tests);
}
