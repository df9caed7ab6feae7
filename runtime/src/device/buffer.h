/* SPDX-License-Identifier: MIT */
/* Memory that the device reaches: the program's buffers and the library's own. */
#ifndef EMBENG_BUFFER_H
#define EMBENG_BUFFER_H

#include "device.h"
#include "region.h"

/* Zeroed, 4 KiB-aligned, bound with both rights. 0, -ENOMEM, -ENOSPC with a sentence. */
int region_alloc(struct device *d, struct region *region, uint64_t bytes);
/*
 * Keeps what is large enough; contents are lost when it grows. Without e->lock, under which it is
 * exchanged: embeng_memory_export() looks at the regions of all replicas.
 */
int region_grow(struct embeng *e, struct region *region, uint64_t bytes);
/* Fails, keeping the memory, only when the device does not let go of it. */
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

/* Buffers that a command uses, released together. */
struct pins {
	struct buffer **list;
	size_t count, capacity;
};

/*
 * buffers_find() - the buffer that [p, p + bytes) lies wholly in
 * @align: p - start must be a multiple of it
 */
struct buffer *buffers_find(const struct buffers *buffers, const void *p, uint64_t bytes,
			    uint64_t align, struct embeng_mem *mem);
/* The first place whose buffer starts behind @p. */
size_t buffers_behind(const struct buffers *buffers, uintptr_t p);
/* 0, or -ENOMEM with a sentence; @buffer, which has its region, stays the caller's. */
int buffers_add(struct buffers *buffers, struct buffer *buffer);
/* Takes the buffer at a place off the list; it is not freed. */
void buffers_remove(struct buffers *buffers, size_t at);
void buffers_free(struct device *d, struct buffers *buffers);

int pin(struct pins *pins, struct buffer *buffer);
void unpin_all(struct pins *pins);
void pins_free(struct pins *pins);

#endif
