// SPDX-License-Identifier: MIT
/*
 * embeng_weight_gradients(): the numbers of torch 2.13.0 for sums; for all combiners the slope of the
 * loss that a plain f64 forward has, by finite differences. Keyed bags, padding, policies, quantization,
 * pipelining, which takes rows by reading them, and what is refused.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/cli/frame/random.h"
#include "session_help.h"

#define ROWS 9
#define DIM 19
#define MOST 10u
#define BAG 4u
#define FEATURES 3 /* two of table 0, and one of table 1 with the other combiner */

static struct random random_state = {20261204};

struct setting {
	enum embeng_combiner_name combiner;
	enum embeng_policy policy;
	int pipelining;
	struct embeng_quantization quantization;
};

struct drawn {
	size_t samples, count;
	int64_t ids[MOST * BAG], lengths[MOST];
	float weights[MOST * BAG], gradients[MOST * DIM];
};

struct model {
	struct embeng *e;
	struct setting s;
	float rows[2][ROWS * DIM];
	struct drawn drawn[FEATURES];
	const float *features[FEATURES];
	struct embeng_gradients g;
	struct embeng_batch *b;
	float out[FEATURES][MOST * BAG];
	float *outputs[FEATURES];
	size_t counts[FEATURES];
};

static float draw_float(void)
{
	return (float)random_below(&random_state, 2001) / 500 - 2;
}

static void add_tables(struct embeng_model *m, const struct setting *s)
{
	for (int t = 0; t < 2; t++) {
		struct embeng_table_config config = {
			.size = sizeof(config),
			.name = t ? "other" : "t",
			.vocabulary_size = ROWS,
			.dim = DIM,
			.combiner = t ? EMBENG_MEAN : s->combiner,
			.optimizer = embeng_sgd(1),
			.out_of_range = s->policy,
			.quantization = s->quantization,
		};

		ck_assert_int_eq(embeng_model_add_table(m, &config), t);
	}
}

static void open_model(struct model *model, const struct setting *s)
{
	static const char *const names[] = {"a", "b", "c"};
	struct embeng_engine_config c = {.size = sizeof(c), .pipelining = s->pipelining};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};

	*model = (struct model){.s = *s};
	add_tables(m, s);
	for (int f = 0; f < FEATURES; f++) {
		struct embeng_feature_config config = {
			.size = sizeof(config), .name = names[f], .table = f / 2};

		ck_assert_int_eq(embeng_model_add_feature(m, &config), f);
	}
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	ck_assert_msg(!embeng_open(SMALL, m, &model->e, &error), "%s", error.text);
	embeng_model_free(m);
	for (int t = 0; t < 2; t++) {
		for (int i = 0; i < ROWS * DIM; i++)
			model->rows[t][i] = draw_float();
		ck_assert_int_eq(embeng_rows_write(model->e, t, NULL, NULL, ROWS, model->rows[t]),
				 0);
	}
}

static void close_model(struct model *m)
{
	embeng_batch_free(m->b);
	embeng_close(m->e);
}

static void draw_bags(struct model *m, struct drawn *d)
{
	int64_t outside = m->s.policy != EMBENG_POLICY_ERROR;

	d->samples = random_below(&random_state, MOST + 1);
	d->count = 0;
	for (size_t s = 0; s < d->samples; s++) {
		d->lengths[s] = random_below(&random_state, BAG + 1);
		for (int64_t k = 0; k < d->lengths[s]; k++) {
			/* Not near 0, where the slope of a mean is too steep for differences. */
			d->weights[d->count] = 0.5f + fabsf(draw_float());
			d->ids[d->count++] = (int64_t)random_below(&random_state,
								   ROWS + 4 * (uint64_t)outside) -
					     2 * outside;
		}
	}
	for (size_t i = 0; i < d->samples * DIM; i++)
		d->gradients[i] = draw_float();
}

static void fill_batch(struct model *m, enum embeng_mode mode)
{
	m->b = embeng_batch_new(m->e, mode, 0);
	for (int f = 0; f < FEATURES; f++) {
		struct drawn *d = &m->drawn[f];

		draw_bags(m, d);
		ck_assert_int_eq(embeng_batch_ragged(m->b, f, EMBENG_I64, d->ids, d->count,
						     d->lengths, d->samples, d->weights, d->count),
				 0);
		m->features[f] = d->gradients;
		m->outputs[f] = m->out[f];
		m->counts[f] = d->count;
	}
	m->g = (struct embeng_gradients){
		.size = sizeof(m->g), .count = FEATURES, .features = m->features};
}

