// SPDX-License-Identifier: MIT
/* hit@10 and neighbors, on scores that are known. */
#include "runtime/examples/item2vec/evaluate.h"
#include "runtime/examples/item2vec/neighbors.h"
#include "cli_baskets.h"
#include "suite.h"

static struct dataset data;
static struct split split;

static void setup(void)
{
	data = baskets(basket_read, "a b c\na c d\nb c d\nx y z\nx y w\n", 1, 3);
	ck_assert_int_eq(split_baskets(&split, &data, SPLIT_SEED, 5), 0);
}

static void teardown(void)
{
	split_free(&split);
	dataset_free(&data);
}

static uint32_t wanted;

static void look_at_answer(void *arg, size_t basket)
{
	(void)arg;
	wanted = split.held[basket];
}

static float oracle(void *arg, uint32_t item)
{
	return item == wanted ? *(const float *)arg : 0.0f;
}

static double hit(struct scorer scorer)
{
	double share;

	evaluate(&data, &split, 9, &scorer, 1, &share);
	return share;
}

START_TEST(best_hits_worst_misses)
{
	float above = 1, below = -1, tie = 0, nan = __builtin_nanf("");

	ck_assert_double_eq(hit((struct scorer){look_at_answer, oracle, &above}), 1);
	ck_assert_double_eq(hit((struct scorer){look_at_answer, oracle, &below}), 0);
	ck_assert_double_eq(hit((struct scorer){look_at_answer, oracle, &tie}), 0);
	ck_assert_double_eq(hit((struct scorer){look_at_answer, oracle, &nan}), 0);
}
END_TEST

/* Calls since begin: the held-out item is asked for first, then the 99. */
static unsigned int calls, ahead;

static void restart(void *arg, size_t basket)
{
	(void)arg;
	(void)basket;
	calls = 0;
}

static float place(void *arg, uint32_t item)
{
	(void)arg;
	(void)item;
	return calls++ == 0 ? 0.0f : calls <= ahead + 1 ? 1.0f : -1.0f;
}

START_TEST(tenth_hits_eleventh_misses)
{
	ahead = 9;
	ck_assert_double_eq(hit((struct scorer){restart, place, NULL}), 1);
	ck_assert_uint_eq(calls, 100);
	ahead = 10;
	ck_assert_double_eq(hit((struct scorer){restart, place, NULL}), 0);
}
END_TEST

START_TEST(popularity_is_use_in_training)
{
	struct scorer s = scorer_popularity(&split);

	for (uint32_t item = 0; item < data.items.count; item++)
		ck_assert_float_eq(s.score(s.arg, item), (float)split.uses[item]);
}
END_TEST

START_TEST(neighbors_best_first)
{
	float in[7] = {1, 1, 1, 1, 1, 1, 1}, out[7] = {9, 3, 8, -1, 7, 5, 6};
	struct vectors v = {.dim = 1, .in = in, .out = out};
	const uint32_t expected[NEIGHBORS] = {2, 4, 6, 5, 1};
	struct neighbor found[NEIGHBORS];

	ck_assert_uint_eq(neighbors_of(&v, 7, 0, found), NEIGHBORS);
	for (int k = 0; k < NEIGHBORS; k++)
		ck_assert_uint_eq(found[k].item, expected[k]);
	ck_assert_uint_eq(neighbors_of(&v, 3, 0, found), 2);
	ck_assert_uint_eq(found[0].item, 2);
	ck_assert_uint_eq(found[1].item, 1);
}
END_TEST

START_TEST(vectors_score_by_the_mean)
{
	float in[16], out[16], mean[2], sum[2] = {0, 0};
	struct vectors v = {.dim = 2, .split = &split, .in = in, .out = out, .mean = mean};
	struct scorer s = scorer_vectors(&v);

	for (int k = 0; k < 16; k++) {
		in[k] = (float)(k * k % 7);
		out[k] = (float)(k % 5);
	}
	s.begin(s.arg, 1);
	for (size_t k = split.start[1]; k < split.start[2]; k++) {
		sum[0] += in[2 * split.train[k]];
		sum[1] += in[2 * split.train[k] + 1];
	}
	ck_assert_float_eq(s.score(s.arg, 3), sum[0] / 2 * out[6] + sum[1] / 2 * out[7]);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, best_hits_worst_misses);
	tcase_add_test(tcase, tenth_hits_eleventh_misses);
	tcase_add_test(tcase, popularity_is_use_in_training);
	tcase_add_test(tcase, neighbors_best_first);
	tcase_add_test(tcase, vectors_score_by_the_mean);
}

int main(void)
{
	return suite_main("evaluate", add);
}
