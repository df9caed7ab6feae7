// SPDX-License-Identifier: MIT
/*
 * Memory of the program that the device reaches: embeng_buffer_alloc() and what belongs to it. A
 * buffer lives until it is freed or its handle is closed, and is not freed while a batch or an
 * update uses it. e->lock is taken here for the list of buffers, not while memory is made.
 */
#include <stdlib.h>

#include "session.h"

static struct buffer *new_buffer(void)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		fail(-ENOMEM, "no memory for a buffer");
	return buffer;
}

/* Takes @buffer, whose region is made; frees both on failure. */
static void *keep_buffer(struct embeng *e, struct buffer *buffer)
{
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = buffers_add(&e->buffers, buffer);
	pthread_mutex_unlock(&e->lock);
	if (!ret)
		return buffer->region.data;
	region_free(e->device, &buffer->region);
	free(buffer);
	return NULL;
}

void *embeng_buffer_alloc(struct embeng *e, size_t bytes)
{
	struct buffer *buffer;

	if (session_check(e, "embeng_buffer_alloc"))
		return NULL;
	if (!bytes) {
		fail(-EINVAL, "embeng_buffer_alloc: a buffer of 0 bytes; ask for one at least");
		return NULL;
	}
	buffer = new_buffer();
	if (!buffer)
		return NULL;
	if (region_alloc(e->device, &buffer->region, bytes)) {
		free(buffer);
		return NULL;
	}
	return keep_buffer(e, buffer);
}

void *embeng_buffer_import(struct embeng *e, int dmabuf, size_t *bytes)
{
	struct buffer *buffer;
	void *data;

	if (session_check(e, "embeng_buffer_import"))
		return NULL;
	if (!e->device->ops->region_import) {
		fail(-ENOTSUP, "embeng_buffer_import: the soft device shares no memory");
		return NULL;
	}
	buffer = new_buffer();
	if (!buffer)
		return NULL;
	if (e->device->ops->region_import(e->device, dmabuf, &buffer->region)) {
		free(buffer);
		return NULL;
	}
	data = keep_buffer(e, buffer);
	if (data && bytes)
		*bytes = buffer->region.length;
	return data;
}

/* Keys begin at a multiple of the widest element, so that each array's offset is one of its own. */
#define REGISTER_ALIGN 8u

/* Two regions of one address would make it a matter of chance which is used. e->lock is held. */
static int check_apart(const struct embeng *e, const struct region *region)
{
	const char *end = region->data + region->length;
	size_t behind = buffers_behind(&e->buffers, (uintptr_t)end - 1);
	const struct region *before = behind ? &e->buffers.list[behind - 1]->region : NULL;

	if (before && before->data + before->length > region->data)
		return fail(-EEXIST,
			    "embeng_memory_register: memory at %p is in a buffer of this handle or "
			    "registered already",
			    (void *)region->data);
	return 0;
}

static int register_buffer(struct embeng *e, struct buffer *buffer)
{
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = check_apart(e, &buffer->region);
	pthread_mutex_unlock(&e->lock);
	ret = ret ? ret
		  : e->device->ops->region_register(e->device, buffer->region.data,
						    buffer->region.length, &buffer->region);
	if (ret)
		free(buffer);
	else if (!keep_buffer(e, buffer))
		ret = -ENOMEM;
	return ret;
}

static char *begin_of(void *p)
{
	return (char *)p - (uintptr_t)p % REGISTER_ALIGN;
}

int embeng_memory_register(struct embeng *e, void *p, size_t bytes)
{
	int ret = session_check(e, "embeng_memory_register");
	struct buffer *buffer;

	if (ret)
		return ret;
	if (!p || !bytes || bytes > UINTPTR_MAX - (uintptr_t)p)
		return fail(-EINVAL, "embeng_memory_register: %zu bytes at %p", bytes, p);
	if (!e->device->ops->region_register)
		return fail(-ENOTSUP,
			    "embeng_memory_register: %s reaches buffers of embeng_buffer_alloc() "
			    "alone; other memory is copied",
			    e->device->info.name);
	buffer = new_buffer();
	if (!buffer)
		return -ENOMEM;
	buffer->region.data = begin_of(p);
	buffer->region.length = bytes + (uintptr_t)p % REGISTER_ALIGN;
	return register_buffer(e, buffer);
}

/* @foreign: it is registered memory; otherwise a buffer. e->lock is held. */
static int take_out(struct embeng *e, void *p, bool foreign, struct buffer **out)
{
	const char *call = foreign ? "embeng_memory_unregister" : "embeng_buffer_free";
	char *begin = foreign ? begin_of(p) : p;
	size_t behind = buffers_behind(&e->buffers, (uintptr_t)begin);
	struct buffer *buffer = behind ? e->buffers.list[behind - 1] : NULL;

	if (!buffer || buffer->region.data != begin || buffer->region.foreign != foreign)
		return fail(-EINVAL, "%s: %p is not the start of %s of this handle", call, p,
			    foreign ? "registered memory" : "a buffer");
	session_reap(e);
	if (buffer->users)
		return fail(-EBUSY,
			    "%s: %u batches or updates still use the memory; "
			    "embeng_flush() waits for updates",
			    call, buffer->users);
	buffers_remove(&e->buffers, behind - 1);
	*out = buffer;
	return 0;
}

static int end_buffer(struct embeng *e, void *p, bool foreign)
{
	struct buffer *buffer;
	int ret;

	if (!e || fork_generation() != e->fork || !p)
		return 0;
	pthread_mutex_lock(&e->lock);
	ret = take_out(e, p, foreign, &buffer);
	pthread_mutex_unlock(&e->lock);
	if (ret)
		return ret;
	ret = region_free(e->device, &buffer->region);
	/* Memory that the device may still write to is better lost than reused. */
	free(ret ? NULL : buffer);
	return ret;
}

int embeng_buffer_free(struct embeng *e, void *p)
{
	return end_buffer(e, p, false);
}

int embeng_memory_unregister(struct embeng *e, void *p)
{
	return end_buffer(e, p, true);
}

/* The region that @p lies in, or NULL: a buffer, or what a view or embeng_gradient_buffer() gave. */
static const struct region *region_of(struct embeng *e, const void *p)
{
	struct embeng_mem mem;
	struct buffer *buffer = buffers_find(&e->buffers, p, 1, 1, &mem);
	const struct region *found = buffer ? &buffer->region : NULL;

	for (uint32_t i = 0; !found && i < e->replica_count; i++)
		found = slot_region(e, &e->replicas[i], p);
	return found;
}

int embeng_memory_export(struct embeng *e, const void *p, size_t *offset)
{
	const struct region *region;
	int ret = session_check(e, "embeng_memory_export");

	if (ret)
		return ret;
	if (!offset)
		return fail(-EINVAL, "embeng_memory_export: offset must be given");
	if (!e->device->ops->region_export)
		return fail(-ENOTSUP, "embeng_memory_export: the soft device shares no memory");
	pthread_mutex_lock(&e->lock);
	region = region_of(e, p);
	if (!region)
		ret = fail(-EINVAL, "embeng_memory_export: %p lies in no memory of this handle", p);
	else if (region->plain)
		ret = fail(-ENOTSUP,
			   "embeng_memory_export: with more replicas than a device has, their "
			   "activations and gradients are in memory that it does not reach");
	else
		ret = e->device->ops->region_export(e->device, region);
	if (ret >= 0)
		*offset = (size_t)((const char *)p - region->data);
	pthread_mutex_unlock(&e->lock);
	return ret;
}
