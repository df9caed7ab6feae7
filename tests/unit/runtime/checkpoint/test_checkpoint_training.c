// SPDX-License-Identifier: MIT
/*
 * Saves while training goes on. The steps are made by the function that writes the files, in the
 * thread that saves: if a save held updates back, the step would never end. The saved bits are those
 * of a save at which nothing else happened.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "checkpoint_help.h"
#include "memory_stream.h"
#include "suite.h"

#define IDS 500
#define FIRST_STEPS 3
#define COPIES_BEFORE 200 /* more than opening the checkpoint takes that a delta changes */
#define COPIES_BETWEEN 160
#define TABLES 3

static const char *const in_all[] = {"soft:cores=1", "soft:cores=3"};

/* The training that the writing of files does. */
static struct {
	struct file_ops ops;
	struct embeng *e;
	uint64_t steps;
	unsigned int left; /* writes that still make a step */
	bool syncs;	   /* syncs make one, too */
	bool compares;
	unsigned int copies; /* out of the checkpoint that a delta is compared with */
} training;

/* Steps that a save before this one has made. */
static uint64_t steps_before;

static struct help_table trained[] = {
	{"adagrad", 20000, 16, {0}}, {"adam", 300, 4, {0}}, {"sgd", 1, 17, {0}}};

static struct embeng *open_trained(const char *device, const struct embeng_engine_config *engine)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_model *m;
	struct embeng *e = NULL;

	trained[0].optimizer = embeng_adagrad(0.1f);
	trained[1].optimizer = embeng_adam(0.1f);
	trained[2].optimizer = embeng_sgd(0.5f);
	m = help_model(trained, TABLES);
	ck_assert_int_eq(embeng_model_set_engine(m, engine), 0);
	ck_assert_msg(!embeng_open(device, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	help_fill(e, 7);
	return e;
}

/* Step @number: its ids and gradients follow from the number alone. */
static void train_step(struct embeng *e, uint64_t number)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	const float *features[TABLES];
	float *gradients = malloc(IDS * 17 * sizeof(*gradients));
	struct embeng_gradients g = {.size = sizeof(g), .count = TABLES, .features = features};
	int64_t ids[TABLES][IDS], shape = IDS;

	for (size_t i = 0; i < IDS * 17; i++)
		gradients[i] = help_value(9, 9, i, (uint32_t)number);
	for (size_t t = 0; t < TABLES; t++) {
		features[t] = gradients;
		for (size_t i = 0; i < IDS; i++)
			ids[t][i] = (int64_t)((i * 7919 + number * 104729) %
					      (uint64_t)trained[t].rows);
		help_expect_ok(embeng_batch_dense(b, (int)t, EMBENG_I64, ids[t], IDS, &shape, 1));
	}
	help_expect_ok(embeng_enqueue(e, b, -1));
	help_expect_ok(embeng_dequeue(e, 0, -1, &a));
	help_expect_ok(embeng_apply_gradients(e, &g, -1));
	embeng_batch_free(b);
	free(gradients);
}

static void first_steps(struct embeng *e)
{
	for (uint64_t n = 1; n <= FIRST_STEPS; n++)
		train_step(e, n);
}

/* A step, and a write of rows that a step may not touch. */
static void go_on(void)
{
	float row[2 * 16];
	const int64_t ids[] = {(int64_t)(training.steps * 31 % 20000), 19999};

	train_step(training.e, FIRST_STEPS + steps_before + ++training.steps);
	help_expect_ok(embeng_rows_read(training.e, 0, NULL, ids, 2, row));
	row[0] += 1;
	for (size_t i = 0; i < 2 * 16; i++)
		row[i] = fabsf(row[i]);
	help_expect_ok(embeng_rows_write(training.e, 0, "accumulators", ids, 2, row));
}

static int64_t write_and_train(int fd, const void *data, uint64_t bytes)
{
	int64_t ret = file_ops_system.write(fd, data, bytes);

	if (training.left) {
		training.left--;
		go_on();
	}
	return ret;
}

static int sync_and_train(int fd)
{
	(void)fd;
	if (training.syncs)
		go_on();
	return 0;
}

