// SPDX-License-Identifier: MIT
/* The worker threads of a device: each task is done exactly once, also with two callers at once. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

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

#define SHARING 20 /* more callers at once than a pool has room for */

struct sharing {
	struct engine engine;
	u32 cores;
};

static void *share_pool(void *arg)
{
	struct sharing *s = arg;

	run_jobs(&s->engine, s->cores, 100);
	return NULL;
}

/* Devices of one pool: each job has its own device's number of workers at most. */
START_TEST(devices_share_a_pool)
{
	struct pool *pool = pool_new();
	struct sharing sharing[SHARING];
	pthread_t threads[SHARING];
	u32 i;

	ck_assert_ptr_nonnull(pool);
	for (i = 0; i < SHARING; i++) {
		struct sharing *s = &sharing[i];

		*s = (struct sharing){engine_of_pieces(), 1 + i % 6};
		s->engine.pool = pool;
		s->engine.workers = workers_new(&s->engine, s->cores, heartbeat_piece);
		ck_assert_ptr_nonnull(s->engine.workers);
	}
	for (i = 0; i < SHARING; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, share_pool, &sharing[i]), 0);
	for (i = 0; i < SHARING; i++) {
		pthread_join(threads[i], NULL);
		workers_free(sharing[i].engine.workers);
		ck_assert_ptr_eq(sharing[i].engine.pool, pool);
	}
	pool_free(pool);
}
END_TEST

#define PATIENCE_NS 5000000000ull

/* A job in which each core has a part, however busy the machine is. */
struct together {
	u32 done;
	bool helped;
};

/* The caller's tasks wait for a helper's first; a helper's take longer than the rest. */
static void shared_task(void *arg, u64 number, u32 worker)
{
	u64 until = port_now_ns() + PATIENCE_NS;
	struct together *t = arg;

	(void)number;
	if (worker) {
		__atomic_store_n(&t->helped, true, __ATOMIC_SEQ_CST);
		usleep(20000);
	}
	while (!__atomic_load_n(&t->helped, __ATOMIC_SEQ_CST) && port_now_ns() < until)
		sched_yield();
	__atomic_add_fetch(&t->done, 1, __ATOMIC_SEQ_CST);
}

/* In each job anew, and none is over before its last task is. */
START_TEST(helpers_come_back)
{
	struct engine engine = engine_of_pieces();
	struct workers *workers = workers_new(&engine, 2, heartbeat_piece);
	struct context context = {.engine = &engine};
	struct queue queue = {.context = &context};
	struct command command = {.queue = &queue, .context = &context};

	engine.workers = workers;
	for (u32 job = 0; job < 3; job++) {
		struct together t = {0};

		ck_assert(workers_run(&command, shared_task, &t, 8, 100));
		ck_assert_uint_eq(__atomic_load_n(&t.done, __ATOMIC_SEQ_CST), 8);
		ck_assert(t.helped);
	}
	workers_free(workers);
}
END_TEST

struct nested {
	struct command *inner;
	u32 outer[TASKS], done[TASKS], helped;
};

static void inner_task(void *arg, u64 number, u32 worker)
{
	struct nested *n = arg;

	n->helped += worker != 0;
	n->done[number]++;
}

static void outer_task(void *arg, u64 number, u32 worker)
{
	struct nested *n = arg;

	if (!number)
		workers_run(n->inner, inner_task, n, 16, 100);
	(void)worker;
	__atomic_add_fetch(&n->outer[number], 1, __ATOMIC_SEQ_CST);
}

/* A second command finds the helpers taken, and does its tasks alone. */
START_TEST(helpers_work_for_one_command)
{
	struct engine engine = engine_of_pieces();
	struct workers *workers = workers_new(&engine, 2, heartbeat_piece);
	struct context context = {.engine = &engine};
	struct queue queue = {.context = &context};
	struct command command = {.queue = &queue, .context = &context}, inner = command;

	engine.workers = workers;
	for (u32 job = 0; job < 20; job++) {
		struct nested n = {.inner = &inner};

		ck_assert(workers_run(&command, outer_task, &n, 64, 100));
		ck_assert_uint_eq(n.helped, 0);
		for (u32 i = 0; i < TASKS; i++) {
			ck_assert_uint_eq(n.outer[i], i < 64);
			ck_assert_uint_eq(n.done[i], i < 16);
		}
	}
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
	tcase_add_test(t, devices_share_a_pool);
	tcase_add_test(t, helpers_come_back);
	tcase_add_test(t, helpers_work_for_one_command);
	tcase_add_loop_test(t, a_stopped_command_leaves_tasks_out, 1, 5);
	tcase_add_test(t, knows_when_it_has_one_processor);
}

int main(void)
{
	return suite_main("workers", add);
}
