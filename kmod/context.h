/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EMBENG_CONTEXT_H
#define EMBENG_CONTEXT_H

#include <linux/cleanup.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/wait.h>

#include "bo.h"
#include "queue.h"

/**
 * struct embeng_binding - a region: a part of a buffer that the device may reach
 * @bo: the buffer, of which a reference is held
 * @offset: first byte of the part
 * @length: bytes of the part
 * @segments: list of the part's pieces, in DMA memory that the device reads
 * @dma: address of @segments for the device
 * @count: number of @segments
 * @generation: generation of the key
 */
struct embeng_binding {
	struct embeng_bo *bo;
	u64 offset;
	u64 length;
	struct embeng_segment *segments;
	dma_addr_t dma;
	u32 count;
	u32 generation;
};

/**
 * enum embeng_place - the kinds of memory that a mapping can show
 * @EMBENG_PLACE_RING: the ring memory of a queue
 * @EMBENG_PLACE_DOORBELL: the doorbell of a queue
 * @EMBENG_PLACE_REGISTERS: the registers of the device
 * @EMBENG_PLACE_NONE: nothing; also the number of the places above
 */
enum embeng_place {
	EMBENG_PLACE_RING,
	EMBENG_PLACE_DOORBELL,
	EMBENG_PLACE_REGISTERS,
	EMBENG_PLACE_NONE,
};

/**
 * enum embeng_usage - counts of what the device did for a context
 * @EMBENG_USAGE_BUSY_NS: nanoseconds that it worked
 * @EMBENG_USAGE_COMMANDS: commands completed
 * @EMBENG_USAGE_IDS: ids looked up
 * @EMBENG_USAGE_ROWS: distinct rows updated
 * @EMBENG_USAGE_WAITS: times that a queue began to wait, by enum embeng_wait without NOTHING
 * @EMBENG_USAGES: number of the counts above
 */
enum embeng_usage {
	EMBENG_USAGE_BUSY_NS,
	EMBENG_USAGE_COMMANDS,
	EMBENG_USAGE_IDS,
	EMBENG_USAGE_ROWS,
	EMBENG_USAGE_WAITS,
	EMBENG_USAGES = EMBENG_USAGE_WAITS + EMBENG_WAITS,
};

/**
 * enum embeng_pace - how the end of a context goes after the last close of its file
 * @EMBENG_PACE_GOOD: its work has not taken long yet
 * @EMBENG_PACE_LATE: the close has not waited for it any longer
 * @EMBENG_PACE_OVER: it has ended
 */
enum embeng_pace {
	EMBENG_PACE_GOOD,
	EMBENG_PACE_LATE,
	EMBENG_PACE_OVER,
};

/**
 * struct embeng_context - everything that belongs to one open file description
 * @ref: held by the file, and by who uses the context of another file
 * @end: ends the context after the last close of its file
 * @over: completed when it has ended
 * @pace: enum embeng_pace, how its end goes
 * @released: its memory was freed
 * @user: user who opened the file
 * @device: device of the file
 * @link: entry in &embeng_device.contexts
 * @lock: held while regions and queues are made and ended
 * @made: CONTEXT_CREATE succeeded
 * @ended: the last descriptor is closed and the device has let go of the context
 * @on_device: the device knows the context, or is being told of it
 * @lost: a reset has taken the device's part of the context
 * @reset_sequence: number of that reset
 * @number: number of the context on the device
 * @tgid: process that made the context, in the first namespace
 * @comm: its name then, which is its own word
 * @table: region table, in DMA memory that only the driver writes
 * @table_dma: address of @table for the device
 * @entries: entries of @table
 * @generations: generation that was last used, for each entry of @table
 * @regions: &embeng_binding by index; a value entry where an index is retired
 * @foreign: number of regions of each buffer that another context or driver made, by its address
 * @region_count: number of regions
 * @queues: &embeng_queue by number
 * @queue_count: number of queues
 * @blob: key of the last model blob that the driver loaded
 * @ledger_lock: guards @ledger and @loading
 * @ledger: training that validated queues have submitted
 * @loading: model that is being loaded, with queue and index of its MODEL_LOAD; queue 0: none
 * @fences: number of out-fences that have not signalled
 * @held: number of submits that wait for in-fences
 * @delay_us: sum of the delays of NOPs in validated queues that have not ended
 * @watch: work that looks at fences and sleepers
 * @synced: some submit had a fence, so that callbacks may still run when the context is freed
 * @training: 1 + flags of the INPUT and GRADIENT queues, which all have the same; 0: none was made
 * @usage: counts of the work for the context, as last shown
 * @usage_ended: the part of it that queues which have ended account for
 * @memory: bytes charged; under &embeng_device.shares, as @memory_limit
 * @memory_limit: most bytes that may be charged
 * @hang: the hang that the watchdog found, until it is acted on
 * @hung_queue: number of the queue that @hang is about
 * @health_lock: guards @health
 * @health: the last rung that was taken for the context
 * @wait: where sleepers wait
 * @events: number of events, see &embeng_accel_wait
 * @map_lock: guards the choice of the page that a fault puts into a mapping
 * @scratch: for each place, the page that a mapping shows once its memory is gone
 */
