/* SPDX-License-Identifier: MIT */
/*
 * Partitioned CSR: a batch as the SparseCores of a device take it. Included by embeng.h.
 *
 * DOC: What comes out
 *
 * The samples of one device are dealt to its cores in order, a block to each. For every core,
 * every minibatch and every core of the whole grid (a partition) the ids whose rows that core
 * holds stand together: the row there (token), the sample within the core, and the gain, which
 * is the weight times the combiner's scale. Equal ids of a sample are one, their gains added.
 * A partition begins at a multiple of 8 items, the gap before the next is padded, and its row
 * pointer says where it ends. Consumers go by the row pointers, never by what pads.
 *
 * The features with an input in the batch share one stack of their tables, both in the order
 * of the model. Each table is padded to a multiple of 8 rows for each core; table i of the
 * stack is rotated by i times the rotation. A sample of a feature with n samples is row
 * sample % (n / cores_per_device) of core sample / (n / cores_per_device), behind the features
 * before it.
 */
#ifndef EMBENG_PARTITION_H
#define EMBENG_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embeng;
struct embeng_batch;

enum embeng_partition_flavour {
	/* pads 2147483647 and 2147483648.0; cores one behind the other */
	EMBENG_PARTITION_TF,
	/* pads 2147483647 and NaN; without minibatching each core has its own part of the
	 * buffer, and row pointers count from there; a power of two cores */
	EMBENG_PARTITION_JAX,
};

/* The rule that puts a row of the stack into one of 64 buckets, of which minibatches are made. */
enum embeng_partition_bucket {
	EMBENG_PARTITION_BUCKET_DEFAULT, /* TF: DIV, JAX: HASH */
	EMBENG_PARTITION_BUCKET_DIV,	 /* stretches of rows */
	EMBENG_PARTITION_BUCKET_MOD,	 /* row % 64 */
	EMBENG_PARTITION_BUCKET_HASH,	 /* HighwayHash64 of the row */
};

/**
 * struct embeng_partition_options - how to partition
 * @size: sizeof(struct embeng_partition_options)
 * @flavour: layout and padding
 * @sparse_cores: cores of the whole grid, 1 .. 65536
 * @cores_per_device: divides @sparse_cores and the samples of each feature, 1 .. 64
 * @device: index of the device that has these samples; below sparse_cores / cores_per_device
 * @max_ids_per_partition: 0: as many as there are, else an error, minibatches, or dropping
 * @max_unique_ids_per_partition: the same limit for distinct rows
 * @minibatching: nonzero: beyond the limits ids go into minibatches, by bucket. With limits of
 *	0 there is always one
 * @allow_id_dropping: nonzero: ids that do not fit are left out and counted
 * @bucket: rule for the buckets of minibatches
 * @buffer_size: items of the device's buffer, 0: enough. TF: a multiple of 8. JAX: rounded up to
 *	8 for each core, at most max_ids_per_partition (rounded up to 8) for each core and
 *	partition, with minibatching 64 times that; 0 is just that
 * @rotation_given: nonzero: @rotation counts, else it is @cores_per_device
 * @rotation: rotation of the second table of the stack against the first, and so on
 * @splits: the flavour's mask of where buckets are parted at any rate: what other devices'
 *	&struct embeng_partitioned.splits are together, so that all have the same minibatches.
 *	0 without @minibatching
 */
struct embeng_partition_options {
	size_t size;
	enum embeng_partition_flavour flavour;
	uint32_t sparse_cores, cores_per_device, device;
	uint64_t max_ids_per_partition, max_unique_ids_per_partition;
	int minibatching, allow_id_dropping;
	enum embeng_partition_bucket bucket;
	uint64_t buffer_size;
	int rotation_given;
	uint32_t rotation;
	uint64_t splits;
};

/**
 * struct embeng_partitioned - where the result goes, and what it is
 * @size: sizeof(struct embeng_partitioned)
 * @row_pointers: [row_pointer_capacity] i32, the caller's
 * @row_pointer_capacity: at least @row_pointer_count afterwards
 * @token_ids: [capacity] i32, the caller's
 * @sample_ids: [capacity] i32, the caller's
 * @gains: [capacity] f32, the caller's
 * @capacity: at least the last of @core_end afterwards
 * @max_ids: [sparse_cores] the caller's, or NULL: most ids of each partition, the maximum over
 *	the device's cores, before dropping
 * @max_unique_ids: [sparse_cores] the caller's, or NULL: most distinct rows of each partition
 * @required_buffer: [cores_per_device] the caller's, or NULL: items that a core needs, before
 *	dropping, minibatches not parted
 * @core_first: [cores_per_device] the caller's, or NULL: a core's first item
 * @core_end: [cores_per_device] the caller's, or NULL: one past a core's last item; memory between
 *	cores is left as it was
 * @row_pointer_count: out: cores_per_device x minibatches x @row_stride
 * @row_stride: out: row pointers of a minibatch: sparse_cores rounded up to 8
 * @buffer_size: out: items of the device's buffer
 * @minibatches: out: minibatches of each core
 * @dropped_ids: out: ids left out. JAX counts all that the limits leave out, TF equal ids of a
 *	sample once; so do both with what the buffer does not hold
 * @splits: out: the flavour's mask of where buckets are parted, for other devices to agree on
 *
 * Arrays that lie wholly inside a buffer (embeng_buffer_alloc()) are written in place, others
 * copied.
 */
struct embeng_partitioned {
	size_t size;
	int32_t *row_pointers;
	size_t row_pointer_capacity;
	int32_t *token_ids, *sample_ids;
	float *gains;
	size_t capacity;
	uint32_t *max_ids, *max_unique_ids;
	uint64_t *required_buffer, *core_first, *core_end;
	size_t row_pointer_count, row_stride, buffer_size;
	uint32_t minibatches;
	uint64_t dropped_ids, splits;
};

/**
 * embeng_partition_room() - capacities that the partitions of a batch need at most
 * @b: batch as for embeng_partition()
 * @options: options as for embeng_partition()
 * @row_pointers: out
 * @items: out
 *
 * Return: 0, or as embeng_partition() for a batch and options that do not fit.
 */
EMBENG_API int embeng_partition_room(const struct embeng_batch *b,
				     const struct embeng_partition_options *options,
				     size_t *row_pointers, size_t *items);

/**
 * embeng_partition() - the samples of a batch as partitioned CSR
 * @e: handle whose engine does it; no table is read, no step moves
 * @b: batch of @e in any mode; the features with an input are the stack. Stays as it is, so that it
 *	can be enqueued, too
 * @options: how
 * @out: in and out
 *
 * The result is the same bits for any number of engine cores. Ids outside their table are an
 * error, whatever the table's policy. Thread-safe; one runs at a time.
 *
 * Return: 0; -EINVAL (batch, options, cores and samples that do not divide, a sequence of bags),
 * -ERANGE (an id outside its table, a weight that is not finite unless the model's policy allows it,
 * more ids than a limit, the buffer or the arrays hold, more
 * than 2^31 rows in the stack), -ENOMEM, -ENODEV, -ESHUTDOWN. @out is untouched then, but for
 * what lies in a buffer.
 */
EMBENG_API int embeng_partition(struct embeng *e, const struct embeng_batch *b,
				const struct embeng_partition_options *options,
				struct embeng_partitioned *out);

#ifdef __cplusplus
}
#endif

#endif
