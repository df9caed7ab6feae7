// SPDX-License-Identifier: MIT
/* Settings as text, and which of them a training that goes on may change. */
#include <errno.h>
#include <string.h>

#include "runtime/examples/item2vec/settings.h"
#include "suite.h"

static struct settings other(void)
{
	struct settings s = settings_default;
	char error[SETTING_ERROR];
	static const char *const values[][2] = {
		{"dim", "7"},
		{"epochs", "9"},
		{"negatives", "2"},
		{"learning-rate", "0.1"},
		{"optimizer", "sgd"},
		{"batch", "33"},
		{"seed", "9223372036854775807"},
		{"split", "time"},
		{"min-count", "1"},
		{"min-basket", "4"},
	};

	for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
		ck_assert_int_eq(setting_read(&s, values[k][0], values[k][1], error), 0);
	return s;
}

START_TEST(text_and_back)
{
	struct settings s = other(), back = settings_default;
	char text[SETTING_TEXT], error[SETTING_ERROR];
	size_t count = 0;

	for (; setting_at(count); count++) {
		setting_write(&s, count, text);
		ck_assert_int_eq(setting_read(&back, setting_at(count), text, error), 0);
	}
	ck_assert_uint_eq(count, 10);
	ck_assert_int_eq(back.dim, 7);
	ck_assert_int_eq(back.epochs, 9);
	ck_assert_int_eq(back.negatives, 2);
	ck_assert(back.learning_rate == 0.1);
	ck_assert_int_eq(back.optimizer, EMBENG_SGD);
	ck_assert_int_eq(back.batch, 33);
	ck_assert_int_eq(back.seed, INT64_MAX);
	ck_assert(back.by_time);
	ck_assert_int_eq(back.min_count, 1);
	ck_assert_int_eq(back.min_basket, 4);
	ck_assert_uint_eq(back.given, 0x3ff);
	ck_assert_ptr_null(settings_missing(&back));
}
END_TEST

START_TEST(rates_keep_their_bits)
{
	static const double rates[] = {0.2, 0.1, 1.0 / 3, 1e-300, 999.99999999999989, 1000};
	char text[SETTING_TEXT], error[SETTING_ERROR];

	for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++) {
		struct settings s = {.learning_rate = rates[k]}, back = {0};

		setting_write(&s, 3, text);
		ck_assert_int_eq(setting_read(&back, "learning-rate", text, error), 0);
		ck_assert(back.learning_rate == rates[k]);
	}
	setting_write(&settings_default, 3, text);
	ck_assert_str_eq(text, "0.2");
}
END_TEST

START_TEST(epochs_left_to_the_data_have_no_text)
{
	char text[SETTING_TEXT];

	ck_assert_str_eq(setting_at(1), "epochs");
	setting_write(&settings_default, 1, text);
	ck_assert_str_eq(text, "");
}
END_TEST

static const struct {
	const char *name, *text, *sentence;
} refusals[] = {
	{"dim", "0", "--dim takes a whole number from 1 to 1024, not '0'"},
	{"dim", "1025", "--dim takes a whole number from 1 to 1024, not '1025'"},
	{"dim", "", "--dim takes a whole number from 1 to 1024, not ''"},
	{"dim", "3x", "--dim takes a whole number from 1 to 1024, not '3x'"},
	{"seed", "99999999999999999999",
	 "--seed takes a whole number from 0 to 9223372036854775807, not '99999999999999999999'"},
	{"learning-rate", "0", "--learning-rate takes a number above 0, up to 1000, not '0'"},
	{"learning-rate", "1001", "--learning-rate takes a number above 0, up to 1000, not '1001'"},
	{"learning-rate", "nan", "--learning-rate takes a number above 0, up to 1000, not 'nan'"},
	{"optimizer", "adamw",
	 "--optimizer takes one of embeng-optimizers(7) that learns, such as adagrad, not 'adamw'"},
	{"optimizer", "assign",
	 "--optimizer takes one of embeng-optimizers(7) that learns, such as adagrad, not "
	 "'assign'"},
	{"optimizer", "frequency_estimator",
	 "--optimizer takes one of embeng-optimizers(7) that learns, such as adagrad, not "
	 "'frequency_estimator'"},
	{"split", "", "--split takes seed or time, not ''"},
	{"colour", "red", "there is no setting 'colour'"},
};

