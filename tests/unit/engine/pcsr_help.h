/* SPDX-License-Identifier: MIT */
/* A PARTITION by hand: descriptor, inputs and outputs in one arena. */
#ifndef EMBENG_TESTS_PCSR_HELP_H
#define EMBENG_TESTS_PCSR_HELP_H

#include "direct.h"

#define GRID_FEATURES 3u

/* The settings of a test, and arrays in the arena. */
struct grid {
	struct direct *d;
	struct embeng_mem desc;
	struct embeng_partition *head;
	struct embeng_partition_feature *features;
	s32 *row_pointers;
	u32 *tokens, *samples;
	float *gains;
	u8 *result;
};

static inline u64 grid_result_bytes(u32 cores, u32 device_cores)
{
	return sizeof(struct embeng_partition_result) + 8ull * cores + 24ull * device_cores;
}

/* @cores of which 2 are the device's, tables of 64 rows, one dense feature each of no samples. */
static inline struct grid grid_new(struct direct *d, u32 features, u32 cores, u32 device_cores,
				   u64 items)
{
	const u64 bytes = sizeof(struct embeng_partition) +
			  features * sizeof(struct embeng_partition_feature);
	struct grid g = {.d = d};
	struct embeng_partition *h;

	h = g.head = direct_memory(d, bytes, &g.desc);
	g.features = (struct embeng_partition_feature *)(h + 1);
	h->flavour = EMBENG_FLAVOUR_TF;
	h->feature_count = features;
	h->feature_stride = sizeof(*g.features);
	h->cores = cores;
	h->device_cores = device_cores;
	h->columns = 64ull * features;
	g.row_pointers = direct_memory(d, 4 * 64ull * device_cores * ((cores + 7) / 8 * 8),
				       &h->row_pointers);
	g.tokens = direct_memory(d, 4 * items, &h->tokens);
	g.samples = direct_memory(d, 4 * items, &h->samples);
	g.gains = direct_memory(d, 4 * items, &h->gains);
	g.result = direct_memory(d, grid_result_bytes(cores, device_cores), &h->result);
	for (u32 i = 0; i < features; i++) {
		g.features[i].form = EMBENG_FORM_DENSE;
		g.features[i].id_width = 4;
		g.features[i].rows = 64;
		g.features[i].column_offset = 64ull * i;
	}
	return g;
}

/* Return: [count] ids of feature @i, of 4 bytes, one for each sample. */
static inline s32 *grid_dense(struct grid *g, u32 i, u64 count)
{
	struct embeng_partition_feature *f = &g->features[i];

	f->sample_count = f->id_count = count;
	return direct_memory(g->d, 4 * count, &f->ids);
}

/* Return: [ids] ids of feature @i, of 8 bytes; *offsets: [samples + 1], of 8. */
static inline s64 *grid_bags(struct grid *g, u32 i, u64 samples, u64 ids, s64 **offsets)
{
	struct embeng_partition_feature *f = &g->features[i];

	f->form = EMBENG_FORM_CSR;
	f->id_width = f->offset_width = 8;
	f->sample_count = samples;
	f->id_count = ids;
	*offsets = direct_memory(g->d, 8 * (samples + 1), &f->offsets);
	return direct_memory(g->d, 8 * ids, &f->ids);
}

static inline float *grid_weights(struct grid *g, u32 i)
{
	return direct_memory(g->d, 4 * g->features[i].id_count, &g->features[i].weights);
}

/* Return: the command's status; *fault: what was wrong. */
static inline u16 grid_run(struct grid *g, struct fault *fault)
{
	struct command *command = direct_command(&g->d->transfer, EMBENG_OP_PARTITION);
	u16 status;

	command->cmd.desc = g->desc;
	if (direct_submit(g->d, command) == VERDICT_READY)
		ck_assert_int_ne(direct_try(g->d, command), VERDICT_WAIT);
	status = command->fault.status;
	*fault = command->fault;
	free(command);
	return status;
}

static inline const struct embeng_partition_result *grid_result(const struct grid *g)
{
	return (const struct embeng_partition_result *)g->result;
}

static inline const u64 *grid_cores(const struct grid *g)
{
	return (const u64 *)(g->result + sizeof(struct embeng_partition_result) +
			     8ull * g->head->cores);
}

#endif
