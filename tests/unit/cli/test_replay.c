// SPDX-License-Identifier: MIT
/* Recordings: the reader with every cut and every changed byte, and the replay of faults. */
#include "../../../runtime/cli/recording/recording.h"
#include "../../../runtime/cli/replay/play.h"
#include "../support/decode_help.h"
#include "../support/suite.h"
#include "builtin_image.h"

#define ENTRIES_MOST 64

/* A recording under construction. */
struct made {
	struct decode_file file;
	uint32_t number;
};

static void put(struct made *m, uint16_t type, const void *fixed, size_t size, const void *bytes,
		size_t count)
{
	decode_put_entry(&m->file, m->number++, type, fixed, size, bytes, count);
}
#define PUT(m, TYPE, value) put(m, EMBENG_RECORDING_##TYPE, &(value), sizeof(value), "", 0)

/* A device that runs, with context 0 and the TRANSFER queue 1. */
static struct made make_device(void)
{
	struct embeng_recording_power_on on = {.version = EMBENG_RECORDING_VERSION,
					       .cores = 2,
					       .queues = 8,
					       .vectors = 2,
					       .table_memory = 1 << 20};
	struct embeng_recording_boot boot = {.length = sizeof(embeng_builtin_image)};
	struct embeng_recording_booted booted = {0};
	struct embeng_recording_admin context = {
		.command = {.opcode = EMBENG_ADMIN_CONTEXT_CREATE, .count = 8}};
	struct embeng_recording_admin queue = {.command = {.opcode = EMBENG_ADMIN_QUEUE_CREATE,
							   .kind = EMBENG_QUEUE_TRANSFER,
							   .queue = 1,
							   .sq_entries = 8,
							   .cq_entries = 8,
							   .vector = 1}};
	struct made m = {0};

	PUT(&m, POWER_ON, on);
	put(&m, EMBENG_RECORDING_BOOT, &boot, sizeof(boot), embeng_builtin_image,
	    sizeof(embeng_builtin_image));
	PUT(&m, BOOTED, booted);
	PUT(&m, ADMIN, context);
	PUT(&m, ADMIN, queue);
	return m;
}

/* A NOP, with a fault while it runs unless @fault is negative. It ends with the status. */
static void put_nop(struct made *m, uint32_t index, int fault, uint32_t status)
{
	struct embeng_recording_command command = {.queue = 1, .index = index};
	struct embeng_recording_run run = {.queue = 1, .index = index};
	struct embeng_recording_fault strike = {.fault = (uint32_t)fault, .target = 1, .value = 1};
	struct embeng_recording_done done = {
		.queue = 1, .index = index, .status = status, .feature = EMBENG_NO_INDEX};

	PUT(m, COMMAND, command);
	PUT(m, RUN, run);
	if (fault >= 0)
		PUT(m, FAULT, strike);
	PUT(m, DONE, done);
}

static struct play_result play_file(const struct decode_file *file)
{
	struct recording_entry entries[ENTRIES_MOST];
	struct play_options options = {0};
	struct play_result result;
	struct recording r;
	size_t count = 0;

	recording_begin(&r, file->data, file->size);
	while (count < ENTRIES_MOST && recording_next(&r, &entries[count]))
		count++;
	ck_assert_str_eq(r.problem, "");
	ck_assert_int_eq(play(entries, count, &options, &result), 0);
	return result;
}

START_TEST(test_nop_is_the_same)
{
	struct made m = make_device();
	struct play_result result;

	put_nop(&m, 5, -1, 0);
	put_nop(&m, 6, -1, 0);
	result = play_file(&m.file);
	ck_assert_str_eq(result.impossible, "");
	ck_assert(!result.differs);
	ck_assert_uint_eq(result.commands, 2);
	ck_assert_uint_eq(result.completions, 2);
	ck_assert_uint_eq(result.cores, 2);
	free(m.file.data);
}
END_TEST

/* DMA_ERROR: the first command alone ends with INTERNAL. */
START_TEST(test_fault_strikes_again)
{
	struct made m = make_device();
	struct play_result result;

	put_nop(&m, 0, 5, EMBENG_STATUS_INTERNAL);
	put_nop(&m, 1, -1, 0);
	result = play_file(&m.file);
	ck_assert_str_eq(result.impossible, "");
	ck_assert(!result.differs);
	ck_assert_uint_eq(result.faults, 1);
	ck_assert_uint_eq(result.injected, 1);
	free(m.file.data);
}
END_TEST

START_TEST(test_difference_is_named)
{
	struct made m = make_device();
	struct play_result result;

	put_nop(&m, 0, -1, 0);
	put_nop(&m, 1, -1, EMBENG_STATUS_INTERNAL);
	put_nop(&m, 2, -1, 0);
	result = play_file(&m.file);
	ck_assert(result.differs);
	ck_assert_str_eq(result.difference.command, "NOP (context 0, queue 1, index 1)");
	ck_assert_str_eq(result.difference.what, "the status");
	ck_assert_str_eq(result.difference.recorded, "INTERNAL");
	ck_assert_str_eq(result.difference.here, "OK");
	ck_assert_uint_eq(result.difference.entry, 10);
	ck_assert_uint_eq(result.entries, 10);
	free(m.file.data);
}
END_TEST

