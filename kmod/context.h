/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EMBENG_CONTEXT_H
#define EMBENG_CONTEXT_H

#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/wait.h>

#include "bo.h"

/* What a table may be told to have; a fragmented GiB needs so many. */
#define EMBENG_SEGMENTS_MAX 65536

/**
 * struct embeng_binding - a region: a part of a buffer that the device may reach
 * @bo: the buffer, held
 * @length: bytes, charged to the context
 * @segments: DMA memory, @count of them
 * @dma: of @segments
 * @count: segments
 * @generation: of the key
 */
struct embeng_binding {
	struct embeng_bo *bo;
	u64 length;
	struct embeng_segment *segments;
	dma_addr_t dma;
	u32 count;
	u32 generation;
};

/**
 * struct embeng_context - what belongs to an open file description
 * @device: whose
 * @link: in &embeng_device.contexts
 * @lock: regions and queues are made and ended under it
 * @made: CONTEXT_CREATE was called
 * @on_device: the device knows it, or is being told
 * @lost: in a reset, which took the device's part of it
 * @reset_sequence: of that reset
 * @number: the device's
 * @table: region table, DMA memory that the driver alone writes
 * @table_dma: of @table
 * @entries: of @table
 * @generations: last one used, by index
 * @regions: &embeng_binding by index; a value entry where an index is retired
 * @region_count: bound
 * @queues: &embeng_queue by number
 * @queue_count: made
 * @blob: key of the last model blob that the driver loaded
 * @training: 1 + flags that INPUT and GRADIENT queues have, 0: none yet
 * @busy_ns: that the device worked for it, as last shown
 * @busy_ended_ns: the part of queues that have gone
 * @memory: bytes charged
 * @memory_limit: most
 * @health: the last rung that was taken for it; under @lock or reset_lock, written
 * @wait: sleepers
 * @events: see &embeng_accel_wait
 * @taken: the last that WAIT gave out
 * @map_lock: what a fault may put into a mapping
 * @scratch: where mappings go when what they showed is gone
 */
struct embeng_context {
	struct embeng_device *device;
	struct list_head link;
	struct mutex lock; /* regions and queues are made and ended under it */
	bool made;
	bool on_device;
	bool lost;
	u64 reset_sequence;
	u32 number;
	struct embeng_region *table;
	dma_addr_t table_dma;
	u32 entries;
	u32 *generations;
	struct xarray regions;
	u32 region_count;
	struct xarray queues;
	u32 queue_count;
	struct embeng_mem blob;
	u32 training;
	u64 busy_ns;
	u64 busy_ended_ns;
	u64 memory;
	u64 memory_limit;
	struct embeng_accel_health health;
	wait_queue_head_t wait;
	atomic64_t events;
	u64 taken;
	struct mutex map_lock; /* what a fault may put into a mapping */
	struct page *scratch;
};

/**
 * struct embeng_queue_watch - what the watchdog saw of a queue last
 * @sq_head: of the ring header
 * @cq_tail: of the ring header
 * @done: of the ring header
 * @epoch: of the report
 * @heartbeat: of the ring header
 * @stood: looks since it moved, while it had to
 * @unattended: looks since the device attended to it
 * @since_ns: when it was last seen to move, CLOCK_MONOTONIC
 */
struct embeng_queue_watch {
	u32 sq_head;
	u32 cq_tail;
	u32 done;
	u32 epoch;
	u32 heartbeat;
	u32 stood;
	u32 unattended;
	u64 since_ns;
};

