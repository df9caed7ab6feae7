/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: a folder of safetensors shards and an index.json that commits them.
 * Included by embeng.h, whose rules hold; the format is in embeng-checkpoint(5).
 *
 * A save becomes visible by one atomic rename and is on disk when the call returns:
 * after a crash at any point the folder holds the old checkpoint or the new one,
 * whole. Every 4 KiB of a shard have a CRC-32C, the table of them a SHA-256.
 */
#ifndef EMBENG_CHECKPOINT_API_H
#define EMBENG_CHECKPOINT_API_H

#include "error.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embeng;
struct embeng_checkpoint;

#define EMBENG_SAVE_NOT_FINITE (1u << 0) /* infinities and NaN are saved, and the index says so */
#define EMBENG_SAVE_DELTA (1u << 1)	 /* only rows that differ from the folder's checkpoint */

#define EMBENG_SAVE_WHY 512 /* bytes of the sentence in &struct embeng_save_report */

/**
 * struct embeng_save_report - counts of the rows and bytes that a save wrote
 * @size: sizeof(struct embeng_save_report)
 * @delta: 0: a full checkpoint; else how many deltas stand behind the base, this one included
 * @base_step: step of the full checkpoint that these deltas stand on; 0 if @delta is
 * @rows: rows of all tables that were written; a row's slots do not count
 * @bytes: bytes of the shards that were written
 * @why_full: why EMBENG_SAVE_DELTA led to a full checkpoint, or ""
 */
struct embeng_save_report {
	size_t size;
	uint32_t delta;
	uint64_t base_step;
	uint64_t rows;
	uint64_t bytes;
	char why_full[EMBENG_SAVE_WHY];
};

/**
 * struct embeng_save_options - how to save; all zero: defaults
 * @size: sizeof(struct embeng_save_options)
 * @progress: NULL or told about bytes written
 * @progress_arg: for @progress
 * @shard_bytes: most bytes of rows in one shard, at least one row; 0: 1 GiB. A shard has
 *	rows of one of the hosts of &struct embeng_engine_config; what a host has of tables up to
 *	8 MiB, slots included, shares shards
 * @program_state: NULL or UTF-8 text that the program wants back with exactly these
 *	tables (its own step, seeds, dense parameters); up to 64 MiB
 * @flags: EMBENG_SAVE_*
 * @keep: checkpoints that stay in the folder, this one included, up to 1000; 0: 2. If none of
 *	them is finite, the last one that is stays as well. The base and the deltas that they
 *	need stay with them, and do not count
 * @report: NULL or told what was written; its size set by the caller, the rest filled in on
 *	success alone
 */
struct embeng_save_options {
	size_t size;
	embeng_progress_fn progress;
	void *progress_arg;
	uint64_t shard_bytes;
	const char *program_state;
	uint32_t flags;
	uint32_t keep;
	struct embeng_save_report *report;
};

/**
 * embeng_save() - save tables, slots and the optimizer's step count
 * @dir: made when it is not there, not its parents; the checkpoint in it becomes an
 *	earlier one, and those beyond @options->keep are removed once all that was written
 *	has been read back; other files are left alone
 * @options: NULL: defaults
 *
 * Sees every complete update that was handed in, and none of the later ones, which go on
 * meanwhile. The device keeps the old contents of each row that changes before it is saved:
 * 4 bytes for each row of the tables, and at most the tables once more. Where it has no
 * memory for that, the save begins again and updates wait until the rows are written. One
 * save into a folder and one of @e at a time; readers need not care. @progress may not use
 * @e. A value that is an infinity or NaN, in a row or a slot, ends the save unless
 * EMBENG_SAVE_NOT_FINITE is given.
 *
 * With EMBENG_SAVE_DELTA all rows are compared with the checkpoint that is in the folder, by their
 * bits and with their slots, and those that differ are written into one shard. The checkpoint is then
 * that one and this delta: readers see one checkpoint, and every value is the one that a full save
 * would have written. It is a full save where the folder has no whole checkpoint of this model in this
 * sharding, has 64 deltas behind a base, or the deltas would be larger than the base.
 *
 * Return: 0, -ECANCELED, -EBUSY (another save), -EBADMSG (the folder's index.json is
 * not one of ours), -EINVAL (a name is not UTF-8), -ERANGE
 * (a value is not finite), -ENOSPC, -EDQUOT, -EIO, ...: then
 * the folder's old checkpoint is untouched, unless the sentence names index.json or
 * the folder's last sync: the new one may then be in place, whole.
 */
