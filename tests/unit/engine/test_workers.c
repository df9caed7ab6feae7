// SPDX-License-Identifier: MIT
/* The worker threads of a device: each task is done exactly once, also with two callers at once. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "engine/device/device.h"
#include "suite.h"

#define TASKS 200u
#define JOBS 300u

struct job {
	u32 done[TASKS];
	u32 cores;
};

static void task(void *arg, u64 number, u32 worker)
{
	struct job *job = arg;

	ck_assert_uint_lt(worker, job->cores);
	__atomic_fetch_add(&job->done[number], 1, __ATOMIC_RELAXED);
}

/* Its heart beats for the first time long after this test. */
static struct engine engine_of_pieces(void)
{
	static _Alignas(8) u8 registers[EMBENG_REGISTERS_SIZE];

	return (struct engine){
		.inline_bytes = 100, .heartbeat_ms = U32_MAX, .config.registers = registers};
}

static void run_jobs(struct workers *workers, u32 cores, u64 bytes)
{
	u32 i, j;

	for (j = 0; j < JOBS; j++) {
		struct job job = {.cores = cores}, runs = {.cores = cores};
		u64 tasks = j % TASKS;

		workers_run(workers, task, &job, tasks, bytes);
		workers_run_rows(workers, task, &runs, tasks, bytes);
		for (i = 0; i < TASKS; i++) {
			ck_assert_uint_eq(job.done[i], i < tasks);
			ck_assert_uint_eq(runs.done[i], i < tasks);
		}
	}
}

START_TEST(every_task_is_done_once)
{
	struct engine engine = engine_of_pieces();
	struct workers *workers = workers_new(&engine, (u32)_i, heartbeat_piece);

	ck_assert_ptr_nonnull(workers);
	run_jobs(workers, (u32)_i, 99);
	run_jobs(workers, (u32)_i, 100);
	workers_free(workers);
}
END_TEST

static void *second_caller(void *arg)
{
	run_jobs(arg, 4, 100);
	return NULL;
}

START_TEST(two_callers_at_once)
{
	struct engine engine = engine_of_pieces();
	struct workers *workers = workers_new(&engine, 4, heartbeat_piece);
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, second_caller, workers), 0);
	run_jobs(workers, 4, 100);
	pthread_join(thread, NULL);
	workers_free(workers);
}
END_TEST

static void allow(const cpu_set_t *cpus)
{
	ck_assert_int_eq(sched_setaffinity(0, sizeof(*cpus), cpus), 0);
}

/* In a process of its own, as each test is: nobody else is moved. */
START_TEST(knows_when_it_has_one_processor)
{
	cpu_set_t before, one;
	int first = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(first, &before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	allow(&one);
	ck_assert(port_alone());
	allow(&before);
	ck_assert_int_eq(port_alone(), CPU_COUNT(&before) == 1);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, every_task_is_done_once, 1, 8);
	tcase_add_test(t, two_callers_at_once);
	tcase_add_test(t, knows_when_it_has_one_processor);
}

int main(void)
{
	return suite_main("workers", add);
}
