/* SPDX-License-Identifier: MIT */
/* Parts of a save. Which are on disk when, and in which order: save.c. */
#ifndef EMBENG_SAVE_H
#define EMBENG_SAVE_H

#include "checkpoint_index.h"
#include "rows.h"

#define LOCK_NAME ".embeng.lock"

struct save {
	struct embeng *e;
	const char *dir;
	struct embeng_save_options options;
	struct index index; /* its model is the handle's, its program state the caller's */
	uint64_t nonce;
	size_t begun; /* files that were created */
	uint64_t done;
};

/*
 * save_rows.c: step count, file list and all shards, each synced, as a body of
 * rows_behind_gate(). @arg: &struct save.
 */
int save_rows(struct embeng *e, void *arg, uint64_t after);

/*
 * save_clean.c: remove the files in @dir that look like ours and that @keep, where
 * given, does not name.
 */
int clean_folder(const char *dir, const struct index *keep);

#endif
