// SPDX-License-Identifier: GPL-2.0-only
/*
 * A job: a submit that waits for fences, has a fence to signal, or both.
 *
 * The kernel's job scheduler is not used. A queue has one ring and one order, its commands stand
 * in the ring already, and what is left to decide is how far the doorbell may go. Order, room and
 * every kind of end are the queue's (queue_ring.c).
 *
 * A job is made before its commands are taken, then belongs to the list of its queue, under
 * vector->lock, and is freed after its last completion. embeng_jobs_end() signals and frees
 * without any lock held, because those who wait for a fence run in it. Fences of others call
 * note_wait_signal() in any context; all it does is to count, and to have the watch look.
 */
#include <linux/dma-fence-chain.h>
#include <linux/slab.h>

#include "context.h"

/**
 * embeng_job_new() - allocate a job
 * @ctx: context
 * @count: number of commands
 * @waits: number of fences that the job will wait for
 *
 * Return: a job to be submitted or given to embeng_job_free(), or NULL.
 */
struct embeng_job *embeng_job_new(struct embeng_context *ctx, u32 count, u32 waits)
{
	struct embeng_job *job = kzalloc(struct_size(job, waits, waits), GFP_KERNEL_ACCOUNT);

	if (!job)
		return NULL;
	INIT_LIST_HEAD(&job->link);
	job->context = ctx;
	job->count = count;
	job->left = count;
	job->wait_count = waits;
	atomic_set(&job->waiting, 1);
	return job;
}

/**
 * embeng_job_free() - stop waiting for fences and free a job
 * @job: job that is in no queue; its own fence, if any, has ended
 */
void embeng_job_free(struct embeng_job *job)
{
	u32 i;

	for (i = 0; i < job->wait_count; i++) {
		struct embeng_job_wait *wait = &job->waits[i];

		if (!wait->fence)
			continue;
		/* This also waits for a callback that is running now. */
		dma_fence_remove_callback(wait->fence, &wait->cb);
		dma_fence_put(wait->fence);
	}
	kfree(job);
}

/* A point of a timeline has no error itself, but the fence that it contains may have one. */
static void note_wait_error(struct embeng_job *job, struct dma_fence *fence)
{
	int error = READ_ONCE(dma_fence_chain_contained(fence)->error);

	if (error)
		WRITE_ONCE(job->failed, error);
}

/* Runs in whatever context the other driver signals its fence in. */
static void note_wait_signal(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct embeng_job *job = container_of(cb, struct embeng_job_wait, cb)->job;
	struct embeng_context *ctx = job->context;

	note_wait_error(job, fence);
	/* A reader that finds the count at 0 also sees the error that was set before. */
	if (atomic_dec_and_test(&job->waiting))
		embeng_watch_now(ctx);
}

/**
 * embeng_job_wait_for() - make a job wait for a fence
 * @job: job that is not submitted yet
 * @i: index in @job->waits
 * @fence: reference, which the job takes over
 */
void embeng_job_wait_for(struct embeng_job *job, u32 i, struct dma_fence *fence)
{
	struct embeng_job_wait *wait = &job->waits[i];

	wait->fence = fence;
	wait->job = job;
	atomic_inc(&job->waiting);
	if (!dma_fence_add_callback(fence, &wait->cb, note_wait_signal))
		return;
	note_wait_error(job, fence);
	atomic_dec(&job->waiting);
}

/**
 * embeng_job_ready() - check whether all in-fences of a job have signalled
 * @job: submitted job
 *
 * Return: true when they have; @job->failed is final then.
 */
bool embeng_job_ready(struct embeng_job *job)
{
	/* Pairs with atomic_dec_and_test() in note_wait_signal(). */
	return !atomic_read_acquire(&job->waiting);
}

/**
 * embeng_jobs_end() - signal the fences of jobs and free the jobs
 * @done: jobs in order, taken out of their queue; called without locks
 */
void embeng_jobs_end(struct list_head *done)
{
	struct embeng_job *job, *next;

	list_for_each_entry_safe(job, next, done, link) {
		list_del_init(&job->link);
		if (job->fence)
			embeng_fence_end(job->fence, job->error);
		embeng_job_free(job);
	}
}
