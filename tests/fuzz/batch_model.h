/* SPDX-License-Identifier: MIT */
/* A handle on a small device, its model made of an input's bytes through the public calls. */
#ifndef EMBENG_FUZZ_BATCH_MODEL_H
#define EMBENG_FUZZ_BATCH_MODEL_H

#include "embeng.h"
#include "fuzz.h"

#define BATCH_TABLES 2u
#define BATCH_FEATURES 3u
#define BATCH_REPLICAS 2u
#define BATCH_ROWS 8u
#define BATCH_DIM 4u

static inline int errno_of_last(void)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	return -error.code;
}

static inline void batch_table(struct fuzz *f, struct embeng_model *m)
{
	struct embeng_table_config t = {
		.size = sizeof(t),
		.vocabulary_size = 1 + fuzz_below(f, BATCH_ROWS),
		.dim = 1 + fuzz_below(f, BATCH_DIM),
		.combiner = (enum embeng_combiner_name)fuzz_below(f, 3),
		.out_of_range = (enum embeng_policy)fuzz_below(f, 4),
	};
	static const struct embeng_dynamic dynamic[] = {{"weight_decay_factor", "rate"},
							{"clip_weight_max", "other"}};
	const struct embeng_optimizer kinds[] = {embeng_sgd(0.5f), embeng_adagrad(0.5f), {0}};

	/* By what was drawn already, so that inputs found before mean what they did, nearly. */
	if (t.combiner == EMBENG_SQRTN && t.dim % 2)
		t.combiner = EMBENG_MAX;
	t.optimizer = kinds[fuzz_below(f, 3)];
	if (t.optimizer.kind && fuzz_rarely(f, 4))
		t.optimizer.rate_name = "rate";
	if (t.vocabulary_size % 4 == 3) {
		t.optimizer.dynamic = dynamic;
		t.optimizer.dynamic_count = 2;
	}
	embeng_model_add_table(m, &t);
}

static inline void batch_feature(struct fuzz *f, struct embeng_model *m)
{
	struct embeng_feature_config c = {
		.size = sizeof(c),
		.table = (int)fuzz_below(f, BATCH_TABLES),
		.check_weights = fuzz_rarely(f, 2),
	};
	uint64_t shape = fuzz_take(f, 1);

	c.output_rank = shape % 4;
	c.v1_dense_zero_is_padding = shape >= 192;

	if (c.output_rank)
		for (size_t i = 0; i < c.output_rank; i++)
			c.output_shape[i] = fuzz_below(f, 4);
	else
		c.max_sequence_length = fuzz_below(f, 4);
	embeng_model_add_feature(m, &c);
}

/* Return: NULL when memory ran out or the bytes make no model. */
static inline struct embeng *batch_open(struct fuzz *f)
{
	uint32_t replicas = 1 + fuzz_below(f, BATCH_REPLICAS);
	uint64_t flags = fuzz_take(f, 1);
	struct embeng_engine_config c = {.size = sizeof(c),
					 .replicas = replicas,
					 .pipelining = flags % 4 == 3,
					 .fixed_shapes = flags / 4 % 2,
					 .non_finite = (enum embeng_non_finite)fuzz_below(f, 3)};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	if (!m)
		return NULL;
	embeng_model_set_engine(m, &c);
	for (uint32_t i = 0; i < BATCH_TABLES; i++)
		batch_table(f, m);
	for (uint32_t i = fuzz_below(f, BATCH_FEATURES + 1); i; i--)
		batch_feature(f, m);
	if (embeng_open("soft:cores=1,memory=16M", m, &e, &error))
		fuzz_check(error.code < 0 && error.text[0] && !e, "%d: '%s'", error.code,
			   error.text);
	embeng_model_free(m);
	return e;
}

#endif
