// SPDX-License-Identifier: MIT
/*
 * Programs that write into everything they were given while the device works on it: ids,
 * descriptors, gradients, commands, completions, ring headers and doorbells, from a second
 * thread and from a second process with the same file. Two others on the same device keep
 * their exact bits all the time; the device reaches nothing that was not mapped for it, and
 * needs no reset.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"
#include "trainer.h"

#define UNMAPPED_IN_USE "/sys/kernel/debug/embeng_emu/0/unmapped_in_use"
#define MS 1000000ll
#define ROUND_NS (500 * MS)
#define PREY_NS (200 * MS)
#define PATIENCE_NS (120 * SECOND)
#define BURST 64u

/* Shared by all processes. */
struct account {
	_Atomic uint64_t flips, through, stopped, resets, contexts;
	_Atomic int64_t ended; /* a close that takes long: since when, else 0 */
};

struct piece {
	uint8_t *at;
	size_t size;
};

#define PIECES 16u

struct flipper {
	struct piece pieces[PIECES];
	uint32_t count;
	uint64_t random;
};

static struct account *account;
static struct trainer prey;
static struct flipper flipper;
static pthread_mutex_t flipping = PTHREAD_MUTEX_INITIALIZER;

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 29;
}

static void add_piece(struct flipper *f, void *at, size_t size)
{
	ck_assert_uint_lt(f->count, PIECES);
	f->pieces[f->count++] = (struct piece){at, size};
}

static void add_ring(struct flipper *f, const struct ring *ring, char *memory,
		     struct embeng_doorbell *doorbell)
{
	const struct embeng_queue_layout *layout = &ring->made.layout;

	if (!doorbell)
		return;
	add_piece(f, memory + layout->sq, layout->sq_entries * sizeof(struct embeng_cmd));
	add_piece(f, memory + layout->header, sizeof(struct embeng_ring_header));
	add_piece(f, doorbell, sizeof(*doorbell));
}

static void add_memory(struct flipper *f, uint8_t *memory)
{
	add_piece(f, memory, 512); /* the model */
	add_piece(f, memory + TRAINER_DESC, 192);
	add_piece(f, memory + TRAINER_DESC, 192);
	add_piece(f, memory + TRAINER_IDS, TRAINER_SAMPLES * 4);
	add_piece(f, memory + TRAINER_OUT, 256);
	add_piece(f, memory + TRAINER_GRADIENTS, 256);
}

/* Rings and doorbells less often: a queue stops at the first bad index. */
static const struct piece *choose(struct flipper *f)
{
	uint32_t memory = 6, rings = f->count - memory;

	if (rings && next(&f->random) % 32 == 0)
		return &f->pieces[memory + next(&f->random) % rings];
	return &f->pieces[next(&f->random) % memory];
}

static void flip(struct flipper *f)
{
	static const uint32_t corners[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 64, 4096};
	const struct piece *piece = choose(f);
	uint32_t *word = (uint32_t *)piece->at + next(&f->random) % (piece->size / 4);
	uint32_t value = __atomic_load_n(word, __ATOMIC_RELAXED);

	switch (next(&f->random) % 4) {
	case 0:
		value ^= 1u << next(&f->random) % 32;
		break;
	case 1:
		value += (uint32_t)(next(&f->random) % 9) - 4;
		break;
	case 2:
		value = corners[next(&f->random) % 7];
		break;
	case 3:
		value = (uint32_t)next(&f->random);
		break;
	}
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* Pauses let commands come through that are nearly right. */
static void burst(struct flipper *f)
{
	uint64_t flips = 1 + next(&f->random) % BURST;

	for (uint64_t i = 0; i < flips; i++)
		flip(f);
	account->flips += flips;
}

/*
 * Sleeps for up to 32 ms. Each power of two is as likely as the others, so that short rests are
 * many.
 */
static void rest(struct flipper *f)
{
	usleep((useconds_t)(next(&f->random) % (2u << next(&f->random) % 15)));
}

static void *flip_on(void *argument)
{
	(void)argument;
	for (;;) {
		pthread_mutex_lock(&flipping);
		if (flipper.count)
			burst(&flipper);
		pthread_mutex_unlock(&flipping);
		rest(&flipper);
	}
	return NULL;
}

static void map_ring(struct flipper *f, const struct ring *ring)
{
	if (ring->doorbell)
		add_ring(f, ring,
			 accel_map(prey.fd, ring->made.ring, ring->made.layout.size,
				   PROT_READ | PROT_WRITE),
			 accel_map(prey.fd, ring->made.doorbell, 4096, PROT_READ | PROT_WRITE));
}

/* Another process: the file is the same, the mappings are its own. */
static pid_t fork_flipper(uint64_t seed)
{
	struct flipper f = {.random = seed};
	pid_t child = fork();

	if (child)
		return child;
	add_memory(&f, accel_map(prey.fd, prey.bo.offset, TRAINER_MEMORY, PROT_READ | PROT_WRITE));
	map_ring(&f, &prey.transfer);
	map_ring(&f, &prey.input);
	map_ring(&f, &prey.gradient);
	for (;;) {
		burst(&f);
		rest(&f);
	}
}

static void reset_queue(const struct ring *ring)
{
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_QUEUE,
					 .queue = ring->made.queue};
	int ret = accel_call(prey.fd, DRM_IOCTL_EMBENG_RESET, &arg);

	ck_assert_msg(!ret, "reset of a queue: %s", strerror(-ret));
	account->resets++;
}

static void go_on(void)
{
	reset_queue(&prey.transfer);
	reset_queue(&prey.input);
	reset_queue(&prey.gradient);
	trainer_resume(&prey);
}

