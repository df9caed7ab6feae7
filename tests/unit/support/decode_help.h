/* SPDX-License-Identifier: MIT */
/* Good files of each format that `embeng decode` reads without anything beside them. */
#ifndef EMBENG_TESTS_DECODE_HELP_H
#define EMBENG_TESTS_DECODE_HELP_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/blob/blob.h"
#include "../../../engine/hash/crc32c.h"
#include "embeng_recording.h"
#include "embeng_regs.h"

struct decode_file {
	const char *format;
	unsigned char *data;
	size_t size;
};

/* Appends bytes to the file. */
static inline void decode_put(struct decode_file *f, const void *bytes, size_t size)
{
	f->data = realloc(f->data, f->size + size);
	memcpy(f->data + f->size, bytes, size);
	f->size += size;
}

static inline struct embeng_mem decode_mem(uint64_t offset, uint64_t length)
{
	return (struct embeng_mem){3, 1, offset, length};
}

static inline void decode_put_record(struct decode_file *f, struct embeng_record *record,
				     uint16_t type, uint32_t length)
{
	record->type = type;
	record->flags = type == EMBENG_RECORD_NAME ? 0 : EMBENG_RECORD_MANDATORY;
	record->length = length;
	decode_put(f, record, length);
}

static inline void decode_put_blob_name(struct decode_file *f, uint32_t of, const char *name)
{
	struct embeng_record_name r = {.of = of};

	memcpy(r.name, name, strlen(name));
	decode_put_record(f, &r.head, EMBENG_RECORD_NAME, sizeof(r));
}

static inline void decode_make_blob(struct decode_file *f)
{
	struct embeng_blob_header h = {
		.magic = EMBENG_BLOB_MAGIC, .version = EMBENG_BLOB_VERSION, .record_count = 6};
	struct embeng_record_engine engine = {.replicas = 1, .table_count = 1, .feature_count = 1};
	struct embeng_record_table table = {.rows = 100,
					    .dim = 8,
					    .optimizer = EMBENG_OPTIMIZER_SGD,
					    .rate = 0x3f800000,
					    .clip_gradient_min = 0xff800000,
					    .clip_gradient_max = 0x7f800000,
					    .clip_weight_min = 0xff800000,
					    .clip_weight_max = 0x7f800000};
	struct embeng_record_feature feature = {0};
	struct embeng_record_shard shard = {.whole_rows = 400,
					    .first_row = 1,
					    .row_step = 4,
					    .whole_dim = 24,
					    .first_column = 16};

	decode_put(f, &h, sizeof(h));
	decode_put_record(f, &engine.head, EMBENG_RECORD_ENGINE, sizeof(engine));
	decode_put_record(f, &table.head, EMBENG_RECORD_TABLE, sizeof(table));
	decode_put_record(f, &feature.head, EMBENG_RECORD_FEATURE, sizeof(feature));
	decode_put_record(f, &shard.head, EMBENG_RECORD_SHARD, sizeof(shard));
	h.hash = fnv1a(FNV1A_START, f->data + sizeof(h), f->size - sizeof(h));
	decode_put_blob_name(f, EMBENG_RECORD_TABLE, "items");
	decode_put_blob_name(f, EMBENG_RECORD_FEATURE, "clicks");
	h.length = f->size;
	memcpy(f->data, &h, sizeof(h));
	h.crc32c = crc32c(0, f->data, f->size);
	memcpy(f->data, &h, sizeof(h));
}

static inline void decode_make_lookup(struct decode_file *f)
{
	struct embeng_lookup h = {.feature_count = 2,
				  .feature_stride = sizeof(struct embeng_lookup_feature),
				  .model_hash = 0x1234};
	struct embeng_lookup_feature csr = {.form = EMBENG_FORM_CSR,
					    .id_width = 8,
					    .offset_width = 4,
					    .sample_count = 3,
					    .id_count = 7,
					    .offsets = decode_mem(0, 16),
					    .ids = decode_mem(64, 56),
					    .activations = decode_mem(128, 96)};
	struct embeng_lookup_feature dense = {.feature = 1,
					      .form = EMBENG_FORM_DENSE,
					      .id_width = 4,
					      .sample_count = 3,
					      .id_count = 3,
					      .ids = decode_mem(256, 12),
					      .activations = decode_mem(512, 96)};

	decode_put(f, &h, sizeof(h));
	decode_put(f, &csr, sizeof(csr));
	decode_put(f, &dense, sizeof(dense));
}

