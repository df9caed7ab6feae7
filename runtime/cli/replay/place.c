// SPDX-License-Identifier: MIT
/*
 * The memory that the device of a recording works on: contexts with their regions, and queues. The
 * addresses of the recording mean nothing here, so each gets memory of this process instead.
 *
 * The recording may be hostile, so nothing that the engine could still use is freed: the memory of a
 * context goes when the engine has made another one of its number, at a reset, or at power off.
 */
#define _GNU_SOURCE
#include "place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "embeng_barrier.h"

#define ADMIN_ENTRIES 16u
#define PATIENCE_MS 5000u
#define PAGE 4096u

static void free_context(struct place_context *c)
{
	struct place_map *map;

	while ((map = c->maps)) {
		c->maps = map->next;
		munmap(map->data, map->bytes);
		free(map);
	}
	free(c->table);
	free(c->segments);
	free(c->regions);
	free(c);
}

void place_free_all(struct twin *m)
{
	struct place_context *c;

	while ((c = m->contexts)) {
		m->contexts = c->next;
		free_context(c);
	}
	for (uint32_t i = 0; i < QUEUES_MOST; i++)
		free(m->queues[i].ring);
	memset(m->queues, 0, sizeof(m->queues));
}

static struct place_context *find_place_context(struct twin *m, uint32_t number)
{
	struct place_context *c = m->contexts;

	while (c && c->number != number)
		c = c->next;
	return c;
}

static void *zeroed_pages(uint64_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, PAGE, bytes))
		return NULL;
	return memset(p, 0, bytes);
}

static struct place_context *make_place_context(uint32_t number, uint32_t count)
{
	struct place_context *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->number = number;
	c->count = count;
	c->table = zeroed_pages((uint64_t)count * sizeof(*c->table));
	c->segments = calloc(count, sizeof(*c->segments));
	c->regions = calloc(count, sizeof(*c->regions));
	if (c->table && c->segments && c->regions)
		return c;
	free_context(c);
	return NULL;
}

/* -- queues -------------------------------------------------------------- */

static bool make_ring(struct twin *m, struct place_queue *q, uint32_t number, uint32_t sq,
		      uint32_t cq, uint32_t first)
{
	q->layout = embeng_ring_layout(sq, cq,
				       EMBENG_RING_MAPPED | EMBENG_RING_REPORTS |
					       EMBENG_RING_HEALTH | EMBENG_RING_COUNTS);
	q->ring = zeroed_pages(q->layout.size);
	q->doorbell = (struct embeng_doorbell *)(m->doorbells +
						 (uint64_t)number *
							 *twin_register(
								 m, EMBENG_REG_DOORBELL_STRIDE));
	q->tail = first;
	return q->ring;
}

/* A new queue begins at the indices that its doorbell holds. */
static void ring_at(struct place_queue *q)
{
	*q->doorbell = (struct embeng_doorbell){.sq_tail = q->tail};
}

bool place_admin_ring(struct twin *m)
{
	struct place_queue *q = &m->queues[0];
	const uint64_t entries = ADMIN_ENTRIES;

	if (!q->ring && !make_ring(m, q, 0, ADMIN_ENTRIES, ADMIN_ENTRIES, 0))
		return false;
	q->alive = true;
	memset(q->ring, 0, q->layout.size);
	q->tail = 0;
	ring_at(q);
	memcpy(m->registers + EMBENG_REG_ADMIN_RING, &q->ring, sizeof(q->ring));
	memcpy(m->registers + EMBENG_REG_ADMIN_SQ_ENTRIES, &entries, 4);
	memcpy(m->registers + EMBENG_REG_ADMIN_CQ_ENTRIES, &entries, 4);
	return true;
}

static void put_command(struct place_queue *q, const void *command)
{
	uint32_t slot = q->tail & (q->layout.sq_entries - 1);

	memcpy(q->ring + q->layout.sq + (uint64_t)slot * sizeof(struct embeng_cmd), command,
	       sizeof(struct embeng_cmd));
	EMBENG_STORE_RELEASE(&q->doorbell->sq_tail, ++q->tail);
}

static bool is_taken(struct twin *m)
{
	return EMBENG_LOAD_ACQUIRE(&drive_header(m->submitted)->sq_head) == m->submitted->tail;
}

static enum twin_result submit_entry(struct twin *m, struct place_queue *q, const void *command)
{
	put_command(q, command);
	m->submitted = q;
	return twin_until(m, ENGINE_RUN_ACCEPT, is_taken, PATIENCE_MS);
}

enum twin_result twin_submit(struct twin *m, const struct embeng_recording_command *command)
{
	struct place_queue *q = command->queue && command->queue < m->queue_count
					? &m->queues[command->queue]
					: NULL;

	if (!m->engine || !q || !q->alive || q->context != command->context)
		return twin_fail(m, "there is no queue %u of context %u for a command",
				 command->queue, command->context);
	if (q->tail != command->index)
		return twin_fail(m,
				 "the command has the index %u of queue %u, where %u is next: "
				 "commands are missing",
				 command->index, command->queue, q->tail);
	return submit_entry(m, q, &command->command);
}

/* -- admin commands ------------------------------------------------------ */

static bool is_at_rest(struct twin *m)
{
	return !engine_run(m->engine, ENGINE_RUN_ACCEPT);
}

/* Return: once it is begun, and all that ends with it has ended. */
static enum twin_result submit_admin(struct twin *m, const struct embeng_admin_cmd *command)
{
	enum twin_result result;

	if (!m->queues[0].alive)
		return twin_fail(m, "there is an admin command before a boot");
	result = submit_entry(m, &m->queues[0], command);
	if (result == TWIN_WAITS)
		return twin_fail(m, "the device does not take an admin command");
	return result ? result : twin_until(m, ENGINE_RUN_ACCEPT, is_at_rest, PATIENCE_MS);
}

