/* SPDX-License-Identifier: MIT */
/*
 * UNIQUE, POOL and SUM: rows that hosts exchange (uapi/embeng_engine.h says what they are). None of
 * them uses the context's model. Each brings a small one of its own, whose tables are the lists of
 * rows, so that ids, weights, policies, combiners and sequences are those of a LOOKUP.
 */
#ifndef EMBENG_ENGINE_EXCHANGE_H
#define EMBENG_ENGINE_EXCHANGE_H

#include "../lookup/batch.h"

/* Private copy of a descriptor. */
struct exchange_call {
	struct embeng_row_exchange given;
	struct embeng_exchange_table *tables;
	struct embeng_exchange_feature *features;
};

/**
 * struct exchange - memory that a context keeps from one exchange to the next
 * @model: tables and features of the command that runs
 * @batch: its private copy of ids and weights
 * @views: [table_count] rows, [table_count] results, [feature_count] data: what is mapped
 * @keys: [ids] u64, of UNIQUE: where in the order of the list the row of each id belongs
 * @partition: occurrences by row
 *
 * The other buffers hold the arrays that @model and @batch lead to.
 */
struct exchange {
	struct model model;
	struct batch batch;
	struct view *views;
	u64 *keys;
	struct partition partition;
	u64 feature_room;
	u64 tables_bytes, records_bytes, outputs_bytes, sources_bytes, segments_bytes, zeros_bytes;
	u64 scratch_bytes, views_bytes, keys_bytes;
};

static inline struct view *exchange_rows(const struct exchange *x, u32 table)
{
	return &x->views[table];
}

static inline struct view *exchange_result(const struct exchange *x, u32 table)
{
	return &x->views[x->model.blob.engine.table_count + table];
}

static inline struct view *exchange_data(const struct exchange *x, u32 feature)
{
	return &x->views[2 * x->model.blob.engine.table_count + feature];
}

/* accept.c: phases of the three verbs; command->state is a struct exchange_call. */
u16 exchange_accept(struct command *command);
void exchange_release(struct command *command);

/* Phases of each. */
u16 unique_run(struct command *command);
u16 pool_run(struct command *command);
u16 sum_run(struct command *command);

/* memory.c: the context's, with room and an empty model for the command; NULL without memory. */
struct exchange *exchange_memory(struct command *command);

/**
 * exchange_begin() - bring the model, copy and check the batch, map what the tables name
 * @command: it runs; exchange_end() it, whatever is returned
 * @training: keep what gradients need, and ask for no activations
 * @x: out, NULL without memory
 *
 * Return: 0 or a status with command->fault.
 */
u16 exchange_begin(struct command *command, bool training, struct exchange **x);
void exchange_end(struct command *command, struct exchange *x);

/* Maps what features have as data, for an access with @rights; a fault names @field. */
u16 exchange_map_data(struct command *command, struct exchange *x, u32 rights, u32 field);

/* The ids of all features. */
static inline u64 exchange_ids(const struct exchange_call *call)
{
	u64 ids = 0;

	for (u32 i = 0; i < call->given.feature_count; i++)
		ids += call->features[i].id_count;
	return ids;
}

u16 exchange_no_memory(struct command *command);

#endif