struct embeng_context {
	struct kref ref;
	struct work_struct end;
	struct completion over;
	atomic_t pace;
	bool released;
	struct embeng_user *user;
	struct embeng_device *device;
	struct list_head link;
	struct mutex lock; /* regions and queues are made and ended under it */
	bool made;
	bool ended;
	bool on_device;
	bool lost;
	u64 reset_sequence;
	u32 number;
	pid_t tgid;
	char comm[TASK_COMM_LEN];
	struct embeng_region *table;
	dma_addr_t table_dma;
	u32 entries;
	u32 *generations;
	struct xarray regions;
	struct xarray foreign;
	u32 region_count;
	struct xarray queues;
	u32 queue_count;
	struct embeng_mem blob;
	spinlock_t ledger_lock; /* guards @ledger and @loading */
	struct embeng_ledger ledger;
	struct {
		u32 queue;
		u32 index;
		struct embeng_record_engine model;
	} loading;
	atomic_t fences;
	atomic_t held;
	atomic64_t delay_us;
	struct delayed_work watch;
	bool synced;
	u32 training;
	u64 usage[EMBENG_USAGES];
	u64 usage_ended[EMBENG_USAGES];
	u64 memory;
	u64 memory_limit;
	struct embeng_hang hang;
	u32 hung_queue;
	spinlock_t health_lock; /* guards @health */
	struct embeng_accel_health health;
	wait_queue_head_t wait;
	atomic64_t events;
	struct mutex map_lock; /* guards the choice of pages for faults */
	struct page *scratch[EMBENG_PLACE_NONE];
};

/* The name of a program, each byte of which may be escaped by four, and its number. */
struct embeng_program_text {
	char text[4 * TASK_COMM_LEN + 16];
};

static inline struct embeng_context *to_embeng_context(struct drm_file *file)
{
	return file->driver_priv;
}

static inline struct embeng_context *embeng_lock_begin(struct embeng_context *ctx)
{
	return mutex_lock_killable(&ctx->lock) ? NULL : ctx;
}

static inline void embeng_lock_end(struct embeng_context *ctx)
{
	if (ctx)
		mutex_unlock(&ctx->lock);
}

/* CLASS(embeng_lock, locked)(ctx): the context's lock, or NULL in a task that was killed */
DEFINE_CLASS(embeng_lock, struct embeng_context *, embeng_lock_end(_T), embeng_lock_begin(ctx),
	     struct embeng_context *ctx)

/* context_end.c */
void embeng_context_end_init(struct embeng_context *ctx);
void embeng_context_close(struct drm_device *drm, struct drm_file *file);
void embeng_context_put(struct embeng_context *ctx);
void embeng_context_free_scratch(struct embeng_context *ctx);
void embeng_context_release_all(struct embeng_device *ed);
int embeng_closing_init(void);
void embeng_closing_exit(void);

/* context.c */
int embeng_context_open(struct drm_device *drm, struct drm_file *file);
void embeng_context_free_table(struct embeng_context *ctx);
int embeng_context_usable(const struct embeng_context *ctx);
void embeng_context_event(struct embeng_context *ctx);
int embeng_context_end_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd);
int embeng_context_run_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd);
struct embeng_program_text embeng_program_text(const struct embeng_context *ctx);
int embeng_context_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* user.c */
int embeng_context_charge(struct embeng_context *ctx, u64 bytes);
void embeng_context_uncharge(struct embeng_context *ctx, u64 bytes);
int embeng_context_limit(struct embeng_context *ctx, u64 limit);

/* region.c */
int embeng_region_bind(struct embeng_context *ctx, struct embeng_bo *bo,
		       struct embeng_accel_bind *arg);
int embeng_region_unbind(struct embeng_context *ctx, u32 index, u32 generation);
struct embeng_bo *embeng_region_bo(struct embeng_context *ctx, const struct embeng_mem *mem,
				   u64 *offset);
int embeng_region_read(struct embeng_context *ctx, const struct embeng_mem *mem, u64 at, void *to,
		       u64 size);
bool embeng_region_exists(struct embeng_context *ctx, u32 index, u32 generation);
void embeng_region_release_all(struct embeng_context *ctx);
int embeng_region_bind_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int embeng_region_unbind_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* fence_watch.c */
void embeng_watch_init(struct embeng_context *ctx);
void embeng_watch_exit(struct embeng_context *ctx);
void embeng_watch_on(struct embeng_context *ctx);
void embeng_watch_now(struct embeng_context *ctx);
void embeng_watch_refresh(struct embeng_context *ctx);

/* submit_model.c */
int embeng_model_load_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* stats_fdinfo.c */
void embeng_usage_end(struct embeng_queue *q);
void embeng_usage_show(struct drm_printer *p, struct drm_file *file);

/* queue_wait.c */
u32 embeng_queue_state(const struct embeng_queue *q);
int embeng_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
__poll_t embeng_wait_poll(struct file *file, struct poll_table_struct *table);

/* mmap.c */
u64 embeng_mmap_ring_offset(const struct embeng_queue *q);
u64 embeng_mmap_doorbell_offset(const struct embeng_queue *q);
u64 embeng_mmap_registers_offset(void);
void embeng_mmap_revoke(struct embeng_queue *q);
void embeng_mmap_hold_off(struct embeng_device *ed);
void embeng_mmap_show_registers(struct embeng_device *ed);
int embeng_mmap(struct file *file, struct vm_area_struct *vma);

#endif
