/* SPDX-License-Identifier: MIT */
/* The bytes that a model will need. Included by embeng.h, whose rules hold. */
#ifndef EMBENG_PLAN_API_H
#define EMBENG_PLAN_API_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum embeng_plan_kind {
	EMBENG_PLAN_TABLE,	 /* parameters of a table, in the device's table memory */
	EMBENG_PLAN_SLOT,	 /* a slot of a table, there too */
	EMBENG_PLAN_ENGINE,	 /* the engine's private copies of ids, weights and scales;
				  * without feature: sorting, scratch, descriptors */
	EMBENG_PLAN_INPUT,	 /* ids, weights and offsets, shared memory */
	EMBENG_PLAN_ACTIVATIONS, /* for all steps that may be in flight, shared memory */
	EMBENG_PLAN_GRADIENTS,	 /* for as many steps, shared memory */
	EMBENG_PLAN_ROWS,	 /* staging of row access, shared memory: as much as whole
				  * tables take, which programs that never move so many rows do not use */
};

/**
 * struct embeng_plan_item - one thing that takes memory
 * @kind: enum embeng_plan_kind
 * @table: index, -1 when it is no table's
 * @feature: index, -1 when it is no feature's
 * @slot: slot name, "parameters", or NULL
 * @bytes: in all steps, replicas and cores together
 *
 * Inputs, activations and gradients have an item of no feature, too: descriptors,
 * alignment, and the half that each buffer is larger than its first batch needs.
 */
struct embeng_plan_item {
	enum embeng_plan_kind kind;
	int table, feature;
	const char *slot;
	uint64_t bytes;
};

/**
 * struct embeng_plan_options - assumptions of a plan; all zero: defaults
 * @size: sizeof(struct embeng_plan_options)
 * @batch_size: samples of features whose shape and max_samples are open, and the
 *	first unknown length of a shape; 0: 1024
 * @ids_per_sample: ids of a sample for pooled features whose max_ids is open; 0: 1
 * @id_type: enum embeng_id_type of the ids: EMBENG_I32 is 0, EMBENG_I64 is 1 (and what
 *	holds without options)
 * @weights: ids of pooled features have weights
 * @buffers: the program's arrays lie in embeng_buffer_alloc() memory: no copies of
 *	its ids, weights and gradients. Offsets are made from lengths, so they stay without @splits
 * @inference: inference batches are in flight, too, as many as training steps. Models
 *	that cannot train have no others
 * @step_depth: step depth of the device when the model leaves it open; 0: the soft device's
 * @cores: cores of the device; 0: one
 * @splits: row splits of 64 bits lie there, too, or samples have one id each: no offsets are copied
 */
struct embeng_plan_options {
	size_t size;
	int64_t batch_size;
	int64_t ids_per_sample;
	int id_type;
	int weights;
	int buffers;
	int inference;
	uint32_t step_depth;
	uint32_t cores;
	int splits;
};

/**
 * struct embeng_plan - the bytes a model will need
 * @item_count: number of @items
 * @items: tables and slots in table order, then the rest in feature order, then what
 *	belongs to no feature
 * @table_bytes: tables and slots: what the device's table memory must hold
 * @buffer_bytes: shared memory
 * @engine_bytes: the engine's own, beside tables
 * @total_bytes: all of them
 *
 * A plan supposes bags: every place in flight taken (step depth + 1 a replica) by
 * batches of the size that the model or the options say, from the first batch on. Then
 * table and buffer bytes are what embeng_usage() says, to the byte, and so are engine
 * bytes of models that train, as long as a batch is little work (64 pieces of up to
 * 4096 rows or 2^18 floats; beyond, the list of pieces is planned for its worst);
 * smaller or dense batches and fewer ahead take less, never more. Not planned:
 * queues, the table of regions, threads and the library's own lists, which no batch
 * makes grow. Freed by embeng_plan_free(). Names are the model's.
 */
struct embeng_plan {
	size_t item_count;
	struct embeng_plan_item *items;
	uint64_t table_bytes, buffer_bytes, engine_bytes, total_bytes;
};

/**
 * embeng_model_plan() - compute the memory that a model will need, without allocating it
 * @options: NULL: defaults
 *
 * Return: 0, -EINVAL, -ERANGE (more bytes than a uint64_t counts, more ids than a batch
 * has, naming table or feature), -ENOTSUP (no engine of this build takes the model),
 * -ENOMEM.
 */
EMBENG_API int embeng_model_plan(const struct embeng_model *model,
				 const struct embeng_plan_options *options,
				 struct embeng_plan **plan);
EMBENG_API void embeng_plan_free(struct embeng_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
