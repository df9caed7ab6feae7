/* SPDX-License-Identifier: MIT */
/* Completions that the device here has posted and that the recording has not come to yet. */
#ifndef CLI_REPLAY_OUTCOMES_H
#define CLI_REPLAY_OUTCOMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng_recording.h"

struct outcome {
	struct embeng_recording_done done;
	struct embeng_recording_output *outputs; /* [done.outputs] */
};

/**
 * struct outcomes - the completions
 * @lost: there was no memory for one of them
 */
struct outcomes {
	struct outcome *list;
	size_t count, room;
	bool lost;
};

void outcome_add(struct outcomes *o, const struct embeng_recording_done *done,
		 const struct embeng_recording_output *outputs);

/* The completion of this command, or NULL. */
struct outcome *outcome_find(struct outcomes *o, uint32_t queue, uint32_t index);
void outcome_drop(struct outcomes *o, struct outcome *outcome);
void outcomes_free(struct outcomes *o);

#endif
