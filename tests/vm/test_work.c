// SPDX-License-Identifier: MIT
/* The engine in the kernel: its results, and the time that its completions say. */
#include <stdio.h>
#include <string.h>

#include "../unit/support/direct_model.h"
#include "../unit/support/suite.h"
#include "raw_function.h"
#include "../../engine/kernels/fill.h"

#define SPEED "/sys/kernel/debug/embeng_emu/0/speed"
#define ROWS 256u
#define DIM 8u
#define DESC 32768u /* offsets in the region: the blob comes first */
#define IDS 36864u
#define OUT 40960u
#define MS 1000000ull

static struct raw_function *b;
static struct direct_blob blob;

static void speed(const char *word, const char *value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), SPEED "/%s", word);
	file = fopen(path, "w");
	ck_assert_msg(file, "%s", path);
	fputs(value, file);
	ck_assert_int_eq(fclose(file), 0);
}

static struct embeng_mem at(uint64_t offset, uint64_t length)
{
	return (struct embeng_mem){.index = 0, .generation = 1, .offset = offset, .length = length};
}

static struct embeng_cqe call(uint32_t queue, uint16_t opcode, uint64_t length)
{
	struct embeng_cmd cmd = {.opcode = opcode};

	if (length)
		cmd.desc = at(opcode == EMBENG_OP_MODEL_LOAD ? 0 : DESC, length);
	return raw_call(&b->queues[queue], &cmd);
}

static struct embeng_cqe rows(uint16_t opcode, struct embeng_rows rows)
{
	rows.count = ROWS;
	memcpy(b->data + DESC, &rows, sizeof(rows));
	return call(1, opcode, sizeof(rows));
}

static struct embeng_cqe read_rows(void)
{
	return rows(EMBENG_OP_ROWS_READ, (struct embeng_rows){.data = at(OUT, ROWS * DIM * 4)});
}

/* One table of random numbers. */
static void setup(void)
{
	struct small_model model = small_model(ROWS, DIM);
	struct embeng_rows fill = {.fill = EMBENG_FILL_TRUNCATED_NORMAL, .seed = 11};
	float deviation = 0.5f;

	b = raw_open();
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	raw_context(b);
	small_blob(&model, &blob);
	memcpy(b->data, blob.data, blob.length);
	ck_assert_uint_eq(call(1, EMBENG_OP_MODEL_LOAD, blob.length).status, EMBENG_STATUS_OK);
	memcpy(&fill.b, &deviation, 4);
	ck_assert_uint_eq(rows(EMBENG_OP_ROWS_FILL, fill).status, EMBENG_STATUS_OK);
}

static void teardown(void)
{
	raw_close(b);
}

/* The rows that the same kernel makes in this process. */
static const float *expected(void)
{
	static float table[ROWS * DIM];
	struct kernel_fill fill = {
		.kind = KERNEL_FILL_TRUNCATED_NORMAL,
		.seed = 11,
		.dim = DIM,
		.b = 0.5f,
		.out = table,
		.stride = DIM,
		.row_step = 1,
	};

	kernel_fill_rows(&fill, 0, ROWS);
	return table;
}

START_TEST(rows_are_filled_as_in_a_process)
{
	ck_assert_uint_eq(read_rows().status, EMBENG_STATUS_OK);
	ck_assert_mem_eq(b->data + OUT, expected(), ROWS * DIM * 4);
}
END_TEST

static struct embeng_cqe lookup(uint32_t count)
{
	struct embeng_lookup head = {
		.feature_count = 1,
		.feature_stride = sizeof(struct embeng_lookup_feature),
		.model_hash = blob.header.hash,
	};
	struct embeng_lookup_feature feature = {
		.form = EMBENG_FORM_DENSE,
		.id_width = 4,
		.sample_count = count,
		.id_count = count,
		.ids = at(IDS, count * 4),
		.activations = at(OUT, count * DIM * 4),
	};
	int32_t *ids = (int32_t *)(b->data + IDS);
	struct embeng_cqe cqe;

	for (uint32_t i = 0; i < count; i++)
		ids[i] = (int32_t)(i * 7 % ROWS);
	memcpy(b->data + DESC, &head, sizeof(head));
	memcpy(b->data + DESC + sizeof(head), &feature, sizeof(feature));
	cqe = call(2, EMBENG_OP_LOOKUP, sizeof(head) + sizeof(feature));
	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_ACCEPTED);
	while (!raw_reap(&b->queues[2], &cqe))
		;
	return cqe;
}

START_TEST(a_lookup_gives_the_rows)
{
	const float *table = expected();

	ck_assert_uint_eq(lookup(100).status, EMBENG_STATUS_OK);
	for (uint32_t i = 0; i < 100; i++)
		ck_assert_mem_eq(b->data + OUT + i * DIM * 4, table + i * 7 % ROWS * DIM, DIM * 4);
}
END_TEST

static uint64_t between_two_nops(void)
{
	uint64_t first = call(1, EMBENG_OP_NOP, 0).timestamp;

	return call(1, EMBENG_OP_NOP, 0).timestamp - first;
}

START_TEST(a_command_takes_its_fixed_time)
{
	speed("fixed_ns", "300000000");
	ck_assert_uint_ge(between_two_nops(), 300 * MS);
	speed("fixed_ns", "0");
}
END_TEST

/* Submitted together, they follow each other without gap. */
START_TEST(one_command_follows_the_other)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP};
	struct embeng_cqe one, two;

	speed("fixed_ns", "300000000");
	raw_submit(&b->queues[1], &cmd);
	two = raw_call(&b->queues[1], &cmd);
	one = two;
	while (!raw_reap(&b->queues[1], &two))
		;
	ck_assert_uint_eq(two.timestamp - one.timestamp, 300 * MS);
	speed("fixed_ns", "0");
}
END_TEST

START_TEST(in_virtual_time_nothing_waits)
{
	uint64_t begun;

	speed("virtual_time", "1");
	speed("fixed_ns", "3600000000000"); /* an hour */
	begun = call(1, EMBENG_OP_NOP, 0).timestamp;
	for (int i = 1; i < 100; i++)
		ck_assert_uint_eq(call(1, EMBENG_OP_NOP, 0).timestamp, begun + i * 3600000 * MS);
	speed("fixed_ns", "0");
	ck_assert_uint_eq(between_two_nops(), 0);
	speed("virtual_time", "0");
}
END_TEST

START_TEST(bytes_and_rows_have_their_price)
{
	uint64_t begun;

	speed("virtual_time", "1");
	speed("ns_per_kib", "1000");
	begun = call(1, EMBENG_OP_NOP, 0).timestamp;
	ck_assert_uint_eq(read_rows().timestamp - begun, ROWS * DIM * 4 / 1024 * 1000);
	speed("ns_per_kib", "0");
	speed("ns_per_row", "50");
	begun = call(1, EMBENG_OP_NOP, 0).timestamp;
	ck_assert_uint_eq(lookup(128).timestamp - begun, 128 * 50);
	speed("ns_per_row", "0");
	speed("virtual_time", "0");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, rows_are_filled_as_in_a_process);
	tcase_add_test(tcase, a_lookup_gives_the_rows);
	tcase_add_test(tcase, a_command_takes_its_fixed_time);
	tcase_add_test(tcase, one_command_follows_the_other);
	tcase_add_test(tcase, in_virtual_time_nothing_waits);
	tcase_add_test(tcase, bytes_and_rows_have_their_price);
}

int main(void)
{
	return suite_main("work", add);
}
