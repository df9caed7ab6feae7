/* SPDX-License-Identifier: GPL-2.0-only */
/* Finding hangs and recovering from them: hang_detect.c, reset.c and reset_dump.c. */
#ifndef EMBENG_RESET_H
#define EMBENG_RESET_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../uapi/embeng_accel.h"

struct drm_device;
struct drm_file;
struct drm_printer;
struct embeng_cmd;
struct embeng_context;
struct embeng_device;

/**
 * struct embeng_device_watch - state of the device at the watchdog's last look
 * @work: makes the next look
 * @fault: resets the device after it reported a fault
 * @last: time of the last look that counted, in jiffies
 * @heartbeat: value of the heartbeat register
 * @silent: looks since the heartbeat moved
 * @away: looks since the bus failed
 * @since_ns: when the heartbeat was last seen to move, CLOCK_MONOTONIC
 */
struct embeng_device_watch {
	struct delayed_work work;
	struct work_struct fault;
	unsigned long last;
	u32 heartbeat;
	u32 silent;
	u32 away;
	u64 since_ns;
};

/**
 * struct embeng_hang - why a rung of the recovery ladder is taken
 * @cause: enum embeng_accel_cause
 * @still_ns: how long there had been no progress
 * @timeline: timeline of the queue that was judged, so that a later queue of its number is left
 *	alone; 0: whichever queue has the number
 */
struct embeng_hang {
	u32 cause;
	u64 still_ns;
	u64 timeline;
};

/**
 * struct embeng_recovery - resets that are made by a work, for callers that may be killed meanwhile
 * @work: makes the reset
 * @lock: guards the members that follow
 * @asked: number of requests so far
 * @served: the last request that was dealt with
 * @rung: first rung to take, of the newest request
 * @seen: &embeng_accel_resets.sequence when its trouble was seen
 * @hang: why it was made
 * @wait: where callers wait for @served
 */
struct embeng_recovery {
	struct work_struct work;
	spinlock_t lock; /* guards the members that follow */
	u64 asked;
	u64 served;
	enum embeng_accel_rung rung;
	u64 seen;
	struct embeng_hang hang;
	wait_queue_head_t wait;
};

/* reset_context.c */
int embeng_reset_context(struct embeng_context *ctx, const struct embeng_hang *hang);

/* reset_ask.c */
int embeng_reset_ask(struct embeng_device *ed, enum embeng_accel_rung rung, u64 seen,
		     const struct embeng_hang *hang);
void embeng_recovery_init(struct embeng_device *ed);
void embeng_recovery_stop(struct embeng_device *ed);

/* reset.c */
void embeng_reset(struct embeng_device *ed, enum embeng_accel_rung rung, u64 seen,
		  const struct embeng_hang *hang);
void embeng_reset_before(struct embeng_device *ed, const struct embeng_hang *hang);
void embeng_reset_after(struct embeng_device *ed, int booted, enum embeng_accel_rung rung,
			const struct embeng_hang *hang);
void embeng_reset_gone(struct embeng_device *ed, const char *why);
void embeng_reset_look(struct embeng_device *ed);
void embeng_reset_climb(struct embeng_device *ed, enum embeng_accel_rung rung,
			const struct embeng_hang *hang);
int embeng_reset_revive(struct embeng_device *ed);
void embeng_reset_found(struct embeng_device *ed, const struct embeng_hang *hang);
void embeng_reset_give_up(struct embeng_device *ed);
void embeng_reset_lose(struct embeng_device *ed, struct embeng_context *ctx, u32 rung,
		       const struct embeng_hang *hang);
void embeng_reset_tell(struct embeng_device *ed, enum embeng_accel_rung rung,
		       const struct embeng_hang *hang);
int embeng_reset_save(struct embeng_device *ed);
int embeng_reset_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* hang_detect.c */
void embeng_watchdog_init(struct embeng_device *ed);
void embeng_watchdog_start(struct embeng_device *ed);
void embeng_watchdog_stop(struct embeng_device *ed);
void embeng_watchdog_interrupt(struct embeng_device *ed);

/* reset_dump.c */
void embeng_coredump(struct embeng_device *ed, const struct embeng_hang *hang, bool claim);

/* reset_dump_model.c: what a dump has of a program's buffers */
void embeng_dump_model(struct embeng_context *ctx, struct drm_printer *p);
void embeng_dump_descriptor(struct embeng_context *ctx, const struct embeng_cmd *cmd,
			    struct drm_printer *p);
const char *embeng_cause_word(u32 cause);
const char *embeng_rung_word(u32 rung);

#endif
