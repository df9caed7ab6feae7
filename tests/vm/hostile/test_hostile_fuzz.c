// SPDX-License-Identifier: MIT
/*
 * Programs made of chance call the driver from several threads and processes, round after
 * round. Each round ends by a kill or on its own; then a new context must train with right
 * values, a context that was there all the time must go on, and no reset may have been needed
 * that nobody with the right to it asked for.
 */
#include <unistd.h>

#include "options.h"
#include "rounds.h"
#include "trainer.h"

#define ROUND_NS (2 * SECOND)
#define SLOW_ROUND_NS (10 * SECOND) /* on an instrumented kernel */

static struct verdict *verdict;
static struct coverage *coverage;
static struct trainer bystander;
static struct embeng_accel_resets resets;

static void play(struct round *round, bool killed)
{
	int64_t length = coverage_there() ? SLOW_ROUND_NS : ROUND_NS;

	round->end = accel_now() + length;
	round_start(round);
	if (killed) {
		usleep((useconds_t)(length / 2000));
		round_kill(round);
	}
	round_finish(round, killed);
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

	expect(trainer_open(&clean, fd, flags, ROUND_PATIENCE_NS, round->seed), "clean", round);
	expect(train(&clean, 3), "clean", round);
	trainer_unmap(&clean);
	close(fd);
}

static void open_bystander(const struct round *round)
{
	uint32_t flags = round->seed % 3 ? 0 : EMBENG_ACCEL_QUEUE_MAPPED;

	expect(trainer_open(&bystander, accel_open(), flags, ROUND_PATIENCE_NS, round->seed),
	       "bystander", round);
}

static void check_bystander(const struct round *round)
{
	struct embeng_accel_resets now = round_resets(bystander.fd);

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

	verdict = round_memory(sizeof(*verdict));
	coverage = round_memory(sizeof(*coverage));
	round.verdict = verdict;
	round.coverage = coverage;
	open_bystander(&round);
	resets = round_resets(bystander.fd);
	do {
		round.seed = options.seed + rounds;
		round.mighty = rounds % 8 == 7;
		play(&round, rounds % 2);
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
