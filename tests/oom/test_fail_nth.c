// SPDX-License-Identifier: MIT
/*
 * Each allocation of the process fails in turn, libc's too, while a model is made, opened, trained,
 * saved, read, restored, served and closed. The call that wanted the memory says so, or its result is
 * right all the same; nothing crashes, nothing hangs, and the checkpoint of the folder is whole.
 *
 * Each failure has a process of its own. A sample of them runs unless EMBENG_FAIL_NTH_WHOLE is set.
 * EMBENG_TEST_SEED draws the sample.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "embeng.h"
#include "embeng/shard.h"
#include "embeng/serving.h"
#include "fail_nth.h"
#include "runtime/src/base/file.h"

#define ROWS 40
#define DIM 4
#define DEVICE "soft:cores=2,memory=4M"
#define SECONDS_MOST 60
#define SAMPLE 20 /* failures of a phase that are tried */

enum phase {
	PHASE_MODEL,
	PHASE_OPEN,
	PHASE_STEP,
	PHASE_SAVE,
	PHASE_SAVE_OVER,
	PHASE_SAVE_DELTA,
	PHASE_READ,
	PHASE_LIST,
	PHASE_RESTORE_DELTA,
	PHASE_SERVE_DELTA,
	PHASE_COMPACT,
	PHASE_WRITE,
	PHASE_RESHARD,
	PHASE_RESTORE,
	PHASE_SERVE,
	PHASE_CLOSE,
	PHASES
};

static const char *const phase_names[PHASES] = {"model",	 "open",	"step",	   "save",
						"save over",	 "save delta",	"read",	   "list",
						"restore delta", "serve delta", "compact", "write",
						"reshard",	 "restore",	"serve",   "close"};

/* The run of a child. */
static enum phase phase;
static long nth;
static const char *folder;
static bool hit;
static long seen;

static void give_up(const char *what, int line)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	fprintf(stderr, "%s, allocation %ld, line %d: %s; last error %d: %s\n", phase_names[phase],
		nth, line, what, error.code, error.text);
	_exit(1);
}

