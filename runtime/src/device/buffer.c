// SPDX-License-Identifier: MIT
/*
 * Memory that the engine reaches: regions of the session, buffers of the program, and the pins that
 * keep a buffer while a batch or an update uses it.
 *
 * A region belongs to the structure that it is in. Buffers belong to the handle and live until
 * embeng_buffer_free() or until it is closed. e->lock guards the list of buffers and the pins;
 * regions are allocated and freed without it.
 */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#include "session/session.h"

int region_alloc(struct device *d, struct region *region, uint64_t bytes)
{
	return d->ops->region_alloc(d, bytes, region);
}

static void count_region(struct device *d, uint64_t bytes)
{
	__atomic_add_fetch(&d->region_bytes, bytes, __ATOMIC_RELAXED);
}

/* Whoever holds the lock sees one or the other. */
static struct region exchange(struct embeng *e, struct region *region, const struct region *by)
{
	struct region old;

	pthread_mutex_lock(&e->lock);
	old = *region;
	*region = *by;
	pthread_mutex_unlock(&e->lock);
	return old;
}

int region_grow(struct embeng *e, struct region *region, uint64_t bytes)
{
	struct device *d = e->device;
	struct region larger, old;
	int ret;

	if (region->length >= bytes && region->data)
		return 0;
	ret = region_alloc(d, &larger, layout_region(bytes));
	if (ret)
		return ret;
	larger.counted = true;
	count_region(d, larger.length);
	old = exchange(e, region, &larger);
	ret = region_free(d, &old);
	if (ret) {
		larger = exchange(e, region, &old);
		region_free(d, &larger);
	}
	return ret;
}

int region_free(struct device *d, struct region *region)
{
	uint64_t counted = region->counted ? region->length : 0;
	int ret;

	if (!region->data)
		return 0;
	ret = d->ops->region_free(d, region);
	if (ret)
		return ret;
	count_region(d, -counted);
	*region = (struct region){0};
	return 0;
}

struct embeng_mem region_part(const struct region *region, uint64_t offset, uint64_t length)
{
	return (struct embeng_mem){.index = region->key.index,
				   .generation = region->key.generation,
				   .offset = offset,
				   .length = length};
}

/* First place whose buffer starts behind @p. */
static size_t place_behind(const struct buffers *buffers, uintptr_t p)
{
	size_t low = 0, high = buffers->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uintptr_t)buffers->list[middle]->region.data <= p)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct buffer *buffers_find(const struct buffers *buffers, const void *p, uint64_t bytes,
			    uint64_t align, struct embeng_mem *mem)
{
	size_t behind = place_behind(buffers, (uintptr_t)p);
	struct buffer *buffer;
	uint64_t offset;

	if (!behind)
		return NULL;
	buffer = buffers->list[behind - 1];
	offset = (uintptr_t)p - (uintptr_t)buffer->region.data;
	if (offset >= buffer->region.length || bytes > buffer->region.length - offset ||
	    offset % align)
		return NULL;
	*mem = region_part(&buffer->region, offset, bytes);
	return buffer;
}

static int grow_list(struct buffer ***list, size_t count, size_t *capacity)
{
	size_t wanted = *capacity ? 2 * *capacity : 8;
	struct buffer **larger;

	if (count < *capacity)
		return 0;
	larger = realloc(*list, wanted * sizeof(*larger));
	if (!larger)
		return fail(-ENOMEM, "no memory to keep track of buffers");
	*list = larger;
	*capacity = wanted;
	return 0;
}

static int add(struct buffers *buffers, struct buffer *buffer)
{
	size_t at = place_behind(buffers, (uintptr_t)buffer->region.data);
	int ret = grow_list(&buffers->list, buffers->count, &buffers->capacity);

	if (ret)
		return ret;
	memmove(buffers->list + at + 1, buffers->list + at,
		(buffers->count - at) * sizeof(*buffers->list));
	buffers->list[at] = buffer;
	buffers->count++;
	return 0;
}

static void forget(struct buffers *buffers, size_t at)
{
	buffers->count--;
	memmove(buffers->list + at, buffers->list + at + 1,
		(buffers->count - at) * sizeof(*buffers->list));
}

void buffers_free(struct device *d, struct buffers *buffers)
{
	for (size_t i = 0; i < buffers->count; i++) {
		region_free(d, &buffers->list[i]->region);
		free(buffers->list[i]);
	}
	free(buffers->list);
	*buffers = (struct buffers){0};
}

int pin(struct pins *pins, struct buffer *buffer)
{
	int ret = grow_list(&pins->list, pins->count, &pins->capacity);

	if (ret)
		return ret;
	pins->list[pins->count++] = buffer;
	buffer->users++;
	return 0;
}

void unpin_all(struct pins *pins)
{
	while (pins->count)
		pins->list[--pins->count]->users--;
}

void pins_free(struct pins *pins)
{
	free(pins->list);
	*pins = (struct pins){0};
}

static struct buffer *new_buffer(void)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		fail(-ENOMEM, "no memory for a buffer");
	return buffer;
}

/* Takes @buffer, whose region is made; frees both on failure. */
static void *keep(struct embeng *e, struct buffer *buffer)
{
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = add(&e->buffers, buffer);
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
	return keep(e, buffer);
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
	data = keep(e, buffer);
	if (data && bytes)
		*bytes = buffer->region.length;
	return data;
}

static int take_out(struct embeng *e, void *p, struct buffer **out)
{
	size_t behind = place_behind(&e->buffers, (uintptr_t)p);
	struct buffer *buffer = behind ? e->buffers.list[behind - 1] : NULL;

	if (!buffer || buffer->region.data != p)
		return fail(-EINVAL, "embeng_buffer_free: %p is not the start of a buffer of this "
				     "handle", p);
	session_reap(e);
	if (buffer->users)
		return fail(-EBUSY,
			    "embeng_buffer_free: %u batches or updates still use the buffer; "
			    "embeng_flush() waits for updates", buffer->users);
	forget(&e->buffers, behind - 1);
	*out = buffer;
	return 0;
}

int embeng_buffer_free(struct embeng *e, void *p)
{
	struct buffer *buffer;
	int ret;

	if (!e || fork_generation() != e->fork || !p)
		return 0;
	pthread_mutex_lock(&e->lock);
	ret = take_out(e, p, &buffer);
	pthread_mutex_unlock(&e->lock);
	if (ret)
		return ret;
	ret = region_free(e->device, &buffer->region);
	/* Memory that the device may still write to is better lost than reused. */
	free(ret ? NULL : buffer);
	return ret;
}
