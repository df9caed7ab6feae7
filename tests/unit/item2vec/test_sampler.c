// SPDX-License-Identifier: MIT
/*
 * The sampler of training examples: each item of a basket with the rest of it, and negatives that
 * are not in the basket.
 */
#include <errno.h>

#include "runtime/examples/item2vec/sampler.h"
#include "cli_baskets.h"
#include "suite.h"

#define EXAMPLES 7
#define NEGATIVES 4

struct world {
	struct dataset data;
	struct split split;
	struct sampler sampler;
	int32_t context[EXAMPLES * CONTEXT_MAX], targets[EXAMPLES * (1 + NEGATIVES)];
	int64_t splits[EXAMPLES + 1];
	struct samples samples;
};

static void world_init(struct world *w)
{
	w->data = baskets(basket_read, "a b c\na c d e\nb c d\n", 1, 3);
	ck_assert_int_eq(split_baskets(&w->split, &w->data, SPLIT_SEED, 3), 0);
	ck_assert_int_eq(sampler_init(&w->sampler, &w->data, &w->split, 3), 0);
	w->samples = (struct samples){EXAMPLES, NEGATIVES, w->context, w->splits, w->targets};
}

static void world_free(struct world *w)
{
	sampler_free(&w->sampler);
	split_free(&w->split);
	dataset_free(&w->data);
}

START_TEST(an_epoch_has_each_example_once)
{
	struct world w;
	uint32_t seen[5] = {0};

	world_init(&w);
	ck_assert_uint_eq(w.sampler.count, EXAMPLES);
	sampler_epoch(&w.sampler, 0);
	sampler_fill(&w.sampler, &w.samples);
	for (int k = 0; k < EXAMPLES; k++)
		seen[w.targets[k * (1 + NEGATIVES)]]++;
	for (uint32_t item = 0; item < w.data.items.count; item++)
		ck_assert_uint_eq(seen[item], w.split.uses[item]);
	world_free(&w);
}
END_TEST

START_TEST(context_is_the_rest_of_the_basket)
{
	struct world w;

	world_init(&w);
	sampler_epoch(&w.sampler, 0);
	sampler_fill(&w.sampler, &w.samples);
	for (int k = 0; k < EXAMPLES; k++) {
		uint32_t b = w.sampler.basket_of[w.sampler.examples[k]];
		size_t rest = w.split.start[b + 1] - w.split.start[b] - 1;

		ck_assert_int_eq(w.splits[k + 1] - w.splits[k], (int64_t)rest);
		for (int64_t c = w.splits[k]; c < w.splits[k + 1]; c++) {
			ck_assert_int_ne(w.context[c], w.targets[k * (1 + NEGATIVES)]);
			ck_assert_int_ne(w.context[c], (int32_t)w.split.held[b]);
			ck_assert(dataset_basket_has(&w.data, b, (uint32_t)w.context[c]));
		}
	}
	world_free(&w);
}
END_TEST

START_TEST(negatives_are_strangers)
{
	struct world w;

	world_init(&w);
	sampler_epoch(&w.sampler, 0);
	sampler_fill(&w.sampler, &w.samples);
	for (int k = 0; k < EXAMPLES; k++) {
		uint32_t b = w.sampler.basket_of[w.sampler.examples[k]];

		for (int n = 1; n <= NEGATIVES; n++) {
			int32_t item = w.targets[k * (1 + NEGATIVES) + n];

			ck_assert(!dataset_basket_has(&w.data, b, (uint32_t)item));
		}
	}
	world_free(&w);
}
END_TEST

START_TEST(same_seed_same_examples)
{
	struct world a, b;

	world_init(&a);
	world_init(&b);
	for (int64_t epoch = 0; epoch < 3; epoch++) {
		sampler_epoch(&a.sampler, epoch);
		sampler_epoch(&b.sampler, epoch);
		sampler_fill(&a.sampler, &a.samples);
		sampler_fill(&b.sampler, &b.samples);
		ck_assert_mem_eq(a.targets, b.targets, sizeof(a.targets));
		ck_assert_mem_eq(a.splits, b.splits, sizeof(a.splits));
	}
	world_free(&a);
	world_free(&b);
}
END_TEST

START_TEST(large_baskets_give_a_draw)
{
	char text[400] = "";
	struct dataset data;
	struct split split;
	struct sampler s;
	int32_t context[CONTEXT_MAX], targets[2];
	int64_t splits[2];
	struct samples one = {1, 1, context, splits, targets};

	for (int k = 0; k < 90; k++)
		sprintf(text + strlen(text), "%d ", k);
	data = baskets(basket_read, text, 1, 3);
	ck_assert_int_eq(split_baskets(&split, &data, SPLIT_SEED, 1), 0);
	ck_assert_int_eq(sampler_init(&s, &data, &split, 1), 0);
	sampler_epoch(&s, 0);
	sampler_fill(&s, &one);
	ck_assert_int_eq(splits[1], CONTEXT_MAX);
	for (int k = 1; k < CONTEXT_MAX; k++)
		ck_assert_int_ne(context[k], context[k - 1]);
	sampler_free(&s);
	split_free(&split);
	dataset_free(&data);
}
END_TEST

START_TEST(single_items_teach_nothing)
{
	struct dataset data = baskets(basket_read, "a b\nb c\n", 1, 2);
	struct split split;
	struct sampler s;

	ck_assert_int_eq(split_baskets(&split, &data, SPLIT_SEED, 1), 0);
	ck_assert_int_eq(sampler_init(&s, &data, &split, 1), -ENODATA);
	split_free(&split);
	dataset_free(&data);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, an_epoch_has_each_example_once);
	tcase_add_test(tcase, context_is_the_rest_of_the_basket);
	tcase_add_test(tcase, negatives_are_strangers);
	tcase_add_test(tcase, same_seed_same_examples);
	tcase_add_test(tcase, large_baskets_give_a_draw);
	tcase_add_test(tcase, single_items_teach_nothing);
}

int main(void)
{
	return suite_main("sampler", add);
}