/* Steps while rows are compared, too. */
static int copy_and_train(void *to, const void *from, uint64_t bytes)
{
	if (training.compares && ++training.copies > COPIES_BEFORE &&
	    !(training.copies % COPIES_BETWEEN))
		go_on();
	return file_ops_system.copy(to, from, bytes);
}

/* @writes: the first ones of these make a step */
static void save_training(struct embeng *e, const char *folder,
			  const struct embeng_save_options *options, unsigned int writes)
{
	training.ops = file_ops_system;
	training.ops.write = write_and_train;
	training.ops.sync = sync_and_train;
	training.ops.copy = copy_and_train;
	training.copies = 0;
	training.compares = options && options->flags & EMBENG_SAVE_DELTA;
	training.e = e;
	training.steps = 0;
	training.left = writes;
	training.syncs = writes == UINT32_MAX;
	file_ops = &training.ops;
	help_expect_ok(embeng_save(e, folder, options));
	file_ops = &file_ops_system;
	ck_assert_uint_gt(training.steps, writes == UINT32_MAX ? 4 : 0);
}

static bool is_array_same(const struct embeng_checkpoint *a, const struct embeng_checkpoint *b,
			  size_t table, size_t array)
{
	const struct embeng_model *m = embeng_checkpoint_model(a);
	size_t elements = help_elements(m, table), rows = help_rows(m, table);
	float *x = malloc(elements * sizeof(*x)), *y = malloc(elements * sizeof(*y));
	const char *slot = help_slot(m, table, array);
	bool same;

	help_expect_ok(embeng_checkpoint_read(a, (int)table, slot, 0, rows, x));
	help_expect_ok(embeng_checkpoint_read(b, (int)table, slot, 0, rows, y));
	same = !memcmp(x, y, elements * sizeof(*x));
	free(x);
	free(y);
	return same;
}

static void expect_same(const char *a, const char *b, bool want)
{
	struct embeng_checkpoint *x = help_checkpoint(a), *y = help_checkpoint(b);
	struct embeng_checkpoint_info of_x = {.size = sizeof(of_x)}, of_y = {.size = sizeof(of_y)};
	const struct embeng_model *m = embeng_checkpoint_model(x);

	ck_assert_int_eq(embeng_checkpoint_info(x, &of_x), 0);
	ck_assert_int_eq(embeng_checkpoint_info(y, &of_y), 0);
	ck_assert((of_x.step == of_y.step) == want);
	for (size_t t = 0; t < embeng_model_table_count(m); t++)
		for (size_t array = 0; array <= embeng_model_slot_count(m, t); array++)
			ck_assert_msg(is_array_same(x, y, t, array) == want,
				      "table %zu array %zu is%s the same", t, array,
				      want ? " not" : "");
	embeng_checkpoint_close(x);
	embeng_checkpoint_close(y);
}

static void saves_are_of_one_step(const char *device, const struct embeng_engine_config *engine,
				  const struct embeng_save_options *options)
{
	struct embeng *e = open_trained(device, engine);
	char quiet[HELP_PATH], loud[HELP_PATH], after[HELP_PATH];

	folder_new(quiet);
	folder_new(loud);
	folder_new(after);
	first_steps(e);
	help_expect_ok(embeng_save(e, quiet, options));
	save_training(e, loud, options, UINT32_MAX);
	expect_same(quiet, loud, true);
	help_expect_ok(embeng_save(e, after, options));
	expect_same(quiet, after, false);
	folder_remove(quiet);
	folder_remove(loud);
	folder_remove(after);
	embeng_close(e);
}

START_TEST(a_save_is_of_the_step_at_which_it_began)
{
	const struct embeng_engine_config engine = {.size = sizeof(engine)};

	saves_are_of_one_step(in_all[_i], &engine, NULL);
}
END_TEST

START_TEST(so_it_is_when_steps_are_pipelined)
{
	const struct embeng_engine_config engine = {.size = sizeof(engine), .pipelining = true};

	saves_are_of_one_step(in_all[_i], &engine, NULL);
}
END_TEST

