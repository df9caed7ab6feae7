// SPDX-License-Identifier: MIT
/*
 * embeng_gradient_norm(): the numbers of torch 2.13.0, those of a plain sum over all rows, and those
 * that an update with a rate of 1 leaves in tables of zeros. Clipping by it, what it tells of gradients
 * that are not finite, and what it refuses.
 */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/cli/frame/random.h"
#include "session_help.h"

#define PARTS 2u
#define KINDS 5
#define MOST 12
#define BAG 4
#define LONGEST 3
#define ROOM (MOST * BAG)

static struct random random_state = {20261203};

/* Two tables of three features, of all forms; "p" and "q" have ids out of range. */
static const struct {
	const char *name;
	int table;
	int64_t sequence;
} kinds[KINDS] = {
	{"bags", 0, 0}, {"dense", 0, 0}, {"sequence", 0, LONGEST}, {"p", 1, 0}, {"q", 1, LONGEST}};

static const int64_t table_rows[] = {7, 5}, table_dims[] = {3, 18};

struct drawn {
	int64_t ids[ROOM], lengths[MOST];
	float weights[ROOM], gradients[MOST * LONGEST * 18];
	size_t samples, count, elements;
};

struct part {
	struct drawn drawn[KINDS];
	const float *features[KINDS];
	size_t elements[KINDS];
	struct embeng_gradients g;
	struct embeng_batch *b;
};

static float draw_float(void)
{
	return (float)random_below(&random_state, 2001) / 500 - 2;
}

static struct embeng *open_kinds(enum embeng_combiner_name combiner, enum embeng_policy policy,
				 struct embeng_optimizer optimizer)
{
	struct embeng_engine_config c = {.size = sizeof(c), .replicas = PARTS};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	for (int t = 0; t < 2; t++) {
		struct embeng_table_config config = {
			.size = sizeof(config),
			.vocabulary_size = table_rows[t],
			.dim = table_dims[t],
			.combiner = combiner,
			.optimizer = optimizer,
			.out_of_range = t ? policy : EMBENG_POLICY_ERROR,
			.initializer = {.kind = EMBENG_INIT_CONSTANT},
		};

		ck_assert_int_eq(embeng_model_add_table(m, &config), t);
	}
	for (int f = 0; f < KINDS; f++) {
		struct embeng_feature_config config = {.size = sizeof(config),
						       .name = kinds[f].name,
						       .table = kinds[f].table,
						       .max_sequence_length = kinds[f].sequence};

		ck_assert_int_eq(embeng_model_add_feature(m, &config), f);
	}
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

/* Repeated ids are many, as the tables are small. */
static void draw_feature(struct drawn *d, int f, bool outside)
{
	int64_t dim = table_dims[kinds[f].table], rows = table_rows[kinds[f].table];

	d->samples = random_below(&random_state, MOST + 1);
	d->count = 0;
	for (size_t s = 0; s < d->samples; s++) {
		d->lengths[s] = f == 1 ? 1 : random_below(&random_state, BAG + 1);
		for (int64_t k = 0; k < d->lengths[s]; k++) {
			d->weights[d->count] = draw_float();
			d->ids[d->count++] = (int64_t)random_below(&random_state,
								   (uint64_t)rows + 2 * outside) -
					     outside;
		}
	}
	d->elements = d->samples * (size_t)dim * (kinds[f].sequence ? LONGEST : 1);
	for (size_t i = 0; i < d->elements; i++)
		d->gradients[i] = draw_float();
}

static void fill_part(struct embeng *e, struct part *p, uint32_t replica, bool outside)
{
	p->b = embeng_batch_new(e, EMBENG_TRAIN, replica);
	for (int f = 0; f < KINDS; f++) {
		struct drawn *d = &p->drawn[f];
		bool weighted = f == 0 || f == 3;

		draw_feature(d, f, outside && kinds[f].table);
		if (f == 1)
			ck_assert_int_eq(embeng_batch_dense(p->b, f, EMBENG_I64, d->ids, d->count,
							    (int64_t[]){(int64_t)d->samples}, 1),
					 0);
		else
			ck_assert_int_eq(embeng_batch_ragged(p->b, f, EMBENG_I64, d->ids, d->count,
							     d->lengths, d->samples,
							     weighted ? d->weights : NULL,
							     weighted ? d->count : 0),
					 0);
		p->features[f] = d->gradients;
		p->elements[f] = d->elements;
	}
	p->g = (struct embeng_gradients){.size = sizeof(p->g),
					 .replica = replica,
					 .count = KINDS,
					 .features = p->features,
					 .elements = p->elements};
}

static int ask_norm(struct embeng *e, struct part *parts, size_t count,
		    struct embeng_gradient_norms *norms)
{
	struct embeng_batch *batches[PARTS];
	const struct embeng_gradients *gradients[PARTS];

