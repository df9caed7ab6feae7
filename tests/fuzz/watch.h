/* SPDX-License-Identifier: MIT */
/*
 * A device whose driver and program are both played by the input. Every completion is checked:
 * each command has one, of a known status, and nothing stands still without a report.
 */
#ifndef EMBENG_FUZZ_WATCH_H
#define EMBENG_FUZZ_WATCH_H

#include "../unit/support/rig.h"
#include "fuzz.h"

#define WATCH_COMMANDS 256u
#define WATCH_NO_STATUS 0xffffu

enum watch_state { WATCH_NEVER, WATCH_SUBMITTED, WATCH_ACCEPTED, WATCH_DONE };

/* A queue whose ring the program uses correctly. */
struct watch {
	struct rig_queue *queue;
	u16 opcodes[WATCH_COMMANDS];
	u8 states[WATCH_COMMANDS]; /* state of each command, by cookie */
	u16 last;		   /* status of the last DONE */
	u32 submitted, done;
};

struct rig *watch_power_on(void);

/* Boots a device that was reset. Return: whether it runs. */
bool watch_boot(struct rig *rig);

void watch_queue(struct watch *w, struct rig *rig, u32 context, u32 kind, u32 replica);

/* Return: false when there is no room in the ring; @cmd gets a cookie. */
bool watch_submit(struct watch *w, struct embeng_cmd *cmd);

/* Reads what has completed. Return: completions. */
u32 watch_reap(struct watch *w);

/* Runs the device until it stands still, and checks that reports explain commands not done. */
void watch_settle(struct rig *rig, struct watch *queues, u32 count);

/* Checks a queue that has ended or was lost: all commands that the device took have completed. */
void watch_ended(const struct watch *w);

/* Submits a command, settles, and returns the status. */
u16 watch_call(struct rig *rig, struct watch *w, struct embeng_cmd *cmd);

/* Checks that a new context computes correctly to the bit. */
void watch_known_good(struct rig *rig, u32 context);

#endif
