// SPDX-License-Identifier: MIT
/*
 * Handles of the library while a device hangs: each gets the right error, and tables of handles that
 * did not cause the hang stay as they are.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"
#include "embeng.h"
#include "embeng_engine.h"
#include "fault_file.h"

#define FUNCTION "/sys/bus/pci/devices/0eb0:00:00.0/"
#define HANG_MS "/sys/module/embeng/parameters/hang_ms"
#define ROWS 64
#define DIM 4
#define SAMPLES 8
#define LARGE 1500000 /* rows that take a slow machine several times what a hang does */

static struct embeng *open_on(const char *name, int64_t rows)
{
	struct embeng_table_config t = {
		.size = sizeof(t),
		.name = "t",
		.vocabulary_size = rows,
		.dim = DIM,
		.optimizer = embeng_adagrad(0.1f),
		.initializer = {.kind = EMBENG_INIT_UNIFORM, .a = -1, .b = 1, .seed = 7}};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_int_ge(embeng_model_add_table(m, &t), 0);
	ck_assert_int_ge(embeng_model_add_feature(m, &f), 0);
	ck_assert_msg(!embeng_open(name, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static int enqueue(struct embeng *e, int step)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	const int64_t shape[] = {SAMPLES};
	int64_t ids[SAMPLES];
	int ret;

	for (int i = 0; i < SAMPLES; i++)
		ids[i] = (i * i + step * 5) % ROWS;
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, SAMPLES, shape, 1), 0);
	ret = embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	return ret;
}

static void hand_in(struct embeng *e, int step)
{
	float values[SAMPLES * DIM];
	const float *features[] = {values};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	struct embeng_activations a = {.size = sizeof(a)};

	for (int i = 0; i < SAMPLES * DIM; i++)
		values[i] = 0.25f * (float)(i % 7 - 3) + (float)step;
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
}

static void train(struct embeng *e, int first, int steps)
{
	for (int step = first; step < first + steps; step++) {
		ck_assert_int_eq(enqueue(e, step), 0);
		hand_in(e, step);
	}
}

static void same_rows(struct embeng *e, struct embeng *other)
{
	float a[ROWS * DIM], b[ROWS * DIM];

	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, a), 0);
	ck_assert_int_eq(embeng_rows_read(other, 0, NULL, NULL, ROWS, b), 0);
	ck_assert_mem_eq(a, b, sizeof(a));
}

static struct embeng_error last_error(const char *part)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	ck_assert_msg(strstr(error.text, part) != NULL, "\"%s\" lacks \"%s\"", error.text, part);
	return error;
}

static const char *device_name(void)
{
	const char *path = getenv("EMBENG_PATH");
	static char name[64];

	snprintf(name, sizeof(name), "pci:0eb0:00:00.0,path=%s", path ? path : "mapped");
	return name;
}

static void setup(void)
{
	accel_write(HANG_MS, "1000");
}

static void teardown(void)
{
	accel_write(HANG_MS, "10000");
}

/* One command is given up; its handle goes on with its tables, and nobody else noticed. */
START_TEST(test_a_hung_command_is_told)
{
	struct embeng *victim = open_on(device_name(), ROWS), *other = open_on(device_name(), ROWS);
	struct embeng *soft = open_on("soft:cores=1", ROWS);
	unsigned long long queues = accel_number(FUNCTION "resets/queues");

	train(victim, 0, 3);
	train(other, 0, 3);
	train(soft, 0, 3);
	fault_arm("stall_queue", 1);
	ck_assert_int_eq(enqueue(victim, 3), -EIO);
	ck_assert_uint_eq(last_error("no progress").status, EMBENG_STATUS_HUNG);
	last_error("step 4");
	ck_assert_uint_eq(accel_number(FUNCTION "resets/queues"), queues + 1);
	train(victim, 3, 3);
	train(other, 3, 3);
	train(soft, 3, 3);
	same_rows(victim, soft);
	same_rows(other, soft);
	embeng_close(victim);
	embeng_close(other);
	embeng_close(soft);
}
END_TEST

/* The step of a lookup that the device failed is open again: nothing but time is lost. */
START_TEST(test_a_failed_lookup_is_given_again)
{
	struct embeng *e = open_on(device_name(), ROWS), *soft = open_on("soft:cores=1", ROWS);
	struct embeng_activations a = {.size = sizeof(a)};
	int ret;

	train(e, 0, 2);
	train(soft, 0, 2);
	/* Or the fault strikes the update. */
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	fault_arm("dma_error", 1);
	ret = enqueue(e, 2);
	ret = ret ? ret : embeng_dequeue(e, 0, -1, &a);
	ck_assert_int_eq(ret, -EIO);
	train(e, 2, 3);
	train(soft, 2, 3);
	same_rows(e, soft);
	embeng_close(e);
	embeng_close(soft);
}
END_TEST