START_TEST(so_it_is_in_shards_of_many_hosts)
{
	const struct embeng_engine_config engine = {
		.size = sizeof(engine), .hosts = 3, .sharding = EMBENG_SHARDING_MOD};
	const struct embeng_save_options options = {.size = sizeof(options), .shard_bytes = 300000};

	saves_are_of_one_step(in_all[_i], &engine, &options);
}
END_TEST

/* Rows are compared and written as they were when the save began. */
START_TEST(so_it_is_of_a_delta)
{
	const struct embeng_engine_config engine = {
		.size = sizeof(engine), .hosts = 2, .sharding = EMBENG_SHARDING_MOD};
	struct embeng_save_report report = {.size = sizeof(report)};
	const struct embeng_save_options delta = {
		.size = sizeof(delta), .flags = EMBENG_SAVE_DELTA, .report = &report};
	struct embeng *e = open_trained(in_all[_i], &engine);
	char quiet[HELP_PATH], loud[HELP_PATH];

	folder_new(quiet);
	folder_new(loud);
	first_steps(e);
	help_expect_ok(embeng_save(e, loud, NULL));
	for (uint64_t n = 1; n <= 3; n++, steps_before++) {
		train_step(e, FIRST_STEPS + steps_before + 1);
		help_expect_ok(embeng_save(e, quiet, NULL));
		save_training(e, loud, &delta, UINT32_MAX);
		ck_assert_uint_eq(report.delta, n);
		ck_assert_uint_gt(report.rows, 300);
		ck_assert_uint_lt(report.rows, 20301);
		expect_same(quiet, loud, true);
		steps_before += training.steps;
	}
	steps_before = 0;
	embeng_close(e);
	folder_remove(quiet);
	folder_remove(loud);
}
END_TEST

/* Bytes of all tables and slots of trained[]. */
static uint64_t trained_bytes(void)
{
	return 4 * (20000 * 16 * 2 + 300 * 4 * 3 + 17);
}

/* @spare: bytes of the device's memory beside the tables; @writes as in save_training() */
static void falls_back(uint64_t spare, unsigned int writes)
{
	const struct embeng_engine_config engine = {.size = sizeof(engine)};
	char device[64], quiet[HELP_PATH], loud[HELP_PATH];
	struct embeng *e;

	snprintf(device, sizeof(device), "soft:cores=1,memory=%" PRIu64, trained_bytes() + spare);
	e = open_trained(device, &engine);
	folder_new(quiet);
	folder_new(loud);
	first_steps(e);
	if (writes)
		save_training(e, loud, NULL, writes);
	else
		help_expect_ok(embeng_save(e, loud, NULL));
	help_expect_ok(embeng_save(e, quiet, NULL));
	expect_same(quiet, loud, true);
	train_step(e, 99);
	embeng_close(e);
	folder_remove(quiet);
	folder_remove(loud);
}

START_TEST(without_memory_for_a_snapshot_updates_wait)
{
	falls_back(0, 0);
	falls_back(4 * 20301 - 1, 0);
}
END_TEST

/* The first write makes a step that the snapshot has no memory for: the save begins again. */
START_TEST(a_snapshot_that_outgrows_the_memory_begins_again)
{
	falls_back(4 * 20301, 1);
}
END_TEST

static int64_t train_and_fail(int fd, const void *data, uint64_t bytes)
{
	if (!training.left)
		return -ENOSPC;
	return write_and_train(fd, data, bytes);
}