static int ask_gradients(struct model *m)
{
	return embeng_weight_gradients(m->e, m->b, &m->g, m->outputs, m->counts, FEATURES);
}

/* -- the loss of a plain forward ------------------------------------------ */

static double row_number(const struct model *m, int f, int64_t id, int c)
{
	if (id < 0 || id >= ROWS) {
		if (m->s.policy == EMBENG_POLICY_ZERO)
			return 0;
		id = id < 0 ? 0 : ROWS - 1;
	}
	return (double)m->rows[f / 2][id * DIM + c];
}

static double loss_of_bag(const struct model *m, int f, size_t sample, size_t first, size_t count,
			  const double *weights)
{
	enum embeng_combiner_name combiner = f / 2 ? EMBENG_MEAN : m->s.combiner;
	const struct drawn *d = &m->drawn[f];
	double sum[DIM] = {0}, denominator = 0, loss = 0;

	for (size_t k = first; k < first + count; k++) {
		int64_t id = d->ids[k];

		if (m->s.policy == EMBENG_POLICY_DROP && (id < 0 || id >= ROWS))
			continue;
		denominator += combiner == EMBENG_SQRTN ? weights[k] * weights[k] : weights[k];
		for (int c = 0; c < DIM; c++)
			sum[c] += weights[k] * row_number(m, f, id, c);
	}
	if (combiner == EMBENG_SQRTN)
		denominator = sqrt(denominator);
	if (combiner == EMBENG_SUM)
		denominator = 1;
	for (int c = 0; denominator != 0 && c < DIM; c++)
		loss += sum[c] / denominator * d->gradients[sample * DIM + (size_t)c];
	return loss;
}

/* The slope at weight @k, to about 1e-9. */
static double slope_of_loss(const struct model *m, int f, size_t sample, size_t first, size_t count,
			    size_t k)
{
	double weights[MOST * BAG], up, step = 1e-5;

	for (size_t i = 0; i < m->drawn[f].count; i++)
		weights[i] = (double)m->drawn[f].weights[i];
	weights[k] += step;
	up = loss_of_bag(m, f, sample, first, count, weights);
	weights[k] -= 2 * step;
	return (up - loss_of_bag(m, f, sample, first, count, weights)) / (2 * step);
}

static void expect_close(double got, double want, const char *what, size_t k)
{
	ck_assert_msg(fabs(got - want) <= 1e-6 * (1 + fabs(want)), "%s %zu: %.9g, not %.9g", what,
		      k, got, want);
}

static void compare_slopes(const struct model *m)
{
	for (int f = 0; f < FEATURES; f++) {
		const struct drawn *d = &m->drawn[f];
		size_t first = 0;

		for (size_t s = 0; s < d->samples; first += (size_t)d->lengths[s++])
			for (size_t k = first; k < first + (size_t)d->lengths[s]; k++)
				expect_close(
					(double)m->out[f][k],
					slope_of_loss(m, f, s, first, (size_t)d->lengths[s], k),
					"weight", k);
	}
}

static void check_slopes(enum embeng_combiner_name combiner, enum embeng_policy policy,
			 int pipelining)
{
	struct model m;

	open_model(&m, &(struct setting){
			       .combiner = combiner, .policy = policy, .pipelining = pipelining});
	fill_batch(&m, random_below(&random_state, 2) ? EMBENG_TRAIN : EMBENG_INFERENCE);
	ck_assert_int_eq(ask_gradients(&m), 0);
	compare_slopes(&m);
	close_model(&m);
}

START_TEST(tells_its_seed)
{
	printf("seed %llu\n", (unsigned long long)random_state.state);
}
END_TEST

/* With pipelining rows are read by a command, as from a device with memory of its own. */
START_TEST(gradients_are_the_slopes_of_the_loss)
{
	const enum embeng_policy policies[] = {EMBENG_POLICY_ERROR, EMBENG_POLICY_CLAMP,
					       EMBENG_POLICY_DROP, EMBENG_POLICY_ZERO};
	const enum embeng_combiner_name combiners[] = {EMBENG_SUM, EMBENG_MEAN, EMBENG_SQRTN};

	for (int round = 0; round < 6; round++)
		for (size_t c = 0; c < 3; c++)
			for (size_t p = 0; p < 4; p++)
				check_slopes(combiners[c], policies[p], round % 2);
}
END_TEST

