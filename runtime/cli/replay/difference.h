/* SPDX-License-Identifier: MIT */
/* Compares what a device here did with what was recorded, and notes the first thing that differs. */
#ifndef CLI_REPLAY_DIFFERENCE_H
#define CLI_REPLAY_DIFFERENCE_H

#include "outcomes.h"
#include "play.h"

/* Notes a difference at an entry. Return: false, since it ends the replay. */
bool difference_note(struct play_result *result, const struct recording_entry *entry,
		     const char *what, const char *recorded, const char *here, ...)
	__attribute__((format(printf, 5, 6)));

/**
 * completion_compare() - compare the completion of a command with the recorded one
 * @entries: the entries of the recording
 * @at: the DONE among them
 * @here: the completion that came here
 * @other_cores: the device here has not as many cores as the recorded one
 *
 * Return: whether they are the same; otherwise the difference is noted.
 */
bool completion_compare(struct play_result *result, const struct recording_entry *entries,
			size_t at, const struct outcome *here, bool other_cores);

#endif
