/* SPDX-License-Identifier: MIT */
/* Models made of an input's bytes: small, valid, and of every kind. */
#ifndef EMBENG_FUZZ_MODEL_H
#define EMBENG_FUZZ_MODEL_H

#include "../../engine/kernels/optimizers.h"
#include "../unit/support/direct.h"
#include "fuzz.h"

#define MODEL_TABLES 3u
#define MODEL_FEATURES 3u
#define MODEL_DIM 8u
#define MODEL_ROWS 16u
#define MODEL_SEQUENCE 3u

struct fuzz_model {
	struct embeng_record_engine engine;
	struct embeng_record_table tables[MODEL_TABLES];
	struct embeng_record_feature features[MODEL_FEATURES];
};

static inline u32 model_bits(float value)
{
	u32 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Sets the defaults of an optimizer, with all switches on or off. */
static inline void model_optimizer(struct embeng_record_table *t, u32 optimizer, bool on)
{
	static const struct kernel_optimizer none;
	u32 kernel = optimizer_kernel(optimizer);
	const struct kernel_optimizer *o = kernel == U32_MAX ? &none : &kernel_optimizers[kernel];

	t->optimizer = (u8)optimizer;
	t->slot_count = (u8)o->slot_count;
	for (u32 i = 0; i < o->hyper_count; i++)
		t->hyperparameter[i] = model_bits(
			on && o->hyper[i].range == KERNEL_SWITCH ? 1 : o->hyper[i].value);
	if (optimizer == EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR)
		t->dim = 1;
	for (u32 i = 0; i < t->slot_count; i++)
		t->slot_start[i] = model_bits(0.25f * (float)i);
}

/*
 * Has updates give some numbers, by what was drawn already. The value 1, which they give rarely, is too
 * large for some of these.
 */
static inline void model_dynamic(struct embeng_record_table *t, u32 rates)
{
	const struct kernel_optimizer *o;

	if (!rates || t->optimizer == EMBENG_OPTIMIZER_NONE || t->rows % 3)
		return;
	o = &kernel_optimizers[optimizer_kernel(t->optimizer)];
	t->flags |= EMBENG_TABLE_WEIGHT_DECAY_DYNAMIC | EMBENG_TABLE_CLIP_WEIGHT_MAX_DYNAMIC;
	t->weight_decay = t->clip_weight_max = 0;
	if (o->hyper_count && o->hyper[0].range != KERNEL_SWITCH) {
		t->flags |= EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(0);
		t->hyperparameter[0] = rates - 1;
	}
}

/* Makes a table. @optimizers is a mask of those to choose from, which includes SGD. */
static inline struct embeng_record_table model_table(struct fuzz *f, u32 rates, u32 optimizers)
{
	u32 optimizer = fuzz_below(f, EMBENG_OPTIMIZER_MDL_ADAGRAD_LIGHT + 1);
	struct embeng_record_table t = {
		.rows = 1 + fuzz_below(f, MODEL_ROWS),
		.dim = 1 + fuzz_below(f, MODEL_DIM),
		.flags = fuzz_rarely(f, 4) ? 0 : EMBENG_TABLE_ACCUMULATE,
		.combiner = (u8)fuzz_below(f, 3),
		.out_of_range = (u8)fuzz_below(f, 4),
		.rate = model_bits(0.5f),
		.clip_gradient_min = model_bits(-2),
		.clip_gradient_max = model_bits(__builtin_inff()),
		.clip_weight_min = model_bits(-__builtin_inff()),
		.clip_weight_max = model_bits(8),
	};

	/* By what was drawn already, so that inputs found before mean what they did, nearly. */
	if (t.combiner == EMBENG_COMBINER_SQRTN && t.dim % 2)
		t.combiner = EMBENG_COMBINER_MAX;
	if (optimizer == EMBENG_OPTIMIZER_ADAGRAD && t.rows % 2)
		optimizer = EMBENG_OPTIMIZER_ROWWISE_ADAGRAD;
	if (optimizer == EMBENG_OPTIMIZER_ADAM && t.rows % 2)
		optimizer = EMBENG_OPTIMIZER_PARTIAL_ROWWISE_ADAM;
	if (!(optimizers & 1u << optimizer))
		optimizer = EMBENG_OPTIMIZER_SGD;
	model_optimizer(&t, optimizer, fuzz_rarely(f, 2));
	if (rates && fuzz_rarely(f, 2)) {
		t.flags |= EMBENG_TABLE_RATE_DYNAMIC;
		t.rate = fuzz_below(f, rates);
	}
	if (fuzz_rarely(f, 4))
		t.weight_decay = model_bits(0.125f);
	if (t.rows % 8 == 6)
		t.max_norm = model_bits(0.5f);
	if (t.rows % 8 == 2 && t.flags & EMBENG_TABLE_ACCUMULATE)
		t.flags |= EMBENG_TABLE_BY_FREQUENCY;
	if (t.rows % 8 == 4 && optimizer != EMBENG_OPTIMIZER_NONE &&
	    optimizer != EMBENG_OPTIMIZER_ASSIGN &&
	    optimizer != EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR)
		t.flags |= EMBENG_TABLE_DECAY_GRADIENT;
	model_dynamic(&t, rates);
	return t;
}

static inline struct embeng_record_feature model_feature(struct fuzz *f, u32 tables)
{
	return (struct embeng_record_feature){
		.table = fuzz_below(f, tables),
		.flags = fuzz_rarely(f, 2) ? EMBENG_FEATURE_FINITE_WEIGHTS : 0,
		.max_sequence_length = fuzz_below(f, MODEL_SEQUENCE + 1),
		.max_samples = fuzz_below(f, 8),
		.max_ids = fuzz_below(f, 16),
	};
}

static inline void model_make(struct fuzz *f, u32 optimizers, struct fuzz_model *m)
{
	struct embeng_record_engine *e = &m->engine;

	*e = (struct embeng_record_engine){
		.replicas = 1 + fuzz_below(f, 2),
		.flags = (fuzz_rarely(f, 4) ? EMBENG_ENGINE_PIPELINING : 0) |
			 fuzz_below(f, 3) * EMBENG_ENGINE_GRADIENTS_DROP,
		.table_count = 1 + fuzz_below(f, MODEL_TABLES),
		.feature_count = fuzz_below(f, MODEL_FEATURES + 1),
		.rate_count = fuzz_below(f, 2),
		.step_depth = fuzz_below(f, 4),
	};
	for (u32 i = 0; i < e->table_count; i++)
		m->tables[i] = model_table(f, e->rate_count, optimizers);
	for (u32 i = 0; i < e->feature_count; i++)
		m->features[i] = model_feature(f, e->table_count);
}

/* Writes the blob of a model. */
static inline void model_blob(const struct fuzz_model *m, struct direct_blob *b)
{
	const struct embeng_record rate = {0};

	memset(b, 0, sizeof(*b));
	blob_record(b, EMBENG_RECORD_ENGINE, &m->engine, sizeof(m->engine));
	for (u32 i = 0; i < m->engine.table_count; i++)
		blob_record(b, EMBENG_RECORD_TABLE, &m->tables[i], sizeof(m->tables[i]));
	for (u32 i = 0; i < m->engine.feature_count; i++)
		blob_record(b, EMBENG_RECORD_FEATURE, &m->features[i], sizeof(m->features[i]));
	for (u32 i = 0; i < m->engine.rate_count; i++)
		blob_record(b, EMBENG_RECORD_RATE, &rate, sizeof(rate));
	blob_seal(b);
}

#endif
