// SPDX-License-Identifier: MIT
/*
 * A trainer that saves in a loop is killed at random points, again and again. Each time
 * its folder must hold a whole checkpoint, of a step that is no older than the last; its
 * tables must be, to the bit, those of a training that was never stopped.
 *
 * EMBENG_CRASHES: how often (40); EMBENG_TEST_SEED: of the points (else of the clock).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include "checkpoint_help.h"

#define BAGS 24
#define SAVE_EACH 2 /* steps */
#define DEVICE "soft:cores=2,memory=16M"

static uint64_t mixed(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static struct embeng *open_tables(void)
{
	const struct help_table tables[] = {{"corrected", 900, 17, embeng_adam_corrected(0.01f)},
					    {"adagrad", 200, 5, embeng_adagrad(0.1f)},
					    {"ftrl", 30, 130, embeng_ftrl(0.1f)}};

	return help_open(DEVICE, tables, 3);
}

/* Ids of a step's batch: the same for whoever trains that step. */
static void enqueue(struct embeng *e, uint64_t step)
{
	const struct embeng_model *m = embeng_get_model(e);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	const int64_t shape[] = {BAGS};
	int64_t ids[3][BAGS];

	for (size_t f = 0; f < 3; f++) {
		for (size_t i = 0; i < BAGS; i++)
			ids[f][i] = (int64_t)(mixed(step * 1000 + f * 100 + i) % help_rows(m, f));
		help_expect_ok(embeng_batch_dense(b, (int)f, EMBENG_I64, ids[f], BAGS, shape, 1));
	}
	help_expect_ok(embeng_enqueue(e, b, -1));
	embeng_batch_free(b);
}

/* Gradients depend on the activations, so that one wrong bit spreads. */
static void train(struct embeng *e, uint64_t step)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_gradients g = {.size = sizeof(g), .count = 3};
	const float *features[3];

	enqueue(e, step);
	help_expect_ok(embeng_dequeue(e, 0, -1, &a));
	for (int f = 0; f < 3; f++) {
		float *to = embeng_gradient_buffer(e, 0, f);
		size_t elements = (size_t)(a.features[f].shape[0] * a.features[f].shape[1]);

		for (size_t i = 0; i < elements; i++)
			to[i] = a.features[f].data[i] - help_value((size_t)f, 0, i, (uint32_t)step);
		features[f] = to;
	}
	g.features = features;
	help_expect_ok(embeng_apply_gradients(e, &g, -1));
}

/* Step that a checkpoint was saved at, 0 when there is none. */
static uint64_t saved_step(const char *folder)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = NULL;
	int ret = embeng_checkpoint_open(folder, &c, NULL);
	uint64_t step;

	if (ret == -ENOENT)
		return 0;
	help_expect_ok(ret);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	step = strtoull(info.program_state, NULL, 10);
	ck_assert_uint_eq(info.step, step);
	embeng_checkpoint_close(c);
	return step;
}

/* -- the trainer that gets killed ---------------------------------------- */

static const char *folder_of_trainer;
static int tell_of_trainer;

/* Ends only by a signal, or by what fails. */
START_TEST(trains_and_saves)
{
	struct embeng *e = open_tables();
	uint64_t step = saved_step(folder_of_trainer);
	char state[32];
	struct embeng_save_options o = {
		.size = sizeof(o), .shard_bytes = 40000, .program_state = state};

	if (step)
		help_expect_ok(embeng_restore(e, folder_of_trainer, NULL));
	for (;;) {
		train(e, ++step);
		if (step % SAVE_EACH)
			continue;
		snprintf(state, sizeof(state), "%llu", (unsigned long long)step);
		o.flags = step / SAVE_EACH % 3 ? EMBENG_SAVE_DELTA : 0;
		ck_assert_int_eq(write(tell_of_trainer, "s", 1), 1);
		help_expect_ok(embeng_save(e, folder_of_trainer, &o));
	}
}
END_TEST

/* -- who kills it -------------------------------------------------------- */

