/* SPDX-License-Identifier: MIT */
/* A model whose tables make several stacks, and batches of it. */
#ifndef PREPROCESS_HELP_H
#define PREPROCESS_HELP_H

#include "session_help.h"
#include "embeng/stacking.h"

#define TABLES 5
#define FEATURES 6
#define MOST_IDS 64
#define SAMPLES 8

/* Tables, not in the order of their names; d is of another width and has no feature. */
static const struct {
	const char *name;
	int64_t rows, dim;
	enum embeng_combiner_name combiner;
} table_specs[TABLES] = {
	{"m", 100, 4, EMBENG_SUM}, {"a", 300, 4, EMBENG_MEAN},	{"z", 70, 12, EMBENG_SQRTN},
	{"d", 40, 20, EMBENG_SUM}, {"c", 33, 12, EMBENG_SQRTN},
};

static const struct {
	const char *name;
	int table;
	int64_t samples;
} feature_specs[FEATURES] = {
	{"f0", 4, SAMPLES}, {"f1", 0, SAMPLES / 2}, {"f2", 2, SAMPLES},
	{"f3", 1, SAMPLES}, {"f4", 0, SAMPLES},	    {"f5", 1, SAMPLES / 2},
};

/* Ids of all features: dense, ragged or sparse by turns. */
struct ids {
	int64_t ids[FEATURES][MOST_IDS], lengths[FEATURES][SAMPLES], places[FEATURES][2 * MOST_IDS];
	float weights[FEATURES][MOST_IDS];
	size_t counts[FEATURES];
};

static inline void put_table(struct embeng_model *m, int table)
{
	struct embeng_table_config c = {.size = sizeof(c),
					.name = table_specs[table].name,
					.vocabulary_size = table_specs[table].rows,
					.dim = table_specs[table].dim,
					.combiner = table_specs[table].combiner,
					.optimizer = embeng_sgd(0.5f)};

	ck_assert_int_ge(embeng_model_add_table(m, &c), 0);
}

static inline void put_feature(struct embeng_model *m, int feature, int table)
{
	struct embeng_feature_config c = {.size = sizeof(c),
					  .name = feature_specs[feature].name,
					  .table = table,
					  .output_rank = 1,
					  .output_shape = {feature_specs[feature].samples}};

	ck_assert_int_ge(embeng_model_add_feature(m, &c), 0);
}

static inline struct embeng_model *whole_model(void)
{
	struct embeng_model *m = embeng_model_new();

	for (int t = 0; t < TABLES; t++)
		put_table(m, t);
	for (int f = 0; f < FEATURES; f++)
		put_feature(m, f, feature_specs[f].table);
	return m;
}

/* The tables of one stack alone, in its order, and their features. */
static inline struct embeng_model *stack_model(const struct embeng_stack *stack)
{
	struct embeng_model *m = embeng_model_new();

	for (size_t k = 0; k < stack->table_count; k++)
		put_table(m, stack->tables[k]);
	for (size_t k = 0; k < stack->feature_count; k++) {
		int f = stack->features[k];

		put_feature(m, f, embeng_model_table(m, table_specs[feature_specs[f].table].name));
	}
	return m;
}

static inline struct embeng *opened(struct embeng_model *m)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static inline struct embeng_stacking *stacking_of(enum embeng_partition_flavour flavour)
{
	const struct embeng_stacking_options o = {
		.size = sizeof(o), .flavour = flavour, .sparse_cores = 4, .cores_per_device = 2};
	struct embeng_model *m = whole_model();
	struct embeng_stacking *s = NULL;

	ck_assert_int_eq(embeng_stacking_make(m, &o, &s), 0);
	embeng_model_free(m);
	return s;
}

static inline uint32_t draw(uint64_t *state, uint64_t limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % limit);
}

static inline void draw_feature(struct ids *ids, int f, uint64_t *state)
{
	int64_t rows = table_specs[feature_specs[f].table].rows, samples = feature_specs[f].samples;
	size_t n = 0;

	for (int64_t s = 0; s < samples; s++) {
		ids->lengths[f][s] = f % 3 ? draw(state, MOST_IDS / SAMPLES) : 1;
		for (int64_t k = 0; k < ids->lengths[f][s]; k++, n++) {
			ids->ids[f][n] = draw(state, (uint64_t)rows);
			ids->weights[f][n] = (float)draw(state, 32) / 8.0f;
			ids->places[f][2 * n] = s;
			ids->places[f][2 * n + 1] = k;
		}
	}
	ids->counts[f] = n;
}

static inline void draw_ids(struct ids *ids, uint64_t seed)
{
	for (int f = 0; f < FEATURES; f++)
		draw_feature(ids, f, &seed);
}

/* Feature @f of the whole model as feature @as of the batch. */
static inline void put_input(struct embeng_batch *b, const struct ids *ids, int f, int as)
{
	const int64_t samples = feature_specs[f].samples, shape[] = {samples, MOST_IDS};
	size_t n = ids->counts[f];
	int ret;

	switch (f % 3) {
	case 0:
		ret = embeng_batch_dense(b, as, EMBENG_I64, ids->ids[f], n, shape, 1);
		break;
	case 1:
		ret = embeng_batch_ragged(b, as, EMBENG_I64, ids->ids[f], n, ids->lengths[f],
					  (size_t)samples, ids->weights[f], n);
		break;
	default:
		ret = embeng_batch_sparse(b, as, EMBENG_I64, ids->places[f], ids->ids[f], n, shape,
					  2, NULL, 0);
	}
	ck_assert_int_eq(ret, 0);
}

static inline struct embeng_batch *whole_batch(struct embeng *e, const struct ids *ids)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);

	for (int f = 0; f < FEATURES; f++)
		put_input(b, ids, f, f);
	return b;
}

#endif
