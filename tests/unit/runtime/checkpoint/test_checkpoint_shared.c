// SPDX-License-Identifier: MIT
/* Small tables that share shards: which do, how few files and syncs that takes, and what an index
 * may say of it. */
#include <fcntl.h>

#include "checkpoint_edit.h"
#include "suite.h"

static struct {
	struct file_ops ops;
	unsigned int syncs, opens;
} counted;

static int count_sync(int fd)
{
	(void)fd;
	counted.syncs++;
	return 0;
}

static int count_open(const char *path, int flags)
{
	/* The file is opened again to be read back. */
	counted.opens += flags & O_CREAT && strstr(path, ".safetensors");
	return file_ops_system.open(path, flags);
}

static void count_files(void)
{
	counted.ops = file_ops_system;
	counted.ops.sync = count_sync;
	counted.ops.open = count_open;
	counted.syncs = counted.opens = 0;
	file_ops = &counted.ops;
}

static uint64_t files_of(const char *folder)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = help_checkpoint(folder);

	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	embeng_checkpoint_close(c);
	return info.file_count;
}

/* Saves what help_fill(e, 3) gave into a folder of its own, and reads it again. */
static void expect_files_of_save(struct embeng *e, const struct embeng_save_options *options,
				 uint64_t files)
{
	char folder[HELP_PATH];
	struct embeng_checkpoint *c;

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, options));
	ck_assert_uint_eq(files_of(folder), files);
	c = help_checkpoint(folder);
	help_expect_checkpoint(c, 3);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}

static struct embeng *open_tables(const struct help_table *tables, size_t count, uint32_t hosts)
{
	const struct embeng_engine_config engine = {
		.size = sizeof(engine), .hosts = hosts, .sharding = EMBENG_SHARDING_MOD};
	struct embeng_model *m = help_model(tables, count);
	struct embeng *e;

	ck_assert_int_eq(embeng_model_set_engine(m, &engine), 0);
	ck_assert_int_eq(embeng_open("soft:cores=1", m, &e, NULL), 0);
	embeng_model_free(m);
	help_fill(e, 3);
	return e;
}

/* Beside them are the syncs of the folder before the index, of the index, and of the folder. */
START_TEST(five_hundred_tables_take_few_files_and_syncs)
{
	static struct help_table tables[500];
	static char names[500][16];
	char folder[HELP_PATH], in_folder[HELP_FILES][256];
	struct embeng_checkpoint *c;
	struct embeng *e;

	for (int i = 0; i < 500; i++) {
		snprintf(names[i], sizeof(names[i]), "t%d", i);
		tables[i] = (struct help_table){names[i], 1 + i % 40, 1 + i % 9, {0}};
		if (i % 3)
			tables[i].optimizer = embeng_adagrad(0.1f);
	}
	e = open_tables(tables, 500, 1);
	folder_new(folder);
	count_files();
	help_expect_ok(embeng_save(e, folder, NULL));
	file_ops = &file_ops_system;
	ck_assert_uint_eq(counted.opens, 1);
	ck_assert_uint_eq(counted.syncs, 1 + 3);
	ck_assert_uint_eq(files_of(folder), 1);
	c = help_checkpoint(folder);
	help_expect_checkpoint(c, 3);
	embeng_checkpoint_close(c);
	help_fill(e, 4);
	help_expect_ok(embeng_restore(e, folder, NULL));
	help_expect_tables(e, 3);
	/* Files of the save before are removed, shared or not. */
	help_expect_ok(embeng_save(e, folder,
				   &(struct embeng_save_options){
					   .size = sizeof(struct embeng_save_options), .keep = 1}));
	ck_assert_uint_eq(folder_files(folder, in_folder, HELP_FILES), 3);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* The tables have 64000 bytes, and a little more or less. */
START_TEST(shared_shards_are_no_larger_than_others)
{
	static const struct help_table tables[] = {{"a", 1000, 16, {0}}, {"b", 1000, 16, {0}},
						   {"c", 1000, 16, {0}}, {"d", 1001, 16, {0}},
						   {"e", 1, 1, {0}},	 {"f", 3000, 16, {0}}};
	struct embeng *e = open_tables(tables, 6, 1);
	struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 2 * 64000};

	/* a b | c e | d | f in two, since no shard holds it whole */
	expect_files_of_save(e, &o, 5);
	o.shard_bytes = 2 * 64000 + 68;
	/* a b | c d e | f in two */
	expect_files_of_save(e, &o, 4);
	o.shard_bytes = 7 * 64000 + 68;
	expect_files_of_save(e, &o, 1);
	embeng_close(e);
}
END_TEST

