// SPDX-License-Identifier: MIT
/*
 * A save by three hosts is cut behind each file operation of all of them, in several orders, and the disk forgets
 * what was not synced: the folder then holds the old checkpoint or the new one, whole.
 */
#define REPLAY_BYTES 16384
#include "group_help.h"
#include "replay.h"
#include "suite.h"

#define HOSTS 3
#define TABLES 3
#define ORDERS 3 /* in which the operations of the hosts come */

static const char *const states[] = {"old", "new", "older"};
#define OLDER 2

/* The last table is cut by columns between two hosts, and has three shards; or all rows are spread. */
static const int64_t rows_of[TABLES] = {6, 5, 24};
static const int64_t dims_of[TABLES] = {2, 3, 32};

static char folder[HELP_PATH];
static uint32_t keep;

static const char *const devices[] = {"soft:cores=1", "soft:cores=1,exchange=rows",
				      "soft:cores=1,exchange=rows,sharding=div"};
#define DEVICES 3
static const char *device;

static struct embeng_model *make_model(void)
{
	const struct help_table tables[] = {{"a", rows_of[0], dims_of[0], embeng_adagrad(0.1f)},
					    {"b", rows_of[1], dims_of[1], embeng_sgd(0.1f)},
					    {"c", rows_of[2], dims_of[2], embeng_adagrad(0.1f)}};

	return help_model(tables, TABLES);
}

static float value_of(int state, int table, int64_t at)
{
	return (float)(state * 10000 + table * 1000) + (float)at / 8 + 1;
}

/* All hosts; the first one has the rows. */
static void fill_state(struct embeng *e, int state, bool writes)
{
	float data[24 * 32];

	for (int t = 0; t < TABLES; t++) {
		for (int64_t i = 0; i < rows_of[t] * dims_of[t]; i++)
			data[i] = value_of(state, t, i);
		help_expect_ok(
			embeng_rows_write(e, t, NULL, NULL, writes ? (size_t)rows_of[t] : 0, data));
	}
}

static int save_state(struct embeng *e, int state)
{
	return embeng_save(e, folder,
			   &EMBENG_INIT(embeng_save_options, .shard_bytes = 2048,
					.program_state = states[state], .keep = keep));
}

/* -- recording -- */

static struct file_ops recording;
static pthread_mutex_t recorder = PTHREAD_MUTEX_INITIALIZER;
static uint32_t order;
static _Thread_local uint32_t pauses;

/* The operations of hosts mix in another way in each order. */
static void begin_operation(void)
{
	usleep(order ? (pauses++ * 2654435761u + replay_host * 40503u + order * 97) % 400 : 0);
	pthread_mutex_lock(&recorder);
}

static int end_operation(int ret)
{
	pthread_mutex_unlock(&recorder);
	return ret;
}

static int record_open(const char *path, int flags)
{
	begin_operation();
	return end_operation(recording.open(path, flags));
}

static int64_t record_write(int fd, const void *data, uint64_t bytes)
{
	int64_t ret;

	begin_operation();
	ret = recording.write(fd, data, bytes);
	end_operation(0);
	return ret;
}

static int record_sync(int fd)
{
	begin_operation();
	return end_operation(recording.sync(fd));
}

static int record_rename(const char *from, const char *to)
{
	begin_operation();
	return end_operation(recording.rename(from, to));
}

static int record_remove(const char *path)
{
	begin_operation();
	return end_operation(recording.remove(path));
}

static void begin_recording(void)
{
	static struct file_ops ops;

	replay_begin(folder);
	recording = ops = *file_ops;
	ops.open = record_open;
	ops.write = record_write;
	ops.sync = record_sync;
	ops.rename = record_rename;
	ops.remove = record_remove;
	file_ops = &ops;
}

/* -- the hosts -- */

struct crash_host {
	struct embeng_transport transport;
	uint32_t rank;
	bool had_old;
	int ret;
};

static void *run_crash_host(void *arg)
{
	struct crash_host *h = arg;
	struct embeng_model *model = make_model();
	struct embeng_group *group;
	struct embeng *e;
	uint64_t step;

	replay_host = h->rank;
	help_expect_ok(embeng_group_open(&h->transport, NULL, &group, NULL));
	help_expect_ok(embeng_open_group(device, model, group, &e, NULL));
	for (int state = keep > 1 ? OLDER : 0; h->had_old; state = 0) {
		fill_state(e, state, !h->rank);
		help_expect_ok(save_state(e, state));
		if (!state)
			break;
	}
	fill_state(e, 1, !h->rank);
	help_expect_ok(embeng_step(e, &step));
	if (!h->rank)
		begin_recording();
	help_expect_ok(embeng_step(e, &step));
	h->ret = save_state(e, 1);
	embeng_close(e);
	embeng_group_close(group);
	embeng_model_free(model);
	return NULL;
}

static void record_save(bool had_old)
{
	struct embeng_transport transports[HOSTS];
	struct crash_host hosts[HOSTS];
	pthread_t threads[HOSTS];

	help_never_sync();
	ck_assert_int_eq(threads_make(HOSTS, NULL, 0, transports), 0);
	for (uint32_t i = 0; i < HOSTS; i++) {
		hosts[i] = (struct crash_host){transports[i], i, had_old, -1};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_crash_host, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < HOSTS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(hosts[i].ret, 0);
	}
	help_never_sync();
}

/* -- crashes -- */

