// SPDX-License-Identifier: MIT
/*
 * A save is cut at every operation, and the disk forgets what was not synced: the folder
 * then holds the old checkpoint or the new one, whole. So it is when a delta is saved, and when a chain of
 * deltas is folded into a full checkpoint.
 */
#include "replay.h"
#include "suite.h"

static const char *const states[] = {"old", "new", "older"};

#define OLDER 2

/* The call that is cut short. */
enum cut { CUT_SAVE, CUT_DELTA, CUT_RESHARD, CUT_COMPACT };

static enum cut cut;

/*
 * Returns the index in states of the open checkpoint; checks every bit of it. A chain that is folded is the
 * old state as long as it has deltas, and the new one when it has none.
 */
static int which(const struct embeng_checkpoint *c)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	int state = 0;

	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_ptr_nonnull(info.program_state);
	while (state < OLDER && strcmp(info.program_state, states[state]))
		state++;
	ck_assert_str_eq(info.program_state, states[state]);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_checkpoint(c, (uint32_t)state + 1);
	return cut == CUT_COMPACT && !state ? !info.deltas : state;
}

static struct embeng *open_two(void)
{
	const struct help_table tables[] = {{"t", 6, 2, embeng_adagrad(0.1f)},
					    {"u", 3, 2, embeng_sgd(0.1f)}};

	return help_open("soft:cores=1,memory=1M", tables, 2);
}

/* Number of checkpoints that saves keep. */
static uint32_t keep;

/* The headers of small shards make a full checkpoint larger than a delta of all rows. */
static void save_state_as(struct embeng *e, const char *folder, int state, bool delta)
{
	struct embeng_save_report report = {.size = sizeof(report)};
	struct embeng_save_options o = {.size = sizeof(o),
					.shard_bytes = 64,
					.program_state = states[state],
					.flags = delta ? EMBENG_SAVE_DELTA : 0,
					.keep = keep,
					.report = &report};

	help_fill(e, (uint32_t)state + 1);
	help_expect_ok(embeng_save(e, folder, &o));
	ck_assert_uint_eq(report.delta, delta);
}

static void save_state(struct embeng *e, const char *folder, int state)
{
	save_state_as(e, folder, state, false);
}

/* There is an earlier checkpoint at any time: the older one until the new one has come. */
static void check_earlier(const char *folder, int newest)
{
	struct embeng_checkpoint *c = NULL;

	if (keep == 1) {
		help_expect(embeng_checkpoint_open_earlier(folder, 1, &c, NULL), -ENODATA,
			    "no checkpoint 1 before the newest");
		return;
	}
	help_expect_ok(embeng_checkpoint_open_earlier(folder, 1, &c, NULL));
	ck_assert_int_eq(which(c), newest ? 0 : OLDER);
	embeng_checkpoint_close(c);
}

/* From here on the rename has been asked for. */
static size_t rename_at(void)
{
	for (size_t i = 0; i < replay.op_count; i++) {
		if (replay.ops[i].kind == OP_RENAME && !strcmp(replay.ops[i].to, INDEX_NAME))
			return i;
	}
	ck_abort_msg("nothing was renamed");
	return 0;
}

/* The operation that makes the rename last. */
static size_t commit_at(void)
{
	for (size_t i = rename_at(); i < replay.op_count; i++) {
		if (replay.ops[i].kind == OP_SYNC_FOLDER)
			return i;
	}
	ck_abort_msg("the rename is never synced");
	return 0;
}

/* Returns what the folder must hold after @prefix calls: 0 old (or none), 1 new, -1 either. */
static int expected(size_t prefix)
{
	return prefix <= rename_at() ? 0 : prefix > commit_at() ? 1 : -1;
}

static void expect_deltas(const struct embeng_checkpoint *c, uint32_t want)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};

	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.deltas, want);
}

static void check_crash(const struct replay_disk *disk, const struct replay_crash *crash,
			const char *folder, bool had_old)
{
	struct embeng_checkpoint *c = NULL;
	int want = expected(crash->prefix), got, ret;

	replay_lay_out(disk, crash, folder);
	ret = embeng_checkpoint_open(folder, &c, NULL);
	if (!had_old && want != 1 && ret == -ENOENT)
		return;
	if (ret)
		fprintf(stderr, "prefix %zu, loss %d of %zu, keep %zu, drop %zu\n", crash->prefix,
			(int)crash->loss, crash->eighths, crash->keep, crash->drop_one);
	help_expect_ok(ret);
	got = which(c);
	if (cut == CUT_DELTA)
		expect_deltas(c, (uint32_t)got);
	embeng_checkpoint_close(c);
	if (had_old)
		check_earlier(folder, got);
	ck_assert_msg(want < 0 || got == want, "prefix %zu, loss %d of %zu, keep %zu, drop %zu: %s",
		      crash->prefix, (int)crash->loss, crash->eighths, crash->keep, crash->drop_one,
		      states[got]);
}

/* All that a crash behind @prefix operations may leave. Returns how many states. */
static size_t crash_behind(size_t prefix, const char *folder, bool had_old)
{
	static struct replay_disk disk;
	struct replay_crash crash = {.prefix = prefix};
	size_t count = 0;

	replay_run(&disk, prefix);
	for (size_t k = 0; k < LOSS_KINDS * REPLAY_CUTS; k++) {
		crash.loss = (enum replay_loss)(k / REPLAY_CUTS);
		crash.eighths = k % REPLAY_CUTS;
		crash.drop_one = 0;
		for (crash.keep = 0; crash.keep <= disk.pending_count; crash.keep++, count++)
			check_crash(&disk, &crash, folder, had_old);
		for (crash.drop_one = 1; crash.drop_one < disk.pending_count;
		     crash.drop_one++, count++)
			check_crash(&disk, &crash, folder, had_old);
	}
	return count;
}

