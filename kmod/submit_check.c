// SPDX-License-Identifier: GPL-2.0-only
/*
 * The check of a single command before the device sees it: does its opcode exist, does it belong
 * on this kind of queue, are flags that nobody knows zero? The engine checks everything else, and
 * checks this again, so the answer serves early errors and not safety.
 *
 * It is a file of its own because it is one table from uapi/embeng_engine.h and one decision,
 * which KUnit tests without a device. It has no state and takes no lock.
 */
#include "context.h"

static const u32 kinds[] = {
#define KINDS_OF(name, value, mask, words) \
	[value] = mask,
	EMBENG_OPCODE_TABLE(KINDS_OF)
#undef KINDS_OF
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
	u16 flags = cmd->opcode == EMBENG_OP_ROWS_WRITE ? EMBENG_CMD_STAGED : 0;

	if (cmd->opcode >= ARRAY_SIZE(kinds))
		return -EOPNOTSUPP;
	if (!(kinds[cmd->opcode] & BIT(kind)))
		return -EINVAL;
	return cmd->flags & ~flags || cmd->reserved0 ? -EINVAL : 0;
}
