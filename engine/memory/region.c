// SPDX-License-Identifier: MIT
/*
 * The memory of a context, which commands name by key. The table of regions lies in host memory and
 * only the driver writes it. A region is mapped when a key of its generation is first used, and
 * stays mapped until it is invalidated, its key changes, or the context ends.
 *
 * A view holds its region, so that it is not unmapped meanwhile. The functions are called with
 * engine->lock held, but for region_get(), region_put() and region_put_all(), which take it.
 */
#include "record.h"

u16 region_table_map(struct context *c, u64 address, u32 count)
{
	struct embeng_segment segment = { address, (u64)count * sizeof(struct embeng_region) };
	void *host = c->engine->config.host, *charged;

	if (address % sizeof(struct embeng_region))
		return EMBENG_STATUS_ALIGNMENT;
	c->table = port_dma_map(host, &segment, 1, segment.length);
	if (!c->table)
		return EMBENG_STATUS_KEY;
	charged = port_charge_begin(c->table);
	c->regions = port_alloc(count * sizeof(struct region));
	port_charge_end(charged);
	if (!c->regions) {
		port_dma_unmap(host, c->table, segment.length);
		return EMBENG_STATUS_NO_MEMORY;
	}
	c->region_count = count;
	return EMBENG_STATUS_OK;
}

static void unmap_region(struct context *c, struct region *r)
{
	if (r->generation)
		port_dma_unmap(c->engine->config.host, r->data, r->length);
	memset(r, 0, sizeof(*r));
}

void region_table_unmap(struct context *c)
{
	u32 i;

	for (i = 0; i < c->region_count; i++)
		unmap_region(c, &c->regions[i]);
	port_free(c->regions);
	port_dma_unmap(c->engine->config.host, c->table,
		       (u64)c->region_count * sizeof(struct embeng_region));
}

bool region_invalidate(struct context *c, u32 index)
{
	if (c->regions[index].users)
		return false;
	unmap_region(c, &c->regions[index]);
	return true;
}

static u16 copy_segments(struct context *c, u64 address, u32 count, struct embeng_segment **out)
{
	struct embeng_segment where = { address, (u64)count * sizeof(where) };
	void *host = c->engine->config.host;
	void *list;

	if (!count || count > EMBENG_SEGMENTS_MAX)
		return EMBENG_STATUS_KEY;
	list = port_dma_map(host, &where, 1, where.length);
	if (!list)
		return EMBENG_STATUS_KEY;
	*out = port_alloc(where.length);
	if (*out)
		memcpy(*out, list, where.length);
	port_dma_unmap(host, list, where.length);
	return *out ? EMBENG_STATUS_OK : EMBENG_STATUS_NO_MEMORY;
}

static u16 map_region(struct context *c, struct region *r, const struct embeng_region *entry)
{
	struct embeng_segment *segments = NULL;
	u16 status;

	if (fault_strikes(c->engine, PORT_FAULT_REFUSE_REGION, c->number))
		return EMBENG_STATUS_KEY;
	status = copy_segments(c, entry->segments, entry->segment_count, &segments);

	if (status)
		return status;
	r->data = port_dma_map(c->engine->config.host, segments, entry->segment_count,
			       entry->length);
	port_free(segments);
	if (!r->data)
		return EMBENG_STATUS_KEY;
	r->generation = entry->generation;
	r->rights = entry->rights;
	r->length = entry->length;
	return EMBENG_STATUS_OK;
}

/* The region of that key, mapped. */
static u16 find_region(struct context *c, const struct embeng_mem *mem, struct region **out)
{
	struct embeng_region *shared = &c->table[mem->index];
	struct region *r = &c->regions[mem->index];
	struct embeng_region entry;
	u16 status = EMBENG_STATUS_OK;

	if (!mem->generation || EMBENG_LOAD_ACQUIRE(&shared->generation) != mem->generation)
		return EMBENG_STATUS_KEY;
	*out = r;
	if (r->generation == mem->generation)
		return EMBENG_STATUS_OK;
	if (r->users)
		return EMBENG_STATUS_KEY;
	unmap_region(c, r);
	entry = *shared;
	entry.generation = mem->generation;
	status = map_region(c, r, &entry);
	/* Unbound while it was copied: what was copied may be half of two entries. */
	EMBENG_FULL_BARRIER();
	if (!status && EMBENG_LOAD_ACQUIRE(&shared->generation) != mem->generation) {
		unmap_region(c, r);
		return EMBENG_STATUS_KEY;
	}
	if (!status)
		record_region(c, mem->index);
	return status;
}

static u16 check_access(const struct region *r, const struct embeng_mem *mem, u32 rights, u32 align,
			u32 field, u32 feature, struct fault *fault)
{
	u64 end = mem->offset + mem->length;

	if ((r->rights & rights) != rights)
		return fault_set(fault, EMBENG_STATUS_RIGHTS, field, feature, 0, rights, r->rights);
	if (end < mem->offset)
		return fault_set(fault, EMBENG_STATUS_BOUNDS, field, feature, 0, U64_MAX,
				 r->length);
	if (end > r->length)
		return fault_set(fault, EMBENG_STATUS_BOUNDS, field, feature, 0, end, r->length);
	if (align > 1 && mem->offset % align)
		return fault_set(fault, EMBENG_STATUS_ALIGNMENT, field, feature, 0, mem->offset,
				 align);
	return EMBENG_STATUS_OK;
}

u16 region_get_held(struct command *command, const struct embeng_mem *mem, u32 rights, u32 align,
		    u32 field, u32 feature, struct view *view)
{
	struct context *c = command->context;
	struct fault *fault = &command->fault;
	struct region *r = NULL;
	u16 status;

	memset(view, 0, sizeof(*view));
	if (mem->index >= c->region_count)
		return fault_set(fault, EMBENG_STATUS_KEY, field, feature, 0, mem->index,
				 c->region_count);
	status = find_region(c, mem, &r);
	if (status)
		return fault_set(fault, status, field, feature, 0, mem->generation, 0);
	status = check_access(r, mem, rights, align, field, feature, fault);
	if (status)
		return status;
	r->users++;
	c->accesses++;
	view->region = r;
	view->data = (u8 *)r->data + mem->offset;
	view->length = mem->length;
	record_access(command, mem, rights, view->data);
	return EMBENG_STATUS_OK;
}

u16 region_get(struct command *command, const struct embeng_mem *mem, u32 rights, u32 align,
	       u32 field, u32 feature, struct view *view)
{
	struct engine *e = command->context->engine;
	u16 status;

	port_lock(e->lock);
	status = region_get_held(command, mem, rights, align, field, feature, view);
	port_unlock(e->lock);
	return status;
}

static void put_held(struct context *context, struct view *view)
{
	if (view->region) {
		view->region->users--;
		context->accesses--;
	}
	memset(view, 0, sizeof(*view));
}

/* An INVALIDATE that waits for this is completed by the next engine_run(). */
void region_put_all(struct context *context, struct view *views, u32 count)
{
	u32 i;

	port_lock(context->engine->lock);
	for (i = 0; i < count; i++)
		put_held(context, &views[i]);
	port_unlock(context->engine->lock);
}

void region_put(struct context *context, struct view *view)
{
	if (view->region)
		region_put_all(context, view, 1);
}
