/* SPDX-License-Identifier: MIT */
/*
 * Entries of a recording (uapi/embeng_recording.h). All with engine->lock held. Without a recorder
 * they do nothing.
 */
#ifndef EMBENG_ENGINE_RECORD_H
#define EMBENG_ENGINE_RECORD_H

#include "../device/device.h"

void record_power_on(struct engine *e);
void record_power_off(struct engine *e);
/* A boot begins. @image: its copy, or NULL */
void record_boot(struct engine *e, const void *image, u64 length);
void record_booted(struct engine *e, u32 error);
void record_reset(struct engine *e);
void record_admin(struct engine *e, const struct embeng_admin_cmd *cmd, u16 status);
void record_region(struct context *c, u32 index);
/* A command uses memory that it has got: what it reads is recorded, once for each command. */
void record_access(struct command *command, const struct embeng_mem *mem, u32 rights,
		   const void *data);
/* It will leave parts of this memory as they are, so that its contents count as an operand. */
void record_before(struct command *command, const struct embeng_mem *mem, const void *data);
void record_command(struct command *command, u16 status);
void record_run(struct command *command);
/* Its fault and result are final, and the memory that it wrote is still mapped. */
void record_done(struct command *command);

/* Asks the host for a fault, and records one that strikes. */
u64 fault_strikes(struct engine *e, enum port_fault fault, u32 target);

/* Whether the host lets the queue's oldest command run now: see struct engine_recorder. */
bool record_turn(const struct queue *q);

#endif
