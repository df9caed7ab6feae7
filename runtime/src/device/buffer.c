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

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "session/session.h"

int region_alloc(struct device *d, struct region *region, uint64_t bytes)
{
	return d->ops->region_alloc(d, bytes, region);
}

static void count_region(struct device *d, uint64_t bytes)
{
	__atomic_add_fetch(&d->region_bytes, bytes, __ATOMIC_RELAXED);
}

/* Under the lock, so that other threads see either the old region or the new one. */
static struct region exchange_region(struct embeng *e, struct region *region,
				     const struct region *by)
{
	struct region old;

	pthread_mutex_lock(&e->lock);
	old = *region;
	*region = *by;
	pthread_mutex_unlock(&e->lock);
	return old;
}

static int alloc_plain(struct region *region, uint64_t bytes)
{
	*region = (struct region){.length = bytes, .plain = true};
	region->data = aligned_alloc(4096, bytes);
	if (!region->data)
		return fail(-ENOMEM, "there is no memory for %" PRIu64 " bytes", bytes);
	memset(region->data, 0, bytes);
	return 0;
}

static int enlarge_region(struct embeng *e, struct region *region, uint64_t bytes, bool plain)
{
	struct device *d = e->device;
	struct region larger, old;
	int ret;

	if (region->length >= bytes && region->data)
		return 0;
	ret = plain ? alloc_plain(&larger, layout_region(bytes))
		    : region_alloc(d, &larger, layout_region(bytes));
	if (ret)
		return ret;
	larger.counted = true;
	count_region(d, larger.length);
	old = exchange_region(e, region, &larger);
	ret = region_free(d, &old);
	if (ret) {
		larger = exchange_region(e, region, &old);
		region_free(d, &larger);
	}
	return ret;
}

int region_grow(struct embeng *e, struct region *region, uint64_t bytes)
{
	return enlarge_region(e, region, bytes, false);
}

int region_grow_plain(struct embeng *e, struct region *region, uint64_t bytes)
{
	return enlarge_region(e, region, bytes, true);
}

int region_free(struct device *d, struct region *region)
{
	uint64_t counted = region->counted ? region->length : 0;
	int ret = 0;

	if (!region->data)
		return 0;
	if (region->plain)
		free(region->data);
	else
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

size_t buffers_behind(const struct buffers *buffers, uintptr_t p)
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
	size_t behind = buffers_behind(buffers, (uintptr_t)p);
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

int buffers_add(struct buffers *buffers, struct buffer *buffer)
{
	size_t at = buffers_behind(buffers, (uintptr_t)buffer->region.data);
	int ret = grow_list(&buffers->list, buffers->count, &buffers->capacity);

	if (ret)
		return ret;
	memmove(buffers->list + at + 1, buffers->list + at,
		(buffers->count - at) * sizeof(*buffers->list));
	buffers->list[at] = buffer;
	buffers->count++;
	return 0;
}

void buffers_remove(struct buffers *buffers, size_t at)
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
