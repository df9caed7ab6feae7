// SPDX-License-Identifier: MIT
/* Checkpoints of n hosts: what lies where, and as checkpoints of m hosts. */
#include "checkpoint_edit.h"

#include "runtime/src/checkpoint/checkpoint.h"

static const uint32_t hosts_of[] = {1, 2, 3, 5, 8, 41};
#define HOSTS (sizeof(hosts_of) / sizeof(*hosts_of))

static struct embeng *open_hosts(const struct help_table *tables, size_t count, uint32_t hosts,
				 enum embeng_sharding sharding)
{
	struct embeng_engine_config c = {.size = sizeof(c), .hosts = hosts, .sharding = sharding};
	struct embeng_model *m = help_model(tables, count);
	struct embeng *e = NULL;

	help_expect_ok(embeng_model_set_engine(m, &c));
	help_expect_ok(embeng_open(SMALL, m, &e, NULL));
	embeng_model_free(m);
	return e;
}

/* A checkpoint of all optimizers' tables over these hosts, in files of few rows. */
static void save_hosts(const char *folder, uint32_t hosts, enum embeng_sharding sharding)
{
	struct embeng_save_options o = {
		.size = sizeof(o), .shard_bytes = 9000, .program_state = "mine"};
	size_t count;
	const struct help_table *tables = all_optimizers(&count);
	struct embeng *e = open_hosts(tables, count, hosts, sharding);

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	embeng_close(e);
}

static struct embeng_reshard_options options(uint32_t hosts, enum embeng_sharding sharding)
{
	return (struct embeng_reshard_options){.size = sizeof(struct embeng_reshard_options),
					       .hosts = hosts,
					       .sharding = sharding,
					       .shard_bytes = 7000};
}

/* Each host's part as a host of another number reads it. */
static void expect_parts(const struct embeng_checkpoint *c, uint32_t hosts,
			 enum embeng_sharding sharding)
{
	static float data[400 * 130];

	for (uint32_t host = 0; host < hosts; host++) {
		struct embeng_shard s = {
			.size = sizeof(s), .sharding = sharding, .hosts = hosts, .host = host};
		struct embeng_shard_rows part;
		int64_t skip;

		ck_assert_int_eq(embeng_shard_rows(&s, 400, &part), 0);
		skip = part.count > 2 ? 2 : 0;
		help_expect_ok(embeng_checkpoint_read_shard(c, 2, "accumulators", &s, skip,
							    (size_t)(part.count - skip), data));
		for (int64_t i = 0; i < (part.count - skip) * 130; i++) {
			int64_t row = part.first + (i / 130 + skip) * part.stride;

			if (data[i] != help_value(2, 1, (uint64_t)(row * 130 + i % 130), 1))
				ck_abort_msg("host %u of %u: element %lld of row %lld", host, hosts,
					     (long long)(i % 130), (long long)row);
		}
	}
}

static void expect_whole(const char *folder, uint32_t hosts, enum embeng_sharding sharding)
{
	struct embeng_checkpoint *c = help_checkpoint(folder);
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_engine_config engine = {.size = sizeof(engine)};

	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_str_eq(info.program_state, "mine");
	help_expect_ok(embeng_model_get_engine(embeng_checkpoint_model(c), &engine));
	ck_assert_uint_eq(engine.hosts, hosts);
	if (hosts > 1)
		ck_assert_int_eq(engine.sharding, sharding);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_checkpoint(c, 1);
	expect_parts(c, 3, EMBENG_SHARDING_MOD);
	expect_parts(c, 4, EMBENG_SHARDING_DIV);
	embeng_checkpoint_close(c);
}