	for (size_t k = 0; k < count; k++) {
		batches[k] = parts[k].b;
		gradients[k] = &parts[k].g;
	}
	return embeng_gradient_norm(e, batches, gradients, count, norms);
}

static void free_parts(struct part *parts, size_t count)
{
	for (size_t k = 0; k < count; k++)
		embeng_batch_free(parts[k].b);
}

/* -- a plain sum over all rows ------------------------------------------- */

struct plain {
	double sums[2][7 * 18];
	double touched[2][7];
};

/* The row of an id, -1: zeros, -2: the id is dropped. */
static int64_t row_of_id(int f, int64_t id, enum embeng_policy policy)
{
	int64_t rows = table_rows[kinds[f].table];

	if (id >= 0 && id < rows)
		return id;
	if (policy == EMBENG_POLICY_CLAMP)
		return id < 0 ? 0 : rows - 1;
	return policy == EMBENG_POLICY_ZERO ? -1 : -2;
}

static void add_plain(struct plain *plain, int f, int64_t row, double by, const float *gradient)
{
	int t = kinds[f].table;

	for (int64_t c = 0; c < table_dims[t]; c++)
		plain->sums[t][row * table_dims[t] + c] += by * gradient[c];
	plain->touched[t][row]++;
}

static double denominator_of_bag(int f, const struct drawn *d, size_t first, size_t count,
				 enum embeng_combiner_name combiner, enum embeng_policy policy)
{
	double sum = 0;

	if (combiner == EMBENG_SUM || f == 1 || kinds[f].sequence)
		return 1;
	for (size_t k = first; k < first + count; k++) {
		double w = f == 0 || f == 3 ? (double)d->weights[k] : 1;

		if (row_of_id(f, d->ids[k], policy) != -2)
			sum += combiner == EMBENG_MEAN ? w : w * w;
	}
	return combiner == EMBENG_MEAN ? sum : sqrt(sum);
}

static void add_feature(struct plain *plain, int f, const struct drawn *d,
			enum embeng_combiner_name combiner, enum embeng_policy policy)
{
	int64_t dim = table_dims[kinds[f].table];
	size_t at = 0;