EMBENG_API int embeng_save(struct embeng *e, const char *dir,
			   const struct embeng_save_options *options);

#define EMBENG_RESTORE_MISSING_TABLES (1u << 0)	 /* tables not in the checkpoint stay */
#define EMBENG_RESTORE_MISSING_SLOTS (1u << 1)	 /* slots not in it stay */
#define EMBENG_RESTORE_OTHER_SHAPES (1u << 2)	 /* the rows that both have are restored */
#define EMBENG_RESTORE_OTHER_OPTIMIZER (1u << 3) /* parameters alone; slots stay */
#define EMBENG_RESTORE_STEP (1u << 4)		 /* the newest checkpoint of a step */

/**
 * struct embeng_restore_name - a table of a checkpoint and the table of the model it goes into
 * @from: table of the checkpoint, or NULL: @to stays as it is
 * @to: table of the model, or NULL: @from is restored into no table
 */
struct embeng_restore_name {
	const char *from;
	const char *to;
};

#define EMBENG_RESTORE_TEXT 2048

/**
 * struct embeng_restore_report - counts of restored and left rows, and differences
 * @size: sizeof(struct embeng_restore_report)
 * @tables: tables whose parameters were restored
 * @tables_left: tables of the model that stay as they were
 * @slots: slots that were restored, over all tables
 * @slots_left: slots of restored tables that stay as they were
 * @rows: restored rows, over all tables
 * @rows_left: rows of restored tables that the checkpoint does not have; they stay
 * @rows_unused: rows of the checkpoint for which the restored tables have no room
 * @settings: settings of optimizers that have another value in the checkpoint, over all
 *	restored tables; the model keeps its own
 * @not_finite: restored parameters and slots with a value that is an infinity or NaN, which
 *	only a model takes whose policy non_finite is allow; others refuse the restore
 * @text: a line for each of @settings and @not_finite, which names the table, the setting and
 *	its two values, or the slot and the first row; the last line is "and more" where there
 *	are too many
 */
struct embeng_restore_report {
	size_t size;
	size_t tables;
	size_t tables_left;
	size_t slots;
	size_t slots_left;
	uint64_t rows;
	uint64_t rows_left;
	uint64_t rows_unused;
	size_t settings;
	size_t not_finite;
	char text[EMBENG_RESTORE_TEXT];
};

/**
 * struct embeng_restore_options - how to restore; all zero: defaults
 * @size: sizeof(struct embeng_restore_options)
 * @progress: NULL or told about bytes read
 * @progress_arg: for @progress
 * @flags: EMBENG_RESTORE_*
 * @names: NULL or which table goes where. A table of the model that no entry names as @to
 *	takes the table of its own name, unless an entry names that one as @from
 * @name_count: entries of @names; no two have the same @to
 * @report: NULL or told what was restored; its size set by the caller, the rest filled in
 *	on success alone
 * @step: with EMBENG_RESTORE_STEP
 */
struct embeng_restore_options {
	size_t size;
	embeng_progress_fn progress;
	void *progress_arg;
	uint32_t flags;
	const struct embeng_restore_name *names;
	size_t name_count;
	struct embeng_restore_report *report;
	uint64_t step;
};

