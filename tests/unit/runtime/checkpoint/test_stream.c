// SPDX-License-Identifier: MIT
/*
 * Checkpoints through streams: the same bits as through a folder, in pieces of any size; and each way
 * in which a stream can be broken, after which the engine and the folder are as they were.
 */
#define _GNU_SOURCE /* memmem */
#include <inttypes.h>
#include <time.h>

#include "checkpoint_help.h"
#include "memory_stream.h"
#include "runtime/src/checkpoint/tar.h"
#include "suite.h"

#define DEVICE "soft:cores=2,memory=4M"

static const char *const goldens[] = {"checkpoint",	   "checkpoint-delta",
				      "checkpoint-mod",	   "checkpoint-shared",
				      "checkpoint-tables", "checkpoint-widths"};

static uint64_t new_seed(void)
{
	const char *given = getenv("EMBENG_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

	printf("EMBENG_TEST_SEED=%" PRIu64 "\n", seed);
	return seed * 2 + 1;
}

static struct embeng *open_tiny_with(enum embeng_non_finite policy)
{
	const struct help_table tables[] = {{"t", 6, 2, embeng_adagrad(0.1f)},
					    {"u", 3, 2, embeng_sgd(0.1f)}};
	const struct embeng_engine_config engine = {.size = sizeof(engine), .non_finite = policy};
	struct embeng_model *m = help_model(tables, 2);
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_set_engine(m, &engine), 0);
	help_expect_ok(embeng_open(DEVICE, m, &e, NULL));
	embeng_model_free(m);
	return e;
}

static struct embeng *open_tiny(void)
{
	return open_tiny_with(EMBENG_NON_FINITE_ERROR);
}

/* A stream of the tiny tables, filled with @salt, in several shards. */
static void save_tiny(struct embeng *e, uint32_t salt, struct memory_stream *m)
{
	const struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 64};
	struct embeng_writer w = memory_writer(m);

	help_fill(e, salt);
	help_expect_ok(embeng_save_stream(e, &w, &o));
}

static struct embeng_checkpoint *open_stream(struct memory_stream *m)
{
	struct embeng_reader r = memory_reader(m);
	struct embeng_checkpoint *c = NULL;

	help_expect_ok(embeng_checkpoint_open_stream(&r, NULL, NULL, &c, NULL));
	return c;
}

/* Everything that a checkpoint says, bit by bit. */
static void expect_same_checkpoint(const struct embeng_checkpoint *a,
				   const struct embeng_checkpoint *b)
{
	const struct embeng_model *m = embeng_checkpoint_model(a);
	struct embeng_checkpoint_info x = {.size = sizeof(x)}, y = {.size = sizeof(y)};

	help_expect_ok(embeng_checkpoint_info(a, &x));
	help_expect_ok(embeng_checkpoint_info(b, &y));
	ck_assert(x.step == y.step && x.model_hash == y.model_hash && x.bytes == y.bytes &&
		  x.deltas == y.deltas && x.file_count == y.file_count);
	ck_assert_str_eq(x.program_state ? x.program_state : "",
			 y.program_state ? y.program_state : "");
	ck_assert_uint_eq(embeng_model_hash(m), embeng_model_hash(embeng_checkpoint_model(b)));
	for (size_t t = 0; t < embeng_model_table_count(m); t++) {
		ck_assert_int_eq(embeng_checkpoint_finite(a, (int)t),
				 embeng_checkpoint_finite(b, (int)t));
		for (size_t k = 0; k <= embeng_model_slot_count(m, t); k++) {
			size_t numbers = help_numbers(m, t, k), rows = help_rows(m, t);
			float *p = malloc(numbers * sizeof(*p)), *q = malloc(numbers * sizeof(*q));

			help_expect_ok(
				embeng_checkpoint_read(a, (int)t, help_slot(m, t, k), 0, rows, p));
			help_expect_ok(
				embeng_checkpoint_read(b, (int)t, help_slot(m, t, k), 0, rows, q));
			ck_assert_int_eq(memcmp(p, q, numbers * sizeof(*p)), 0);
			free(p);
			free(q);
		}
	}
}

/* -- there and back ---------------------------------------------------------- */