/* The model again, spoiled, in the midst of it. */
static void load_again(void)
{
	struct embeng_accel_model_load arg = {.queue = prey.transfer.made.queue,
					      .blob = (uintptr_t)prey.memory,
					      .length = prey.blob_length};

	accel_call(prey.fd, DRM_IOCTL_EMBENG_MODEL_LOAD, &arg);
}

static void begin(uint32_t flags, uint64_t seed)
{
	const char *wrong = trainer_open(&prey, accel_open(), flags, PATIENCE_NS, seed);

	/* A moment ago another context was flipped to its end; this one is as good as new. */
	ck_assert_msg(!wrong, "%s", wrong);
	prey.blind = true;
	account->contexts++;
	pthread_mutex_lock(&flipping);
	flipper.count = 0;
	flipper.random += seed;
	add_memory(&flipper, prey.memory);
	add_ring(&flipper, &prey.transfer, prey.transfer.memory, prey.transfer.doorbell);
	add_ring(&flipper, &prey.input, prey.input.memory, prey.input.doorbell);
	add_ring(&flipper, &prey.gradient, prey.gradient.memory, prey.gradient.doorbell);
	pthread_mutex_unlock(&flipping);
}

static void end(pid_t child)
{
	pthread_mutex_lock(&flipping);
	flipper.count = 0;
	pthread_mutex_unlock(&flipping);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	trainer_unmap(&prey);
	account->ended = accel_now();
	close(prey.fd);
	account->ended = 0;
}

static void attack(uint32_t flags, uint64_t seed)
{
	int64_t begun = accel_now(), until;
	pid_t child;

	begin(flags, seed);
	/* A slow machine takes its time for everything, also for what never comes. */
	until = 2 * accel_now() - begun + ROUND_NS;
	prey.patience = PREY_NS + (accel_now() - begun) / 2;
	child = fork_flipper(seed);
	while (accel_now() < until) {
		if (!trainer_step(&prey)) {
			account->through++;
			continue;
		}
		account->stopped++;
		if (account->stopped % 16 == 0 && !flags)
			load_again();
		go_on();
	}
	end(child);
}

static void attack_until(int64_t until)
{
	pthread_t thread;

	pthread_create(&thread, NULL, flip_on, NULL);
	for (uint64_t round = 0; accel_now() < until; round++)
		attack(round % 2 ? 0 : EMBENG_ACCEL_QUEUE_MAPPED, options.seed + round);
	_exit(0);
}

static uint64_t unmapped_in_use(void)
{
	unsigned long long value;
	FILE *file = fopen(UNMAPPED_IN_USE, "r");

	ck_assert_msg(file, UNMAPPED_IN_USE);
	ck_assert_int_eq(fscanf(file, "%llu", &value), 1);
	fclose(file);
	return value;
}

static struct embeng_accel_resets resets(int fd)
{
	struct embeng_accel_resets answer;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_RESETS,
					 .size = sizeof(answer),
					 .data = (uintptr_t)&answer};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	return answer;
}

static void step(struct trainer *t)
{
	const char *wrong = trainer_step(t);

	if (!wrong && t->step % 8 == 0)
		wrong = trainer_check(t);
	ck_assert_msg(!wrong, "bystander: %s", wrong);
}

/* Trains until the attackers have ended. */
static int stand_by(struct trainer *mapped, struct trainer *validated, pid_t child, int64_t until)
{
	int status;

	while (!waitpid(child, &status, WNOHANG)) {
		int64_t ended = account->ended, now = accel_now();

		step(mapped);
		step(validated);
		ck_assert_msg(!ended || now - ended < PATIENCE_NS, "a close does not end");
		ck_assert_msg(now - until < PATIENCE_NS, "the attackers do not end");
	}
	return status;
}

START_TEST(nobody_harms_another)
{
	int64_t until = accel_now() + options.seconds * SECOND;
	uint64_t unmapped = unmapped_in_use();
	struct trainer mapped, validated;
	struct embeng_accel_resets before;
	const char *wrong;
	pid_t child;
	int status;

	account = mmap(NULL, sizeof(*account), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	wrong = trainer_open(&mapped, accel_open(), EMBENG_ACCEL_QUEUE_MAPPED, PATIENCE_NS, 1);
	ck_assert_msg(!wrong, "%s", wrong);
	wrong = trainer_open(&validated, accel_open(), 0, PATIENCE_NS, 2);
	ck_assert_msg(!wrong, "%s", wrong);
	before = resets(mapped.fd);
	child = fork();
	if (!child)
		attack_until(until);
	status = stand_by(&mapped, &validated, child, until);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "the attackers ended with %#x",
		      (unsigned int)status);
	ck_assert_uint_eq(resets(mapped.fd).sequence, before.sequence);
	ck_assert_uint_eq(unmapped_in_use(), unmapped);
	printf("# %llu flips in %llu contexts: %llu steps came through, %llu not, %llu "
	       "queue resets; bystanders took %llu steps\n",
	       (unsigned long long)account->flips, (unsigned long long)account->contexts,
	       (unsigned long long)account->through, (unsigned long long)account->stopped,
	       (unsigned long long)account->resets,
	       (unsigned long long)(mapped.step + validated.step));
	fflush(stdout);
	/* They met: some steps came through, some did not. */
	ck_assert_uint_gt(account->through, 0);
	ck_assert_uint_gt(account->stopped, 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, nobody_harms_another);
}

int main(int argc, char **argv)
{
	return hostile_main(argc, argv, "writers", 60, add);
}
