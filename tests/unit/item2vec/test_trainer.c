// SPDX-License-Identifier: MIT
/*
 * Training steps, and a training that is resumed from a checkpoint as if it had not been stopped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/examples/item2vec/trainer.h"
#include "cli_baskets.h"
#include "scratch_help.h"
#include "suite.h"

#define STEPS 40

static struct dataset data;
static struct split split;
static struct settings settings;
static char *folder;

/* Four groups of eight items; a basket is four of one group. */
static void setup(void)
{
	char text[8192] = "";

	for (int b = 0; b < 120; b++) {
		for (int k = 0; k < 4; k++)
			sprintf(text + strlen(text), "g%d-%d ", b % 4,
				(b / 4 + k * (1 + b % 3)) % 8);
		strcat(text, "\n");
	}
	data = baskets(basket_read, text, 1, 3);
	ck_assert_int_eq(split_baskets(&split, &data, SPLIT_SEED, 1), 0);
	settings = settings_default;
	settings.device = "soft:cores=1";
	settings.dim = 8;
	settings.batch = 32;
	ck_assert_int_eq(scratch_make(&folder), 0);
}

static void teardown(void)
{
	scratch_remove(folder);
	split_free(&split);
	dataset_free(&data);
}

static void open_on(struct trainer *t, const char *device)
{
	settings.device = device;
	ck_assert_int_eq(trainer_open(t, &data, &split, &settings), 0);
}

static void take(struct trainer *t, int steps)
{
	for (int k = 0; k < steps; k++)
		ck_assert_int_eq(trainer_step(t), 0);
}

/* Both tables and their accumulators: the same bits. */
static void expect_same(struct trainer *a, struct trainer *b)
{
	size_t count = data.items.count * (size_t)settings.dim;
	float *left = malloc(count * sizeof(*left)), *right = malloc(count * sizeof(*right));

	for (int table = 0; table < 2; table++) {
		for (int slot = 0; slot < 2; slot++) {
			const char *name = slot ? "accumulators" : NULL;

			ck_assert_int_eq(
				embeng_rows_read(a->e, table, name, NULL, data.items.count, left),
				0);
			ck_assert_int_eq(
				embeng_rows_read(b->e, table, name, NULL, data.items.count, right),
				0);
			ck_assert_mem_eq(left, right, count * sizeof(*left));
		}
	}
	free(left);
	free(right);
}

START_TEST(a_place_moves_with_steps)
{
	struct trainer t;
	struct place at;
	size_t steps;

	open_on(&t, "soft:cores=1");
	steps = trainer_steps(&t);
	ck_assert_uint_ge(steps, 8);
	ck_assert_uint_lt(steps, 16);
	take(&t, 3);
	at = trainer_place(&t);
	ck_assert_int_eq(at.epoch, 0);
	ck_assert_uint_eq(at.step, 3);
	ck_assert(at.loss_sum > 0);
	take(&t, (int)steps - 3);
	at = trainer_place(&t);
	ck_assert_int_eq(at.epoch, 1);
	ck_assert_uint_eq(at.step, 0);
	ck_assert(at.loss > 0 && at.loss < 10);
	trainer_close(&t);
}
END_TEST

START_TEST(it_learns)
{
	struct trainer t;
	double first;

	open_on(&t, "soft:cores=1");
	take(&t, (int)trainer_steps(&t));
	first = t.at.loss;
	take(&t, 20 * (int)trainer_steps(&t));
	ck_assert_int_eq(t.at.epoch, 21);
	ck_assert_double_lt(t.at.loss, first / 1.5);
	trainer_close(&t);
}
END_TEST

/* From every step on, with other cores after than before. */
START_TEST(resumed_is_never_stopped)
{
	static const char *const devices[] = {"soft:cores=1", "soft:cores=3", "soft:cores=2"};
	struct embeng_save_options save = {.size = sizeof(save)};
	struct trainer whole, part, resumed;
	struct place at;

	open_on(&whole, devices[_i % 3]);
	take(&whole, STEPS);
	open_on(&part, devices[_i % 3]);
	take(&part, _i);
	at = trainer_place(&part);
	ck_assert_int_eq(embeng_save(part.e, folder, &save), 0);
	trainer_close(&part);

	open_on(&resumed, devices[(_i + 1) % 3]);
	ck_assert_int_eq(embeng_restore(resumed.e, folder, NULL), 0);
	ck_assert_int_eq(trainer_go_to(&resumed, &at), 0);
	take(&resumed, STEPS - _i);
	ck_assert_int_eq(resumed.at.epoch, whole.at.epoch);
	ck_assert_uint_eq(resumed.at.step, whole.at.step);
	ck_assert(resumed.at.loss == whole.at.loss);
	ck_assert(resumed.at.loss_sum == whole.at.loss_sum);
	ck_assert_uint_eq(trainer_place(&resumed).random, trainer_place(&whole).random);
	expect_same(&resumed, &whole);
	trainer_close(&resumed);
	trainer_close(&whole);
}
END_TEST

