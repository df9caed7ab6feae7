// SPDX-License-Identifier: MIT
/* The text that a checkpoint keeps for embeng train. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/examples/item2vec/training.h"
#include "suite.h"

static struct training example(void)
{
	struct training t = {
		.settings = settings_default,
		.data = 0xfedcba9876543210,
		.last_epoch = 12,
		.names = {.count = 5, .hash = 0x00000000deadbeef},
		.place =
			{
				.epoch = 3,
				.step = 17,
				.random = 0x0123456789abcdef,
				.loss_sum = 1.0 / 3,
				.loss = 0x1.fffffffffffffp-1,
			},
	};

	t.settings.learning_rate = 0.1;
	return t;
}

START_TEST(every_bit_comes_back)
{
	struct training t = example(), back;
	char error[TRAINING_ERROR] = "", *text = training_text(&t);

	ck_assert_msg(!training_read(text, &back, error), "%s", error);
	ck_assert_uint_eq(back.data, t.data);
	ck_assert_int_eq(back.last_epoch, 12);
	ck_assert_uint_eq(back.names.count, 5);
	ck_assert_uint_eq(back.names.hash, 0xdeadbeef);
	ck_assert_int_eq(back.place.epoch, 3);
	ck_assert_uint_eq(back.place.step, 17);
	ck_assert_uint_eq(back.place.random, t.place.random);
	ck_assert(back.place.loss_sum == t.place.loss_sum);
	ck_assert(back.place.loss == t.place.loss);
	ck_assert(back.settings.learning_rate == 0.1);
	ck_assert_int_eq(back.settings.epochs, 0);
	free(text);
}
END_TEST

/* A training that diverged goes on diverging. */
START_TEST(losses_that_are_no_numbers)
{
	struct training t = example(), back;
	char error[TRAINING_ERROR] = "", *text;

	t.place.loss_sum = NAN;
	t.place.loss = INFINITY;
	t.settings.epochs = 5;
	text = training_text(&t);
	ck_assert_int_eq(training_read(text, &back, error), 0);
	ck_assert(isnan(back.place.loss_sum));
	ck_assert(isinf(back.place.loss));
	ck_assert_int_eq(back.settings.epochs, 5);
	free(text);
}
END_TEST

static const struct {
	const char *from, *to, *sentence;
} faults[] = {
	{"embeng.training/1", "embeng.training/2", "embeng train did not write it"},
	{"\"schema\"", "\"scheme\"", "embeng train did not write it"},
	{"{", "[", "embeng train did not write it"},
	{"fedcba9876543210", "fedcba987654321", "its \"data\" is not 16 hexadecimal digits"},
	{"0123456789abcdef", "0123456789abcdeX", "its \"random\" is not 16 hexadecimal digits"},
	{"\"random\"", "\"randon\"", "its \"random\" is not 16 hexadecimal digits"},
	{"\"epoch\":3", "\"epoch\":-3", "its \"epoch\" is no whole number"},
	{"\"step\":17", "\"step\":\"17\"", "its \"step\" is no whole number"},
	{"\"step\":17", "\"steps\":17", "its \"step\" is no whole number"},
	{"\"loss_sum\"", "\"loss_zum\"", "its \"loss_sum\" is missing"},
	{"0x1.fffffffffffffp-1", "0x1.fffffffffffffp-1z", "its \"loss\" is no number"},
	{"00000000deadbeef", "deadbeef", "its \"names\" are malformed"},
	{"embeng-items.names", "/etc/passwd", "its \"names\" are malformed"},
	{"\"last_epoch\":12", "\"last_epoch\":-1", "its \"last_epoch\" is no whole number"},
	{"\"options\"", "\"opt\"", "its \"options\" are missing"},
	{"\"dim\":\"32\"", "\"dim\":32", "its option \"dim\" is no text"},
	{"\"dim\":\"32\"", "\"dim\":\"0\"",
	 "its options: --dim takes a whole number from 1 to 1024, not '0'"},
	{"\"dim\":\"32\",", "", "its option \"dim\" is missing"},
	{"\"dim\"", "\"dam\"", "its options: there is no setting 'dam'"},
};

/* @text with the first @from replaced, malloc'd. */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	size_t size = strlen(text) + strlen(to) + 1;
	char *made = malloc(size);

	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_nonnull(made);
	snprintf(made, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	return made;
}

START_TEST(faults_are_named)
{
	struct training t = example(), back, before;
	char *text = training_text(&t);
	char *wrong = replaced(text, faults[_i].from, faults[_i].to), error[TRAINING_ERROR] = "";

	memset(&back, 0x5a, sizeof(back));
	before = back;
	ck_assert_int_eq(training_read(wrong, &back, error), -EBADMSG);
	ck_assert_str_eq(error, faults[_i].sentence);
	ck_assert_mem_eq(&back, &before, sizeof(back));
	free(wrong);
	free(text);
}
END_TEST

/* Cut anywhere it is refused; nothing is read beyond its end. */
START_TEST(cut_anywhere)
{
	struct training t = example(), back;
	char *text = training_text(&t), error[TRAINING_ERROR];

	for (size_t length = 0; length < strlen(text); length++) {
		char *cut = strndup(text, length);

		ck_assert_int_eq(training_read(cut, &back, error), -EBADMSG);
		free(cut);
	}
	free(text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, every_bit_comes_back);
	tcase_add_test(tcase, losses_that_are_no_numbers);
	tcase_add_loop_test(tcase, faults_are_named, 0, sizeof(faults) / sizeof(faults[0]));
	tcase_add_test(tcase, cut_anywhere);
}

int main(void)
{
	return suite_main("training", add);
}
