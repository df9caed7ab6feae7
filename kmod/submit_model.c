// SPDX-License-Identifier: GPL-2.0-only
/*
 * The MODEL_LOAD ioctl. The blob is copied into memory of the driver's, so that the program cannot
 * change it under the engine, and its frame is checked. The engine checks the rest.
 *
 * Neither a lock nor `users` is held while it is copied; if the device is unbound meanwhile, the
 * pages stay and the call fails. The copy is bound as a region of the context and kept until the
 * next load or until the file is closed, because the completion comes at some later time and nobody
 * waits for it here. ctx->lock is held from unbinding the last blob to submitting the new one; the
 * submit takes reset_lock and queue->lock inside it.
 */
#include <linux/cleanup.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "context.h"

#define LENGTH_MAX SZ_64M

static int copy_blob(struct embeng_bo *bo, u64 from, u64 length)
{
	u64 done, part;

	for (done = 0; done < length; done += part) {
		part = min(length - done, PAGE_SIZE);
		if (copy_from_user(page_address(bo->pages[done >> PAGE_SHIFT]),
				   u64_to_user_ptr(from + done), part))
			return -EFAULT;
	}
	return 0;
}

static int check_blob_frame(const struct embeng_bo *bo, u64 length)
{
	const struct embeng_blob_header *header = page_address(bo->pages[0]);

	if (header->magic != EMBENG_BLOB_MAGIC || header->version != EMBENG_BLOB_VERSION ||
	    header->length != length)
		return -EBADMSG;
	return 0;
}

/* Makes the buffer for a blob, if the queue may load it. */
static struct embeng_bo *make_blob(struct embeng_context *ctx,
				   const struct embeng_accel_model_load *arg)
{
	struct embeng_queue *q;
	int ret;

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return ERR_PTR(-ENODEV);
	q = embeng_queue_get(ctx, arg->queue);
	if (!q)
		return ERR_PTR(-ENOENT);
	ret = q->mapped || q->kind != EMBENG_QUEUE_TRANSFER ? -EINVAL : 0;
	embeng_queue_put(q);
	return ret ? ERR_PTR(ret) : embeng_bo_make(ctx, arg->length);
}

/* The first record of the blob. The ledger goes by it once the device has accepted the model. */
static const struct embeng_record_engine *find_engine_options(const struct embeng_bo *bo)
{
	return page_address(bo->pages[0]) + sizeof(struct embeng_blob_header);
}

/*
 * Submits the blob's MODEL_LOAD. The driver keeps the key until the next load. Under ctx->lock. A
 * model that is extended keeps its options and its steps, and so does the ledger.
 */
static int submit_blob(struct embeng_queue *q, struct embeng_bo *bo,
		       struct embeng_accel_model_load *arg)
{
	struct embeng_context *ctx = q->context;
	struct embeng_accel_bind key = { .rights = EMBENG_REGION_DEVICE_READ };
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_MODEL_LOAD,
		.flags = arg->flags,
		.cookie = arg->cookie,
	};
	bool extends = arg->flags & EMBENG_CMD_EXTENDS;
	int ret = embeng_context_usable(ctx);

	if (ret)
		return ret;
	if (ctx->blob.generation)
		ret = embeng_region_unbind(ctx, ctx->blob.index, ctx->blob.generation);
	ctx->blob = (struct embeng_mem){};
	if (ret == -EINTR)
		return ret;
	ret = embeng_region_bind(ctx, bo, &key);
	if (ret)
		return ret;
	cmd.desc = (struct embeng_mem){ key.index, key.generation, 0, arg->length };
	ret = embeng_submit_model(q, &cmd, extends ? NULL : find_engine_options(bo), &arg->index);
	if (ret)
		embeng_region_unbind(ctx, key.index, key.generation);
	else
		ctx->blob = cmd.desc;
	return ret;
}

static int submit_blob_locked(struct embeng_queue *q, struct embeng_bo *bo,
			      struct embeng_accel_model_load *arg)
{
	CLASS(embeng_lock, locked)(q->context);

	return locked ? submit_blob(q, bo, arg) : -EINTR;
}

/* Nothing of the queue is held while the blob is copied, so it is looked up again. */
static int load_blob(struct embeng_context *ctx, struct embeng_bo *bo,
		     struct embeng_accel_model_load *arg)
{
	struct embeng_queue *q;
	int ret;

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	q = embeng_queue_get(ctx, arg->queue);
	if (!q)
		return -ENOENT;
	ret = q->mapped || q->kind != EMBENG_QUEUE_TRANSFER ? -EINVAL : 0;
	if (!ret)
		ret = submit_blob_locked(q, bo, arg);
	embeng_queue_put(q);
	return ret;
}

/**
 * embeng_model_load_ioctl() - DRM_IOCTL_EMBENG_MODEL_LOAD
 * @drm: device
 * @data: &struct embeng_accel_model_load
 * @file: open file with the queue
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_model_load_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_context *ctx = to_embeng_context(file);
	struct embeng_accel_model_load *arg = data;
	struct embeng_bo *bo;
	int ret;

	if (arg->flags & ~EMBENG_CMD_EXTENDS || arg->reserved1 || arg->index)
		return -EINVAL;
	if (arg->length < sizeof(struct embeng_blob_header) || arg->length > LENGTH_MAX)
		return -EINVAL;
	bo = make_blob(ctx, arg);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = copy_blob(bo, arg->blob, arg->length) ?: check_blob_frame(bo, arg->length);
	if (!ret)
		ret = load_blob(ctx, bo, arg);
	drm_gem_object_put(&bo->base);
	return ret;
}
