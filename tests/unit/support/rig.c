// SPDX-License-Identifier: MIT
/*
 * A device for tests of the queue layer: an engine on a port of the test's own, with admin queue,
 * contexts, queues and memory, run by the test's thread.
 */
#include "rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "builtin_image.h"

#define STRIDE 4096u
#define ADMIN_SQ 16u
#define ADMIN_CQ 32u
#define PATIENCE_NS 60000000000ull /* only a hang gets there */

static bool dma_ok(void *arg, u64 address, u64 length)
{
	struct rig *rig = arg;
	u32 i, count = __atomic_load_n(&rig->grant_count, __ATOMIC_ACQUIRE);

	for (i = 0; i < count; i++) {
		const struct rig_grant *g = &rig->grants[i];

		if (address >= g->address && length <= g->length &&
		    address - g->address <= g->length - length)
			return true;
	}
	return false;
}

static void on_interrupt(void *arg, u32 vector)
{
	struct rig *rig = arg;

	__atomic_fetch_add(&rig->interrupts[vector], 1, __ATOMIC_RELAXED);
}

static void *zeroed(u64 align, u64 length)
{
	void *p = aligned_alloc(align, (length + align - 1) / align * align);

	ck_assert_ptr_nonnull(p);
	return memset(p, 0, length);
}

void rig_grant(struct rig *rig, const void *data, u64 length)
{
	ck_assert_uint_lt(rig->grant_count, RIG_GRANTS);
	rig->grants[rig->grant_count] = (struct rig_grant){(u64)(size_t)data, length};
	__atomic_store_n(&rig->grant_count, rig->grant_count + 1, __ATOMIC_RELEASE);
}

static void make_ring(struct rig *rig, struct rig_queue *q, u32 number, u32 sq, u32 cq, u32 start)
{
	q->rig = rig;
	q->number = number;
	q->layout = embeng_ring_layout(sq, cq,
				       EMBENG_RING_MAPPED | EMBENG_RING_REPORTS |
					       EMBENG_RING_HEALTH | EMBENG_RING_COUNTS);
	q->ring = zeroed(64, q->layout.size);
	q->doorbell = (void *)((u8 *)rig->config.doorbells + (u64)number * STRIDE);
	q->tail = start;
	q->head = start;
	EMBENG_STORE_RELEASE(&q->doorbell->sq_tail, start);
	EMBENG_STORE_RELEASE(&q->doorbell->cq_head, start);
	rig_grant(rig, q->ring, q->layout.size);
}

struct rig *rig_power_on(u32 cores, u32 service)
{
	struct rig *rig = zeroed(64, sizeof(*rig));

	rig->host = (struct port_host){.dma_ok = dma_ok, .interrupt = on_interrupt, .arg = rig};
	rig->config = (struct engine_config){
		.host = &rig->host,
		.registers = zeroed(4096, EMBENG_REGISTERS_SIZE),
		.doorbells = zeroed(4096, STRIDE * RIG_QUEUES),
		.doorbell_stride = STRIDE,
		.queues = RIG_QUEUES,
		.vectors = 8,
		.cores = cores,
		.table_memory = 256u << 20,
		.service = service,
	};
	ck_assert_int_eq(engine_create(&rig->config, &rig->engine), 0);
	make_ring(rig, &rig->admin, 0, ADMIN_SQ, ADMIN_CQ, 0);
	reg_write64(rig->engine, EMBENG_REG_ADMIN_RING, (u64)(size_t)rig->admin.ring);
	reg_write32(rig->engine, EMBENG_REG_ADMIN_SQ_ENTRIES, ADMIN_SQ);
	reg_write32(rig->engine, EMBENG_REG_ADMIN_CQ_ENTRIES, ADMIN_CQ);
	return rig;
}

void rig_run(struct rig *rig)
{
	engine_kick(rig->engine);
	if (!rig->config.service)
		engine_run(rig->engine, ENGINE_RUN_ALL);
	else
		port_relax();
}

/* Runs until the register @reg is @value. */
static void await(struct rig *rig, u32 reg, u32 value)
{
	u64 until = port_now_ns() + PATIENCE_NS;

	while (reg_read32(rig->engine, reg) != value) {
		ck_assert_uint_lt(port_now_ns(), until);
		rig_run(rig);
	}
}

