/* SPDX-License-Identifier: MIT */
/*
 * The order of training steps: which LOOKUP or UPDATE may be accepted or run now, and what a
 * command waits for that may not. Each replica has counts of its accepted, looked up and updated
 * steps, and all decisions compare these with the last step that is in the tables.
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

static struct replica *replica_of(struct command *command)
{
	return &command->context->model->replicas[command->queue->replica];
}

static struct part *part_of(const struct command *command)
{
	return model_part(command->context->model, command->cmd.step, command->queue->replica);
}

void step_missing(const struct model *model, struct wait *wait)
{
	u64 next = model->applied + 1;
	u32 replicas = model_replicas(model);

	for (u32 r = 0; r < replicas; r++) {
		if (model->replicas[r].accepted < next) {
			wait_for(wait, EMBENG_WAIT_LOOKUP, r, next);
			return;
		}
	}
	for (u32 r = 0; r < replicas; r++) {
		if (model->replicas[r].updated < next) {
			wait_for(wait, EMBENG_WAIT_UPDATE, r, next);
			return;
		}
	}
	/* Complete: pipelining holds it until the next step was looked up. */
	for (u32 r = 0; r < replicas; r++) {
		if (model->replicas[r].accepted < next + 1) {
			wait_for(wait, EMBENG_WAIT_LOOKUP, r, next + 1);
			return;
		}
	}
	wait_for_nothing(wait);
}

static enum verdict wait_for_missing(const struct model *model, struct wait *wait)
{
	step_missing(model, wait);
	return VERDICT_WAIT;
}

u64 step_complete(const struct model *model, u64 most)
{
	for (u32 r = 0; r < model_replicas(model); r++) {
		if (model->replicas[r].updated < most)
			most = model->replicas[r].updated;
	}
	return most;
}

u64 step_looked(const struct model *model)
{
	u64 least = U64_MAX;

	for (u32 r = 0; r < model_replicas(model); r++) {
		if (model->replicas[r].looked < least)
			least = model->replicas[r].looked;
	}
	return least;
}

enum verdict step_admit_lookup(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;
	struct replica *replica = replica_of(command);
	u64 step = command->cmd.step;

	if (replica->accepting_lookup)
		return wait_for_nothing(wait);
	if (step != replica->accepted + 1)
		return order_fault(command, replica->accepted + 1);
	if (step > model->applied + model->depth)
		return wait_for_missing(model, wait);
	replica->accepting_lookup = true;
	return VERDICT_READY;
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
	struct model *model = command->context->model;
	struct replica *replica = replica_of(command);
	u64 step = command->cmd.step;
	struct part *part = part_of(command);

	replica->accepting_lookup = false;
	/* Withdrawn meanwhile with one before it: it fails when its turn comes. */
	if (status || step != replica->accepted + 1)
		return;
	replica->accepted = step;
	part->lookup = command;
	part->update = NULL;
	step_count_batch(model, part->batch);
}

enum verdict step_lookup_ready(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;
	struct replica *replica = replica_of(command);
	u64 step = command->cmd.step, lag = model->pipelining ? 2 : 1;

	if (part_of(command)->lookup != command)
		return order_fault(command, replica->accepted + 1);
	if (replica->looked + 1 != step)
		return wait_for_nothing(wait);
	if (model->applied + lag < step)
		return wait_for_missing(model, wait);
	return VERDICT_READY;
}

static void withdraw_lookups(struct model *model, u32 number, u64 first)
{
	struct replica *replica = &model->replicas[number];

	for (u64 step = first; step <= replica->accepted; step++)
		model_part(model, step, number)->lookup = NULL;
	replica->accepted = first - 1;
}

void step_lookup_finished(struct command *command)
{
	struct replica *replica = replica_of(command);
	u64 step = command->cmd.step;

	if (part_of(command)->lookup != command)
		return;
	if (command->fault.status)
		withdraw_lookups(command->context->model, command->queue->replica, step);
	else
		replica->looked = step;
}

enum verdict step_admit_update(struct command *command, struct wait *wait)
{
	struct replica *replica = replica_of(command);
	u64 step = command->cmd.step;

	if (replica->accepting_update)
		return wait_for_nothing(wait);
	if (step != replica->updated + 1 || step > replica->looked)
		return order_fault(command, replica->updated + 1);
	replica->accepting_update = true;
	return VERDICT_READY;
}

void step_commit_update(struct command *command, u16 status)
{
	struct replica *replica = replica_of(command);

	replica->accepting_update = false;
	if (status)
		return;
	if (command->cmd.step != replica->updated + 1) {
		model_step(command->context->model, command->cmd.step)->rates_given--;
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
	struct model *model = command->context->model;
	u64 step = command->cmd.step;

	if (step_update_applied(command))
		return VERDICT_READY;
	if (part_of(command)->update != command)
		return order_fault(command, replica_of(command)->updated + 1);
	if (model->applied + 1 < step || step_complete(model, step) < step)
		return wait_for_missing(model, wait);
	if (model->pipelining && step_looked(model) <= step)
		return wait_for_missing(model, wait);
	return VERDICT_READY;
}

static void withdraw_updates(struct model *model, u32 number, u64 first)
{
	struct replica *replica = &model->replicas[number];

	for (u64 step = first; step <= replica->updated; step++) {
		model_part(model, step, number)->update = NULL;
		model_step(model, step)->rates_given--;
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

void step_applied(struct model *model, u64 number, u64 unique_rows)
{
	struct step *step = model_step(model, number);

	for (u32 r = 0; r < model_replicas(model); r++) {
		struct part *part = &step->parts[r];

		part->update->state = (void *)&applied_mark;
		part->update->result = unique_rows;
		part->lookup = part->update = NULL;
	}
	step->rates_given = 0;
	model->applied = number;
	model->optimizer_steps++;
}

/*
 * Lookups of the step after the last complete one read before the drain, or
 * not at all: with pipelining, all replicas must have read the same tables.
 */
enum verdict step_drain_ready(struct command *command, struct wait *wait)
{
	const struct model *model = command->context->model;
	u64 next = step_complete(model, command->cmd.step) + 1;
	u32 lacking = U32_MAX, replicas = model_replicas(model);
	bool begun = false;

	for (u32 r = 0; r < replicas; r++) {
		const struct replica *replica = &model->replicas[r];

		if (replica->accepting_lookup || replica->accepting_update)
			return wait_for_nothing(wait);
		if (replica->accepted >= next)
			begun = true;
		else if (lacking == U32_MAX)
			lacking = r;
	}
	if (begun && model->pipelining && lacking != U32_MAX)
		return wait_for(wait, EMBENG_WAIT_LOOKUP, lacking, next);
	for (u32 r = 0; r < replicas; r++) {
		const struct replica *replica = &model->replicas[r];

		if (replica->accepted >= next && replica->looked < next)
			return wait_for_missing(model, wait);
	}
	return VERDICT_READY;
}

enum verdict step_after_ready(struct command *command, struct wait *wait)
{
	const struct model *model = command->context->model;
	u64 after = command->cmd.after;

	if (model->applied < after)
		return wait_for_missing(model, wait);
	if (model->applied == after)
		return VERDICT_READY;
	return refuse_command(command, EMBENG_STATUS_STEP_PASSED, EMBENG_FIELD_AFTER, after,
			      model->applied);
}
