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

static void run_jobs(struct engine *engine, u32 cores, u64 bytes)
{
	struct context context = {.engine = engine};
	struct queue queue = {.context = &context};
	struct command command = {.queue = &queue, .context = &context};
	u32 i, j;

	for (j = 0; j < JOBS; j++) {
		struct job job = {.cores = cores}, runs = {.cores = cores};
		u64 tasks = j % TASKS;

		workers_run(&command, task, &job, tasks, bytes);
		workers_run_rows(&command, task, &runs, tasks, bytes);
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
	engine.workers = workers;
	run_jobs(&engine, (u32)_i, 99);
	run_jobs(&engine, (u32)_i, 100);
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

	engine.workers = workers;
	ck_assert_int_eq(pthread_create(&thread, NULL, second_caller, &engine), 0);
	run_jobs(&engine, 4, 100);
	pthread_join(thread, NULL);
	workers_free(workers);
}
END_TEST

static void allow(const cpu_set_t *cpus)
{
	ck_assert_int_eq(sched_setaffinity(0, sizeof(*cpus), cpus), 0);
}

struct stopped {
	struct context context;
	struct queue queue;
	struct command command;
	bool *dying; /* set by the fifth task */
	u32 done;
};

static void stopping_task(void *arg, u64 number, u32 worker)
{
	struct stopped *s = arg;

	(void)number;
	(void)worker;
	if (__atomic_add_fetch(&s->done, 1, __ATOMIC_RELAXED) == 5)
		__atomic_store_n(s->dying, true, __ATOMIC_RELAXED);
}

/* Tasks that were begun are done; @cores: at most so many more than the one that ends it. */
static bool run_stopped(struct stopped *s, struct engine *engine, bool queue, bool finishes)
{
	*s = (struct stopped){.context = {.engine = engine}, .dying = &s->context.dying};
	if (queue)
		s->dying = &s->queue.dying;
	s->command = (struct command){
		.queue = &s->queue, .context = &s->context, .finishes = finishes};
	return workers_run(&s->command, stopping_task, s, TASKS, 100);
}

START_TEST(a_stopped_command_leaves_tasks_out)
{
	struct engine engine = engine_of_pieces();
	struct workers *workers = workers_new(&engine, (u32)_i, heartbeat_piece);
	struct stopped s;

	engine.workers = workers;
	for (u32 queue = 0; queue < 2; queue++) {
		ck_assert(!run_stopped(&s, &engine, queue, false));
		ck_assert(s.command.cut);
		ck_assert_uint_ge(s.done, 5);
		ck_assert_uint_lt(s.done, 5 + (u32)_i);
	}
	/* Half an update is none: only the end of the context stops it. */
	ck_assert(run_stopped(&s, &engine, true, true));
	ck_assert(!s.command.cut);
	ck_assert_uint_eq(s.done, TASKS);
	ck_assert(!run_stopped(&s, &engine, false, true));
	workers_free(workers);
}
END_TEST

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
	tcase_add_loop_test(t, a_stopped_command_leaves_tasks_out, 1, 5);
	tcase_add_test(t, knows_when_it_has_one_processor);
}

int main(void)
{
	return suite_main("workers", add);
}
