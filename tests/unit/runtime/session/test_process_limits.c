// SPDX-License-Identifier: MIT
/*
 * Limits of the process: address space, open files and threads run out at any point of a program
 * that opens, trains, saves, restores and serves. Each call says so or gives the right numbers, and
 * the checkpoint that was in the folder is whole afterwards.
 *
 * Each limit has a process of its own, which takes the limits with it.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint_help.h"
#include "embeng/serving.h"
#include "serving_help.h"
#include "suite.h"

#define ROWS 20000 /* a table of 1.3 MB, more than a heap has at hand */
#define DIM 16
#define DEVICE "soft:cores=3,memory=16M"
#define SECONDS_MOST 60
#define ANY_VERSION 0	 /* the old one or the new one, whole */
#define OTHER_USER 65500 /* limits of threads do not hold for root */

/* Exit statuses of a child. */
enum { DONE, NOT_OPENED, NOT_SAVED, NOT_TRAINED, NOT_READ, NOT_SERVED, WRONG = 50 };

static char folder[HELP_PATH];
static const struct help_table table = {.name = "items", .rows = ROWS, .dim = DIM};

/* Check's own assertions allocate. */
#define EXPECT(holds) \
	do { \
		if (!(holds)) { \
			dprintf(STDERR_FILENO, "line %d: %s\n", __LINE__, #holds); \
			_exit(WRONG); \
		} \
	} while (0)

/* Whether a call succeeded; a failure must be one of these, and have a sentence. */
static bool worked(int ret)
{
	struct embeng_error error = {.size = sizeof(error)};

	if (!ret)
		return true;
	embeng_last_error(&error);
	EXPECT(error.code == ret);
	EXPECT(strlen(error.text) > 10);
	if (ret != -ENOMEM && ret != -EMFILE && ret != -EAGAIN) {
		dprintf(STDERR_FILENO, "%d: %s\n", ret, error.text);
		_exit(WRONG);
	}
	return false;
}

/* Bytes of addresses that the process has now. */
static rlim_t address_space(void)
{
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	EXPECT(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return (rlim_t)strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void limit_process(int resource, rlim_t most)
{
	const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};

	EXPECT(setrlimit(resource, &limit) == 0);
}

static float value_of(int version, size_t at)
{
	return (float)(version * 1000000 + (int)at);
}

static void expect_version(const float *data, int version, size_t first, size_t count)
{
	if (version == ANY_VERSION)
		version = data[0] < value_of(2, first * DIM) ? 1 : 2;
	for (size_t i = 0; i < count * DIM; i++)
		EXPECT(data[i] == value_of(version, first * DIM + i));
}

static int write_version(struct embeng *e, int version)
{
	static float data[ROWS * DIM];

	for (size_t i = 0; i < ROWS * (size_t)DIM; i++)
		data[i] = value_of(version, i);
	return embeng_rows_write(e, 0, NULL, NULL, ROWS, data);
}

static int look_up(struct embeng *e, int version)
{
	const int64_t ids[] = {7, 8, 299}, lengths[] = {1, 2};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	int ret = b ? embeng_batch_ragged(b, 0, EMBENG_I64, ids, 3, lengths, 2, NULL, 0) : -ENOMEM;

	ret = ret ? ret : embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	ret = ret ? ret : embeng_dequeue(e, 0, -1, &a);
	if (ret)
		return ret;
	expect_version(a.features[0].data, version, 7, 1);
	EXPECT(a.features[0].data[DIM] ==
	       value_of(version, 8 * DIM) + value_of(version, 299 * DIM));
	return embeng_release(e, &a);
}

static int serve(int version)
{
	struct embeng_serving *s = NULL;
	float data[2 * DIM];
	struct embeng_serving_input input = ragged_input(0, I(5, 6), I(0, 1, 2), 3);
	int ret = embeng_serving_open(folder, NULL, 0, &s, NULL);

	input.out = data;
	input.out_elements = 2 * DIM;
	ret = ret ? ret : embeng_serving_lookup(s, &input, 1);
	if (!ret)
		expect_version(data, version, 5, 2);
	embeng_serving_close(s);
	return ret;
}

/* Loads what the folder has over other rows; rows that were not loaded are as they were. */
static int load(struct embeng *e, int version)
{
	static float data[ROWS * DIM];
	int ret = write_version(e, 9), restored;

	if (ret)
		return ret;
	restored = embeng_restore(e, folder, NULL);
	if (restored && !worked(restored))
		version = 9;
	ret = embeng_rows_read(e, 0, NULL, NULL, ROWS, data);
	if (!ret)
		expect_version(data, version, 0, ROWS);
	return ret;
}

/* A call that fails does not keep the next ones from being tried. */
static int run_open(struct embeng *e)
{
	int code = DONE, version = 2;

	if (!worked(write_version(e, 2)))
		return NOT_SAVED;
	if (!worked(embeng_save(e, folder, NULL))) {
		code = NOT_SAVED;
		version = ANY_VERSION;
	}
	if (!worked(look_up(e, 2)))
		code = code ? code : NOT_TRAINED;
	if (!worked(load(e, version)))
		code = code ? code : NOT_READ;
	if (!worked(serve(version)))
		code = code ? code : NOT_SERVED;
	return code;
}

static int run_limited(struct embeng_model *m)
{
	struct embeng *e = NULL;
	int code;

	if (!worked(embeng_open(DEVICE, m, &e, NULL))) {
		EXPECT(!e);
		return NOT_OPENED;
	}
	code = run_open(e);
	embeng_close(e);
	return code;
}

/* The engine is open before the limit comes: what is open goes on, and closes. */
static int run_limited_later(struct embeng_model *m, rlim_t more)
{
	struct embeng *e = NULL;
	int code = DONE;

	EXPECT(embeng_open(DEVICE, m, &e, NULL) == 0);
	limit_process(RLIMIT_AS, address_space() + more);
	code = run_open(e);
	embeng_close(e);
	return code;
}

/* -- the parent ------------------------------------------------------------ */

static int saved_version(void)
{
	struct embeng_checkpoint *c = help_checkpoint(folder);
	static float data[ROWS * DIM];
	int version;

	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 0, ROWS, data));
	version = (int)(data[0] / 1000000);
	for (size_t i = 0; i < ROWS * (size_t)DIM; i++)
		ck_assert(data[i] == value_of(version, i));
	embeng_checkpoint_close(c);
	return version;
}