/**
 * embeng_restore() - load tables, slots and the optimizer's step count
 * @dir: folder of a checkpoint, saved by any number of cores or hosts
 * @options: NULL: defaults
 *
 * Tables are found by name, or as @options say. Those that the model does not have are
 * left out, and a table without an optimizer takes the parameters alone. Where a table was
 * saved with another kind of optimizer, its slots mean something else, even if they have
 * the same names: that is refused, or with EMBENG_RESTORE_OTHER_OPTIMIZER the parameters
 * are restored and the slots stay. Settings and rates are the model's own.
 *
 * With EMBENG_RESTORE_OTHER_SHAPES a table may have grown or shrunk: the rows that both
 * have are restored with their slots, and the others stay, as their initializer made them
 * if the model is fresh. Another dim is always an error. So is a model of which the
 * checkpoint has no table at all, unless names left out one that it has.
 *
 * Every chunk that is loaded is checked as it streams into fresh tables, which are
 * swapped in as one at the end; where the device has no room for both, those chunks and
 * their numbers are all checked first and the rows are then replaced in place, which cannot
 * be canceled. A number that the model cannot have, in a row or a slot, is refused with its
 * table, slot and row. On failure the tables are as they were, but for a read error in that
 * second pass, which the message says. Steps in flight stay in flight, updates wait.
 * @progress may not use @e; it counts bytes twice when there are two passes.
 *
 * Return: 0, -ENOENT (no checkpoint, table, slot), -EINVAL (shape, optimizer,
 * names), -EBADMSG (corrupt:
 * file and offset), -ERANGE (a number), -ENOTSUP (newer schema), -ECANCELED, -EIO.
 */
EMBENG_API int embeng_restore(struct embeng *e, const char *dir,
			      const struct embeng_restore_options *options);

/**
 * struct embeng_shard_rows - rows of a table that are one host's
 * @first: first row; 0 where @count is
 * @stride: from a row to the next
 * @count: rows
 */
struct embeng_shard_rows {
	int64_t first, stride, count;
};

/**
 * typedef embeng_checkpoint_fn - computes rows that embeng_checkpoint_write() writes
 * @arg: as given there
 * @table: index of the table
 * @slot: "parameters" or the name of a slot
 * @rows: the rows of the table that are wanted
 * @data: [rows->count][embeng_model_slot_width()] to fill
 *
 * Return: 0, or anything else to give up.
 */
typedef int (*embeng_checkpoint_fn)(void *arg, int table, const char *slot,
				    const struct embeng_shard_rows *rows, float *data);

/**
 * struct embeng_write_options - how to write a checkpoint; all zero but the sizes: defaults
 * @size: sizeof(struct embeng_write_options)
 * @step: the optimizer's count of updates
 * @from: NULL, or the checkpoint that this one is made from, with as many tables: tables that
 *	were frozen have missed as many updates as there
 * @replaces: 1: @from is the checkpoint of the folder. If a save has replaced it meanwhile,
 *	nothing is written
 * @save: as embeng_save() takes them; its size must be set
 */
struct embeng_write_options {
	size_t size;
	uint64_t step;
	const struct embeng_checkpoint *from;
	int replaces;
	struct embeng_save_options save;
};

/**
 * embeng_checkpoint_write() - write a checkpoint without a device
 * @dir: as for embeng_save()
 * @model: its tables, optimizers and features
 * @fn: gives the rows, table by table, each row of each slot once
 *
 * For programs that make a checkpoint out of something else: of another format, or of
 * another checkpoint. It commits and keeps as embeng_save() does. Return: 0, -ECANCELED (@fn
 * gave up), -ESTALE (see @options), -ERANGE (also a slot's number that the optimizer cannot
 * go on from, such as a velocity below 0), and as embeng_save().
 */
EMBENG_API int embeng_checkpoint_write(const char *dir, const struct embeng_model *model,
				       embeng_checkpoint_fn fn, void *arg,
				       const struct embeng_write_options *options,
				       struct embeng_error *error);

/* -- looking into a checkpoint ------------------------------------------- */

/**
 * embeng_checkpoint_open() - open for reading, without a device
 *
 * Reads and checks the index and every shard's size and header, and maps the shards
 * into memory; rows are read later. Later saves into the folder do not change what is
 * open. If there are more than 1024 shards, as of a table over many hosts, only the index is read: a
 * shard is mapped and checked when one of its rows is needed first, and until then a
 * save may remove it, of which calls tell with -ESTALE. If a shard is truncated while it is
 * mapped, the calls below return -EIO; a serving
 * lookup reads rows that were checked before straight from the mapping, and there the
 * system ends the process (SIGBUS). Return: 0, -ENOENT, -EBADMSG, -ENOTSUP (a newer
 * schema), -EIO, -ENOMEM.
 */
