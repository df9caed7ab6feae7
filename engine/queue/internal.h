/* SPDX-License-Identifier: MIT */
/*
 * Between the parts of the queue layer. All of it with engine->lock held, but where a
 * comment says otherwise.
 */
#ifndef EMBENG_ENGINE_INTERNAL_H
#define EMBENG_ENGINE_INTERNAL_H

#include <linux/errno.h>

#include "../../uapi/embeng_steps.h"
#include "../device/device.h"
#include "../memory/record.h"

/* An admin command that waits for accesses in flight. */
struct pending {
	struct pending *next;
	struct embeng_admin_cmd cmd;
};

/* reset.c */
void registers_reset(struct engine *e);

/* requests.c */
int requests_step(struct engine *e); /* boot and control requests; 1 when something moved */

/* heartbeat.c */
void heartbeat(struct engine *e);
void heartbeat_now(struct engine *e); /* reads the clock first */

/* boot.c */
void boot_load(struct engine *e);
void boot_stop_all(struct engine *e); /* commands of all contexts stop at their next piece */
void boot_reset_begin(struct engine *e);
int boot_reset_step(struct engine *e);
void boot_power_off(struct engine *e); /* nothing runs; everything is freed */

/* context.c */
u16 context_create(struct engine *e, const struct embeng_admin_cmd *cmd, struct fault *fault);
void context_kill(struct context *c);
bool context_reap(struct context *c); /* true: gone */

/* queue.c */
/* 0, NO_MEMORY, or KEY when the ring is not memory that the device was given. */
u16 queue_new(struct engine *e, const struct embeng_admin_cmd *cmd, struct queue **out);
void queue_free(struct queue *q);
u16 queue_create(struct engine *e, const struct embeng_admin_cmd *cmd, struct fault *fault);
/* Commands that were accepted, or were there when it was last looked at. */
static inline bool queue_has_work(const struct queue *q)
{
	return q->oldest || q->tail_seen != q->sq_head;
}
struct command *queue_take(struct queue *q);
void queue_drop(struct queue *q, struct command *command); /* from anywhere in the list */
/* Core 0 has worked for a queue so long. */
void busy_with(struct queue *q, u64 passed_ns);
/* Both count for the queue, in its ring's header: a command that has completed, and a wait that began. */
void queue_count_command(const struct command *command);
void queue_count_wait(struct queue *q);

/* queue_end.c */
void queue_kill(struct queue *q, bool lost);
bool queue_reap(struct queue *q); /* true: gone */
/* Ends its oldest command as aborted, or as hung if that is why the queue ends. */
void queue_give_up(struct queue *q, struct command *command);

/* ring.c */
struct embeng_ring_header *queue_header(struct queue *q);
enum ring_look { RING_EMPTY, RING_COMMAND, RING_STOPPED };
enum ring_look ring_look(struct queue *q);
void ring_copy(struct queue *q, void *command);
void ring_consume(struct queue *q);
u32 ring_space(struct queue *q);
/* @seen_ns: not to be seen before */
void ring_post(struct queue *q, const struct embeng_cqe *cqe, u64 seen_ns);
void ring_publish_done(struct queue *q);       /* unless its completion is not published yet */
void ring_flush(struct queue *q);	       /* publishes what was to be seen later */
void ring_die(struct queue *q);		       /* tells the program, after which nothing comes */
void ring_interrupt_if_armed(struct queue *q); /* for any index that it is armed for */

/* command.c */
u16 command_check(const struct queue *q, const struct embeng_cmd *cmd, struct fault *fault);
bool command_is_ours(const struct command *command); /* NOP and FENCE */
/* The phases of struct verb, of our own verbs and of the model layer's. */
enum verdict command_admit(struct command *command, struct wait *wait);
u16 command_accept(struct command *command);		 /* no lock held */
u16 command_commit(struct command *command, u16 status); /* 0, or the status it fails with */
enum verdict command_ready(struct command *command, struct wait *wait);
void command_release(struct command *command);
u64 command_touched(const struct command *command); /* see struct verb */

/* fetch.c */
/* Lets go of the lock inside; adds the time it was without it to *away_ns. */
int accept_step(struct engine *e, u64 *away_ns);
/* Only of queues that come before the rest of @command. */
int accept_between(struct engine *e, const struct command *command);

/* complete.c */
/* @flags: the completion's; without EMBENG_CQE_DONE another one follows */
void command_post(struct command *command, u16 flags);
/* Ends a command that the model layer was never asked about, or has refused. */
void command_retire(struct command *command);
void command_complete(struct command *command); /* ends any other */

/* timing.c */
/*
 * Charges a command by the host's model of the device, and sets the @timestamp of this completion.
 * Return: the time from which the program may see the completion, 0: at once.
 */
u64 timing_visible_ns(const struct command *command, u16 flags, u64 *timestamp);
void timing_reset(struct engine *e); /* the counters begin anew, and nothing is running */

/* share.c: shares of contexts */
/* Where a context stands: the least is next. */
u64 share_tag(const struct context *c);
/* A command of the context is taken up now, to be accepted or to run. */
void share_begin(struct command *command, u64 now);
/* It runs: nobody stands further back from here on. */
void share_advance(struct command *command);
/* It was worked for until @now. Return: how long, without what was lent to others. */
u64 share_end(struct command *command, u64 now);
/* Whether a queue of another context comes before the rest of a command that is being worked on. */
bool share_is_due(const struct queue *q, const struct command *command, u64 now);
/* Whether a queue comes before another one. */
bool share_precedes(const struct queue *q, const struct queue *other);
/* Whether a context is so far ahead of one that also has something to fetch that it is to wait. */
bool share_waits(const struct context *c, u64 least);
/* The least tag of those contexts; U64_MAX: none has. */
u64 share_least(const struct engine *e);

/* schedule.c */
/* Others, between the pieces of a command. */
void serve_between(struct engine *e, struct command *command);
/* As accept_step(). */
int execute_step(struct engine *e, enum engine_run_mode mode, u64 *away_ns);

/* report.c */
void report_all(struct engine *e, bool unfinished);
/* Some queue has a command that may be waited for, or was last said to wait. */
bool report_wanted(const struct engine *e);

/* admin.c */
int admin_step(struct engine *e);

/* alarm.c */
void admin_fault(struct engine *e); /* the device asks for a reset */

#endif