	for (size_t s = 0; s < d->samples; at += (size_t)d->lengths[s++]) {
		double by = denominator_of_bag(f, d, at, (size_t)d->lengths[s], combiner, policy);
		size_t position = 0;

		for (size_t k = 0; k < (size_t)d->lengths[s]; k++) {
			int64_t row = row_of_id(f, d->ids[at + k], policy);
			double w = f == 0 || f == 3 ? (double)d->weights[at + k] : 1;
			size_t output = kinds[f].sequence ? s * LONGEST + position : s;

			position += row != -2;
			if (kinds[f].sequence && position > LONGEST)
				break;
			if (row >= 0 && by != 0)
				add_plain(plain, f, row, w / by,
					  d->gradients + output * (size_t)dim);
		}
	}
}

static double norm_of_table(const struct plain *plain, int t, bool by_frequency)
{
	double square = 0;

	for (int64_t r = 0; r < table_rows[t]; r++) {
		double by = by_frequency && plain->touched[t][r] > 0 ? plain->touched[t][r] : 1;

		for (int64_t c = 0; c < table_dims[t]; c++)
			square += pow(plain->sums[t][r * table_dims[t] + c] / by, 2);
	}
	return sqrt(square);
}

static void expect_near(double got, double want, double tolerance)
{
	ck_assert_msg(fabs(got - want) <= tolerance * (1 + fabs(want)), "%.17g, not %.17g", got,
		      want);
}

/* The length of all rows: that of the step, where they held zeros before and the rate is 1. */
static double norm_of_rows(struct embeng *e, int t)
{
	float rows[7 * 18];
	double square = 0;

	ck_assert_int_eq(embeng_rows_read(e, t, NULL, NULL, (size_t)table_rows[t], rows), 0);
	for (int64_t i = 0; i < table_rows[t] * table_dims[t]; i++)
		square += (double)rows[i] * rows[i];
	return sqrt(square);
}

static void update_parts(struct embeng *e, struct part *parts, float multiplier)
{
	for (size_t k = 0; k < PARTS; k++) {
		parts[k].g.multiplier = multiplier;
		ck_assert_int_eq(embeng_update(e, parts[k].b, &parts[k].g, -1), 0);
	}
}

static void compare_norms(enum embeng_combiner_name combiner, enum embeng_policy policy,
			  bool by_frequency)
{
	struct embeng_optimizer sgd = embeng_sgd(1);
	struct plain plain = {0};
	double tables[2], all;
	struct embeng_gradient_norms norms = {
		.size = sizeof(norms), .tables = tables, .table_count = 2};
	struct part parts[PARTS];
	struct embeng *e;

	sgd.scale_by_frequency = by_frequency;
	e = open_kinds(combiner, policy, sgd);
	for (uint32_t k = 0; k < PARTS; k++) {
		fill_part(e, &parts[k], k, policy != EMBENG_POLICY_ERROR);
		for (int f = 0; f < KINDS; f++)
			add_feature(&plain, f, &parts[k].drawn[f], combiner,
				    kinds[f].table ? policy : EMBENG_POLICY_ERROR);
	}
	ck_assert_int_eq(ask_norm(e, parts, PARTS, &norms), 0);
	all = hypot(norm_of_table(&plain, 0, by_frequency), norm_of_table(&plain, 1, by_frequency));
	expect_near(norms.norm, all, 1e-13);
	expect_near(tables[0], norm_of_table(&plain, 0, by_frequency), 1e-13);
	expect_near(tables[1], norm_of_table(&plain, 1, by_frequency), 1e-13);
	ck_assert_int_eq(norms.non_finite, 0);
	ck_assert_int_eq(norms.feature, -1);
	update_parts(e, parts, 1);
	expect_near(norm_of_rows(e, 0), tables[0], 1e-5);
	expect_near(norm_of_rows(e, 1), tables[1], 1e-5);
	free_parts(parts, PARTS);
	embeng_close(e);
}

START_TEST(tells_its_seed)
{
	printf("seed %llu\n", (unsigned long long)random_state.state);
}
END_TEST

START_TEST(norms_are_those_of_the_summed_rows)
{
	const enum embeng_policy policies[] = {EMBENG_POLICY_ERROR, EMBENG_POLICY_CLAMP,
					       EMBENG_POLICY_DROP, EMBENG_POLICY_ZERO};
	const enum embeng_combiner_name combiners[] = {EMBENG_SUM, EMBENG_MEAN, EMBENG_SQRTN};

	for (int round = 0; round < 10; round++)
		for (size_t c = 0; c < 3; c++)
			for (size_t p = 0; p < 4; p++)
				compare_norms(combiners[c], policies[p], round % 2);
}
END_TEST

/* -- the numbers of torch ------------------------------------------------- */

#define TORCH_ROWS 5
#define TORCH_DIM 3

static const int64_t torch_ids[] = {1, 2, 1, 4, 0, 3, 3}, torch_starts[] = {0, 3, 3, 5};
static const float torch_weights[] = {0.5f, -1.25f, 2, 3, 0.75f, 1, -0.5f};
static const float torch_gradients[] = {1, -2, 0.5f, 9, 9, 9, 0.25f, 4, -1, -3, 0.125f, 2};

static struct embeng *open_torch(bool by_frequency)
{
	struct embeng_optimizer sgd = embeng_sgd(1);
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = TORCH_ROWS,
					.dim = TORCH_DIM,
					.combiner = EMBENG_SUM,
					.initializer = {.kind = EMBENG_INIT_CONSTANT}};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	sgd.scale_by_frequency = by_frequency;
	t.optimizer = sgd;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

static struct embeng_batch *fill_torch(struct embeng *e, bool weighted, bool padded)
{
	const struct embeng_bags bags = {.size = sizeof(bags),
					 .type = EMBENG_I64,
					 .ids = torch_ids,
					 .id_count = 7,
					 .form = EMBENG_BAGS_STARTS,
					 .bound_type = EMBENG_I64,
					 .bounds = torch_starts,
					 .bound_count = 4,
					 .weights = weighted ? torch_weights : NULL,
					 .weight_count = weighted ? 7 : 0,
					 .has_padding = padded,
					 .padding = 1};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);

