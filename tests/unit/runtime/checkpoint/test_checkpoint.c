// SPDX-License-Identifier: MIT
/* Checkpoints as they are saved and read back, without a restore. */
#include "runtime/src/checkpoint/index.h"
#include "runtime/src/checkpoint/open.h"
#include "runtime/src/session/session.h"
#include "checkpoint_help.h"

START_TEST(reads_back_what_was_saved)
{
	struct embeng_save_options o = {.size = sizeof(o), .program_state = "{\"seed\": 7}\n\"\\"};
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng *e = open_all(test_device("soft:cores=3,memory=64M"));
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.table_count, 7);
	ck_assert_uint_eq(info.file_count, 1);
	ck_assert_uint_eq(info.chunk_count, 108);
	ck_assert_uint_eq(info.step, 0);
	ck_assert_uint_eq(info.model_hash, embeng_model_hash(embeng_get_model(e)));
	ck_assert_str_eq(info.program_state, o.program_state);
	help_expect_checkpoint(c, 1);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- reading --------------------------------------------------------------- */

/* One table of @rows x 17, of four shards, the last of which has half as many rows as the others. */
static struct embeng *open_sharded(const char *folder, int64_t rows)
{
	const struct help_table t = {"t", rows, 17, embeng_adagrad(0.1f)};
	struct embeng_save_options o = {.size = sizeof(o),
					.shard_bytes = (uint64_t)rows * 2 / 7 * 17 * 8};
	struct embeng *e = help_open(SMALL, &t, 1);

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	return e;
}

static struct embeng *open_large(const char *folder)
{
	return open_sharded(folder, 70000);
}

static void expect_rows(const struct embeng_checkpoint *c, const char *slot, int64_t first,
			size_t count)
{
	float *data = malloc(count * 17 * sizeof(*data));

	help_expect_ok(embeng_checkpoint_read(c, 0, slot, first, count, data));
	for (size_t i = 0; i < count * 17; i++) {
		if (data[i] != help_value(0, slot != NULL, (uint64_t)first * 17 + i, 1))
			ck_abort_msg("row %zu differs", (size_t)first + i / 17);
	}
	free(data);
}

START_TEST(reads_ranges_over_shards)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	embeng_close(open_large(folder));
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.file_count, 4);
	ck_assert_uint_eq(info.chunk_count, 2328);
	expect_rows(c, NULL, 0, 1);
	expect_rows(c, NULL, 69999, 1);
	expect_rows(c, "accumulators", 19999, 2);
	expect_rows(c, NULL, 19999, 40003);
	expect_rows(c, NULL, 20000, 20000);
	expect_rows(c, "accumulators", 0, 70000);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 70000, 0, NULL));
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

START_TEST(says_what_is_wrong_with_a_read)
{
	struct embeng_checkpoint_info info = {.size = 8};
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float data[17] = {7};

	folder_new(folder);
	embeng_close(open_large(folder));
	c = help_checkpoint(folder);
	help_expect(embeng_checkpoint_read(NULL, 0, NULL, 0, 1, data), -EINVAL, "must be given");
	help_expect(embeng_checkpoint_read(c, 0, NULL, 0, 1, NULL), -EINVAL, "must be given");
	help_expect(embeng_checkpoint_read(c, 1, NULL, 0, 1, data), -ENOENT, "no table 1");
	help_expect(embeng_checkpoint_read(c, -1, NULL, 0, 1, data), -ENOENT, "no table -1");
	help_expect(embeng_checkpoint_read(c, 0, "momenta", 0, 1, data), -ENOENT, "momenta");
	help_expect(embeng_checkpoint_read(c, 0, NULL, -1, 1, data), -ERANGE, "from row -1");
	help_expect(embeng_checkpoint_read(c, 0, NULL, 70001, 0, data), -ERANGE, "has 70000");
	help_expect(embeng_checkpoint_read(c, 0, NULL, 69999, 2, data), -ERANGE, "has 70000");
	help_expect(embeng_checkpoint_read(c, 0, NULL, 1, SIZE_MAX, data), -ERANGE, "has 70000");
	ck_assert(data[0] == 7);
	help_expect(embeng_checkpoint_info(c, &info), -EINVAL, "embeng_checkpoint_info");
	help_expect(embeng_checkpoint_info(NULL, &info), -EINVAL, "embeng_checkpoint_info");
	help_expect(embeng_checkpoint_verify(NULL, NULL, NULL), -EINVAL, "no checkpoint");
	help_expect(embeng_checkpoint_open(NULL, &c, NULL), -EINVAL, "must be given");
	help_expect(embeng_checkpoint_open(folder, NULL, NULL), -EINVAL, "must be given");
	help_expect(embeng_checkpoint_open("/nowhere", &c, NULL), -ENOENT, "/nowhere/index.json");
	embeng_checkpoint_close(c);
	embeng_checkpoint_close(NULL);
	ck_assert_ptr_null(embeng_checkpoint_model(NULL));
	folder_remove(folder);
}
END_TEST

