// SPDX-License-Identifier: MIT
/*
 * Stands in for the engine's model layer, to test the queue layer alone: commands wait, run and
 * fail as the test says, and each call is noted.
 */
#include "fake_model.h"

struct fake_model fake;

static enum verdict wait_for_update(const struct command *command, struct wait *wait)
{
	wait->what = EMBENG_WAIT_UPDATE;
	wait->replica = command->queue->replica;
	wait->step = command->cmd.step - 1;
	return VERDICT_WAIT;
}

enum verdict model_admit(struct command *command, struct wait *wait)
{
	return command->cmd.step > fake.admitted ? wait_for_update(command, wait) : VERDICT_READY;
}

u16 model_accept(struct command *command)
{
	const struct embeng_mem *mem = &command->cmd.desc;
	struct view view;
	u16 status;

	if (fake.accepting)
		fake.accepting(command);
	if (fake.accept_status)
		return fault_set(&command->fault, fake.accept_status, EMBENG_FIELD_IDS, 3, 4, 5, 6);
	if (!mem_given(mem))
		return EMBENG_STATUS_OK;
	status = region_get(command, mem, EMBENG_REGION_DEVICE_READ, 8, EMBENG_FIELD_DESC, 7,
			    &view);
	if (!status)
		region_put(command->context, &view);
	return status;
}

void model_commit(struct command *command, u16 status)
{
	(void)command;
	(void)status;
	fake.commits++;
}

enum verdict model_ready(struct command *command, struct wait *wait)
{
	return command->cmd.step > fake.ready ? wait_for_update(command, wait) : VERDICT_READY;
}

u64 model_touched(const struct command *command)
{
	return fake.small || command->cmd.arg == FAKE_SMALL ? 0 : U64_MAX;
}

void model_run(struct command *command)
{
	fake.log[fake.runs++ % FAKE_LOG] = command->cmd.cookie;
	if (fake.running)
		fake.running(command);
}

void model_finish(struct command *command)
{
	(void)command;
	fake.finishes++;
}

void model_release(struct command *command)
{
	(void)command;
	fake.releases++;
}

void model_destroy(struct context *context)
{
	(void)context;
}
