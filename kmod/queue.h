/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues: rings between a program and the device, and the driver's account of their contents. */
#ifndef EMBENG_QUEUE_H
#define EMBENG_QUEUE_H

#include <linux/hrtimer.h>
#include <linux/kref.h>

#include "driver.h"
#include "fence.h"

/**
 * struct embeng_queue_watch - state of a queue at the watchdog's last look
 * @sq_head: sq_head in the ring's header
 * @cq_tail: cq_tail in the ring's header
 * @done: done in the ring's header
 * @epoch: epoch of the report
 * @progress: progress in the ring's header
 * @heartbeat: heartbeat in the ring's header
 * @stood: looks without movement while the queue had work
 * @unattended: looks since the device last scanned the queue
 * @since_ns: when the queue was last seen to move, CLOCK_MONOTONIC
 */
struct embeng_queue_watch {
	u32 sq_head;
	u32 cq_tail;
	u32 done;
	u32 epoch;
	u32 progress;
	u32 heartbeat;
	u32 stood;
	u32 unattended;
	u64 since_ns;
};

/**
 * struct embeng_queue - rings between a program and the device
 * @ref: held by the context and by calls that use the queue
 * @context: context of the queue, which outlives it
 * @vector: interrupt vector
 * @vector_link: entry in &embeng_vector.queues
 * @number: number of the queue on the device
 * @kind: enum embeng_queue_kind
 * @priority: 0 to 3
 * @replica: replica of the model that the queue serves
 * @mapped: the program writes rings and doorbell itself
 * @coalesce: completions that make an event
 * @coalesce_us: time in microseconds after which fewer completions make an event
 * @layout: offsets of the parts of the ring memory
 * @pages: ring memory, contiguous; NULL once the device is unplugged
 * @ring: address of @pages for the driver
 * @dma: address of @pages for the device
 * @grave: copy of the ring as it was when the queue was lost
 * @doorbell: the queue's page in BAR 2
 * @lock: admits one submitter; guards @destroyed, and together with vector->lock @sq_tail to @seqno
 * @sq_tail: in a validated queue the end of all that was submitted, free-running
 * @given: the tail that the driver last rang the doorbell with, free-running; under vector->lock
 * @cq_head: the head that the doorbell was last given: completions that the program has read
 * @walked: completions that the driver has accounted for, free-running
 * @owed: completions that the device may still post for the commands in the ring
 * @in_flight: commands that have not completed
 * @timeline: fence context of the queue, never used for another
 * @seqno: number of the last fence on @timeline
 * @jobs: &embeng_job in order, without those that have ended; under vector->lock
 * @judged_epoch: epoch of the last report that the watch was started for; under vector->lock
 * @stopped: the doorbell must not be rung; under vector->lock
 * @noted_tail: completion tail when an event was last counted; under vector->lock
 * @noted_epoch: epoch of the report at that time; under vector->lock
 * @answered_epoch: epoch of the report that a WAIT on this queue last answered with
 * @armed: last value written to &embeng_doorbell.armed; under vector->lock
 * @arm: index that the interrupt is armed for, valid while @pending_arm; under vector->lock
 * @pending_arm: there was no interrupt since the queue was armed; under vector->lock
 * @timer: ends a wait for @coalesce completions
 * @watch: state of the watchdog
 * @sq_begin: first command since the queue was started or restarted
 * @cq_begin: first completion since then
 * @last_tail: submission tail at the last look at the doorbell, which a reset clears
 * @last_head: completion head at that look
 * @at_fault: the queue hangs at the command @fault_index
 * @fault_lost: that command is complete, and its completion was lost
 * @fault_index: index of the command at fault, free-running
 * @fault_ns: how long that command had made no progress
 * @answered: a bit for each entry of the submission ring, for hang_settle.c
 * @numbered: the queue has its number in &embeng_device.queues
 * @destroyed: the program was not given the queue yet, or has destroyed it; calls that use it fail,
 *	and mappings do not show it. Set under @lock and map_lock
 */
struct embeng_queue {
	struct kref ref;
	struct embeng_context *context;
	struct embeng_vector *vector;
	struct list_head vector_link;
	u32 number;
	u32 kind;
	u32 priority;
	u32 replica;
	bool mapped;
	u32 coalesce;
	u32 coalesce_us;
	struct embeng_queue_layout layout;
	struct page *pages;
	void *ring;
	dma_addr_t dma;
	void *grave;
	void __iomem *doorbell;
	struct mutex lock; /* one submitter at a time */
	u32 sq_tail;
	u32 given;
	u32 cq_head;
	u32 walked;
	u32 owed;
	u32 in_flight;
	u64 timeline;
	u64 seqno;
	struct list_head jobs;
	u32 judged_epoch;
	bool stopped;
	u32 noted_tail;
	u32 noted_epoch;
	u32 answered_epoch;
	u32 armed;
	u32 arm;
	bool pending_arm;
	struct hrtimer timer;
	struct embeng_queue_watch watch;
	u32 sq_begin;
	u32 cq_begin;
	u32 last_tail;
	u32 last_head;
	bool at_fault;
	bool fault_lost;
	u32 fault_index;
	u64 fault_ns;
	unsigned long *answered;
	bool numbered;
	bool destroyed;
};

