// SPDX-License-Identifier: MIT
/*
 * A device that does nothing more, while it is looked at and brought back: who monitors it gets the
 * last values at once, and a program that is killed leaves, whatever call it was in. Nothing is
 * measured: all of it has to happen while the device is still away.
 */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"
#include "fault_file.h"

#define HANG_MS "/sys/module/embeng/parameters/hang_ms"
#define ADMIN_TIMEOUT_MS "/sys/module/embeng/parameters/admin_timeout_ms"
#define ANSWER_TIMEOUT_MS "/sys/module/embeng/parameters/answer_timeout_ms"
#define FUNCTION "/sys/bus/pci/devices/0eb0:00:00.0/"
#define DEBUG "/sys/kernel/debug/accel/0eb0:00:00.0/"

static int fd;
static struct embeng_accel_resets before;

static void setup(void)
{
	/* The device is away for longer than any test looks, until await_return(). */
	accel_write(ADMIN_TIMEOUT_MS, "60000");
	accel_write(ANSWER_TIMEOUT_MS, "60000");
	fd = accel_open();
	accel_context(fd);
	before = accel_resets(fd);
}

static void teardown(void)
{
	close(fd);
	accel_write(HANG_MS, "10000");
	accel_write(ADMIN_TIMEOUT_MS, "20000");
	accel_write(ANSWER_TIMEOUT_MS, "20000");
}

/* The engine dies; its reset waits for an answer that does not come. */
static void die(void)
{
	fault_arm("engine_dies", 1);
	while (fault_get("engine_dies", "count"))
		usleep(1000);
}

static void await_reset(void)
{
	while (!accel_readings(fd).resetting)
		usleep(1000);
}

static void expect_still_away(const char *what)
{
	struct embeng_accel_resets now = accel_resets(fd);

	ck_assert_msg(now.sequence == before.sequence && !now.wedged,
		      "%s: it took as long as the reset", what);
}

/* Waits for the device go on by these limits, and so end at once. It boots in a fraction of them. */
static void await_return(void)
{
	accel_write(ADMIN_TIMEOUT_MS, "2000");
	accel_write(ANSWER_TIMEOUT_MS, "6000");
	accel_await_reset(before.sequence);
	ck_assert_uint_eq(accel_resets(fd).wedged, 0);
	accel_works();
}

/* Reads every file of a pattern. Return: their number. */
static size_t read_files(const char *pattern)
{
	char text[65536];
	glob_t found;
	size_t count;

	ck_assert_msg(!glob(pattern, 0, NULL, &found), "%s: nothing", pattern);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int file = open(found.gl_pathv[i], O_RDONLY);

		ck_assert_int_ge(file, 0);
		ck_assert_msg(read(file, text, sizeof(text)) > 0, "%s: %s", found.gl_pathv[i],
			      strerror(errno));
		close(file);
		expect_still_away(found.gl_pathv[i]);
	}
	count = found.gl_pathc;
	globfree(&found);
	return count;
}

static void query_all(void)
{
	for (uint32_t what = 0; what <= EMBENG_ACCEL_QUERY_READINGS; what++) {
		char answer[4096];
		struct embeng_accel_query arg = {
			.what = what, .size = sizeof(answer), .data = (uintptr_t)answer};

		ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
		expect_still_away("QUERY");
	}
}

START_TEST(test_monitoring)
{
	char fdinfo[64];
	uint64_t commands = accel_number(FUNCTION "counters/commands");

	accel_write(HANG_MS, "1000");
	die();
	await_reset();
	ck_assert_uint_ge(read_files(FUNCTION "counters/*"), 13);
	read_files(FUNCTION "resets/*");
	read_files(FUNCTION "*_ns");
	read_files(FUNCTION "*_version");
	read_files(FUNCTION "table_memory_*");
	read_files(FUNCTION "firmware_refused");
	read_files(FUNCTION "hwmon/hwmon*/*_input");
	read_files(DEBUG "registers");
	read_files(DEBUG "contexts");
	read_files(DEBUG "events");
	snprintf(fdinfo, sizeof(fdinfo), "/proc/self/fdinfo/%d", fd);
	read_files(fdinfo);
	query_all();
	close(accel_open());
	expect_still_away("open and close");
	ck_assert_uint_ge(accel_number(FUNCTION "counters/commands"), commands);
	ck_assert_uint_gt(accel_number(FUNCTION "readings_age_ms"), 0);
	ck_assert_uint_gt(accel_readings(fd).age_ns, 0);
	ck_assert_uint_eq(accel_readings(fd).resetting, 1);
	expect_still_away("all");
	await_return();
	ck_assert_uint_eq(accel_number(FUNCTION "readings_age_ms"), 0);
	ck_assert_uint_eq(accel_readings(fd).age_ns, 0);
}
END_TEST

/* A program that is killed in a call. It has a context, a queue and a key, or only an open file. */
struct own {
	int fd;
	struct ring ring;
	struct embeng_mem key;
};

static void do_nothing(struct own *own)
{
	(void)own;
	pause();
}

static void make_context(struct own *own)
{
	struct embeng_accel_context_create arg = {0};

	close(own->fd);
	own->fd = accel_open();
	accel_call(own->fd, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &arg);
}

static void make_queue(struct own *own)
{
	struct embeng_accel_queue_create arg = accel_queue(EMBENG_QUEUE_TRANSFER, 0);

	accel_call(own->fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, &arg);
}

