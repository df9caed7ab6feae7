// SPDX-License-Identifier: MIT
/*
 * Runs processes made of chance: their threads, their inputs, the rights that they have, and the
 * judgement of how they ended. The fuzzer and the chaos share it.
 *
 * A round's memory belongs to the caller. In the process of a round, one thread writes round_now
 * before the others start.
 */
#define _GNU_SOURCE /* setresuid */
#include "rounds.h"

#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acts.h"

#define NUDGE_US 50000 /* signals end waits without deadline */

uint64_t round_draw(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 33;
}

void *round_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

/* A new input, or one that reached something, changed a little. */
static void make_input(struct coverage *coverage, uint64_t *state, uint8_t *input)
{
	uint32_t count = coverage->count < INPUTS ? coverage->count : INPUTS;

	if (!count || round_draw(state) % 4 == 0) {
		for (uint32_t i = 0; i < INPUT_BYTES; i++)
			input[i] = (uint8_t)round_draw(state);
		return;
	}
	memcpy(input, coverage->inputs[round_draw(state) % count], INPUT_BYTES);
	for (uint64_t edits = 1 + round_draw(state) % 16; edits; edits--)
		input[round_draw(state) % INPUT_BYTES] = (uint8_t)round_draw(state);
	if (round_draw(state) % 4 == 0) {
		uint64_t at = round_draw(state) % INPUT_BYTES;

		memcpy(input + at, coverage->inputs[round_draw(state) % count] + at,
		       INPUT_BYTES - at);
	}
}

static const struct round *round_now;

static void *act(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	uint64_t state = round_now->seed + number * 0x9e3779b97f4a7c15;
	uint8_t input[INPUT_BYTES];

	actor = (struct actor){
		.verdict = round_now->verdict,
		.noted = &round_now->verdict->threads[number],
		.area = (uint8_t *)WORLD_BASE +
			(uint64_t)(WORLD_SLOTS + WORLD_GAP + number) * WORLD_SLOT,
	};
	acts_begin(number);
	coverage_begin();
	while (accel_now() < round_now->end) {
		struct fuzz f = {input, sizeof(input)};

		make_input(round_now->coverage, &state, input);
		acts_run(&f);
		coverage_add(round_now->coverage, input);
	}
	return NULL;
}

static void on_nudge(int number)
{
	(void)number;
}

/* Resets of the device are an administrator's. */
static void drop_rights(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		world_die("capget");
	data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
	data[CAP_TO_INDEX(CAP_SYS_ADMIN)].permitted &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &head, data))
		world_die("capset");
}

/* Another user has none of the rights that root has. */
static void become_user(const struct round *r)
{
	if (!r->mighty)
		drop_rights();
	if (r->user && (setgroups(0, NULL) || setresgid(r->user, r->user, r->user) ||
			setresuid(r->user, r->user, r->user)))
		world_die("becoming user %u", (unsigned int)r->user);
}

static void run_round(const struct round *r)
{
	struct sigaction nudge = {.sa_handler = on_nudge};
	pthread_t threads[WORLD_THREADS];

	setpgid(0, 0);
	round_now = r;
	actor.verdict = r->verdict;
	sigaction(SIGUSR1, &nudge, NULL);
	signal(SIGCHLD, SIG_IGN);
	world_signals();
	world_begin();
	become_user(r);
	for (uintptr_t i = 0; i < WORLD_THREADS; i++)
		pthread_create(&threads[i], NULL, act, (void *)i);
	while (accel_now() < r->end + SECOND / 4) {
		usleep(NUDGE_US);
		for (uint32_t i = 0; i < WORLD_THREADS; i++)
			pthread_kill(threads[i], SIGUSR1);
	}
	/* Some still wait without a deadline: files end with the process. */
	_exit(0);
}

void round_start(struct round *r)
{
	r->process = fork();
	ck_assert_int_ge(r->process, 0);
	if (!r->process)
		run_round(r);
}

static void check_calls(const struct round *r)
{
	for (uint32_t i = 0; i < WORLD_THREADS; i++) {
		int64_t since = r->verdict->threads[i].since;

		ck_assert_msg(!since || accel_now() - since < ROUND_PATIENCE_NS,
			      "seed %llu: thread %u is stuck in ioctl %#llx",
			      (unsigned long long)r->seed, i,
			      (unsigned long long)r->verdict->threads[i].request);
	}
}

static int await_process(const struct round *r)
{
	int64_t limit = accel_now() + ROUND_PATIENCE_NS;
	int status;
	pid_t got;

	while (!(got = waitpid(r->process, &status, WNOHANG))) {
		ck_assert_msg(accel_now() < limit, "seed %llu: the process does not end",
			      (unsigned long long)r->seed);
		check_calls(r);
		usleep(20000);
	}
	ck_assert_int_eq(got, r->process);
	return status;
}

void round_kill(const struct round *r)
{
	kill(-r->process, SIGKILL);
	kill(r->process, SIGKILL); /* it may not have made its group yet */
}

void round_finish(struct round *r, bool killed)
{
	int status = await_process(r);

	kill(-r->process, SIGKILL); /* the processes that it forked */
	ck_assert_msg(!r->verdict->said, "seed %llu: %s", (unsigned long long)r->seed,
		      r->verdict->words);
	ck_assert_msg(WIFSIGNALED(status) ? killed && WTERMSIG(status) == SIGKILL
					  : !WEXITSTATUS(status),
		      "seed %llu: the process ended with %#x", (unsigned long long)r->seed,
		      (unsigned int)status);
	for (uint32_t i = 0; i < WORLD_THREADS; i++)
		r->verdict->threads[i].since = 0;
}

struct embeng_accel_resets round_resets(int fd)
{
	struct embeng_accel_resets answer;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_RESETS,
					 .size = sizeof(answer),
					 .data = (uintptr_t)&answer};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	return answer;
}