/* The next save works in what a crash left, and leaves nothing of it behind. */
static void save_again(struct embeng *e, size_t prefix, const char *folder, bool had_old)
{
	static struct replay_disk disk;
	static char names[HELP_FILES][256];
	struct replay_crash crash = {.prefix = prefix, .eighths = 4};
	struct embeng_checkpoint *c;

	replay_run(&disk, prefix);
	crash.keep = disk.pending_count;
	replay_lay_out(&disk, &crash, folder);
	save_state(e, folder, 1);
	c = help_checkpoint(folder);
	ck_assert_int_eq(which(c), 1);
	embeng_checkpoint_close(c);
	/* Three shards, the index and the lock; an earlier one has shards and an index, too. */
	if (keep == 1 || (had_old && cut == CUT_SAVE))
		ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), keep == 1 ? 5 : 9);
}

/* Writes the new checkpoint, whose calls are then cut short; @from is that of a reshard. */
static void make_new(struct embeng *e, const char *from, const char *folder)
{
	const struct embeng_reshard_options o = {.size = sizeof(o),
						 .hosts = from ? 2 : 1,
						 .shard_bytes = 64,
						 .sharding = from ? EMBENG_SHARDING_MOD
								  : EMBENG_SHARDING_DIV,
						 .keep = keep};

	if (cut == CUT_RESHARD || cut == CUT_COMPACT)
		help_expect_ok(embeng_checkpoint_reshard(from ? from : folder, folder, &o, NULL));
	else
		save_state_as(e, folder, 1, cut == CUT_DELTA);
}

static void replay_all(bool had_old, const char *from)
{
	struct embeng *e = open_two();
	char folder[HELP_PATH], crash[HELP_PATH];
	size_t count = 0;

	folder_new(folder);
	folder_new(crash);
	help_never_sync();
	if (from)
		save_state(e, from, 1);
	/* A delta is folded that stands on the older one. */
	if (had_old && (keep > 1 || cut == CUT_COMPACT))
		save_state(e, folder, OLDER);
	if (had_old)
		save_state_as(e, folder, 0, cut == CUT_COMPACT);
	replay_begin(folder);
	make_new(e, from, folder);
	help_never_sync();
	ck_assert_uint_gt(replay.op_count, 10);
	for (size_t prefix = 0; prefix <= replay.op_count; prefix++) {
		count += crash_behind(prefix, crash, had_old);
		save_again(e, prefix, crash, had_old);
	}
	replay_end();
	printf("%zu states of a disk after a crash behind each of %zu operations, %s\n", count,
	       replay.op_count, had_old ? "over an old checkpoint" : "in an empty folder");
	/* A delta is one shard alone, beside which less can be lost. */
	ck_assert_uint_gt(count, cut == CUT_DELTA ? 700 : 1500);
	embeng_close(e);
	folder_remove(folder);
	folder_remove(crash);
}

START_TEST(each_prefix_over_an_old_checkpoint)
{
	keep = 1;
	replay_all(true, NULL);
}
END_TEST

/* The earlier checkpoint is whole behind each operation, too. */
START_TEST(each_prefix_with_an_earlier_one)
{
	keep = 2;
	replay_all(true, NULL);
}
END_TEST

START_TEST(each_prefix_in_an_empty_folder)
{
	keep = 1;
	replay_all(false, NULL);
}
END_TEST

/* The base is needed by the delta alone. */
START_TEST(each_prefix_of_a_delta)
{
	keep = 1;
	cut = CUT_DELTA;
	replay_all(true, NULL);
}
END_TEST

/* The old chain is whole until the full checkpoint has come, and goes after that. */
START_TEST(each_prefix_of_a_compaction)
{
	keep = 1;
	cut = CUT_COMPACT;
	replay_all(true, NULL);
}
END_TEST

START_TEST(each_prefix_of_a_reshard)
{
	char from[HELP_PATH];

	keep = 1;
	cut = CUT_RESHARD;
	folder_new(from);
	replay_all(true, from);
	folder_remove(from);
}
END_TEST

/* A forgetful disk is one that the test itself can see. */
START_TEST(the_disk_forgets)
{
	static struct replay_disk disk;
	const struct replay_crash crash = {.prefix = 2, .keep = 1};
	static char text[EDIT_BYTES];
	char folder[HELP_PATH], *path;
	int fd;

	folder_new(folder);
	replay_begin(folder);
	path = file_path(folder, "a");
	fd = file_open(path, O_WRONLY | O_CREAT | O_EXCL);
	help_expect_ok(file_write(fd, path, "text", 4));
	help_expect_ok(file_sync(fd, path));
	file_ops->close(fd);
	replay_end();
	free(path);
	ck_assert_uint_eq(replay.op_count, 3);
	replay_run(&disk, 2);
	replay_lay_out(&disk, &crash, folder);
	ck_assert_uint_eq(edit_read(folder, "a", text), 0);
	replay_run(&disk, 3);
	replay_lay_out(&disk, &crash, folder);
	ck_assert_uint_eq(edit_read(folder, "a", text), 4);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_disk_forgets);
	tcase_add_test(tcase, each_prefix_over_an_old_checkpoint);
	tcase_add_test(tcase, each_prefix_with_an_earlier_one);
	tcase_add_test(tcase, each_prefix_in_an_empty_folder);
	tcase_add_test(tcase, each_prefix_of_a_delta);
	tcase_add_test(tcase, each_prefix_of_a_compaction);
	tcase_add_test(tcase, each_prefix_of_a_reshard);
}

int main(void)
{
	return suite_main("checkpoint replay", add);
}
