// SPDX-License-Identifier: MIT
/*
 * The number of steps that the optimizers have counted: read, and set for a program that brings tables
 * from elsewhere. Adam's correction and schedules of learning rates go on from it.
 *
 * The number goes through the session's staging memory, which rows_behind_gate() guards; its bodies
 * take e->lock for one command.
 */
#include <inttypes.h>
#include <string.h>

#include "rows.h"

static int move_step(struct embeng *e, uint16_t opcode, uint64_t after, uint64_t *step)
{
	struct embeng_cmd cmd = {.opcode = opcode, .after = after};
	int ret = region_grow(e, &e->staging, sizeof(*step));

	if (ret)
		return ret;
	memcpy(e->staging.data, step, sizeof(*step));
	cmd.desc = region_part(&e->staging, 0, sizeof(*step));
	pthread_mutex_lock(&e->lock);
	ret = transfer(e, &cmd, "optimizer steps", NULL);
	if (!ret && opcode == EMBENG_OP_STATE_WRITE)
		step_set(e, after, *step);
	pthread_mutex_unlock(&e->lock);
	memcpy(step, e->staging.data, sizeof(*step));
	return ret;
}

static int fetch_optimizer_step(struct embeng *e, void *arg, uint64_t after)
{
	return move_step(e, EMBENG_OP_STATE_READ, after, arg);
}

static int store_optimizer_step(struct embeng *e, void *arg, uint64_t after)
{
	return move_step(e, EMBENG_OP_STATE_WRITE, after, arg);
}

/* The count of the first table alone: it is written as it was read, and changes nothing. */
static int write_step_back(struct embeng *e, void *arg, uint64_t after)
{
	const uint16_t opcodes[] = {EMBENG_OP_STATE_READ, EMBENG_OP_STATE_WRITE};
	int ret = region_grow(e, &e->staging, sizeof(uint64_t));

	(void)arg;
	for (size_t i = 0; !ret && i < 2; i++) {
		struct embeng_cmd cmd = {.opcode = opcodes[i], .after = after, .arg = 1};

		cmd.desc = region_part(&e->staging, 0, sizeof(uint64_t));
		pthread_mutex_lock(&e->lock);
		ret = transfer(e, &cmd, "optimizer steps", NULL);
		pthread_mutex_unlock(&e->lock);
	}
	return ret;
}

int steps_see_updates(struct embeng *e)
{
	if (!e->model->engine.pipelining)
		return 0;
	return rows_behind_gate(e, "optimizer steps", write_step_back, NULL);
}

int embeng_step(struct embeng *e, uint64_t *step)
{
	uint64_t read = 0;
	int ret = session_check(e, "embeng_step");

	if (!ret && !step)
		ret = fail(-EINVAL, "embeng_step: no place for the number given");
	if (!ret && e->calls)
		return e->calls->step(e, step);
	ret = ret ? ret : rows_behind_gate(e, "embeng_step", fetch_optimizer_step, &read);
	if (!ret)
		*step = read;
	return ret;
}

int embeng_set_step(struct embeng *e, uint64_t step)
{
	int ret = session_check(e, "embeng_set_step");

	if (ret)
		return ret;
	if (step > EMBENG_STEP_COUNT_MAX)
		ret = error_set(-ERANGE, EMBENG_STATUS_COUNT,
				"embeng_set_step: step %" PRIu64 ", the largest is %llu", step,
				EMBENG_STEP_COUNT_MAX);
	if (e->calls)
		return e->calls->set_step(e, step, ret);
	return ret ? ret : rows_behind_gate(e, "embeng_set_step", store_optimizer_step, &step);
}
