/* SPDX-License-Identifier: MIT */
/*
 * A batch as partitioned CSR, stack by stack, and limits that are learned from such batches.
 * Included by embeng.h, whose rules hold.
 */
#ifndef EMBENG_PREPROCESS_H
#define EMBENG_PREPROCESS_H

#include "partition.h"
#include "stacking.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct embeng_stack_limits - limits for the partitions of one stack
 * @max_ids_per_partition: as in &struct embeng_partition_options; 0: no limit
 * @max_unique_ids_per_partition: as in &struct embeng_partition_options; 0: no limit
 * @buffer_size: as in &struct embeng_partition_options: items of a device's buffer; 0: enough
 */
struct embeng_stack_limits {
	uint64_t max_ids_per_partition, max_unique_ids_per_partition, buffer_size;
};

/**
 * struct embeng_preprocess_options - how to preprocess
 * @size: sizeof(struct embeng_preprocess_options)
 * @device: index of the device that has these samples
 * @limits: [stacks of the stacking], or NULL: none
 * @max_ids_per_sample: TF: a stack without buffer_size has a buffer of so many items for each
 *	of its samples (max_ids_per_chip_per_sample), which must come to a multiple of 8. 0:
 *	enough
 * @minibatching: beyond the limits ids go into minibatches
 * @allow_id_dropping: ids that do not fit are left out and counted
 * @bucket: rule for the buckets of minibatches
 * @splits: [stacks of the stacking], or NULL: where other devices part their buckets. 0 without
 *	@minibatching
 */
struct embeng_preprocess_options {
	size_t size;
	uint32_t device;
	const struct embeng_stack_limits *limits;
	uint64_t max_ids_per_sample;
	int minibatching, allow_id_dropping;
	enum embeng_partition_bucket bucket;
	const uint64_t *splits;
};

/**
 * struct embeng_preprocessed - a batch, stack by stack
 * @stacks: [stack_count], in the order of the stacking, arrays with all that
 *	&struct embeng_partitioned can tell. For a stack without features all is 0
 * @stack_count: the stacking's
 * @from_first: nonzero: row pointers of a core count from its core_first, as JAX has it without
 *	minibatching, else from the start of the buffer
 *
 * Freed by embeng_preprocessed_free().
 */
struct embeng_preprocessed {
	struct embeng_partitioned *stacks;
	size_t stack_count;
	int from_first;
};

/**
 * embeng_preprocess() - the samples of a batch as the partitioned CSR of each stack
 * @e: handle whose engine does it; no table is read, no step moves
 * @b: batch of @e in any mode, with an input for each feature, dense, ragged or sparse
 * @stacking: stacking of the model of @e
 * @options: how; NULL: without limits, of device 0
 * @out: to be freed with embeng_preprocessed_free()
 *
 * Gives for each stack what embeng_partition() gives for a model of its tables alone, in their
 * order. In JAX all stacks have the same minibatches: where one is parted, all are. In TF each
 * has its own. Several devices agree on them in this way: each calls this function, the splits of
 * each stack are or'ed over all devices, and a device whose own splits differ from the result calls
 * it again with the result as @splits.
 *
 * Return: as embeng_partition(), and -EINVAL for a stacking of another model, a feature without
 * an input or of another number of samples than the stacking's.
 */
EMBENG_API int embeng_preprocess(struct embeng *e, const struct embeng_batch *b,
				 const struct embeng_stacking *stacking,
				 const struct embeng_preprocess_options *options,
				 struct embeng_preprocessed **out);

/** embeng_preprocessed_free() - NULL is fine */
EMBENG_API void embeng_preprocessed_free(struct embeng_preprocessed *preprocessed);

/**
 * embeng_batch_partitioned() - partitioned CSR as the input of all features of its stacks
 * @b: batch; its inputs of these features are replaced
 * @stacking: that it was preprocessed with, of the batch's model
 * @preprocessed: copied; of this library or made by hand
 *
 * The engine takes it apart: enqueued, such a batch gives each sample the sum of gain * row over
 * its items, in their order: what a SparseCore looks up. Ids that were dropped are not in it. Its
 * gradients are given like any other's, and reach each row as the sum of gain * gradient, one
 * update a row: the step keeps what apply_gradients() of the family is handed again. Against the
 * batch that was preprocessed only the order of sums differs. A feature may be given another
 * input afterwards; its items then count for nothing.
 *
 * Only core_first, core_end, row_stride, minibatches and the arrays are read of a stack. Cores
 * stand in order, none before the one before it ends; row pointers never fall and end within
 * their core.
 *
 * Return: 0, -EINVAL (batch, stacking, a stack without arrays or of another grid), -ERANGE (cores
 * that end beyond the arrays), -ENOTSUP (the device does not take such input), -ENOMEM. The batch
 * is as it was on failure. The items are checked by embeng_enqueue(): -ERANGE naming the
 * stack, its core, partition and item (a row pointer, sample or token that the stack does not
 * have), -EINVAL for a core that begins at no multiple of 8.
 */
EMBENG_API int embeng_batch_partitioned(struct embeng_batch *b,
					const struct embeng_stacking *stacking,
					const struct embeng_preprocessed *preprocessed);

/**
 * struct embeng_stack_seen - the largest demands of batches on one stack, before dropping
 * @batches: how many
 * @max_ids: most ids of a partition
 * @max_unique_ids: most distinct rows of a partition
 * @core_buffer: most items of a core, minibatches not parted
 * @dropped_ids: ids that were dropped from all of them
 *
 * Begins zeroed. Those of several devices or runs are joined by the largest of each, and the
 * sum of batches and dropped ids.
 */
struct embeng_stack_seen {
	uint64_t batches, max_ids, max_unique_ids, core_buffer, dropped_ids;
};

/**
 * embeng_limits_note() - learn from a batch
 * @stacking: that it was preprocessed with
 * @preprocessed: the batch
 * @seen: [stacks of the stacking], in and out
 *
 * Return: 0, -EINVAL.
 */
EMBENG_API int embeng_limits_note(const struct embeng_stacking *stacking,
				  const struct embeng_preprocessed *preprocessed,
				  struct embeng_stack_seen *seen);

/**
 * embeng_limits_suggest() - limits for batches like those that were seen
 * @stacking: that they were preprocessed with
 * @seen: [stacks of the stacking]
 * @headroom: percent more than was seen
 * @limits: [stacks of the stacking], out
 *
 * max_ids and max_unique_ids are the largest that were seen and the headroom, from 1 on;
 * buffer_size is the largest core's items and the headroom, rounded up to 8, for each core, as far
 * as the limits can ask for. With them the batches that were seen neither drop nor minibatch. A
 * stack without features gets the least of each.
 *
 * Return: 0, -EINVAL (no batch was seen of a stack with features), -ERANGE (more than 32 bits
 * count).
 */
EMBENG_API int embeng_limits_suggest(const struct embeng_stacking *stacking,
				     const struct embeng_stack_seen *seen, uint32_t headroom,
				     struct embeng_stack_limits *limits);

#ifdef __cplusplus
}
#endif

#endif