#define EXPECT(holds) \
	do { \
		if (!(holds)) \
			give_up(#holds, __LINE__); \
	} while (0)

/* Runs a call with its allocation failing, if it is what this process is about. */
#define TRIED(this_phase, call) \
	({ \
		int ret_; \
		if (phase == (this_phase)) \
			fail_nth_begin(nth); \
		ret_ = (call); \
		if (phase == (this_phase)) { \
			seen = fail_nth_end(&hit); \
			EXPECT(!ret_ || hit); \
		} \
		ret_; \
	})

/* The same call must work once there is memory. */
#define AGAIN(this_phase, call) \
	do { \
		int first_ = TRIED(this_phase, call); \
		if (first_) { \
			EXPECT(first_ == -ENOMEM); \
			EXPECT((call) == 0); \
		} \
	} while (0)

/* -- the program --------------------------------------------------------- */

static float value_at(int version, size_t at)
{
	return (float)(version * 1000 + (int)at) + 0.5f;
}

static int make_model(struct embeng_model **out)
{
	const struct embeng_table_config t = {.size = sizeof(t),
					      .name = "items",
					      .vocabulary_size = ROWS,
					      .dim = DIM,
					      .combiner = EMBENG_SUM,
					      .optimizer = embeng_adagrad(0.1f)};
	const struct embeng_feature_config f = {.size = sizeof(f), .name = "seen"};
	struct embeng_model *m = embeng_model_new();
	int ret = m ? embeng_model_add_table(m, &t) : -ENOMEM;

	ret = ret < 0 ? ret : embeng_model_add_feature(m, &f);
	if (ret < 0) {
		embeng_model_free(m);
		return ret;
	}
	*out = m;
	return 0;
}

static int train(struct embeng *e)
{
	const int64_t ids[] = {3, 14, 15, 9}, lengths[] = {3, 1};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	int ret = b ? embeng_batch_ragged(b, 0, EMBENG_I64, ids, 4, lengths, 2, NULL, 0) : -ENOMEM;

	ret = ret ? ret : embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	ret = ret ? ret : embeng_dequeue(e, 0, -1, &a);
	if (ret)
		return ret;
	EXPECT(a.features[0].data[0] ==
	       value_at(1, 3 * DIM) + value_at(1, 14 * DIM) + value_at(1, 15 * DIM));
	return embeng_release(e, &a);
}

static void fill(struct embeng *e, int version)
{
	float data[ROWS * DIM];

	for (size_t i = 0; i < ROWS * DIM; i++)
		data[i] = value_at(version, i);
	EXPECT(embeng_rows_write(e, 0, NULL, NULL, ROWS, data) == 0);
}

static void expect_values(const float *data, int version)
{
	for (size_t i = 0; i < ROWS * DIM; i++)
		EXPECT(data[i] == value_at(version, i));
}

/* The version that the folder's current checkpoint has, every bit of which is checked; 0: none. */
static int saved_version(void)
{
	struct embeng_checkpoint *c = NULL;
	float data[ROWS * DIM];
	int ret = embeng_checkpoint_open(folder, &c, NULL), version;

	if (ret == -ENOENT)
		return 0;
	EXPECT(!ret);
	EXPECT(embeng_checkpoint_verify(c, NULL, NULL) == 0);
	EXPECT(embeng_checkpoint_read(c, 0, NULL, 0, ROWS, data) == 0);
	version = (int)(data[0] / 1000);
	expect_values(data, version);
	embeng_checkpoint_close(c);
	return version;
}

/* Number of deltas of the folder's current checkpoint. */
static unsigned int saved_deltas(void)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = NULL;

	EXPECT(embeng_checkpoint_open(folder, &c, NULL) == 0);
	EXPECT(embeng_checkpoint_info(c, &info) == 0);
	embeng_checkpoint_close(c);
	return info.deltas;
}

/* Counts the checkpoints of the folder, all of which can be opened. */
static int list_folder(int *count)
{
	int ret = 0;

	for (*count = 0; !ret; ++*count) {
		struct embeng_checkpoint *c = NULL;

		ret = embeng_checkpoint_open_earlier(folder, (size_t)*count, &c, NULL);
		embeng_checkpoint_close(c);
		if (ret)
			break;
	}
	return ret == -ENODATA ? 0 : ret;
}

/* A save that failed leaves the checkpoint that was there; one that succeeded has replaced it. */
static void save(struct embeng *e, enum phase this_phase, int version)
{
	int ret, count;

	fill(e, version);
	ret = TRIED(this_phase, embeng_save(e, folder, NULL));
	EXPECT(!ret || ret == -ENOMEM);
	EXPECT(saved_version() == (ret ? version - 1 : version));
	if (ret)
		EXPECT(embeng_save(e, folder, NULL) == 0);
	EXPECT(saved_version() == version);
	EXPECT(list_folder(&count) == 0 && count == (version > 1 ? 2 : 1));
}

/* Nothing changed, so that there is one row in the delta, and the values stay whatever happens. */
static void save_delta(struct embeng *e)
{
	struct embeng_save_report report = {.size = sizeof(report)};
	const struct embeng_save_options options = {
		.size = sizeof(options), .flags = EMBENG_SAVE_DELTA, .report = &report};
	int ret = TRIED(PHASE_SAVE_DELTA, embeng_save(e, folder, &options)), count;

	EXPECT(!ret || ret == -ENOMEM);
	EXPECT(ret || (report.delta == 1 && report.rows == 1));
	EXPECT(saved_version() == 2);
	if (ret)
		EXPECT(embeng_save(e, folder, &options) == 0 && report.delta == 1);
	EXPECT(saved_version() == 2);
	EXPECT(list_folder(&count) == 0 && count == 2);
}

