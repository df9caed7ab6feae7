/* SPDX-License-Identifier: MIT */
/* The model layer without queues: commands go through model_*() by hand. */
#ifndef EMBENG_TESTS_DIRECT_H
#define EMBENG_TESTS_DIRECT_H

#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "engine/hash/crc32c.h"
#include "engine/model/model.h"

#define DIRECT_ARENA (64ull << 20)
#define DIRECT_REPLICAS 4

struct direct {
	struct engine engine;
	struct context context;
	struct embeng_region table[4];
	struct region regions[4];
	u8 *arena;
	u64 used;
	struct queue input[DIRECT_REPLICAS], gradient[DIRECT_REPLICAS], inference, transfer;
	struct wait wait; /* the wait of the last command that did not run */
};

static inline void direct_queue(struct direct *d, struct queue *q, u32 kind, u32 replica)
{
	q->context = &d->context;
	q->kind = kind;
	q->replica = replica;
}

static inline struct direct *direct_new(u32 cores, const char *variant)
{
	struct direct *d = calloc(1, sizeof(*d));
	struct embeng_caps *caps = &d->engine.caps;

	fetch_plan_fill(&d->engine.fetch, &(struct fetch_machine){.vendor = FETCH_VENDOR_OTHER});
	d->engine.config.registers = calloc(1, EMBENG_REGISTERS_SIZE);
	d->engine.config.cores = cores;
	d->engine.lock = port_mutex_new();
	d->engine.kernels = kernel_select(variant);
	*caps = (struct embeng_caps){
		.features = EMBENG_CAP_PIPELINING | EMBENG_CAP_QUANTIZATION |
			    EMBENG_CAP_PARTITIONED | EMBENG_CAP_SUMS | EMBENG_CAP_STATS_NOW |
			    EMBENG_CAP_EXCHANGE | EMBENG_CAP_SHARDS,
		.cores = cores,
		.table_memory = 1ull << 44,
		.dim = 4096,
		.tables = 64,
		.model_features = 64,
		.replicas = DIRECT_REPLICAS,
		.step_depth = 4,
		.ids = 1u << 24,
		.samples = 1u << 24,
		.combiners = 15,
#define DIRECT_OPTIMIZER(name, value) | 1u << (value)
		.optimizers = 1u << EMBENG_OPTIMIZER_NONE EMBENG_OPTIMIZER_TABLE(DIRECT_OPTIMIZER),
	};
	d->engine.workers = workers_new(&d->engine, cores, heartbeat_piece);
	d->context.engine = &d->engine;
	d->context.table = d->table;
	d->context.regions = d->regions;
	d->context.region_count = 4;
	/* Not malloc(), which writes to all of it where MALLOC_PERTURB_ says so. */
	d->arena = mmap(NULL, DIRECT_ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	ck_assert(d->arena != MAP_FAILED);
	d->table[1].generation = 7;
	d->regions[1] = (struct region){.generation = 7, .length = DIRECT_ARENA, .data = d->arena};
	d->regions[1].rights = EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE;
	for (u32 r = 0; r < DIRECT_REPLICAS; r++) {
		direct_queue(d, &d->input[r], EMBENG_QUEUE_INPUT, r);
		direct_queue(d, &d->gradient[r], EMBENG_QUEUE_GRADIENT, r);
	}
	direct_queue(d, &d->inference, EMBENG_QUEUE_INFERENCE, 0);
	direct_queue(d, &d->transfer, EMBENG_QUEUE_TRANSFER, 0);
	return d;
}

static inline void direct_free(struct direct *d)
{
	model_destroy(&d->context);
	context_pcsr_free(&d->context);
	context_exchange_free(&d->context);
	ck_assert_uint_eq(d->engine.table_memory_used, 0);
	workers_free(d->engine.workers);
	port_mutex_free(d->engine.lock);
	free(d->engine.config.registers);
	munmap(d->arena, DIRECT_ARENA);
	free(d);
}

/* Arena memory and its key. */
static inline void *direct_memory(struct direct *d, u64 bytes, struct embeng_mem *mem)
{
	void *data = d->arena + d->used;

	*mem = (struct embeng_mem){1, 7, d->used, bytes};
	d->used += (bytes + 63) & ~63ull;
	ck_assert_uint_le(d->used, DIRECT_ARENA);
	memset(data, 0, bytes);
	return data;
}

static inline struct command *direct_command(struct queue *q, u16 opcode)
{
	struct command *command = calloc(1, sizeof(*command));

	command->cmd.opcode = opcode;
	command->queue = q;
	command->context = q->context;
	return command;
}

/* Return: READY when it was accepted; FAILED: it was released. */
static inline enum verdict direct_submit(struct direct *d, struct command *command)
{
	enum verdict verdict;
	u16 status;

	port_lock(d->engine.lock);
	verdict = model_admit(command, &d->wait);
	port_unlock(d->engine.lock);
	if (verdict != VERDICT_READY)
		return verdict;
	status = model_accept(command);
	ck_assert_uint_eq(status, command->fault.status);
	port_lock(d->engine.lock);
	model_commit(command, status);
	if (status)
		model_release(command);
	port_unlock(d->engine.lock);
	return status ? VERDICT_FAILED : VERDICT_READY;
}

/* Runs an accepted command. With WAIT it stays as it is. */
static inline enum verdict direct_try(struct direct *d, struct command *command)
{
	enum verdict verdict;

	port_lock(d->engine.lock);
	verdict = model_ready(command, &d->wait);
	port_unlock(d->engine.lock);
	if (verdict == VERDICT_WAIT)
		return verdict;
	if (verdict == VERDICT_READY)
		model_run(command);
	port_lock(d->engine.lock);
	model_finish(command);
	model_release(command);
	port_unlock(d->engine.lock);
	ck_assert_int_eq(d->regions[1].users, 0);
	return command->fault.status ? VERDICT_FAILED : VERDICT_READY;
}

/* One command from beginning to end. Return: its status. */
static inline u16 direct_do(struct direct *d, struct command *command)
{
	u16 status;

	if (direct_submit(d, command) == VERDICT_READY)
		ck_assert_int_ne(direct_try(d, command), VERDICT_WAIT);
	status = command->fault.status;
	free(command);
	return status;
}

static inline u16 direct_rows(struct direct *d, u16 opcode, u32 table, u32 slot, u64 first,
			      u64 count, void **data)
{
	struct command *command = direct_command(&d->transfer, opcode);
	u64 row = table_row_bytes(&d->context.model->tables[table], slot);
	struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);

	rows->table = table;
	rows->slot = slot;
	rows->first = first;
	rows->count = count;
	*data = direct_memory(d, count * row, &rows->data);
	command->cmd.after = d->context.model->applied;
	return direct_do(d, command);
}

