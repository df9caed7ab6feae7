// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger: the engine's rules of steps, as far as they say who waits for whom. With what a
 * context has submitted it answers whether a command can end without its program doing anything
 * more.
 *
 *	LOOKUP(n)	the tables after n - 1, pipelined after n - 2
 *	UPDATE(n)	all replicas' UPDATE(n); pipelined, their LOOKUP(n + 1) too
 *	after n		the tables after n
 *	DRAIN(n)	pipelined: once a replica began the step after the last complete
 *			one, that LOOKUP of all
 *
 * A command that the engine refuses at once waits for nothing.
 *
 * It is a file of its own because it knows plain numbers only, which KUnit tests without a device.
 * The ledger is a part of its context; the caller holds ctx->ledger_lock around each call.
 */
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "fence_steps.h"

/**
 * embeng_ledger_load() - a model was loaded: steps count from 1
 * @ledger: of the context
 * @model: its options, or NULL: not known
 */
void embeng_ledger_load(struct embeng_ledger *ledger, const struct embeng_record_engine *model)
{
	*ledger = (struct embeng_ledger){ .mapped = ledger->mapped };
	if (!model || !model->replicas || model->replicas > EMBENG_LEDGER_REPLICAS)
		return;
	ledger->model = EMBENG_LEDGER_LOADED;
	ledger->replicas = model->replicas;
	ledger->pipelined = model->flags & EMBENG_ENGINE_PIPELINING;
}

/**
 * embeng_ledger_loading() - a model is on its way, if none is there
 * @ledger: of the context
 */
void embeng_ledger_loading(struct embeng_ledger *ledger)
{
	if (ledger->model == EMBENG_LEDGER_NONE)
		ledger->model = EMBENG_LEDGER_LOADING;
}

static u64 *find_step_counter(struct embeng_ledger *ledger, u32 kind, u32 replica)
{
	if (ledger->model != EMBENG_LEDGER_LOADED || replica >= ledger->replicas)
		return NULL;
	if (kind == EMBENG_QUEUE_INPUT)
		return &ledger->lookups[replica];
	return kind == EMBENG_QUEUE_GRADIENT ? &ledger->updates[replica] : NULL;
}

/**
 * embeng_ledger_add() - a command is submitted
 * @ledger: of the context
 * @kind: of the queue
 * @replica: of the queue
 * @cmd: command
 */
void embeng_ledger_add(struct embeng_ledger *ledger, u32 kind, u32 replica,
		       const struct embeng_cmd *cmd)
{
	u64 *last = find_step_counter(ledger, kind, replica);

	/* The engine refuses steps out of order. */
	if (last && cmd->step == *last + 1)
		*last = cmd->step;
	if (cmd->opcode == EMBENG_OP_MODEL_UNLOAD)
		ledger->model = EMBENG_LEDGER_NONE;
}

/**
 * embeng_ledger_mark() - before commands of a queue are added
 * @ledger: of the context
 * @kind: of the queue
 * @replica: of the queue
 *
 * Return: for embeng_ledger_return().
 */
struct embeng_ledger_mark embeng_ledger_mark(struct embeng_ledger *ledger, u32 kind, u32 replica)
{
	const u64 *last = find_step_counter(ledger, kind, replica);

	return (struct embeng_ledger_mark){ ledger->model, last ? *last : 0 };
}

/**
 * embeng_ledger_return() - what was added since is not submitted after all
 * @ledger: of the context, under the same hold of its lock
 * @kind: of the queue
 * @replica: of the queue
 * @mark: from embeng_ledger_mark()
 */
void embeng_ledger_return(struct embeng_ledger *ledger, u32 kind, u32 replica,
			  const struct embeng_ledger_mark *mark)
{
	u64 *last;

	ledger->model = mark->model;
	last = find_step_counter(ledger, kind, replica);
	if (last)
		*last = mark->last;
}

/**
 * embeng_ledger_done() - a command of a step has come to its end
 * @ledger: of the context
 * @kind: of the queue
 * @replica: of the queue
 * @step: of the command, 0 when it has none
 * @status: that it ended with
 *
 * What failed was withdrawn with all that the replica gave after it. A step that was out of
 * order was not counted, or withdrawn before.
 */
