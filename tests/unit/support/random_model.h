/* SPDX-License-Identifier: MIT */
/* Models of random tables and features, from a seed, for plans of hosts. */
#ifndef TEST_RANDOM_MODEL_H
#define TEST_RANDOM_MODEL_H

#include "test_model.h"

static inline uint32_t draw_below(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % below;
}

static inline struct embeng_optimizer random_optimizer(uint32_t *state)
{
	struct embeng_optimizer o;

	switch (draw_below(state, 7)) {
	case 0:
		return (struct embeng_optimizer){.size = sizeof(o)};
	case 1:
		return embeng_sgd(0.1f);
	case 2:
		return embeng_adagrad(0.1f);
	case 3:
		return embeng_adam(0.1f);
	case 4:
		return embeng_rowwise_adagrad(0.1f);
	case 5:
		o = embeng_ftrl(0.1f);
		o.max_norm = 1.0f;
		return o;
	default:
		o = embeng_momentum(0.1f);
		o.use_gradient_accumulation = EMBENG_OFF;
		return o;
	}
}

/* Sizes from a row to millions of rows, and from one column to hundreds. */
static inline void add_random_table(struct embeng_model *m, uint32_t *state)
{
	struct embeng_table_config c = table_config(NULL);

	c.vocabulary_size = 1 + draw_below(state, 1u << draw_below(state, 23));
	c.dim = 1 + draw_below(state, 1u << draw_below(state, 10));
	c.combiner = (enum embeng_combiner_name)draw_below(state, 4);
	c.optimizer = random_optimizer(state);
	ck_assert_int_ge(embeng_model_add_table(m, &c), 0);
}

static inline struct embeng_model *random_model(uint32_t seed)
{
	struct embeng_model *m = embeng_model_new();
	uint32_t state = seed, tables = 1 + draw_below(&state, 40);

	for (uint32_t t = 0; t < tables; t++)
		add_random_table(m, &state);
	for (uint32_t f = draw_below(&state, 60); f; f--) {
		struct embeng_feature_config c = feature_config(NULL);

		c.table = (int)draw_below(&state, tables);
		c.max_sequence_length = draw_below(&state, 3) ? 0 : 1 + draw_below(&state, 20);
		ck_assert_int_ge(embeng_model_add_feature(m, &c), 0);
	}
	ck_assert_int_eq(
		embeng_model_set_engine(
			m,
			&EMBENG_INIT(embeng_engine_config, .replicas = 1 + draw_below(&state, 20),
				     .pipelining = (int)draw_below(&state, 2),
				     .non_finite = (enum embeng_non_finite)draw_below(&state, 3))),
		0);
	return m;
}

#endif