/**
 * struct embeng_queue - rings between a program and the device
 * @ref: held by the context and by who looks at it
 * @context: whose; outlives it
 * @vector: interrupts
 * @vector_link: in &embeng_vector.queues
 * @number: the device's
 * @kind: enum embeng_queue_kind
 * @priority: 0 to 3
 * @replica: of what
 * @mapped: the program writes rings and doorbell
 * @coalesce: completions per interrupt
 * @coalesce_us: and at the latest after so long
 * @layout: of the ring memory
 * @pages: ring memory, contiguous; NULL once the device is unplugged
 * @ring: the same
 * @dma: the same
 * @grave: what the ring held when the device was unplugged
 * @doorbell: in BAR 2
 * @lock: one submitter at a time; guards @sq_tail to @in_flight, @destroyed
 * @sq_tail: free-running, validated queues
 * @cq_head: free-running, what the device was told
 * @walked: completions below it are in the account
 * @owed: completions that the device may still post for what it was given
 * @in_flight: commands without their last completion
 * @noted_tail: completion tail when an event was last counted; vector->lock
 * @noted_epoch: report at that time; vector->lock
 * @armed: &embeng_doorbell.armed; vector->lock
 * @arm: index, while @pending_arm; vector->lock
 * @pending_arm: no interrupt since armed; vector->lock
 * @timer: ends a wait for @coalesce completions
 * @watch: the watchdog's
 * @sq_begin: first command since the queue was begun
 * @cq_begin: first completion since then
 * @last_tail: submission tail as of the last look at the doorbell, which a reset clears
 * @last_head: completion head, so
 * @at_fault: the command @fault_index hung
 * @fault_lost: it is complete, and its completion was lost
 * @fault_index: free-running
 * @fault_ns: how long it had made no progress
 * @destroyed: by its program; who waits for it is told
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
	u32 cq_head;
	u32 walked;
	u32 owed;
	u32 in_flight;
	u32 noted_tail;
	u32 noted_epoch;
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
	bool destroyed;
};

static inline struct embeng_context *to_embeng_context(struct drm_file *file)
{
	return file->driver_priv;
}

static inline struct embeng_ring_header *embeng_queue_header(const struct embeng_queue *q)
{
	return q->ring + q->layout.header;
}

static inline u32 embeng_doorbell_tail_of(const struct embeng_queue *q)
{
	return readl(q->doorbell + offsetof(struct embeng_doorbell, sq_tail));
}

static inline u32 embeng_doorbell_head_of(const struct embeng_queue *q)
{
	return readl(q->doorbell + offsetof(struct embeng_doorbell, cq_head));
}

/* context.c */
int embeng_context_open(struct drm_device *drm, struct drm_file *file);
void embeng_context_close(struct drm_device *drm, struct drm_file *file);
void embeng_context_release_all(struct embeng_device *ed);
int embeng_context_usable(const struct embeng_context *ctx);
int embeng_context_charge(struct embeng_context *ctx, u64 bytes);
void embeng_context_uncharge(struct embeng_context *ctx, u64 bytes);
void embeng_context_event(struct embeng_context *ctx);
void embeng_context_end_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd);
int embeng_context_run_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd);
int embeng_context_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* region.c */
int embeng_region_bind(struct embeng_context *ctx, struct embeng_bo *bo,
		       struct embeng_accel_bind *arg);
int embeng_region_unbind(struct embeng_context *ctx, u32 index, u32 generation);
bool embeng_region_exists(struct embeng_context *ctx, u32 index, u32 generation);
void embeng_region_release_all(struct embeng_context *ctx);
int embeng_region_bind_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int embeng_region_unbind_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* queue.c */
struct embeng_queue *embeng_queue_get(struct embeng_context *ctx, u32 number);
void embeng_queue_put(struct embeng_queue *q);
void embeng_queue_bury(struct embeng_queue *q);
void embeng_queue_release_all(struct embeng_context *ctx, bool closing);
int embeng_queue_check(const struct embeng_device *ed,
		       const struct embeng_accel_queue_create *arg);
bool embeng_queue_may_map(const struct embeng_device *ed);
int embeng_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int embeng_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

void embeng_queue_end(struct embeng_queue *q);
int embeng_queue_go_on(struct embeng_queue *q, u32 sq_index, u32 cq_index);

/* health.c: commands that the device completes no more */
void embeng_health_note(struct embeng_queue *q);
void embeng_health_blame(struct embeng_queue *q, const struct embeng_hang *hang);
u32 embeng_health_settle(struct embeng_queue *q, u32 rung);
void embeng_health_record(struct embeng_context *ctx, u32 rung, const struct embeng_hang *hang,
			  const struct embeng_queue *q);

/* recover.c: the queue's rung */
int embeng_queue_reset(struct embeng_context *ctx, u32 number, const struct embeng_hang *hang);

/* submit.c */
int embeng_submit_consume(struct embeng_queue *q, u32 head);
int embeng_submit_one(struct embeng_queue *q, struct embeng_cmd *cmd, u32 *index);
int embeng_submit_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* model.c */
int embeng_model_load_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* usage.c */
void embeng_usage_end(struct embeng_queue *q);
void embeng_usage_show(struct drm_printer *p, struct drm_file *file);

/* arm.c: interrupts of queues */
void embeng_arm_init(struct embeng_queue *q);
void embeng_arm_exit(struct embeng_queue *q);
void embeng_arm(struct embeng_queue *q, u32 index);
void embeng_arm_all(struct embeng_context *ctx);
void embeng_arm_interrupt(struct embeng_vector *vector);

/* wait.c */
u32 embeng_queue_state(const struct embeng_queue *q);
int embeng_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
__poll_t embeng_wait_poll(struct file *file, struct poll_table_struct *table);

/* mmap.c */
u64 embeng_mmap_ring_offset(const struct embeng_queue *q);
u64 embeng_mmap_doorbell_offset(const struct embeng_queue *q);
u64 embeng_mmap_registers_offset(void);
void embeng_mmap_revoke(struct embeng_queue *q);
int embeng_mmap(struct file *file, struct vm_area_struct *vma);

#endif
