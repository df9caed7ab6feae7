/* SPDX-License-Identifier: MIT */
/* Tables of any optimizer with any options: as the engine reads them and as reference.h does. */
#ifndef EMBENG_TESTS_RANDOM_TABLE_H
#define EMBENG_TESTS_RANDOM_TABLE_H

#include <string.h>

#include "engine/types.h"
#include "uapi/embeng_engine.h"
#include "reference.h"

struct drawing {
	u64 state;
};

static inline u32 draw_below(struct drawing *d, u32 below)
{
	d->state = d->state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)((d->state >> 33) % below);
}

static inline float draw_gradient(struct drawing *d)
{
	return (float)((int)draw_below(d, 20001) - 10000) / 7919.0f;
}

static inline u32 bits_of(float x)
{
	u32 bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* By enum ref_optimizer: what the engine calls it, its slots and where they start. */
/* clang-format off */
static const struct {
	u8 kind, slots;
	float start[3];
	float hyper[12][3]; /* any of each three will do */
} random_optimizers[] = {
	[REF_SGD] = { .kind = EMBENG_OPTIMIZER_SGD },
	[REF_ADAGRAD] = { EMBENG_OPTIMIZER_ADAGRAD, 1, { 0.1f }, { { 0, 0, 1e-3f } } },
	[REF_ADAGRAD_MOMENTUM] = { EMBENG_OPTIMIZER_ADAGRAD_MOMENTUM, 2, { 0.0f, 0.0f },
				   { { 0.0f, 0.9f, -0.25f }, { 0, 1, 0 }, { 2, 2, 3 },
				     { 1.0f, 1.0f, 0.75f }, { 1e-10f, 1e-3f, 1 } } },
	[REF_FTRL] = { EMBENG_OPTIMIZER_FTRL, 2, { 0.1f, 0.0f },
		       { { -0.5f, -0.5f, -0.75f }, { 0.0f, 0.01f, 0.5f }, { 0.0f, 0.01f, 1 },
			 { 0, 0.5f, 0 }, { 0, 1, 0 } } },
	[REF_ADAM] = { EMBENG_OPTIMIZER_ADAM, 2, { 0.0f, 0.0f },
		       { { 0.9f, 0.5f, 0.0f }, { 0.999f, 0.99f, 0.5f }, { 1e-7f, 1e-3f, 1 },
			 { 1, 0, 1 }, { 0, 1, 1 }, { 0, 1, 0 } } },
	[REF_MOMENTUM] = { EMBENG_OPTIMIZER_MOMENTUM, 1, { 0 },
			   { { 0.9f, -0.5f, 0.0f }, { 0, 1, 0 } } },
	[REF_LION] = { EMBENG_OPTIMIZER_LION, 1, { 0 },
		       { { 0.9f, 0.5f, 0.0f }, { 0.99f, 0.9f, 0.0f } } },
	[REF_RMS_PROP] = { EMBENG_OPTIMIZER_RMS_PROP, 2, { 0 },
			   { { 0.9f, 0.5f, 1 }, { 0, 0.9f, -0.5f }, { 1e-10f, 1e-3f, 1 } } },
	[REF_CENTERED_RMS_PROP] = { EMBENG_OPTIMIZER_CENTERED_RMS_PROP, 3, { 0 },
				    { { 0.9f, 0.5f, 1 }, { 0, 0.9f, -0.5f }, { 1e-3f, 0.1f, 1 } } },
	[REF_ADADELTA] = { EMBENG_OPTIMIZER_ADADELTA, 2, { 0 },
			   { { 0.95f, 0.5f, 1 }, { 1e-8f, 1e-3f, 1 } } },
	[REF_PROXIMAL_ADAGRAD] = { EMBENG_OPTIMIZER_PROXIMAL_ADAGRAD, 1, { 0.1f },
				   { { 0, 0.01f, 0.5f }, { 0, 0.01f, 1 } } },
	[REF_ASSIGN] = { .kind = EMBENG_OPTIMIZER_ASSIGN },
	[REF_LAPROP] = { EMBENG_OPTIMIZER_LAPROP, 2, { 0 },
			 { { 0.9f, 0.5f, 0 }, { 0.95f, 0.99f, 0 }, { 1e-30f, 1e-3f, 1 } } },
	[REF_PROXIMAL_YOGI] = { EMBENG_OPTIMIZER_PROXIMAL_YOGI, 2, { 1e-6f, 0 },
				{ { 0, 0.01f, 0.5f }, { 0, 0.01f, 1 }, { 0.9f, 0.5f, 0 },
				  { 0.999f, 0.9f, 0 }, { 1e-3f, 0.1f, 1 } } },
	[REF_BOUNDED_ADAGRAD] = { EMBENG_OPTIMIZER_BOUNDED_ADAGRAD, 1, { 0.1f },
				  { { 0, 1, 1 }, { 0, 0.1f, 0.01f }, { 0, 0.5f, 0.15f } } },
	[REF_ONLINE_YOGI] = { EMBENG_OPTIMIZER_ONLINE_YOGI, 2, { 0.1f, 0 },
			      { { 0, 0.01f, 0.5f }, { 0, 0.01f, 1 }, { 0.999f, 0.9f, 0 } } },
	[REF_FREQUENCY_ESTIMATOR] = { EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR, 1, { 0 },
				      { { 0.01f, 0.5f, 1 }, { 100, 1, 0.5f }, { 10, 1, 0 },
					{ 1, 0.5f, -1 } } },
	[REF_FREQUENCY_AWARE_ADAGRAD] = { EMBENG_OPTIMIZER_FREQUENCY_AWARE_ADAGRAD, 2, { 0.1f, 0 },
					  { { 0, 0.01f, 0.1f }, { 0, 0.01f, 0.1f },
					    { 1e6f, 1.5f, 1 }, { 0.5f, 0.75f, 0 },
					    { 1, 0.9f, 0 }, { 0.1f, 0.5f, 0.1f } } },
	[REF_MDL_ADAGRAD_LIGHT] = { EMBENG_OPTIMIZER_MDL_ADAGRAD_LIGHT, 3, { 0.1f, 0, 0 },
				    { { 0, 0.01f, 1 }, { -0.5f, -0.75f, 0 }, { 0, 0.1f, -0.5f },
				      { 0, 0.5f, 0.01f }, { 0, 0.5f, 10 }, { 0, 0.25f, 1 },
				      { 0, 0.1f, 1 }, { 0, 0.1f, 1 }, { 0, 0.5f, 2 },
				      { 0, 0.1f, 0.5f }, { 0, 1, 1 }, { 0, 1, 1 } } },
};
/* clang-format on */

static inline void draw_optimizer(struct drawing *d, struct ref_table *t)
{
	t->optimizer = draw_below(d, sizeof(random_optimizers) / sizeof(random_optimizers[0]));
	for (int i = 0; i < 6; i++)
		t->hyper[i] = random_optimizers[t->optimizer].hyper[i][draw_below(d, 3)];
	t->non_lazy = (t->optimizer == REF_ADAM || t->optimizer == REF_LION) && t->accumulate &&
		      draw_below(d, 2);
	if (t->optimizer == REF_FREQUENCY_ESTIMATOR)
		t->dim = 1;
}

static inline struct embeng_record_table table_record(const struct ref_table *t)
{
	struct embeng_record_table r = {
		.rows = t->rows,
		.dim = t->dim,
		.combiner = t->combiner,
		.out_of_range = t->policy,
		.optimizer = random_optimizers[t->optimizer].kind,
		.slot_count = random_optimizers[t->optimizer].slots,
		.rate = t->dynamic ? 0 : bits_of(t->rate),
		.weight_decay = bits_of(t->decay),
		.clip_gradient_min = bits_of(t->gradient_min),
		.clip_gradient_max = bits_of(t->gradient_max),
		.clip_weight_min = bits_of(t->weight_min),
		.clip_weight_max = bits_of(t->weight_max),
		.flags = (t->accumulate ? EMBENG_TABLE_ACCUMULATE : 0) |
			 (t->decay_by_rate ? EMBENG_TABLE_DECAY_BY_RATE : 0) |
			 (t->dynamic ? EMBENG_TABLE_RATE_DYNAMIC : 0) |
			 (t->non_lazy ? EMBENG_TABLE_NON_LAZY : 0),
	};

	for (int s = 0; s < r.slot_count; s++)
		r.slot_start[s] = bits_of(random_optimizers[t->optimizer].start[s]);
	for (int i = 0; i < 6; i++)
		r.hyperparameter[i] = bits_of(t->hyper[i]);
	return r;
}

/* Weights of 0, slots at their starts. */
static inline void make_table(struct ref_table *t)
{
	u64 floats = (u64)t->rows * t->dim;

	t->weights = calloc(floats, sizeof(float));
	for (int s = 0; s < 3; s++) {
		t->slot[s] = malloc(floats * sizeof(float));
		for (u64 i = 0; i < floats; i++)
			t->slot[s][i] = random_optimizers[t->optimizer].start[s];
	}
}

static inline void free_table(struct ref_table *t)
{
	free(t->weights);
	free(t->slot[0]);
	free(t->slot[1]);
	free(t->slot[2]);
}

static inline void draw_table(struct drawing *d, struct ref_table *t, struct embeng_record_table *r)
{
	*t = (struct ref_table){
		.rows = draw_below(d, 4) ? 1 + draw_below(d, 90) : 1 + draw_below(d, 3),
		.dim = 1 + draw_below(d, 70),
		.combiner = draw_below(d, 3),
		.policy = draw_below(d, 4),
		.accumulate = draw_below(d, 5) > 0,
		.decay_by_rate = draw_below(d, 2),
		.dynamic = draw_below(d, 3) == 0,
		.rate = 0.05f + draw_below(d, 100) / 311.0f,
		.decay = draw_below(d, 3) ? 0.0f : 0.01f,
		.gradient_min = draw_below(d, 3) ? -INFINITY : -0.7f,
		.gradient_max = draw_below(d, 3) ? INFINITY : 0.9f,
		.weight_min = draw_below(d, 3) ? -INFINITY : -1.1f,
		.weight_max = draw_below(d, 3) ? INFINITY : 1.2f,
	};
	draw_optimizer(d, t);
	make_table(t);
	*r = table_record(t);
}

#endif
