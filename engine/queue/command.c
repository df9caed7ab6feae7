// SPDX-License-Identifier: MIT
/*
 * Checks a command by its opcode alone (which queues may carry it and which fields it uses), and
 * carries out NOP and FENCE, the two opcodes that need no model.
 *
 * command_accept() is called without engine->lock, the other functions with it. The copy of a
 * fence's points is command->state until command_release().
 */
#include "internal.h"

#define USES_STEP (1u << 0)
#define USES_AFTER (1u << 1)
#define USES_DESC (1u << 2)
#define USES_ARG (1u << 3)

struct rule {
	u32 kinds; /* mask of 1 << enum embeng_queue_kind */
	u32 uses;
	u16 flags; /* EMBENG_CMD_* that the command may carry */
};

static const struct rule rules[] = {
#define RULE(name, value, kinds_, flags_, words) \
	[EMBENG_OP_##name] = { .kinds = kinds_, .uses = USES_##name, .flags = flags_ },
#define USES_NOP USES_ARG
#define USES_FENCE USES_DESC
#define USES_LOOKUP (USES_STEP | USES_AFTER | USES_DESC)
#define USES_UPDATE (USES_STEP | USES_DESC)
#define USES_DRAIN USES_STEP
#define USES_MODEL_LOAD USES_DESC
#define USES_MODEL_UNLOAD USES_AFTER
#define USES_ROWS_WRITE (USES_AFTER | USES_DESC)
#define USES_ROWS_READ (USES_AFTER | USES_DESC)
#define USES_ROWS_FILL (USES_AFTER | USES_DESC)
#define USES_STATS (USES_AFTER | USES_DESC | USES_ARG)
#define USES_STATE_READ (USES_AFTER | USES_DESC | USES_ARG)
#define USES_STATE_WRITE (USES_AFTER | USES_DESC | USES_ARG)
#define USES_PARTITION USES_DESC
#define USES_STAGE (USES_AFTER | USES_ARG)
#define USES_FREEZE (USES_AFTER | USES_ARG)
#define USES_SNAPSHOT (USES_AFTER | USES_DESC)
#define USES_SNAPSHOT_READ (USES_DESC | USES_ARG)
#define USES_SNAPSHOT_END USES_ARG
#define USES_UNIQUE USES_DESC
#define USES_POOL USES_DESC
#define USES_SUM USES_DESC
	EMBENG_OPCODE_TABLE(RULE)
};

#define OPCODE_LAST (sizeof(rules) / sizeof(rules[0]) - 1)
#define STATUS_LAST EMBENG_STATUS_SNAPSHOT
#define NOP_ARG_RESERVED 0xffff0000ull
#define STATS_ARG_RESERVED (~(0xffffffffull | EMBENG_STATS_CLEAR | EMBENG_STATS_NOW))

static u16 refuse_field(struct fault *fault, u16 status, u32 field, u64 value, u64 limit)
{
	return fault_set(fault, status, field, EMBENG_NO_INDEX, 0, value, limit);
}

static u32 used_fields(const struct queue *q, const struct embeng_cmd *cmd)
{
	u32 uses = rules[cmd->opcode].uses;

	/* A training lookup has a step of its own, an inference lookup comes after one. */
	if (cmd->opcode == EMBENG_OP_LOOKUP)
		uses &= ~(q->kind == EMBENG_QUEUE_INPUT ? USES_AFTER : USES_STEP);
	if (cmd->opcode == EMBENG_OP_UPDATE && cmd->flags & EMBENG_CMD_DISCARD)
		uses &= ~USES_DESC;
	if (cmd->opcode == EMBENG_OP_STATS && cmd->arg & EMBENG_STATS_NOW)
		uses &= ~USES_AFTER;
	return uses;
}

static u16 allowed_flags(const struct queue *q, const struct embeng_cmd *cmd)
{
	u16 flags = rules[cmd->opcode].flags;

	/* An inference lookup is nothing but its activations. */
	return q->kind == EMBENG_QUEUE_INFERENCE ? flags & ~EMBENG_CMD_IDS_ONLY : flags;
}

static u16 check_unused(const struct embeng_cmd *cmd, u16 flags, u32 uses, struct fault *fault)
{
	if (cmd->flags & ~flags)
		return refuse_field(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_FLAGS, cmd->flags,
				    flags);
	if (cmd->reserved0)
		return refuse_field(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED,
				    cmd->reserved0, 0);
	if (!(uses & USES_STEP) && cmd->step)
		return refuse_field(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_STEP, cmd->step, 0);
	if (!(uses & USES_AFTER) && cmd->after)
		return refuse_field(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_AFTER, cmd->after,
				    0);
	if (!(uses & USES_DESC) && mem_given(&cmd->desc))
		return refuse_field(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_DESC,
				    cmd->desc.index, 0);
	if (!(uses & USES_ARG) && cmd->arg)
		return refuse_field(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG, cmd->arg, 0);
	return EMBENG_STATUS_OK;
}

static u64 nop_delay_us(const struct embeng_cmd *cmd)
{
	return cmd->arg >> EMBENG_NOP_DELAY_SHIFT;
}

static u16 check_arg(const struct embeng_cmd *cmd, struct fault *fault)
{
	u64 reserved = 0;

	if (cmd->opcode == EMBENG_OP_NOP)
		reserved = NOP_ARG_RESERVED;
	else if (cmd->opcode == EMBENG_OP_STATS)
		reserved = STATS_ARG_RESERVED |
			   (cmd->arg & EMBENG_STATS_NOW ? EMBENG_STATS_CLEAR : 0);
	else if (cmd->opcode == EMBENG_OP_SNAPSHOT_READ)
		reserved = ~0xffffffffull;
	if (cmd->arg & reserved)
		return refuse_field(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG,
				    cmd->arg & reserved, 0);
	if (cmd->opcode == EMBENG_OP_NOP && nop_delay_us(cmd) > EMBENG_NOP_DELAY_MAX)
		return refuse_field(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_ARG, nop_delay_us(cmd),
				    EMBENG_NOP_DELAY_MAX);
	if (cmd->opcode == EMBENG_OP_NOP && (u16)cmd->arg > STATUS_LAST)
		return refuse_field(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_ARG, (u16)cmd->arg,
				    STATUS_LAST);
	return EMBENG_STATUS_OK;
}

u16 command_check(const struct queue *q, const struct embeng_cmd *cmd, struct fault *fault)
{
	u16 status;

	if (cmd->opcode > OPCODE_LAST)
		return refuse_field(fault, EMBENG_STATUS_OPCODE, EMBENG_FIELD_OPCODE, cmd->opcode,
				    OPCODE_LAST);
	if (!(rules[cmd->opcode].kinds & 1u << q->kind))
		return refuse_field(fault, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_OPCODE,
				    cmd->opcode, q->kind);
	status = check_unused(cmd, allowed_flags(q, cmd), used_fields(q, cmd), fault);
	return status ? status : check_arg(cmd, fault);
}

struct fence {
	u32 count;
	struct embeng_fence_point points[];
};

static u16 check_fence(struct command *command)
{
	const u64 each = sizeof(struct embeng_fence_point);
	u64 length = command->cmd.desc.length;

	if (!length || length % each)
		return refuse_field(&command->fault, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC,
				    length, each);
	if (length / each > EMBENG_FENCE_POINTS_MAX)
		return refuse_field(&command->fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_DESC,
				    length / each, EMBENG_FENCE_POINTS_MAX);
	return EMBENG_STATUS_OK;
}

static u16 fence_accept(struct command *command)
{
	const struct embeng_mem *desc = &command->cmd.desc;
	struct fence *fence;
	struct view view;
	u16 status = check_fence(command);

	if (!status)
		status = region_get(command, desc, EMBENG_REGION_DEVICE_READ, 4, EMBENG_FIELD_DESC,
				    EMBENG_NO_INDEX, &view);
	if (status)
		return status;
	fence = port_alloc(sizeof(*fence) + desc->length);
	if (fence) {
		fence->count = (u32)(desc->length / sizeof(fence->points[0]));
		memcpy(fence->points, view.data, desc->length);
	} else {
		refuse_field(&command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_NONE,
			     desc->length, 0);
	}
	region_put(command->context, &view);
	command->state = fence;
	return command->fault.status;
}

/* The queue that point @i names, or NULL with the fault set. */
static struct queue *find_fenced_queue(struct command *command, const struct fence *fence, u32 i)
{
	struct engine *e = command->queue->engine;
	u32 number = fence->points[i].queue;
	struct queue *q = number < e->caps.queues ? e->queues[number] : NULL;

	if (q && q->context == command->context && q != command->queue)
		return q;
	fault_set(&command->fault, EMBENG_STATUS_FENCE, EMBENG_FIELD_DESC, EMBENG_NO_INDEX, i,
		  number, e->caps.queues);
	return NULL;
}

static enum verdict fence_ready(struct command *command, struct wait *wait)
{
	const struct fence *fence = command->state;
	enum verdict verdict = VERDICT_READY;
	struct queue *q;
	u32 i;

	for (i = 0; i < fence->count; i++) {
		q = find_fenced_queue(command, fence, i);
		if (!q)
			return VERDICT_FAILED;
		if (verdict == VERDICT_WAIT || (s32)(q->completed - fence->points[i].index) > 0)
			continue;
		wait->what = EMBENG_WAIT_QUEUE;
		wait->replica = q->number;
		wait->step = fence->points[i].index;
		verdict = VERDICT_WAIT;
	}
	return verdict;
}

static void fence_commit(struct command *command, u16 status)
{
	struct wait ignored;

	if (!status)
		fence_ready(command, &ignored);
}

static void fence_release(struct command *command)
{
	port_free(command->state);
}

static u16 nop_accept(struct command *command)
{
	command->ready_ns = port_now_ns() + nop_delay_us(&command->cmd) * 1000;
	return EMBENG_STATUS_OK;
}

static enum verdict nop_ready(struct command *command, struct wait *wait)
{
	(void)wait;
	if (clock_read(command->queue->engine) < command->ready_ns)
		return VERDICT_WAIT;
	if (!(u16)command->cmd.arg)
		return VERDICT_READY;
	return refuse_command(command, (u16)command->cmd.arg, EMBENG_FIELD_NONE, 0, 0);
}

/* The verbs that need no model. */
static const struct verb verbs[] = {
	[EMBENG_OP_NOP] = {
		.accept = nop_accept,
		.ready = nop_ready,
	},
	[EMBENG_OP_FENCE] = {
		.accept = fence_accept,
		.commit = fence_commit,
		.ready = fence_ready,
		.release = fence_release,
	},
};

bool command_is_ours(const struct command *command)
{
	return command->cmd.opcode < sizeof(verbs) / sizeof(verbs[0]);
}

enum verdict command_admit(struct command *command, struct wait *wait)
{
	return command_is_ours(command) ? VERDICT_READY : model_admit(command, wait);
}

u16 command_accept(struct command *command)
{
	void *charged = port_charge_begin(command->queue->context->table);
	u16 status = command_is_ours(command) ? verbs[command->cmd.opcode].accept(command) :
						model_accept(command);

	port_charge_end(charged);
	return status;
}

u16 command_commit(struct command *command, u16 status)
{
	if (!command_is_ours(command))
		model_commit(command, status);
	else if (verbs[command->cmd.opcode].commit)
		verbs[command->cmd.opcode].commit(command, status);
	return command->fault.status;
}

enum verdict command_ready(struct command *command, struct wait *wait)
{
	return command_is_ours(command) ? verbs[command->cmd.opcode].ready(command, wait) :
					  model_ready(command, wait);
}

u64 command_touched(const struct command *command)
{
	return command_is_ours(command) ? 0 : model_touched(command);
}

void command_release(struct command *command)
{
	if (!command_is_ours(command))
		model_release(command);
	else if (verbs[command->cmd.opcode].release)
		verbs[command->cmd.opcode].release(command);
	command->state = NULL;
}
