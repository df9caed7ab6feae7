/* SPDX-License-Identifier: MIT */
/* Phases of LOOKUP; the others are in lookup/batch.h. */
#ifndef EMBENG_ENGINE_LOOKUP_VERB_H
#define EMBENG_ENGINE_LOOKUP_VERB_H

#include "model.h"

enum verdict lookup_admit(struct command *command, struct wait *wait);
void lookup_commit(struct command *command, u16 status);
enum verdict lookup_ready(struct command *command, struct wait *wait);
void lookup_finish(struct command *command);
void lookup_release(struct command *command);

#endif
