// SPDX-License-Identifier: MIT
/*
 * Everything at once, for as long as one likes: two users' programs made of chance, on both paths,
 * while the device has faults, is reset, taken out and put to sleep, and memory is short. All along
 * a bystander trains, and its rows are right or it is told why they are lost; nothing else but what
 * happened to the device may lose them. After each turn nothing is left of the programs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disturb.h"
#include "options.h"
#include "rounds.h"
#include "trainer.h"

#define TURN_NS (2 * SECOND)
#define SLOW_TURN_NS (8 * SECOND) /* on an instrumented kernel */
#define LOOSE_S 60		  /* for contexts that end by themselves, behind a close */
#define SETTLE_S 4		  /* for the watchdog, which chaos.sh lets look once a second */
#define PROGRAMS 2u
#define TABLE_MEMORY DISTURB_FUNCTION "table_memory_used"
#define PART_S 1500u /* Check counts the microseconds of a test in an int: 2,147 s are the most */
#define ALLOWED_KIB (24u << 10) /* the kernel's caches grow with use */

static const uid_t users[PROGRAMS] = {65533, 65534};

static struct round programs[PROGRAMS];
static struct trainer bystander;
static uint64_t alone; /* table memory of the bystander */
static uint64_t random_state;

static struct tally {
	unsigned int turns[DISTURBANCES], lost[DISTURBANCES], kills;
	unsigned long long steps;
	int64_t longest; /* step of the bystander while nothing happens to the device */
} tally;

static const char *name_of(const struct disturbance *d)
{
	return d ? d->name : "beginning";
}

/* The chaos fails by its seed and the turn. */
#define EXPECT(condition, d, format, ...) \
	ck_assert_msg(condition, "seed %llu, turn %u (%s): " format, \
		      (unsigned long long)options.seed, count_turns(), name_of(d), ##__VA_ARGS__)

static unsigned int count_turns(void)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < DISTURBANCES; i++)
		sum += tally.turns[i];
	return sum;
}

static void open_bystander(const struct disturbance *d)
{
	uint64_t seed = round_draw(&random_state);
	uint32_t flags = seed % 3 ? EMBENG_ACCEL_QUEUE_MAPPED : 0;
	const char *wrong = trainer_open(&bystander, accel_open(), flags, ROUND_PATIENCE_NS, seed);

	EXPECT(!wrong, d, "the bystander: %s", wrong);
}

static void close_bystander(void)
{
	trainer_unmap(&bystander);
	close(bystander.fd);
}

/* Return: true when its context is lost, or the device is gone. A reset is waited for. */
static bool is_lost(void)
{
	struct embeng_accel_context_state state;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_CONTEXT,
					 .size = sizeof(state),
					 .data = (uintptr_t)&state};

	for (;;) {
		if (accel_call(bystander.fd, DRM_IOCTL_EMBENG_QUERY, &arg))
			return true;
		if (state.status != EMBENG_ACCEL_CONTEXT_IN_RESET)
			return state.status == EMBENG_ACCEL_CONTEXT_LOST;
		usleep(1000);
	}
}

/* A reset that nothing called for says why it was made. */
static void expect_called_for(const char *wrong, const struct disturbance *d)
{
	struct embeng_accel_health health = {0};
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_HEALTH,
					 .size = sizeof(health),
					 .data = (uintptr_t)&health};

	accel_call(bystander.fd, DRM_IOCTL_EMBENG_QUERY, &arg); /* zeros of a device that is gone */
	EXPECT(d->loses, d, "the bystander is lost, cause %u, rung %u, still for %llu ms: %s",
	       health.cause, health.rung, (unsigned long long)(health.still_ns / 1000000), wrong);
}

/* Wrong bits are wrong whatever happens; that something fails may be lawful. */
static bool judge(const char *wrong, const struct disturbance *d)
{
	bool lost;

	if (!wrong)
		return true;
	EXPECT(!strstr(wrong, "wrong "), d, "the bystander: %s", wrong);
	lost = is_lost();
	EXPECT(lost || d->fails, d, "the bystander: %s", wrong);
	if (lost)
		expect_called_for(wrong, d);
	tally.lost[d - disturbances]++;
	return false;
}

static bool step_bystander(const struct disturbance *d)
{
	int64_t begun = accel_now(), took;
	const char *wrong = trainer_step(&bystander);

	tally.steps++;
	if (!wrong && tally.steps % 16 == 0)
		wrong = trainer_check(&bystander);
	took = accel_now() - begun;
	if (!d->loses && took > tally.longest)
		tally.longest = took;
	return judge(wrong, d);
}

/* It is a process, so that the bystander goes on meanwhile. */
static pid_t start_disturbance(const struct disturbance *d)
{
	uint64_t state = round_draw(&random_state);
	pid_t hand = fork();

	ck_assert_int_ge(hand, 0);
	if (hand)
		return hand;
	usleep((useconds_t)(round_draw(&state) % 500000));
	d->act(&state);
	_exit(0);
}

static void await_disturbance(pid_t hand, const struct disturbance *d)
{
	int status;

	ck_assert_int_eq(waitpid(hand, &status, 0), hand);
	EXPECT(!status, d, "it ended with %#x", (unsigned int)status);
}

