// SPDX-License-Identifier: MIT
/*
 * Batches of any size, one after another and side by side: rows and activations have the bits that the
 * same batches have when empty bags fill them up to one size. A batch without samples has arrays of
 * nothing, which may be NULL. A model with fixed_shapes takes one size alone.
 */
#include <stdbool.h>
#include <stdio.h>

#include "runtime/cli/frame/random.h"
#include "session_help.h"

#define ROWS 50
#define DIM 3
#define MOST 40u
#define BAG 5u
#define STEPS 60u
#define REPLICAS 2u

static struct random random_state = {20261128};

struct sizes {
	uint32_t samples, ids;
	int64_t lengths[MOST], row_ids[MOST * BAG];
	float gradients[MOST * DIM];
};

static struct sizes make_sizes(void)
{
	struct sizes s = {.samples = random_below(&random_state, 4)
					     ? random_below(&random_state, MOST + 1)
					     : 0};

	for (uint32_t i = 0; i < s.samples; i++) {
		s.lengths[i] = random_below(&random_state, BAG + 1);
		for (int64_t k = 0; k < s.lengths[i]; k++)
			s.row_ids[s.ids++] = random_below(&random_state, ROWS);
	}
	for (uint32_t i = 0; i < s.samples * DIM; i++)
		s.gradients[i] = (float)random_below(&random_state, 1000) / 500 - 1;
	return s;
}

static struct embeng *open_model(int pipelining, int fixed_shapes)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = ROWS,
					.dim = DIM,
					.optimizer = embeng_adagrad(0.1f)};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_engine_config c = {.size = sizeof(c),
					 .replicas = REPLICAS,
					 .pipelining = pipelining,
					 .fixed_shapes = fixed_shapes};

	return open_single(SMALL, &t, &f, &c);
}

/* @samples: with empty bags behind its own. Arrays without elements are NULL. */
static int enqueue(struct embeng *e, enum embeng_mode mode, uint32_t replica, const struct sizes *s,
		   uint32_t samples)
{
	struct embeng_batch *b = embeng_batch_new(e, mode, replica);
	int ret = embeng_batch_ragged(b, 0, EMBENG_I64, s->ids ? s->row_ids : NULL, s->ids,
				      samples ? s->lengths : NULL, samples, NULL, 0);

	ck_assert_int_eq(ret, 0);
	ret = embeng_enqueue(e, b, 0);
	embeng_batch_free(b);
	return ret;
}

/* Takes a batch of @samples, of which the first of @s are copied. */
static struct embeng_activations take(struct embeng *e, uint32_t replica, const struct sizes *s,
				      uint32_t samples, float *copy)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(embeng_dequeue(e, replica, -1, &a), 0);
	ck_assert_uint_eq(a.features[0].rank, 2);
	ck_assert_int_eq(a.features[0].shape[0], samples);
	ck_assert_int_eq(a.features[0].shape[1], DIM);
	if (s->samples)
		memcpy(copy, a.features[0].data, s->samples * DIM * sizeof(*copy));
	return a;
}

static void apply(struct embeng *e, uint32_t replica, const struct sizes *s, uint32_t samples)
{
	const float *features[] = {samples ? s->gradients : NULL};
	const size_t elements[] = {(size_t)samples * DIM};
	struct embeng_gradients g = {.size = sizeof(g),
				     .replica = replica,
				     .count = 1,
				     .features = features,
				     .elements = elements};

	ck_assert_int_eq(embeng_apply_gradients(e, &g, 0), 0);
}

/* One step of each replica, and an inference lookup; @padded: all of the greatest size. */
static void step(struct embeng *e, const struct sizes s[REPLICAS + 1], bool padded,
		 float copies[REPLICAS + 1][MOST * DIM])
{
	struct embeng_activations a;

	for (uint32_t r = 0; r < REPLICAS; r++)
		ck_assert_int_eq(enqueue(e, EMBENG_TRAIN, r, &s[r], padded ? MOST : s[r].samples),
				 0);
	for (uint32_t r = 0; r < REPLICAS; r++) {
		take(e, r, &s[r], padded ? MOST : s[r].samples, copies[r]);
		apply(e, r, &s[r], padded ? MOST : s[r].samples);
	}
	ck_assert_int_eq(
		enqueue(e, EMBENG_INFERENCE, 0, &s[REPLICAS], padded ? MOST : s[REPLICAS].samples),
		0);
	a = take(e, 0, &s[REPLICAS], padded ? MOST : s[REPLICAS].samples, copies[REPLICAS]);
	ck_assert_int_eq(embeng_release(e, &a), 0);
}

static void expect_same_rows(struct embeng *a, struct embeng *b, const char *slot)
{
	float rows[2][ROWS * DIM];

	ck_assert_int_eq(embeng_rows_read(a, 0, slot, NULL, ROWS, rows[0]), 0);
	ck_assert_int_eq(embeng_rows_read(b, 0, slot, NULL, ROWS, rows[1]), 0);
	ck_assert_mem_eq(rows[0], rows[1], sizeof(rows[0]));
}

static void train_any_sizes(int pipelining)
{
	struct embeng *any = open_model(pipelining, 0), *one = open_model(pipelining, 1);

	for (uint32_t n = 0; n < STEPS; n++) {
		static float copies[2][REPLICAS + 1][MOST * DIM];
		struct sizes s[REPLICAS + 1] = {make_sizes(), make_sizes(), make_sizes()};

		step(any, s, false, copies[0]);
		step(one, s, true, copies[1]);
		for (uint32_t k = 0; k < REPLICAS + 1; k++)
			ck_assert_msg(!memcmp(copies[0][k], copies[1][k],
					      s[k].samples * DIM * sizeof(float)),
				      "step %u, batch %u of %u samples", n, k, s[k].samples);
	}
	expect_same_rows(any, one, NULL);
	expect_same_rows(any, one, "accumulators");
	embeng_close(any);
	embeng_close(one);
}

START_TEST(prints_its_seed)
{
	printf("seed %llu\n", (unsigned long long)random_state.state);
}
END_TEST

START_TEST(bits_of_any_size)
{
	train_any_sizes(0);
}
END_TEST

START_TEST(bits_of_any_size_with_pipelining)
{
	train_any_sizes(1);
}
END_TEST

/* The model remembers that it takes one size, and says so; a refused batch fixes none. */
START_TEST(one_size_where_it_is_asked_for)
{
	struct embeng *e = open_model(0, 1);
	struct embeng_engine_config c = {.size = sizeof(c)};
	struct sizes s = {.samples = 2, .ids = 2, .lengths = {1, 1, 1}, .row_ids = {1, 2, 3}};
	float copy[MOST * DIM];

	ck_assert_int_eq(embeng_model_get_engine(embeng_get_model(e), &c), 0);
	ck_assert_int_eq(c.fixed_shapes, 1);
	s.ids = 0;
	ck_assert_int_eq(enqueue(e, EMBENG_TRAIN, 0, &s, 0), -EINVAL);
	expect_text("feature f: the input is empty");
	s.ids = 3;
	ck_assert_int_eq(enqueue(e, EMBENG_TRAIN, 0, &s, 3), 0);
	take(e, 0, &s, 3, copy);
	s.ids = 2;
	ck_assert_int_eq(enqueue(e, EMBENG_TRAIN, 1, &s, 2), -EINVAL);
	expect_text("inconsistent shape: the input's is [2], expected is [3]");
	embeng_close(e);
}
END_TEST

RUN_SUITE("any batch", prints_its_seed, bits_of_any_size, bits_of_any_size_with_pipelining,
	  one_size_where_it_is_asked_for)