START_TEST(refused)
{
	struct settings s = other(), before = s;
	char error[SETTING_ERROR] = "";

	ck_assert_int_eq(setting_read(&s, refusals[_i].name, refusals[_i].text, error), -EINVAL);
	ck_assert_str_eq(error, refusals[_i].sentence);
	ck_assert_mem_eq(&s, &before, sizeof(s));
}
END_TEST

START_TEST(what_was_not_given_goes_on)
{
	struct settings s = settings_default, saved = other();
	char error[SETTING_ERROR];

	s.device = "soft:cores=3";
	ck_assert_int_eq(settings_continue(&s, &saved, error), 0);
	ck_assert_int_eq(s.dim, 7);
	ck_assert(s.optimizer == EMBENG_SGD && s.by_time);
	ck_assert_int_eq(s.epochs, 9);
	ck_assert_str_eq(s.device, "soft:cores=3");
}
END_TEST

START_TEST(the_same_may_be_given_again)
{
	struct settings s = settings_default, saved = other();
	char error[SETTING_ERROR];

	setting_read(&s, "learning-rate", "0.10", error);
	setting_read(&s, "split", "time", error);
	setting_read(&s, "epochs", "12", error);
	ck_assert_int_eq(settings_continue(&s, &saved, error), 0);
	ck_assert_int_eq(s.epochs, 12);
	ck_assert_int_eq(s.batch, 33);
}
END_TEST

/* Every setting but epochs, given otherwise, is named with both values. */
START_TEST(another_training_is_refused)
{
	static const char *const others[][3] = {
		{"dim", "8", "it was trained with --dim 7, not 8"},
		{"negatives", "3", "it was trained with --negatives 2, not 3"},
		{"learning-rate", "0.2", "it was trained with --learning-rate 0.1, not 0.2"},
		{"optimizer", "adagrad", "it was trained with --optimizer sgd, not adagrad"},
		{"batch", "32", "it was trained with --batch 33, not 32"},
		{"seed", "1", "it was trained with --seed 9223372036854775807, not 1"},
		{"split", "seed", "it was trained with --split time, not seed"},
		{"min-count", "2", "it was trained with --min-count 1, not 2"},
		{"min-basket", "3", "it was trained with --min-basket 4, not 3"},
	};
	struct settings s = settings_default, saved = other(), before;
	char error[SETTING_ERROR] = "";

	ck_assert_int_eq(setting_read(&s, others[_i][0], others[_i][1], error), 0);
	before = s;
	ck_assert_int_eq(settings_continue(&s, &saved, error), -EINVAL);
	ck_assert_str_eq(error, others[_i][2]);
	ck_assert_mem_eq(&s, &before, sizeof(s));
}
END_TEST

START_TEST(what_is_missing)
{
	struct settings s = other();

	s.given &= ~(1u << 1); /* epochs may be */
	ck_assert_ptr_null(settings_missing(&s));
	s.given &= ~(1u << 5);
	ck_assert_str_eq(settings_missing(&s), "batch");
}
END_TEST

START_TEST(the_rate_suits_the_optimizer)
{
	static const struct {
		const char *optimizer;
		double rate;
	} rates[] = {{"sgd", 0.2},     {"adagrad", 0.2},   {"adagrad_momentum", 0.1},
		     {"ftrl", 0.2},    {"adam", 0.01},	   {"momentum", 0.2},
		     {"lion", 0.01},   {"rms_prop", 0.01}, {"centered_rms_prop", 0.01},
		     {"laprop", 0.01}, {"adadelta", 0.2}};
	char error[SETTING_ERROR];

	for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++) {
		struct settings s = settings_default;

		ck_assert_int_eq(setting_read(&s, "optimizer", rates[k].optimizer, error), 0);
		settings_complete(&s);
		ck_assert_double_eq(s.learning_rate, rates[k].rate);
		ck_assert_int_eq(setting_read(&s, "learning-rate", "0.5", error), 0);
		settings_complete(&s);
		ck_assert_double_eq(s.learning_rate, 0.5);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_rate_suits_the_optimizer);
	tcase_add_test(tcase, text_and_back);
	tcase_add_test(tcase, rates_keep_their_bits);
	tcase_add_test(tcase, epochs_left_to_the_data_have_no_text);
	tcase_add_loop_test(tcase, refused, 0, sizeof(refusals) / sizeof(refusals[0]));
	tcase_add_test(tcase, what_was_not_given_goes_on);
	tcase_add_test(tcase, the_same_may_be_given_again);
	tcase_add_loop_test(tcase, another_training_is_refused, 0, 9);
	tcase_add_test(tcase, what_is_missing);
}

int main(void)
{
	return suite_main("settings", add);
}
