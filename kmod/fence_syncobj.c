// SPDX-License-Identifier: GPL-2.0-only
/*
 * Syncobjs of a submit. Everything that can fail is done before the commands are taken: handles
 * are looked up and memory for timeline points is allocated. Afterwards publishing the points
 * cannot fail, so that no command runs without the fence that its program asked for.
 *
 * The references to syncobjs and the unused memory are the caller's, in a structure that
 * embeng_syncs_free() lets go of. In-fences pass to the job. No lock is held here, since copying
 * from the program and allocating sleep; embeng_syncs_copy() is called before `users` is entered.
 */
#include <linux/cleanup.h>
#include <linux/dma-fence-chain.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <drm/drm_syncobj.h>

#include "context.h"

/**
 * embeng_syncs_copy() - copy a list of points from the program
 * @list: user pointer to @count points
 * @count: number of points
 *
 * Nothing that an unbind waits for is held meanwhile, since a page may never come.
 *
 * Return: the list, to be freed by kfree(), NULL if it is empty, or an error pointer.
 */
struct embeng_accel_sync *embeng_syncs_copy(u64 list, u32 count)
{
	struct embeng_accel_sync *syncs;
	u32 i;

	if (!count)
		return NULL;
	syncs = memdup_array_user(u64_to_user_ptr(list), count, sizeof(*syncs));
	for (i = 0; !IS_ERR(syncs) && i < count; i++) {
		if (syncs[i].reserved) {
			kfree(syncs);
			return ERR_PTR(-EINVAL);
		}
	}
	return syncs;
}

/**
 * embeng_syncs_in() - make a job wait for syncobj points
 * @file: open file with the syncobj handles
 * @syncs: &embeng_job.wait_count points
 * @job: job that is not submitted yet
 *
 * Return: 0, -ENOENT, or -EINVAL when the point has no fence yet.
 */
int embeng_syncs_in(struct drm_file *file, const struct embeng_accel_sync *syncs,
		    struct embeng_job *job)
{
	struct dma_fence *fence;
	int ret;
	u32 i;

	for (i = 0; i < job->wait_count; i++) {
		ret = drm_syncobj_find_fence(file, syncs[i].handle, syncs[i].point, 0, &fence);
		if (ret)
			return ret;
		embeng_job_wait_for(job, i, fence);
	}
	return 0;
}

static int prepare_sync_out(struct drm_file *file, const struct embeng_accel_sync *sync,
			    struct embeng_sync_out *out)
{
	out->syncobj = drm_syncobj_find(file, sync->handle);
	if (!out->syncobj)
		return -ENOENT;
	out->point = sync->point;
	if (!sync->point)
		return 0;
	out->chain = dma_fence_chain_alloc();
	return out->chain ? 0 : -ENOMEM;
}

/**
 * embeng_syncs_out() - find the points that a submit signals
 * @file: open file with the syncobj handles
 * @syncs: the points
 * @count: number of points, at least 1
 *
 * Return: points, to be given to embeng_syncs_free(), or an error pointer.
 */
struct embeng_sync_outs *embeng_syncs_out(struct drm_file *file,
					  const struct embeng_accel_sync *syncs, u32 count)
{
	struct embeng_sync_outs *outs;
	int ret = 0;
	u32 i;

	outs = kzalloc(struct_size(outs, outs, count), GFP_KERNEL_ACCOUNT);
	if (!outs)
		return ERR_PTR(-ENOMEM);
	outs->count = count;
	for (i = 0; !ret && i < count; i++)
		ret = prepare_sync_out(file, &syncs[i], &outs->outs[i]);
	if (!ret)
		return outs;
	embeng_syncs_free(outs);
	return ERR_PTR(ret);
}

/**
 * embeng_syncs_publish() - put the fence of an accepted submit into its points
 * @outs: points; the memory that was allocated for them is used up
 * @base: fence of the submit; it may have signalled already
 */
void embeng_syncs_publish(struct embeng_sync_outs *outs, struct dma_fence *base)
{
	u32 i;

	for (i = 0; i < outs->count; i++) {
		struct embeng_sync_out *out = &outs->outs[i];

		if (out->chain)
			drm_syncobj_add_point(out->syncobj, out->chain, base, out->point);
		else
			drm_syncobj_replace_fence(out->syncobj, base);
		out->chain = NULL;
	}
}

/**
 * embeng_syncs_free() - release the points of a submit
 * @outs: points, published or not
 */
void embeng_syncs_free(struct embeng_sync_outs *outs)
{
	u32 i;

	for (i = 0; i < outs->count; i++) {
		if (outs->outs[i].syncobj)
			drm_syncobj_put(outs->outs[i].syncobj);
		dma_fence_chain_free(outs->outs[i].chain);
	}
	kfree(outs);
}
