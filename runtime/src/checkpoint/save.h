/* SPDX-License-Identifier: MIT */
/* Parts of a save. Which are on disk when, and in which order: save.c. */
#ifndef EMBENG_SAVE_H
#define EMBENG_SAVE_H

#include "open.h"
#include "session/rows.h"

#define LOCK_NAME ".embeng.lock"

struct save;

/*
 * struct save_source - where the rows of a save come from
 * @what: the call, for sentences
 * @progress: what progress is told
 * @begin: behind the lock of the folder, before anything is written there
 * @rows: index.step, and then save_rows(), while the source stands still
 * @room: rows of a table, at a stride, that @read takes at once, at least one
 * @read: rows of a table or slot in *@data, which the next read overwrites
 */
struct save_source {
	const char *what, *progress;
	int (*begin)(struct save *s);
	int (*rows)(struct save *s);
	int (*room)(struct save *s, size_t table, uint64_t stride, uint64_t *most);
	int (*read)(struct save *s, size_t table, size_t array,
		    const struct embeng_shard_rows *rows, const char **data);
};

struct save {
	const struct save_source *source;
	struct embeng *e;		/* save_engine.c, else NULL */
	uint64_t after;
	struct embeng_checkpoint *from; /* reshard.c, else NULL */
	char *buffer;
	const char *in;
	const struct embeng_reshard_options *reshard;
	const char *dir;
	struct embeng_save_options options;
	struct index index; /* its model is the source's, its program state the caller's */
	uint64_t nonce;
	size_t begun; /* files that were created */
	uint64_t done;
};

/* save.c: everything but the arguments. Frees what it made; the model stays. */
int save_run(struct save *s);

/* save_plan.c: the list of files, and where everything will stand in them. */
int save_plan(struct save *s);
/* The header of a shard; sets where its tensors stand. */
int save_header(const struct save *s, struct index_file *file, char **header, size_t *bytes);

/* save_rows.c: plan and all shards, each synced. */
int save_rows(struct save *s);

/*
 * save_clean.c: remove the files in @dir that look like ours and that @keep, where
 * given, does not name.
 */
int clean_folder(const char *dir, const struct index *keep);

#endif