static inline void decode_make_update(struct decode_file *f)
{
	struct embeng_update h = {.feature_count = 1,
				  .feature_stride = sizeof(struct embeng_update_feature),
				  .rate_count = 2,
				  .model_hash = 0x1234,
				  .rates = decode_mem(0, 8)};
	struct embeng_update_feature feature = {.gradients = decode_mem(64, 96)};

	decode_put(f, &h, sizeof(h));
	decode_put(f, &feature, sizeof(feature));
}

static inline void decode_make_rows(struct decode_file *f)
{
	struct embeng_rows rows = {
		.table = 2, .slot = 1, .first = 5, .count = 4, .data = decode_mem(0, 128)};

	decode_put(f, &rows, sizeof(rows));
}

static inline void decode_make_partition(struct decode_file *f)
{
	struct embeng_partition h = {.flavour = EMBENG_FLAVOUR_JAX,
				     .feature_count = 1,
				     .feature_stride = sizeof(struct embeng_partition_feature),
				     .cores = 4,
				     .device_cores = 2,
				     .columns = 400,
				     .row_pointers = decode_mem(0, 64),
				     .tokens = decode_mem(64, 128),
				     .samples = decode_mem(256, 128),
				     .gains = decode_mem(512, 128),
				     .result = decode_mem(1024, 128)};
	struct embeng_partition_feature feature = {.form = EMBENG_FORM_DENSE,
						   .id_width = 4,
						   .rows = 400,
						   .sample_count = 8,
						   .id_count = 8,
						   .ids = decode_mem(2048, 32)};

	decode_put(f, &h, sizeof(h));
	decode_put(f, &feature, sizeof(feature));
}

static inline void decode_make_exchange(struct decode_file *f)
{
	struct embeng_row_exchange h = {.table_count = 1,
					.table_stride = sizeof(struct embeng_exchange_table),
					.feature_count = 1,
					.feature_stride = sizeof(struct embeng_exchange_feature),
					.hosts = 4,
					.placement = EMBENG_PLACEMENT_MOD};
	struct embeng_exchange_table table = {
		.row_count = 400, .rows = decode_mem(0, 64), .result = decode_mem(64, 32)};
	struct embeng_exchange_feature feature = {.form = EMBENG_FORM_CSR,
						  .id_width = 4,
						  .offset_width = 8,
						  .sample_count = 3,
						  .id_count = 8,
						  .offsets = decode_mem(128, 32),
						  .ids = decode_mem(256, 32),
						  .data = decode_mem(512, 32)};

	decode_put(f, &h, sizeof(h));
	decode_put(f, &table, sizeof(table));
	decode_put(f, &feature, sizeof(feature));
}

/* A queue of 4 commands and 8 completions: three were submitted, two taken, and one is complete. */
static inline void decode_make_ring(struct decode_file *f)
{
	struct embeng_ring_header h = {
		.sq_head = 2, .heartbeat = 40, .cq_tail = 1, .sent = 1, .done = 1, .progress = 9};
	struct embeng_doorbell doorbell = {.sq_tail = 3, .cq_head = 1};
	struct embeng_cmd commands[4] = {
		{.opcode = EMBENG_OP_STATS, .cookie = 10, .desc = decode_mem(0, 1136), .arg = 2},
		{.opcode = EMBENG_OP_ROWS_READ,
		 .cookie = 11,
		 .after = 6,
		 .desc = decode_mem(0, 96)},
		{.opcode = EMBENG_OP_NOP, .cookie = 12},
	};
	struct embeng_cqe completions[8] = {{.cookie = 10,
					     .flags = EMBENG_CQE_DONE,
					     .feature = EMBENG_NO_INDEX,
					     .value = 1136,
					     .timestamp = 5000}};

	decode_put(f, &h, sizeof(h));
	decode_put(f, commands, sizeof(commands));
	decode_put(f, completions, sizeof(completions));
	decode_put(f, &doorbell, sizeof(doorbell));
}