START_TEST(any_hosts_become_any_others)
{
	char from[HELP_PATH], to[HELP_PATH];

	help_never_sync();
	folder_new(from);
	folder_new(to);
	for (size_t k = 0; k < 2 * HOSTS; k++) {
		enum embeng_sharding sharding = (enum embeng_sharding)(k % 2);

		save_hosts(from, hosts_of[k / 2], sharding);
		expect_whole(from, hosts_of[k / 2], sharding);
		for (size_t j = 0; j < 2 * HOSTS; j += 1 + k % 3) {
			struct embeng_reshard_options o = options(hosts_of[j / 2],
								  (enum embeng_sharding)(j % 2));

			help_expect_ok(embeng_checkpoint_reshard(from, to, &o, NULL));
			expect_whole(to, o.hosts, o.sharding);
		}
	}
	folder_remove(from);
	folder_remove(to);
}
END_TEST

/* Written by n hosts, read by an engine of m; the step count comes with it. */
START_TEST(any_hosts_restore_any_others)
{
	char folder[HELP_PATH];
	size_t count;
	const struct help_table *tables = all_optimizers(&count);

	help_never_sync();
	folder_new(folder);
	for (size_t k = 0; k < 2 * HOSTS; k++) {
		struct embeng *e = open_hosts(tables, count, hosts_of[(k + 3) % HOSTS],
					      (enum embeng_sharding)(k / 2 % 2));

		save_hosts(folder, hosts_of[k / 2], (enum embeng_sharding)(k % 2));
		help_fill(e, 2);
		help_expect_ok(embeng_restore(e, folder, NULL));
		help_expect_tables(e, 1);
		embeng_close(e);
	}
	folder_remove(folder);
}
END_TEST

/* Rows 0, 3, 6 and 1, 4 and 2, 5 of seven; with two rows a file. */
START_TEST(mod_files_hold_every_nth_row)
{
	const struct help_table table = {"t", 7, 2, embeng_adagrad(0.1f)};
	const int64_t firsts[] = {0, 6, 1, 2}, counts[] = {2, 1, 2, 2};
	struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 32};
	struct embeng *e = open_hosts(&table, 1, 3, EMBENG_SHARDING_MOD);
	const struct checkpoint_piece *pieces;
	struct embeng_checkpoint *c;
	char folder[HELP_PATH], text[EDIT_BYTES];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	c = help_checkpoint(folder);
	ck_assert_int_eq(checkpoint_pieces(c, 0, 1, &pieces), 4);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(pieces[i].first, firsts[i]);
		ck_assert_int_eq(pieces[i].count, counts[i]);
		ck_assert_int_eq(pieces[i].stride, 3);
		ck_assert(pieces[i].rows[1] == help_value(0, 1, (uint64_t)(2 * firsts[i] + 1), 1));
	}
	for (int64_t row = 0; row < 7; row++) {
		const struct checkpoint_piece *piece = checkpoint_piece_of(pieces, 4, row);

		ck_assert_int_eq(piece->first + checkpoint_place(piece, row) * 3, row);
		ck_assert_int_lt(checkpoint_place(piece, row), piece->count);
	}
	edit_read(folder, "index.json", text);
	ck_assert_ptr_nonnull(strstr(text, "\"hosts\": 3"));
	ck_assert_ptr_nonnull(strstr(text, "\"sharding\": \"mod\""));
	ck_assert_ptr_nonnull(
		strstr(text, "\"requires\": [\n    \"mod\",\n    \"chunk_tables\"\n  ]"));
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Checkpoints whose rows lie side by side require no reader that knows mod. */
START_TEST(div_files_read_as_before)
{
	char folder[HELP_PATH], *text = malloc(1 << 20), *path;
	FILE *file;

	folder_new(folder);
	save_hosts(folder, 4, EMBENG_SHARDING_DIV);
	path = file_path(folder, "index.json");
	file = fopen(path, "rb");
	text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
	fclose(file);
	ck_assert_ptr_nonnull(
		strstr(text, "\"requires\": [\n    \"shared\",\n    \"chunk_tables\"\n  ]"));
	ck_assert_ptr_nonnull(strstr(text, "\"hosts\": 4"));
	save_hosts(folder, 1, EMBENG_SHARDING_MOD);
	file = fopen(path, "rb");
	text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
	fclose(file);
	ck_assert_ptr_nonnull(
		strstr(text, "\"requires\": [\n    \"shared\",\n    \"chunk_tables\"\n  ]"));
	ck_assert_ptr_null(strstr(text, "\"hosts\""));
	free(path);
	free(text);
	folder_remove(folder);
}
END_TEST