	ck_assert_int_eq(embeng_batch_bags(b, 0, &bags), 0);
	return b;
}

static double torch_norm(bool weighted, bool padded, bool by_frequency)
{
	const float *features[] = {torch_gradients};
	const struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	const struct embeng_gradients *gradients[] = {&g};
	struct embeng *e = open_torch(by_frequency);
	struct embeng_batch *b = fill_torch(e, weighted, padded);
	struct embeng_gradient_norms norms = {.size = sizeof(norms)};

	ck_assert_int_eq(embeng_gradient_norm(e, &b, gradients, 1, &norms), 0);
	embeng_batch_free(b);
	embeng_close(e);
	return norms.norm;
}

/*
 * torch 2.13.0: EmbeddingBag(mode="sum") with per_sample_weights, weight.grad.double().norm(); with
 * padding_idx=1; then Embedding(scale_grad_by_freq=True) of the ids, each with the gradient of its bag.
 * (EmbeddingBag with scale_grad_by_freq divides by counts of other rows.)
 */
START_TEST(norms_are_those_of_torch)
{
	expect_near(torch_norm(true, false, false), 14.40241950159764, 1e-15);
	expect_near(torch_norm(true, true, false), 13.214280128479004, 1e-7);
	expect_near(torch_norm(false, false, true), 7.592142319530107, 1e-15);
}
END_TEST

/* clip_grad_norm_([weight, other], 1.5) where other.grad is (3, 4): weight.grad after it. */
START_TEST(a_step_is_clipped_as_by_torch)
{
	const float want[] = {0.018447890877723694f, 0.2951662540435791f,   -0.07379156351089478f,
			      0.24597185850143433f,  -0.49194371700286865f, 0.12298592925071716f,
			      -0.12298592925071716f, 0.24597185850143433f,  -0.06149296462535858f,
			      -0.14758312702178955f, 0.006149296648800373f, 0.09838874638080597f,
			      0.07379156351089478f,  1.1806650161743164f,   -0.2951662540435791f};
	const float *features[] = {torch_gradients};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	struct embeng *e = open_torch(false);
	struct embeng_batch *b = fill_torch(e, true, false);
	double norm = hypot(torch_norm(true, false, false), 5);
	float rows[TORCH_ROWS * TORCH_DIM];

	g.multiplier = norm > 1.5 ? (float)(1.5 / norm) : 1;
	ck_assert_int_eq(embeng_update(e, b, &g, -1), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, TORCH_ROWS, rows), 0);
	for (int i = 0; i < TORCH_ROWS * TORCH_DIM; i++)
		expect_near(-rows[i], want[i], 4e-7);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

/* -- replicas, steps, empty parts ----------------------------------------- */

/* The change of all rows has the length of the limit, whichever replica touched them. */
START_TEST(a_step_of_replicas_is_clipped)
{
	struct embeng *e = open_kinds(EMBENG_MEAN, EMBENG_POLICY_ERROR, embeng_sgd(1));
	struct embeng_gradient_norms norms = {.size = sizeof(norms)};
	struct part parts[PARTS];

	fill_part(e, &parts[0], 0, false);
	fill_part(e, &parts[1], 1, false);
	ck_assert_int_eq(ask_norm(e, parts, PARTS, &norms), 0);
	ck_assert_double_gt(norms.norm, 0.25);
	update_parts(e, parts, (float)(0.25 / norms.norm));
	expect_near(hypot(norm_of_rows(e, 0), norm_of_rows(e, 1)), 0.25, 1e-5);
	free_parts(parts, PARTS);
	embeng_close(e);
}
END_TEST

