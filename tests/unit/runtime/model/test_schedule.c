// SPDX-License-Identifier: MIT
/*
 * Learning rate schedules: values of tests/golden/schedules.txt, values worked by hand, and each
 * refused setting.
 */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "suite.h"
#include "test_model.h"

#define BOUNDARIES 8

/* A line of the file; the arrays are those of a piecewise schedule. */
struct line {
	struct embeng_schedule schedule;
	uint64_t boundaries[BOUNDARIES], step;
	float values[BOUNDARIES + 1];
	double rate;
};

static void take_list(struct line *l, const char *key, char *list)
{
	size_t count = 0;
	char *word;

	while ((word = strsep(&list, ","))) {
		ck_assert_uint_lt(count, BOUNDARIES);
		if (!strcmp(key, "values"))
			l->values[count++] = strtof(word, NULL);
		else
			l->boundaries[count++] = strtoull(word, NULL, 10);
	}
	if (strcmp(key, "values"))
		l->schedule.boundary_count = count;
}

static void take_setting(struct line *l, const char *key, char *value)
{
	struct embeng_schedule *s = &l->schedule;
	const struct {
		const char *name;
		float *number;
		uint64_t *whole;
		unsigned char *on;
	} settings[] = {
		{"learning_rate", &s->learning_rate, NULL, NULL},
		{"decay_steps", NULL, &s->decay_steps, NULL},
		{"decay_rate", &s->decay_rate, NULL, NULL},
		{"staircase", NULL, NULL, &s->staircase},
		{"end_learning_rate", &s->end_learning_rate, NULL, NULL},
		{"power", &s->power, NULL, NULL},
		{"cycle", NULL, NULL, &s->cycle},
		{"alpha", &s->alpha, NULL, NULL},
		{"warmup_steps", NULL, &s->warmup_steps, NULL},
		{"warmup_learning_rate", &s->warmup_learning_rate, NULL, NULL},
		{"starts_after_warmup", NULL, NULL, &s->starts_after_warmup},
	};

	for (size_t i = 0; i < COUNT(settings); i++) {
		if (strcmp(settings[i].name, key))
			continue;
		if (settings[i].number)
			*settings[i].number = strtof(value, NULL);
		else if (settings[i].whole)
			*settings[i].whole = strtoull(value, NULL, 10);
		else
			*settings[i].on = *value == '1';
		return;
	}
	ck_assert_msg(!strcmp(key, "values") || !strcmp(key, "boundaries"), "%s", key);
	take_list(l, key, value);
}

static enum embeng_schedule_name kind_of(const char *name)
{
	for (enum embeng_schedule_name k = EMBENG_SCHEDULE_CONSTANT; embeng_schedule_text(k); k++) {
		if (!strcmp(embeng_schedule_text(k), name))
			return k;
	}
	ck_abort_msg("%s", name);
}

static void take_line(struct line *l, char *text)
{
	char *kind = strsep(&text, "\t"), *settings = strsep(&text, "\t"), *word;

	*l = (struct line){.schedule = {.size = sizeof(l->schedule), .kind = kind_of(kind)}};
	while ((word = strsep(&settings, " "))) {
		char *key = strsep(&word, "=");

		take_setting(l, key, word);
	}
	l->schedule.boundaries = l->boundaries;
	l->schedule.values = l->values;
	l->step = strtoull(strsep(&text, "\t"), NULL, 10);
	l->rate = strtod(text, NULL);
}

START_TEST(test_rates_of_the_reference)
{
	char path[4096], *text = NULL;
	size_t room = 0, count = 0;
	FILE *file;

	ck_assert_ptr_nonnull(getenv("EMBENG_SOURCE_ROOT"));
	snprintf(path, sizeof(path), "%s/tests/golden/schedules.txt", getenv("EMBENG_SOURCE_ROOT"));
	file = fopen(path, "r");
	ck_assert_msg(file, "%s", path);
	while (getline(&text, &room, file) > 0) {
		struct line l;
		float rate;

		if (*text == '#')
			continue;
		take_line(&l, text);
		ck_assert_int_eq(embeng_schedule_rate(&l.schedule, l.step, &rate), 0);
		/* Half a unit of f32, and a little for what f64 rounds otherwise. */
		ck_assert_msg(fabs(rate - l.rate) <= fabs(l.rate) * 0x1.001p-24 + 0x1p-149,
			      "%s, step %llu: %.9g, not %.17g",
			      embeng_schedule_text(l.schedule.kind), (unsigned long long)l.step,
			      (double)rate, l.rate);
		count++;
	}
	ck_assert_uint_ge(count, 1000);
	free(text);
	fclose(file);
}
END_TEST

