// SPDX-License-Identifier: MIT
/*
 * Bags in every form: the activations of the same bags as splits, with and without weights, of one
 * feature and of several in one call; padding is as if it were not there. Each mistake is refused
 * with its place.
 */
#include <stdbool.h>
#include <stdio.h>

#include "runtime/cli/frame/random.h"
#include "session_help.h"

#define ROWS 50
#define DIM 3
#define MOST 20u
#define BAG 5u
#define FEATURES 3
#define PADDING 7

static struct random random_state = {20261130};

struct given {
	uint32_t samples, ids;
	int32_t narrow_ids[MOST * BAG], narrow_lengths[MOST], narrow_splits[MOST + 1];
	int64_t wide_ids[MOST * BAG], wide_lengths[MOST], wide_splits[MOST + 1];
	float weights[MOST * BAG];
};

/* @even: all bags have that many ids; 0: from none to BAG. */
static struct given make_given(uint32_t samples, uint32_t even)
{
	struct given g = {.samples = samples};

	for (uint32_t s = 0; s < samples; s++) {
		uint32_t length = even ? even : random_below(&random_state, BAG + 1);

		g.wide_lengths[s] = g.narrow_lengths[s] = (int32_t)length;
		for (; length; length--) {
			g.wide_ids[g.ids] = g.narrow_ids[g.ids] = (int32_t)random_below(
				&random_state, ROWS / 4);
			g.weights[g.ids++] = (float)random_below(&random_state, 100) / 64;
		}
		g.wide_splits[s + 1] = g.narrow_splits[s + 1] = (int32_t)g.ids;
	}
	return g;
}

static struct embeng *open_features(int count)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	for (int i = 0; i < count; i++) {
		char name[] = {(char)('a' + i), '\0'};
		struct embeng_table_config t = {.size = sizeof(t),
						.name = name,
						.vocabulary_size = ROWS,
						.dim = DIM,
						.combiner = i % 2 ? EMBENG_SUM : EMBENG_MEAN};
		struct embeng_feature_config f = {.size = sizeof(f), .name = name, .table = i};

		ck_assert_int_eq(embeng_model_add_table(m, &t), i);
		ck_assert_int_eq(embeng_model_add_feature(m, &f), i);
	}
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

static void look(struct embeng *e, struct embeng_batch *b, int count,
		 float out[FEATURES][MOST * DIM])
{
	struct embeng_output o[FEATURES];

	memset(out, 0, FEATURES * sizeof(out[0]));
	for (int f = 0; f < count; f++)
		o[f] = (struct embeng_output){.data = out[f], .elements = MOST * DIM};
	ck_assert_int_eq(embeng_lookup(e, b, o, (size_t)count, -1), 0);
}

static struct embeng_bags bags_of(const struct given *g, enum embeng_bags_form form,
				  enum embeng_id_type bounds, enum embeng_id_type ids, bool weights)
{
	bool narrow = bounds == EMBENG_I32;
	struct embeng_bags b = {.size = sizeof(b),
				.type = ids,
				.ids = ids == EMBENG_I32 ? (const void *)g->narrow_ids
							 : g->wide_ids,
				.id_count = g->ids,
				.form = form,
				.bound_type = bounds,
				.bounds = narrow ? (const void *)g->narrow_splits : g->wide_splits,
				.bound_count = g->samples,
				.weights = weights ? g->weights : NULL,
				.weight_count = weights ? g->ids : 0};

	b.bound_count += form == EMBENG_BAGS_SPLITS;
	if (form == EMBENG_BAGS_LENGTHS)
		b.bounds = narrow ? (const void *)g->narrow_lengths : g->wide_lengths;
	return b;
}

START_TEST(says_its_seed)
{
	printf("seed %llu\n", (unsigned long long)random_state.state);
}
END_TEST

