/* SPDX-License-Identifier: MIT */
/*
 * The verbs of the model layer: what each opcode does in each phase of its command (struct verb in
 * device/device.h). A new opcode is one entry here and the functions that the entry names, which
 * stand in the room that the opcode is about.
 *
 * Commands that use a loaded model have a rule in common, which is here as well: they wait while the
 * model comes or goes, and are counted so that an unload waits for them. model_accept() and
 * model_run() are called without engine->lock, all others with it.
 */
#include "../exchange/exchange.h"
#include "../partition/partition.h"
#include "../step/step.h"
#include "../update/update.h"
#include "lifetime.h"
#include "lookup_verb.h"

#define ROWS_VERB \
	{ \
		.accept = rows_accept, \
		.ready = step_after_ready, \
		.bytes = rows_touched, \
		.run = rows_run, \
		.release = rows_release, \
	}
#define EXCHANGE_VERB(run_) \
	{ \
		.admits_itself = true, \
		.accept = exchange_accept, \
		.run = run_, \
		.release = exchange_release, \
	}
#define STATE_VERB \
	{ \
		.accept = state_accept, \
		.ready = step_after_ready, \
		.run = state_run, \
	}

static const struct verb verbs[] = {
	[EMBENG_OP_LOOKUP] = {
		.admit = lookup_admit,
		.accept = lookup_accept,
		.commit = lookup_commit,
		.ready = lookup_ready,
		.bytes = lookup_touched,
		.run = lookup_run,
		.finish = lookup_finish,
		.release = lookup_release,
	},
	[EMBENG_OP_UPDATE] = {
		.admit = step_admit_update,
		.accept = update_accept,
		.commit = step_commit_update,
		.ready = step_update_ready,
		.bytes = update_touched,
		.run = update_run,
		.finish = step_update_finished,
	},
	[EMBENG_OP_DRAIN] = {
		.ready = step_drain_ready,
		.run = drain_run,
	},
	[EMBENG_OP_MODEL_LOAD] = {
		.admits_itself = true,
		.admit = any_load_admit,
		.accept = load_accept,
		.commit = any_load_commit,
		.ready = any_load_ready,
		.run = any_load_run,
		.finish = any_load_finish,
		.release = any_load_release,
	},
	[EMBENG_OP_MODEL_UNLOAD] = {
		.admits_itself = true,
		.admit = unload_admit,
		.ready = unload_ready,
		.run = unload_run,
		.finish = unload_finish,
	},
	[EMBENG_OP_ROWS_WRITE] = ROWS_VERB,
	[EMBENG_OP_ROWS_READ] = ROWS_VERB,
	[EMBENG_OP_ROWS_FILL] = ROWS_VERB,
	[EMBENG_OP_STATS] = {
		.without_model = stats_is_now,
		.accept = stats_accept,
		.ready = stats_ready,
		.bytes = stats_touched,
		.run = stats_run,
	},
	[EMBENG_OP_STATE_READ] = STATE_VERB,
	[EMBENG_OP_STATE_WRITE] = STATE_VERB,
	[EMBENG_OP_PARTITION] = {
		.admits_itself = true,
		.accept = pcsr_accept,
		.run = pcsr_run,
		.release = pcsr_release,
	},
	[EMBENG_OP_STAGE] = {
		.accept = stage_accept,
		.ready = step_after_ready,
		.run = stage_run,
	},
	[EMBENG_OP_FREEZE] = {
		.accept = freeze_accept,
		.ready = step_after_ready,
		.run = freeze_run,
	},
	[EMBENG_OP_SNAPSHOT] = {
		.accept = state_accept,
		.ready = step_after_ready,
		.run = snapshot_run,
	},
	[EMBENG_OP_SNAPSHOT_READ] = {
		.accept = rows_accept,
		.run = rows_run,
		.release = rows_release,
	},
	[EMBENG_OP_SNAPSHOT_END] = {
		.run = snapshot_end_run,
	},
	[EMBENG_OP_UNIQUE] = EXCHANGE_VERB(unique_run),
	[EMBENG_OP_POOL] = EXCHANGE_VERB(pool_run),
	[EMBENG_OP_SUM] = EXCHANGE_VERB(sum_run),
};

/* Opcodes are only appended, so the table ends too early if one was forgotten. */
#define COUNT_OPCODE(name, value, kinds, flags, words) +1
_Static_assert(sizeof(verbs) / sizeof(verbs[0]) == 0 EMBENG_OPCODE_TABLE(COUNT_OPCODE),
	       "an opcode has no verb");

static const struct verb *verb_of(const struct command *command)
{
	return &verbs[command->cmd.opcode];
}

static enum verdict admit_verb(struct command *command, struct wait *wait)
{
	const struct verb *verb = verb_of(command);

	return verb->admit ? verb->admit(command, wait) : VERDICT_READY;
}

enum verdict model_admit(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;
	const struct queue *q = command->queue;
	enum verdict verdict;

	if (verb_of(command)->admits_itself)
		return admit_verb(command, wait);
	if (!model && verb_of(command)->without_model && verb_of(command)->without_model(command))
		return VERDICT_READY;
	if (!model)
		return refuse_command(command, EMBENG_STATUS_NO_MODEL, EMBENG_FIELD_OPCODE, 0, 0);
	/* Behind an unload, a command sees no model; it must not be what that waits for. */
	if (model->state != MODEL_READY || (model->change && model->change->queue == q))
		return wait_for_nothing(wait);
	if (q->kind != EMBENG_QUEUE_TRANSFER && q->replica >= model_replicas(model))
		return refuse_command(command, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_OPCODE,
				      q->replica, model_replicas(model) - 1);
	verdict = admit_verb(command, wait);
	if (verdict == VERDICT_READY) {
		command->holds_model = true;
		model->users++;
	}
	return verdict;
}

u16 model_accept(struct command *command)
{
	const struct verb *verb = verb_of(command);

	return verb->accept ? verb->accept(command) : 0;
}

void model_commit(struct command *command, u16 status)
{
	const struct verb *verb = verb_of(command);

	if (verb->commit)
		verb->commit(command, status);
}

enum verdict model_ready(struct command *command, struct wait *wait)
{
	const struct verb *verb = verb_of(command);

	return verb->ready ? verb->ready(command, wait) : VERDICT_READY;
}

u64 model_touched(const struct command *command)
{
	const struct verb *verb = verb_of(command);

	return verb->bytes ? verb->bytes(command) : U64_MAX;
}

void model_run(struct command *command)
{
	void *charged = port_charge_begin(command->context->table);
	struct model *model = command->context->model;

	if (model)
		model->command = command;
	verb_of(command)->run(command);
	if (model)
		model->command = NULL;
	port_charge_end(charged);
}

void model_finish(struct command *command)
{
	const struct verb *verb = verb_of(command);

	if (verb->finish)
		verb->finish(command);
}

void model_release(struct command *command)
{
	const struct verb *verb = verb_of(command);

	if (command->holds_model) {
		command->holds_model = false;
		command->context->model->users--;
	}
	if (verb->release)
		verb->release(command);
	command->state = NULL;
}
