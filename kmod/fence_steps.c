// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger: from the commands that a context has submitted it answers whether a command can end
 * without its program doing anything more. uapi/embeng_steps.h has the rules of steps; here they
 * are asked with what the driver has seen, and turned into what must have been submitted
 * (struct embeng_need):
 *
 *	LOOKUP(n)	the tables after n - 1, pipelined after n - 2
 *	UPDATE(n)	the tables after n
 *	after n		the tables after n
 *	DRAIN(n)	pipelined: once a replica began the step after the last complete
 *			one, that LOOKUP of all
 *
 * A command that the engine refuses at once waits for nothing.
 *
 * It is a file of its own because it knows plain numbers only, which KUnit and tests/unit test
 * without a device. The ledger is a part of its context; the caller holds ctx->ledger_lock around
 * each call.
 */
#include <linux/errno.h>
#include <linux/limits.h>

#include "fence_steps.h"

/**
 * embeng_ledger_load() - note that a model was loaded, so that steps count from 1
 * @ledger: ledger of the context
 * @model: options of the model, or NULL if they are not known
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
 * embeng_ledger_loading() - note that a model is being loaded, unless there is one
 * @ledger: ledger of the context
 */
void embeng_ledger_loading(struct embeng_ledger *ledger)
{
	if (ledger->model == EMBENG_LEDGER_NONE)
		ledger->model = EMBENG_LEDGER_LOADING;
}

static bool counts_steps(const struct embeng_ledger *ledger, u32 kind, u32 replica)
{
	return ledger->model == EMBENG_LEDGER_LOADED && replica < ledger->replicas &&
	       (kind == EMBENG_QUEUE_INPUT || kind == EMBENG_QUEUE_GRADIENT);
}

/* The last step of a queue that counts them. */
static u64 find_last_step(const struct embeng_ledger *ledger, u32 kind, u32 replica)
{
	const struct embeng_replica_steps *steps = &ledger->submitted[replica];

	return kind == EMBENG_QUEUE_INPUT ? steps->accepted : steps->updated;
}

static void set_last_step(struct embeng_ledger *ledger, u32 kind, u32 replica, u64 step)
{
	struct embeng_replica_steps *steps = &ledger->submitted[replica];

	if (kind == EMBENG_QUEUE_GRADIENT) {
		steps->updated = step;
		return;
	}
	steps->accepted = step;
	steps->looked = step;
}

/*
 * Makes the argument of the rules of steps. No depth is set: a LOOKUP that may read the tables has
 * room in the pipeline as well.
 */
static struct embeng_steps view_steps(const struct embeng_ledger *ledger)
{
	return (struct embeng_steps){
		.replicas = ledger->submitted,
		.replica_count = ledger->replicas,
		.applied = ledger->applied,
		.pipelining = ledger->pipelined,
	};
}

/**
 * embeng_ledger_add() - add a command that is being submitted
 * @ledger: ledger of the context
 * @kind: kind of the queue
 * @replica: replica of the queue
 * @cmd: command
 */
void embeng_ledger_add(struct embeng_ledger *ledger, u32 kind, u32 replica,
		       const struct embeng_cmd *cmd)
{
	/* A step that is out of order is not counted: the engine refuses it. */
	if (counts_steps(ledger, kind, replica) &&
	    embeng_steps_follows(find_last_step(ledger, kind, replica), cmd->step))
		set_last_step(ledger, kind, replica, cmd->step);
	if (cmd->opcode == EMBENG_OP_MODEL_UNLOAD)
		ledger->model = EMBENG_LEDGER_NONE;
}

/**
 * embeng_ledger_mark() - save the state before commands of a queue are added
 * @ledger: ledger of the context
 * @kind: kind of the queue
 * @replica: replica of the queue
 *
 * Return: the state, for embeng_ledger_return().
 */
struct embeng_ledger_mark embeng_ledger_mark(struct embeng_ledger *ledger, u32 kind, u32 replica)
{
	bool counts = counts_steps(ledger, kind, replica);

	return (struct embeng_ledger_mark){ ledger->model,
					    counts ? find_last_step(ledger, kind, replica) : 0 };
}

