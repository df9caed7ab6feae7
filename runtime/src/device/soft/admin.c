// SPDX-License-Identifier: MIT
/*
 * The part of a driver that the soft device needs: its admin queue, a context, memory regions and
 * queues. A driver for hardware does this in the kernel.
 *
 * All memory belongs to the struct soft. s->lock is held for each admin command, one at a time.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/ask.h"
#include "base/error.h"
#include "soft.h"

#include "../../../../engine/engine.h"

#define ADMIN_ENTRIES 16u

#define PROGRAM_VECTOR 1u
#define LARGE_BYTES (2ul << 20)

/* Zeroed and aligned to pages, as all that the device reaches. */
static void *shared_alloc(uint64_t bytes)
{
	void *memory;

	if (posix_memalign(&memory, 4096, bytes))
		return NULL;
	return memset(memory, 0, bytes);
}

int soft_admin_memory(struct soft *s)
{
	struct device_queue queue = {
		.layout = embeng_ring_layout(ADMIN_ENTRIES, ADMIN_ENTRIES, 0),
		.doorbell = (struct embeng_doorbell *)s->doorbells,
	};

	s->admin_memory = queue.ring = shared_alloc(queue.layout.size);
	if (!s->admin_memory || ring_open(&s->admin, &queue))
		return fail(-ENOMEM, "soft device: no memory for its admin queue");
	if (soft_grant(s, queue.ring, queue.layout.size))
		return -ENOMEM;
	soft_write64(s, EMBENG_REG_ADMIN_RING, (uintptr_t)s->admin_memory);
	soft_write32(s, EMBENG_REG_ADMIN_SQ_ENTRIES, ADMIN_ENTRIES);
	soft_write32(s, EMBENG_REG_ADMIN_CQ_ENTRIES, ADMIN_ENTRIES);
	return 0;
}

/*
 * One command at a time, under the lock. It may have to wait for an access in flight, which ends by
 * itself: on another thread, or on this one in engine_run().
 */
static int run_admin_command(struct soft *s, struct embeng_admin_cmd *cmd, const char *what)
{
	struct request request = {0};
	int ret = ring_submit_admin(&s->admin, cmd, &request);

	if (ret)
		return fail(-EIO, "soft device: admin queue full at %s", what);
	engine_kick(s->engine);
	for (;;) {
		uint32_t seen = port_event_read(s->event);

		ring_reap(&s->admin);
		if (request.done)
			break;
		ring_arm(&s->admin);
		embeng_arm_then_recheck();
		if (!ring_reap(&s->admin) && !engine_run(s->engine, ENGINE_RUN_ALL))
			port_event_wait(s->event, seen, 1000000);
	}
	if (request.status)
		return error_set(request.status == EMBENG_STATUS_NO_MEMORY ? -ENOMEM : -EIO,
				 request.status, "soft device: %s failed with status %u", what,
				 request.status);
	return 0;
}

int soft_context_create(struct soft *s)
{
	struct embeng_admin_cmd cmd = {.opcode = EMBENG_ADMIN_CONTEXT_CREATE,
				       .context = SOFT_CONTEXT};
	uint32_t count = soft_read32(s, EMBENG_REG_REGIONS);

	s->region_count = count;
	s->regions = soft_map(count * sizeof(*s->regions));
	s->segments = calloc(count, sizeof(*s->segments));
	s->generations = calloc(count, sizeof(*s->generations));
	s->taken = calloc(count, sizeof(*s->taken));
	if (!s->regions || !s->segments || !s->generations || !s->taken)
		return fail(-ENOMEM, "soft device: no memory for its region table");
	if (soft_grant(s, s->regions, count * sizeof(*s->regions)) ||
	    soft_grant(s, s->segments, count * sizeof(*s->segments)))
		return -ENOMEM;
	s->next_queue = 1;
	cmd.address = (uintptr_t)s->regions;
	cmd.count = count;
	return run_admin_command(s, &cmd, "making a context");
}

void soft_admin_free(struct soft *s)
{
	ring_close(&s->admin);
	free(s->admin_memory);
	if (s->regions)
		munmap(s->regions, s->region_count * sizeof(*s->regions));
	free(s->segments);
	free(s->generations);
	free(s->taken);
	for (uint64_t i = 0; s->ring_memory && i < s->doorbell_bytes / DOORBELL_STRIDE; i++)
		free(s->ring_memory[i]);
	free(s->ring_memory);
}

static int free_entry(const struct soft *s, uint32_t *index)
{
	for (uint32_t i = 0; i < s->region_count; i++) {
		if (!s->taken[i] && s->generations[i] != UINT32_MAX) {
			*index = i;
			return 0;
		}
	}
	return fail(-ENOSPC, "all %u regions of the device are in use; free a buffer",
		    s->region_count);
}

static void publish_entry(struct soft *s, uint32_t i, void *data, uint64_t length, uint32_t rights)
{
	s->taken[i] = true;
	s->segments[i] = (struct embeng_segment){.address = (uintptr_t)data, .length = length};
	s->regions[i].rights = rights;
	s->regions[i].length = length;
	s->regions[i].segments = (uintptr_t)&s->segments[i];
	s->regions[i].segment_count = 1;
	EMBENG_STORE_RELEASE(&s->regions[i].generation, ++s->generations[i]);
}