EMBENG_API int embeng_checkpoint_open(const char *dir, struct embeng_checkpoint **out,
				      struct embeng_error *error);
/**
 * embeng_checkpoint_open_earlier() - open a checkpoint that a save left in the folder
 * @back: how many saves ago; 0 is the newest, as embeng_checkpoint_open() opens it
 *
 * Where index.json is missing or broken, the earlier ones are in the order of their steps.
 * Return: as embeng_checkpoint_open(), -ENODATA (there is none so old).
 */
EMBENG_API int embeng_checkpoint_open_earlier(const char *dir, size_t back,
					      struct embeng_checkpoint **out,
					      struct embeng_error *error);

/**
 * embeng_checkpoint_open_step() - open the newest checkpoint of a step
 * @step: the optimizer's count of updates
 *
 * Return: as embeng_checkpoint_open(), -ENODATA (the folder has none of this step).
 */
EMBENG_API int embeng_checkpoint_open_step(const char *dir, uint64_t step,
					   struct embeng_checkpoint **out,
					   struct embeng_error *error);

/** embeng_checkpoint_close() - unmap everything. NULL is fine */
EMBENG_API void embeng_checkpoint_close(struct embeng_checkpoint *checkpoint);

/**
 * struct embeng_checkpoint_info - facts about a checkpoint
 * @size: sizeof(struct embeng_checkpoint_info)
 * @step: the optimizer's count of updates
 * @model_hash: hash of the model that was saved
 * @table_count: tables
 * @file_count: shards
 * @bytes: bytes of all shards
 * @chunk_count: checksummed pieces
 * @program_state: text as it was saved, or NULL; it belongs to the checkpoint
 * @deltas: deltas behind the base, see EMBENG_SAVE_DELTA; the counts above are those of all
 */
struct embeng_checkpoint_info {
	size_t size;
	uint64_t step;
	uint64_t model_hash;
	size_t table_count;
	size_t file_count;
	uint64_t bytes;
	uint64_t chunk_count;
	const char *program_state;
	uint32_t deltas;
};

/**
 * embeng_checkpoint_info() - read the facts about a checkpoint
 * @info: out, its size set by the caller
 *
 * Return: 0, -EINVAL.
 */
EMBENG_API int embeng_checkpoint_info(const struct embeng_checkpoint *checkpoint,
				      struct embeng_checkpoint_info *info);

/**
 * embeng_checkpoint_model() - tables, optimizers and features as they were saved
 *
 * The checkpoint's own; initializers and rates' values are not saved.
 */
EMBENG_API const struct embeng_model *embeng_checkpoint_model(
	const struct embeng_checkpoint *checkpoint);

/**
 * embeng_checkpoint_finite() - whether all values of a table and its slots are finite
 *
 * It was found when they were saved; nothing is read for it. Return: 1, 0, -ENOENT (no
 * such table), -ENODATA (saved by a library that did not look), -EINVAL.
 */
EMBENG_API int embeng_checkpoint_finite(const struct embeng_checkpoint *checkpoint, int table);

/**
 * embeng_checkpoint_read() - rows [first, first + count) of a table or slot
 * @slot: NULL or "parameters", or a slot's name
 * @data: [count][embeng_model_slot_width()]
 *
 * Checks the chunks that it reads. Thread-safe. Return: 0, -ENOENT, -ERANGE,
 * -EBADMSG naming file and offset, -ESTALE (a save removed the shard before it was used), -EIO.
 */
EMBENG_API int embeng_checkpoint_read(const struct embeng_checkpoint *checkpoint, int table,
				      const char *slot, int64_t first, size_t count, float *data);

/**
 * embeng_checkpoint_verify() - read and check everything
 *
 * Return: 0, -EBADMSG naming file and offset of the first fault, -ECANCELED, -EIO.
 */
EMBENG_API int embeng_checkpoint_verify(const struct embeng_checkpoint *checkpoint,
					embeng_progress_fn progress, void *arg);

#ifdef __cplusplus
}
#endif

#endif