START_TEST(a_stream_has_the_bits_of_a_folder)
{
	struct memory_stream m = {.random = new_seed(), .most = _i ? 1 + 3000 * (size_t)_i : 0};
	const struct embeng_save_options o = {
		.size = sizeof(o), .shard_bytes = 4096, .program_state = "{\"epoch\": 3}"};
	struct embeng_writer w = memory_writer(&m);
	struct embeng *e = open_all(DEVICE), *f = open_all("soft:cores=1,memory=4M");
	struct embeng_checkpoint *c, *d;
	struct embeng_reader r;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 5);
	help_expect_ok(embeng_save(e, folder, &o));
	help_expect_ok(embeng_save_stream(e, &w, &o));
	ck_assert_uint_eq(m.bytes % TAR_BLOCK, 0);
	c = open_stream(&m);
	d = help_checkpoint(folder);
	expect_same_checkpoint(c, d);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	embeng_checkpoint_close(c);
	embeng_checkpoint_close(d);
	r = memory_reader(&m);
	help_expect_ok(embeng_restore_stream(f, &r, NULL));
	help_expect_tables(f, 5);
	ck_assert_uint_eq(m.at, m.bytes);
	embeng_close(e);
	embeng_close(f);
	folder_remove(folder);
	memory_stream_free(&m);
}
END_TEST

/* Whatever a checkpoint can have: deltas, hosts, slots of one number, frozen tables, old indices. */
START_TEST(every_golden_checkpoint_goes_there_and_back)
{
	struct memory_stream m = {.random = new_seed(), .most = 10000}, again = {0};
	char golden[HELP_PATH], folder[HELP_PATH];
	const char *source = getenv("EMBENG_SOURCE_ROOT");
	struct embeng_writer w = memory_writer(&m);
	struct embeng_checkpoint *c, *d;
	struct embeng_reader r;

	snprintf(golden, sizeof(golden), "%s/tests/golden/%s", source ? source : ".", goldens[_i]);
	folder_new(folder);
	c = help_checkpoint(golden);
	help_expect_ok(embeng_checkpoint_pack(c, &w, NULL, NULL));
	d = open_stream(&m);
	expect_same_checkpoint(c, d);
	/* Packing what came as a stream gives the same stream. */
	w = memory_writer(&again);
	help_expect_ok(embeng_checkpoint_pack(d, &w, NULL, NULL));
	ck_assert_uint_eq(again.bytes, m.bytes);
	ck_assert_int_eq(memcmp(again.data, m.data, m.bytes), 0);
	embeng_checkpoint_close(d);
	r = memory_reader(&m);
	help_expect_ok(embeng_checkpoint_unpack(&r, folder, NULL, NULL));
	d = help_checkpoint(folder);
	expect_same_checkpoint(c, d);
	help_expect_ok(embeng_checkpoint_verify(d, NULL, NULL));
	embeng_checkpoint_close(d);
	embeng_checkpoint_close(c);
	folder_remove(folder);
	memory_stream_free(&m);
	memory_stream_free(&again);
}
END_TEST

START_TEST(steps_and_frozen_tables_come_back)
{
	struct embeng *e = open_tiny(), *f = open_tiny();
	struct memory_stream m = {0};
	struct embeng_restore_options o = {
		.size = sizeof(o), .flags = EMBENG_RESTORE_STEP, .step = 8};
	struct embeng_reader r;
	uint64_t step = 0;

	help_expect_ok(embeng_set_step(e, 7));
	save_tiny(e, 1, &m);
	r = memory_reader(&m);
	help_fill(f, 2);
	help_expect(embeng_restore_stream(f, &r, &o), -ENODATA,
		    "the stream has the checkpoint of step 7, and step 8 is wanted");
	help_expect_tables(f, 2);
	o.step = 7;
	r = memory_reader(&m);
	help_expect_ok(embeng_restore_stream(f, &r, &o));
	help_expect_tables(f, 1);
	help_expect_ok(embeng_step(f, &step));
	ck_assert_uint_eq(step, 7);
	embeng_close(e);
	embeng_close(f);
	memory_stream_free(&m);
}
END_TEST

