/* SPDX-License-Identifier: MIT */
/*
 * Tables over hosts: which rows are whose, their values, and checkpoints of any number of
 * hosts as checkpoints of another. Included by embeng.h, whose rules hold.
 *
 * If V rows are spread over N hosts, with q = V / N and e = V % N, the first e hosts have q + 1
 * rows and the others q; a table of fewer rows than hosts leaves the last ones without. DIV gives
 * host h the successive rows from h * q + min(h, e); MOD gives it h, h + N, ...
 */
#ifndef EMBENG_SHARD_API_H
#define EMBENG_SHARD_API_H

#include "checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embeng;
struct embeng_checkpoint;

/**
 * struct embeng_shard - one host's part of every table
 * @size: sizeof(struct embeng_shard)
 * @sharding: distribution of rows over @hosts
 * @hosts: from 1 to INT32_MAX
 * @host: from 0, below @hosts
 */
struct embeng_shard {
	size_t size;
	enum embeng_sharding sharding;
	uint32_t hosts;
	uint32_t host;
};

/**
 * embeng_shard_rows() - find the rows of a table that belong to a host
 * @table_rows: rows of the whole table, from 1
 * @rows: out
 *
 * Return: 0, -EINVAL, -ERANGE (hosts, host, rows).
 */
EMBENG_API int embeng_shard_rows(const struct embeng_shard *shard, int64_t table_rows,
				 struct embeng_shard_rows *rows);

/**
 * embeng_shard_find() - find the host of a row, and the row's place there
 * @shard: its host is not looked at
 * @host: out
 * @place: out: the row's number among those of the host, from 0
 *
 * Return: 0, -EINVAL, -ERANGE (hosts, a row outside the table).
 */
EMBENG_API int embeng_shard_find(const struct embeng_shard *shard, int64_t table_rows, int64_t row,
				 uint32_t *host, int64_t *place);

/**
 * embeng_shard_read() - rows [first, first + count) of a host's part of a table or slot
 * @slot: NULL or "parameters", or a slot's name
 * @first: counted among the rows of the host
 * @data: [count][dim]; of a slot [count][embeng_model_slot_width()], here and below
 *
 * As embeng_rows_read(): all rows as they are at one moment. Where the host has no rows,
 * reading none of them is no error. Return: 0, -EINVAL, -ENOENT, -ERANGE, and as
 * embeng_rows_read().
 */
EMBENG_API int embeng_shard_read(struct embeng *e, int table, const char *slot,
				 const struct embeng_shard *shard, int64_t first, size_t count,
				 float *data);

/**
 * embeng_shard_write() - write rows of a host's part of a table or slot
 * @data: [count][dim]
 *
 * Return: as embeng_shard_read().
 */
EMBENG_API int embeng_shard_write(struct embeng *e, int table, const char *slot,
				  const struct embeng_shard *shard, int64_t first, size_t count,
				  const float *data);

/**
 * embeng_shard_start() - compute the initial values of a host's rows, without a device
 * @first: counted among the rows of the host
 * @data: [count][dim]
 *
 * Gives the bits that embeng_open() starts these rows with. Those of a row depend on its number
 * in the whole table, not on the host that has it. Return: 0, -EINVAL, -ENOENT, -ERANGE.
 */
EMBENG_API int embeng_shard_start(const struct embeng_model *model, int table, const char *slot,
				  const struct embeng_shard *shard, int64_t first, size_t count,
				  float *data);

/**
 * struct embeng_shard_part - rows that an initializer is asked for
 * @size: sizeof(struct embeng_shard_part)
 * @shard: host whose rows they are
 * @table: index
 * @slot: "parameters", or a slot's name
 * @table_rows: rows of the whole table
 * @dim: columns of @slot
 * @place: number of the first row among the rows of the host
 * @rows: the rows of the whole table that are asked for
 */
struct embeng_shard_part {
	size_t size;
	struct embeng_shard shard;
	int table;
	const char *slot;
	int64_t table_rows, dim, place;
	struct embeng_shard_rows rows;
};

/**
 * typedef embeng_shard_fn - an initializer that knows which shard it fills
 * @data: [part->rows.count][part->dim], to be written whole
 *
 * Return: 0; anything else ends the call that asked.
 */
typedef int (*embeng_shard_fn)(void *arg, const struct embeng_shard_part *part, float *data);

/**
 * embeng_shard_initialize() - fill a table or slot by an initializer of the program
 * @slot: NULL or "parameters", or a slot's name
 * @fn: called for the rows of every host of the model, host by host and there in row
 *	order, a piece of about a MiB at a time; it may not use @e
 *
 * Where @fn goes by the rows' numbers in the table, the values are the same however the
 * table is sharded. Return: 0, -EINVAL, -ENOENT, -ECANCELED (@fn returned other than 0:
 * the rows before that piece are filled), -ENOMEM, and as embeng_rows_write().
 */
EMBENG_API int embeng_shard_initialize(struct embeng *e, int table, const char *slot,
				       embeng_shard_fn fn, void *arg);

/**
 * embeng_checkpoint_read_shard() - rows [first, first + count) of a host's part
 * @shard: any: it need not be how the checkpoint was sharded
 * @first: counted among the rows of the host
 * @data: [count][dim]
 *
 * Checks the chunks that it reads. Thread-safe. Return: as embeng_checkpoint_read(), and
 * -EINVAL (shard).
 */
EMBENG_API int embeng_checkpoint_read_shard(const struct embeng_checkpoint *checkpoint, int table,
					    const char *slot, const struct embeng_shard *shard,
					    int64_t first, size_t count, float *data);

/**
 * struct embeng_reshard_options - how to shard anew; all zero but the size: one host
 * @size: sizeof(struct embeng_reshard_options)
 * @hosts: up to INT32_MAX; 0 is 1
 * @sharding: distribution of rows over @hosts
 * @shard_bytes: most bytes of rows in one file, at least one row; 0: 1 GiB
 * @progress: NULL or told about bytes written
 * @progress_arg: for @progress
 * @keep: as of &struct embeng_save_options
 */
struct embeng_reshard_options {
	size_t size;
	uint32_t hosts;
	enum embeng_sharding sharding;
	uint64_t shard_bytes;
	embeng_progress_fn progress;
	void *progress_arg;
	uint32_t keep;
};

/**
 * embeng_checkpoint_reshard() - write a checkpoint of n hosts as one of m
 * @in: folder of the checkpoint
 * @out: folder as of embeng_save(); may be @in
 * @error: out, or NULL
 *
 * The same tables, slots, step and program's text in other files. Every chunk that is
 * read is checked; a MiB of rows is in memory at a time. A crash leaves in @out
 * what embeng_save() says. From a sharding into another one a row is read by itself, so
 * that the files of one table should fit into the page cache, or be on a fast disk.
 * Return: 0, and as embeng_checkpoint_open() and embeng_save(); -ERANGE (hosts).
 */
EMBENG_API int embeng_checkpoint_reshard(const char *in, const char *out,
					 const struct embeng_reshard_options *options,
					 struct embeng_error *error);

#ifdef __cplusplus
}
#endif

#endif
