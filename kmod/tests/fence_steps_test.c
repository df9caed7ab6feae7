// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests the ledger of steps (fence_steps.c, which is compiled in): whether a command can end with
 * what was submitted so far. tests/unit/engine/test_step_ledger.c asks it the cases that the
 * engine and the rules of uapi/embeng_steps.h are asked, too.
 */
#include <kunit/test.h>

#include "../fence_steps.c"

#define INPUT EMBENG_QUEUE_INPUT
#define GRADIENT EMBENG_QUEUE_GRADIENT
#define TRANSFER EMBENG_QUEUE_TRANSFER

static struct embeng_ledger loaded(u32 replicas, u32 flags)
{
	const struct embeng_record_engine model = { .replicas = replicas, .flags = flags };
	struct embeng_ledger ledger = {};

	embeng_ledger_load(&ledger, &model);
	return ledger;
}

static void give(struct embeng_ledger *ledger, u32 kind, u32 replica, u64 step)
{
	const struct embeng_cmd cmd = { .step = step };

	embeng_ledger_add(ledger, kind, replica, &cmd);
}

static bool met(struct embeng_ledger *ledger, u32 kind, u32 replica, struct embeng_cmd cmd)
{
	struct embeng_need need = {};

	embeng_ledger_need(ledger, kind, replica, &cmd, &need);
	return embeng_ledger_met(ledger, &need);
}

static bool lookup_met(struct embeng_ledger *ledger, u32 replica, u64 step)
{
	give(ledger, INPUT, replica, step);
	return met(ledger, INPUT, replica, (struct embeng_cmd){ .step = step });
}

static bool after_met(struct embeng_ledger *ledger, u64 after)
{
	return met(ledger, TRANSFER, 0, (struct embeng_cmd){ .after = after });
}

static void a_lookup_needs_the_update_before(struct kunit *test)
{
	struct embeng_ledger ledger = loaded(2, 0);

	KUNIT_EXPECT_TRUE(test, lookup_met(&ledger, 0, 1));
	KUNIT_EXPECT_TRUE(test, lookup_met(&ledger, 1, 1));
	KUNIT_EXPECT_FALSE(test, lookup_met(&ledger, 0, 2));
	give(&ledger, GRADIENT, 0, 1);
	KUNIT_EXPECT_FALSE(test, lookup_met(&ledger, 0, 2));
	give(&ledger, GRADIENT, 1, 1);
	KUNIT_EXPECT_TRUE(test, lookup_met(&ledger, 0, 2));
	KUNIT_EXPECT_TRUE(test, after_met(&ledger, 1));
	KUNIT_EXPECT_FALSE(test, after_met(&ledger, 2));
}

static void an_update_needs_all_replicas(struct kunit *test)
{
	struct embeng_ledger ledger = loaded(2, 0);
	struct embeng_cmd update = { .opcode = EMBENG_OP_UPDATE, .step = 1 };

	give(&ledger, GRADIENT, 0, 1);
	KUNIT_EXPECT_FALSE(test, met(&ledger, GRADIENT, 0, update));
	give(&ledger, GRADIENT, 1, 1);
	KUNIT_EXPECT_TRUE(test, met(&ledger, GRADIENT, 0, update));
	KUNIT_EXPECT_EQ(test, embeng_ledger_can_fence(&ledger, GRADIENT, &update), 0);
}

static void pipelining_holds_an_update(struct kunit *test)
{
	struct embeng_ledger ledger = loaded(1, EMBENG_ENGINE_PIPELINING);
	struct embeng_cmd update = { .opcode = EMBENG_OP_UPDATE, .step = 1 };

	KUNIT_EXPECT_TRUE(test, lookup_met(&ledger, 0, 1));
	give(&ledger, GRADIENT, 0, 1);
	KUNIT_EXPECT_FALSE(test, after_met(&ledger, 1));
	KUNIT_EXPECT_TRUE(test, lookup_met(&ledger, 0, 2));
	KUNIT_EXPECT_TRUE(test, after_met(&ledger, 1));
	KUNIT_EXPECT_TRUE(test, lookup_met(&ledger, 0, 3));
	KUNIT_EXPECT_FALSE(test, lookup_met(&ledger, 0, 4));
	KUNIT_EXPECT_EQ(test, embeng_ledger_can_fence(&ledger, GRADIENT, &update), -EOPNOTSUPP);
	/* The completion says that a drain has applied the update. */
	give(&ledger, GRADIENT, 0, 2);
	embeng_ledger_done(&ledger, GRADIENT, 0, 2, EMBENG_STATUS_OK);
	KUNIT_EXPECT_TRUE(test, after_met(&ledger, 2));
}