/* Two streams and a word, one after another, as in a pickle. */
START_TEST(not_one_byte_behind_a_stream_is_read)
{
	struct embeng *e = open_tiny();
	struct memory_stream m = {.random = new_seed(), .most = 700};
	struct embeng_reader r;
	size_t first;

	save_tiny(e, 1, &m);
	first = m.bytes;
	save_tiny(e, 2, &m);
	memory_stream_write(&m, "more", 4);
	help_fill(e, 3);
	r = memory_reader(&m);
	help_expect(embeng_restore_stream(e, &r, NULL), -EBADMSG,
		    "something follows the end of the checkpoint");
	help_expect_tables(e, 3);
	r = memory_reader(&m);
	r.flags = EMBENG_READER_GOES_ON;
	help_expect_ok(embeng_restore_stream(e, &r, NULL));
	ck_assert_uint_eq(m.at, first);
	help_expect_tables(e, 1);
	help_expect_ok(embeng_restore_stream(e, &r, NULL));
	ck_assert_int_eq(memcmp(m.data + m.at, "more", 4), 0);
	help_expect_tables(e, 2);
	/* The zeros with which tar fills its last record are no data. */
	m.bytes = first + 5 * TAR_BLOCK;
	memset(m.data + first, 0, 5 * TAR_BLOCK);
	r = memory_reader(&m);
	help_expect_ok(embeng_restore_stream(e, &r, NULL));
	help_expect_tables(e, 1);
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

/* -- streams that are broken -------------------------------------------------- */

START_TEST(a_stream_that_ends_anywhere)
{
	struct embeng *e = open_tiny();
	struct memory_stream m = {0};
	size_t whole;

	save_tiny(e, 1, &m);
	help_fill(e, 2);
	whole = m.bytes;
	for (m.bytes = 0; m.bytes < whole;
	     m.bytes += m.bytes < 3000 || m.bytes > whole - 1100 ? 1 : 37) {
		struct embeng_reader r = memory_reader(&m);
		char at[80];

		snprintf(at, sizeof(at), "the stream, byte %zu: it ends there, within ", m.bytes);
		help_expect(embeng_restore_stream(e, &r, NULL), -EBADMSG, at);
	}
	help_expect_tables(e, 2);
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

/* One bit of every byte, another one each time: none is without a checksum, or without a sentence. */
START_TEST(a_bit_that_flips_anywhere)
{
	uint64_t seed = new_seed();
	struct embeng *e = open_tiny();
	struct memory_stream m = {.random = seed};

	save_tiny(e, 1, &m);
	help_fill(e, 2);
	for (size_t at = 0; at < m.bytes; at++) {
		char bit = (char)(1 << (seed + at * 5 + at / 512) % 8);
		struct embeng_reader r = memory_reader(&m);
		struct embeng_error error = {.size = sizeof(error)};
		int ret;

		m.data[at] ^= bit;
		ret = embeng_restore_stream(e, &r, NULL);
		m.data[at] ^= bit;
		embeng_last_error(&error);
		ck_assert_msg(ret == -EBADMSG || ret == -ENOTSUP, "byte %zu, bit %#x: %d, %s", at,
			      (unsigned char)bit, ret, error.text);
		ck_assert_msg(strstr(error.text, "stream"), "byte %zu: %s", at, error.text);
	}
	help_expect_tables(e, 2);
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

/* The sentence names the byte of the stream, the table and the shard. */
START_TEST(a_row_that_changed_is_named)
{
	struct embeng *e = open_tiny();
	struct memory_stream m = {0};
	struct embeng_reader r;
	char *row;
	float value = help_value(0, 0, 0, 1);

	save_tiny(e, 1, &m);
	row = memmem(m.data, m.bytes, &value, sizeof(value));
	ck_assert_ptr_nonnull(row);
	row[1] ^= 4;
	r = memory_reader(&m);
	help_expect(embeng_restore_stream(e, &r, NULL), -EBADMSG, ": table t, shard embeng-0-");
	expect_text("do not match their checksum");
	/* The row is in the first chunk, which begins behind the comment and the member's header. */
	expect_text("the stream, byte 1536: ");
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

START_TEST(a_stream_of_another_model)
{
	const struct help_table other[] = {{"t", 5, 3, embeng_sgd(0.1f)}};
	struct embeng *e = open_tiny(), *f = help_open(DEVICE, other, 1);
	struct memory_stream m = {0};
	struct embeng_reader r;

	save_tiny(e, 1, &m);
	help_fill(f, 9);
	r = memory_reader(&m);
	help_expect(embeng_restore_stream(f, &r, NULL), -EINVAL, "table t");
	help_expect_tables(f, 9);
	embeng_close(e);
	embeng_close(f);
	memory_stream_free(&m);
}
END_TEST

static int read_text(const char *text, size_t bytes)
{
	struct memory_stream m = {.data = (char *)(uintptr_t)text, .bytes = bytes};
	struct embeng_reader r = memory_reader(&m);
	struct embeng_checkpoint *c = NULL;
	int ret = embeng_checkpoint_open_stream(&r, NULL, NULL, &c, NULL);

	ck_assert_ptr_null(c);
	return ret;
}

START_TEST(what_is_no_stream)
{
	static const char zeros[20 * TAR_BLOCK];
	char text[2 * TAR_BLOCK];

	help_expect(read_text("", 0), -EBADMSG, "byte 0: it ends there");
	memset(text, 'x', sizeof(text));
	help_expect(read_text(text, sizeof(text)), -EBADMSG,
		    "byte 0: the header of a member is not that of a tar archive");
	help_expect(read_text(zeros, sizeof(zeros)), -EBADMSG, "it ends without index.json");
	help_expect(read_text(zeros, TAR_BLOCK), -EBADMSG, "byte 512: it ends there");
}
END_TEST

/* A member of an archive that a test makes; the sum is right. */
static void put_member(struct memory_stream *m, const char *name, enum tar_kind kind,
		       const void *data, uint64_t bytes, uint64_t said)
{
	struct tar_member member = {.bytes = said, .kind = kind};
	static const char zeros[TAR_BLOCK];
	char block[TAR_BLOCK];

	strcpy(member.name, name);
	tar_write_header(&member, block);
	memory_stream_write(m, block, sizeof(block));
	memory_stream_write(m, data, bytes);
	if (tar_padding(bytes))
		memory_stream_write(m, zeros, tar_padding(bytes));
}

/* A pax header of one record of fewer than 100 bytes. */
static void put_note(struct memory_stream *m, const char *record)
{
	char text[112];
	int length = snprintf(text, sizeof(text), "%zu %s\n", strlen(record) + 4, record);

	put_member(m, "g", TAR_NOTE_OF_ALL, text, (uint64_t)length, (uint64_t)length);
}

static void put_end(struct memory_stream *m)
{
	static const char zeros[2 * TAR_BLOCK];

	memory_stream_write(m, zeros, sizeof(zeros));
}

static void expect_refused(struct memory_stream *m, int code, const char *text)
{
	help_expect(read_text(m->data, m->bytes), code, text);
	m->bytes = 0;
}

START_TEST(archives_made_by_hand)
{
	static const char shard[] = "embeng-0-0123456789abcdef-00000000.safetensors";
	struct memory_stream m = {0};

	put_note(&m, "comment=embeng.checkpoint.stream/2 x=1");
	expect_refused(&m, -ENOTSUP, "its format is embeng.checkpoint.stream/2 x=1, and this");
	put_note(&m, "comment=embeng.checkpoint.stream/1 x");
	expect_refused(&m, -EBADMSG, "its comment does not say how long it is");
	put_note(&m, "comment=embeng.checkpoint.stream/1 bytes=x");
	expect_refused(&m, -EBADMSG, "its comment does not say how long it is");
	put_note(&m, "comment=x");
	expect_refused(&m, -EBADMSG, "its comment is not that of a checkpoint");
	put_note(&m, "path=elsewhere");
	expect_refused(&m, -EBADMSG, "renames or resizes a member");
	put_member(&m, "g", TAR_NOTE_OF_ALL, "", 0, 1 << 20);
	expect_refused(&m, -EBADMSG, "a pax header has 1048576 bytes");
	put_member(&m, "index.json", TAR_FILE, "{}", 2, 2);
	put_member(&m, "index.json", TAR_FILE, "{}", 2, 2);
	expect_refused(&m, -EBADMSG, "byte 1024: it has a second index.json");
	put_member(&m, "index.json", TAR_FILE, "{}", 2, 2);
	put_end(&m);
	expect_refused(&m, -EBADMSG, "the stream/index.json");
	/* Memory is what came, not what a header says. */
	put_member(&m, "index.json", TAR_FILE, "{}", 2, 1 << 30);
	expect_refused(&m, -EBADMSG, "byte 1024: it ends there, within index.json");
	put_member(&m, "index.json", TAR_FILE, "{}", 2, (1 << 30) + 1);
	expect_refused(&m, -EBADMSG, "index.json has 1073741825 bytes, at most 1073741824");
	put_member(&m, shard, TAR_FILE, "ab", 2, INT64_MAX);
	expect_refused(&m, -EBADMSG, "it ends there, within embeng-0-0123456789abcdef");
	put_member(&m, shard, TAR_FILE, "ab", 2, 2);
	put_member(&m, shard, TAR_FILE, "ab", 2, 2);
	put_member(&m, "index.json", TAR_FILE, "{}", 2, 2);
	put_end(&m);
	expect_refused(&m, -EBADMSG, "byte 1024: it has a second file embeng-0-0123456789abcdef");
	put_member(&m, "a.txt", TAR_FILE, "ab", 2, 2);
	m.data[TAR_BLOCK + 3] = 1;
	expect_refused(&m, -EBADMSG, "byte 514: the 510 bytes behind a.txt are not all zero");
	put_end(&m);
	m.data[TAR_BLOCK] = 1;
	expect_refused(&m, -EBADMSG, "byte 512: a block of zeros stands where a member must");
	memory_stream_free(&m);
}
END_TEST

START_TEST(a_stream_may_have_no_more_bytes_than_allowed)
{
	struct embeng *e = open_tiny();
	struct memory_stream m = {0};
	struct embeng_checkpoint *c = NULL;
	struct embeng_reader r;

	save_tiny(e, 1, &m);
	embeng_close(e);
	r = memory_reader(&m);
	r.most_bytes = 100;
	help_expect(embeng_checkpoint_open_stream(&r, NULL, NULL, &c, NULL), -EFBIG, "byte 100");
	r = memory_reader(&m);
	r.most_bytes = 1030;
	help_expect(embeng_checkpoint_open_stream(&r, NULL, NULL, &c, NULL), -EFBIG,
		    "more than the 1030 bytes that most_bytes allows");
	ck_assert_uint_le(m.at, 1024);
	r = memory_reader(&m);
	r.most_bytes = m.bytes - 1;
	help_expect(embeng_checkpoint_open_stream(&r, NULL, NULL, &c, NULL), -EFBIG,
		    "it goes on, and most_bytes allows no more");
	r = memory_reader(&m);
	r.most_bytes = m.bytes;
	help_expect_ok(embeng_checkpoint_open_stream(&r, NULL, NULL, &c, NULL));
	embeng_checkpoint_close(c);
	memory_stream_free(&m);
}
END_TEST

/* -- functions of the program that fail ---------------------------------------- */

START_TEST(each_write_fails)
{
	static const int codes[] = {-EPIPE, -ENOSPC, -EINTR};
	struct embeng *e = open_tiny();
	unsigned int n;
	int ret;

	for (n = 1;; n++) {
		struct memory_stream m = {
			.most = 900, .random = n, .fail_at = n, .code = codes[n % 3]};
		struct embeng_writer w = memory_writer(&m);
		struct embeng_error error = {.size = sizeof(error)};
		char text[64];

		ret = embeng_save_stream(e, &w, NULL);
		embeng_last_error(&error);
		snprintf(text, sizeof(text), "embeng_save_stream: the stream, byte %zu: the writer",
			 m.bytes);
		memory_stream_free(&m);
		if (!ret)
			break;
		ck_assert_int_eq(ret, codes[n % 3]);
		ck_assert_ptr_nonnull(strstr(error.text, text));
		ck_assert_ptr_nonnull(strstr(error.text, strerror(-ret)));
	}
	ck_assert_uint_gt(n, 8);
	embeng_close(e);
}
END_TEST

START_TEST(each_read_fails)
{
	struct embeng *e = open_tiny();
	struct memory_stream m = {0};
	unsigned int n;
	int ret;

	save_tiny(e, 1, &m);
	help_fill(e, 2);
	m.most = 900;
	m.random = 77;
	m.code = -ECONNRESET;
	for (n = 1;; n++) {
		struct embeng_reader r = memory_reader(&m);
		char text[96];

		m.fail_at = n;
		ret = embeng_restore_stream(e, &r, NULL);
		if (!ret)
			break;
		snprintf(text, sizeof(text),
			 "embeng_restore_stream: the stream, byte %zu: the reader failed: ", m.at);
		help_expect(ret, -ECONNRESET, text);
	}
	ck_assert_uint_gt(n, 8);
	help_expect_tables(e, 1);
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

static int64_t answer;

static int64_t answer_write(void *arg, const void *data, size_t bytes)
{
	(void)arg;
	(void)data;
	return answer == INT64_MAX ? (int64_t)bytes + 1 : answer;
}

static int64_t answer_read(void *arg, void *data, size_t bytes)
{
	return answer_write(arg, data, bytes);
}

START_TEST(answers_that_cannot_be)
{
	const struct embeng_writer w = {.size = sizeof(w), .write = answer_write};
	const struct embeng_reader r = {.size = sizeof(r), .read = answer_read};
	struct embeng *e = open_tiny();

	answer = 0;
	help_expect(embeng_save_stream(e, &w, NULL), -EIO, "says that it took 0 bytes of 512");
	answer = INT64_MAX;
	help_expect(embeng_save_stream(e, &w, NULL), -EIO, "says that it took 513 bytes of 512");
	help_expect(embeng_restore_stream(e, &r, NULL), -EIO,
		    "says that it gave 513 bytes, and was asked for 512");
	answer = INT64_MIN;
	help_expect(embeng_save_stream(e, &w, NULL), -EIO, "which is no errno");
	help_expect(embeng_restore_stream(e, &r, NULL), -EIO, "which is no errno");
	embeng_close(e);
}
END_TEST

START_TEST(arguments_that_cannot_be)
{
	struct memory_stream m = {0};
	struct embeng_writer w = memory_writer(&m);
	struct embeng_reader r = memory_reader(&m);
	struct embeng_save_options o = {.size = sizeof(o), .flags = EMBENG_SAVE_DELTA};
	const char *names[] = {"a/b", "..", "index.json", ".embeng.lock", NULL, ""};
	struct embeng_pack_options p = {.size = sizeof(p), .file_count = 1};
	struct embeng_checkpoint *c = NULL;
	struct embeng *e = open_tiny();

	help_expect(embeng_save_stream(e, &w, &o), -EINVAL, "EMBENG_SAVE_DELTA is for a folder");
	o = (struct embeng_save_options){.size = sizeof(o), .keep = 3};
	help_expect(embeng_save_stream(e, &w, &o), -EINVAL, "keep is 3, and a stream holds one");
	ck_assert_uint_eq(m.bytes, 0);
	help_expect(embeng_save_stream(e, NULL, NULL), -EINVAL, "embeng_writer");
	w.write = NULL;
	help_expect(embeng_save_stream(e, &w, NULL), -EINVAL, "has no function write");
	r.flags = 6;
	help_expect(embeng_restore_stream(e, &r, NULL), -EINVAL, "flags are 0x6, known is 0x1");
	r = (struct embeng_reader){.size = sizeof(r)};
	help_expect(embeng_restore_stream(e, &r, NULL), -EINVAL, "has no function read");
	help_expect(embeng_checkpoint_open_stream(NULL, NULL, NULL, &c, NULL), -EINVAL,
		    "embeng_reader");
	r = memory_reader(&m);
	help_expect(embeng_checkpoint_open_stream(&r, NULL, NULL, NULL, NULL), -EINVAL,
		    "out must be given");
	help_expect(embeng_checkpoint_pack(NULL, &w, NULL, NULL), -EINVAL, "no checkpoint given");
	help_expect(embeng_checkpoint_unpack(&r, NULL, NULL, NULL), -EINVAL, "no folder given");
	help_expect(embeng_checkpoint_unpack(&r, "none", &p, NULL), -EINVAL, "files is NULL");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		p.files = &names[i];
		help_expect(embeng_checkpoint_unpack(&r, "none", &p, NULL), -EINVAL,
			    "embeng_checkpoint_unpack: '");
	}
	p.keep = 1001;
	p.file_count = 0;
	help_expect(embeng_checkpoint_unpack(&r, "none", &p, NULL), -ERANGE, "keep is 1001");
	ck_assert_int_ne(access("none", F_OK), 0);
	embeng_close(e);
}
END_TEST

START_TEST(values_that_are_not_finite)
{
	struct memory_stream m = {0};
	struct embeng_writer w = memory_writer(&m);
	const struct embeng_save_options o = {.size = sizeof(o), .flags = EMBENG_SAVE_NOT_FINITE};
	struct embeng *e = open_tiny_with(EMBENG_NON_FINITE_ALLOW);
	const float row[2] = {0, __builtin_inff()};
	const int64_t id = 4;
	struct embeng_checkpoint *c;

	help_expect_ok(embeng_rows_write(e, 0, NULL, &id, 1, row));
	help_expect(
		embeng_save_stream(e, &w, NULL), -ERANGE,
		"embeng_save_stream: table t, parameters: row 4, element 1 is inf, which is not "
		"finite; the stream ends within a checkpoint");
	m.bytes = 0;
	help_expect_ok(embeng_save_stream(e, &w, &o));
	c = open_stream(&m);
	ck_assert_int_eq(embeng_checkpoint_finite(c, 0), 0);
	ck_assert_int_eq(embeng_checkpoint_finite(c, 1), 1);
	embeng_checkpoint_close(c);
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

struct watch {
	char words[64];
	unsigned int calls, cancel_at;
	uint64_t done, total;
};

static int watch(void *arg, const struct embeng_progress *p)
{
	struct watch *w = arg;

	if (!strstr(w->words, p->what)) {
		strcat(strcat(w->words, p->what), " ");
		w->done = 0;
	}
	ck_assert_uint_ge(p->done, w->done);
	ck_assert_uint_le(p->done, p->total);
	w->done = p->done;
	w->total = p->total;
	return ++w->calls == w->cancel_at;
}

/* All but the last part can be canceled, and a restore says all of its parts. */
START_TEST(progress_is_told_and_can_cancel)
{
	struct memory_stream m = {0};
	struct embeng_writer w = memory_writer(&m);
	struct embeng *e = open_tiny();
	struct watch seen = {{0}, 0, 0, 0, 0};
	struct embeng_save_options o = {
		.size = sizeof(o), .progress = watch, .progress_arg = &seen};
	struct embeng_restore_options p = {
		.size = sizeof(p), .progress = watch, .progress_arg = &seen};
	unsigned int n, calls;

	help_fill(e, 1);
	help_expect_ok(embeng_save_stream(e, &w, &o));
	ck_assert_str_eq(seen.words, "save ");
	ck_assert_uint_eq(seen.done, seen.total);
	seen = (struct watch){{0}, 0, 2, 0, 0};
	help_expect(
		embeng_save_stream(e, &(struct embeng_writer){sizeof(w), answer_write, NULL}, &o),
		-EIO, "took 0");
	m.bytes = 0;
	help_expect(embeng_save_stream(e, &w, &o), -ECANCELED, "ends within a checkpoint");
	m.bytes = 0;
	help_expect_ok(embeng_save_stream(e, &w, NULL));
	help_fill(e, 2);
	for (n = 1, calls = 2; n <= calls; n++) {
		struct embeng_reader r = memory_reader(&m);
		int ret;

		seen = (struct watch){{0}, 0, n, 0, 0};
		ret = embeng_restore_stream(e, &r, &p);
		calls = ret ? n + 1 : n;
		if (ret) {
			ck_assert_int_eq(ret, -ECANCELED);
			help_expect_tables(e, 2);
		}
		if (n > 100)
			break;
	}
	ck_assert_str_eq(seen.words, "receive verify restore ");
	help_expect_tables(e, 1);
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

static void add(TCase *tcase)
{
	help_never_sync();
	tcase_add_loop_test(tcase, a_stream_has_the_bits_of_a_folder, 0, 4);
	tcase_add_loop_test(tcase, every_golden_checkpoint_goes_there_and_back, 0, 6);
	tcase_add_test(tcase, steps_and_frozen_tables_come_back);
	tcase_add_test(tcase, not_one_byte_behind_a_stream_is_read);
	tcase_add_test(tcase, a_stream_that_ends_anywhere);
	tcase_add_test(tcase, a_bit_that_flips_anywhere);
	tcase_add_test(tcase, a_row_that_changed_is_named);
	tcase_add_test(tcase, a_stream_of_another_model);
	tcase_add_test(tcase, what_is_no_stream);
	tcase_add_test(tcase, archives_made_by_hand);
	tcase_add_test(tcase, a_stream_may_have_no_more_bytes_than_allowed);
	tcase_add_test(tcase, each_write_fails);
	tcase_add_test(tcase, each_read_fails);
	tcase_add_test(tcase, answers_that_cannot_be);
	tcase_add_test(tcase, arguments_that_cannot_be);
	tcase_add_test(tcase, values_that_are_not_finite);
	tcase_add_test(tcase, progress_is_told_and_can_cancel);
}

int main(void)
{
	return suite_main("streams", add);
}
