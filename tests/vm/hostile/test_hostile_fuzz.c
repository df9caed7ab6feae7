// SPDX-License-Identifier: MIT
/*
 * Programs made of chance call the driver from several threads and processes, round after
 * round. Each round ends by a kill or on its own; then a new context must train with right
 * values, a context that was there all the time must go on, and no reset may have been needed
 * that nobody with the right to it asked for.
 */
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acts.h"
#include "coverage.h"
#include "options.h"
#include "trainer.h"

#define ROUND_NS (2 * SECOND)
#define SLOW_ROUND_NS (10 * SECOND) /* on an instrumented kernel */
#define PATIENCE_NS (120 * SECOND)  /* for a call that a deadline does not end */
#define NUDGE_US 50000		    /* signals end waits without deadline */

struct round {
	uint64_t seed;
	int64_t end;
	bool killed; /* it ends by a kill */
	bool mighty; /* it may reset the device */
};

static struct verdict *verdict;
static struct coverage *coverage;
static struct trainer bystander;
static struct embeng_accel_resets resets;

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 33;
}

/* A new input, or one that reached something, changed a little. */
static void make_input(uint64_t *state, uint8_t *input)
{
	uint32_t count = coverage->count < INPUTS ? coverage->count : INPUTS;

	if (!count || next(state) % 4 == 0) {
		for (uint32_t i = 0; i < INPUT_BYTES; i++)
			input[i] = (uint8_t)next(state);
		return;
	}
	memcpy(input, coverage->inputs[next(state) % count], INPUT_BYTES);
	for (uint64_t edits = 1 + next(state) % 16; edits; edits--)
		input[next(state) % INPUT_BYTES] = (uint8_t)next(state);
	if (next(state) % 4 == 0) {
		uint64_t at = next(state) % INPUT_BYTES;

		memcpy(input + at, coverage->inputs[next(state) % count] + at, INPUT_BYTES - at);
	}
}

static const struct round *round_now;

static void *act(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	uint64_t state = round_now->seed + number * 0x9e3779b97f4a7c15;
	uint8_t input[INPUT_BYTES];

	actor = (struct actor){
		.verdict = verdict,
		.noted = &verdict->threads[number],
		.area = (uint8_t *)WORLD_BASE +
			(uint64_t)(WORLD_SLOTS + WORLD_GAP + number) * WORLD_SLOT,
	};
	acts_begin(number);
	coverage_begin();
	while (accel_now() < round_now->end) {
		struct fuzz f = {input, sizeof(input)};

		make_input(&state, input);
		acts_run(&f);
		coverage_add(coverage, input);
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

static void run_round(const struct round *round)
{
	struct sigaction nudge = {.sa_handler = on_nudge};
	pthread_t threads[WORLD_THREADS];

	setpgid(0, 0);
	round_now = round;
	actor.verdict = verdict;
	sigaction(SIGUSR1, &nudge, NULL);
	signal(SIGCHLD, SIG_IGN);
	world_signals();
	world_begin();
	if (!round->mighty)
		drop_rights();
	for (uintptr_t i = 0; i < WORLD_THREADS; i++)
		pthread_create(&threads[i], NULL, act, (void *)i);
	while (accel_now() < round->end + SECOND / 4) {
		usleep(NUDGE_US);
		for (uint32_t i = 0; i < WORLD_THREADS; i++)
			pthread_kill(threads[i], SIGUSR1);
	}
	/* Some still wait without a deadline: files end with the process. */
	_exit(0);
}

static void check_calls(uint64_t seed)
{
	for (uint32_t i = 0; i < WORLD_THREADS; i++) {
		int64_t since = verdict->threads[i].since;

		ck_assert_msg(!since || accel_now() - since < PATIENCE_NS,
			      "seed %llu: thread %u is stuck in ioctl %#llx",
			      (unsigned long long)seed, i,
			      (unsigned long long)verdict->threads[i].request);
	}
}

static int await(pid_t child, uint64_t seed)
{
	int64_t limit = accel_now() + PATIENCE_NS;
	int status;
	pid_t got;

	while (!(got = waitpid(child, &status, WNOHANG))) {
		ck_assert_msg(accel_now() < limit, "seed %llu: the process does not end",
			      (unsigned long long)seed);
		check_calls(seed);
		usleep(20000);
	}
	ck_assert_int_eq(got, child);
	return status;
}

static void play(struct round *round)
{
	int64_t begun = accel_now(), length = coverage_there() ? SLOW_ROUND_NS : ROUND_NS;
	pid_t child;
	int status;

	round->end = begun + length;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child)
		run_round(round);
	if (round->killed) {
		usleep((useconds_t)(length / 2000));
		kill(-child, SIGKILL);
	}
	status = await(child, round->seed);
	kill(-child, SIGKILL); /* the processes that it forked */
	ck_assert_msg(!verdict->said, "seed %llu: %s", (unsigned long long)round->seed,
		      verdict->words);
	ck_assert_msg(WIFSIGNALED(status) ? round->killed && WTERMSIG(status) == SIGKILL
					  : !WEXITSTATUS(status),
		      "seed %llu: the process ended with %#x", (unsigned long long)round->seed,
		      (unsigned int)status);
	for (uint32_t i = 0; i < WORLD_THREADS; i++)
		verdict->threads[i].since = 0;
}

/* After a kill, its queues may still be ending. */
static const char *train(struct trainer *t, uint32_t steps)
{
	const char *wrong = NULL;

	for (uint32_t i = 0; i < steps && !wrong; i++)
		wrong = trainer_step(t);
	return wrong ? wrong : trainer_check(t);
}

static void expect(const char *wrong, const char *who, const struct round *round)
{
	ck_assert_msg(!wrong, "seed %llu: %s: %s", (unsigned long long)round->seed, who, wrong);
}

/* A new context is as good as the first. */
static void check_clean(const struct round *round)
{
	uint32_t flags = round->seed % 2 ? EMBENG_ACCEL_QUEUE_MAPPED : 0;
	struct trainer clean;
	int fd = accel_open();

	expect(trainer_open(&clean, fd, flags, PATIENCE_NS, round->seed), "clean", round);
	expect(train(&clean, 3), "clean", round);
	trainer_unmap(&clean);
	close(fd);
}

static struct embeng_accel_resets query_resets(int fd)
{
	struct embeng_accel_resets answer;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_RESETS,
					 .size = sizeof(answer),
					 .data = (uintptr_t)&answer};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	return answer;
}