static float rate_of(struct embeng_schedule s, uint64_t step)
{
	float rate = NAN;

	ck_assert_int_eq(embeng_schedule_rate(&s, step, &rate), 0);
	return rate;
}

START_TEST(test_functions_set_defaults)
{
	static const uint64_t boundaries[] = {3};
	static const float values[] = {1.0f, 0.5f};
	struct embeng_schedule s = embeng_schedule_polynomial(0.5f, 10);

	ck_assert(s.kind == EMBENG_SCHEDULE_POLYNOMIAL && s.learning_rate == 0.5f);
	ck_assert(s.decay_steps == 10 && s.end_learning_rate == 0.0001f && s.power == 1.0f);
	ck_assert(!s.cycle && !s.warmup_steps && s.size == sizeof(s));
	ck_assert(rate_of(embeng_schedule_constant(0.75f), 1u << 30) == 0.75f);
	ck_assert(rate_of(embeng_schedule_exponential(8.0f, 2, 0.25f), 1) == 4.0f);
	ck_assert(rate_of(embeng_schedule_inverse_time(8.0f, 2, 2.0f), 3) == 2.0f);
	ck_assert(rate_of(embeng_schedule_cosine(8.0f, 6), 2) == 6.0f);
	ck_assert(rate_of(embeng_schedule_cosine(8.0f, 6), 3) == 4.0f);
	ck_assert(rate_of(embeng_schedule_cosine(8.0f, 6), 6) == 0.0f);
	ck_assert(rate_of(embeng_schedule_piecewise(boundaries, values, 1), 3) == 1.0f);
	ck_assert(rate_of(embeng_schedule_piecewise(boundaries, values, 1), 4) == 0.5f);
	ck_assert_ptr_null(embeng_schedule_text((enum embeng_schedule_name)0));
	ck_assert_ptr_null(embeng_schedule_text((enum embeng_schedule_name)7));
}
END_TEST

#define ASSERT_SCHEDULE_REFUSED(made, change, errno_, ...) \
	do { \
		static const uint64_t boundaries[] = {3, 5, 5}; \
		static const float values[] = {1.0f, 0.5f, NAN, 0.25f}; \
		struct embeng_schedule s = made; \
		float rate = 7.0f; \
		(void)boundaries, (void)values; \
		ck_assert_int_eq(embeng_schedule_rate(&s, 9, &rate), 0); \
		rate = 7.0f; \
		change; \
		ASSERT_REFUSED(embeng_schedule_rate(&s, 9, &rate), errno_, __VA_ARGS__); \
		ck_assert(rate == 7.0f); \
	} while (0)

#define POLYNOMIAL embeng_schedule_polynomial(0.5f, 10)
#define EXPONENTIAL embeng_schedule_exponential(0.5f, 10, 0.5f)
#define PIECEWISE embeng_schedule_piecewise(boundaries, values, 1)

START_TEST(test_refused)
{
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.kind = 0, EINVAL, "kind 0", "unknown");
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.kind = 7, EINVAL, "kind 7");
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.size = 8, EINVAL, "embeng_schedule", "size 8");
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.learning_rate = NAN, ERANGE, "learning_rate nan");
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.warmup_learning_rate = INFINITY, ERANGE,
				"warmup_learning_rate inf");
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.decay_steps = 0, ERANGE, "decay_steps 0");
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.end_learning_rate = -INFINITY, ERANGE,
				"end_learning_rate -inf");
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.power = -1.0f, ERANGE, "power -1");
	ASSERT_SCHEDULE_REFUSED(POLYNOMIAL, s.power = INFINITY, ERANGE, "power inf");
	ASSERT_SCHEDULE_REFUSED(embeng_schedule_cosine(0.5f, 10), s.alpha = NAN, ERANGE,
				"alpha nan");
	ASSERT_SCHEDULE_REFUSED(EXPONENTIAL, s.decay_rate = -0.5f, ERANGE, "decay_rate -0.5");
	ASSERT_SCHEDULE_REFUSED(EXPONENTIAL, s.decay_rate = INFINITY, ERANGE, "decay_rate inf");
	ASSERT_SCHEDULE_REFUSED(embeng_schedule_inverse_time(0.5f, 10, 0.5f), s.decay_rate = -1.0f,
				ERANGE, "decay_rate -1");
	ASSERT_SCHEDULE_REFUSED(PIECEWISE, s.boundary_count = 0, EINVAL, "boundary_count");
	ASSERT_SCHEDULE_REFUSED(PIECEWISE, s.boundaries = NULL, EINVAL, "boundaries");
	ASSERT_SCHEDULE_REFUSED(PIECEWISE, s.values = NULL, EINVAL, "values");
	ASSERT_SCHEDULE_REFUSED(PIECEWISE, s.boundary_count = 2, ERANGE, "values[2] nan");
}
END_TEST

