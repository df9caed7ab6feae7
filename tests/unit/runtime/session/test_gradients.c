// SPDX-License-Identifier: MIT
/* Gradients of two features, from wherever the program has them. */
#include "session_help.h"
#include "suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define DIM 3

enum place { PLAIN, BUFFER, OWN, NOWHERE, PLACES };

/* Row r starts at 100 * (r + 1) in all columns; feature f reads row f. */
static struct embeng *open_two(void)
{
	const float start[2 * DIM] = {100, 100, 100, 200, 200, 200};
	struct embeng_table_config t = {.size = sizeof(t),
					.vocabulary_size = 2,
					.dim = DIM,
					.combiner = EMBENG_SUM,
					.optimizer = embeng_sgd(1)};
	struct embeng_feature_config f = {.size = sizeof(f)};
	struct embeng_engine_config c = {.size = sizeof(c), .step_depth = 1};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 1);
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	embeng_model_free(m);
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, 2, start), 0);
	return e;
}

static void look_up(struct embeng *e)
{
	const int64_t ids[] = {0, 1}, shape[] = {1};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations a = {.size = sizeof(a)};

	for (int f = 0; f < 2; f++)
		ck_assert_int_eq(embeng_batch_dense(b, f, EMBENG_I64, &ids[f], 1, shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	embeng_batch_free(b);
}

struct source {
	float *plain[2], *buffer[2];
};

/* Where feature @f's gradients are; all of them are @value. */
static const float *put(struct embeng *e, const struct source *s, enum place place, int f,
			float value)
{
	float *at = place == PLAIN    ? s->plain[f]
		    : place == BUFFER ? s->buffer[f]
		    : place == OWN    ? embeng_gradient_buffer(e, 0, f)
				      : NULL;

	for (int i = 0; at && i < DIM; i++)
		at[i] = value;
	return at;
}

/* Every pair of places after every other pair of the place before: memory is kept between. */
START_TEST(from_all_places)
{
	struct embeng *e = open_two();
	float rows[2 * DIM], want[2] = {100, 200};
	struct source s;

	for (int f = 0; f < 2; f++) {
		s.plain[f] = malloc(DIM * sizeof(float));
		s.buffer[f] = embeng_buffer_alloc(e, DIM * sizeof(float));
	}
	for (int step = 0; step < 3 * PLACES * PLACES; step++) {
		/* 7 has no common factor with 16: another order than that of counting */
		int pair = step * 7 % (PLACES * PLACES);
		const enum place places[] = {(enum place)(pair % PLACES),
					     (enum place)(pair / PLACES)};
		const float *features[2];
		struct embeng_gradients g = {.size = sizeof(g), .count = 2, .features = features};

		look_up(e);
		for (int f = 0; f < 2; f++) {
			features[f] = put(e, &s, places[f], f, (float)(step + f));
			want[f] -= features[f] ? (float)(step + f) : 0;
		}
		ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
		ck_assert_int_eq(embeng_flush(e, -1), 0);
		ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 2, rows), 0);
		for (int i = 0; i < 2 * DIM; i++)
			ck_assert_msg(rows[i] == want[i / DIM],
				      "step %d, places %d and %d: %g, not %g", step, places[0],
				      places[1], (double)rows[i], (double)want[i / DIM]);
	}
	for (int f = 0; f < 2; f++)
		free(s.plain[f]);
	embeng_close(e);
}
END_TEST

static uint64_t buffer_bytes(struct embeng *e)
{
	struct embeng_usage usage = {.size = sizeof(usage)};

	ck_assert_int_eq(embeng_usage(e, &usage), 0);
	return usage.buffer_bytes;
}

/* Gradients in buffers need the descriptor's page; the first that does not, room for all. */
START_TEST(room_comes_with_the_first_copy)
{
	struct embeng *e = open_two();
	float *own, *in_buffer = embeng_buffer_alloc(e, 2 * DIM * sizeof(float));
	const float plain[DIM] = {0}, *features[] = {in_buffer, in_buffer + DIM};
	struct embeng_gradients g = {.size = sizeof(g), .count = 2, .features = features};
	uint64_t before;

	look_up(e);
	before = buffer_bytes(e);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_uint_eq(buffer_bytes(e) - before, 4096);
	look_up(e);
	own = embeng_gradient_buffer(e, 0, 1);
	ck_assert_ptr_nonnull(own);
	features[1] = plain;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
}
END_TEST