/**
 * struct embeng_batch - commands on their way into a queue
 * @commands: the commands, checked
 * @count: number of commands
 * @owed: completions that the device may post for @commands
 * @fenced: the submit has an out-fence
 * @model: options of the model that a MODEL_LOAD loads, or NULL
 * @job: the job of the batch
 * @index: index of the first command, free-running
 * @out: reference to the out-fence, once the commands are taken
 */
struct embeng_batch {
	struct embeng_cmd *commands;
	u32 count;
	u32 owed;
	bool fenced;
	const struct embeng_record_engine *model;
	struct embeng_job *job;
	u32 index;
	struct dma_fence *out;
};

static inline struct embeng_ring_header *embeng_queue_header(const struct embeng_queue *q)
{
	return q->ring + q->layout.header;
}

static inline struct embeng_cmd *embeng_queue_slot(const struct embeng_queue *q, u32 index)
{
	struct embeng_cmd *ring = q->ring + q->layout.sq;

	return &ring[index & (q->layout.sq_entries - 1)];
}

static inline u32 embeng_doorbell_tail_of(const struct embeng_queue *q)
{
	return readl(q->doorbell + offsetof(struct embeng_doorbell, sq_tail));
}

static inline u32 embeng_doorbell_head_of(const struct embeng_queue *q)
{
	return readl(q->doorbell + offsetof(struct embeng_doorbell, cq_head));
}

/* queue.c */
struct embeng_queue *embeng_queue_get(struct embeng_context *ctx, u32 number);
void embeng_queue_put(struct embeng_queue *q);
void embeng_queue_bury(struct embeng_queue *q, int error);
void embeng_queue_release_all(struct embeng_context *ctx, bool closing);
bool embeng_queue_may_map(const struct embeng_device *ed);
int embeng_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int embeng_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int embeng_queue_end(struct embeng_queue *q);
int embeng_queue_go_on(struct embeng_queue *q, u32 sq_index, u32 cq_index);

/* queue_check.c */
int embeng_queue_check(const struct embeng_device *ed,
		       const struct embeng_accel_queue_create *arg);
int embeng_queue_check_context(const struct embeng_context *ctx,
			       const struct embeng_accel_queue_create *arg);
void embeng_queue_trains(struct embeng_context *ctx, const struct embeng_accel_queue_create *arg);

/* hang_settle.c: commands that the device will not complete any more */
void embeng_hang_note(struct embeng_queue *q);
void embeng_hang_blame(struct embeng_queue *q, const struct embeng_hang *hang);
u32 embeng_hang_settle(struct embeng_queue *q, u32 rung);
void embeng_hang_record(struct embeng_context *ctx, u32 rung, const struct embeng_hang *hang,
			const struct embeng_queue *q);

/* reset_queue.c: the reset of a single queue */
int embeng_queue_reset(struct embeng_context *ctx, u32 number, const struct embeng_hang *hang);

/* queue_ring.c: account of a validated queue */
int embeng_ring_consume(struct embeng_queue *q, u32 head);
void embeng_ring_look(struct embeng_queue *q);
void embeng_ring_interrupt(struct embeng_queue *q, struct list_head *done);
void embeng_ring_stop(struct embeng_queue *q);
void embeng_ring_void(struct embeng_queue *q);
void embeng_ring_settled(struct embeng_queue *q);
void embeng_ring_start(struct embeng_queue *q);
void embeng_ring_end(struct embeng_queue *q, int error);

/* submit_take.c */
int embeng_submit_take(struct embeng_queue *q, struct embeng_batch *batch);
void embeng_submit_need(struct embeng_queue *q, u32 index, struct embeng_need *need);

/* fence_points.c */
int embeng_points_judge(struct embeng_queue *q, const struct embeng_cmd *cmd,
			struct embeng_need *need);

/* submit_check.c */
int embeng_command_check(u32 kind, const struct embeng_cmd *cmd);

/* submit.c */
int embeng_submit_model(struct embeng_queue *q, struct embeng_cmd *cmd,
			const struct embeng_record_engine *model, u32 *index);
int embeng_submit_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* queue_irq.c: interrupts of queues */
void embeng_queue_irq_init(struct embeng_queue *q);
void embeng_queue_irq_exit(struct embeng_queue *q);
void embeng_queue_irq_hold_off(struct embeng_device *ed);
void embeng_queue_irq_arm(struct embeng_queue *q, u32 index);
void embeng_queue_irq_arm_locked(struct embeng_queue *q, u32 index);
void embeng_queue_irq_arm_all(struct embeng_context *ctx);
void embeng_queue_irq_look(struct embeng_queue *q);
void embeng_queue_irq_handle(struct embeng_vector *vector);

#endif