/* A batch that was enqueued and dequeued has the norm that it had before. */
START_TEST(a_view_has_the_norm_of_its_batch)
{
	struct embeng *e = open_kinds(EMBENG_SQRTN, EMBENG_POLICY_DROP, embeng_sgd(1));
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_gradient_norms before = {.size = sizeof(before)}, after = before;
	struct part part;

	fill_part(e, &part, 1, true);
	ck_assert_int_eq(ask_norm(e, &part, 1, &before), 0);
	ck_assert_int_eq(embeng_enqueue(e, part.b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 1, -1, &a), 0);
	ck_assert_int_eq(ask_norm(e, &part, 1, &after), 0);
	ck_assert_msg(before.norm == after.norm, "%a, then %a", before.norm, after.norm);
	ck_assert_double_gt(after.norm, 0);
	ck_assert_int_eq(embeng_apply_gradients(e, &part.g, -1), 0);
	free_parts(&part, 1);
	embeng_close(e);
}
END_TEST

START_TEST(nothing_has_the_norm_0)
{
	struct embeng *e = open_kinds(EMBENG_MEAN, EMBENG_POLICY_ERROR, embeng_sgd(1));
	double tables[2] = {7, 7};
	struct embeng_gradient_norms norms = {
		.size = sizeof(norms), .norm = 7, .tables = tables, .table_count = 2};
	struct part part;

	ck_assert_int_eq(embeng_gradient_norm(e, NULL, NULL, 0, &norms), 0);
	ck_assert_double_eq(norms.norm, 0);
	ck_assert_double_eq(tables[0], 0);
	ck_assert_double_eq(tables[1], 0);
	fill_part(e, &part, 0, false);
	for (int f = 0; f < KINDS; f++)
		part.features[f] = NULL;
	norms.norm = 7;
	ck_assert_int_eq(ask_norm(e, &part, 1, &norms), 0);
	ck_assert_double_eq(norms.norm, 0);
	for (int f = 0; f < KINDS; f++) {
		const int64_t none[] = {0};

		ck_assert_int_eq(
			f == 1 ? embeng_batch_dense(part.b, f, EMBENG_I64, NULL, 0, none, 1)
			       : embeng_batch_ragged(part.b, f, EMBENG_I64, NULL, 0, NULL, 0, NULL,
						     0),
			0);
		part.features[f] = part.drawn[f].gradients;
		part.elements[f] = 0;
	}
	norms.norm = 7;
	ck_assert_int_eq(ask_norm(e, &part, 1, &norms), 0);
	ck_assert_double_eq(norms.norm, 0);
	free_parts(&part, 1);
	embeng_close(e);
}
END_TEST

/* Occurrences of a feature without gradients are occurrences, as in the update. */
START_TEST(frequency_counts_features_without_gradients)
{
	struct embeng_optimizer sgd = embeng_sgd(1);
	struct embeng_gradient_norms norms = {.size = sizeof(norms)};
	struct part parts[PARTS];
	struct embeng *e;

	sgd.scale_by_frequency = true;
	e = open_kinds(EMBENG_MEAN, EMBENG_POLICY_ERROR, sgd);
	fill_part(e, &parts[0], 0, false);
	fill_part(e, &parts[1], 1, false);
	parts[0].features[0] = parts[1].features[4] = NULL;
	ck_assert_int_eq(ask_norm(e, parts, PARTS, &norms), 0);
	update_parts(e, parts, 1);
	expect_near(hypot(norm_of_rows(e, 0), norm_of_rows(e, 1)), norms.norm, 1e-5);
	free_parts(parts, PARTS);
	embeng_close(e);
}
END_TEST