/* The queue ends with a command that never ran, and one that hung. */
START_TEST(test_hang_is_repeated)
{
	struct embeng_recording_command command = {.queue = 1};
	struct embeng_recording_run run = {.queue = 1};
	struct embeng_recording_admin destroy = {.command = {.opcode = EMBENG_ADMIN_QUEUE_DESTROY,
							     .flags = EMBENG_ADMIN_QUEUE_HUNG,
							     .queue = 1,
							     .cq_index = 250}};
	struct embeng_recording_done hung = {.queue = 1,
					     .status = EMBENG_STATUS_HUNG,
					     .feature = EMBENG_NO_INDEX,
					     .value = 250000000,
					     .limit = 1};
	struct made m = make_device();
	struct play_result result;

	PUT(&m, COMMAND, command);
	PUT(&m, RUN, run);
	PUT(&m, ADMIN, destroy);
	PUT(&m, DONE, hung);
	result = play_file(&m.file);
	ck_assert_str_eq(result.impossible, "");
	ck_assert(!result.differs);
	ck_assert_uint_eq(result.completions, 1);
	free(m.file.data);
}
END_TEST

/* Entries that no device writes end the replay with a sentence. */
START_TEST(test_contradictions)
{
	struct embeng_recording_command command = {.queue = 1, .index = 4};
	struct embeng_recording_region region = {.context = 9, .generation = 1, .length = 8};
	struct embeng_recording_memory memory = {.where = {.index = 1, .generation = 1}};
	struct made m = make_device();
	struct play_result result;

	switch (_i) {
	case 0:
		PUT(&m, COMMAND, command);
		command.index = 6;
		PUT(&m, COMMAND, command);
		break;
	case 1:
		command.queue = 7;
		PUT(&m, COMMAND, command);
		break;
	case 2:
		PUT(&m, REGION, region);
		break;
	case 3:
		PUT(&m, MEMORY, memory);
		break;
	case 4:
		region.context = 0;
		region.length = UINT64_MAX;
		PUT(&m, REGION, region);
		break;
	default:
		put(&m, EMBENG_RECORDING_POWER_OFF, "", 0, "", 0);
		PUT(&m, COMMAND, command);
		break;
	}
	result = play_file(&m.file);
	ck_assert_str_ne(result.impossible, "");
	ck_assert(!result.differs);
	free(m.file.data);
}
END_TEST

static uint32_t count_entries(const unsigned char *data, size_t size, struct recording *r)
{
	struct recording_entry entry;
	uint32_t count = 0;

	recording_begin(r, data, size);
	while (recording_next(r, &entry))
		count++;
	return count;
}

/* All entries before the cut are read, and the cut is noticed unless it is between two. */
START_TEST(test_every_cut)
{
	struct decode_file f = {0};
	struct recording r;
	uint32_t whole;

	decode_make_recording(&f);
	whole = count_entries(f.data, f.size, &r);
	ck_assert_uint_eq(whole, 8);
	ck_assert_str_eq(r.problem, "");
	for (size_t size = 0; size < f.size; size++) {
		unsigned char *copy = malloc(size ? size : 1);
		uint32_t count;

		memcpy(copy, f.data, size);
		count = count_entries(copy, size, &r);
		ck_assert_uint_lt(count, whole);
		ck_assert_uint_le(r.at, size);
		ck_assert_int_eq(r.at < size, r.is_cut);
		ck_assert_int_eq(r.is_cut, r.problem[0] != '\0');
		free(copy);
	}
	free(f.data);
}
END_TEST

/* No byte can change without notice. */
START_TEST(test_every_byte)
{
	struct decode_file f = {0};
	struct recording r;

	decode_make_recording(&f);
	for (size_t at = 0; at < f.size; at++) {
		f.data[at] ^= 0x10;
		ck_assert_uint_lt(count_entries(f.data, f.size, &r), 8);
		ck_assert_str_ne(r.problem, "");
		f.data[at] ^= 0x10;
	}
	free(f.data);
}
END_TEST

/* Numbers that do not belong together, with a checksum that is right. */
START_TEST(test_wrong_lengths)
{
	struct embeng_recording_memory memory = {.where = {.length = 9}};
	struct embeng_recording_done done = {.outputs = UINT32_MAX};
	struct embeng_recording_power_on on = {.version = EMBENG_RECORDING_VERSION + 1};
	struct embeng_recording_run run = {0};
	struct made m = {0};
	struct recording r;

	switch (_i) {
	case 0:
		put(&m, EMBENG_RECORDING_MEMORY, &memory, sizeof(memory), "too few", 8);
		break;
	case 1:
		PUT(&m, DONE, done);
		break;
	case 2:
		PUT(&m, POWER_ON, on);
		break;
	case 3:
		put(&m, EMBENG_RECORDING_RUN, &run, sizeof(run) - 8, "", 0);
		break;
	case 4:
		put(&m, 99, &run, sizeof(run), "", 0);
		break;
	default:
		PUT(&m, RUN, run);
		break;
	}
	ck_assert_uint_eq(count_entries(m.file.data, m.file.size, &r), 0);
	ck_assert_str_ne(r.problem, "");
	ck_assert(!r.is_cut);
	free(m.file.data);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_nop_is_the_same);
	tcase_add_test(tcase, test_fault_strikes_again);
	tcase_add_test(tcase, test_difference_is_named);
	tcase_add_test(tcase, test_hang_is_repeated);
	tcase_add_loop_test(tcase, test_contradictions, 0, 6);
	tcase_add_test(tcase, test_every_cut);
	tcase_add_test(tcase, test_every_byte);
	tcase_add_loop_test(tcase, test_wrong_lengths, 0, 6);
}

int main(void)
{
	return suite_main("replay", add);
}
