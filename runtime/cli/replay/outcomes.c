// SPDX-License-Identifier: MIT
/*
 * Keeps the completions of the device here until the recording comes to them. A command that is
 * refused or aborted completes as soon as it is submitted or its queue ends, and so before its place
 * in the recording.
 *
 * There are never more of them than commands in flight, so a list is searched. The engine adds with
 * its lock held; the thread that plays looks between its calls.
 */
#include "outcomes.h"

#include <stdlib.h>
#include <string.h>

static bool grow_outcomes(struct outcomes *o)
{
	size_t room = o->room ? 2 * o->room : 64;
	struct outcome *larger = realloc(o->list, room * sizeof(*larger));

	if (!larger)
		return false;
	o->list = larger;
	o->room = room;
	return true;
}

void outcome_add(struct outcomes *o, const struct embeng_recording_done *done,
		 const struct embeng_recording_output *outputs)
{
	struct outcome outcome = {.done = *done};

	if (done->outputs) {
		outcome.outputs = malloc(done->outputs * sizeof(*outputs));
		if (!outcome.outputs) {
			o->lost = true;
			return;
		}
		memcpy(outcome.outputs, outputs, done->outputs * sizeof(*outputs));
	}
	if (o->count == o->room && !grow_outcomes(o)) {
		free(outcome.outputs);
		o->lost = true;
		return;
	}
	o->list[o->count++] = outcome;
}

struct outcome *outcome_find(struct outcomes *o, uint32_t queue, uint32_t index)
{
	for (size_t i = 0; i < o->count; i++) {
		if (o->list[i].done.queue == queue && o->list[i].done.index == index)
			return &o->list[i];
	}
	return NULL;
}

void outcome_drop(struct outcomes *o, struct outcome *outcome)
{
	size_t behind = (size_t)(o->list + o->count - outcome) - 1;

	free(outcome->outputs);
	memmove(outcome, outcome + 1, behind * sizeof(*outcome));
	o->count--;
}

void outcomes_free(struct outcomes *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->list[i].outputs);
	free(o->list);
}
