// SPDX-License-Identifier: MIT
/*
 * Signals and the threads that a handle has: those of the engine, of the group and of the steps. Signals
 * that someone sends are for the program's threads; signals that a thread causes itself are not blocked.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "hosts_help.h"
#include "suite.h"

#define HOSTS 2

static pthread_barrier_t together;
static pid_t known[HOSTS + 1]; /* threads of the test */

/* The signals that a thread blocks, of /proc/self/task/TID/status. */
static uint64_t read_mask(const char *tid)
{
	char path[64], line[256];
	uint64_t blocked = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s", path);
	while (fgets(line, sizeof(line), f))
		found |= sscanf(line, "SigBlk: %" SCNx64, &blocked) == 1;
	fclose(f);
	ck_assert(found);
	return blocked;
}

/* The C library blocks every signal in a thread that has not begun to run yet. */
static uint64_t read_blocked(const char *tid)
{
	uint64_t blocked = read_mask(tid);

	for (int i = 0; i < 1000 && (blocked >> (SIGSEGV - 1) & 1); i++) {
		usleep(10000);
		blocked = read_mask(tid);
	}
	return blocked;
}

static bool blocks(uint64_t blocked, int signal)
{
	return blocked >> (signal - 1) & 1;
}

/* Return: threads that are the library's. */
static int check_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int count = 0;

	ck_assert_ptr_nonnull(tasks);
	while ((task = readdir(tasks)) != NULL) {
		const pid_t tid = atoi(task->d_name);
		uint64_t blocked;
		bool own = tid == 0;

		for (int i = 0; i <= HOSTS; i++)
			own |= tid == known[i];
		if (own)
			continue;
		blocked = read_blocked(task->d_name);
		ck_assert_msg(blocks(blocked, SIGINT) && blocks(blocked, SIGTERM) &&
				      blocks(blocked, SIGALRM) && blocks(blocked, SIGCHLD),
			      "thread %d takes signals of the program: it blocks %" PRIx64, tid,
			      blocked);
		ck_assert_msg(!blocks(blocked, SIGSEGV) && !blocks(blocked, SIGBUS) &&
				      !blocks(blocked, SIGFPE) && !blocks(blocked, SIGABRT),
			      "thread %d would die without a report: it blocks %" PRIx64, tid,
			      blocked);
		count++;
	}
	closedir(tasks);
	return count;
}

static void look_at_threads(struct run_host *h)
{
	known[h->rank + 1] = gettid();
	pthread_barrier_wait(&together);
	/* Each host has a thread of its group and three of its steps; their devices share one at least. */
	if (h->rank == 0)
		ck_assert_int_ge(check_threads(), HOSTS * 4 + 1);
	pthread_barrier_wait(&together);
}

START_TEST(library_leaves_signals_to_the_program)
{
	struct run run = {.optimizer = embeng_sgd(0.1f), .replicas = HOSTS, .steps = 1};
	struct run_host hosts[RUN_HOSTS_MOST];
	sigset_t before, after;

	known[0] = gettid();
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	pthread_barrier_init(&together, NULL, HOSTS);
	run_hosts(&run, HOSTS, look_at_threads, NULL, 0, 20000 * GROUP_MS, hosts);
	for (int i = 0; i < HOSTS; i++)
		ck_assert_msg(hosts[i].code == 0, "%s", hosts[i].text);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	run_free_rows(&run);
	pthread_barrier_destroy(&together);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, library_leaves_signals_to_the_program);
}

int main(void)
{
	return suite_main("thread_signals", add_tests);
}
