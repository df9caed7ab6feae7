// SPDX-License-Identifier: MIT
/*
 * Leaves a dump of a hang of a known command on a known table, for report.sh to decode: a ROWS_READ of
 * the table "users" or, with EMBENG_HANG=lookup, a LOOKUP of both tables.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/support/direct_model.h"
#include "../unit/support/suite.h"
#include "accel.h"
#include "fault_file.h"

#define HANG_MS "/sys/module/embeng/parameters/hang_ms"
#define ROOM 4096u
#define ROWS 16u
#define DIM 2u
#define TABLES 2u

static const char *const names[TABLES] = {"items", "users"};
static struct direct_blob blob;
static int fd;
static struct ring transfer;
static char *memory;
static struct embeng_mem key;

/* Names are no part of the hash, so they follow what was sealed. */
static void add_name(uint32_t of, uint32_t index)
{
	struct embeng_record_name r = {
		.head = {EMBENG_RECORD_NAME, 0, sizeof(r)}, .of = of, .index = index};

	memcpy(r.name, names[index], strlen(names[index]));
	memcpy(blob.data + blob.length, &r, sizeof(r));
	blob.length += sizeof(r);
	blob.header.record_count++;
}

static void make_blob(void)
{
	struct small_model m = small_model(ROWS, DIM);

	m.engine.table_count = m.engine.feature_count = TABLES;
	memset(&blob, 0, sizeof(blob));
	blob_record(&blob, EMBENG_RECORD_ENGINE, &m.engine, sizeof(m.engine));
	for (uint32_t t = 0; t < TABLES; t++)
		blob_record(&blob, EMBENG_RECORD_TABLE, &m.table, sizeof(m.table));
	for (m.feature.table = 0; m.feature.table < TABLES; m.feature.table++)
		blob_record(&blob, EMBENG_RECORD_FEATURE, &m.feature, sizeof(m.feature));
	blob_seal(&blob);
	for (uint32_t t = 0; t < TABLES; t++)
		add_name(EMBENG_RECORD_TABLE, t);
	blob.header.length = blob.length;
	blob.header.crc32c = 0;
	memcpy(blob.data, &blob.header, sizeof(blob.header));
	blob.header.crc32c = crc32c(0, blob.data, blob.length);
	memcpy(blob.data, &blob.header, sizeof(blob.header));
}

static struct embeng_mem piece(uint64_t offset, uint64_t length)
{
	return (struct embeng_mem){key.index, key.generation, offset, length};
}

static struct embeng_cmd rows_read(void)
{
	struct embeng_rows rows = {
		.table = 1, .first = 3, .count = 5, .data = piece(1024, 5 * DIM * 4)};

	memcpy(memory, &rows, sizeof(rows));
	return (struct embeng_cmd){
		.opcode = EMBENG_OP_ROWS_READ, .cookie = 77, .desc = piece(0, sizeof(rows))};
}

static struct embeng_cmd lookup(void)
{
	struct {
		struct embeng_lookup head;
		struct embeng_lookup_feature features[TABLES];
	} desc = {.head = {.feature_count = TABLES,
			   .feature_stride = sizeof(desc.features[0]),
			   .model_hash = blob.header.hash}};

	for (uint32_t f = 0; f < TABLES; f++)
		desc.features[f] = (struct embeng_lookup_feature){
			.feature = f,
			.form = EMBENG_FORM_DENSE,
			.id_width = 8,
			.sample_count = 3,
			.id_count = 3,
			.ids = piece(1024 + 64 * f, 24),
			.activations = piece(2048 + 64 * f, 3 * DIM * 4)};
	memcpy(memory, &desc, sizeof(desc));
	return (struct embeng_cmd){.opcode = EMBENG_OP_LOOKUP,
				   .cookie = 78,
				   .step = 1,
				   .desc = piece(0, sizeof(desc))};
}

static void load_model(void)
{
	struct embeng_accel_bo_create bo;
	struct embeng_accel_model_load arg = {0};

	fd = accel_open();
	accel_context(fd);
	bo = accel_bo(fd, ROOM);
	key = accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE);
	memory = accel_map(fd, bo.offset, ROOM, PROT_READ | PROT_WRITE);
	transfer = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	make_blob();
	arg.queue = transfer.made.queue;
	arg.blob = (uintptr_t)blob.data;
	arg.length = blob.length;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_MODEL_LOAD, &arg), 0);
	ck_assert_uint_eq(accel_take(fd, &transfer).status, EMBENG_STATUS_OK);
}

/* The queue takes nothing any more, so its first command is the one at fault. */
START_TEST(test_hang_leaves_a_dump)
{
	const char *what = getenv("EMBENG_HANG");
	bool looks_up = what && !strcmp(what, "lookup");
	struct ring input, *ring = &transfer;
	struct embeng_cqe cqe;

	accel_write(HANG_MS, "1000");
	load_model();
	if (looks_up) {
		input = accel_ring_of(fd, accel_queue(EMBENG_QUEUE_INPUT, 0));
		ring = &input;
	}
	fault_arm("stall_queue", 0);
	fault_file_set("stall_queue", "target", ring->made.queue);
	fault_file_set("stall_queue", "count", 1);
	accel_give(fd, ring, looks_up ? lookup() : rows_read());
	cqe = accel_take(fd, ring);
	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_HUNG);
	ck_assert_uint_eq(cqe.cookie, looks_up ? 78 : 77);
	close(fd);
	accel_write(HANG_MS, "10000");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_hang_leaves_a_dump);
}

int main(void)
{
	return suite_main("hang dump", add);
}
