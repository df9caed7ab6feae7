/* SPDX-License-Identifier: MIT */
/* Phases of MODEL_LOAD and MODEL_UNLOAD; the others of a load are in load.c. */
#ifndef EMBENG_ENGINE_LIFETIME_H
#define EMBENG_ENGINE_LIFETIME_H

#include "model.h"

enum verdict load_admit(struct command *command, struct wait *wait);
void load_commit(struct command *command, u16 status);
void load_finish(struct command *command);

enum verdict unload_admit(struct command *command, struct wait *wait);
enum verdict unload_ready(struct command *command, struct wait *wait);
u16 unload_run(struct command *command);
void unload_finish(struct command *command);

#endif