u32 rig_boot(struct rig *rig, const void *image, u64 length)
{
	struct engine *e = rig->engine;
	u32 sequence = reg_read32(e, EMBENG_REG_BOOT_SEQUENCE) + 1;

	rig_grant(rig, image, length);
	reg_write64(e, EMBENG_REG_BOOT_ADDRESS, (u64)(size_t)image);
	reg_write64(e, EMBENG_REG_BOOT_LENGTH, length);
	reg_write32(e, EMBENG_REG_BOOT_SEQUENCE, sequence);
	await(rig, EMBENG_REG_BOOT_DONE, sequence);
	return reg_read32(e, EMBENG_REG_BOOT_STATE);
}

void rig_warm_reset(struct rig *rig)
{
	u32 sequence = reg_read32(rig->engine, EMBENG_REG_CONTROL_SEQUENCE) + 1;

	reg_write32(rig->engine, EMBENG_REG_CONTROL, EMBENG_CONTROL_RESET);
	reg_write32(rig->engine, EMBENG_REG_CONTROL_SEQUENCE, sequence);
	await(rig, EMBENG_REG_CONTROL_DONE, sequence);
}

void rig_free(struct rig *rig)
{
	u32 i;

	engine_destroy(rig->engine);
	for (i = 0; i < RIG_CONTEXTS; i++) {
		free(rig->contexts[i].table);
		free(rig->contexts[i].segments);
	}
	for (i = 0; i < RIG_QUEUES; i++) {
		if (rig->queues[i])
			free(rig->queues[i]->ring);
		free(rig->queues[i]);
	}
	free(rig->admin.ring);
	free(rig->config.registers);
	free(rig->config.doorbells);
	free(rig);
}

struct rig *rig_new(u32 cores, u32 service)
{
	struct rig *rig = rig_power_on(cores, service);

	ck_assert_uint_eq(rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image)),
			  EMBENG_BOOT_RUNNING);
	rig_context(rig, 0);
	return rig;
}

void rig_admin_submit(struct rig *rig, const struct embeng_admin_cmd *cmd)
{
	rig_submit(&rig->admin, cmd);
}

struct embeng_cqe rig_admin(struct rig *rig, const struct embeng_admin_cmd *cmd)
{
	rig_submit(&rig->admin, cmd);
	return rig_wait(&rig->admin);
}

void rig_context(struct rig *rig, u32 number)
{
	struct rig_context *c = &rig->contexts[number];
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_CONTEXT_CREATE, .context = number, .count = RIG_REGIONS};

	if (!c->table) {
		c->table = zeroed(64, RIG_REGIONS * sizeof(*c->table));
		c->segments = zeroed(64, RIG_REGIONS * sizeof(*c->segments));
		rig_grant(rig, c->table, RIG_REGIONS * sizeof(*c->table));
		rig_grant(rig, c->segments, RIG_REGIONS * sizeof(*c->segments));
	}
	cmd.address = (u64)(size_t)c->table;
	ck_assert_uint_eq(rig_admin(rig, &cmd).status, EMBENG_STATUS_OK);
}

struct embeng_mem rig_bind(struct rig *rig, u32 context, void *data, u64 length, u32 rights)
{
	struct rig_context *c = &rig->contexts[context];
	struct embeng_mem mem = {.index = c->used++, .generation = ++c->count, .length = length};
	struct embeng_region *entry = &c->table[mem.index];

	ck_assert_uint_lt(mem.index, RIG_REGIONS);
	rig_grant(rig, data, length);
	c->segments[mem.index] = (struct embeng_segment){(u64)(size_t)data, length};
	entry->rights = rights;
	entry->length = length;
	entry->segments = (u64)(size_t)&c->segments[mem.index];
	entry->segment_count = 1;
	EMBENG_STORE_RELEASE(&entry->generation, mem.generation);
	return mem;
}

void rig_unbind(struct rig *rig, u32 context, const struct embeng_mem *mem)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_INVALIDATE, .context = context, .index = mem->index};

	EMBENG_STORE_RELEASE(&rig->contexts[context].table[mem->index].generation, 0);
	rig_admin_submit(rig, &cmd);
}

