// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions: parts of buffers that the device may reach, by a key of index and generation in a table
 * that the device reads.
 *
 * An entry is published by writing its generation last. It ends with generation 0, and its memory
 * is kept until the device has answered an INVALIDATE, or can reach nothing any more. A generation
 * is never used twice; an index whose generations are used up is retired.
 *
 * A region holds its buffer. ctx->lock is held while regions are made and ended. Submits look keys
 * up under the lock of the xarray alone, so entries leave it before their region is freed.
 */
#include <linux/cleanup.h>
#include <linux/dma-mapping.h>

#include "context.h"

#define RIGHTS (EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE)

static size_t count_list_bytes(const struct embeng_binding *b)
{
	return (size_t)b->count * sizeof(*b->segments);
}

static int list_segments(struct embeng_context *ctx, struct embeng_binding *b, u64 offset)
{
	struct device *dev = &ctx->device->pci->dev;
	int count = embeng_segments(b->bo, offset, b->length, NULL, EMBENG_SEGMENTS_MAX);

	if (count < 0)
		return count;
	b->count = count;
	b->segments = dma_alloc_coherent(dev, count_list_bytes(b), &b->dma, EMBENG_GFP_WISH);
	if (!b->segments)
		return -ENOMEM;
	embeng_segments(b->bo, offset, b->length, b->segments, b->count);
	return 0;
}

static void free_binding(struct embeng_context *ctx, struct embeng_binding *b)
{
	if (b->segments)
		dma_free_coherent(&ctx->device->pci->dev, count_list_bytes(b), b->segments, b->dma);
	drm_gem_object_put(&b->bo->base);
	kfree(b);
}

static int reserve_region_index(struct embeng_context *ctx, struct embeng_binding *b, u32 *index)
{
	int ret = xa_alloc(&ctx->regions, index, b, XA_LIMIT(0, ctx->entries - 1),
			   GFP_KERNEL_ACCOUNT);

	return ret == -EBUSY ? -ENOSPC : ret;
}

/* The device may read the entry at any moment, so the generation is written last. */
static void publish_region(struct embeng_context *ctx, const struct embeng_binding *b, u32 index,
			   u32 rights)
{
	struct embeng_region *entry = &ctx->table[index];

	entry->rights = rights;
	entry->length = b->length;
	entry->segments = b->dma;
	entry->segment_count = b->count;
	/* Pairs with the device's acquire of the generation. */
	smp_store_release(&entry->generation, b->generation);
}

/* Keys of @foreign. */
static unsigned long address_bo(const struct embeng_bo *bo)
{
	return (unsigned long)bo;
}

static u32 count_bindings(struct embeng_context *ctx, const struct embeng_bo *bo)
{
	void *entry = xa_load(&ctx->foreign, address_bo(bo));

	return entry ? xa_to_value(entry) : 0;
}

/*
 * A buffer that another context or driver made is charged to this one as well, once, however often
 * it is bound: the device may reach it for this context after its maker has gone.
 */
static int charge_foreign_bo(struct embeng_context *ctx, const struct embeng_bo *bo)
{
	u32 count = count_bindings(ctx, bo);
	int ret = 0;

	if (bo->payer == ctx)
		return 0;
	if (!count)
		ret = embeng_context_charge(ctx, bo->base.size);
	if (ret)
		return ret;
	ret = xa_err(xa_store(&ctx->foreign, address_bo(bo), xa_mk_value(count + 1),
			      EMBENG_GFP_WISH));
	if (ret && !count)
		embeng_context_uncharge(ctx, bo->base.size);
	return ret;
}

static void uncharge_foreign_bo(struct embeng_context *ctx, const struct embeng_bo *bo)
{
	u32 count = count_bindings(ctx, bo);

	if (bo->payer == ctx || !count)
		return;
	if (count > 1) {
		/* This replaces an entry, which takes no memory. */
		xa_store(&ctx->foreign, address_bo(bo), xa_mk_value(count - 1), GFP_KERNEL);
		return;
	}
	xa_erase(&ctx->foreign, address_bo(bo));
	embeng_context_uncharge(ctx, bo->base.size);
}