static void a_drain_needs_begun_lookups(struct kunit *test)
{
	struct embeng_ledger ledger = loaded(2, EMBENG_ENGINE_PIPELINING);
	struct embeng_cmd drain = { .opcode = EMBENG_OP_DRAIN, .step = 1 };

	KUNIT_EXPECT_TRUE(test, met(&ledger, TRANSFER, 0, drain));
	give(&ledger, INPUT, 0, 1);
	KUNIT_EXPECT_FALSE(test, met(&ledger, TRANSFER, 0, drain));
	give(&ledger, INPUT, 1, 1);
	KUNIT_EXPECT_TRUE(test, met(&ledger, TRANSFER, 0, drain));
	drain.step = U64_MAX;
	KUNIT_EXPECT_TRUE(test, met(&ledger, TRANSFER, 0, drain));
}

static void what_fails_is_withdrawn(struct kunit *test)
{
	struct embeng_ledger ledger = loaded(1, 0);

	give(&ledger, GRADIENT, 0, 1);
	give(&ledger, GRADIENT, 0, 2);
	give(&ledger, GRADIENT, 0, 3);
	embeng_ledger_done(&ledger, GRADIENT, 0, 2, EMBENG_STATUS_KEY);
	KUNIT_EXPECT_EQ(test, ledger.submitted[0].updated, 1);
	embeng_ledger_done(&ledger, GRADIENT, 0, 3, EMBENG_STATUS_STEP_ORDER);
	KUNIT_EXPECT_EQ(test, ledger.submitted[0].updated, 1);
	give(&ledger, GRADIENT, 0, 2);
	KUNIT_EXPECT_EQ(test, ledger.submitted[0].updated, 2);
	embeng_ledger_done(&ledger, GRADIENT, 0, 3, EMBENG_STATUS_OK);
	KUNIT_EXPECT_EQ(test, ledger.submitted[0].updated, 3);
	KUNIT_EXPECT_EQ(test, ledger.applied, 3);
}

static void steps_out_of_order_do_not_count(struct kunit *test)
{
	struct embeng_ledger ledger = loaded(1, 0);

	give(&ledger, INPUT, 0, 2);
	KUNIT_EXPECT_EQ(test, ledger.submitted[0].accepted, 0);
	/* The engine refuses this command at once, so it waits for nothing. */
	KUNIT_EXPECT_TRUE(test, met(&ledger, INPUT, 0, (struct embeng_cmd){ .step = 2 }));
	give(&ledger, INPUT, 0, 0);
	give(&ledger, INPUT, 7, 1);
	KUNIT_EXPECT_EQ(test, ledger.submitted[0].accepted, 0);
	KUNIT_EXPECT_EQ(test, ledger.submitted[7].accepted, 0);
}

static void what_is_taken_back_does_not_count(struct kunit *test)
{
	struct embeng_ledger ledger = loaded(1, 0);
	struct embeng_ledger_mark mark = embeng_ledger_mark(&ledger, INPUT, 0);
	const struct embeng_cmd unload = { .opcode = EMBENG_OP_MODEL_UNLOAD };

	give(&ledger, INPUT, 0, 1);
	embeng_ledger_return(&ledger, INPUT, 0, &mark);
	KUNIT_EXPECT_EQ(test, ledger.submitted[0].accepted, 0);
	mark = embeng_ledger_mark(&ledger, TRANSFER, 0);
	embeng_ledger_add(&ledger, TRANSFER, 0, &unload);
	KUNIT_EXPECT_EQ(test, ledger.model, EMBENG_LEDGER_NONE);
	embeng_ledger_return(&ledger, TRANSFER, 0, &mark);
	KUNIT_EXPECT_EQ(test, ledger.model, EMBENG_LEDGER_LOADED);
}

static void an_unknown_model_has_no_steps(struct kunit *test)
{
	struct embeng_ledger ledger = loaded(EMBENG_LEDGER_REPLICAS + 1, 0);
	const struct embeng_cmd step = { .step = 1 }, plain = {};

	KUNIT_EXPECT_EQ(test, embeng_ledger_can_fence(&ledger, INPUT, &step), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, embeng_ledger_can_fence(&ledger, INPUT, &plain), 0);
	KUNIT_EXPECT_FALSE(test, after_met(&ledger, 1));
	KUNIT_EXPECT_TRUE(test, after_met(&ledger, 0));
	embeng_ledger_loading(&ledger);
	KUNIT_EXPECT_EQ(test, embeng_ledger_can_fence(&ledger, INPUT, &step), -EAGAIN);
	ledger.mapped = true;
	KUNIT_EXPECT_EQ(test, embeng_ledger_can_fence(&ledger, INPUT, &step), -EOPNOTSUPP);
	embeng_ledger_load(&ledger, NULL);
	KUNIT_EXPECT_TRUE(test, ledger.mapped);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_lookup_needs_the_update_before),
	KUNIT_CASE(an_update_needs_all_replicas),
	KUNIT_CASE(pipelining_holds_an_update),
	KUNIT_CASE(a_drain_needs_begun_lookups),
	KUNIT_CASE(what_fails_is_withdrawn),
	KUNIT_CASE(steps_out_of_order_do_not_count),
	KUNIT_CASE(what_is_taken_back_does_not_count),
	KUNIT_CASE(an_unknown_model_has_no_steps),
	{ }
};

static struct kunit_suite suite = {
	.name = "embeng-ledger",
	.test_cases = cases,
};

kunit_test_suite(suite);