static int read_all(void)
{
	struct embeng_checkpoint *c = NULL;
	float data[ROWS * DIM];
	int ret = embeng_checkpoint_open(folder, &c, NULL);

	ret = ret ? ret : embeng_checkpoint_verify(c, NULL, NULL);
	ret = ret ? ret : embeng_checkpoint_read(c, 0, NULL, 0, ROWS, data);
	if (!ret)
		expect_values(data, 2);
	embeng_checkpoint_close(c);
	return ret;
}

static int give_values(void *arg, int table, const char *slot, const struct embeng_shard_rows *rows,
		       float *data)
{
	(void)arg;
	(void)table;
	(void)slot;
	for (int64_t i = 0; i < rows->count * DIM; i++)
		data[i] = value_at(3, (size_t)(rows->first * DIM + i));
	return 0;
}

static void write_and_reshard(const struct embeng_model *m)
{
	const struct embeng_reshard_options options = {.size = sizeof(options), .hosts = 3};
	int ret = TRIED(PHASE_WRITE,
			embeng_checkpoint_write(folder, m, give_values, NULL, NULL, NULL));

	EXPECT(!ret || ret == -ENOMEM);
	EXPECT(saved_version() == (ret ? 2 : 3));
	EXPECT(embeng_checkpoint_write(folder, m, give_values, NULL, NULL, NULL) == 0);
	ret = TRIED(PHASE_RESHARD, embeng_checkpoint_reshard(folder, folder, &options, NULL));
	EXPECT(!ret || ret == -ENOMEM);
	EXPECT(saved_version() == 3);
}

/* Folds the delta into a full checkpoint; a failure leaves the chain. */
static void compact(void)
{
	const struct embeng_reshard_options options = {.size = sizeof(options), .hosts = 1};
	int ret = TRIED(PHASE_COMPACT, embeng_checkpoint_reshard(folder, folder, &options, NULL));

	EXPECT(!ret || ret == -ENOMEM);
	EXPECT(saved_version() == 2);
	EXPECT(saved_deltas() == (ret ? 1 : 0));
	if (ret)
		EXPECT(embeng_checkpoint_reshard(folder, folder, &options, NULL) == 0);
	EXPECT(saved_version() == 2 && saved_deltas() == 0);
}

/* A restore that failed leaves the tables as they were. */
static void restore(struct embeng *e, enum phase this_phase, int version)
{
	float data[ROWS * DIM];
	int ret;

	fill(e, 7);
	ret = TRIED(this_phase, embeng_restore(e, folder, NULL));
	EXPECT(!ret || ret == -ENOMEM);
	EXPECT(embeng_rows_read(e, 0, NULL, NULL, ROWS, data) == 0);
	expect_values(data, ret ? 7 : version);
	EXPECT(embeng_restore(e, folder, NULL) == 0);
	EXPECT(embeng_rows_read(e, 0, NULL, NULL, ROWS, data) == 0);
	expect_values(data, version);
}

static int serve(int version)
{
	struct embeng_serving *s = NULL;
	const int64_t ids[] = {5, 6}, splits[] = {0, 1, 2};
	float data[2 * DIM];
	struct embeng_serving_input input = {
		.size = sizeof(input),
		.form = EMBENG_RAGGED,
		.type = EMBENG_I64,
		.ids = ids,
		.id_count = 2,
		.row_splits = splits,
		.split_count = 3,
		.out = data,
		.out_elements = 2 * DIM,
	};
	int ret = embeng_serving_open(folder, NULL, 0, &s, NULL);

	ret = ret ? ret : embeng_serving_lookup(s, &input, 1);
	for (size_t i = 0; !ret && i < 2 * (size_t)DIM; i++)
		EXPECT(data[i] == value_at(version, 5 * DIM + i));
	embeng_serving_close(s);
	return ret;
}

static int close_all(struct embeng *e, struct embeng_model *m)
{
	embeng_close(e);
	embeng_model_free(m);
	return 0;
}

/* Syncing takes most of the time, and asks for no memory. */
static int sync_nothing(int fd)
{
	(void)fd;
	return 0;
}

