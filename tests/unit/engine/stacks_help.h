/* SPDX-License-Identifier: MIT */
/*
 * Two stacks of tables, their samples through PARTITION, and what it wrote as the input of a
 * LOOKUP. The inverse of the layout is found by trying all rows, not by the engine's formula.
 */
#ifndef EMBENG_TESTS_STACKS_HELP_H
#define EMBENG_TESTS_STACKS_HELP_H

#include "direct_model.h"
#include "pcsr_help.h"

#define STACKS 2u
#define TABLES 3u
#define FEATURES 4u
#define SAMPLES 8u
#define MOST 6u /* ids of a sample */
#define CORES 4u
#define DEVICE_CORES 2u
#define MOST_ROWS 90u
#define MOST_DIM 12u

/* Tables, and where they are in their stack. */
static const struct {
	u32 rows, dim, combiner, column_offset, rotation;
} tables[TABLES] = {
	{50, 4, EMBENG_COMBINER_SUM, 0, 0},
	{33, 4, EMBENG_COMBINER_MEAN, 64, 2},
	{90, 12, EMBENG_COMBINER_SQRTN, 8, 3},
};

static const struct {
	u32 table, samples;
} features[FEATURES] = {{0, SAMPLES}, {1, SAMPLES}, {2, SAMPLES}, {0, SAMPLES / 2}};

/* Members do not stand in the order of features. */
static const struct {
	u32 count, features[3];
	u64 columns;
} stacks[STACKS] = {{3, {3, 0, 1}, 128}, {1, {2}, 128}};

/* Ids and weights by sample. */
struct bags {
	u64 offsets[FEATURES][SAMPLES + 1];
	s64 ids[FEATURES][SAMPLES * MOST];
	float weights[FEATURES][SAMPLES * MOST];
};

/* How the samples are partitioned. */
struct way {
	u8 flavour;
	u16 flags;
	u32 max_ids;
};

static inline u32 below(u64 *state, u32 limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (u32)((*state >> 33) % limit);
}

static inline struct bags draw_bags(u64 seed)
{
	struct bags b = {0};

	for (u32 f = 0; f < FEATURES; f++) {
		u64 n = 0;

		for (u32 s = 0; s < features[f].samples; s++) {
			for (u32 k = below(&seed, MOST + 1); k; k--, n++) {
				b.ids[f][n] = below(&seed, tables[features[f].table].rows);
				b.weights[f][n] = (float)(1 + below(&seed, 64)) / 16.0f;
			}
			b.offsets[f][s + 1] = n;
		}
	}
	return b;
}

/* @sums: all combiners are sums. */
static inline struct direct *stacks_open(u32 cores, bool sums, u32 flags, u64 max_ids)
{
	const struct embeng_record_engine e = {
		.replicas = 1, .table_count = TABLES, .flags = flags, .feature_count = FEATURES};
	struct small_model m;
	struct direct *d = direct_new(cores, NULL);
	struct direct_blob *b = calloc(1, sizeof(*b));

	d->engine.inline_bytes = 0;
	blob_record(b, EMBENG_RECORD_ENGINE, &e, sizeof(e));
	for (u32 t = 0; t < TABLES; t++) {
		m = small_model(tables[t].rows, tables[t].dim);
		m.table.combiner = sums ? EMBENG_COMBINER_SUM : (u8)tables[t].combiner;
		blob_record(b, EMBENG_RECORD_TABLE, &m.table, sizeof(m.table));
	}
	for (u32 f = 0; f < FEATURES; f++) {
		const struct embeng_record_feature r = {.table = features[f].table,
							.max_ids = max_ids};

		blob_record(b, EMBENG_RECORD_FEATURE, &r, sizeof(r));
	}
	blob_seal(b);
	ck_assert_uint_eq(direct_load(d, b), 0);
	free(b);
	return d;
}