static inline void decode_make_registers(struct decode_file *f)
{
	struct embeng_event_log log = {.magic = EMBENG_EVENT_MAGIC,
				       .record_bytes = sizeof(struct embeng_event),
				       .capacity = EMBENG_EVENTS,
				       .next = 2};
	unsigned char page[EMBENG_REGISTERS_SIZE] = {0};
	uint32_t magic = EMBENG_DEVICE_MAGIC, interface = EMBENG_INTERFACE_MINOR,
		 state = EMBENG_BOOT_RUNNING;

	log.events[1] = (struct embeng_event){.number = 1,
					      .kind = EMBENG_EVENT_POWER_ON,
					      .queue = EMBENG_EVENT_NO_QUEUE,
					      .time_ns = 77,
					      .context = EMBENG_NO_INDEX};
	memcpy(page + EMBENG_REG_MAGIC, &magic, 4);
	memcpy(page + EMBENG_REG_INTERFACE, &interface, 4);
	memcpy(page + EMBENG_REG_BOOT_STATE, &state, 4);
	memcpy(page + EMBENG_EVENT_LOG, &log, sizeof(log));
	decode_put(f, page, sizeof(page));
}

/* kmod/reset_dump.c writes such a text; tests/vm/report.sh decodes one that it wrote. */
static inline void decode_make_devcoredump(struct decode_file *f)
{
	static const char text[] =
		"embeng devcoredump 1\ndevice 0eb0:00:00.0\ncause standstill\nstill_ns 1204000000\n"
		"time_ns 88000000000\nfirmware 0x100000000\n"
		"resets 0 queues 0 engines 0 functions 0\n"
		"register MAGIC 0x474e424d\nregister INTERFACE 0x1\nregister STATUS 0x0\n"
		"register BOOT_STATE 0x3\nregister ADMIN_RING 0x104000\n"
		"context 4 program my trainer[77] regions 3 events 2\n"
		"  model hash 0xabc records 9\n"
		"  table 0 rows 100 dim 8 optimizer 1\n  table 1 rows 50 dim 4 optimizer 2\n"
		"  feature 0 table 0\n  feature 1 table 1\n"
		"  name of 2 index 0 \"items\"\n  name of 2 index 1 \"users\"\n"
		"  queue 7 kind 4 replica 0 priority 1 validated entries 16 32\n"
		"    sq_tail 3 sq_head 2 done 1 cq_head 1 cq_tail 1 sent 1 heartbeat 9\n"
		"    report 2 state 0 wait 0 replica 0 step 0 tail 1 cq_head 1\n"
		"    command 0 opcode 5 flags 0x0 cookie 0x1 step 0 after 0"
		" key 1:1 offset 0 length 256 arg 0x0\n"
		"    command 1 opcode 7 flags 0x0 cookie 0x2 step 0 after 0"
		" key 2:1 offset 0 length 96 arg 0x0 at fault\n"
		"    descriptor table 1 slot 0 first 1 count 2 fill 0\n"
		"    command 2 opcode 10 flags 0x0 cookie 0x3 step 0 after 0"
		" key 2:1 offset 96 length 1136 arg 0x0\n"
		"    completion 0 cookie 0x1 status 0 flags 2 field 0 feature 4294967295"
		" element 0 step 0 timestamp 55\n";

	decode_put(f, text, sizeof(text) - 1);
}

static inline void decode_make_trace(struct decode_file *f)
{
	static const char text[] =
		"# tracer: nop\n#\n"
		"      my task-77      [001] d..1.    12.000100: embeng_submit: context=4 queue=7 "
		"index=0"
		" count=2\n"
		"      my task-77      [001] d..1.    12.000110: embeng_submit_take: context=4 "
		"queue=7"
		" index=0 count=2\n"
		"         <idle>-0       [000] d.h1.    12.000200: embeng_complete: context=4 "
		"queue=7"
		" cookie=0xa status=0 flags=2\n"
		"         <idle>-0       [000] d.h1.    12.000300: embeng_event: context=4 queue=7"
		" cq_tail=1 report=2\n"
		"    kworker/0:1-9       [000] .....    12.000400: embeng_admin: opcode=5 context=4"
		" queue=0 index=3 result=0\n";

	decode_put(f, text, sizeof(text) - 1);
}