/* One byte of the second chunk of a shard: rows of the first chunk are still given. */
#define BAD_CHUNK (1024 * CHUNK_BYTES)

START_TEST(a_corrupt_chunk_spares_the_others)
{
	const struct help_table t = {"t", 70000, 17, {0}};
	struct embeng *e = help_open(SMALL, &t, 1);
	const struct checkpoint_piece *pieces;
	struct embeng_checkpoint *c;
	char folder[HELP_PATH], *path, byte;
	float row[17];
	FILE *file;

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	c = help_checkpoint(folder);
	ck_assert_int_eq(checkpoint_pieces(c, 0, 0, &pieces), 1);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	path = file_path(folder, c->index.files[0].name);
	file = fopen(path, "r+b");
	ck_assert_int_eq(fseek(file, BAD_CHUNK + 5, SEEK_SET), 0);
	byte = (char)(fgetc(file) ^ 0x10);
	ck_assert_int_eq(fseek(file, BAD_CHUNK + 5, SEEK_SET), 0);
	fputc(byte, file);
	ck_assert_int_eq(fclose(file), 0);
	/* A verification looks at everything, whatever was found right before. */
	help_expect(embeng_checkpoint_verify(c, NULL, NULL), -EBADMSG, "offset 4194304");
	expect_rows(c, NULL, 0, 61000);
	help_expect(embeng_checkpoint_read(c, 0, NULL, 61700, 1, row), -EBADMSG,
		    "00000000.safetensors: offset 4194304: the 4096 bytes");
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 69999, 1, row));
	help_expect(checkpoint_check(c, pieces, BAD_CHUNK - pieces->offset, 1), -EBADMSG,
		    "offset 4194304");
	help_expect_ok(checkpoint_check(c, pieces, 0, BAD_CHUNK - pieces->offset));
	help_expect_ok(checkpoint_check(c, pieces, BAD_CHUNK, 0));
	help_expect(embeng_restore(e, folder, NULL), -EBADMSG, "offset 4194304");
	help_expect_tables(e, 1);
	embeng_checkpoint_close(c);
	embeng_close(e);
	free(path);
	folder_remove(folder);
}
END_TEST

START_TEST(pieces_are_the_mapped_rows)
{
	const struct checkpoint_piece *pieces;
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	int64_t next = 0;

	folder_new(folder);
	embeng_close(open_large(folder));
	c = help_checkpoint(folder);
	ck_assert_int_eq(checkpoint_pieces(c, 0, 1, &pieces), 4);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(pieces[i].first, next);
		ck_assert_uint_eq((uintptr_t)pieces[i].rows % 4, 0);
		ck_assert_uint_eq(pieces[i].file, i);
		ck_assert(pieces[i].rows[16] == help_value(0, 1, (uint64_t)next * 17 + 16, 1));
		next += pieces[i].count;
	}
	ck_assert_int_eq(next, 70000);
	help_expect(checkpoint_pieces(c, 1, 0, &pieces), -ENOENT, "no table 1");
	help_expect(checkpoint_pieces(c, -1, 0, &pieces), -ENOENT, "no table -1");
	help_expect(checkpoint_pieces(c, 0, 2, &pieces), -ENOENT, "no slot 1");
	help_expect(checkpoint_pieces(c, 0, -1, &pieces), -ENOENT, "no slot");
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* A shard that is truncated after it was opened gives an error and does not end the process. */
START_TEST(a_shard_cut_while_open)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH], *path;
	struct embeng *e;
	float row[17];

	folder_new(folder);
	e = open_large(folder);
	c = help_checkpoint(folder);
	path = file_path(folder, c->index.files[1].name);
	ck_assert_int_eq(truncate(path, 100), 0);
	help_expect(embeng_checkpoint_read(c, 0, NULL, 30000, 1, row), -EIO,
		    "00000001.safetensors: offset");
	help_expect(embeng_checkpoint_verify(c, NULL, NULL), -EIO, "00000001.safetensors");
	expect_rows(c, NULL, 0, 20000);
	help_expect(embeng_restore(e, folder, NULL), -EBADMSG, "has 100 bytes, the index says");
	embeng_checkpoint_close(c);
	embeng_close(e);
	free(path);
	folder_remove(folder);
}
END_TEST

/* Puts a folder or, for nobody to write to, a pipe in a file's place. */
static void expect_no_file(const char *folder, const char *name, bool pipe)
{
	struct embeng_checkpoint *c;
	char *path = file_path(folder, name), *kept = file_path(folder, "kept"), text[64];

	snprintf(text, sizeof(text), "%s: is not a regular file", name);
	ck_assert_int_eq(rename(path, kept), 0);
	ck_assert_int_eq(pipe ? mkfifo(path, 0600) : mkdir(path, 0700), 0);
	help_expect(embeng_checkpoint_open(folder, &c, NULL), -EBADMSG, text);
	ck_assert_int_eq(remove(path), 0);
	ck_assert_int_eq(rename(kept, path), 0);
	free(kept);
	free(path);
}

