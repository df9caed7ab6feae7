/* SPDX-License-Identifier: MIT */
/*
 * The order of training steps. The rules, which LOOKUP or UPDATE may be accepted or run now and what
 * a command waits for that may not, are in uapi/embeng_steps.h. Here are the counts that they are
 * asked with, and the commands that have been accepted and may be withdrawn again.
 *
 * Called with engine->lock held, but for step_update_applied(), which looks only at its command.
 * The counts live as long as the model.
 */
#include "step.h"
#include "../lookup/batch.h"

/* command.state of an UPDATE whose step was applied. */
static const u8 applied_mark;

static enum verdict order_fault(struct command *command, u64 expected)
{
	return refuse_command(command, EMBENG_STATUS_STEP_ORDER, EMBENG_FIELD_STEP,
			      command->cmd.step, expected);
}

static struct embeng_replica_steps *replica_of(const struct command *command)
{
	return &command->context->model->replicas[command->queue->replica];
}

static struct accepting *accepting_of(const struct command *command)
{
	return &command->context->model->accepting[command->queue->replica];
}

static struct part *part_of(const struct command *command)
{
	return model_part(command->context->model, command->cmd.step, command->queue->replica);
}

/* Tells a command what the rules say. */
static enum verdict pass_on(struct command *command, struct embeng_step_answer answer,
			    struct wait *wait)
{
	if (answer.verdict == EMBENG_STEP_READY)
		return VERDICT_READY;
	if (answer.verdict == EMBENG_STEP_WAITS)
		return wait_for(wait, answer.what, answer.replica, answer.step);
	if (answer.what == EMBENG_STATUS_STEP_ORDER)
		return order_fault(command, answer.step);
	return refuse_command(command, answer.what, EMBENG_FIELD_AFTER, command->cmd.after,
			      answer.step);
}

enum verdict step_missing(const struct model *model, struct wait *wait)
{
	struct embeng_steps steps = model_steps(model);
	struct embeng_step_answer answer = embeng_steps_missing(&steps);

	return wait_for(wait, answer.what, answer.replica, answer.step);
}

enum verdict step_admit_lookup(struct command *command, struct wait *wait)
{
	struct embeng_steps steps = model_steps(command->context->model);
	struct accepting *accepting = accepting_of(command);
	enum verdict verdict;

	if (accepting->lookup)
		return wait_for_nothing(wait);
	verdict = pass_on(
		command,
		embeng_steps_admit_lookup(&steps, command->queue->replica, command->cmd.step),
		wait);
	accepting->lookup = verdict == VERDICT_READY;
	return verdict;
}

void step_count_batch(struct model *model, const struct batch *batch)
{
	for (u32 i = 0; i < batch->feature_count; i++) {
		const struct batch_feature *f = &batch->features[i];
		struct table_stats *stats = &model->tables[model->blob.features[i].table].stats;

		stats->dropped += f->dropped;
		stats->clamped += f->clamped;
		stats->zeroed += f->zeroed;
	}
}

void step_commit_lookup(struct command *command, u16 status)
{
	struct embeng_replica_steps *replica = replica_of(command);
	u64 step = command->cmd.step;
	struct part *part = part_of(command);

	accepting_of(command)->lookup = false;
	/* Withdrawn meanwhile with one before it: it fails when its turn comes. */
	if (status || !embeng_steps_follows(replica->accepted, step))
		return;
	replica->accepted = step;
	part->lookup = command;
	part->update = NULL;
	step_count_batch(command->context->model, part->batch);
}

enum verdict step_lookup_ready(struct command *command, struct wait *wait)
{
	struct embeng_steps steps = model_steps(command->context->model);

	if (part_of(command)->lookup != command)
		return order_fault(command, replica_of(command)->accepted + 1);
	if (command->cmd.flags & EMBENG_CMD_IDS_ONLY)
		return pass_on(
			command,
			embeng_steps_ids_ready(&steps, command->queue->replica, command->cmd.step),
			wait);
	return pass_on(
		command,
		embeng_steps_lookup_ready(&steps, command->queue->replica, command->cmd.step),
		wait);
}