/* Rows above 0, so that a sum is the sum of its magnitudes. */
static inline void stacks_fill(struct direct *d)
{
	u64 state = 5;

	for (u32 t = 0; t < TABLES; t++) {
		float *data = (float *)d->context.model->tables[t].data;

		for (u32 i = 0; i < tables[t].rows * tables[t].dim; i++)
			data[i] = 0.25f + (float)below(&state, 1 << 20) / (float)(1 << 18);
	}
}

static inline void grid_member(struct grid *g, u32 i, u32 f, const struct bags *b)
{
	u32 samples = features[f].samples, t = features[f].table;
	u64 count = b->offsets[f][samples];
	s64 *offsets, *ids = grid_bags(g, i, samples, count, &offsets);

	memcpy(offsets, b->offsets[f], (samples + 1) * 8);
	memcpy(ids, b->ids[f], count * 8);
	memcpy(grid_weights(g, i), b->weights[f], count * 4);
	g->features[i].combiner = (u8)tables[t].combiner;
	g->features[i].rows = tables[t].rows;
	g->features[i].rotation = tables[t].rotation;
	g->features[i].column_offset = tables[t].column_offset;
}

/* Partitions one stack with PARTITION. */
static inline struct grid stack_grid(struct direct *d, u32 stack, const struct bags *b,
				     const struct way *way)
{
	struct grid g = grid_new(d, stacks[stack].count, CORES, DEVICE_CORES, 4096);
	struct fault fault;

	g.head->columns = stacks[stack].columns;
	g.head->flavour = way->flavour;
	g.head->flags = way->flags;
	g.head->max_ids = way->max_ids;
	for (u32 i = 0; i < stacks[stack].count; i++)
		grid_member(&g, i, stacks[stack].features[i], b);
	ck_assert_uint_eq(grid_run(&g, &fault), 0);
	return g;
}

/* The row of a table that stands at @token of @partition. */
static inline u32 row_at(u32 table, u32 partition, u32 token)
{
	for (u32 i = 0; i < tables[table].rows; i++) {
		u32 column = (i + tables[table].rotation) % CORES + i / CORES * CORES +
			     tables[table].column_offset;

		if (column % CORES == partition && column / CORES == token)
			return i;
	}
	ck_abort_msg("token %u of partition %u is no row of table %u", token, partition, table);
}

struct stacks_lookup {
	struct command *command;
	struct embeng_lookup *header;
	struct embeng_lookup_feature *features;
	struct embeng_lookup_stack *stacks;
	struct embeng_lookup_member *members;
	float *out[FEATURES];
};

static inline u64 out_bytes(u32 f)
{
	return 4ull * features[f].samples * tables[features[f].table].dim;
}

static inline struct stacks_lookup lookup_new(struct direct *d, struct queue *q, u64 step,
					      u32 stack_count, u32 member_count)
{
	struct stacks_lookup l = {.command = direct_command(q, EMBENG_OP_LOOKUP)};

	if (q->kind == EMBENG_QUEUE_INPUT)
		l.command->cmd.step = step;
	else
		l.command->cmd.after = step;
	l.header = direct_memory(d,
				 sizeof(*l.header) + FEATURES * sizeof(*l.features) +
					 stack_count * sizeof(*l.stacks) +
					 member_count * sizeof(*l.members),
				 &l.command->cmd.desc);
	l.features = (struct embeng_lookup_feature *)(l.header + 1);
	l.stacks = (struct embeng_lookup_stack *)(l.features + FEATURES);
	l.members = (struct embeng_lookup_member *)(l.stacks + stack_count);
	*l.header = (struct embeng_lookup){.feature_count = FEATURES,
					   .feature_stride = sizeof(*l.features),
					   .model_hash = d->context.model->blob.hash};
	for (u32 f = 0; f < FEATURES; f++) {
		l.features[f].feature = f;
		l.features[f].form = EMBENG_FORM_PARTITIONED;
		l.features[f].sample_count = features[f].samples;
		l.out[f] = direct_memory(d, out_bytes(f), &l.features[f].activations);
	}
	return l;
}