/* Appends an entry of a recording. */
static inline void decode_put_entry(struct decode_file *f, uint32_t number, uint16_t type,
				    const void *fixed, size_t size, const void *bytes, size_t count)
{
	static const unsigned char zeroes[8];
	size_t pad = -count % 8;
	struct embeng_recording_entry head = {.magic = EMBENG_RECORDING_MAGIC,
					      .type = type,
					      .length = sizeof(head) + size + count + pad,
					      .time_ns = 1000 * number,
					      .number = number};

	head.crc = crc32c(0, &head, sizeof(head));
	head.crc = crc32c(head.crc, fixed, size);
	head.crc = crc32c(crc32c(head.crc, bytes, count), zeroes, pad);
	decode_put(f, &head, sizeof(head));
	decode_put(f, fixed, size);
	decode_put(f, bytes, count);
	decode_put(f, zeroes, pad);
}

/* Makes the checksum of every entry of a recording right, up to the first that has no length. */
static inline void decode_mend_entries(struct decode_file *f)
{
	struct embeng_recording_entry head;

	for (size_t at = 0; f->size - at >= sizeof(head); at += head.length) {
		memcpy(&head, f->data + at, sizeof(head));
		if (head.length < sizeof(head) || head.length > f->size - at)
			break;
		head.crc = 0;
		memcpy(f->data + at, &head, sizeof(head));
		head.crc = crc32c(0, f->data + at, head.length);
		memcpy(f->data + at, &head, sizeof(head));
	}
}

/* A NOP on a device that never booted, so that the file is small. */
static inline void decode_make_recording(struct decode_file *f)
{
	struct embeng_recording_power_on on = {.version = EMBENG_RECORDING_VERSION,
					       .cores = 2,
					       .queues = 8,
					       .vectors = 1,
					       .table_memory = 4096,
					       .variant = "portable"};
	struct embeng_recording_admin admin = {
		.command = {.opcode = EMBENG_ADMIN_CONTEXT_CREATE, .count = 4}};
	struct embeng_recording_region region = {
		.index = 3, .generation = 1, .rights = 3, .length = 64};
	struct embeng_recording_memory memory = {.queue = 1, .where = decode_mem(8, 5)};
	struct embeng_recording_command command = {.queue = 1};
	struct embeng_recording_run run = {.queue = 1};
	struct embeng_recording_done done = {.queue = 1, .outputs = 1};
	struct embeng_recording_output output = {.where = decode_mem(16, 4), .crc = 77};

	decode_put_entry(f, 0, EMBENG_RECORDING_POWER_ON, &on, sizeof(on), "", 0);
	decode_put_entry(f, 1, EMBENG_RECORDING_ADMIN, &admin, sizeof(admin), "", 0);
	decode_put_entry(f, 2, EMBENG_RECORDING_REGION, &region, sizeof(region), "", 0);
	decode_put_entry(f, 3, EMBENG_RECORDING_MEMORY, &memory, sizeof(memory), "bytes", 5);
	decode_put_entry(f, 4, EMBENG_RECORDING_COMMAND, &command, sizeof(command), "", 0);
	decode_put_entry(f, 5, EMBENG_RECORDING_RUN, &run, sizeof(run), "", 0);
	decode_put_entry(f, 6, EMBENG_RECORDING_DONE, &done, sizeof(done), &output, sizeof(output));
	decode_put_entry(f, 7, EMBENG_RECORDING_POWER_OFF, "", 0, "", 0);
}

/* A maker that is added goes to the end: the fuzzer's corpus has their numbers. */
static const struct {
	const char *format;
	void (*make)(struct decode_file *f);
} decode_makers[] = {
	{"blob", decode_make_blob},	      {"lookup", decode_make_lookup},
	{"update", decode_make_update},	      {"rows", decode_make_rows},
	{"partition", decode_make_partition}, {"ring", decode_make_ring},
	{"registers", decode_make_registers}, {"devcoredump", decode_make_devcoredump},
	{"trace", decode_make_trace},	      {"recording", decode_make_recording},
	{"exchange", decode_make_exchange},
};

#define DECODE_MAKERS (sizeof(decode_makers) / sizeof(decode_makers[0]))

/* The file of a maker; the caller frees its data. */
static inline struct decode_file decode_make(size_t maker)
{
	struct decode_file f = {.format = decode_makers[maker].format};

	decode_makers[maker].make(&f);
	return f;
}

#endif