/* The folder that is read may be the one that is written. */
START_TEST(in_place)
{
	struct embeng_reshard_options o = options(5, EMBENG_SHARDING_MOD);
	static char names[HELP_FILES][256];
	struct embeng_checkpoint *c;
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	char folder[HELP_PATH];

	o.keep = 1;
	folder_new(folder);
	save_hosts(folder, 2, EMBENG_SHARDING_DIV);
	help_expect_ok(embeng_checkpoint_reshard(folder, folder, &o, NULL));
	expect_whole(folder, 5, EMBENG_SHARDING_MOD);
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	/* The index and the lock beside them. */
	ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), info.file_count + 2);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

START_TEST(progress_and_cancel)
{
	struct embeng_reshard_options o = options(3, EMBENG_SHARDING_MOD);
	struct help_watch watch = {.what = "reshard"};
	char from[HELP_PATH], to[HELP_PATH];
	unsigned int calls;

	folder_new(from);
	folder_new(to);
	save_hosts(from, 2, EMBENG_SHARDING_DIV);
	o.progress = help_watch;
	o.progress_arg = &watch;
	help_expect_ok(embeng_checkpoint_reshard(from, to, &o, NULL));
	ck_assert_uint_eq(watch.done, watch.total);
	ck_assert_uint_gt(watch.calls, 50);
	calls = watch.calls;
	o.progress = NULL;
	o.sharding = EMBENG_SHARDING_DIV;
	help_expect_ok(embeng_checkpoint_reshard(from, to, &o, NULL));
	o.progress = help_watch;
	o.sharding = EMBENG_SHARDING_MOD;
	for (unsigned int at = 1; at < calls; at += 17) {
		watch = (struct help_watch){.what = "reshard", .cancel_at = at};
		help_expect(embeng_checkpoint_reshard(from, to, &o, NULL), -ECANCELED,
			    "embeng_checkpoint_reshard: canceled after");
		expect_whole(to, 3, EMBENG_SHARDING_DIV);
	}
	folder_remove(from);
	folder_remove(to);
}
END_TEST

START_TEST(refused)
{
	struct embeng_reshard_options o = options(3, EMBENG_SHARDING_MOD), wrong;
	struct embeng_error error = {.size = sizeof(error)};
	char from[HELP_PATH], to[HELP_PATH + 8], parent[HELP_PATH];

	folder_new(from);
	folder_new(parent);
	snprintf(to, sizeof(to), "%s/to", parent);
	save_hosts(from, 2, EMBENG_SHARDING_DIV);
	help_expect(embeng_checkpoint_reshard(NULL, to, &o, NULL), -EINVAL, "in and out");
	help_expect(embeng_checkpoint_reshard(from, NULL, &o, NULL), -EINVAL, "in and out");
	help_expect(embeng_checkpoint_reshard(from, to, NULL, NULL), -EINVAL, "NULL was given");
	wrong = o;
	wrong.hosts = (uint32_t)INT32_MAX + 1;
	help_expect(embeng_checkpoint_reshard(from, to, &wrong, NULL), -ERANGE, "2147483648 hosts");
	wrong = o;
	wrong.sharding = (enum embeng_sharding)2;
	help_expect(embeng_checkpoint_reshard(from, to, &wrong, NULL), -EINVAL, "sharding 2");
	ck_assert_int_eq(embeng_checkpoint_reshard(parent, to, &o, &error), -ENOENT);
	ck_assert_ptr_nonnull(strstr(error.text, "index.json"));
	/* Nothing was made for any of them. */
	ck_assert_int_eq(access(to, F_OK), -1);
	folder_remove(from);
	folder_remove(parent);
}
END_TEST