START_TEST(every_form_is_the_same_bags)
{
	struct embeng *e = open_features(1);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	static float want[FEATURES][MOST * DIM], got[FEATURES][MOST * DIM];

	for (uint32_t round = 0; round < 40; round++) {
		struct given g = make_given(random_below(&random_state, MOST + 1), 0);
		bool weights = round % 2;

		ck_assert_int_eq(embeng_batch_ragged_splits(b, 0, EMBENG_I64, g.wide_ids, g.ids,
							    g.wide_splits, g.samples + 1,
							    weights ? g.weights : NULL,
							    weights ? g.ids : 0),
				 0);
		look(e, b, 1, want);
		for (int form = EMBENG_BAGS_SPLITS; form <= EMBENG_BAGS_LENGTHS; form++) {
			for (int types = 0; types < 4; types++) {
				struct embeng_bags given = bags_of(
					&g, (enum embeng_bags_form)form,
					types & 1 ? EMBENG_I64 : EMBENG_I32,
					types & 2 ? EMBENG_I64 : EMBENG_I32, weights);

				ck_assert_int_eq(embeng_batch_bags(b, 0, &given), 0);
				look(e, b, 1, got);
				ck_assert_mem_eq(got, want, sizeof(want));
			}
		}
	}
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

/* The ids and weights of @g that are no padding. */
static struct given without_padding(const struct given *g)
{
	struct given out = {.samples = g->samples};

	for (uint32_t s = 0; s < g->samples; s++) {
		for (int64_t k = g->wide_splits[s]; k < g->wide_splits[s + 1]; k++) {
			if (g->wide_ids[k] == PADDING)
				continue;
			out.weights[out.ids] = g->weights[k];
			out.wide_ids[out.ids++] = g->wide_ids[k];
		}
		out.wide_splits[s + 1] = out.ids;
	}
	return out;
}

START_TEST(padding_is_not_there)
{
	struct embeng *e = open_features(1);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	static float want[FEATURES][MOST * DIM], got[FEATURES][MOST * DIM];

	for (uint32_t round = 0; round < 40; round++) {
		uint32_t even = round % 4 < 2 ? 1 + random_below(&random_state, BAG) : 0;
		struct given g = make_given(random_below(&random_state, MOST + 1), even);
		struct given rest = without_padding(&g);
		bool weights = round % 2;
		struct embeng_bags plain = bags_of(&rest, EMBENG_BAGS_SPLITS, EMBENG_I64,
						   EMBENG_I64, weights);
		struct embeng_bags padded = bags_of(
			&g, even ? EMBENG_BAGS_EVEN : EMBENG_BAGS_SPLITS, EMBENG_I64,
			round % 3 ? EMBENG_I32 : EMBENG_I64, weights);

		padded.length = even;
		padded.has_padding = 1;
		padded.padding = PADDING;
		ck_assert_int_eq(embeng_batch_bags(b, 0, &plain), 0);
		look(e, b, 1, want);
		ck_assert_int_eq(embeng_batch_bags(b, 0, &padded), 0);
		look(e, b, 1, got);
		ck_assert_mem_eq(got, want, sizeof(want));
	}
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

/* @samples: how many each of the features has. The features are not in the order of the model. */
static void look_keyed(struct embeng *e, const size_t *samples, bool even, bool weights)
{
	static float want[FEATURES][MOST * DIM], got[FEATURES][MOST * DIM];
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	const int order[] = {2, 0, 1};
	static struct given all, parts[FEATURES];
	struct embeng_bags given;

	all = (struct given){0};
	for (int k = 0; k < FEATURES; k++) {
		parts[k] = make_given((uint32_t)samples[k], 0);
		for (uint32_t s = 0; s < parts[k].samples; s++) {
			all.wide_lengths[all.samples] = parts[k].wide_lengths[s];
			all.narrow_lengths[all.samples] = parts[k].narrow_lengths[s];
			all.wide_splits[all.samples + 1] = all.ids + parts[k].wide_splits[s + 1];
			all.samples++;
		}
		memcpy(all.wide_ids + all.ids, parts[k].wide_ids, 8 * parts[k].ids);
		memcpy(all.weights + all.ids, parts[k].weights, 4 * parts[k].ids);
		all.ids += parts[k].ids;
		given = bags_of(&parts[k], EMBENG_BAGS_SPLITS, EMBENG_I64, EMBENG_I64, weights);
		ck_assert_int_eq(embeng_batch_bags(b, order[k], &given), 0);
	}
	look(e, b, FEATURES, want);
	embeng_batch_reset(b, EMBENG_INFERENCE);
	for (int form = EMBENG_BAGS_SPLITS; form <= EMBENG_BAGS_LENGTHS; form++) {
		given = bags_of(&all, (enum embeng_bags_form)form,
				form == EMBENG_BAGS_LENGTHS ? EMBENG_I32 : EMBENG_I64, EMBENG_I64,
				weights);
		ck_assert_int_eq(
			embeng_batch_keyed(b, order, even ? NULL : samples, FEATURES, &given), 0);
		look(e, b, FEATURES, got);
		ck_assert_mem_eq(got, want, sizeof(want));
	}
	embeng_batch_free(b);
}

START_TEST(several_features_in_one_call)
{
	struct embeng *e = open_features(FEATURES);
	const size_t even[] = {5, 5, 5}, uneven[] = {4, 0, 6};

	for (int round = 0; round < 20; round++) {
		look_keyed(e, even, true, round % 2);
		look_keyed(e, uneven, false, round % 2);
	}
	embeng_close(e);
}
END_TEST

#define REFUSE(code, text, ...) \
	do { \
		struct embeng_bags bags = good; \
		__VA_ARGS__; \
		ck_assert_int_eq(embeng_batch_bags(b, 0, &bags), code); \
		expect_text(text); \
	} while (0)

START_TEST(mistakes_have_their_place)
{
	struct embeng *e = open_features(FEATURES);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	const int64_t ids[] = {1, 2, 3, 4}, falls[] = {0, 3, 2, 4}, late[] = {1, 2, 3, 4};
	const int32_t lengths[] = {1, 2, 1}, negative[] = {1, -1, 4}, many[] = {1, 2, 2};
	const int32_t few[] = {1, 1, 1};
	const int64_t far[] = {0, INT64_MIN, INT64_MAX, 4};
	const float weights[] = {1, 1, 1, 1};
	struct embeng_bags good = {.size = sizeof(good),
				   .type = EMBENG_I64,
				   .ids = ids,
				   .id_count = 4,
				   .form = EMBENG_BAGS_LENGTHS,
				   .bound_type = EMBENG_I32,
				   .bounds = lengths,
				   .bound_count = 3};

	ck_assert_int_eq(embeng_batch_bags(b, 0, NULL), -EINVAL);
	REFUSE(-EINVAL, "with their size", bags.size = 8);
	REFUSE(-EINVAL, "no form of bags 4", bags.form = 4);
	REFUSE(-EINVAL, "bound type 2", bags.bound_type = 2);
	REFUSE(-EINVAL, "bounds are missing", bags.bounds = NULL);
	REFUSE(-EINVAL, "sample 1: its bag has -1 ids", bags.bounds = negative);
	REFUSE(-EINVAL, "sample 2: its bag has 2 ids, from none to 1 are left", bags.bounds = many);
	REFUSE(-EINVAL, "the bags end 1 ids before the 4 ids do", bags.bounds = few);
	REFUSE(-EINVAL, "bounds[0] is 1", bags.form = EMBENG_BAGS_STARTS; bags.bounds = late;
	       bags.bound_type = EMBENG_I64);
	REFUSE(-EINVAL, "sample 1: its bag has -1 ids", bags.form = EMBENG_BAGS_STARTS;
	       bags.bounds = falls; bags.bound_type = EMBENG_I64);
	REFUSE(-EINVAL, "sample 0: its bag has", bags.form = EMBENG_BAGS_STARTS; bags.bounds = far;
	       bags.bound_type = EMBENG_I64);
	REFUSE(-EINVAL, "there is one more than samples", bags.form = EMBENG_BAGS_SPLITS;
	       bags.bound_count = 0);
	REFUSE(-EINVAL, "bags of -1 ids", bags.form = EMBENG_BAGS_EVEN; bags.length = -1);
	REFUSE(-EINVAL, "sample 2: its bag has 2 ids, from none to 0", bags.form = EMBENG_BAGS_EVEN;
	       bags.length = 2);
	REFUSE(-EINVAL, "3 weights for 4 ids", bags.weights = weights; bags.weight_count = 3);
	REFUSE(-EINVAL, "weights are NULL, their count is 4", bags.weight_count = 4);
	ck_assert_int_eq(embeng_batch_bags(b, 3, &good), -ENOENT);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

START_TEST(mistakes_of_several_features_have_their_place)
{
	struct embeng *e = open_features(FEATURES);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	const int64_t ids[] = {1, 2, 3, 4};
	const int32_t lengths[] = {1, 2, 1}, front[] = {2, 2, 0};
	const int twice[] = {0, 1, 0}, order[] = {0, 1, 2}, unknown[] = {0, 3, 1};
	const size_t shares[] = {1, 1, 0}, greedy[] = {2, 2, 0};
	const struct embeng_bags good = {.size = sizeof(good),
					 .type = EMBENG_I64,
					 .ids = ids,
					 .id_count = 4,
					 .form = EMBENG_BAGS_LENGTHS,
					 .bound_type = EMBENG_I32,
					 .bounds = lengths,
					 .bound_count = 3};
	struct embeng_bags spent = good;

	spent.bounds = front;
	ck_assert_int_eq(embeng_batch_keyed(b, order, NULL, 0, &good), -EINVAL);
	ck_assert_int_eq(embeng_batch_keyed(b, twice, NULL, 3, &good), -EINVAL);
	expect_text("feature 0 is there twice");
	ck_assert_int_eq(embeng_batch_keyed(b, unknown, NULL, 3, &good), -ENOENT);
	ck_assert_int_eq(embeng_batch_keyed(b, order, NULL, 2, &good), -EINVAL);
	expect_text("feature a: 3 bags are left for it, of 3");
	ck_assert_int_eq(embeng_batch_keyed(b, order, shares, 3, &good), -EINVAL);
	expect_text("have 2 bags with all but 1 ids, 3 bags are given");
	ck_assert_int_eq(embeng_batch_keyed(b, order, greedy, 3, &good), -EINVAL);
	expect_text("feature b: 1 bags are left for it, of 3");
	ck_assert_int_eq(embeng_batch_keyed(b, order, shares, 3, &spent), -EINVAL);
	expect_text("have 2 bags with all but 0 ids, 3 bags are given");
	ck_assert_int_eq(embeng_batch_keyed(b, order, NULL, 3, &good), 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

RUN_SUITE("bags", says_its_seed, every_form_is_the_same_bags, padding_is_not_there,
	  several_features_in_one_call, mistakes_have_their_place,
	  mistakes_of_several_features_have_their_place)
