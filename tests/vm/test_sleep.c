// SPDX-License-Identifier: MIT
/*
 * The machine sleeps with the device at work: the tables are there afterwards, or their
 * programs are told; and it always falls asleep. It is suspended to idle as far as the kernel's
 * pm_test says: "devices" leaves the device awake, "platform" puts it to D3hot. A full suspend by
 * s2idle goes on to wait for an interrupt, which nothing in this virtual machine would send.
 */
#include "../unit/support/suite.h"
#include "embeng.h"
#include "flood.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROWS 64
#define DIM 8

static const char *const depths[] = {"devices", "platform"};

static void sleep_to(const char *depth)
{
	accel_write("/sys/power/pm_test", depth);
	accel_write("/sys/power/state", "freeze");
}

/* D3hot with or without state is a parameter of the emulator. */
static bool kept_after(const char *depth)
{
	int file = open("/sys/module/embeng_emu/parameters/d3_keeps", O_RDONLY);
	char keeps;

	ck_assert_int_eq(read(file, &keeps, 1), 1);
	close(file);
	return keeps == 'Y' || !strcmp(depth, "devices");
}

static struct embeng *open_device(void)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = ROWS,
					.dim = DIM,
					.optimizer = embeng_sgd(1)};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_int_ge(embeng_model_add_table(m, &t), 0);
	ck_assert_int_ge(embeng_model_add_feature(m, &f), 0);
	ck_assert_msg(!embeng_open(NULL, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static struct embeng_accel_resets resets(void)
{
	int fd = accel_open();
	struct embeng_accel_resets now = accel_resets(fd);

	close(fd);
	return now;
}

static void check_tables(struct embeng *e, const float *written, bool kept)
{
	struct pollfd p = {.fd = embeng_fd(e), .events = POLLIN};
	float rows[ROWS * DIM] = {0};
	int ret = embeng_rows_read(e, 0, NULL, NULL, ROWS, rows);

	if (kept) {
		ck_assert_int_eq(ret, 0);
		ck_assert_mem_eq(rows, written, sizeof(rows));
		return;
	}
	ck_assert_int_eq(ret, -ESHUTDOWN);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
}

START_TEST(test_tables)
{
	struct embeng *e = open_device();
	float written[ROWS * DIM];
	bool kept = kept_after(depths[_i]);
	struct embeng_accel_resets before = resets();

	for (int i = 0; i < ROWS * DIM; i++)
		written[i] = (float)(i * 7 % 1000) / 16;
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, ROWS, written), 0);
	sleep_to(depths[_i]);
	check_tables(e, written, kept);
	embeng_close(e);
	ck_assert_uint_eq(resets().engines, before.engines);
	ck_assert_uint_eq(resets().functions, before.functions + !kept);
	ck_assert_uint_ge(resets().commands, before.commands);
	accel_works();
}
END_TEST

START_TEST(test_flood)
{
	int fd = accel_open();
	struct flood f;
	pthread_t thread;
	uint64_t before;

	accel_context(fd);
	f = flood_of(fd);
	ck_assert_int_eq(pthread_create(&thread, NULL, flood, &f), 0);
	while (!__atomic_load_n(&f.pushed, __ATOMIC_RELAXED))
		usleep(1000);
	sleep_to(depths[_i]);
	if (kept_after(depths[_i])) {
		before = __atomic_load_n(&f.pushed, __ATOMIC_RELAXED);
		while (__atomic_load_n(&f.pushed, __ATOMIC_RELAXED) == before)
			usleep(1000);
		flood_stop(&f);
		pthread_join(thread, NULL);
		ck_assert_uint_eq(accel_header(&f.ring)->dead, 0);
	} else {
		pthread_join(thread, NULL);
		accel_check_lost(fd, &f.ring);
	}
	close(fd);
	accel_works();
}
END_TEST

/* A sleeper in the kernel is frozen there, and goes on to wait. */
struct sleeper {
	int fd;
	struct ring *ring;
	int error;
};

static void *wait_long(void *arg)
{
	struct sleeper *s = arg;

	do {
		s->error = accel_wait(s->fd, s->ring, 1);
	} while (s->error == -ETIME);
	return NULL;
}

START_TEST(test_waiting)
{
	int fd = accel_open();
	struct ring ring;
	struct sleeper s = {.fd = fd, .ring = &ring};
	pthread_t thread;

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_long, &s), 0);
	sleep_to(depths[_i]);
	if (kept_after(depths[_i])) {
		accel_push(&ring, (struct embeng_cmd){.cookie = 9});
		pthread_join(thread, NULL);
		ck_assert_int_eq(s.error, 0);
	} else {
		pthread_join(thread, NULL);
		ck_assert_int_eq(s.error, -ESHUTDOWN);
	}
	close(fd);
	accel_works();
}
END_TEST

static struct ring start_long_work(int fd, uint32_t flags)
{
	struct embeng_cmd nop = {.arg = (uint64_t)EMBENG_NOP_DELAY_MAX << EMBENG_NOP_DELAY_SHIFT};
	struct ring ring;

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, flags);
	accel_give(fd, &ring, nop);
	while (!embeng_observe_sq_head(&accel_header(&ring)->sq_head))
		usleep(1000);
	return ring;
}

/*
 * Nobody waits for programs that do not come to rest: they are lost, and the tables of others are
 * not.
 */
START_TEST(test_busy)
{
	struct embeng *e = open_device();
	struct embeng_accel_resets before = resets();
	float written[ROWS * DIM];
	struct ring rings[2];
	int fds[2];

	for (int i = 0; i < ROWS * DIM; i++)
		written[i] = (float)(i * 11 % 1000) / 16;
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, ROWS, written), 0);
	for (int i = 0; i < 2; i++) {
		fds[i] = accel_open();
		rings[i] = start_long_work(fds[i], i ? EMBENG_ACCEL_QUEUE_MAPPED : 0);
	}
	sleep_to("devices");
	for (int i = 0; i < 2; i++) {
		accel_check_lost(fds[i], &rings[i]);
		close(fds[i]);
	}
	check_tables(e, written, true);
	embeng_close(e);
	ck_assert_uint_eq(resets().engines, before.engines);
	accel_works();
}
END_TEST

static void add(TCase *tc)
{
	int count = sizeof(depths) / sizeof(depths[0]);

	tcase_add_loop_test(tc, test_tables, 0, count);
	tcase_add_loop_test(tc, test_flood, 0, count);
	tcase_add_loop_test(tc, test_waiting, 0, count);
	tcase_add_test(tc, test_busy);
}

int main(void)
{
	return suite_main("sleep", add);
}