static u32 free_number(struct rig *rig)
{
	u32 number = 1;

	while (rig->queues[number])
		number++;
	ck_assert_uint_lt(number, RIG_QUEUES);
	return number;
}

struct rig_queue *rig_queue_of(struct rig *rig, struct embeng_admin_cmd cmd, u32 start)
{
	struct rig_queue *q = zeroed(64, sizeof(*q));

	cmd.opcode = EMBENG_ADMIN_QUEUE_CREATE;
	cmd.queue = free_number(rig);
	make_ring(rig, q, cmd.queue, cmd.sq_entries, cmd.cq_entries, start);
	rig->queues[cmd.queue] = q;
	cmd.vector = cmd.queue % 8;
	cmd.address = (u64)(size_t)q->ring;
	ck_assert_uint_eq(rig_admin(rig, &cmd).status, EMBENG_STATUS_OK);
	return q;
}

struct rig_queue *rig_queue_at(struct rig *rig, u32 context, u32 kind, u32 replica, u32 sq_entries,
			       u32 cq_entries, u32 start)
{
	struct embeng_admin_cmd cmd = {
		.kind = (u8)kind,
		.replica = replica,
		.context = context,
		.sq_entries = sq_entries,
		.cq_entries = cq_entries,
	};

	return rig_queue_of(rig, cmd, start);
}

struct rig_queue *rig_queue(struct rig *rig, u32 context, u32 kind, u32 replica)
{
	return rig_queue_at(rig, context, kind, replica, 16, 32, 0);
}

struct embeng_ring_header *rig_header(struct rig_queue *q)
{
	return (void *)(q->ring + q->layout.header);
}

u32 rig_submit(struct rig_queue *q, const void *cmd)
{
	u32 slot = q->tail & (q->layout.sq_entries - 1);

	while (q->tail - embeng_observe_sq_head(&rig_header(q)->sq_head) >= q->layout.sq_entries)
		rig_run(q->rig);
	memcpy(q->ring + q->layout.sq + slot * sizeof(struct embeng_cmd), cmd,
	       sizeof(struct embeng_cmd));
	embeng_doorbell_tail(&q->doorbell->sq_tail, ++q->tail);
	return q->tail - 1;
}

bool rig_reap(struct rig_queue *q, struct embeng_cqe *cqe)
{
	u32 slot = q->head & (q->layout.cq_entries - 1);

	if (embeng_observe_cq_tail(&rig_header(q)->cq_tail) == q->head)
		return false;
	memcpy(cqe, q->ring + q->layout.cq + slot * sizeof(*cqe), sizeof(*cqe));
	embeng_doorbell_cq_head(&q->doorbell->cq_head, ++q->head);
	return true;
}

struct embeng_cqe rig_wait(struct rig_queue *q)
{
	u64 until = port_now_ns() + PATIENCE_NS;
	struct embeng_cqe cqe;

	while (!rig_reap(q, &cqe)) {
		ck_assert_uint_lt(port_now_ns(), until);
		rig_run(q->rig);
	}
	return cqe;
}

struct embeng_cqe rig_call(struct rig_queue *q, const struct embeng_cmd *cmd)
{
	rig_submit(q, cmd);
	return rig_wait(q);
}

struct embeng_queue_report rig_report(struct rig_queue *q)
{
	struct embeng_queue_report *shared = &rig_header(q)->report, copy = {0};

	do {
		copy.epoch = embeng_report_read_begin(&shared->epoch);
		copy.state = EMBENG_LOAD_ACQUIRE(&shared->state);
		copy.wait = EMBENG_LOAD_ACQUIRE(&shared->wait);
		copy.replica = EMBENG_LOAD_ACQUIRE(&shared->replica);
		copy.step = EMBENG_LOAD_ACQUIRE(&shared->step);
		copy.tail = EMBENG_LOAD_ACQUIRE(&shared->tail);
		copy.cq_head = EMBENG_LOAD_ACQUIRE(&shared->cq_head);
	} while (embeng_report_read_retry(&shared->epoch, copy.epoch));
	return copy;
}

void rig_assert_cqe(const struct embeng_cqe *cqe, u64 cookie, u16 status, u32 field)
{
	ck_assert_uint_eq(cqe->cookie, cookie);
	ck_assert_uint_eq(cqe->status, status);
	ck_assert_uint_eq(cqe->field, field);
}