START_TEST(no_file_where_one_must_be)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	embeng_close(open_large(folder));
	c = help_checkpoint(folder);
	for (int pipe = 0; pipe < 2; pipe++) {
		expect_no_file(folder, c->index.files[1].name, pipe);
		expect_no_file(folder, INDEX_NAME, pipe);
	}
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

START_TEST(a_verification_is_canceled_at_each_call)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct help_watch w = {.what = "verify"};
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	unsigned int calls;

	folder_new(folder);
	/* Each verification begins at the first chunk: the time is as the square of their number. */
	embeng_close(open_sharded(folder, 7000));
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.file_count, 4);
	help_expect_ok(embeng_checkpoint_verify(c, help_watch, &w));
	ck_assert_uint_eq(w.done, info.bytes);
	ck_assert_uint_eq(w.total, info.bytes);
	ck_assert_uint_eq(w.calls, 1 + info.chunk_count);
	calls = w.calls;
	for (unsigned int at = 1; at <= calls; at++) {
		w = (struct help_watch){.what = "verify", .cancel_at = at};
		help_expect(embeng_checkpoint_verify(c, help_watch, &w), -ECANCELED,
			    "canceled after");
		ck_assert_uint_eq(w.calls, at);
	}
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* The model of the checkpoint in the tree, as it was when that was written. */
static void expect_golden_model(const struct embeng_model *m)
{
	struct embeng_table_config c = {.size = sizeof(c)};
	struct embeng_feature_config f = {.size = sizeof(f)};

	ck_assert_uint_eq(embeng_model_table_count(m), 3);
	ck_assert_int_eq(embeng_model_get_table(m, 0, &c), 0);
	ck_assert_str_eq(c.name, "words/\xc3\xa9");
	ck_assert(c.vocabulary_size == 5 && c.dim == 3);
	ck_assert_int_eq(c.optimizer.kind, EMBENG_ADAM);
	ck_assert(c.optimizer.bias_correction && c.optimizer.learning_rate == 0.1f);
	ck_assert(c.optimizer.epsilon == 1e-8f && c.optimizer.beta_2 == 0.999f);
	ck_assert(c.optimizer.has_clip_weight_min && c.optimizer.clip_weight_min < -3e38f);
	ck_assert(!c.optimizer.has_clip_weight_max);
	ck_assert_int_eq(embeng_model_get_table(m, 1, &c), 0);
	ck_assert_str_eq(c.optimizer.rate_name, "rate");
	ck_assert_int_eq(embeng_model_get_table(m, 2, &c), 0);
	ck_assert_int_eq(c.optimizer.kind, EMBENG_OPTIMIZER_NO);
	ck_assert_int_eq(embeng_model_get_feature(m, 0, &f), 0);
	ck_assert_str_eq(f.name, "f");
	ck_assert(f.max_sequence_length == 4 && f.check_weights && !f.unchecked_serving);
}

START_TEST(an_old_checkpoint_stays_readable)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	const char *root = getenv("EMBENG_SOURCE_ROOT");
	struct embeng_checkpoint *c;
	const struct embeng_model *m;
	char *folder;
	float data[15];

	ck_assert_msg(root != NULL, "EMBENG_SOURCE_ROOT must name the source tree");
	folder = file_path(root, "tests/golden/checkpoint");
	c = help_checkpoint(folder);
	m = embeng_checkpoint_model(c);
	expect_golden_model(m);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.step, 2);
	ck_assert_str_eq(info.program_state, "{\"epoch\": 3}\n");
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	for (size_t t = 0; t < 3; t++) {
		for (size_t a = 0; a <= embeng_model_slot_count(m, t); a++) {
			help_expect_ok(embeng_checkpoint_read(c, (int)t, help_slot(m, t, a), 0,
							      help_rows(m, t), data));
			for (size_t i = 0; i < help_elements(m, t); i++)
				ck_assert(data[i] == (float)(1000 * t + 100 * a + i) + 0.5f);
		}
	}
	embeng_checkpoint_close(c);
	free(folder);
}
END_TEST

/* The index says all of a model that its hash covers. */
START_TEST(the_model_comes_back_as_it_was)
{
	struct embeng *e = open_all(SMALL);
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	c = help_checkpoint(folder);
	ck_assert_uint_eq(embeng_model_hash(embeng_checkpoint_model(c)),
			  embeng_model_hash(embeng_get_model(e)));
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("checkpoint", reads_back_what_was_saved, reads_ranges_over_shards,
	  says_what_is_wrong_with_a_read, a_corrupt_chunk_spares_the_others,
	  pieces_are_the_mapped_rows, a_shard_cut_while_open, no_file_where_one_must_be,
	  a_verification_is_canceled_at_each_call, an_old_checkpoint_stays_readable,
	  the_model_comes_back_as_it_was)