START_TEST(too_many_files)
{
	const struct help_table table = {"t", 70000, 1, embeng_sgd(0.1f)};
	struct embeng *e = open_hosts(&table, 1, 70000, EMBENG_SHARDING_MOD);
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect(embeng_save(e, folder, NULL), -ERANGE,
		    "over 70000 hosts makes more than 60000 files with table t");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A byte of a shard is another: the chunk is found where it is read. */
START_TEST(corrupt)
{
	struct embeng_reshard_options o = options(3, EMBENG_SHARDING_MOD);
	static char names[HELP_FILES][256], text[EDIT_BYTES];
	char from[HELP_PATH], to[HELP_PATH];
	size_t count, length;

	folder_new(from);
	folder_new(to);
	save_hosts(from, 2, EMBENG_SHARDING_MOD);
	count = folder_files(from, names, HELP_FILES);
	for (size_t i = 0; i < count; i++) {
		if (!strstr(names[i], ".safetensors"))
			continue;
		length = edit_read(from, names[i], text);
		text[length - 1] ^= 1;
		edit_write(from, names[i], text, length);
		break;
	}
	help_expect(embeng_checkpoint_reshard(from, to, &o, NULL), -EBADMSG, "checksum");
	ck_assert_uint_eq(folder_files(to, names, HELP_FILES), 1);
	folder_remove(from);
	folder_remove(to);
}
END_TEST

START_TEST(parts_refused)
{
	struct embeng_shard s = {.size = sizeof(s), .hosts = 3, .host = 1}, wrong = s;
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float data[8] = {7};

	folder_new(folder);
	save_hosts(folder, 2, EMBENG_SHARDING_MOD);
	c = help_checkpoint(folder);
	help_expect(embeng_checkpoint_read_shard(NULL, 0, NULL, &s, 0, 1, data), -EINVAL,
		    "a checkpoint and data must be given");
	help_expect(embeng_checkpoint_read_shard(c, 0, NULL, &s, 0, 1, NULL), -EINVAL,
		    "a checkpoint and data must be given");
	help_expect(embeng_checkpoint_read_shard(c, 9, NULL, &s, 0, 1, data), -ENOENT, "table 9");
	help_expect(embeng_checkpoint_read_shard(c, 0, "momenta", &s, 0, 1, data), -ENOENT,
		    "momenta");
	/* 5 rows over 3 hosts: the second has two. */
	help_expect(embeng_checkpoint_read_shard(c, 0, NULL, &s, 1, 2, data), -ERANGE,
		    "2 rows from 1 of host 1 of 3, which has 2 of table none");
	wrong.host = 3;
	help_expect(embeng_checkpoint_read_shard(c, 0, NULL, &wrong, 0, 1, data), -ERANGE,
		    "host 3 of 3");
	ck_assert(data[0] == 7);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* A resharded checkpoint keeps the step, here 2, of the one that it was made from. */
START_TEST(the_step_is_kept)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	const struct embeng_reshard_options o = options(2, EMBENG_SHARDING_MOD);
	const char *root = getenv("EMBENG_SOURCE_ROOT");
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	char *golden;

	ck_assert_msg(root != NULL, "EMBENG_SOURCE_ROOT must name the source tree");
	golden = file_path(root, "tests/golden/checkpoint");
	folder_new(folder);
	help_expect_ok(embeng_checkpoint_reshard(golden, folder, &o, NULL));
	c = help_checkpoint(folder);
	help_expect_ok(embeng_checkpoint_info(c, &info));
	ck_assert_uint_eq(info.step, 2);
	embeng_checkpoint_close(c);
	folder_remove(folder);
	free(golden);
}
END_TEST

RUN_SUITE("reshard", any_hosts_become_any_others, any_hosts_restore_any_others,
	  mod_files_hold_every_nth_row, div_files_read_as_before, in_place, progress_and_cancel,
	  refused, too_many_files, corrupt, parts_refused, the_step_is_kept)
