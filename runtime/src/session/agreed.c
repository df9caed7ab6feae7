// SPDX-License-Identifier: MIT
/*
 * Keeps what the replicas of a step must agree on: learning rates and multiplier, and whether all of
 * them gave the step up. The gradients of a step, its discards and the schedules of rates ask here.
 *
 * There is an entry for each step in flight, which lives as long as the session and is cleared when
 * a later step comes to it. e->lock is held.
 */
#include <inttypes.h>
#include <string.h>

#include "session.h"

static struct agreed *agreed_of(struct embeng *e, uint64_t step)
{
	struct agreed *agreed = &e->agreed[step % e->depth];

	if (agreed->step != step) {
		agreed->step = step;
		agreed->count = 0;
		agreed->giver = NULL;
		agreed->discards = 0;
	}
	return agreed;
}

/* The device would refuse it too, but only when it fetches the update. */
int step_agree(struct embeng *e, const struct slot *slot)
{
	struct agreed *agreed = agreed_of(e, slot->step);

	if (!agreed->giver) {
		agreed->giver = slot;
		agreed->multiplier = slot->multiplier;
		memcpy(agreed->rates, slot->rates, e->model->rate_count * sizeof(*slot->rates));
		return 0;
	}
	for (size_t r = 0; r < e->model->rate_count; r++)
		if (agreed->rates[r] != slot->rates[r])
			return error_set(-EINVAL, EMBENG_STATUS_RATE,
					 "step %" PRIu64 ": replica %u gives %s %s another "
					 "value than the others; they must be equal to the bit",
					 slot->step, slot->replica, rate_word(e->model, r),
					 e->model->rates[r]);
	if (agreed->multiplier != slot->multiplier)
		return error_set(-EINVAL, EMBENG_STATUS_RATE,
				 "step %" PRIu64 ": replica %u gives another multiplier than the "
				 "others; they must be equal to the bit",
				 slot->step, slot->replica);
	return 0;
}

/* The update was not submitted after all: the next may give other values. */
void step_take_back(struct embeng *e, const struct slot *slot)
{
	struct agreed *agreed = agreed_of(e, slot->step);

	if (agreed->giver == slot)
		agreed->giver = NULL;
}

void step_give_up(struct embeng *e, uint64_t step)
{
	if (++agreed_of(e, step)->discards == e->replica_count)
		e->skipped++;
}

uint64_t step_count_behind(const struct embeng *e, uint64_t step)
{
	return e->updates_before + step - e->skipped;
}

/*
 * It is fixed for all replicas by the first that asks: with pipelining others may give a step
 * before it up later.
 */
uint64_t step_count(struct embeng *e, uint64_t step)
{
	struct agreed *agreed = agreed_of(e, step);

	if (!agreed->count)
		agreed->count = step_count_behind(e, step);
	return agreed->count;
}

void step_set(struct embeng *e, uint64_t after, uint64_t number)
{
	e->updates_before = number - after + e->skipped;
	for (uint32_t i = 0; i < e->depth; i++)
		e->agreed[i].count = 0;
}