/* A blob under construction. */
struct direct_blob {
	u8 data[65536];
	struct embeng_blob_header header;
	u64 length;
};

static inline void blob_record(struct direct_blob *b, u16 type, const void *record, u32 length)
{
	struct embeng_record head = {type, EMBENG_RECORD_MANDATORY, length};

	if (!b->length)
		b->length = sizeof(b->header);
	memcpy(b->data + b->length, record, length);
	memcpy(b->data + b->length, &head, sizeof(head));
	b->length += length;
	b->header.record_count++;
}

static inline void blob_seal(struct direct_blob *b)
{
	b->header.magic = EMBENG_BLOB_MAGIC;
	b->header.version = EMBENG_BLOB_VERSION;
	b->header.length = b->length;
	b->header.crc32c = 0;
	b->header.hash = fnv1a(FNV1A_START, b->data + sizeof(b->header),
			       b->length - sizeof(b->header));
	memcpy(b->data, &b->header, sizeof(b->header));
	b->header.crc32c = crc32c(0, b->data, b->length);
	memcpy(b->data, &b->header, sizeof(b->header));
}

static inline u16 direct_load(struct direct *d, const struct direct_blob *b)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_MODEL_LOAD);

	memcpy(direct_memory(d, b->length, &command->cmd.desc), b->data, b->length);
	return direct_do(d, command);
}

#endif
