// SPDX-License-Identifier: MIT
/* Checkpoints written by all hosts at once, and read at any number of hosts. */
#include "checkpoint_help.h"
#include "hosts_help.h"
#include "hosts/collective.h"
#include "sample.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)

static const uint32_t host_counts[] = {1, 2, 3, 4, 8};
#define HOST_COUNTS 5
#define HALF 3 /* steps before the save */

/* Tables are whole or cut by columns, or their rows are spread; or some are spread, and others are not. */
static const char *const devices[] = {RUN_DEVICE, RUN_ROWS, RUN_GRADS ",sharding=div"};
#define DEVICES 3
static const char *device = RUN_DEVICE;
static int mixed;

static struct run make_run(void)
{
	return (struct run){.device = device,
			    .mixed = mixed,
			    .optimizer = embeng_adam(0.01f),
			    .replicas = 4,
			    .steps = 2 * HALF,
			    .period = HALF};
}

/* The whole run of one process, and the folder of this test. */
static struct run alone;
static char folder[HELP_PATH];

/* A shard has some rows, so that tables that are cut have several for each owner. */
static struct embeng_save_options save_options(void)
{
	return EMBENG_INIT(embeng_save_options, .shard_bytes = 30000, .program_state = "half");
}

static void train_first_half(struct run_host *h)
{
	struct run half = *h->run;

	half.steps = HALF;
	run_note(h, embeng_table_freeze(h->e, 2, 1));
	run_note(h, embeng_table_freeze(h->e, 1, 1));
	half.steps = 1;
	run_note(h, run_train(&half, h->e, 1));
	run_note(h, embeng_table_freeze(h->e, 1, 0));
	half.steps = HALF;
	run_note(h, run_train(&half, h->e, 2));
}

static void save_half(struct run_host *h)
{
	const struct embeng_save_options o = save_options();

	train_first_half(h);
	run_note(h, embeng_save(h->e, folder, &o));
	/* The handle goes on after a save. */
	run_note(h, embeng_table_freeze(h->e, 2, 0));
}

/* How many numbers of a slot, all of whose rows each host reads, are not those of one process. */
static size_t count_other_numbers(struct run_host *h, int t, size_t s)
{
	const struct embeng_model *m = embeng_get_model(h->e);
	const size_t floats = run_slot_floats(h->e, t, s);
	float *got = malloc(sizeof(*got) * floats);
	size_t others = 0;

	run_note(h,
		 embeng_rows_read(h->e, t, s ? embeng_model_slot_name(m, (size_t)t, s - 1) : NULL,
				  NULL, (size_t)run_rows[t], got));
	for (size_t i = 0; !h->code && i < floats; i++)
		others += memcmp(&got[i], &alone.rows[t][s][i], sizeof(*got)) != 0;
	free(got);
	return others;
}

static size_t go_on(struct run_host *h)
{
	struct embeng_restore_report report = EMBENG_INIT(embeng_restore_report);
	const struct embeng_restore_options o = EMBENG_INIT(embeng_restore_options,
							    .report = &report);
	struct run half = *h->run;
	uint64_t step = 0;
	size_t others = 0;

	run_note(h, embeng_restore(h->e, folder, &o));
	run_note(h, embeng_step(h->e, &step));
	ck_assert_msg(h->code || step == HALF, "%s, step %u", h->text, (unsigned int)step);
	ck_assert_msg(h->code || report.tables == RUN_TABLES, "%zu tables", report.tables);
	/* Steps of the session count from 1 again, and the data of its steps do, too. */
	half.steps = HALF;
	run_note(h, run_train(&half, h->e, 1));
	for (int t = 0; !h->code && t < RUN_TABLES; t++)
		for (size_t s = 0; s <= embeng_model_slot_count(embeng_get_model(h->e), (size_t)t);
		     s++)
			others += count_other_numbers(h, t, s);
	return others;
}

/* Goes on from the checkpoint, as if nothing had been. */
static void train_second_half(struct run_host *h)
{
	ck_assert_uint_eq(go_on(h), 0);
}

/* The control: replicas that change places are added in another order. */
static void train_another_half(struct run_host *h)
{
	struct run reversed = *h->run;

	reversed.reversed = 1;
	h->run = &reversed;
	ck_assert_uint_gt(go_on(h), 0);
}

static enum embeng_non_finite non_finite;

