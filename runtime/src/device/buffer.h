/* SPDX-License-Identifier: MIT */
/* Memory that the device reaches: the program's buffers and the library's own. */
#ifndef EMBENG_BUFFER_H
#define EMBENG_BUFFER_H

#include "device.h"
#include "region.h"

/*
 * Allocates zeroed memory, 4 KiB-aligned and bound with both rights. 0, -ENOMEM, -ENOSPC with a
 * sentence.
 */
int region_alloc(struct device *d, struct region *region, uint64_t bytes);
/*
 * Makes a region large enough. Its contents are lost if it grows. Called without e->lock, under
 * which it is exchanged: embeng_memory_export() looks at the regions of all replicas.
 */
int region_grow(struct embeng *e, struct region *region, uint64_t bytes);
/* The same for memory that the device is never to reach, of which it has none then. */
int region_grow_plain(struct embeng *e, struct region *region, uint64_t bytes);
/* Frees a region. It fails, and keeps the memory, only when the device does not let go of it. */
int region_free(struct device *d, struct region *region);

struct embeng_mem region_part(const struct region *region, uint64_t offset, uint64_t length);

struct buffer {
	struct region region;
	uint32_t users; /* batches and updates in flight */
};

struct buffers {
	struct buffer **list; /* by address */
	size_t count, capacity;
};

/* The buffers that a command uses. They are released together. */
struct pins {
	struct buffer **list;
	size_t count, capacity;
};

/*
 * buffers_find() - find the buffer that contains all of [p, p + bytes)
 * @align: p minus the buffer's start must be a multiple of this
 */
struct buffer *buffers_find(const struct buffers *buffers, const void *p, uint64_t bytes,
			    uint64_t align, struct embeng_mem *mem);
/* Index of the first buffer in the list that starts after @p. */
size_t buffers_behind(const struct buffers *buffers, uintptr_t p);
/* Adds a buffer that has its region. 0, or -ENOMEM with a sentence, and the caller keeps it. */
int buffers_add(struct buffers *buffers, struct buffer *buffer);
/* Takes the buffer at index @at off the list without freeing it. */
void buffers_remove(struct buffers *buffers, size_t at);
void buffers_free(struct device *d, struct buffers *buffers);

int pin(struct pins *pins, struct buffer *buffer);
void unpin_all(struct pins *pins);
void pins_free(struct pins *pins);

#endif