/* The sum of products in the order of the lanes is the same for rows in place and rows that were read. */
START_TEST(both_ways_to_the_rows_have_the_same_bits)
{
	struct model m[2];

	for (int i = 0; i < 2; i++) {
		random_state.state = 5;
		open_model(&m[i], &(struct setting){.combiner = EMBENG_SQRTN, .pipelining = i});
		fill_batch(&m[i], EMBENG_TRAIN);
		ck_assert_int_eq(ask_gradients(&m[i]), 0);
	}
	for (int f = 0; f < FEATURES; f++) {
		ck_assert_uint_gt(m[0].counts[f], 0);
		ck_assert_mem_eq(m[0].out[f], m[1].out[f], m[0].counts[f] * sizeof(float));
	}
	close_model(&m[0]);
	close_model(&m[1]);
}
END_TEST

/* -- the numbers of torch ------------------------------------------------- */

/* torch 2.13.0, EmbeddingBag(mode="sum"): per_sample_weights.grad, also with padding_idx=1. */
START_TEST(sums_have_the_gradients_of_torch)
{
	const float want[][7] = {{-2, -7, -2, 108.25f, -21.75f, -18.0625f, -18.0625f},
				 {0, -7, 0, 108.25f, -21.75f, -18.0625f, -18.0625f}};
	const int32_t ids[] = {1, 2, 1, 4, 0, 3, 3}, starts[] = {0, 3, 3, 5};
	const float weights[] = {0.5f, -1.25f, 2, 3, 0.75f, 1, -0.5f};
	const float gradients[] = {1, -2, 0.5f, 9, 9, 9, 0.25f, 4, -1, -3, 0.125f, 2};
	const float *features[] = {gradients};
	const struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	struct embeng_table_config t = {.size = sizeof(t),
					.vocabulary_size = 5,
					.dim = 3,
					.combiner = EMBENG_SUM,
					.optimizer = embeng_sgd(1)};
	struct embeng_feature_config f = {.size = sizeof(f)};
	struct embeng_model *m = embeng_model_new();
	float rows[15], out[7], *outputs[] = {out};
	struct embeng_batch *b;
	struct embeng *e = NULL;

	for (int i = 0; i < 15; i++)
		rows[i] = (float)(i / 3) * 10 + (float)(i % 3) * 0.5f - 7;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, 5, rows), 0);
	b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	for (int padded = 0; padded < 2; padded++) {
		const struct embeng_bags bags = {.size = sizeof(bags),
						 .type = EMBENG_I32,
						 .ids = ids,
						 .id_count = 7,
						 .form = EMBENG_BAGS_STARTS,
						 .bound_type = EMBENG_I32,
						 .bounds = starts,
						 .bound_count = 4,
						 .weights = weights,
						 .weight_count = 7,
						 .has_padding = padded,
						 .padding = 1};

		ck_assert_int_eq(embeng_batch_bags(b, 0, &bags), 0);
		ck_assert_int_eq(embeng_weight_gradients(e, b, &g, outputs, (size_t[]){7}, 1), 0);
		expect_floats(out, want[padded], 7);
	}
	embeng_batch_free(b);
	embeng_model_free(m);
	embeng_close(e);
}
END_TEST

/* -- forms of batches ------------------------------------------------------ */

/*
 * Bags {5, 1}, {-1, 2} of "a", {3}, {} of "b" and {-1, -1}, {0, 7} of "c" behind one another, without
 * weights: each is 1. Padding is in its place, and one array has all of the gradients.
 */
START_TEST(keyed_bags_have_theirs_one_after_another)
{
	const int64_t ids[] = {5, 1, -1, 2, 3, -1, -1, 0, 7};
	const int32_t lengths[] = {2, 2, 1, 0, 2, 2};
	const int keys[] = {0, 1, 2};
	const struct embeng_bags bags = {.size = sizeof(bags),
					 .type = EMBENG_I64,
					 .ids = ids,
					 .id_count = 9,
					 .form = EMBENG_BAGS_LENGTHS,
					 .bound_type = EMBENG_I32,
					 .bounds = lengths,
					 .bound_count = 6,
					 .has_padding = 1,
					 .padding = -1};
	float out[9], gradients[2 * DIM] = {0}, *outputs[] = {out, out + 4, out + 5};
	const float *features[] = {gradients, gradients, gradients};
	const struct embeng_gradients g = {
		.size = sizeof(g), .count = FEATURES, .features = features};
	struct model m;

	open_model(&m, &(struct setting){.combiner = EMBENG_SUM});
	m.b = embeng_batch_new(m.e, EMBENG_TRAIN, 0);
	/* Column 0 of the first samples, column 2 of the second ones. */
	gradients[0] = 1;
	gradients[DIM + 2] = 2;
	ck_assert_int_eq(embeng_batch_keyed(m.b, keys, NULL, 3, &bags), 0);
	ck_assert_int_eq(embeng_weight_gradients(m.e, m.b, &g, outputs, (size_t[]){4, 1, 4}, 3), 0);
	expect_floats(out,
		      (float[]){m.rows[0][5 * DIM], m.rows[0][DIM], 0, 2 * m.rows[0][2 * DIM + 2],
				m.rows[0][3 * DIM], 0, 0, m.rows[1][2] - m.rows[1][7 * DIM + 2]},
		      7);
	/* The mean of two rows: each has half the difference to the other, times 2. */
	expect_close((double)out[7], ((double)m.rows[1][2] - m.rows[1][7 * DIM + 2]) / 2, "id", 7);
	expect_close((double)out[8], -(double)out[7], "id", 8);
	close_model(&m);
}
END_TEST