static void withdraw_lookups(struct model *model, u32 number, u64 first)
{
	struct embeng_replica_steps *replica = &model->replicas[number];

	for (u64 step = first; step <= replica->accepted; step++)
		model_part(model, step, number)->lookup = NULL;
	replica->accepted = first - 1;
}

void step_lookup_finished(struct command *command)
{
	u64 step = command->cmd.step;

	if (part_of(command)->lookup != command)
		return;
	if (command->fault.status)
		withdraw_lookups(command->context->model, command->queue->replica, step);
	else
		replica_of(command)->looked = step;
}

enum verdict step_admit_update(struct command *command, struct wait *wait)
{
	struct embeng_steps steps = model_steps(command->context->model);
	struct accepting *accepting = accepting_of(command);
	enum verdict verdict;

	if (accepting->update)
		return wait_for_nothing(wait);
	verdict = pass_on(
		command,
		embeng_steps_admit_update(&steps, command->queue->replica, command->cmd.step),
		wait);
	accepting->update = verdict == VERDICT_READY;
	return verdict;
}

/* A part without gradients gave no rates. */
static void take_rates_back(const struct command *update)
{
	if (!(update->cmd.flags & EMBENG_CMD_DISCARD))
		model_step(update->context->model, update->cmd.step)->rates_given--;
}

void step_commit_update(struct command *command, u16 status)
{
	struct embeng_replica_steps *replica = replica_of(command);

	accepting_of(command)->update = false;
	if (status)
		return;
	if (!embeng_steps_follows(replica->updated, command->cmd.step)) {
		take_rates_back(command);
		return;
	}
	replica->updated = command->cmd.step;
	part_of(command)->update = command;
}

bool step_update_applied(const struct command *command)
{
	return command->state == &applied_mark;
}

enum verdict step_update_ready(struct command *command, struct wait *wait)
{
	struct embeng_steps steps = model_steps(command->context->model);

	if (step_update_applied(command))
		return VERDICT_READY;
	if (part_of(command)->update != command)
		return order_fault(command, replica_of(command)->updated + 1);
	return pass_on(command, embeng_steps_update_ready(&steps, command->cmd.step), wait);
}

static void withdraw_updates(struct model *model, u32 number, u64 first)
{
	struct embeng_replica_steps *replica = &model->replicas[number];

	for (u64 step = first; step <= replica->updated; step++) {
		struct part *part = model_part(model, step, number);

		take_rates_back(part->update);
		part->update = NULL;
	}
	replica->updated = first - 1;
}

void step_update_finished(struct command *command)
{
	if (command->fault.status && !step_update_applied(command) &&
	    part_of(command)->update == command)
		withdraw_updates(command->context->model, command->queue->replica,
				 command->cmd.step);
}

u32 step_discards(struct model *model, u64 number)
{
	u32 count = 0;

	for (u32 r = 0; r < model_replicas(model); r++)
		count += part_is_discarded(model_part(model, number, r));
	return count;
}

void step_applied(struct model *model, u64 number, u64 unique_rows)
{
	struct step *step = model_step(model, number);
	bool counts = step_discards(model, number) < model_replicas(model);

	for (u32 r = 0; r < model_replicas(model); r++) {
		struct part *part = &step->parts[r];

		part->update->state = (void *)&applied_mark;
		part->update->result = unique_rows;
		part->lookup = part->update = NULL;
	}
	step->rates_given = 0;
	model->applied = number;
	model->optimizer_steps += counts;
}

enum verdict step_drain_ready(struct command *command, struct wait *wait)
{
	const struct model *model = command->context->model;
	struct embeng_steps steps = model_steps(model);

	for (u32 r = 0; r < model_replicas(model); r++) {
		if (model->accepting[r].lookup || model->accepting[r].update)
			return wait_for_nothing(wait);
	}
	return pass_on(command, embeng_steps_drain_ready(&steps, command->cmd.step), wait);
}

enum verdict step_after_ready(struct command *command, struct wait *wait)
{
	struct embeng_steps steps = model_steps(command->context->model);

	return pass_on(command, embeng_steps_after_ready(&steps, command->cmd.after), wait);
}
