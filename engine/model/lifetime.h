/* SPDX-License-Identifier: MIT */
/*
 * Phases of MODEL_LOAD and MODEL_UNLOAD; the others of a load are in load.c, and those of a load that
 * extends a model in extend.c.
 */
#ifndef EMBENG_ENGINE_LIFETIME_H
#define EMBENG_ENGINE_LIFETIME_H

#include "model.h"

enum verdict load_admit(struct command *command, struct wait *wait);
void load_commit(struct command *command, u16 status);
void load_finish(struct command *command);

/* An empty model of the command's context, or NULL with the command's fault. */
struct model *model_new(struct command *command);
void note_model_change(const struct command *command, u32 event);

/* Whether a MODEL_LOAD adds to the loaded model. The model that it makes is then command->state. */
static inline bool load_extends(const struct command *command)
{
	return command->cmd.flags & EMBENG_CMD_EXTENDS;
}

/* extend.c: the phases of a MODEL_LOAD of either kind. */
enum verdict any_load_admit(struct command *command, struct wait *wait);
void any_load_commit(struct command *command, u16 status);
enum verdict any_load_ready(struct command *command, struct wait *wait);
u16 any_load_run(struct command *command);
void any_load_finish(struct command *command);
void any_load_release(struct command *command);

enum verdict unload_admit(struct command *command, struct wait *wait);
enum verdict unload_ready(struct command *command, struct wait *wait);
u16 unload_run(struct command *command);
void unload_finish(struct command *command);

#endif
