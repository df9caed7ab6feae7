/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EMBENG_FENCE_H
#define EMBENG_FENCE_H

#include <linux/dma-fence.h>
#include <linux/list.h>

#include <drm/drm_file.h>

#include "fence_steps.h"

#define EMBENG_SYNCS_MAX EMBENG_ACCEL_SYNCS_MAX

struct embeng_context;
struct embeng_fence;
struct embeng_job;

/**
 * struct embeng_job_wait - an in-fence of a submit
 * @fence: the fence, of which a reference is held
 * @job: the job that waits for @fence
 * @cb: callback, registered until the fence signals
 */
struct embeng_job_wait {
	struct dma_fence *fence;
	struct embeng_job *job;
	struct dma_fence_cb cb;
};

/**
 * struct embeng_job - a submit that waits for fences or has one
 * @link: entry in &embeng_queue.jobs, in the order of submission; under vector->lock
 * @context: context of the queue
 * @first: index of the first command, free-running
 * @count: number of commands
 * @left: commands that have not completed; under vector->lock
 * @delay_us: sum of the delays of its NOPs
 * @need: steps that its commands wait for, see fence_steps.h
 * @fence: signalled when the job has ended, or NULL
 * @error: error that @fence will carry, or 0
 * @held: the commands are in the ring but the doorbell was not rung for them; under vector->lock
 * @waiting: number of @waits that have not signalled, plus one until the job is submitted
 * @failed: error of one of @waits, or 0
 * @wait_count: number of @waits
 * @waits: in-fences; the doorbell is rung once all have signalled
 */
struct embeng_job {
	struct list_head link;
	struct embeng_context *context;
	u32 first;
	u32 count;
	u32 left;
	u64 delay_us;
	struct embeng_need need;
	struct embeng_fence *fence;
	int error;
	bool held;
	atomic_t waiting;
	int failed;
	u32 wait_count;
	struct embeng_job_wait waits[] __counted_by(wait_count);
};

/* A point of a syncobj that a submit will signal. Its memory is allocated in advance. */
struct embeng_sync_out {
	struct drm_syncobj *syncobj;
	struct dma_fence_chain *chain; /* NULL: the syncobj is binary */
	u64 point;
};

struct embeng_sync_outs {
	u32 count;
	struct embeng_sync_out outs[] __counted_by(count);
};

/* fence.c */
struct embeng_fence *embeng_fence_new(void);
void embeng_fence_begin(struct embeng_fence *fence, u64 timeline, u64 seqno);
void embeng_fence_end(struct embeng_fence *fence, int error);
struct dma_fence *embeng_fence_get(struct embeng_fence *fence);
int embeng_fence_errno(u16 status);

/* fence_job.c */
struct embeng_job *embeng_job_new(struct embeng_context *ctx, u32 count, u32 waits);
void embeng_job_free(struct embeng_job *job);
void embeng_job_wait_for(struct embeng_job *job, u32 i, struct dma_fence *fence);
bool embeng_job_ready(struct embeng_job *job);
void embeng_jobs_end(struct list_head *done);

/* fence_syncobj.c */
struct embeng_accel_sync *embeng_syncs_copy(u64 list, u32 count);
int embeng_syncs_in(struct drm_file *file, const struct embeng_accel_sync *syncs,
		    struct embeng_job *job);
struct embeng_sync_outs *embeng_syncs_out(struct drm_file *file,
					  const struct embeng_accel_sync *syncs, u32 count);
void embeng_syncs_publish(struct embeng_sync_outs *outs, struct dma_fence *base);
void embeng_syncs_free(struct embeng_sync_outs *outs);

#endif
