// SPDX-License-Identifier: MIT
/*
 * Takes back a step that some host has refused: it is free again, and every thread of the program that fed it
 * is told once. A thread that waits in a call returns the refusal there. The others are told by their
 * replica's next call, since their batch looked accepted.
 *
 * e->lock is held.
 */
#include <inttypes.h>
#include <stdio.h>

#include "steps.h"

static bool is_open_step(const struct slot *slot, uint64_t step)
{
	return slot->state != SLOT_FREE && slot->step >= step;
}

/* Whether a thread is in a call that the refusal ends. */
static bool is_told(const struct hosts *h, uint64_t step, pthread_t feeder)
{
	const struct embeng *e = h->e;

	for (uint32_t i = 0; i < e->local_replicas; i++) {
		const struct replica *r = &e->replicas[e->first_replica + i];

		for (uint32_t k = 0; k < e->slot_count; k++) {
			const struct slot *slot = &r->training[k];

			if (is_open_step(slot, step) && slot->cargo->inside &&
			    pthread_equal(slot->cargo->feeder, feeder))
				return true;
		}
	}
	return false;
}

/* Return: whether a call on the replica is under way that returns the refusal. */
static bool withdraw_slots(struct hosts *h, struct replica *r, uint64_t step, int code)
{
	bool inside = false;

	for (uint32_t k = 0; k < h->e->slot_count; k++) {
		struct slot *slot = &r->training[k];

		if (!is_open_step(slot, step))
			continue;
		if (slot->state == SLOT_UPDATE)
			step_take_back(h->e, slot);
		slot->cargo->outcome = code;
		inside |= slot->cargo->inside;
		if (!slot->cargo->inside)
			slot->state = SLOT_FREE;
	}
	return inside;
}

void steps_withdraw(struct hosts *h, uint64_t step, int code)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = h->e;

	embeng_last_error(&error);
	h->refused = NULL;
	h->refusal = code;
	snprintf(h->refusal_text, sizeof(h->refusal_text), "%s", error.text);
	for (uint32_t i = 0; i < e->local_replicas; i++) {
		struct notice *n = &h->notices[i];

		n->pending |= n->fed && !is_told(h, step, n->feeder);
	}
	for (uint32_t i = 0; i < e->local_replicas; i++) {
		const uint32_t r = e->first_replica + i;

		if (withdraw_slots(h, &e->replicas[r], step, code))
			h->notices[i].pending = false;
		if (e->steps[r].accepted >= step)
			e->steps[r].accepted = e->steps[r].looked = step - 1;
		if (e->steps[r].updated >= step)
			e->steps[r].updated = step - 1;
	}
}

int steps_notice(struct hosts *h, uint32_t replica)
{
	struct notice *n = &h->notices[replica - h->e->first_replica];

	if (!n->pending)
		return 0;
	n->pending = false;
	return fail(h->refusal, "%s", h->refusal_text);
}