START_TEST(test_boundaries_that_do_not_rise)
{
	static const uint64_t boundaries[] = {3, 5, 5};
	static const float values[4] = {1.0f};
	struct embeng_schedule s = embeng_schedule_piecewise(boundaries, values, 3);
	float rate = 7.0f;

	ASSERT_REFUSED(embeng_schedule_rate(&s, 0, &rate), EINVAL, "boundaries[2] 5", "before, 5");
	s.boundary_count = 2;
	ck_assert_int_eq(embeng_schedule_rate(&s, 0, &rate), 0);
	ASSERT_REFUSED(embeng_schedule_rate(&s, 0, NULL), EINVAL, "rate must be given");
	ASSERT_REFUSED(embeng_schedule_rate(NULL, 0, &rate), EINVAL, "NULL");
}
END_TEST

START_TEST(test_a_rate_that_is_no_number)
{
	struct embeng_schedule s = embeng_schedule_exponential(1.0f, 1, 10.0f);
	float rate = 7.0f;

	ck_assert(rate_of(s, 38) == 1e38f);
	ASSERT_REFUSED(embeng_schedule_rate(&s, 39, &rate), ERANGE, "step 39", "exponential",
		       "inf");
	ck_assert(rate == 7.0f);
}
END_TEST

/* Where the exact rate is a float, no product on the way to it makes it inf or NaN. */
START_TEST(test_rates_at_the_ends_of_their_settings)
{
	const uint64_t last = UINT64_MAX;
	struct embeng_schedule s = embeng_schedule_exponential(0.0f, 1, FLT_MAX);
	float rate;

	ck_assert(rate_of(s, 1000) == 0.0f && rate_of(s, last) == 0.0f);
	s.learning_rate = 0x1p-149f;
	s.decay_rate = 2.0f;
	ck_assert(rate_of(s, 149) == 1.0f && rate_of(s, 276) == 0x1p127f);
	s.decay_rate = 0.0f;
	ck_assert(rate_of(s, 0) == 0x1p-149f && rate_of(s, last) == 0.0f);
	s = embeng_schedule_exponential(FLT_MAX, 1, 0.5f);
	ck_assert(rate_of(s, 1) == FLT_MAX / 2 && rate_of(s, last) == 0.0f);
	s = embeng_schedule_exponential(1.0f, 1, 1e30f);
	s.warmup_steps = 100;
	s.warmup_learning_rate = 0.25f;
	ck_assert(rate_of(s, 0) == 0.25f);
	ck_assert_int_eq(embeng_schedule_rate(&s, 1, &rate), -ERANGE);
	s = embeng_schedule_inverse_time(FLT_MAX, 1, FLT_MAX);
	ck_assert(rate_of(s, 0) == FLT_MAX && rate_of(s, 1) == 1.0f && rate_of(s, last) >= 0.0f);
	s = embeng_schedule_polynomial(FLT_MAX, last);
	s.end_learning_rate = -FLT_MAX;
	ck_assert(rate_of(s, 0) == FLT_MAX && rate_of(s, last) == -FLT_MAX);
	s.power = FLT_MAX;
	ck_assert(rate_of(s, 0) == FLT_MAX && rate_of(s, 1) >= -FLT_MAX);
	s = embeng_schedule_cosine(FLT_MAX, last);
	s.alpha = -1.0f;
	ck_assert(rate_of(s, 0) == FLT_MAX && rate_of(s, last) == -FLT_MAX);
}
END_TEST

/* The end of a cycle near 2^64, where steps are no f64: the share that is left is not below 0. */
START_TEST(test_cycles_of_huge_steps)
{
	struct embeng_schedule s = embeng_schedule_polynomial(0.5f, 3);

	s.cycle = true;
	s.power = 0.5f;
	for (uint64_t steps = 1; steps < 200; steps++) {
		s.decay_steps = steps;
		for (uint64_t back = 0; back < 200; back++) {
			float rate = rate_of(s, UINT64_MAX - back);

			ck_assert_msg(rate >= 0.0f && rate <= 0.5f, "%g", (double)rate);
		}
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_rates_of_the_reference,
		test_functions_set_defaults,
		test_refused,
		test_boundaries_that_do_not_rise,
		test_a_rate_that_is_no_number,
		test_rates_at_the_ends_of_their_settings,
		test_cycles_of_huge_steps,
	};

	return run_tests("schedule", tests, COUNT(tests));
}
