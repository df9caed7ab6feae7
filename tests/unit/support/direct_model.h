/* SPDX-License-Identifier: MIT */
/* A small model for tests of the model layer: one table, a feature or several alike, plain SGD. */
#ifndef EMBENG_TESTS_DIRECT_MODEL_H
#define EMBENG_TESTS_DIRECT_MODEL_H

#include "direct.h"

struct small_model {
	struct embeng_record_engine engine;
	struct embeng_record_table table;
	struct embeng_record_feature feature;
	struct embeng_record_shard shard; /* row_step 0: none */
};

static inline struct small_model small_model(u64 rows, u32 dim)
{
	return (struct small_model){
		.engine = {.replicas = 1, .table_count = 1, .feature_count = 1},
		.table = {.rows = rows,
			  .dim = dim,
			  .optimizer = EMBENG_OPTIMIZER_SGD,
			  .flags = EMBENG_TABLE_ACCUMULATE,
			  .rate = 0x3f800000,
			  .clip_gradient_min = 0xff800000,
			  .clip_gradient_max = 0x7f800000,
			  .clip_weight_min = 0xff800000,
			  .clip_weight_max = 0x7f800000},
	};
}

static inline void small_blob(const struct small_model *m, struct direct_blob *b)
{
	memset(b, 0, sizeof(*b));
	blob_record(b, EMBENG_RECORD_ENGINE, &m->engine, sizeof(m->engine));
	blob_record(b, EMBENG_RECORD_TABLE, &m->table, sizeof(m->table));
	if (m->shard.row_step)
		blob_record(b, EMBENG_RECORD_SHARD, &m->shard, sizeof(m->shard));
	for (u32 f = 0; f < m->engine.feature_count; f++)
		blob_record(b, EMBENG_RECORD_FEATURE, &m->feature, sizeof(m->feature));
	blob_seal(b);
}

static inline struct direct *small_open(const struct small_model *m, u32 cores)
{
	struct direct *d = direct_new(cores, NULL);
	struct direct_blob *b = calloc(1, sizeof(*b));

	small_blob(m, b);
	ck_assert_uint_eq(direct_load(d, b), 0);
	free(b);
	return d;
}

struct small_lookup {
	struct command *command;
	struct embeng_lookup *header;
	struct embeng_lookup_feature *feature;
	float *out;
};

/* A dense lookup of these ids. */
static inline struct small_lookup small_lookup(struct direct *d, struct queue *q, u64 step,
					       const s64 *ids, u64 count)
{
	const struct model *model = d->context.model;
	struct small_lookup l = {.command = direct_command(q, EMBENG_OP_LOOKUP)};

	l.command->cmd.step = step;
	l.header = direct_memory(d, sizeof(*l.header) + sizeof(*l.feature), &l.command->cmd.desc);
	l.feature = (struct embeng_lookup_feature *)(l.header + 1);
	*l.header = (struct embeng_lookup){.feature_count = 1,
					   .feature_stride = sizeof(*l.feature),
					   .model_hash = model->blob.hash};
	*l.feature = (struct embeng_lookup_feature){
		.form = EMBENG_FORM_DENSE, .id_width = 8, .sample_count = count, .id_count = count};
	memcpy(direct_memory(d, count * 8, &l.feature->ids), ids, count * 8);
	l.out = direct_memory(d, count * model->tables[0].record.dim * 4, &l.feature->activations);
	return l;
}

/* An update whose gradients are all @gradient. */
static inline struct command *small_update(struct direct *d, u32 replica, u64 step, u64 samples,
					   float gradient)
{
	const struct model *model = d->context.model;
	struct command *command = direct_command(&d->gradient[replica], EMBENG_OP_UPDATE);
	struct embeng_update *header;
	struct embeng_update_feature *feature;
	u64 floats = samples * model->tables[0].record.dim;
	float *to;

	command->cmd.step = step;
	header = direct_memory(d, sizeof(*header) + sizeof(*feature), &command->cmd.desc);
	feature = (struct embeng_update_feature *)(header + 1);
	*header = (struct embeng_update){.feature_count = 1,
					 .feature_stride = sizeof(*feature),
					 .model_hash = model->blob.hash};
	to = direct_memory(d, floats * 4, &feature->gradients);
	for (u64 i = 0; i < floats; i++)
		to[i] = gradient;
	return command;
}

#endif