static int which(const struct embeng_checkpoint *c)
{
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	float data[24 * 32];
	int state = 0;

	help_expect_ok(embeng_checkpoint_info(c, &info));
	while (state < OLDER && strcmp(info.program_state, states[state]))
		state++;
	ck_assert_str_eq(info.program_state, states[state]);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	for (int t = 0; t < TABLES; t++) {
		help_expect_ok(embeng_checkpoint_read(c, t, NULL, 0, (size_t)rows_of[t], data));
		for (int64_t i = 0; i < rows_of[t] * dims_of[t]; i++)
			ck_assert_float_eq(data[i], value_of(state, t, i));
	}
	return state;
}

static size_t rename_at(void)
{
	for (size_t i = 0; i < replay.op_count; i++)
		if (replay.ops[i].kind == OP_RENAME && !strcmp(replay.ops[i].to, INDEX_NAME))
			return i;
	ck_abort_msg("nothing was renamed");
	return 0;
}

static size_t commit_at(void)
{
	for (size_t i = rename_at(); i < replay.op_count; i++)
		if (replay.ops[i].kind == OP_SYNC_FOLDER && !replay.ops[i].host)
			return i;
	ck_abort_msg("the rename is never synced");
	return 0;
}

static void check_crash(const struct replay_disk *disk, const struct replay_crash *crash,
			const char *at, bool had_old)
{
	const int want = crash->prefix <= rename_at() ? 0 : crash->prefix > commit_at() ? 1 : -1;
	struct embeng_checkpoint *c = NULL;
	int got, ret;

	replay_lay_out(disk, crash, at);
	ret = embeng_checkpoint_open(at, &c, NULL);
	if (!had_old && want != 1 && ret == -ENOENT)
		return;
	help_expect_ok(ret);
	got = which(c);
	embeng_checkpoint_close(c);
	ck_assert_msg(want < 0 || got == want, "prefix %zu, loss %d of %zu, keep %zu, drop %zu: %s",
		      crash->prefix, (int)crash->loss, crash->eighths, crash->keep, crash->drop_one,
		      states[got]);
	if (keep == 1 || !had_old)
		return;
	help_expect_ok(embeng_checkpoint_open_earlier(at, 1, &c, NULL));
	ck_assert_int_eq(which(c), got ? 0 : OLDER);
	embeng_checkpoint_close(c);
}

static size_t crash_behind(size_t prefix, const char *at, bool had_old)
{
	static struct replay_disk disk;
	struct replay_crash crash = {.prefix = prefix};
	size_t count = 0;

	replay_run(&disk, prefix);
	for (size_t k = 0; k < LOSS_KINDS * 2; k++) {
		crash.loss = (enum replay_loss)(k / 2);
		crash.eighths = k % 2 * 5;
		crash.drop_one = 0;
		for (crash.keep = 0; crash.keep <= disk.pending_count; crash.keep++, count++)
			check_crash(&disk, &crash, at, had_old);
		for (crash.drop_one = 1; crash.drop_one < disk.pending_count;
		     crash.drop_one++, count++)
			check_crash(&disk, &crash, at, had_old);
	}
	return count;
}

/* One process goes on from what is left, and leaves nothing of it behind. */
static void save_again(size_t prefix, const char *at, bool had_old)
{
	static char names[HELP_FILES][256];
	static struct replay_disk disk;
	struct replay_crash crash = {.prefix = prefix, .eighths = 4};
	const struct embeng_save_options o = EMBENG_INIT(embeng_save_options, .shard_bytes = 2048,
							 .program_state = "new", .keep = 1);
	struct embeng_model *model = make_model();
	struct embeng_checkpoint *c;
	struct embeng *e;

	replay_run(&disk, prefix);
	crash.keep = disk.pending_count;
	replay_lay_out(&disk, &crash, at);
	help_expect_ok(embeng_open("soft:cores=1", model, &e, NULL));
	if (had_old)
		help_expect_ok(embeng_restore(e, at, NULL));
	fill_state(e, 1, true);
	help_expect_ok(embeng_save(e, at, &o));
	embeng_close(e);
	embeng_model_free(model);
	help_expect_ok(embeng_checkpoint_open(at, &c, NULL));
	ck_assert_int_eq(which(c), 1);
	embeng_checkpoint_close(c);
	/* The index, the lock, a shard of the two small tables and three of the other. */
	ck_assert_uint_eq(folder_files(at, names, HELP_FILES), 6);
}

static void crash_everywhere(bool had_old)
{
	char crash[HELP_PATH];
	size_t count = 0;

	folder_new(folder);
	folder_new(crash);
	record_save(had_old);
	ck_assert_uint_gt(replay.op_count, 20);
	for (size_t prefix = 0; prefix <= replay.op_count; prefix++) {
		count += crash_behind(prefix, crash, had_old);
		if (prefix % 5 == 0)
			save_again(prefix, crash, had_old);
	}
	printf("%zu states of a disk after a crash of %d hosts behind each of %zu operations\n",
	       count, HOSTS, replay.op_count);
	ck_assert_uint_gt(count, 300);
	folder_remove(folder);
	folder_remove(crash);
}

/*
 * Over an old checkpoint, with an earlier one kept, and in an empty folder; each in several orders. Rows that are
 * spread are in one order each, since all hosts write more.
 */
START_TEST(each_prefix_of_three_hosts)
{
	const int kind = _i / ORDERS % 3;

	device = devices[_i / ORDERS / 3];
	order = (uint32_t)(device == devices[0] ? _i : _i / ORDERS) % ORDERS;
	keep = kind == 1 ? 2 : 1;
	crash_everywhere(kind < 2);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, each_prefix_of_three_hosts, 0, 3 * ORDERS);
	for (int i = 3 * ORDERS; i < DEVICES * 3 * ORDERS; i += 2 * ORDERS)
		tcase_add_loop_test(tcase, each_prefix_of_three_hosts, i, i + 1);
}

int main(void)
{
	return suite_main("hosts_crash", add_tests);
}