static void run_program(void)
{
	struct file_ops unsynced = file_ops_system;
	struct embeng_model *m = NULL;
	struct embeng *e = NULL;
	int count;

	unsynced.sync = sync_nothing;
	file_ops = &unsynced;
	AGAIN(PHASE_MODEL, make_model(&m));
	AGAIN(PHASE_OPEN, embeng_open(DEVICE, m, &e, NULL));
	fill(e, 1);
	AGAIN(PHASE_STEP, train(e));
	save(e, PHASE_SAVE, 1);
	save(e, PHASE_SAVE_OVER, 2);
	save_delta(e);
	AGAIN(PHASE_READ, read_all());
	AGAIN(PHASE_LIST, list_folder(&count));
	EXPECT(count == 2);
	restore(e, PHASE_RESTORE_DELTA, 2);
	AGAIN(PHASE_SERVE_DELTA, serve(2));
	compact();
	write_and_reshard(m);
	restore(e, PHASE_RESTORE, 3);
	AGAIN(PHASE_SERVE, serve(3));
	TRIED(PHASE_CLOSE, close_all(e, m));
}

/* -- the processes ------------------------------------------------------- */

static void remove_folder(void)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		fprintf(stderr, "%s is not removed\n", folder);
}

/* Return: the number of allocations of the phase, or -1 if the child crashed, hung or failed. */
static long run_child(enum phase this_phase, long this_nth, bool *was_hit)
{
	struct {
		long seen;
		bool hit;
	} told = {0};
	int up[2], status;
	ssize_t n;
	pid_t child;

	if (pipe(up))
		return -1;
	child = fork();
	if (!child) {
		phase = this_phase;
		nth = this_nth;
		alarm(SECONDS_MOST);
		run_program();
		told.seen = seen;
		told.hit = hit;
		_exit(write(up[1], &told, sizeof(told)) != sizeof(told));
	}
	close(up[1]);
	n = read(up[0], &told, sizeof(told));
	close(up[0]);
	waitpid(child, &status, 0);
	remove_folder();
	*was_hit = told.hit;
	if (n == sizeof(told) && WIFEXITED(status) && !WEXITSTATUS(status))
		return told.seen;
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s, allocation %ld: signal %d\n", phase_names[this_phase],
			this_nth, WTERMSIG(status));
	return -1;
}

static int run_phase(enum phase this_phase, bool whole)
{
	bool was_hit;
	long count = run_child(this_phase, 0, &was_hit), step, tried = 0, failed = count < 0;

	step = whole || count <= SAMPLE ? 1 : count / SAMPLE;
	for (long n = 1 + (step > 1 ? random() % step : 0); n <= count; n += step, tried++) {
		failed += run_child(this_phase, n, &was_hit) < 0;
		/* Threads may make an allocation more or fewer at the end. */
		if (!was_hit && n < count / 2) {
			fprintf(stderr, "%s: allocation %ld of %ld was never made\n",
				phase_names[this_phase], n, count);
			failed++;
		}
	}
	printf("%s %d - %s: %ld of %ld allocations failed in turn, %ld badly\n",
	       failed ? "not ok" : "ok", (int)this_phase + 1, phase_names[this_phase], tried, count,
	       failed);
	return failed != 0;
}

int main(void)
{
	const char *seed = getenv("EMBENG_TEST_SEED"), *where = getenv("TMPDIR");
	bool whole = getenv("EMBENG_FAIL_NTH_WHOLE");
	unsigned int drawn = seed ? (unsigned int)atoi(seed) : (unsigned int)time(NULL);
	char path[512];
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	srandom(drawn);
	snprintf(path, sizeof(path), "%s/embeng-oom-%ld", where ? where : "/tmp", (long)getpid());
	folder = path;
	printf("# seed %u\n1..%d\n", drawn, PHASES);
	for (int p = 0; p < PHASES; p++)
		failed += run_phase((enum phase)p, whole);
	return failed != 0;
}