/* A rate of a step is held to what a constant one is; then the step may be given again. */
START_TEST(a_rate_is_one_that_the_table_allows)
{
	const struct {
		bool ftrl, multiplied;
		float rate;
		const char *text; /* NULL: allowed */
	} cases[] = {
		{true, false, 0, "learning rate warmup of table t: ftrl: learning_rate 0 must be"},
		{true, false, -0.5f, "above 0"},
		{true, false, 0.5f, NULL},
		{true, true, -0.5f, "0 or above"},
		{true, true, 0, NULL},
		{false, false, INFINITY, "finite"},
		{false, false, NAN, "finite"},
		{false, false, 0, NULL},
	};
	struct shape shape = {.optimizer = cases[_i].ftrl ? embeng_ftrl(0) : embeng_sgd(0)};
	struct embeng_rate rates[] = {{"warmup", cases[_i].rate}};
	struct embeng_gradients g = {.size = sizeof(g),
				     .count = 1,
				     .rates = rates,
				     .rate_count = 1,
				     .features = (const float *const[]){NULL}};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e;

	shape.optimizer.rate_name = "warmup";
	shape.optimizer.multiply_linear_by_learning_rate = cases[_i].multiplied;
	e = open_small(&shape);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	if (cases[_i].text) {
		ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -ERANGE);
		expect_text(cases[_i].text);
		rates[0].value = 1;
	}
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
}
END_TEST

START_TEST(a_step_is_one_that_the_table_allows)
{
	struct shape shape = {.optimizer = embeng_frequency_aware_adagrad(0.5f)};
	struct embeng_rate rates[] = {{"step", -1.0f}};
	struct embeng_gradients g = {.size = sizeof(g),
				     .count = 1,
				     .rates = rates,
				     .rate_count = 1,
				     .features = (const float *const[]){NULL}};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e;

	shape.optimizer.step_counter = "step";
	e = open_small(&shape);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -ERANGE);
	expect_text("learning rate step of table t: step_counter -1 must be 0 or above");
	rates[0].value = INFINITY;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -ERANGE);
	rates[0].value = 0;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
}
END_TEST

/* Refused as a whole: the step can be given again as it should be. */
START_TEST(what_does_not_fit_is_refused)
{
	struct shape shape = {.replicas = 1, .optimizer = embeng_sgd(1)};
	const float ones[] = {1, 1, 1, 1, 1, 1};
	const float *features[] = {ones, ones};
	size_t elements[] = {6, 6};
	struct embeng_gradients g = {.size = sizeof(g), .features = features, .elements = elements};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(&shape);

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	for (g.count = 0; g.count < 3; g.count += 2)
		ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -EINVAL);
	g.count = 1;
	for (elements[0] = 5; elements[0] < 8; elements[0] += 2)
		ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -EINVAL);
	elements[0] = 6;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
}
END_TEST

static void count_warning(void *arg, enum embeng_log_level level, const char *text)
{
	unsigned int *counts = arg;

	if (level != EMBENG_LOG_WARNING)
		return;
	for (int f = 0; f < 2; f++)
		counts[f] += strstr(text, f ? "feature feature_1: no gradient given"
					    : "feature feature_0: no gradient given") != NULL;
}

/* Once for each feature, however many steps go without. */
START_TEST(missing_gradients_are_told_of_once)
{
	const float ones[DIM] = {1, 1, 1}, *features[2] = {NULL, ones};
	struct embeng_gradients g = {.size = sizeof(g), .count = 2, .features = features};
	unsigned int counts[2] = {0};
	struct embeng *e = open_two();

	embeng_log(e, count_warning, counts, EMBENG_LOG_WARNING);
	for (int step = 0; step < 4; step++) {
		look_up(e);
		features[1] = step < 2 ? ones : NULL;
		ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
		ck_assert_uint_eq(counts[0], 1);
		ck_assert_uint_eq(counts[1], step >= 2);
	}
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
}
END_TEST

/* Finite, and the same of all replicas. */
START_TEST(multipliers_agree)
{
	struct shape shape = {.replicas = 2, .optimizer = embeng_sgd(1)};
	const float ones[] = {1, 1, 1, 1, 1, 1};
	const float *features[] = {ones};
	struct embeng_gradients g = {
		.size = sizeof(g), .count = 1, .features = features, .has_multiplier = 1};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(&shape);

	for (uint32_t r = 0; r < 2; r++) {
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, r, -1), 0);
		ck_assert_int_eq(embeng_dequeue(e, r, -1, &a), 0);
	}
	g.multiplier = INFINITY;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -ERANGE);
	g.multiplier = NAN;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -ERANGE);
	g.multiplier = 2;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	g.replica = 1;
	g.multiplier = 3;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -EINVAL);
	expect_text("replica 1 gives another multiplier");
	g.multiplier = 2;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, multipliers_agree);
	tcase_add_test(tc, missing_gradients_are_told_of_once);
	tcase_add_test(tc, what_does_not_fit_is_refused);
	tcase_add_test(tc, from_all_places);
	tcase_add_test(tc, room_comes_with_the_first_copy);
	tcase_add_test(tc, a_step_is_one_that_the_table_allows);
	tcase_add_loop_test(tc, a_rate_is_one_that_the_table_allows, 0, 8);
}

int main(void)
{
	return suite_main("gradients", add);
}