/* Makes the memory that PARTITION wrote the input of a lookup. */
static inline void lookup_stack(struct embeng_lookup_stack *s, const struct grid *g)
{
	const struct embeng_partition_result *r = grid_result(g);
	const struct embeng_partition *h = g->head;

	*s = (struct embeng_lookup_stack){
		.member_count = h->feature_count,
		.cores = h->cores,
		.device_cores = h->device_cores,
		.minibatches = r->minibatches,
		.row_stride = r->row_stride,
		.item_count = h->tokens.length / 4,
		.row_pointers = h->row_pointers,
		.tokens = h->tokens,
		.samples = h->samples,
		.gains = h->gains,
		.bounds = h->result,
	};
	if (h->flavour == EMBENG_FLAVOUR_JAX && !(h->flags & EMBENG_PARTITION_MINIBATCHING))
		s->flags = EMBENG_STACK_OWN_PARTS;
	s->row_pointers.length = r->row_pointers * 4;
	s->bounds.length = 16ull * h->device_cores;
	s->bounds.offset += h->result.length - s->bounds.length;
}

static inline struct stacks_lookup lookup_stacks(struct direct *d, struct queue *q, u64 step,
						 const struct grid grids[STACKS])
{
	struct stacks_lookup l = lookup_new(d, q, step, STACKS, FEATURES);
	struct embeng_lookup_member *m = l.members;

	l.header->stack_count = STACKS;
	l.header->stack_stride = sizeof(*l.stacks);
	l.header->member_count = FEATURES;
	l.header->member_stride = sizeof(*l.members);
	for (u32 s = 0; s < STACKS; s++) {
		lookup_stack(&l.stacks[s], &grids[s]);
		for (u32 i = 0; i < stacks[s].count; i++, m++) {
			m->feature = stacks[s].features[i];
			m->rotation = grids[s].features[i].rotation;
			m->column_offset = grids[s].features[i].column_offset;
			m->sample_count = grids[s].features[i].sample_count;
		}
	}
	return l;
}

static inline void lookup_bag(struct direct *d, struct embeng_lookup_feature *g,
			      const struct bags *b, u32 f)
{
	u64 count = b->offsets[f][features[f].samples], samples = features[f].samples;

	g->form = EMBENG_FORM_CSR;
	g->id_width = g->offset_width = 8;
	g->id_count = count;
	memcpy(direct_memory(d, 8 * (samples + 1), &g->offsets), b->offsets[f], 8 * (samples + 1));
	memcpy(direct_memory(d, 8 * count, &g->ids), b->ids[f], 8 * count);
	memcpy(direct_memory(d, 4 * count, &g->weights), b->weights[f], 4 * count);
}

/* Looks the bags up directly, without partitioning. */
static inline struct stacks_lookup lookup_bags(struct direct *d, struct queue *q, u64 step,
					       const struct bags *b)
{
	struct stacks_lookup l = lookup_new(d, q, step, 0, 0);

	for (u32 f = 0; f < FEATURES; f++)
		lookup_bag(d, &l.features[f], b, f);
	return l;
}

/* An update by gradients below 0, so that rows stay sums of magnitudes. */
static inline u16 stacks_update(struct direct *d, u64 step)
{
	struct command *command = direct_command(&d->gradient[0], EMBENG_OP_UPDATE);
	struct embeng_update_feature *g;
	struct embeng_update *header;

	command->cmd.step = step;
	header = direct_memory(d, sizeof(*header) + FEATURES * sizeof(*g), &command->cmd.desc);
	g = (struct embeng_update_feature *)(header + 1);
	*header = (struct embeng_update){.feature_count = FEATURES,
					 .feature_stride = sizeof(*g),
					 .model_hash = d->context.model->blob.hash};
	for (u32 f = 0; f < FEATURES; f++) {
		float *to = direct_memory(d, out_bytes(f), &g[f].gradients);

		g[f].feature = f;
		for (u64 i = 0; i < out_bytes(f) / 4; i++)
			to[i] = -0.125f - (float)i / 128.0f;
	}
	return direct_do(d, command);
}

#endif