START_TEST(a_large_table_has_its_own)
{
	const struct help_table tables[] = {{"large", (8 << 20) / 64 + 1, 16, {0}},
					    {"small", 4, 2, {0}},
					    {"limit", (8 << 20) / 64, 16, {0}}};
	struct embeng *e = open_tables(tables, 3, 1);

	expect_files_of_save(e, NULL, 2);
	embeng_close(e);
}
END_TEST

START_TEST(hosts_share_nothing)
{
	const struct help_table tables[] = {{"a", 7, 2, {0}}, {"b", 2, 3, {0}}, {"c", 9, 1, {0}}};
	struct embeng *e = open_tables(tables, 3, 4);

	expect_files_of_save(e, NULL, 4);
	embeng_close(e);
}
END_TEST

/* Entries 0 to 2 are in one shard, and 3 and 4 in another. */
static const struct {
	const char *old, *new, *text;
} edits[] = {
	{"\"shares\": 0", "\"shares\": 1", "files 1: \"shares\" is 1, which is no file before it"},
	{"\"shares\": 0", "\"shares\": 3", "files 1: \"shares\" is 3, which is no file before it"},
	{"\"shares\": 0", "\"shares\": 99", "files 1: \"shares\" is 99, which is no file"},
	{"\"shares\": 0", "\"shares\": -1", "files 1: \"shares\" is not a whole number"},
	{"\"shares\": 0", "\"shares\": \"0\"", "files 1: \"shares\" is not a whole number"},
	{"\"shares\": 0", "\"shares\": 0.5", "files 1: \"shares\" is not a whole number"},
	{"\"shares\": 0", "\"share\": 0", "files 1: \"name\" is not a text"},
	{"\"shares\": 3", "\"shares\": 0", "of another size"},
	{"\"shares\": 3", "\"shares\": 2", "files 4: \"shares\" is 2, which is no file"},
	{"\"b/parameters\": ", "\"b/parameters\": 8, \"x\": ", "files 1: has 2 tensors"},
};

START_TEST(an_index_that_shares_wrongly_is_refused)
{
	static const struct help_table tables[] = {{"a", 3, 2, {0}},
						   {"b", 4, 2, {0}},
						   {"c", 5, 2, {0}},
						   {"d", 30, 2, {0}},
						   {"e", 6, 2, {0}}};
	const struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 290};
	struct embeng *e = open_tables(tables, 5, 1);
	static char text[EDIT_BYTES];
	struct embeng_checkpoint *c = NULL;
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, &o));
	ck_assert_uint_eq(files_of(folder), 2);
	edit_read(folder, "index.json", text);
	ck_assert_ptr_nonnull(strstr(text, "\"shares\": 3"));
	edit_replace(text, edits[_i].old, edits[_i].new);
	edit_seal(text);
	edit_write(folder, "index.json", text, strlen(text));
	ck_assert_int_eq(embeng_checkpoint_open(folder, &c, NULL), -EBADMSG);
	if (strcmp(edits[_i].text, "of another size"))
		expect_text(edits[_i].text);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, five_hundred_tables_take_few_files_and_syncs);
	tcase_add_test(tcase, shared_shards_are_no_larger_than_others);
	tcase_add_test(tcase, a_large_table_has_its_own);
	tcase_add_test(tcase, hosts_share_nothing);
	tcase_add_loop_test(tcase, an_index_that_shares_wrongly_is_refused, 0,
			    sizeof(edits) / sizeof(edits[0]));
}

int main(void)
{
	return suite_main("shared", add);
}
