/* SPDX-License-Identifier: MIT */
/*
 * Batches of tables whose rows are spread over hosts: the rows that a batch reads and their hosts,
 * activations out of rows that came from there, and the sums of gradients that go back. embeng.h's rules
 * hold.
 *
 * The tables need not be those of the handle's model, and none of these calls takes a step. One step of a
 * replica goes so:
 *
 *   embeng_spread_unique()		here	which rows the batch reads, each once, by host
 *   embeng_batch_dense(),		there	a batch of these rows, of a model with the host's rows;
 *   embeng_batch_gather()			its activations are the rows
 *   embeng_spread_pool()		here	the activations, once the rows are here
 *   embeng_spread_sum()		here	a sum for each row, once there are gradients
 *   embeng_apply_gradients()		there	with &embeng_gradients.sums
 *
 * Activations, rows and slots then have the bits that they have where the whole tables are in one handle
 * with as many replicas, for any number of hosts. A replica's whole batch must be in one
 * embeng_spread_sum(), and tables accumulate gradients and do not scale by frequency.
 */
#ifndef EMBENG_SPREAD_API_H
#define EMBENG_SPREAD_API_H

#include "../embeng.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct embeng_spread_table - one table and the list of rows that a batch reads of it
 * @name: for sentences; NULL: its number
 * @rows: rows of the whole table
 * @dim: columns; embeng_spread_unique() does not look at it, nor at @combiner
 * @combiner: combiner of pooled features; 0 is mean
 * @out_of_range: policy for ids outside the table
 * @list: [@room], out of embeng_spread_unique(): the rows that the batch reads, each once. Rows of one
 *	host follow each other, and ascend; each has the number that embeng_shard_find() calls its place
 * @room: elements of @list. As many as the table's features have ids are always enough
 * @counts: [hosts], out of embeng_spread_unique(): how many rows of the list each host has
 * @count: set by embeng_spread_unique(): rows of the list. The other two read it
 * @data: [@count][@dim], the rows of the list, as a gathering lookup read them; for embeng_spread_pool(),
 *	and for embeng_spread_sum() of EMBENG_MAX
 * @sums: [@count][@dim], out of embeng_spread_sum(): of each row of the list
 */
struct embeng_spread_table {
	const char *name;
	int64_t rows, dim;
	enum embeng_combiner_name combiner;
	enum embeng_policy out_of_range;
	int64_t *list;
	size_t room;
	size_t *counts;
	size_t count;
	const float *data;
	float *sums;
};

/**
 * struct embeng_spread_feature - the input of one feature
 * @name: for sentences; NULL: its number
 * @table: number of its table in &struct embeng_spread
 * @max_sequence_length: as in &struct embeng_feature_config
 * @samples: how many the batch has
 * @offsets: [@samples + 1], where each sample's ids begin and end; NULL: one id in each sample
 * @type: type of @ids
 * @ids: [@id_count], read by embeng_spread_unique()
 * @id_count: ids of all samples
 * @weights: [@id_count], or NULL: each is 1; not read by embeng_spread_unique()
 * @places: [@id_count], out of embeng_spread_unique(): the place of each id's row in the list, -1: none.
 *	The other two read them
 * @activations: out of embeng_spread_pool(): [@samples][dim], of a sequence
 *	[@samples][@max_sequence_length][dim]
 * @gradients: for embeng_spread_sum(), of the same shape; NULL: all are zero
 *
 * Features of one table are in the model's order.
 */
struct embeng_spread_feature {
	const char *name;
	size_t table;
	int64_t max_sequence_length;
	size_t samples;
	const int64_t *offsets;
	enum embeng_id_type type;
	const void *ids;
	size_t id_count;
	const float *weights;
	int32_t *places;
	float *activations;
	const float *gradients;
};

/**
 * struct embeng_spread - the batch of one replica
 * @size: sizeof(struct embeng_spread)
 * @tables: [@table_count]
 * @table_count: from 1 to 4096
 * @features: [@feature_count]
 * @feature_count: from 1 to 4096
 * @hosts: hosts over which the rows are spread, from 1 to 65536
 * @sharding: distribution of rows over @hosts
 * @allow_non_finite: not 0: weights and gradients may be infinite or NaN. Otherwise
 *	embeng_spread_sum() refuses such a gradient before it writes a sum
 */
struct embeng_spread {
	size_t size;
	struct embeng_spread_table *tables;
	size_t table_count;
	const struct embeng_spread_feature *features;
	size_t feature_count;
	uint32_t hosts;
	enum embeng_sharding sharding;
	int allow_non_finite;
};

/**
 * embeng_spread_unique() - list the rows that a batch reads, by host
 *
 * Sets the list, counts and count of each table and the places of each feature. The list has exactly the
 * rows that a lookup would read and an update of the batch change: ids that the policy drops or reads as
 * zeros have no row, nor have those behind the length of a sequence.
 *
 * Arrays that lie in buffers of the handle (embeng_buffer_alloc()) are used in place, and others are copied,
 * here and below. Several threads may call; the device takes one call after another.
 *
 * Return: 0, -EINVAL, -ENOTSUP (the device cannot, or the handle is one over a group), -ERANGE (an id, a
 * room that is too small, a size), -ENOMEM.
 */
EMBENG_API int embeng_spread_unique(struct embeng *e, const struct embeng_spread *batch);

/**
 * embeng_spread_pool() - compute the activations of a batch out of the rows of its lists
 *
 * Return: as embeng_spread_unique().
 */
EMBENG_API int embeng_spread_pool(struct embeng *e, const struct embeng_spread *batch);

/**
 * embeng_spread_sum() - sum the gradients of each row of the lists
 *
 * Return: as embeng_spread_unique(); -ERANGE also for a gradient that is not finite.
 */
EMBENG_API int embeng_spread_sum(struct embeng *e, const struct embeng_spread *batch);

/**
 * embeng_batch_gather() - have a dense input of a batch read rows with their bits
 * @feature: embeng_batch_dense() has given its input
 *
 * Each activation then has the bits of its row, where a lookup adds them to +0: zeros keep their sign.
 *
 * Return: 0, -EINVAL, -ENOENT, -ENOTSUP (the device cannot).
 */
EMBENG_API int embeng_batch_gather(struct embeng_batch *b, int feature);

#ifdef __cplusplus
}
#endif
#endif