static int bind_region(struct soft *s, struct region *region, uint32_t rights)
{
	uint32_t index;
	int ret;

	pthread_mutex_lock(&s->lock);
	ret = free_entry(s, &index);
	ret = ret ? ret : soft_grant(s, region->data, region->length);
	if (!ret) {
		publish_entry(s, index, region->data, region->length, rights);
		region->key = (struct embeng_mem){.index = index,
						  .generation = s->generations[index],
						  .length = region->length};
	}
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static void buffer_free(void *memory, uint64_t bytes)
{
	if (bytes < LARGE_BYTES)
		free(memory);
	else
		port_free_table(memory, bytes);
}

/* The system may take seconds for the pages of a large buffer. */
static int write_pages(char *memory, uint64_t bytes)
{
	int ret = 0;

	for (uint64_t at = 0, n; !ret && at < bytes; at += n) {
		n = bytes - at < LARGE_BYTES ? bytes - at : LARGE_BYTES;
		memset(memory + at, 0, n);
		ret = ask_program();
	}
	return ret;
}

/* Large memory is the tables' kind, on huge pages; written once, so that no step has its faults. */
static int buffer_alloc(uint64_t bytes, char **out)
{
	bool is_large = bytes >= LARGE_BYTES;
	char *memory = NULL;
	int ret = 0;

	if (bytes <= SIZE_MAX - 4096)
		memory = is_large ? port_alloc_table(bytes, NULL) : shared_alloc(bytes);
	if (!memory)
		return fail(-ENOMEM, "no memory for a buffer of %llu bytes",
			    (unsigned long long)bytes);
	if (is_large)
		ret = write_pages(memory, bytes);
	if (ret)
		buffer_free(memory, bytes);
	else
		*out = memory;
	return ret;
}

int soft_region_alloc(struct device *d, uint64_t bytes, struct region *out)
{
	struct region made = {.length = bytes};
	int ret = buffer_alloc(bytes, &made.data);

	if (ret)
		return ret;
	ret = bind_region((struct soft *)d, &made,
			  EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE);
	if (ret) {
		buffer_free(made.data, bytes);
		return ret;
	}
	*out = made;
	return 0;
}

int soft_region_register(struct device *d, void *p, uint64_t bytes, struct region *out)
{
	struct region made = {.length = bytes, .data = p, .foreign = true};
	int ret = bind_region((struct soft *)d, &made,
			      EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE);

	if (!ret)
		*out = made;
	return ret;
}

int soft_region_free(struct device *d, struct region *region)
{
	struct soft *s = (struct soft *)d;
	uint32_t index = region->key.index;
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_INVALIDATE, .context = SOFT_CONTEXT, .index = index};
	int ret;

	pthread_mutex_lock(&s->lock);
	EMBENG_STORE_RELEASE(&s->regions[index].generation, 0);
	ret = run_admin_command(s, &cmd, "taking memory back");
	if (!ret) {
		s->taken[index] = false;
		soft_revoke(s, s->segments[index].address);
	}
	pthread_mutex_unlock(&s->lock);
	if (!ret && !region->foreign)
		buffer_free(region->data, region->length);
	return ret;
}

static int create_locked(struct soft *s, const struct queue_config *config,
			 struct device_queue *out)
{
	struct device_queue queue = {
		.layout = embeng_ring_layout(config->sq_entries, config->cq_entries,
					     EMBENG_RING_MAPPED | EMBENG_RING_REPORTS |
						     EMBENG_RING_HEALTH | EMBENG_RING_COUNTS),
		.number = s->next_queue,
	};
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_QUEUE_CREATE,
		.kind = (uint8_t)config->kind,
		.replica = config->replica,
		.context = SOFT_CONTEXT,
		.queue = queue.number,
		.sq_entries = config->sq_entries,
		.cq_entries = config->cq_entries,
		.vector = PROGRAM_VECTOR,
	};
	int ret;

	if (queue.number >= s->device.queues)
		return fail(-ENOSPC, "all %u queues of the device are in use", s->device.queues);
	queue.ring = s->ring_memory[queue.number] = shared_alloc(queue.layout.size);
	if (!queue.ring)
		return fail(-ENOMEM, "no memory for a queue");
	if (soft_grant(s, queue.ring, queue.layout.size))
		return -ENOMEM;
	s->next_queue++;
	queue.doorbell = (struct embeng_doorbell *)(s->doorbells +
						    (uint64_t)queue.number *
							    soft_read32(
								    s, EMBENG_REG_DOORBELL_STRIDE));
	cmd.address = (uintptr_t)queue.ring;
	ret = run_admin_command(s, &cmd, "making a queue");
	if (!ret)
		*out = queue;
	return ret;
}

int soft_queue_create(struct device *d, const struct queue_config *config, struct device_queue *out)
{
	struct soft *s = (struct soft *)d;
	int ret;

	pthread_mutex_lock(&s->lock);
	ret = create_locked(s, config, out);
	pthread_mutex_unlock(&s->lock);
	return ret;
}