static int add_region(struct embeng_context *ctx, struct embeng_binding *b,
		      struct embeng_accel_bind *arg)
{
	u32 index;
	int ret = charge_foreign_bo(ctx, b->bo);

	if (ret)
		return ret;
	ret = list_segments(ctx, b, arg->offset);
	if (!ret)
		ret = reserve_region_index(ctx, b, &index);
	if (ret) {
		uncharge_foreign_bo(ctx, b->bo);
		return ret;
	}
	b->generation = ++ctx->generations[index];
	publish_region(ctx, b, index, arg->rights);
	ctx->region_count++;
	arg->index = index;
	arg->generation = b->generation;
	return 0;
}

static int compute_part_length(const struct embeng_bo *bo, const struct embeng_accel_bind *arg,
			       u64 *length)
{
	u64 end;

	if (arg->offset >= bo->base.size)
		return -EINVAL;
	*length = arg->length ?: bo->base.size - arg->offset;
	if (check_add_overflow(arg->offset, *length, &end))
		return -EOVERFLOW;
	return end > bo->base.size ? -EINVAL : 0;
}

/**
 * embeng_region_bind() - make a region, so that the device can reach a part of a buffer
 * @ctx: context, under its lock
 * @bo: buffer; a reference is taken
 * @arg: offset, length and rights are read, the key is written
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_region_bind(struct embeng_context *ctx, struct embeng_bo *bo,
		       struct embeng_accel_bind *arg)
{
	struct embeng_binding *b;
	u64 length;
	int ret = compute_part_length(bo, arg, &length);

	if (ret)
		return ret;
	if (bo->read_only && arg->rights & EMBENG_REGION_DEVICE_WRITE)
		return -EACCES;
	b = kzalloc(sizeof(*b), GFP_KERNEL_ACCOUNT);
	if (!b)
		return -ENOMEM;
	drm_gem_object_get(&bo->base);
	b->bo = bo;
	b->offset = arg->offset;
	b->length = length;
	ret = add_region(ctx, b, arg);
	if (ret)
		free_binding(ctx, b);
	return ret;
}

static int check_bind(const struct embeng_accel_bind *arg)
{
	if (!arg->rights || arg->rights & ~RIGHTS || !PAGE_ALIGNED(arg->offset))
		return -EINVAL;
	return arg->index || arg->generation ? -EINVAL : 0;
}

static int bind_in_context(struct embeng_context *ctx, struct embeng_bo *bo,
			   struct embeng_accel_bind *arg)
{
	CLASS(embeng_lock, locked)(ctx);
	if (!locked)
		return -EINTR;
	return embeng_context_usable(ctx) ?: embeng_region_bind(ctx, bo, arg);
}

/**
 * embeng_region_bind_ioctl() - DRM_IOCTL_EMBENG_BIND
 * @drm: device
 * @data: &struct embeng_accel_bind
 * @file: open file with the context and the buffer handle
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_region_bind_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_bind *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);
	struct drm_gem_object *obj;
	int ret = check_bind(arg);

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	if (ret)
		return ret;
	obj = drm_gem_object_lookup(file, arg->handle);
	if (!obj)
		return -ENOENT;
	ret = bind_in_context(ctx, to_embeng_bo(obj), arg);
	drm_gem_object_put(obj);
	return ret;
}

static struct embeng_binding *find_binding(struct embeng_context *ctx, u32 index, u32 generation)
{
	struct embeng_binding *b = xa_load(&ctx->regions, index);

	if (!b || xa_is_value(b) || !generation)
		return NULL;
	return b->generation == generation ? b : NULL;
}

/* Frees an index, or retires it for good if its next generation would wrap to 0. */
static void free_region_index(struct embeng_context *ctx, u32 index)
{
	if (ctx->generations[index] == U32_MAX)
		xa_store(&ctx->regions, index, xa_mk_value(0), GFP_KERNEL);
	else
		xa_erase(&ctx->regions, index);
}

/**
 * embeng_region_exists() - check whether a key refers to a region
 * @ctx: context
 * @index: index of the key
 * @generation: generation of the key
 */
bool embeng_region_exists(struct embeng_context *ctx, u32 index, u32 generation)
{
	bool exists;

	xa_lock(&ctx->regions);
	exists = find_binding(ctx, index, generation);
	xa_unlock(&ctx->regions);
	return exists;
}

