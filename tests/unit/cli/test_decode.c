// SPDX-License-Identifier: MIT
/* The readers of `embeng decode`: good files, every prefix of them, and every byte changed. */
#include "../../../runtime/cli/decode/command.h"
#include "../../../runtime/cli/decode/readers.h"
#include "../support/decode_help.h"
#include "../support/suite.h"

/* A copy of exactly these bytes, so that a sanitizer sees a read behind them. */
static struct bytes copy_of(const unsigned char *data, size_t size)
{
	unsigned char *copy = malloc(size ? size : 1);

	memcpy(copy, data, size);
	return (struct bytes){.path = "nowhere", .data = copy, .size = size};
}

static uint64_t count_odd(const struct reader *reader, const struct bytes *b)
{
	struct sheet s;
	uint64_t odd;

	sheet_begin(&s);
	reader->read(&s, b);
	odd = s.odd_count;
	sheet_end(&s);
	return odd;
}

static bool is_text(const char *format)
{
	return !strcmp(format, "devcoredump") || !strcmp(format, "trace");
}

START_TEST(test_good_files)
{
	struct decode_file f = decode_make((size_t)_i);
	struct bytes b = copy_of(f.data, f.size);
	const struct reader *reader = reader_find(&b);

	ck_assert_ptr_nonnull(reader);
	ck_assert_str_eq(reader->name, f.format);
	ck_assert_uint_eq(count_odd(reader, &b), 0);
	free((void *)b.data);
	free(f.data);
}
END_TEST

/* A text that ends with a line, and memory of smaller rings, are not seen to be cut. */
static bool is_whole(const char *format, size_t size)
{
	return is_text(format) || (!strcmp(format, "ring") && size % 64 == 0);
}

START_TEST(test_prefixes)
{
	struct decode_file f = decode_make((size_t)_i);
	const struct reader *reader = reader_by_name(f.format);

	for (size_t size = 0; size < f.size; size++) {
		struct bytes b = copy_of(f.data, size);
		const struct reader *found = reader_find(&b);
		uint64_t odd = count_odd(reader, &b);

		if (found && found != reader)
			(void)count_odd(found, &b);
		ck_assert_msg(odd || is_whole(f.format, size),
			      "%s: nothing is odd in %zu of %zu bytes", f.format, size, f.size);
		free((void *)b.data);
	}
	free(f.data);
}
END_TEST

START_TEST(test_changed_bytes)
{
	static const unsigned char masks[] = {0x01, 0x80, 0xff};
	struct decode_file f = decode_make((size_t)_i);
	const struct reader *reader = reader_by_name(f.format);

	for (size_t at = 0; at < f.size; at += f.size > 2000 ? 7 : 1) {
		for (size_t m = 0; m < sizeof(masks); m++) {
			f.data[at] ^= masks[m];
			struct bytes b = copy_of(f.data, f.size);

			(void)count_odd(reader, &b);
			(void)reader_find(&b);
			f.data[at] ^= masks[m];
			free((void *)b.data);
		}
	}
	free(f.data);
}
END_TEST

/* Each reader is given each of the files, whatever it holds. */
START_TEST(test_wrong_reader)
{
	struct decode_file f = decode_make((size_t)_i);
	struct bytes b = copy_of(f.data, f.size);

	for (size_t r = 0; r < reader_count; r++) {
		if (!strcmp(readers[r].name, "index") || !strcmp(readers[r].name, "shard"))
			continue;
		if (strcmp(readers[r].name, f.format) != 0)
			ck_assert_msg(count_odd(&readers[r], &b) || is_text(readers[r].name),
				      "%s as %s", f.format, readers[r].name);
	}
	free((void *)b.data);
	free(f.data);
}
END_TEST

START_TEST(test_words_of_commands)
{
	static struct tables tables = {.table_count = 2, .tables = {"items", "users"}};
	struct embeng_cmd stats = {.opcode = EMBENG_OP_STATS, .after = 7, .arg = 1};
	struct embeng_cmd now = {.opcode = EMBENG_OP_STATS, .arg = 1 | EMBENG_STATS_NOW};
	struct embeng_cmd stage = {.opcode = EMBENG_OP_STAGE, .arg = 1ull << 32};
	struct embeng_cmd freeze = {.opcode = EMBENG_OP_FREEZE, .arg = 1ull << 32 | 5};
	struct embeng_cmd state = {.opcode = EMBENG_OP_STATE_READ, .arg = 1};
	struct embeng_cmd nop = {.opcode = EMBENG_OP_NOP, .arg = 3000ull << 32 | 2};
	struct embeng_cmd unknown = {.opcode = 99};
	char text[COMMAND_TEXT];

	ck_assert_str_eq(command_text(&stats, &tables, text),
			 "STATS of table 1 (users), after step 7");
	ck_assert_str_eq(command_text(&now, &tables, text),
			 "STATS of table 1 (users), at whatever step the model is");
	ck_assert_str_eq(command_text(&stage, &tables, text),
			 "STAGE of table 0 (items), slot 1, BEGIN");
	ck_assert_str_eq(command_text(&freeze, &tables, text), "FREEZE of table 5, ON");
	ck_assert_str_eq(command_text(&state, NULL, text), "STATE_READ of table 0");
	ck_assert_str_eq(command_text(&nop, NULL, text),
			 "NOP, a delay of 3000 us, status QUEUE_KIND");
	ck_assert_str_eq(command_text(&unknown, NULL, text), "unknown");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, test_good_files, 0, DECODE_MAKERS);
	tcase_add_loop_test(tcase, test_prefixes, 0, DECODE_MAKERS);
	tcase_add_loop_test(tcase, test_changed_bytes, 0, DECODE_MAKERS);
	tcase_add_loop_test(tcase, test_wrong_reader, 0, DECODE_MAKERS);
	tcase_add_test(tcase, test_words_of_commands);
}

int main(void)
{
	return suite_main("decode", add);
}
