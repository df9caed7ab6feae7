/* SPDX-License-Identifier: MIT */
/*
 * The step machine: it keeps the counts of steps, asks the rules of uapi/embeng_steps.h with them,
 * and knows which command gave which part of a step. All of it with engine->lock held.
 *
 * A replica's LOOKUPs and UPDATEs are accepted in the order of their steps, and
 * LOOKUPs read in that order. A command that fails after it was accepted is withdrawn
 * with all that the replica gave after it, so that it can be given again.
 */
#ifndef EMBENG_ENGINE_STEP_H
#define EMBENG_ENGINE_STEP_H

#include "../model/model.h"

enum verdict step_admit_lookup(struct command *command, struct wait *wait);
void step_commit_lookup(struct command *command, u16 status);
enum verdict step_lookup_ready(struct command *command, struct wait *wait);
void step_lookup_finished(struct command *command);

enum verdict step_admit_update(struct command *command, struct wait *wait);
void step_commit_update(struct command *command, u16 status);
enum verdict step_update_ready(struct command *command, struct wait *wait);
void step_update_finished(struct command *command);

/* Ids that the tables' policies changed count as soon as they are accepted. */
void step_count_batch(struct model *model, const struct batch *batch);

/* Whether the step of an UPDATE is in the tables already. */
bool step_update_applied(const struct command *command);

/* How many replicas have said that they give step @number no gradients. */
u32 step_discards(struct model *model, u64 number);

/* The tables are as after step @number from here on. */
void step_applied(struct model *model, u64 number, u64 unique_rows);

enum verdict step_drain_ready(struct command *command, struct wait *wait);

/* Runs on the tables exactly as they are after @command's embeng_cmd.after. */
enum verdict step_after_ready(struct command *command, struct wait *wait);

/* Waits for the command that must come before the next step can be applied. Return: WAIT. */
enum verdict step_missing(const struct model *model, struct wait *wait);

#endif