static void start_programs(int64_t length)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		programs[i].seed = round_draw(&random_state);
		programs[i].user = users[i];
		programs[i].end = accel_now() + length;
		round_start(&programs[i]);
	}
}

static void end_programs(void)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		bool killed = round_draw(&random_state) % 2;

		if (killed)
			round_kill(&programs[i]);
		tally.kills += killed;
		round_finish(&programs[i], killed);
	}
}

/* Lines of debugfs that begin a context. */
static unsigned int count_contexts(void)
{
	FILE *file = fopen("/sys/kernel/debug/accel/" DISTURB_ADDRESS "/contexts", "re");
	unsigned int count = 0;
	char line[256];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		count += !strncmp(line, "context ", 8);
	fclose(file);
	return count;
}

static void replace_bystander(const struct disturbance *d)
{
	close_bystander();
	open_bystander(d);
}

static void expect_alone(const struct disturbance *d)
{
	int64_t limit = accel_now() + LOOSE_S * SECOND;

	while (count_contexts() != 1 || accel_number(TABLE_MEMORY) != alone) {
		/* A fault may be found, and the device reset for it, after the last step. */
		if (d->loses && is_lost())
			replace_bystander(d);
		EXPECT(accel_now() < limit, d,
		       "%u contexts with %" PRIu64 " bytes are left, not %" PRIu64,
		       count_contexts(), accel_number(TABLE_MEMORY), alone);
		usleep(20000);
	}
}

static void play_turn(const struct disturbance *d, int64_t length)
{
	int64_t end = accel_now() + length;
	bool alive = true;
	pid_t hand;

	tally.turns[d - disturbances]++;
	printf("# %lld: turn %u: %s\n", (long long)(accel_now() / SECOND), count_turns(), d->name);
	fflush(stdout);
	start_programs(length);
	hand = start_disturbance(d);
	while (alive && accel_now() < end)
		alive = step_bystander(d);
	await_disturbance(hand, d);
	end_programs();
	disturb_end();
	if (d->fails)
		sleep(SETTLE_S);
	if (alive)
		alive = step_bystander(d);
	if (!alive)
		replace_bystander(d);
	expect_alone(d);
	alive = step_bystander(&disturbances[0]);
	EXPECT(alive, d, "the device does not work afterwards");
}

/* Unreclaimable memory of the kernel, in KiB, once caches are dropped. */
static unsigned long long measure_kernel(void)
{
	unsigned long long sum = 0, kib;
	char line[128];
	FILE *file;

	accel_write("/proc/sys/vm/drop_caches", "3");
	file = fopen("/proc/meminfo", "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "SUnreclaim: %llu kB", &kib) == 1 ||
		    sscanf(line, "VmallocUsed: %llu kB", &kib) == 1)
			sum += kib;
	}
	fclose(file);
	return sum;
}

static void print_tally(unsigned long long before, unsigned long long after)
{
	for (size_t i = 0; i < DISTURBANCES; i++)
		printf("# %-15s %4u turns, the bystander was lost in %u\n", disturbances[i].name,
		       tally.turns[i], tally.lost[i]);
	printf("# %llu steps, the longest of %lld ms while nothing happened; %u programs killed\n",
	       tally.steps, (long long)(tally.longest / 1000000), tally.kills);
	printf("# the kernel has %llu KiB, and had %llu\n", after, before);
	fflush(stdout);
}

static unsigned int count_parts(void)
{
	return options.seconds ? (options.seconds - 1) / PART_S + 1 : 1;
}

static void begin(unsigned int part)
{
	struct coverage *coverage = round_memory(sizeof(*coverage));

	for (size_t i = 0; i < PROGRAMS; i++) {
		programs[i].verdict = round_memory(sizeof(*programs[i].verdict));
		programs[i].coverage = coverage;
	}
	random_state = options.seed + part;
	if (count_parts() > 1)
		printf("# part %u of %u\n", part + 1, count_parts());
	disturb_open_node();
	open_bystander(NULL);
	alone = accel_number(TABLE_MEMORY);
	ck_assert_uint_eq(count_contexts(), 1);
}

/* Each disturbance comes once before any comes again, in an order that is drawn. */
static const struct disturbance *choose(unsigned int turn)
{
	static size_t order[DISTURBANCES];

	for (size_t i = 0; turn % DISTURBANCES == 0 && i < DISTURBANCES; i++) {
		size_t other = round_draw(&random_state) % (i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	return &disturbances[order[turn % DISTURBANCES]];
}

START_TEST(a_bystander_outlives_chaos)
{
	int64_t length = coverage_there() ? SLOW_TURN_NS : TURN_NS, end;
	unsigned long long before, after;
	unsigned int turn = 0;

	begin((unsigned int)_i);
	play_turn(&disturbances[0], length);
	before = measure_kernel();
	end = accel_now() + options.seconds / count_parts() * SECOND;
	do {
		play_turn(choose(turn), length);
		turn++;
	} while (turn < DISTURBANCES || accel_now() < end);
	close_bystander();
	after = measure_kernel();
	print_tally(before, after);
	ck_assert_msg(after < before + ALLOWED_KIB,
		      "the kernel's memory grew from %llu to %llu KiB", before, after);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_bystander_outlives_chaos, 0, (int)count_parts());
}

int main(int argc, char **argv)
{
	return hostile_main(argc, argv, "chaos", 60, add);
}