START_TEST(frozen_tables_count_nothing)
{
	struct embeng *e = open_kinds(EMBENG_SUM, EMBENG_POLICY_ERROR, embeng_sgd(1));
	double tables[2], both;
	struct embeng_gradient_norms norms = {
		.size = sizeof(norms), .tables = tables, .table_count = 2};
	struct part part;

	fill_part(e, &part, 0, false);
	ck_assert_int_eq(ask_norm(e, &part, 1, &norms), 0);
	both = norms.norm;
	ck_assert_double_gt(tables[1], 0);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 1), 0);
	part.drawn[3].gradients[0] = NAN;
	ck_assert_int_eq(ask_norm(e, &part, 1, &norms), 0);
	ck_assert_int_eq(norms.non_finite, 0);
	ck_assert_double_eq(tables[1], 0);
	ck_assert_double_eq(norms.norm, tables[0]);
	ck_assert_double_lt(norms.norm, both);
	free_parts(&part, 1);
	embeng_close(e);
}
END_TEST

/* Rows whose numbers have the same low bits, or the same high ones, are not each other's. */
START_TEST(far_rows_are_apart)
{
	const int64_t ids[] = {1, 4194305, 2049, 1, 4194305, 2050, 2049}, shape[] = {7};
	const float numbers[] = {1, 10, 100, 2, 20, 1000, 200}, *features[] = {numbers};
	const struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	const struct embeng_gradients *gradients[] = {&g};
	struct embeng_table_config t = {.size = sizeof(t),
					.vocabulary_size = 4194306,
					.dim = 1,
					.optimizer = embeng_sgd(1),
					.initializer = {.kind = EMBENG_INIT_CONSTANT}};
	struct embeng_feature_config f = {.size = sizeof(f)};
	struct embeng_gradient_norms norms = {.size = sizeof(norms)};
	struct embeng_model *m = embeng_model_new();
	struct embeng_batch *b;
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 7, shape, 1), 0);
	ck_assert_int_eq(embeng_gradient_norm(e, &b, gradients, 1, &norms), 0);
	ck_assert_double_eq(norms.norm, sqrt(3 * 3 + 30 * 30 + 300 * 300 + 1000 * 1000));
	embeng_batch_free(b);
	embeng_model_free(m);
	embeng_close(e);
}
END_TEST

/* -- what is told and refused ---------------------------------------------- */

struct asked {
	struct embeng *e;
	struct embeng_batch *b;
	float gradients[2][12];
	struct embeng_gradients g[2];
	const float *features[2];
	double table;
	struct embeng_gradient_norms norms;
};

/* The batch twice, with gradients of its own each time. */
static void open_asked(struct asked *a)
{
	*a = (struct asked){.e = open_torch(false)};
	a->b = fill_torch(a->e, true, false);
	for (int k = 0; k < 2; k++) {
		memcpy(a->gradients[k], torch_gradients, sizeof(torch_gradients));
		a->features[k] = a->gradients[k];
		a->g[k] = (struct embeng_gradients){
			.size = sizeof(a->g[k]), .count = 1, .features = &a->features[k]};
	}
	a->norms = (struct embeng_gradient_norms){
		.size = sizeof(a->norms), .norm = -7, .tables = &a->table, .table_count = 1};
}

static void close_asked(struct asked *a)
{
	embeng_batch_free(a->b);
	embeng_close(a->e);
}

static int ask_again(struct asked *a)
{
	struct embeng_batch *const batches[] = {a->b, a->b};
	const struct embeng_gradients *const gradients[] = {&a->g[0], &a->g[1]};

	return embeng_gradient_norm(a->e, batches, gradients, 2, &a->norms);
}

static void expect_told(const struct asked *a, size_t part, size_t element)
{
	ck_assert_int_eq(a->norms.non_finite, 1);
	ck_assert_uint_eq(a->norms.part, part);
	ck_assert_int_eq(a->norms.feature, 0);
	ck_assert_uint_eq(a->norms.sample, element / TORCH_DIM);
	ck_assert_uint_eq(a->norms.element, element);
}