static void run_on(void (*body)(struct run_host *h), uint32_t count)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = make_run();

	run.non_finite = non_finite;
	run_hosts(&run, count, body, NULL, 0, DEADLINE, hosts);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_msg(!hosts[i].code, "host %u of %u: %d, %s", i, count, hosts[i].code,
			      hosts[i].text);
	run_free_rows(&run);
}

/* One process that trains without a break, and another one that saves in the middle. */
static void run_whole(void)
{
	struct run_host one = {.run = &alone};
	struct embeng_model *model;

	alone = make_run();
	run_make_rows(&alone);
	model = run_model(&alone);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &one.e, NULL), 0);
	train_first_half(&one);
	ck_assert_int_eq(one.code, 0);
	ck_assert_int_eq(embeng_table_freeze(one.e, 2, 0), 0);
	ck_assert_int_eq(run_train(&alone, one.e, HALF + 1), 0);
	run_keep_rows(&alone, one.e);
	embeng_close(one.e);
	embeng_model_free(model);
	run_on(save_half, 1);
}

/* Rows of the checkpoint of @count hosts against that of one process, and its form. */
static void compare_checkpoints(const char *left, const char *right, uint32_t count)
{
	struct embeng_checkpoint_info a = EMBENG_INIT(embeng_checkpoint_info), b = a;
	struct embeng_checkpoint *one, *all;

	ck_assert_int_eq(embeng_checkpoint_open(left, &one, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_open(right, &all, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_verify(all, NULL, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_info(one, &a), 0);
	ck_assert_int_eq(embeng_checkpoint_info(all, &b), 0);
	ck_assert_uint_eq(b.step, HALF);
	ck_assert_uint_eq(a.model_hash, b.model_hash);
	ck_assert_str_eq(b.program_state, "half");
	ck_assert_uint_ge(b.file_count, a.file_count);
	for (int t = 0; t < RUN_TABLES; t++) {
		const struct embeng_model *m = embeng_checkpoint_model(one);
		const size_t floats = (size_t)(run_rows[t] * run_dims[t]);
		float *x = calloc(floats, sizeof(*x)), *y = calloc(floats, sizeof(*y));

		for (size_t s = 0; s <= embeng_model_slot_count(m, (size_t)t); s++) {
			const char *slot = s ? embeng_model_slot_name(m, (size_t)t, s - 1) : NULL;

			ck_assert_int_eq(
				embeng_checkpoint_read(one, t, slot, 0, (size_t)run_rows[t], x), 0);
			ck_assert_int_eq(
				embeng_checkpoint_read(all, t, slot, 0, (size_t)run_rows[t], y), 0);
			ck_assert_msg(!memcmp(x, y, floats * sizeof(*x)), "%u hosts, table %d",
				      count, t);
		}
		ck_assert_int_eq(embeng_checkpoint_finite(all, t), 1);
		free(x);
		free(y);
	}
	embeng_checkpoint_close(one);
	embeng_checkpoint_close(all);
}

/*
 * Goes on from the folder at every number of hosts. Distributions of tables take turns, from @turn on: all callers
 * together try each with each, and each number of hosts with each.
 */
static void go_on_everywhere(int turn)
{
	for (int to = 0; to < HOST_COUNTS; to++) {
		device = devices[(turn + to) % DEVICES];
		run_on(train_second_half, host_counts[to]);
	}
	run_on(train_another_half, 3);
}

/* A checkpoint of each number of hosts goes on at every number of hosts, with the bits of one process. */
START_TEST(from_any_number_to_any)
{
	const int turn = _i / HOST_COUNTS + _i % HOST_COUNTS;
	const uint32_t count = host_counts[_i % HOST_COUNTS];
	char of_one[HELP_PATH];

	help_never_sync();
	folder_new(folder);
	run_whole();
	if (count == 1)
		go_on_everywhere(turn);
	strcpy(of_one, folder);
	folder_new(folder);
	device = devices[_i / HOST_COUNTS];
	/* Hosts that wait for others hear of them at each chunk, or not at all. */
	hosts_beat_ns = _i % 2 ? 0 : hosts_beat_ns;
	run_on(save_half, count);
	compare_checkpoints(of_one, folder, count);
	go_on_everywhere(turn);
	run_free_rows(&alone);
	folder_remove(of_one);
	folder_remove(folder);
}
END_TEST

/* A model has tables of all three kinds, which share one distribution of rows in the checkpoint. */
START_TEST(mixed_tables)
{
	char of_one[HELP_PATH];

	mixed = 1;
	help_never_sync();
	folder_new(folder);
	run_whole();
	strcpy(of_one, folder);
	folder_new(folder);
	device = devices[1 + _i % 2];
	run_on(save_half, 3);
	compare_checkpoints(of_one, folder, 3);
	go_on_everywhere(_i);
	run_free_rows(&alone);
	folder_remove(of_one);
	folder_remove(folder);
}
END_TEST

/* -- earlier checkpoints, reports, options -- */

static void save_twice(struct run_host *h)
{
	struct embeng_save_report report = EMBENG_INIT(embeng_save_report);
	struct embeng_save_options o = save_options();

	o.report = &report;
	o.flags = EMBENG_SAVE_DELTA;
	run_note(h, embeng_save(h->e, folder, &o));
	run_note(h, embeng_set_step(h->e, 17));
	run_note(h, embeng_save(h->e, folder, &o));
	ck_assert_uint_eq(report.delta, 0);
	ck_assert_str_eq(report.why_full, "the hosts of a group save in full");
	ck_assert_uint_ge(report.rows, 40 + 300 + 7 + 500 + 64);
	ck_assert_uint_gt(report.bytes, 300 * 96 * 4 * 3);
}

START_TEST(earlier_ones_are_kept)
{
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	struct embeng_checkpoint *c;

	device = devices[_i];
	help_never_sync();
	folder_new(folder);
	run_on(save_twice, 3);
	ck_assert_int_eq(embeng_checkpoint_open(folder, &c, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.step, 17);
	embeng_checkpoint_close(c);
	ck_assert_int_eq(embeng_checkpoint_open_earlier(folder, 1, &c, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.step, 0);
	ck_assert_int_eq(embeng_checkpoint_verify(c, NULL, NULL), 0);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

static void save_first(struct run_host *h)
{
	const struct embeng_save_options o = save_options();

	run_note(h, embeng_save(h->e, folder, &o));
}

static void expect_failure(int ret, int code, const char *text)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	ck_assert_msg(ret == code, "%d, %s", ret, error.text);
	ck_assert_msg(strstr(error.text, text) != NULL, "%s", error.text);
}

/* A number that is not finite is refused where it is found, and told to all. */
static void save_unfinite(struct run_host *h)
{
	struct embeng_save_options o = save_options();
	const int64_t row = 250;
	float data[96] = {0};
	static char names[HELP_FILES][256];

	run_note(h, embeng_save(h->e, folder, &o));
	data[90] = INFINITY;
	run_note(h, embeng_rows_write(h->e, 1, NULL, &row, h->rank == 1, data));
	ck_assert_int_eq(h->code, 0);
	expect_failure(embeng_save(h->e, folder, &o), -ERANGE, "row 250, element 90 is inf");
	expect_failure(embeng_save(h->e, folder, NULL), -ERANGE, "host ");
	o.shard_bytes += h->rank;
	expect_failure(embeng_save(h->e, folder, &o), -EINVAL, "shard_bytes 30001, host 0");
	o.shard_bytes = 30000;
	expect_failure(embeng_save(h->e, h->rank ? NULL : folder, &o), -EINVAL, "no folder given");
	o.keep = h->rank ? 0 : 5000;
	expect_failure(embeng_save(h->e, folder, &o), -ERANGE, "keep is 5000");
	o.keep = 1;
	o.flags = EMBENG_SAVE_NOT_FINITE;
	ck_assert_int_eq(embeng_save(h->e, folder, &o), 0);
	if (!h->rank)
		ck_assert_uint_gt(folder_files(folder, names, HELP_FILES), 10);
}

START_TEST(refusals_are_all_hosts)
{
	struct embeng_checkpoint *c;

	device = devices[_i];
	help_never_sync();
	folder_new(folder);
	non_finite = EMBENG_NON_FINITE_ALLOW;
	run_on(save_unfinite, 2);
	ck_assert_int_eq(embeng_checkpoint_open(folder, &c, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_finite(c, 0), 1);
	ck_assert_int_eq(embeng_checkpoint_finite(c, 1), 0);
	ck_assert_int_eq(embeng_checkpoint_verify(c, NULL, NULL), 0);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* -- reports of a restore, and tables that have grown -- */

/* Three values, in rows of several hosts, are in one array, and one is in another. */
static void save_values(struct run_host *h)
{
	const struct embeng_save_options o = EMBENG_INIT(embeng_save_options,
							 .flags = EMBENG_SAVE_NOT_FINITE);
	const int64_t rows[] = {7, 100, 101, 299};
	float data[4 * 96] = {0};

	data[0] = data[96] = data[3 * 96 + 95] = INFINITY;
	run_note(h, embeng_rows_write(h->e, 1, NULL, rows, h->rank ? 0 : 4, data));
	run_note(h, embeng_rows_write(h->e, 3, NULL, rows, h->rank ? 0 : 1, data));
	run_note(h, embeng_save(h->e, folder, &o));
}

/* A host tells the first one of its own rows. */
static void check_own_value(const struct run_host *h, const char *text)
{
	static const int64_t rows[] = {7, 100, 299};
	char words[64] = "table t1";
	bool has = false;

	for (size_t i = 0; !has && i < 3; i++) {
		uint32_t host;
		int64_t local;

		ck_assert_int_eq(hosts_locate(h->e->hosts, 1, rows[i], &host, &local), 0);
		has = host == h->rank;
		if (has)
			snprintf(words, sizeof(words), "table t1, parameters: row %d, ",
				 (int)rows[i]);
	}
	ck_assert_msg(has == (strstr(text, words) != NULL), "host %u: %s", h->rank, text);
}

static void restore_values(struct run_host *h)
{
	struct embeng_restore_report report = EMBENG_INIT(embeng_restore_report);
	const struct embeng_restore_options o = EMBENG_INIT(embeng_restore_options,
							    .report = &report);

	run_note(h, embeng_restore(h->e, folder, &o));
	ck_assert_uint_eq(report.not_finite, 2);
	if (hosts_is_spread(h->e->hosts, 1))
		check_own_value(h, report.text);
}

START_TEST(values_that_are_not_finite)
{
	device = devices[_i];
	help_never_sync();
	folder_new(folder);
	non_finite = EMBENG_NON_FINITE_ALLOW;
	run_on(save_values, 3);
	run_on(restore_values, 3);
	run_on(restore_values, 2);
	folder_remove(folder);
}
END_TEST

#define GROWN_ROWS 17
#define SAVED_ROWS 10

static struct embeng_model *grown_model(int64_t rows)
{
	const struct help_table table = {"grown", rows, 4, embeng_adagrad(0.1f)};

	return help_model(&table, 1);
}

static void *restore_grown(void *arg)
{
	const struct embeng_restore_options o = EMBENG_INIT(embeng_restore_options,
							    .flags = EMBENG_RESTORE_OTHER_SHAPES);
	struct embeng_model *model = grown_model(GROWN_ROWS);
	struct run_host *h = arg;
	float got[GROWN_ROWS * 4];

	ck_assert_int_eq(embeng_group_open(&h->transport, NULL, &h->group, NULL), 0);
	ck_assert_int_eq(embeng_open_group(device, model, h->group, &h->e, NULL), 0);
	for (size_t i = 0; i < GROWN_ROWS * 4; i++)
		got[i] = -1 - (float)i;
	ck_assert_int_eq(embeng_rows_write(h->e, 0, NULL, NULL, h->rank ? 0 : GROWN_ROWS, got), 0);
	ck_assert_int_eq(embeng_restore(h->e, folder, &o), 0);
	ck_assert_int_eq(embeng_rows_read(h->e, 0, NULL, NULL, GROWN_ROWS, got), 0);
	for (size_t i = 0; i < GROWN_ROWS * 4; i++)
		ck_assert_float_eq(got[i], i < SAVED_ROWS * 4 ? 1 + (float)i : -1 - (float)i);
	embeng_close(h->e);
	embeng_group_close(h->group);
	embeng_model_free(model);
	return NULL;
}

/* Rows that the checkpoint lacks stay as they are, whichever host has them. */
START_TEST(more_rows_than_the_checkpoint)
{
	struct embeng_model *model = grown_model(SAVED_ROWS);
	struct embeng_transport transports[3];
	struct run_host hosts[3] = {0};
	float data[SAVED_ROWS * 4];
	pthread_t threads[3];
	struct embeng *e;

	device = devices[_i];
	help_never_sync();
	folder_new(folder);
	for (size_t i = 0; i < SAVED_ROWS * 4; i++)
		data[i] = 1 + (float)i;
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &e, NULL), 0);
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, SAVED_ROWS, data), 0);
	ck_assert_int_eq(embeng_save(e, folder, NULL), 0);
	embeng_close(e);
	embeng_model_free(model);
	ck_assert_int_eq(threads_make(3, NULL, 0, transports), 0);
	for (uint32_t i = 0; i < 3; i++) {
		hosts[i] = (struct run_host){.transport = transports[i], .rank = i};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, restore_grown, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	folder_remove(folder);
}
END_TEST

/* -- a disk that fails on one host -- */

static _Thread_local uint32_t this_host;
static uint32_t failing_host;
static int left; /* writes and syncs of that host that still succeed */

static bool fails_now(void)
{
	return this_host == failing_host && __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) < 0;
}

static int64_t write_or_fail(int fd, const void *data, uint64_t bytes)
{
	return fails_now() ? -ENOSPC : file_ops_system.write(fd, data, bytes);
}

static int sync_or_fail(int fd)
{
	(void)fd;
	return fails_now() ? -EIO : 0;
}

static void save_while_failing(struct run_host *h)
{
	const struct embeng_save_options o = save_options();
	char host[32];
	int ret;

	this_host = h->rank;
	snprintf(host, sizeof(host), "host %u", failing_host);
	run_note(h, embeng_set_step(h->e, 9));
	ret = embeng_save(h->e, folder, &o);
	if (ret) {
		struct embeng_error error = EMBENG_INIT(embeng_error);

		embeng_last_error(&error);
		ck_assert_msg(ret == -ENOSPC || ret == -EIO, "%d, %s", ret, error.text);
		ck_assert_msg(strstr(error.text, host) != NULL, "%s", error.text);
	}
	h->took = (uint64_t)-ret;
	/* The handle and the group go on. */
	run_note(h, embeng_set_step(h->e, 10));
}

/* Returns whether the save failed: on all hosts, or on none. */
static bool save_with_fault(uint32_t hosts, int succeed)
{
	static char names[HELP_FILES][256];
	static struct file_ops ops;
	struct run_host host[RUN_HOSTS_MOST];
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	struct embeng_checkpoint *c;
	struct run run = make_run();
	const size_t before = folder_files(folder, names, HELP_FILES);

	left = succeed;
	ops = file_ops_system;
	ops.write = write_or_fail;
	ops.sync = sync_or_fail;
	file_ops = &ops;
	run_hosts(&run, hosts, save_while_failing, NULL, 0, DEADLINE, host);
	run_free_rows(&run);
	help_never_sync();
	for (uint32_t i = 0; i < hosts; i++) {
		ck_assert_msg(!host[i].code, "host %u: %s", i, host[i].text);
		ck_assert_uint_eq(host[i].took, host[0].took);
	}
	ck_assert_int_eq(embeng_checkpoint_open(folder, &c, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_int_eq(embeng_checkpoint_verify(c, NULL, NULL), 0);
	embeng_checkpoint_close(c);
	/* Nothing is left behind, unless the very last sync fails. */
	if (host[0].took && info.step != 9)
		ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), before);
	ck_assert_msg(host[0].took || info.step == 9, "step %u", (unsigned int)info.step);
	return host[0].took != 0;
}

/* Each write and each sync of a host fails once. */
START_TEST(failing_disks)
{
	int at = 0, stride = 1;

	failing_host = (uint32_t)_i % 3;
	device = devices[_i / 3];
	hosts_beat_ns = _i % 3 == 1 ? 0 : hosts_beat_ns;
	help_never_sync();
	folder_new(folder);
	run_on(save_first, 3);
	for (; save_with_fault(3, at); at += stride)
		stride = at < 12 ? 1 : 4;
	ck_assert_int_gt(at, 10);
	folder_remove(folder);
}
END_TEST

/* -- a host that dies -- */

static void save_until_death(struct run_host *h)
{
	const struct embeng_save_options o = save_options();

	if (run_note(h, embeng_set_step(h->e, 9)))
		return;
	h->took = run_note(h, embeng_save(h->e, folder, &o)) == 0; /* it is saved */
	run_note(h, embeng_set_step(h->e, 10));
}

/* Returns whether the host has died before the end. */
static bool save_with_death(uint32_t host, uint64_t message)
{
	const struct thread_fault die = {.kind = THREAD_DIE, .rank = host, .message = message};
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = make_run();
	struct embeng_checkpoint *c;
	uint32_t failed = 0;

	run_hosts(&run, 3, save_until_death, &die, 1, DEADLINE, hosts);
	run_free_rows(&run);
	for (uint32_t i = 0; i < 3; i++)
		failed += hosts[i].code != 0;
	ck_assert_int_eq(embeng_checkpoint_open(folder, &c, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_verify(c, NULL, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	embeng_checkpoint_close(c);
	ck_assert_msg(info.step == 0 || info.step == 9, "step %u", (unsigned int)info.step);
	/* Whoever says that it is saved is right. */
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_msg(!hosts[i].took || info.step == 9, "host %u at message %u", i,
			      (unsigned int)message);
	return failed;
}

/*
 * At each of its first messages, and then at every fifth. The others end with an error, and the folder has a whole
 * checkpoint.
 */
START_TEST(a_host_dies)
{
	uint64_t message = 0, at;

	device = devices[_i / 3];
	hosts_beat_ns = _i % 3 == 1 ? 0 : hosts_beat_ns;
	help_never_sync();
	folder_new(folder);
	do {
		run_on(save_first, 3);
		at = message;
		message += at < 16 ? 1 : 5;
	} while (save_with_death((uint32_t)_i % 3, at));
	ck_assert_uint_gt(at, 20);
	folder_remove(folder);
}
END_TEST

/* -- restores that fail on one host -- */

/* Damages the shards of one table, so that only its owner finds out. */
static void damage(const char *table)
{
	static char names[HELP_FILES][256];
	const size_t count = folder_files(folder, names, HELP_FILES);
	char path[2 * HELP_PATH], text[4096], key[64];
	bool found = false;

	snprintf(key, sizeof(key), "\"%s/parameters\"", table);
	for (size_t i = 0; i < count; i++) {
		FILE *file;
		size_t length;

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		file = fopen(path, "r+b");
		length = fread(text, 1, sizeof(text) - 1, file);
		text[length] = '\0';
		for (size_t k = 0; k < 8 && k < length; k++)
			text[k] = text[k] ? text[k] : ' ';
		if (strstr(names[i], ".safetensors") && strstr(text, key)) {
			fseek(file, 1500, SEEK_SET);
			fputc('#' ^ text[1500], file);
			found = true;
		}
		fclose(file);
	}
	ck_assert(found);
}

static void restore_damaged(struct run_host *h)
{
	float before[8], after[8];
	const int64_t row = 3;

	ck_assert_int_eq(embeng_rows_read(h->e, 0, NULL, &row, 1, before), 0);
	before[0] += 1;
	ck_assert_int_eq(embeng_rows_write(h->e, 0, NULL, &row, h->rank == 0, before), 0);
	expect_failure(embeng_restore(h->e, folder, NULL), -EBADMSG, "host ");
	ck_assert_int_eq(embeng_rows_read(h->e, 0, NULL, &row, 1, after), 0);
	ck_assert_mem_eq(after, before, sizeof(before));
	expect_failure(embeng_restore(h->e, h->rank ? folder : NULL, NULL), -EINVAL, "host 0");
}

START_TEST(damage_leaves_all_as_it_was)
{
	device = devices[_i];
	help_never_sync();
	folder_new(folder);
	run_on(save_first, 3);
	damage("t3");
	run_on(restore_damaged, 3);
	folder_remove(folder);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, from_any_number_to_any, 0, DEVICES * HOST_COUNTS);
	tcase_add_loop_test(tcase, mixed_tables, 0, 2);
	tcase_add_loop_test(tcase, earlier_ones_are_kept, 0, DEVICES);
	tcase_add_loop_test(tcase, refusals_are_all_hosts, 0, DEVICES);
	tcase_add_loop_test(tcase, values_that_are_not_finite, 0, DEVICES);
	tcase_add_loop_test(tcase, more_rows_than_the_checkpoint, 0, DEVICES);
	add_sampled_loop(tcase, failing_disks, 0, 6);
	add_sampled_loop(tcase, a_host_dies, 0, 6);
	tcase_add_loop_test(tcase, damage_leaves_all_as_it_was, 0, DEVICES);
}

int main(void)
{
	return suite_main("hosts_checkpoint", add_tests);
}