/* Nobody waits for ever for what was completed under another name. */
START_TEST(test_a_corrupt_completion_is_told)
{
	struct embeng *e = open_on(device_name(), ROWS);
	float rows[ROWS * DIM];
	int ret;

	train(e, 0, 2);
	fault_arm("corrupt_completion", 1);
	ret = embeng_rows_read(e, 0, NULL, NULL, ROWS, rows);
	ck_assert_int_eq(ret, -EIO);
	last_error("completed cookie 0xffff");
	last_error("reset the device");
	ck_assert_int_eq(enqueue(e, 2), -EIO);
	last_error("completed cookie 0xffff");
	embeng_close(e);
	e = open_on(device_name(), ROWS);
	train(e, 0, 1);
	embeng_close(e);
}
END_TEST

START_TEST(test_a_lost_device_says_why)
{
	struct embeng *e = open_on(device_name(), ROWS);
	unsigned long long engines = accel_number(FUNCTION "resets/engines");
	unsigned long long sequence = accel_number(FUNCTION "resets/sequence");
	float rows[ROWS * DIM];
	int ret;

	train(e, 0, 3);
	fault_arm("ecc_uncorrectable", 1);
	/* The lookup that met the error says so, here or in the next call, or the loss is first. */
	ret = enqueue(e, 3);
	ck_assert_msg(!ret || ret == -EIO || ret == -ESHUTDOWN, "%d", ret);
	accel_await_reset(sequence);
	ck_assert_uint_eq(accel_number(FUNCTION "resets/engines"), engines + 1);
	while ((ret = embeng_rows_read(e, 0, NULL, NULL, ROWS, rows)) == -EIO)
		last_error("the engine failed");
	ck_assert_int_eq(ret, -ESHUTDOWN);
	last_error("since the device reported a fault");
	embeng_close(e);
	e = open_on(device_name(), ROWS);
	train(e, 0, 1);
	embeng_close(e);
}
END_TEST

/* The update that met the error stays failed, but the loss that came of it is what is told. */
START_TEST(test_a_loss_outweighs_a_failed_update)
{
	struct embeng *e = open_on(device_name(), ROWS);
	unsigned long long engines = accel_number(FUNCTION "resets/engines");
	unsigned long long sequence = accel_number(FUNCTION "resets/sequence");
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_gradients g = {.size = sizeof(g)};
	float values[SAMPLES * DIM] = {1}, rows[ROWS * DIM];
	const float *features[] = {values};
	int ret;

	g.count = 1;
	g.features = features;
	ck_assert_int_eq(enqueue(e, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	fault_arm("ecc_uncorrectable", 1);
	ret = embeng_apply_gradients(e, &g, -1);
	ck_assert_msg(!ret || ret == -EIO || ret == -ESHUTDOWN, "%d", ret);
	accel_await_reset(sequence);
	ck_assert_uint_eq(accel_number(FUNCTION "resets/engines"), engines + 1);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, rows), -ESHUTDOWN);
	last_error("since the device reported a fault");
	ck_assert_int_eq(enqueue(e, 1), -ESHUTDOWN);
	last_error("since the device reported a fault");
	embeng_close(e);
}
END_TEST

/* However long rows are written: the device shows that it works. */
START_TEST(test_long_work_is_left_alone)
{
	struct embeng *e = open_on(device_name(), LARGE);
	const struct embeng_initializer normal = {.kind = EMBENG_INIT_TRUNCATED_NORMAL, .b = 1};
	unsigned long long queues = accel_number(FUNCTION "resets/queues");
	unsigned long long sequence = accel_number(FUNCTION "resets/sequence");

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(embeng_rows_fill(e, 0, NULL, 0, LARGE, &normal), 0);
	ck_assert_uint_eq(accel_number(FUNCTION "resets/queues"), queues);
	ck_assert_uint_eq(accel_number(FUNCTION "resets/sequence"), sequence);
	embeng_close(e);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_a_hung_command_is_told);
	tcase_add_test(tcase, test_a_failed_lookup_is_given_again);
	tcase_add_test(tcase, test_a_corrupt_completion_is_told);
	tcase_add_test(tcase, test_a_lost_device_says_why);
	tcase_add_test(tcase, test_a_loss_outweighs_a_failed_update);
	tcase_add_test(tcase, test_long_work_is_left_alone);
}

int main(void)
{
	return suite_main("session_hang", add);
}
