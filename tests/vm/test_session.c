// SPDX-License-Identifier: MIT
/* A handle on the device: polled, and lost to a reset or an unplugging. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "embeng.h"

#define ROWS 4
#define DIM 2

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

static int enqueue(struct embeng *e)
{
	const int64_t ids[] = {1, 3}, shape[] = {2};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	int ret;

	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 2, shape, 1), 0);
	ret = embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	return ret;
}

static int hand_in(struct embeng *e)
{
	const float ones[2 * DIM] = {1, 1, 1, 1}, *features[] = {ones};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};

	return embeng_apply_gradients(e, &g, -1);
}

static void expect_text(const char *part)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	ck_assert_msg(strstr(error.text, part) != NULL, "\"%s\" lacks \"%s\"", error.text, part);
}

START_TEST(test_completions_wake_a_poller)
{
	struct embeng *e = open_device();
	struct embeng_activations a = {.size = sizeof(a)};
	struct pollfd p = {.fd = embeng_fd(e), .events = POLLIN};

	ck_assert_int_ge(p.fd, 0);
	for (int step = 0; step < 20; step++) {
		ck_assert_int_eq(enqueue(e), 0);
		while (embeng_dequeue(e, 0, 0, &a) == -ETIME)
			ck_assert_int_eq(poll(&p, 1, 60000), 1);
		ck_assert_int_eq(a.step, step + 1);
		ck_assert_int_eq(hand_in(e), 0);
	}
	embeng_close(e);
}
END_TEST

static void train_some(struct embeng *e)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(enqueue(e), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(hand_in(e), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
}

static void expect_lost(struct embeng *e, int error, const char *text)
{
	float rows[ROWS * DIM];
	void *buffer;

	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, rows), error);
	expect_text(text);
	ck_assert_int_eq(enqueue(e), error);
	expect_text(text);
	buffer = embeng_buffer_alloc(e, 4096);
	ck_assert_ptr_null(buffer);
	embeng_close(e);
}

static void reset_under(enum embeng_reset what)
{
	struct embeng *e = open_device();
	struct embeng_device_info info = {.size = sizeof(info)};
	struct pollfd p = {.fd = embeng_fd(e), .events = POLLIN};

	train_some(e);
	ck_assert_int_eq(embeng_info(e, &info), 0);
	ck_assert_int_eq(embeng_device_reset(info.address, what), 0);
	ck_assert_int_eq(poll(&p, 1, 60000), 1);
	expect_lost(e, -ESHUTDOWN, "restore a checkpoint");
	e = open_device();
	train_some(e);
	embeng_close(e);
}

START_TEST(test_a_reset_is_told)
{
	reset_under(EMBENG_RESET_ENGINE);
	reset_under(EMBENG_RESET_FUNCTION);
}
END_TEST

static void tell_bus(const char *path)
{
	int fd = open(path, O_WRONLY);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(write(fd, "1", 1), 1);
	close(fd);
}

/* Writes 1 to a file of the handle's function. */
static void tell_function(struct embeng *e, const char *file)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	char path[128];

	ck_assert_int_eq(embeng_info(e, &info), 0);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", strchr(info.address, ':') + 1,
		 file);
	tell_bus(path);
}

START_TEST(test_an_unplugging_is_told)
{
	struct embeng *e = open_device();

	train_some(e);
	tell_function(e, "remove");
	expect_lost(e, -ENODEV, "the device is gone");
	tell_bus("/sys/bus/pci/rescan");
	e = open_device();
	train_some(e);
	embeng_close(e);
}
END_TEST

struct reader {
	struct embeng *e;
	int error;
	char text[128];
};

static void *read_on(void *arg)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct reader *r = arg;
	float rows[ROWS * DIM];

	/*
	 * Commands that were under way may be aborted (ECANCELED) before the device is known to be
	 * gone.
	 */
	do
		r->error = embeng_rows_read(r->e, 0, NULL, NULL, ROWS, rows);
	while (!r->error || r->error == -ECANCELED);
	embeng_last_error(&error);
	snprintf(r->text, sizeof(r->text), "%.127s", error.text);
	return NULL;
}

/*
 * A call that is under way when the device ends sees its ring end first, and still gets the cause.
 */
START_TEST(test_told_in_the_middle)
{
	static const struct {
		const char *file;
		int error;
		const char *text;
	} ends[] = {{"reset", -ESHUTDOWN, "was reset"}, {"remove", -ENODEV, "is gone"}};
	struct reader r = {.e = open_device()};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, read_on, &r), 0);
	usleep(100000);
	tell_function(r.e, ends[_i % 2].file);
	pthread_join(thread, NULL);
	embeng_close(r.e);
	if (_i % 2)
		tell_bus("/sys/bus/pci/rescan");
	ck_assert_msg(r.error == ends[_i % 2].error && strstr(r.text, ends[_i % 2].text), "%d, %s",
		      r.error, r.text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_completions_wake_a_poller);
	tcase_add_test(tcase, test_a_reset_is_told);
	tcase_add_test(tcase, test_an_unplugging_is_told);
	tcase_add_loop_test(tcase, test_told_in_the_middle, 0, 8);
}

int main(void)
{
	return suite_main("session", add);
}