/* The device has memory for one snapshot, and the save after it does not fall back. */
START_TEST(a_save_that_fails_ends_its_snapshot)
{
	const struct embeng_engine_config engine = {.size = sizeof(engine)};
	uint64_t memory = trained_bytes() + 4 * 20301 + (4u << 20) + 300 * 48 + 17 * 4;
	char device[64], folder[HELP_PATH], names[4][256];
	struct embeng *e;

	snprintf(device, sizeof(device), "soft:cores=1,memory=%" PRIu64, memory);
	e = open_trained(device, &engine);
	folder_new(folder);
	first_steps(e);
	training.ops = file_ops_system;
	training.ops.write = train_and_fail;
	training.e = e;
	training.left = 3;
	training.steps = 0;
	file_ops = &training.ops;
	ck_assert_int_eq(embeng_save(e, folder, NULL), -ENOSPC);
	expect_text("No space left");
	ck_assert_uint_eq(training.steps, 3);
	file_ops = &file_ops_system;
	ck_assert_uint_eq(folder_files(folder, names, 4), 1);
	steps_before = 3;
	save_training(e, folder, NULL, UINT32_MAX);
	steps_before = 0;
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* The stream's writer trains: it would wait for ever if a save into a stream held updates back. */
static int64_t write_stream_and_train(void *arg, const void *data, size_t bytes)
{
	int64_t ret = memory_stream_write(arg, data, bytes);

	if (training.left) {
		training.left--;
		go_on();
	}
	return ret;
}

static void save_stream_training(struct embeng *e, struct memory_stream *m, unsigned int writes)
{
	struct embeng_writer w = memory_writer(m);

	w.write = write_stream_and_train;
	training.e = e;
	training.steps = 0;
	training.left = writes;
	help_expect_ok(embeng_save_stream(e, &w, NULL));
	ck_assert_uint_gt(training.steps, 0);
}

/* Unpacks into a folder, and compares that with one that was saved when nothing else happened. */
static void expect_stream_same(struct memory_stream *m, const char *quiet)
{
	struct embeng_reader r = memory_reader(m);
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_checkpoint_unpack(&r, folder, NULL, NULL));
	expect_same(quiet, folder, true);
	folder_remove(folder);
	memory_stream_free(m);
}

START_TEST(a_stream_is_of_the_step_at_which_it_began)
{
	const struct embeng_engine_config engine = {.size = sizeof(engine)};
	struct embeng *e = open_trained(in_all[_i], &engine);
	struct memory_stream m = {0};
	char quiet[HELP_PATH];

	folder_new(quiet);
	first_steps(e);
	help_expect_ok(embeng_save(e, quiet, NULL));
	save_stream_training(e, &m, UINT32_MAX);
	ck_assert_uint_gt(training.steps, 4);
	expect_stream_same(&m, quiet);
	embeng_close(e);
	folder_remove(quiet);
}
END_TEST

/* The shard that the snapshot did not last for stays in the stream, and nothing names it. */
START_TEST(a_stream_whose_snapshot_outgrows_the_memory_begins_again)
{
	const struct embeng_engine_config engine = {.size = sizeof(engine)};
	struct memory_stream m = {0};
	char device[64], quiet[HELP_PATH];
	struct embeng *e;
	uint64_t once;

	snprintf(device, sizeof(device), "soft:cores=1,memory=%" PRIu64,
		 trained_bytes() + (_i ? 4 * 20301 : 0));
	e = open_trained(device, &engine);
	folder_new(quiet);
	first_steps(e);
	if (_i) {
		/* The third write is that of the shard's header: a step follows that the memory lacks. */
		save_stream_training(e, &m, 4);
	} else {
		struct embeng_writer w = memory_writer(&m);

		help_expect_ok(embeng_save_stream(e, &w, NULL));
	}
	once = trained_bytes();
	ck_assert_uint_ge(m.bytes, _i ? 2 * once : once);
	ck_assert_uint_lt(m.bytes, _i ? 3 * once : 2 * once);
	help_expect_ok(embeng_save(e, quiet, NULL));
	expect_stream_same(&m, quiet);
	embeng_close(e);
	folder_remove(quiet);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_save_is_of_the_step_at_which_it_began, 0, 2);
	tcase_add_loop_test(tcase, so_it_is_when_steps_are_pipelined, 0, 2);
	tcase_add_loop_test(tcase, so_it_is_in_shards_of_many_hosts, 0, 2);
	tcase_add_loop_test(tcase, so_it_is_of_a_delta, 0, 2);
	tcase_add_test(tcase, without_memory_for_a_snapshot_updates_wait);
	tcase_add_test(tcase, a_snapshot_that_outgrows_the_memory_begins_again);
	tcase_add_test(tcase, a_save_that_fails_ends_its_snapshot);
	tcase_add_loop_test(tcase, a_stream_is_of_the_step_at_which_it_began, 0, 2);
	tcase_add_loop_test(tcase, a_stream_whose_snapshot_outgrows_the_memory_begins_again, 0, 2);
}

int main(void)
{
	return suite_main("training", add);
}