/* The rows of before the update, whichever way its gradients come; frozen tables have gradients. */
START_TEST(rows_are_those_of_before_the_update)
{
	struct embeng_activations a = {.size = sizeof(a)};
	float rows[ROWS * DIM];
	struct model m;

	open_model(&m, &(struct setting){.combiner = EMBENG_SQRTN});
	ck_assert_int_eq(embeng_table_freeze(m.e, 1, 1), 0);
	fill_batch(&m, EMBENG_TRAIN);
	ck_assert_int_eq(embeng_enqueue(m.e, m.b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(m.e, 0, -1, &a), 0);
	ck_assert_int_eq(ask_gradients(&m), 0);
	compare_slopes(&m);
	ck_assert_int_eq(embeng_apply_gradients(m.e, &m.g, -1), 0);
	ck_assert_int_eq(embeng_rows_read(m.e, 0, NULL, NULL, ROWS, rows), 0);
	ck_assert(memcmp(rows, m.rows[0], sizeof(rows)));
	/* Those of the next step see it. */
	memcpy(m.rows[0], rows, sizeof(rows));
	ck_assert_int_eq(ask_gradients(&m), 0);
	compare_slopes(&m);
	ck_assert_int_eq(embeng_update(m.e, m.b, &m.g, -1), 0);
	close_model(&m);
}
END_TEST

/* Rows count as lookups see them: quantized to -1, 0 or 1 here. */
START_TEST(quantized_rows_are_those_of_lookups)
{
	struct model m;

	open_model(&m,
		   &(struct setting){.combiner = EMBENG_MEAN,
				     .quantization = {.num_buckets = 3, .lower = -1, .upper = 1}});
	fill_batch(&m, EMBENG_TRAIN);
	ck_assert_int_eq(ask_gradients(&m), 0);
	for (int t = 0; t < 2; t++) {
		for (int i = 0; i < ROWS * DIM; i++) {
			float x = fminf(fmaxf(m.rows[t][i], -1), 1);

			m.rows[t][i] = floorf(x + 0.5f);
		}
	}
	compare_slopes(&m);
	close_model(&m);
}
END_TEST

/* A mean whose weights cancel is 0 by definition, and stays so. */
START_TEST(bags_without_a_denominator_have_none)
{
	const int64_t ids[] = {1, 2, 3}, lengths[] = {2, 1};
	const float weights[] = {1, -1, 2};
	float out[] = {7, 7, 7}, *outputs[] = {NULL, NULL, out};
	struct model m;

	open_model(&m, &(struct setting){.combiner = EMBENG_SUM});
	fill_batch(&m, EMBENG_TRAIN);
	m.drawn[2].gradients[0] = 5;
	ck_assert_int_eq(embeng_batch_ragged(m.b, 2, EMBENG_I64, ids, 3, lengths, 2, weights, 3),
			 0);
	ck_assert_int_eq(embeng_weight_gradients(m.e, m.b, &m.g, outputs, (size_t[]){0, 0, 3}, 3),
			 0);
	/* The mean of one row does not depend on its weight either. */
	for (int i = 0; i < 3; i++)
		expect_close((double)out[i], 0, "id", (size_t)i);
	ck_assert(out[0] == 0 && out[1] == 0);
	close_model(&m);
}
END_TEST

START_TEST(without_gradients_they_are_zeros)
{
	struct model m;

	open_model(&m, &(struct setting){.combiner = EMBENG_SUM});
	fill_batch(&m, EMBENG_TRAIN);
	for (int f = 0; f < FEATURES; f++) {
		m.features[f] = NULL;
		memset(m.out[f], 0xff, sizeof(m.out[f]));
	}
	ck_assert_int_eq(ask_gradients(&m), 0);
	for (int f = 0; f < FEATURES; f++) {
		for (size_t k = 0; k < m.counts[f]; k++)
			ck_assert(m.out[f][k] == 0);
		ck_assert(isnan(m.out[f][m.counts[f]]));
	}
	close_model(&m);
}
END_TEST

/* -- what is refused ------------------------------------------------------- */

static void expect_refused(struct model *m, int code, const char *text)
{
	for (int f = 0; f < FEATURES; f++)
		memset(m->out[f], 0xff, sizeof(m->out[f]));
	ck_assert_int_eq(ask_gradients(m), code);
	expect_text(text);
	for (int f = 0; f < FEATURES; f++)
		for (size_t k = 0; k < MOST * BAG; k++)
			ck_assert(isnan(m->out[f][k]));
}

START_TEST(refused_calls_write_nothing)
{
	const int64_t ids[] = {1, ROWS}, lengths[] = {1, 1};
	const float weights[] = {1, INFINITY};
	struct model m;

	open_model(&m, &(struct setting){.combiner = EMBENG_MEAN});
	fill_batch(&m, EMBENG_TRAIN);
	m.counts[1]++;
	expect_refused(&m, -EINVAL, "embeng_weight_gradients: feature b: room for");
	m.counts[1]--;
	m.g.count = 2;
	expect_refused(&m, -EINVAL, "gradients of 2 features, the model has 3");
	m.g.count = 3;
	ck_assert_int_eq(embeng_weight_gradients(m.e, m.b, &m.g, m.outputs, m.counts, 2), -EINVAL);
	expect_text("outputs of 2 features, the model has 3");
	ck_assert_int_eq(embeng_weight_gradients(m.e, m.b, &m.g, m.outputs, NULL, 3), -EINVAL);
	ck_assert_int_eq(embeng_weight_gradients(m.e, m.b, &m.g, NULL, m.counts, 3), -EINVAL);
	ck_assert_int_eq(embeng_weight_gradients(m.e, NULL, &m.g, m.outputs, m.counts, 3), -EINVAL);
	ck_assert_int_eq(embeng_weight_gradients(NULL, m.b, &m.g, m.outputs, m.counts, 3), -EINVAL);
	ck_assert_int_eq(embeng_weight_gradients(m.e, m.b, NULL, m.outputs, m.counts, 3), -EINVAL);
	m.counts[2] = 2;
	ck_assert_int_eq(embeng_batch_ragged(m.b, 2, EMBENG_I64, ids, 2, lengths, 2, NULL, 0), 0);
	expect_refused(&m, -ERANGE, "feature c, sample 1: id 9 is outside table other");
	ck_assert_int_eq(
		embeng_batch_ragged(m.b, 2, EMBENG_I64, m.drawn[2].ids, 2, lengths, 2, weights, 2),
		0);
	expect_refused(&m, -ERANGE, "feature c, sample 1: weight 1 is inf");
	ck_assert_int_eq(embeng_batch_dense(m.b, 2, EMBENG_I64, ids, 1, lengths, 1), 0);
	expect_refused(&m, -EINVAL, "feature c: a dense input takes no weights");
	/* Those that are not wanted are no reason. */
	m.outputs[2] = NULL;
	ck_assert_int_eq(ask_gradients(&m), 0);
	close_model(&m);
}
END_TEST

START_TEST(sequences_have_no_weights)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1), .sequence = 2});
	const int64_t ids[] = {1, 2, 3}, lengths[] = {2, 1};
	const float gradients[8] = {1}, *features[] = {gradients};
	const struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	float out[3], *outputs[] = {out};

	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 3, lengths, 2, NULL, 0), 0);
	ck_assert_int_eq(embeng_weight_gradients(e, b, &g, outputs, (size_t[]){3}, 1), -EINVAL);
	expect_text("feature f: a sequence takes no weights");
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

RUN_SUITE("weight gradients", tells_its_seed, gradients_are_the_slopes_of_the_loss,
	  both_ways_to_the_rows_have_the_same_bits, sums_have_the_gradients_of_torch,
	  keyed_bags_have_theirs_one_after_another, rows_are_those_of_before_the_update,
	  quantized_rows_are_those_of_lookups, bags_without_a_denominator_have_none,
	  without_gradients_they_are_zeros, refused_calls_write_nothing, sequences_have_no_weights)