static void destroy_queue(struct own *own)
{
	struct embeng_accel_queue_destroy arg = {.queue = own->ring.made.queue};

	accel_call(own->fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY, &arg);
}

static void reset_queue(struct own *own)
{
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_QUEUE,
					 .queue = own->ring.made.queue};

	accel_call(own->fd, DRM_IOCTL_EMBENG_RESET, &arg);
}

static void end_region(struct own *own)
{
	struct embeng_accel_unbind arg = {own->key.index, own->key.generation};

	accel_call(own->fd, DRM_IOCTL_EMBENG_UNBIND, &arg);
}

static void close_file(struct own *own)
{
	close(own->fd);
	pause();
}

/* The end of each of them takes as long as the device is away. */
static void hold_many(struct own *own)
{
	(void)own;
	pause();
}

static int give_nop(int file, const struct ring *ring)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP};
	struct embeng_accel_submit arg = {.queue = ring->made.queue,
					  .count = 1,
					  .stride = sizeof(cmd),
					  .commands = (uintptr_t)&cmd,
					  .cq_head = ring->cq_head};

	return accel_call(file, DRM_IOCTL_EMBENG_SUBMIT, &arg);
}

/* Until the ring is full, or for as long as the device is being reset. */
static void submit(struct own *own)
{
	while (!give_nop(own->fd, &own->ring))
		;
}

static void (*const calls[])(struct own *own) = {
	do_nothing, make_context, make_queue, destroy_queue, reset_queue,
	end_region, close_file,	  submit,     hold_many,
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* Starts a program that makes the call once it is told to. */
static pid_t start_program(size_t which, int go)
{
	pid_t child = fork();
	struct own own;

	if (child) {
		ck_assert_int_gt(child, 0);
		return child;
	}
	own.fd = accel_open();
	accel_context(own.fd);
	own.ring = accel_ring(own.fd, EMBENG_QUEUE_TRANSFER, 0);
	for (int i = 0; calls[which] == hold_many && i < 24; i++)
		accel_context(accel_open());
	own.key = accel_bind(own.fd, accel_bo(own.fd, 4096).handle, EMBENG_REGION_DEVICE_READ);
	ck_assert_int_eq(write(go, "r", 1), 1);
	raise(SIGSTOP);
	calls[which](&own);
	pause(); /* it came back */
	_exit(0);
}

/* Waits until a program sleeps, in a call or in pause(). */
static void await_sleep(pid_t child)
{
	char path[64], text[256], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	do {
		FILE *file = fopen(path, "r");

		ck_assert_ptr_nonnull(file);
		ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
		fclose(file);
		state = strrchr(text, ')');
		ck_assert_ptr_nonnull(state);
		usleep(1000);
	} while (state[2] != 'D' && state[2] != 'S');
}

static void start_all(pid_t *children)
{
	int ready[2];
	char word;

	ck_assert_int_eq(pipe(ready), 0);
	for (size_t i = 0; i < CALLS; i++) {
		children[i] = start_program(i, ready[1]);
		ck_assert_int_eq(read(ready[0], &word, 1), 1);
		ck_assert_int_eq(waitpid(children[i], NULL, WUNTRACED), children[i]);
	}
	close(ready[0]);
	close(ready[1]);
}

/* In all these calls at a time, before the device is being reset and while it is. */
START_TEST(test_kill)
{
	pid_t children[CALLS];

	accel_write(HANG_MS, _i ? "1000" : "0");
	start_all(children);
	die();
	if (_i)
		await_reset();
	for (size_t i = 0; i < CALLS; i++) {
		kill(children[i], SIGCONT);
		await_sleep(children[i]);
	}
	for (size_t i = 0; i < CALLS; i++)
		kill(children[i], SIGKILL);
	for (size_t i = 0; i < CALLS; i++)
		ck_assert_int_eq(waitpid(children[i], NULL, 0), children[i]);
	expect_still_away("the death of programs");
	/*
	 * Nor did any of them wait until the device had no more time for its answer. The reset that
	 * such a wait asks for begins a moment after it.
	 */
	if (!_i)
		sleep(2);
	ck_assert_uint_eq(accel_readings(fd).resetting, (uint32_t)_i);
	accel_write(HANG_MS, "1000");
	await_return();
}
END_TEST

/*
 * A queue is being destroyed, and who destroys it is killed before the device has answered: it takes
 * nothing more from others that have the file, though the device may have it still.
 */
START_TEST(test_destroyer_is_killed)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct own own = {.fd = fd, .ring = ring};
	pid_t child;

	accel_give(fd, &ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP});
	accel_take(fd, &ring);
	accel_write(HANG_MS, "0");
	die();
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		destroy_queue(&own);
		pause();
	}
	/* Until the ring is taken away from programs. */
	while (embeng_observe_cq_tail(&accel_header(&ring)->cq_tail))
		usleep(1000);
	await_sleep(child);
	ck_assert_int_eq(give_nop(fd, &ring), -ENOENT);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_int_eq(give_nop(fd, &ring), -ENOENT);
	ck_assert_int_eq(accel_wait(fd, &ring, 1), -ENOENT);
	expect_still_away("the death of a destroyer");
	accel_write(HANG_MS, "1000");
	await_return();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_monitoring);
	tcase_add_loop_test(tcase, test_kill, 0, 2);
	tcase_add_test(tcase, test_destroyer_is_killed);
}

int main(void)
{
	return suite_main("dead", add);
}
