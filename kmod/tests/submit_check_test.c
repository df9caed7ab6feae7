// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests what a command may say before it is taken (submit_check.c, which is compiled in): its
 * kinds of queue, its flags and its fields.
 */
#include "world.h"

#include "../submit_check.c"

/* The kinds of queue that each command belongs on, written down a second time. */
static const struct {
	u16 opcode;
	bool input, inference, gradient, transfer;
} places[] = {
	{ EMBENG_OP_NOP, true, true, true, true },
	{ EMBENG_OP_FENCE, true, true, true, true },
	{ EMBENG_OP_LOOKUP, true, true, false, false },
	{ EMBENG_OP_UPDATE, false, false, true, false },
	{ EMBENG_OP_DRAIN, false, false, false, true },
	{ EMBENG_OP_MODEL_LOAD, false, false, false, true },
	{ EMBENG_OP_MODEL_UNLOAD, false, false, false, true },
	{ EMBENG_OP_ROWS_WRITE, false, false, false, true },
	{ EMBENG_OP_ROWS_READ, false, false, false, true },
	{ EMBENG_OP_ROWS_FILL, false, false, false, true },
	{ EMBENG_OP_STATS, false, false, false, true },
	{ EMBENG_OP_STATE_READ, false, false, false, true },
	{ EMBENG_OP_STATE_WRITE, false, false, false, true },
	{ EMBENG_OP_PARTITION, false, false, false, true },
	{ EMBENG_OP_STAGE, false, false, false, true },
	{ EMBENG_OP_FREEZE, false, false, false, true },
	{ EMBENG_OP_SNAPSHOT, false, false, false, true },
	{ EMBENG_OP_SNAPSHOT_READ, false, false, false, true },
	{ EMBENG_OP_SNAPSHOT_END, false, false, false, true },
	{ EMBENG_OP_UNIQUE, false, false, false, true },
	{ EMBENG_OP_POOL, false, false, false, true },
	{ EMBENG_OP_SUM, false, false, false, true },
};

static void each_command_has_its_queues(struct kunit *test)
{
	struct embeng_cmd cmd = {};
	int i;

	KUNIT_ASSERT_EQ(test, ARRAY_SIZE(places), ARRAY_SIZE(rules));
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		cmd.opcode = places[i].opcode;
		KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_INPUT, &cmd),
				places[i].input ? 0 : -EINVAL);
		KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_INFERENCE, &cmd),
				places[i].inference ? 0 : -EINVAL);
		KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_GRADIENT, &cmd),
				places[i].gradient ? 0 : -EINVAL);
		KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_TRANSFER, &cmd),
				places[i].transfer ? 0 : -EINVAL);
	}
}

static void the_admin_queue_takes_none(struct kunit *test)
{
	struct embeng_cmd cmd = {};

	for (cmd.opcode = 0; cmd.opcode < ARRAY_SIZE(places); cmd.opcode++)
		KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_ADMIN, &cmd), -EINVAL);
}

static void unknown_opcodes_are_told_apart(struct kunit *test)
{
	struct embeng_cmd cmd = { .opcode = ARRAY_SIZE(places) };

	KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_TRANSFER, &cmd), -EOPNOTSUPP);
	cmd.opcode = U16_MAX;
	KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_TRANSFER, &cmd), -EOPNOTSUPP);
}

static void only_a_write_may_be_staged(struct kunit *test)
{
	struct embeng_cmd cmd = { .flags = EMBENG_CMD_STAGED };

	for (cmd.opcode = 0; cmd.opcode < ARRAY_SIZE(places); cmd.opcode++) {
		if (!(rules[cmd.opcode].kinds & BIT(EMBENG_QUEUE_TRANSFER)))
			continue;
		KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_TRANSFER, &cmd),
				cmd.opcode == EMBENG_OP_ROWS_WRITE ? 0 : -EINVAL);
	}
}

static void only_a_load_may_extend(struct kunit *test)
{
	struct embeng_cmd cmd = { .flags = EMBENG_CMD_EXTENDS };

	for (cmd.opcode = 0; cmd.opcode < ARRAY_SIZE(places); cmd.opcode++) {
		if (!(rules[cmd.opcode].kinds & BIT(EMBENG_QUEUE_TRANSFER)))
			continue;
		KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_TRANSFER, &cmd),
				cmd.opcode == EMBENG_OP_MODEL_LOAD ? 0 : -EINVAL);
	}
}

static void other_flags_are_wrong(struct kunit *test)
{
	struct embeng_cmd cmd = { .opcode = EMBENG_OP_ROWS_WRITE };
	int bit;

	for (bit = 1; bit < 16; bit++) {
		cmd.flags = BIT(bit);
		KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_TRANSFER, &cmd), -EINVAL);
	}
}

static void the_reserved_word_is_zero(struct kunit *test)
{
	struct embeng_cmd cmd = { .reserved0 = 1 };

	KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_TRANSFER, &cmd), -EINVAL);
	cmd.reserved0 = BIT(31);
	KUNIT_EXPECT_EQ(test, embeng_command_check(EMBENG_QUEUE_TRANSFER, &cmd), -EINVAL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_command_has_its_queues),
	KUNIT_CASE(the_admin_queue_takes_none),
	KUNIT_CASE(unknown_opcodes_are_told_apart),
	KUNIT_CASE(only_a_write_may_be_staged),
	KUNIT_CASE(only_a_load_may_extend),
	KUNIT_CASE(other_flags_are_wrong),
	KUNIT_CASE(the_reserved_word_is_zero),
	{ }
};

static struct kunit_suite suite = {
	.name = "embeng-command",
	.test_cases = cases,
};

kunit_test_suite(suite);