/* Sample 1 has no ids, so its gradients reach no row: an update refuses them all the same. */
START_TEST(numbers_that_are_not_finite_are_told)
{
	struct asked a;
	double finite;

	open_asked(&a);
	ck_assert_int_eq(ask_again(&a), 0);
	ck_assert_int_eq(a.norms.non_finite, 0);
	finite = a.norms.norm;
	a.gradients[1][5] = -INFINITY;
	ck_assert_int_eq(ask_again(&a), 0);
	expect_told(&a, 1, 5);
	ck_assert_double_eq(a.norms.norm, finite);
	a.gradients[1][4] = NAN;
	ck_assert_int_eq(ask_again(&a), 0);
	expect_told(&a, 1, 4);
	a.gradients[0][8] = INFINITY;
	ck_assert_int_eq(ask_again(&a), 0);
	expect_told(&a, 0, 8);
	ck_assert(isinf(a.norms.norm) && a.norms.norm > 0 && a.table > 0 && isinf(a.table));
	a.gradients[0][0] = -NAN;
	ck_assert_int_eq(ask_again(&a), 0);
	expect_told(&a, 0, 0);
	ck_assert(isnan(a.norms.norm) && !signbit(a.norms.norm));
	ck_assert(isnan(a.table) && !signbit(a.table));
	a.gradients[0][0] = 1;
	a.gradients[0][8] = -1;
	a.gradients[1][4] = a.gradients[1][5] = 9;
	ck_assert_int_eq(ask_again(&a), 0);
	ck_assert_int_eq(a.norms.non_finite, 0);
	ck_assert_int_eq(a.norms.feature, -1);
	ck_assert_uint_eq(a.norms.element, 0);
	ck_assert_double_eq(a.norms.norm, finite);
	close_asked(&a);
}
END_TEST

/* The update that would bring what was told is refused, and names the same place. */
START_TEST(what_is_told_is_what_an_update_refuses)
{
	const float zeros[TORCH_ROWS * TORCH_DIM] = {0};
	float rows[TORCH_ROWS * TORCH_DIM];
	struct asked a;

	open_asked(&a);
	for (size_t i = 0; i < 12; i++) {
		char place[64];

		a.gradients[0][i] = i % 2 ? NAN : INFINITY;
		ck_assert_int_eq(ask_again(&a), 0);
		expect_told(&a, 0, i);
		ck_assert_int_eq(embeng_update(a.e, a.b, &a.g[0], -1), -ERANGE);
		snprintf(place, sizeof(place), "feature f, sample %zu, column %zu (element %zu)",
			 a.norms.sample, i % TORCH_DIM, a.norms.element);
		expect_text(place);
		a.gradients[0][i] = torch_gradients[i];
	}
	ck_assert_int_eq(embeng_rows_read(a.e, 0, NULL, NULL, TORCH_ROWS, rows), 0);
	expect_floats(rows, zeros, TORCH_ROWS * TORCH_DIM);
	close_asked(&a);
}
END_TEST

/* Sums of the largest numbers do not leave f64. */
START_TEST(large_gradients_have_a_norm)
{
	struct asked a;

	open_asked(&a);
	for (int i = 0; i < 12; i++)
		a.gradients[0][i] = a.gradients[1][i] = FLT_MAX;
	ck_assert_int_eq(ask_again(&a), 0);
	/* Weights of rows 0 to 4 add up to 0.75, 2.5, -1.25, 0.5 and 3; two parts, three columns. */
	expect_near(a.norms.norm / (double)FLT_MAX,
		    2 * sqrt(3 * (0.5625 + 6.25 + 1.5625 + 0.25 + 9)), 1e-14);
	ck_assert_int_eq(a.norms.non_finite, 0);
	close_asked(&a);
}
END_TEST

static void expect_refused(struct asked *a, int code, const char *text)
{
	ck_assert_int_eq(ask_again(a), code);
	expect_text(text);
	ck_assert_double_eq(a->norms.norm, -7);
	ck_assert_double_eq(a->table, 0);
}