void embeng_ledger_done(struct embeng_ledger *ledger, u32 kind, u32 replica, u64 step, u16 status)
{
	u64 *last = find_step_counter(ledger, kind, replica);

	if (!last || !step || status == EMBENG_STATUS_STEP_ORDER)
		return;
	if (status) {
		*last = min(*last, step - 1);
		return;
	}
	*last = max(*last, step);
	if (kind == EMBENG_QUEUE_GRADIENT)
		ledger->applied = max(ledger->applied, step);
}

static u64 find_least_update(const struct embeng_ledger *ledger, u64 least)
{
	u32 r;

	for (r = 0; r < ledger->replicas; r++)
		least = min(least, ledger->updates[r]);
	return least;
}

static bool have_all_looked(const struct embeng_ledger *ledger, u64 step)
{
	u32 r;

	for (r = 0; r < ledger->replicas; r++) {
		if (ledger->lookups[r] < step)
			return false;
	}
	return true;
}

static bool has_any_looked(const struct embeng_ledger *ledger, u64 step)
{
	u32 r;

	for (r = 0; r < ledger->replicas; r++) {
		if (ledger->lookups[r] >= step)
			return true;
	}
	return false;
}

static u64 find_drain_need(const struct embeng_ledger *ledger, u64 step)
{
	u64 next = find_least_update(ledger, step);

	/* Beyond the last step there is no next one. */
	if (!ledger->pipelined || next == U64_MAX)
		return 0;
	return has_any_looked(ledger, next + 1) ? next + 1 : 0;
}

static bool has_need(u32 kind, const struct embeng_cmd *cmd)
{
	return cmd->after || cmd->opcode == EMBENG_OP_DRAIN ||
	       ((kind == EMBENG_QUEUE_INPUT || kind == EMBENG_QUEUE_GRADIENT) && cmd->step);
}

/**
 * embeng_ledger_need() - what a command waits for
 * @ledger: of the context, with the command added
 * @kind: of the queue
 * @replica: of the queue
 * @cmd: command
 * @need: made larger by it
 */
void embeng_ledger_need(struct embeng_ledger *ledger, u32 kind, u32 replica,
			const struct embeng_cmd *cmd, struct embeng_need *need)
{
	struct embeng_need more = { .applied = cmd->after };
	const u64 *last = find_step_counter(ledger, kind, replica);
	u64 lag = ledger->pipelined ? 2 : 1;

	/* A step that was not counted is refused. */
	if (!has_need(kind, cmd) || (last && cmd->step > *last))
		return;
	if (ledger->mapped || ledger->model != EMBENG_LEDGER_LOADED)
		more.applied = EMBENG_NEED_UNKNOWN;
	else if (cmd->opcode == EMBENG_OP_DRAIN)
		more.looked = find_drain_need(ledger, cmd->step);
	else if (kind == EMBENG_QUEUE_GRADIENT)
		more.applied = cmd->step;
	else if (kind == EMBENG_QUEUE_INPUT)
		more.applied = cmd->step > lag ? cmd->step - lag : 0;
	embeng_need_merge(need, &more);
}

/**
 * embeng_ledger_met() - was all submitted that a need speaks of
 * @ledger: of the context
 * @need: of a command
 */
bool embeng_ledger_met(const struct embeng_ledger *ledger, const struct embeng_need *need)
{
	if (!need->applied && !need->looked)
		return true;
	if (need->applied == EMBENG_NEED_UNKNOWN || ledger->model != EMBENG_LEDGER_LOADED)
		return false;
	if (!have_all_looked(ledger, need->looked))
		return false;
	if (ledger->applied >= need->applied)
		return true;
	if (find_least_update(ledger, need->applied) < need->applied)
		return false;
	return !ledger->pipelined || have_all_looked(ledger, need->applied + 1);
}

/**
 * embeng_ledger_can_fence() - may a command of this kind have a fence at all
 * @ledger: of the context
 * @kind: of the queue
 * @cmd: command
 *
 * Return: 0, -EOPNOTSUPP, or -EAGAIN while the model is being loaded.
 */
int embeng_ledger_can_fence(const struct embeng_ledger *ledger, u32 kind,
			    const struct embeng_cmd *cmd)
{
	if (!has_need(kind, cmd))
		return 0;
	if (ledger->mapped)
		return -EOPNOTSUPP;
	if (ledger->model == EMBENG_LEDGER_LOADING)
		return -EAGAIN;
	if (ledger->model != EMBENG_LEDGER_LOADED)
		return -EOPNOTSUPP;
	return ledger->pipelined && kind == EMBENG_QUEUE_GRADIENT ? -EOPNOTSUPP : 0;
}
