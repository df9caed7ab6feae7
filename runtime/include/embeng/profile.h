/* SPDX-License-Identifier: MIT */
/*
 * Profiles: which rows of a table are asked for how often, from a part of the batches,
 * in a folder that several models may share. Included by embeng.h, whose rules hold; the
 * files are in embeng-profile(5).
 */
#ifndef EMBENG_PROFILE_API_H
#define EMBENG_PROFILE_API_H

#include "error.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embeng_batch;
struct embeng_profile;

#define EMBENG_PROFILE_HOT 256 /* rows of a table that are counted by themselves */
#define EMBENG_PROFILE_CORES 4096

/**
 * struct embeng_profile_options - the choice of batches; all zero but the size: defaults
 * @size: sizeof(struct embeng_profile_options)
 * @rate: part of the batches, up to 1; 0: 0.03
 * @seed: seed for the choice of batches; equal seeds choose the same ones
 */
struct embeng_profile_options {
	size_t size;
	float rate;
	uint64_t seed;
};

/**
 * embeng_profile_open() - begin to profile a model
 * @dir: folder, there already; files of the model's tables in it are read
 * @options: NULL: defaults
 * @error: out, or NULL
 *
 * A table's file has a name made of the table's name, rows and number of features, and of
 * hosts and sharding: models in which these are equal share it. Return: 0, -EINVAL,
 * -ERANGE (rate), -EBADMSG (a file that is not ours or corrupt), -ENOENT, -EIO, -ENOMEM.
 */
EMBENG_API int embeng_profile_open(const char *dir, const struct embeng_model *model,
				   const struct embeng_profile_options *options,
				   struct embeng_profile **out, struct embeng_error *error);
/** embeng_profile_close() - forget what was not saved. NULL is fine */
EMBENG_API void embeng_profile_close(struct embeng_profile *profile);

/**
 * embeng_profile_note() - look at a batch, or not
 * @batch: batch of an engine with the profiled model; its inputs must not be reset yet
 *
 * Call it for every batch, before or after its enqueue. Ids outside their table do not
 * count. Return: 1 when it was looked at, 0 when it was left out, -EINVAL, -ENOMEM.
 */
EMBENG_API int embeng_profile_note(struct embeng_profile *profile,
				   const struct embeng_batch *batch);

/**
 * embeng_profile_save() - add what was seen to the folder's files
 *
 * Each is read again and replaced by an atomic rename, so that what others saved
 * meanwhile is kept. Return: 0, -EBUSY (another save), -EBADMSG, -ENOSPC, -EIO, -ENOMEM; on
 * failure some tables may be saved, and the others are by the next call.
 */
EMBENG_API int embeng_profile_save(struct embeng_profile *profile);

/**
 * struct embeng_profile_counts - the counts of a table
 * @size: sizeof(struct embeng_profile_counts)
 * @batches: looked at
 * @ids: in them
 * @hot_count: number of @hot
 * @hot: the rows that came most often, in the order of their counts. Counts are exact
 *	where no more than EMBENG_PROFILE_HOT rows came, else at most too low
 */
struct embeng_profile_counts {
	size_t size;
	uint64_t batches, ids;
	size_t hot_count;
	struct {
		int64_t row;
		uint64_t count;
	} hot[EMBENG_PROFILE_HOT];
};

/**
 * embeng_profile_counts() - read the counts of a table
 * @counts: out, its size set by the caller
 *
 * They are those of the folder when it was opened or last saved, and everything seen since.
 * Return: 0, -EINVAL, -ENOENT.
 */
EMBENG_API int embeng_profile_counts(const struct embeng_profile *profile, size_t table,
				     struct embeng_profile_counts *counts);

/**
 * embeng_profile_rotations() - a distribution of rows that gives cores equal work
 * @cores: from 1 to EMBENG_PROFILE_CORES
 * @rotations: out: [tables]: row r of table t goes to core (r + rotations[t]) % cores
 *
 * The table with the hottest core is placed first; each gets the rotation that adds least
 * to the core with most ids, the lowest of those. Rows that are not hot count as spread
 * evenly. The cores are those of a grid that holds rows by core: embeng_stacking_make() takes
 * the profile itself. The engine's own cores share all rows and take the work as it comes, so
 * that for them there is nothing to distribute. Return: 0, -EINVAL, -ERANGE, -ENOMEM.
 */
EMBENG_API int embeng_profile_rotations(const struct embeng_profile *profile, uint32_t cores,
					uint32_t *rotations);

#ifdef __cplusplus
}
#endif

#endif