/**
 * embeng_region_bo() - find the buffer behind a piece of memory
 * @ctx: context
 * @mem: key, offset and length of the piece
 * @offset: set to the piece's offset in the buffer
 *
 * Return: the buffer with a reference that the caller drops, or NULL when the piece is not inside a
 * region.
 */
struct embeng_bo *embeng_region_bo(struct embeng_context *ctx, const struct embeng_mem *mem,
				   u64 *offset)
{
	struct embeng_bo *bo = NULL;
	struct embeng_binding *b;

	xa_lock(&ctx->regions);
	b = find_binding(ctx, mem->index, mem->generation);
	if (b && mem->offset <= b->length && mem->length <= b->length - mem->offset) {
		bo = b->bo;
		drm_gem_object_get(&bo->base);
		*offset = b->offset + mem->offset;
	}
	xa_unlock(&ctx->regions);
	return bo;
}

/**
 * embeng_region_read() - read bytes of a piece of memory that the driver made
 * @ctx: context
 * @mem: key, offset and length of the piece
 * @at: first byte to read, in the piece
 * @to: where the bytes go
 * @size: number of bytes, a few hundred at most
 *
 * No reference to the buffer is taken, so that this may be called inside of locks that the end of a
 * buffer takes.
 *
 * Return: 0; -ERANGE if the bytes are not inside of the piece; -ENOENT if the piece is not inside
 * of a region; -EOPNOTSUPP if the memory is another's, see embeng_bo_read().
 */
int embeng_region_read(struct embeng_context *ctx, const struct embeng_mem *mem, u64 at, void *to,
		       u64 size)
{
	struct embeng_binding *b;
	int ret = -ENOENT;

	if (at > mem->length || size > mem->length - at)
		return -ERANGE;
	xa_lock(&ctx->regions);
	b = find_binding(ctx, mem->index, mem->generation);
	if (b && mem->offset <= b->length && mem->length <= b->length - mem->offset)
		ret = embeng_bo_read(b->bo, b->offset + mem->offset + at, to, size);
	xa_unlock(&ctx->regions);
	return ret;
}

/**
 * embeng_region_unbind() - end a region
 * @ctx: context, under its lock
 * @index: index of the key
 * @generation: generation of the key
 *
 * Return: 0 once the device does not access the memory by this key any more, -ENOENT, or -EINTR
 * when the caller was killed: the key is void, and the memory stays until the context ends.
 */
int embeng_region_unbind(struct embeng_context *ctx, u32 index, u32 generation)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_INVALIDATE,
		.context = ctx->number,
		.index = index,
	};
	struct embeng_binding *b = find_binding(ctx, index, generation);
	int ret;

	if (!b)
		return -ENOENT;
	/* Written before the command, after which nobody may resolve the key. */
	smp_store_release(&ctx->table[index].generation, 0);
	ret = embeng_context_end_command(ctx, &cmd);
	if (ret) {
		xa_lock(&ctx->regions);
		b->generation = 0;
		xa_unlock(&ctx->regions);
		return ret;
	}
	free_region_index(ctx, index);
	ctx->region_count--;
	uncharge_foreign_bo(ctx, b->bo);
	free_binding(ctx, b);
	return 0;
}

/**
 * embeng_region_unbind_ioctl() - DRM_IOCTL_EMBENG_UNBIND
 * @drm: device
 * @data: &struct embeng_accel_unbind
 * @file: open file with the context
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_region_unbind_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct embeng_accel_unbind *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	CLASS(embeng_lock, locked)(ctx);
	if (!locked)
		return -EINTR;
	return embeng_region_unbind(ctx, arg->index, arg->generation);
}

/**
 * embeng_region_release_all() - free all regions of a context that the device does not reach any
 * more
 * @ctx: context, under its lock
 */
void embeng_region_release_all(struct embeng_context *ctx)
{
	struct embeng_binding *b;
	unsigned long index;

	xa_for_each(&ctx->regions, index, b) {
		xa_erase(&ctx->regions, index);
		if (xa_is_value(b))
			continue;
		uncharge_foreign_bo(ctx, b->bo);
		free_binding(ctx, b);
	}
	ctx->region_count = 0;
}