/**
 * embeng_ledger_return() - take out commands that are not submitted after all
 * @ledger: ledger of the context, whose lock was held since embeng_ledger_mark()
 * @kind: kind of the queue
 * @replica: replica of the queue
 * @mark: state from embeng_ledger_mark()
 */
void embeng_ledger_return(struct embeng_ledger *ledger, u32 kind, u32 replica,
			  const struct embeng_ledger_mark *mark)
{
	ledger->model = mark->model;
	if (counts_steps(ledger, kind, replica))
		set_last_step(ledger, kind, replica, mark->last);
}

/**
 * embeng_ledger_done() - note that a command of a step has ended
 * @ledger: ledger of the context
 * @kind: kind of the queue
 * @replica: replica of the queue
 * @step: step of the command, 0 when it has none
 * @status: status that it ended with
 *
 * The engine withdraws a failed command together with all later ones of its replica. A step that
 * was out of order was not counted, or was withdrawn before.
 */
void embeng_ledger_done(struct embeng_ledger *ledger, u32 kind, u32 replica, u64 step, u16 status)
{
	u64 last;

	if (!counts_steps(ledger, kind, replica) || !step || status == EMBENG_STATUS_STEP_ORDER)
		return;
	last = find_last_step(ledger, kind, replica);
	if (status ? step <= last : step > last)
		set_last_step(ledger, kind, replica, status ? step - 1 : step);
	if (!status && kind == EMBENG_QUEUE_GRADIENT && step > ledger->applied)
		ledger->applied = step;
}

static bool has_need(u32 kind, const struct embeng_cmd *cmd)
{
	return cmd->after || cmd->opcode == EMBENG_OP_DRAIN ||
	       ((kind == EMBENG_QUEUE_INPUT || kind == EMBENG_QUEUE_GRADIENT) && cmd->step);
}

/**
 * embeng_ledger_need() - find the submits that a command waits for
 * @ledger: ledger of the context, with the command added
 * @kind: kind of the queue
 * @replica: replica of the queue
 * @cmd: command
 * @need: the needs of the command are added here
 */
void embeng_ledger_need(struct embeng_ledger *ledger, u32 kind, u32 replica,
			const struct embeng_cmd *cmd, struct embeng_need *need)
{
	struct embeng_need more = { .applied = cmd->after };
	struct embeng_steps steps = view_steps(ledger);

	if (!has_need(kind, cmd))
		return;
	/* The engine refuses a step that was not counted, so the command waits for nothing. */
	if (counts_steps(ledger, kind, replica) &&
	    cmd->step > find_last_step(ledger, kind, replica))
		return;
	if (ledger->mapped || ledger->model != EMBENG_LEDGER_LOADED)
		more.applied = EMBENG_NEED_UNKNOWN;
	else if (cmd->opcode == EMBENG_OP_DRAIN)
		more.looked = embeng_steps_drain_lookup(&steps, cmd->step);
	else if (kind == EMBENG_QUEUE_GRADIENT)
		more.applied = cmd->step;
	else if (kind == EMBENG_QUEUE_INPUT)
		more.applied = embeng_steps_lookup_after(&steps, cmd->step);
	embeng_need_merge(need, &more);
}

/**
 * embeng_ledger_met() - check whether everything in a need was submitted
 * @ledger: ledger of the context
 * @need: need of a command
 */
bool embeng_ledger_met(const struct embeng_ledger *ledger, const struct embeng_need *need)
{
	struct embeng_steps steps = view_steps(ledger);

	if (!need->applied && !need->looked)
		return true;
	if (need->applied == EMBENG_NEED_UNKNOWN || ledger->model != EMBENG_LEDGER_LOADED)
		return false;
	if (embeng_steps_looked(&steps) < need->looked)
		return false;
	return ledger->applied >= need->applied || embeng_steps_can_apply(&steps, need->applied);
}

/**
 * embeng_ledger_can_fence() - check whether a command of this kind may have a fence at all
 * @ledger: ledger of the context
 * @kind: kind of the queue
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