/* Lets it live until its second save began, and then a random part of two more. */
static void run_and_kill(const char *program, const char *folder, uint64_t random)
{
	char descriptor[16], byte;
	struct timespec begun, now;
	uint64_t save_ns, nap;
	int tell[2], status;
	pid_t child;

	ck_assert_int_eq(pipe(tell), 0);
	snprintf(descriptor, sizeof(descriptor), "%d", tell[1]);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		execl(program, program, folder, descriptor, (char *)NULL);
		_exit(127);
	}
	close(tell[1]);
	ck_assert_int_eq(read(tell[0], &byte, 1), 1);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	ck_assert_int_eq(read(tell[0], &byte, 1), 1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	save_ns = (uint64_t)(now.tv_sec - begun.tv_sec) * 1000000000u +
		  (uint64_t)(now.tv_nsec - begun.tv_nsec);
	nap = random % (2 * save_ns + 1);
	nanosleep(&(struct timespec){(time_t)(nap / 1000000000u), (long)(nap % 1000000000u)}, NULL);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFSIGNALED(status), "the trainer ended by itself, status %d", status);
	close(tell[0]);
}

static void expect_same(struct embeng *got, struct embeng *want)
{
	const struct embeng_model *m = embeng_get_model(want);

	for (size_t t = 0; t < embeng_model_table_count(m); t++) {
		size_t bytes = help_elements(m, t) * sizeof(float);
		float *a = malloc(bytes), *b = malloc(bytes);

		for (size_t k = 0; k <= embeng_model_slot_count(m, t); k++) {
			const char *slot = help_slot(m, t, k);

			help_expect_ok(
				embeng_rows_read(got, (int)t, slot, NULL, help_rows(m, t), a));
			help_expect_ok(
				embeng_rows_read(want, (int)t, slot, NULL, help_rows(m, t), b));
			ck_assert_msg(!memcmp(a, b, bytes), "table %zu, %s differs", t, slot);
		}
		free(a);
		free(b);
	}
}

/* Files that the last save did not live to name, or to remove. */
static bool has_leftovers(const char *folder)
{
	static char names[HELP_FILES][256];
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = help_checkpoint(folder);
	size_t files = folder_files(folder, names, HELP_FILES);

	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	embeng_checkpoint_close(c);
	return files > info.file_count + 2;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static const char *program;

START_TEST(a_killed_trainer_resumes_as_if_never_stopped)
{
	uint64_t crashes = number_of("EMBENG_CRASHES", 40);
	uint64_t seed = number_of("EMBENG_TEST_SEED", (uint64_t)time(NULL));
	struct embeng *reference = open_tables();
	uint64_t trained = 0, inside = 0;
	char folder[HELP_PATH];

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	folder_new(folder);
	for (uint64_t i = 0; i < crashes; i++) {
		struct embeng *resumed = open_tables();
		uint64_t step;

		run_and_kill(program, folder, mixed(seed + i));
		step = saved_step(folder);
		ck_assert_uint_ge(step, trained + SAVE_EACH);
		inside += has_leftovers(folder);
		while (trained < step)
			train(reference, ++trained);
		help_expect_ok(embeng_restore(resumed, folder, NULL));
		expect_same(resumed, reference);
		embeng_close(resumed);
	}
	printf("%llu crashes survived, %llu of them inside of a save; %llu steps, same bits\n",
	       (unsigned long long)crashes, (unsigned long long)inside,
	       (unsigned long long)trained);
	embeng_close(reference);
	folder_remove(folder);
}
END_TEST

/* In this process: it must be the one that is killed, and a handle is of one process. */
static int run_here(const TTest *test, enum print_output output)
{
	Suite *suite = suite_create("kill");
	TCase *tcase = tcase_create("kill");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, output);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

int main(int argc, char **argv)
{
	program = argv[0];
	if (argc != 3)
		return run_here(a_killed_trainer_resumes_as_if_never_stopped, CK_NORMAL);
	folder_of_trainer = argv[1];
	tell_of_trainer = atoi(argv[2]);
	return run_here(trains_and_saves, CK_MINIMAL);
}