/* The tables alone are not enough: without its place it would train on otherwise. */
START_TEST(the_place_matters)
{
	struct trainer whole, resumed;

	open_on(&whole, "soft:cores=1");
	take(&whole, 5);
	ck_assert_int_eq(embeng_save(whole.e, folder, NULL), 0);
	take(&whole, 1);
	open_on(&resumed, "soft:cores=1");
	ck_assert_int_eq(embeng_restore(resumed.e, folder, NULL), 0);
	take(&resumed, 1);
	ck_assert(resumed.at.loss_sum != whole.at.loss_sum);
	trainer_close(&resumed);
	trainer_close(&whole);
}
END_TEST

START_TEST(places_that_are_none)
{
	struct place beyond = {.epoch = 0}, before = {.epoch = -1};
	struct trainer t;

	open_on(&t, "soft:cores=1");
	take(&t, 2);
	beyond.step = trainer_steps(&t);
	ck_assert_int_eq(trainer_go_to(&t, &beyond), -ERANGE);
	ck_assert_int_eq(trainer_go_to(&t, &before), -ERANGE);
	ck_assert_uint_eq(t.at.step, 2);
	trainer_close(&t);
}
END_TEST

static void write_rows(struct trainer *t, int table, float value)
{
	size_t count = data.items.count * (size_t)settings.dim;
	float *rows = malloc(count * sizeof(*rows));

	for (size_t k = 0; k < count; k++)
		rows[k] = value;
	ck_assert_int_eq(embeng_rows_write(t->e, table, NULL, NULL, data.items.count, rows), 0);
	free(rows);
}

/* Scores that overflow: the loss of one sign would be 0. */
START_TEST(a_score_overflows)
{
	struct trainer t;

	open_on(&t, "soft:cores=1");
	take(&t, 2);
	write_rows(&t, TABLE_IN, 1e19f);
	write_rows(&t, TABLE_OUT, _i ? -1e19f : 1e19f);
	ck_assert_int_eq(trainer_check(&t), 0);
	ck_assert_int_eq(trainer_step(&t), -EDOM);
	ck_assert_uint_eq(t.at.step, 2);
	ck_assert(t.at.loss_sum < 1000);
	trainer_close(&t);
}
END_TEST

/* The loss is finite, and so are the gradients; it is the update that overflows. */
START_TEST(an_update_overflows)
{
	struct trainer t;

	settings.optimizer = EMBENG_SGD;
	settings.learning_rate = 1000;
	open_on(&t, "soft:cores=1");
	write_rows(&t, TABLE_IN, 1e36f);
	write_rows(&t, TABLE_OUT, 0);
	ck_assert_int_eq(trainer_check(&t), 0);
	ck_assert_int_eq(trainer_step(&t), 0);
	ck_assert_int_eq(trainer_check(&t), -EDOM);
	ck_assert_int_eq(trainer_step(&t), -EDOM);
	trainer_close(&t);
}
END_TEST

/* The same data with more baskets, in which there are new items; an old one is gone. */
static struct dataset grown_data(void)
{
	char text[4096] = "";
	struct collector c;
	struct dataset grown;
	struct source s;

	for (int b = 0; b < 60; b++)
		sprintf(text + strlen(text), "g%d-%d n%d n%d\n", b % 4, 1 + b % 7, b % 9,
			(b + 1) % 9);
	ck_assert_int_eq(read_bytes(basket_read, text, strlen(text), &s, &c), 0);
	ck_assert_int_eq(dataset_build_on(&grown, data.items.text, data.items.count, &c, 1, 3), 0);
	collector_free(&c);
	ck_assert_uint_eq(grown.items.count, data.items.count + 9);
	for (size_t k = 0; k < data.items.count; k++)
		ck_assert_str_eq(grown.items.text[k], data.items.text[k]);
	return grown;
}

/* Rows [first, first + count) of a table or slot. */
static float *read_rows(struct trainer *t, int table, const char *slot, size_t first, size_t count)
{
	float *rows = malloc(count * (size_t)settings.dim * sizeof(*rows));
	int64_t *ids = malloc(count * sizeof(*ids));

	for (size_t k = 0; k < count; k++)
		ids[k] = (int64_t)(first + k);
	ck_assert_int_eq(embeng_rows_read(t->e, table, slot, ids, count, rows), 0);
	free(ids);
	return rows;
}