static enum twin_result create_context(struct twin *m, struct embeng_admin_cmd command,
				       const uint32_t *status)
{
	uint32_t count = command.count < m->region_limit ? command.count : m->region_limit;
	struct place_context *old = find_place_context(m, command.context), **link = &m->contexts;
	struct place_context *c = make_place_context(command.context, count ? count : 1);
	enum twin_result result;

	if (!c)
		return twin_fail(m, "there is no memory for context %u", command.context);
	command.address = (uintptr_t)c->table;
	result = submit_admin(m, &command);
	if (result || *status) {
		free_context(c);
		return result;
	}
	while (old && *link != old)
		link = &(*link)->next;
	if (old) {
		*link = old->next;
		free_context(old);
	}
	c->next = m->contexts;
	m->contexts = c;
	return TWIN_OK;
}

static enum twin_result create_queue(struct twin *m, struct embeng_admin_cmd command,
				     uint32_t first, const uint32_t *status)
{
	struct place_queue q = {.context = command.context, .alive = true};
	uint32_t sq = command.sq_entries, cq = command.cq_entries;
	struct embeng_doorbell before;
	struct place_queue *old = command.queue < m->queue_count ? &m->queues[command.queue] : NULL;
	enum twin_result result;

	/* A queue that cannot be is refused before its ring is looked at. */
	if (!old || !command.queue || sq > EMBENG_SQ_ENTRIES_MAX || cq > 2 * EMBENG_SQ_ENTRIES_MAX)
		return submit_admin(m, &command);
	if (!make_ring(m, &q, command.queue, sq, cq, first))
		return twin_fail(m, "there is no memory for queue %u", command.queue);
	command.flags = 0;
	command.sq_index = command.cq_index = 0;
	command.address = (uintptr_t)q.ring;
	before = *q.doorbell;
	ring_at(&q);
	result = submit_admin(m, &command);
	if (result || *status) {
		*q.doorbell = before;
		free(q.ring);
		return result;
	}
	free(old->ring);
	*old = q;
	return TWIN_OK;
}

enum twin_result twin_admin(struct twin *m, const struct embeng_admin_cmd *command, uint32_t first,
			    const uint32_t *status)
{
	struct place_context *c = find_place_context(m, command->context);
	enum twin_result result;

	if (!m->engine)
		return twin_fail(m, "a device that is off gets an admin command");
	switch (command->opcode) {
	case EMBENG_ADMIN_CONTEXT_CREATE:
		return create_context(m, *command, status);
	case EMBENG_ADMIN_QUEUE_CREATE:
		return create_queue(m, *command, first, status);
	case EMBENG_ADMIN_INVALIDATE:
		if (c && command->index < c->count)
			EMBENG_STORE_RELEASE(&c->table[command->index].generation, 0);
		return submit_admin(m, command);
	case EMBENG_ADMIN_QUEUE_DESTROY:
		result = submit_admin(m, command);
		if (command->queue && command->queue < m->queue_count && !*status)
			m->queues[command->queue].alive = false;
		return result;
	default:
		return submit_admin(m, command);
	}
}

/* -- regions ------------------------------------------------------------- */

/* Memory that the index had is kept: a command that runs may still use it. */
static bool grow_region(struct place_context *c, struct place_region *r, uint64_t length)
{
	uint64_t bytes = length + PAGE - 1 - (length - 1) % PAGE;
	struct place_map *map;

	if (r->room >= length)
		return true;
	map = malloc(sizeof(*map));
	if (!map)
		return false;
	map->bytes = bytes;
	map->data = bytes < length ? MAP_FAILED
				   : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map->data == MAP_FAILED) {
		free(map);
		return false;
	}
	map->next = c->maps;
	c->maps = map;
	if (r->room)
		madvise(r->data, r->room, MADV_DONTNEED);
	r->data = map->data;
	r->room = bytes;
	return true;
}

enum twin_result twin_region(struct twin *m, const struct embeng_recording_region *region)
{
	struct place_context *c = find_place_context(m, region->context);
	struct embeng_region *entry;
	struct place_region *r;

	if (!c || region->index >= c->count || !region->generation || !region->length)
		return twin_fail(m, "there is no place for region %u of context %u", region->index,
				 region->context);
	r = &c->regions[region->index];
	if (!grow_region(c, r, region->length))
		return twin_fail(m, "there is no memory for a region of %llu bytes",
				 (unsigned long long)region->length);
	r->length = region->length;
	r->generation = region->generation;
	c->segments[region->index] = (struct embeng_segment){.address = (uintptr_t)r->data,
							     .length = r->length};
	entry = &c->table[region->index];
	entry->rights = region->rights;
	entry->length = region->length;
	entry->segments = (uintptr_t)&c->segments[region->index];
	entry->segment_count = 1;
	EMBENG_STORE_RELEASE(&entry->generation, region->generation);
	return TWIN_OK;
}

enum twin_result twin_memory(struct twin *m, const struct embeng_recording_memory *memory,
			     const void *bytes)
{
	struct place_context *c = find_place_context(m, memory->context);
	const struct embeng_mem *where = &memory->where;
	const struct place_region *r = c && where->index < c->count ? &c->regions[where->index]
								    : NULL;

	if (!r || r->generation != where->generation || where->offset > r->length ||
	    where->length > r->length - where->offset)
		return twin_fail(m,
				 "there is no region %u of context %u with the bytes of an "
				 "operand",
				 where->index, memory->context);
	memcpy(r->data + where->offset, bytes, where->length);
	return TWIN_OK;
}
