/* SPDX-License-Identifier: MIT */
/*
 * The phases of a LOOKUP in which training and inference differ. A training lookup belongs to a
 * step, and the step machine decides about it. An inference has a batch of its own, which it takes
 * from the model's spare ones, and runs on the tables as they are after a step.
 *
 * All functions are called with engine->lock held. A spare batch belongs to the model, and while
 * it is command->state to its command.
 */
#include "../lookup/batch.h"
#include "../step/step.h"
#include "lookup_verb.h"

static struct batch *take_spare(struct model *model)
{
	struct batch *batch = model->spare;

	if (batch)
		model->spare = batch->next;
	else
		batch = batch_new(model);
	return batch;
}

enum verdict lookup_admit(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;

	if (lookup_trains(command)) {
		if (!model->trains)
			return refuse_command(command, EMBENG_STATUS_TRAINING, EMBENG_FIELD_TABLE,
					      0, 0);
		return step_admit_lookup(command, wait);
	}
	command->state = take_spare(model);
	if (!command->state)
		return refuse_command(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_OPCODE, 0, 0);
	return VERDICT_READY;
}

void lookup_commit(struct command *command, u16 status)
{
	if (lookup_trains(command))
		step_commit_lookup(command, status);
	else if (!status)
		step_count_batch(command->context->model, command->state);
}

enum verdict lookup_ready(struct command *command, struct wait *wait)
{
	return lookup_trains(command) ? step_lookup_ready(command, wait) :
					step_after_ready(command, wait);
}

void lookup_finish(struct command *command)
{
	if (lookup_trains(command))
		step_lookup_finished(command);
}

void lookup_release(struct command *command)
{
	struct model *model = command->context->model;
	struct batch *batch = command->state;

	if (!batch)
		return;
	batch->next = model->spare;
	model->spare = batch;
}