static void expect_rows(struct trainer *a, struct trainer *b, const char *slot, size_t first,
			size_t count)
{
	for (int table = 0; table < 2; table++) {
		float *left = read_rows(a, table, slot, first, count);
		float *right = read_rows(b, table, slot, first, count);

		ck_assert_mem_eq(left, right, count * (size_t)settings.dim * sizeof(*left));
		free(left);
		free(right);
	}
}

static uint64_t step_of(struct trainer *t)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c;

	ck_assert_int_eq(embeng_save(t->e, folder, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_open(folder, &c, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	embeng_checkpoint_close(c);
	return info.step;
}

/* Old rows with their slots and the count of updates are taken over; new ones are fresh. */
START_TEST(tables_that_grew)
{
	struct embeng_restore_report report = {.size = sizeof(report)};
	struct embeng_restore_options options = {
		.size = sizeof(options), .flags = EMBENG_RESTORE_OTHER_SHAPES, .report = &report};
	const char *slot = _i ? "velocities" : "accumulators";
	struct dataset grown = grown_data();
	struct trainer old, more, fresh;
	struct split grown_split;

	settings.optimizer = _i ? EMBENG_ADAM : EMBENG_ADAGRAD;
	settings.learning_rate = 0.01;
	open_on(&old, "soft:cores=1");
	take(&old, 7);
	ck_assert_uint_eq(step_of(&old), 7);
	ck_assert_int_eq(split_baskets(&grown_split, &grown, SPLIT_SEED, 1), 0);
	ck_assert_int_eq(trainer_open(&more, &grown, &grown_split, &settings), 0);
	ck_assert_int_eq(trainer_open(&fresh, &grown, &grown_split, &settings), 0);
	ck_assert_int_eq(embeng_restore(more.e, folder, &options), 0);
	ck_assert_uint_eq(report.rows, report.tables * data.items.count);
	ck_assert_uint_gt(report.rows_left, 0);
	expect_rows(&more, &old, NULL, 0, data.items.count);
	expect_rows(&more, &old, slot, 0, data.items.count);
	expect_rows(&more, &fresh, NULL, data.items.count, 9);
	expect_rows(&more, &fresh, slot, data.items.count, 9);
	ck_assert_uint_eq(step_of(&more), 7);
	take(&more, 1);
	trainer_close(&fresh);
	trainer_close(&more);
	trainer_close(&old);
	split_free(&grown_split);
	dataset_free(&grown);
}
END_TEST

/* A checkpoint of more rows is refused and not taken for one of fewer. */
START_TEST(tables_that_did_not_grow)
{
	struct dataset grown = grown_data();
	struct trainer old, more;
	struct split grown_split;

	ck_assert_int_eq(split_baskets(&grown_split, &grown, SPLIT_SEED, 1), 0);
	ck_assert_int_eq(trainer_open(&more, &grown, &grown_split, &settings), 0);
	ck_assert_int_eq(embeng_save(more.e, folder, NULL), 0);
	open_on(&old, "soft:cores=1");
	ck_assert_int_eq(embeng_restore(old.e, folder, NULL), -EINVAL);
	trainer_close(&old);
	trainer_close(&more);
	split_free(&grown_split);
	dataset_free(&grown);
}
END_TEST

START_TEST(data_are_told_apart)
{
	static const char *const texts[] = {
		"a b c\nb c d\n", "a b c\nb d c\n",  "b c d\na b c\n",	"a b c\nb c e\n",
		"a b c d\n",	  "ab c d\nc d e\n", "a bc d\nc d e\n",
	};
	const size_t count = sizeof(texts) / sizeof(texts[0]);
	uint64_t hashes[sizeof(texts) / sizeof(texts[0])];

	for (size_t k = 0; k < count; k++) {
		struct dataset d = baskets(basket_read, texts[k], 1, 3);
		struct dataset again = baskets(basket_read, texts[k], 1, 3);

		hashes[k] = dataset_hash(&d);
		ck_assert_uint_eq(hashes[k], dataset_hash(&again));
		for (size_t other = 0; other < k; other++)
			ck_assert_uint_ne(hashes[k], hashes[other]);
		dataset_free(&d);
		dataset_free(&again);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_place_moves_with_steps);
	tcase_add_test(tcase, it_learns);
	tcase_add_loop_test(tcase, resumed_is_never_stopped, 0, STEPS + 1);
	tcase_add_test(tcase, the_place_matters);
	tcase_add_test(tcase, places_that_are_none);
	tcase_add_loop_test(tcase, a_score_overflows, 0, 2);
	tcase_add_test(tcase, an_update_overflows);
	tcase_add_loop_test(tcase, tables_that_grew, 0, 2);
	tcase_add_test(tcase, tables_that_did_not_grow);
	tcase_add_test(tcase, data_are_told_apart);
}

int main(void)
{
	return suite_main("trainer", add);
}
