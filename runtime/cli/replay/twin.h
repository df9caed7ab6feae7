/* SPDX-License-Identifier: MIT */
/*
 * A device for a recording: the engine in this process, with as many contexts, regions and queues as
 * the recording asks for. It runs a command only when it is told to.
 */
#ifndef CLI_REPLAY_TWIN_H
#define CLI_REPLAY_TWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng_recording.h"

#define TWIN_PROBLEM 256

struct twin;

/**
 * struct twin_setup - properties of the device
 * @cores: engine cores; 0: as many as recorded
 * @variant: kernel variant; NULL: the best of this processor
 * @seen: takes each entry that the device makes while it works: its type, its structure and what
 *	follows that. The engine's lock is held, so it only takes note
 * @arg: its first argument
 */
struct twin_setup {
	uint32_t cores;
	const char *variant;
	void (*seen)(void *arg, uint16_t type, const void *fixed, const void *bytes);
	void *arg;
};

/**
 * enum twin_result - the end of a call
 * @TWIN_IMPOSSIBLE: this machine cannot do it, or the recording contradicts itself; a sentence is
 *	in twin_problem()
 * @TWIN_WAITS: nothing moved for so long
 */
enum twin_result { TWIN_OK, TWIN_IMPOSSIBLE, TWIN_WAITS };

struct twin *twin_new(const struct twin_setup *setup);
void twin_free(struct twin *m);
const char *twin_problem(const struct twin *m);
const char *twin_variant(const struct twin *m); /* "" while it is off */
uint32_t twin_cores(const struct twin *m);

enum twin_result twin_power_on(struct twin *m, const struct embeng_recording_power_on *on);
void twin_power_off(struct twin *m);
enum twin_result twin_boot(struct twin *m, const struct embeng_recording_boot *boot,
			   const void *image);
enum twin_result twin_reset(struct twin *m);
/*
 * @first: index that a new queue begins at
 * @status: where @seen puts the status of an admin command
 */
enum twin_result twin_admin(struct twin *m, const struct embeng_admin_cmd *command, uint32_t first,
			    const uint32_t *status);
enum twin_result twin_region(struct twin *m, const struct embeng_recording_region *region);
enum twin_result twin_memory(struct twin *m, const struct embeng_recording_memory *memory,
			     const void *bytes);
/* Submits a command, and returns when the device has accepted or refused it. */
enum twin_result twin_submit(struct twin *m, const struct embeng_recording_command *command);
/* Lets this command run until *@done. */
enum twin_result twin_run(struct twin *m, uint32_t queue, uint32_t index, const bool *done,
			  uint32_t patience_ms);
/* Has a fault strike at the next occasion. */
enum twin_result twin_arm(struct twin *m, const struct embeng_recording_fault *fault);

#endif
