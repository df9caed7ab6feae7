// SPDX-License-Identifier: GPL-2.0-only
/*
 * The check of a single command before the device sees it: does its opcode exist, does it belong
 * on this kind of queue, are all its flags ones that the opcode may carry? The engine checks
 * everything else, and checks this again, so the answer serves early errors and not safety.
 *
 * It is a file of its own because it is one table from uapi/embeng_engine.h and one decision,
 * which KUnit tests without a device. It has no state and takes no lock.
 */
#include "context.h"

static const struct {
	u32 kinds; /* mask of BIT(enum embeng_queue_kind) */
	u16 flags; /* EMBENG_CMD_* that the command may carry */
} rules[] = {
#define RULE_OF(name, value, kinds_, flags_, words) \
	[value] = { .kinds = kinds_, .flags = flags_ },
	EMBENG_OPCODE_TABLE(RULE_OF)
#undef RULE_OF
};

/**
 * embeng_command_check() - check that a command belongs on this kind of queue
 * @kind: kind of the queue
 * @cmd: command
 *
 * The memory key is not checked here.
 *
 * Return: 0, -EOPNOTSUPP for an unknown opcode, or -EINVAL.
 */
int embeng_command_check(u32 kind, const struct embeng_cmd *cmd)
{
	if (cmd->opcode >= ARRAY_SIZE(rules))
		return -EOPNOTSUPP;
	if (!(rules[cmd->opcode].kinds & BIT(kind)))
		return -EINVAL;
	return cmd->flags & ~rules[cmd->opcode].flags || cmd->reserved0 ? -EINVAL : 0;
}