START_TEST(refused_gradients_have_no_norm)
{
	const size_t elements[] = {11};
	const int fences[] = {0};
	struct asked a;

	open_asked(&a);
	a.g[1].elements = elements;
	expect_refused(&a, -EINVAL,
		       "embeng_gradient_norm: feature f has gradients of 11 elements, its "
		       "activations have 12");
	a.g[1].elements = NULL;
	a.g[1].count = 2;
	expect_refused(&a, -EINVAL, "gradients of 2 features, the model has 1");
	a.g[1].count = 1;
	a.g[1].features = NULL;
	expect_refused(&a, -EINVAL, "no gradients given");
	a.g[1].features = &a.features[1];
	a.g[1].replica = 1;
	expect_refused(&a, -EINVAL, "batch is of replica 0, the gradients are of replica 1");
	a.g[1].replica = 0;
	a.g[1].fences = fences;
	a.g[1].fence_count = 1;
	expect_refused(&a, -EINVAL, "waits for no fence");
	a.g[1].fence_count = 0;
	a.g[1].size = 8;
	expect_refused(&a, -EINVAL, "with their size");
	a.g[1].size = sizeof(a.g[1]);
	a.norms.table_count = 2;
	expect_refused(&a, -EINVAL, "room for norms of 2 tables, the model has 1");
	a.norms.table_count = 1;
	a.norms.size--;
	expect_refused(&a, -EINVAL, "norms must be given, with their size");
	a.norms.size++;
	ck_assert_int_eq(embeng_gradient_norm(a.e, NULL, NULL, 1, &a.norms), -EINVAL);
	expect_text("batches of 1 parts are NULL");
	ck_assert_int_eq(embeng_gradient_norm(NULL, NULL, NULL, 0, &a.norms), -EINVAL);
	ck_assert_int_eq(embeng_gradient_norm(a.e, NULL, NULL, 0, NULL), -EINVAL);
	ck_assert_int_eq(ask_again(&a), 0);
	close_asked(&a);
}
END_TEST

/* Ids, weights and splits are looked at when the norm is asked for. */
START_TEST(refused_batches_have_no_norm)
{
	int64_t ids[] = {1, 2, 3, 4}, splits[] = {0, 1, 3, 3, 4};
	float weights[] = {1, 1, 1, 1};
	struct asked a;

	open_asked(&a);
	ck_assert_int_eq(
		embeng_batch_ragged_splits(a.b, 0, EMBENG_I64, ids, 4, splits, 5, weights, 4), 0);
	ids[2] = 5;
	expect_refused(&a, -ERANGE,
		       "feature f, sample 1: id 5 is outside table t, which has rows 0 to 4");
	ids[2] = -1;
	expect_refused(&a, -ERANGE, "feature f, sample 1: id -1");
	ids[2] = 0;
	weights[3] = NAN;
	expect_refused(&a, -ERANGE, "feature f, sample 3: weight 3 is nan");
	weights[3] = 0;
	for (int i = 0; i < 5; i++) {
		const int64_t wrong[] = {5, -1, INT64_MAX, INT64_MIN};
		int64_t right = splits[i];

		for (size_t k = 0; k < 4; k++) {
			splits[i] = wrong[k];
			expect_refused(&a, -EINVAL, "the row splits have changed");
		}
		splits[i] = right;
	}
	/* The first id would be nobody's. */
	splits[0] = 1;
	expect_refused(&a, -EINVAL, "the row splits have changed");
	/* Each bag is within the ids, but together they are more. */
	splits[0] = splits[2] = splits[3] = 0;
	splits[1] = splits[4] = 4;
	expect_refused(&a, -EINVAL, "feature f, sample 1");
	splits[1] = 0;
	splits[2] = splits[3] = 4;
	ck_assert_int_eq(ask_again(&a), 0);
	close_asked(&a);
}
END_TEST

RUN_SUITE("gradient norm", tells_its_seed, norms_are_those_of_the_summed_rows,
	  norms_are_those_of_torch, a_step_is_clipped_as_by_torch, a_step_of_replicas_is_clipped,
	  a_view_has_the_norm_of_its_batch, nothing_has_the_norm_0,
	  frequency_counts_features_without_gradients, frozen_tables_count_nothing,
	  far_rows_are_apart, numbers_that_are_not_finite_are_told,
	  what_is_told_is_what_an_update_refuses, large_gradients_have_a_norm,
	  refused_gradients_have_no_norm, refused_batches_have_no_norm)