static void open_bystander(const struct round *round)
{
	uint32_t flags = round->seed % 3 ? 0 : EMBENG_ACCEL_QUEUE_MAPPED;

	expect(trainer_open(&bystander, accel_open(), flags, PATIENCE_NS, round->seed), "bystander",
	       round);
}

static void check_bystander(const struct round *round)
{
	struct embeng_accel_resets now = query_resets(bystander.fd);

	ck_assert_uint_eq(now.wedged, 0);
	if (now.sequence == resets.sequence) {
		expect(train(&bystander, 1), "bystander", round);
		return;
	}
	ck_assert_msg(round->mighty, "seed %llu: the device was reset",
		      (unsigned long long)round->seed);
	resets = now;
	ck_assert_str_eq(trainer_step(&bystander) ? "lost" : "alive", "lost");
	trainer_unmap(&bystander);
	close(bystander.fd);
	open_bystander(round);
}

static void *shared(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

static void print_numbers(uint64_t rounds, int64_t begun)
{
	uint64_t calls = 0, failed = 0;

	for (uint32_t i = 0; i < WORLD_THREADS; i++) {
		calls += verdict->threads[i].calls;
		failed += verdict->threads[i].failed;
	}
	printf("# %llu rounds, %llu calls (%llu a second), %llu of them refused\n",
	       (unsigned long long)rounds, (unsigned long long)calls,
	       (unsigned long long)(calls * SECOND / (uint64_t)(accel_now() - begun)),
	       (unsigned long long)failed);
	if (coverage_there())
		printf("# %u places of the driver reached, by %u inputs\n", coverage->reached,
		       coverage->count);
	fflush(stdout);
	/* Most calls are valid, so that the driver has something to do. */
	ck_assert_uint_gt(calls, 100);
	ck_assert_uint_gt(calls - failed, calls / 8);
}

START_TEST(the_driver_outlives_any_calls)
{
	struct round round = {.seed = options.seed};
	int64_t begun = accel_now(), end = begun + options.seconds * SECOND;
	uint64_t rounds = 0;

	verdict = shared(sizeof(*verdict));
	coverage = shared(sizeof(*coverage));
	open_bystander(&round);
	resets = query_resets(bystander.fd);
	do {
		round.seed = options.seed + rounds;
		round.killed = rounds % 2;
		round.mighty = rounds % 8 == 7;
		play(&round);
		check_clean(&round);
		check_bystander(&round);
		rounds++;
	} while (accel_now() < end);
	print_numbers(rounds, begun);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_driver_outlives_any_calls);
}

int main(int argc, char **argv)
{
	return hostile_main(argc, argv, "fuzz", 300, add);
}