static void save_first_version(void)
{
	struct embeng *e = help_open(DEVICE, &table, 1);

	help_expect_ok(write_version(e, 1));
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
}

/* A limit that a child takes: as another user, if not 0; once the engine is open, if @later. */
struct trial {
	int resource;
	rlim_t most;
	uid_t user;
	bool later;
};

static int run_trial(const struct trial *t, struct embeng_model *m)
{
	alarm(SECONDS_MOST);
	EXPECT(!t->user || setuid(t->user) == 0);
	if (t->later)
		return run_limited_later(m, t->most);
	limit_process(t->resource, t->most);
	return run_limited(m);
}

static void check_folder(int code)
{
	int version = saved_version();

	/* A save that could not sync the folder at its end may be in place. */
	if (code == NOT_OPENED)
		ck_assert_int_eq(version, 1);
	else if (code != NOT_SAVED)
		ck_assert_int_eq(version, 2);
}

/* Runs the program under a limit. Return: the exit status of the child. */
static int try_limit(struct trial t)
{
	struct embeng_model *m = help_model(&table, 1);
	unsigned long long most = t.most;
	int status;
	pid_t child;

	save_first_version();
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child)
		_exit(run_trial(&t, m));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	embeng_model_free(m);
	ck_assert_msg(WIFEXITED(status), "limit %llu: signal %d", most, WTERMSIG(status));
	ck_assert_msg(WEXITSTATUS(status) < WRONG, "limit %llu", most);
	check_folder(WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

static void setup(void)
{
	help_never_sync();
	folder_new(folder);
	ck_assert_int_eq(chmod(folder, 0777), 0);
}

static void teardown(void)
{
	folder_remove(folder);
}

START_TEST(address_space_runs_out)
{
	rlim_t more = 64 << 10, last = 400 << 20;
	bool seen[NOT_SERVED + 1] = {false};

	for (; more < last; more += more / 8)
		seen[try_limit((struct trial){RLIMIT_AS, address_space() + more, 0, false})] = true;
	ck_assert(seen[NOT_OPENED]);
	ck_assert_int_eq(try_limit((struct trial){RLIMIT_AS, address_space() + last, 0, false}),
			 DONE);
}
END_TEST

START_TEST(address_space_runs_out_later)
{
	rlim_t more = 0, last = 64 << 20;
	bool seen[NOT_SERVED + 1] = {false};

	for (; more < last; more += more / 4 + (16 << 10))
		seen[try_limit((struct trial){RLIMIT_AS, more, 0, true})] = true;
	ck_assert(seen[NOT_SAVED]);
	ck_assert_int_eq(try_limit((struct trial){RLIMIT_AS, last, 0, true}), DONE);
}
END_TEST

START_TEST(open_files_run_out)
{
	bool seen[NOT_SERVED + 1] = {false};
	int free_one = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(free_one);
	for (int more = 0; more < 12; more++)
		seen[try_limit(
			(struct trial){RLIMIT_NOFILE, (rlim_t)(free_one + more), 0, false})] = true;
	ck_assert(seen[NOT_SAVED]);
	ck_assert(seen[DONE]);
}
END_TEST

/* Other processes of a user count as well, so that only a user who has none is limited by a number. */
START_TEST(threads_run_out)
{
	uid_t user = getuid() ? 0 : OTHER_USER;

	ck_assert_int_eq(try_limit((struct trial){RLIMIT_NPROC, 1, user, false}), NOT_OPENED);
	for (rlim_t most = 2; user && most < 8; most++) {
		int code = try_limit((struct trial){RLIMIT_NPROC, most, user, false});

		ck_assert(code == NOT_OPENED || code == DONE);
		ck_assert(most < 7 || code == DONE);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("process_limits");
	TCase *tcase = tcase_create("process_limits");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, address_space_runs_out);
	tcase_add_test(tcase, address_space_runs_out_later);
	tcase_add_test(tcase, open_files_run_out);
	tcase_add_test(tcase, threads_run_out);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
