// SPDX-License-Identifier: MIT
/*
 * Datasets: rare items and small baskets are left out, and each basket gives one item to the
 * evaluation.
 */
#include <errno.h>

#include "runtime/examples/item2vec/ratings.h"
#include "runtime/examples/item2vec/split.h"
#include "cli_baskets.h"
#include "suite.h"

START_TEST(rare_items_then_small_baskets_go)
{
	/* d is rare; without it the third basket is too small. */
	struct dataset data = baskets(basket_read, "a b c a\nc b a\na b d\n", 2, 3);

	ck_assert_uint_eq(data.basket_count, 2);
	ck_assert_uint_eq(data.items.count, 3);
	ck_assert_int_eq(names_find(&data.items, "d", 1), -ENOENT);
	for (uint32_t item = 0; item < 3; item++)
		ck_assert_uint_eq(data.uses[item], 2);
	dataset_free(&data);
}
END_TEST

START_TEST(nothing_left)
{
	struct dataset data = baskets(basket_read, "a b\n", 2, 3);

	ck_assert_uint_eq(data.basket_count, 0);
	ck_assert_uint_eq(data.items.count, 0);
	dataset_free(&data);
}
END_TEST

START_TEST(newest_is_held_out)
{
	/* a comes twice: its newer time counts, and makes it the newest. */
	struct dataset data = baskets(ratings_read, "1,a,1,10\n1,b,1,30\n1,c,1,20\n1,a,1,40\n", 1,
				      3);
	struct split split;

	ck_assert_int_eq(split_baskets(&split, &data, SPLIT_TIME, 1), 0);
	ck_assert_str_eq(data.items.text[split.held[0]], "a");
	ck_assert_uint_eq(split.train_count, 2);
	ck_assert_str_eq(data.items.text[split.train[0]], "c");
	ck_assert_str_eq(data.items.text[split.train[1]], "b");
	split_free(&split);
	dataset_free(&data);
}
END_TEST

START_TEST(time_needs_times)
{
	struct dataset data = baskets(basket_read, "a b c\n", 1, 3);
	struct split split = {.train_count = 77};

	ck_assert_int_eq(split_baskets(&split, &data, SPLIT_TIME, 1), -ENODATA);
	ck_assert_uint_eq(split.train_count, 77);
	dataset_free(&data);
}
END_TEST

START_TEST(held_out_is_not_learnt_from)
{
	struct dataset data = baskets(basket_read, "a b c\na c d e\nb c d\n", 1, 3);
	struct split split, same;

	ck_assert_int_eq(split_baskets(&split, &data, SPLIT_SEED, _i), 0);
	ck_assert_int_eq(split_baskets(&same, &data, SPLIT_SEED, _i), 0);
	ck_assert_uint_eq(split.train_count, 10 - 3);
	for (size_t b = 0; b < 3; b++) {
		ck_assert_uint_eq(split.held[b], same.held[b]);
		ck_assert(dataset_basket_has(&data, b, split.held[b]));
		for (size_t k = split.start[b]; k < split.start[b + 1]; k++)
			ck_assert_uint_ne(split.train[k], split.held[b]);
	}
	split_free(&split);
	split_free(&same);
	dataset_free(&data);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, rare_items_then_small_baskets_go);
	tcase_add_test(tcase, nothing_left);
	tcase_add_test(tcase, newest_is_held_out);
	tcase_add_test(tcase, time_needs_times);
	tcase_add_loop_test(tcase, held_out_is_not_learnt_from, 0, 8);
}

int main(void)
{
	return suite_main("split", add);
}
