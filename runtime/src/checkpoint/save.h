/* SPDX-License-Identifier: MIT */
/* Parts of a save. save.c says in which order they reach the disk. */
#ifndef EMBENG_SAVE_H
#define EMBENG_SAVE_H

#include "open.h"
#include "session/snapshot.h"
#include "embeng/shard.h"

#define LOCK_NAME ".embeng.lock"

struct hosts_save;
struct save;
struct stream_out;
struct unpacking;
struct written;

/*
 * struct save_source - the origin of the rows of a save: an engine or another checkpoint
 * @what: name of the public call, for sentences
 * @progress: word for the call in progress reports
 * @begin: called once the folder is locked, before anything is written there
 * @rows: sets index.step and then calls save_rows(), while the source does not change
 * @room: returns how many rows of a table, at a stride, @read takes at once; at least one
 * @read: reads rows of a table or slot into *@data, which the next read overwrites
 * @pick: as @read, for rows of any numbers, with room as at a stride of 2; only of a source that deltas
 *	are saved of
 * @verify: NULL, or reads back what was written, by the index @name, in place of save_commit()
 * @forget: NULL, or removes files that the source made itself, where nothing was committed
 * @passed: NULL, or told that the first @tables of the model will not be read any more
 */
struct save_source {
	const char *what, *progress;
	int (*begin)(struct save *s);
	int (*rows)(struct save *s);
	int (*room)(struct save *s, size_t table, uint64_t stride, uint64_t *most);
	int (*read)(struct save *s, size_t table, size_t array,
		    const struct embeng_shard_rows *rows, const char **data);
	int (*pick)(struct save *s, size_t table, size_t array, const uint64_t *numbers,
		    uint64_t count, const char **data);
	void (*passed)(struct save *s, size_t tables);
	int (*verify)(struct save *s, const char *name);
	void (*forget)(struct save *s);
};

struct save {
	const struct save_source *source;
	struct stream_out *stream; /* written to in place of a folder, or NULL */
	struct embeng *e;	   /* save_engine.c, else NULL */
	struct snapshot snapshot;
	bool held; /* the rows are read behind the gate, since there is no snapshot */
	uint64_t after;
	struct embeng_checkpoint *from; /* reshard.c, else NULL */
	char *buffer;
	uint64_t buffer_bytes;
	const char *in;
	const struct embeng_reshard_options *reshard;
	const struct written *written; /* write.c, else NULL */
	struct unpacking *unpacking;   /* stream_unpack.c, else NULL */
	struct hosts_save *hosts;      /* hosts/save.c, else NULL */
	const uint32_t *owners; /* [tables]: tables of different owners share no shard; or NULL */
	uint32_t owner_count;
	const char *dir;
	struct embeng_save_options options;
	struct index index; /* the model belongs to the source, the program state to the caller */
	uint64_t nonce;
	char *old_text; /* the index that is replaced, or NULL */
	size_t old_length;
	struct index known; /* as "earlier" all checkpoints in the folder, the replaced one first */
	bool kept_old;	    /* its copy is there, as index.earlier[0] */
	struct embeng_checkpoint *base; /* the one that a delta changes; NULL: a full save */
	uint64_t **marks; /* [tables] a bit for each row: it differs from the base's */
	size_t own;	  /* index of the first entry that is not the base's; 0: a full save */
	uint64_t before;  /* bytes of the base's shards */
	char why_full[EMBENG_SAVE_WHY]; /* why there is no delta, if one was wanted */
	size_t homes;			/* number of files in the plan */
	size_t begun;			/* number of files that were created */
	uint64_t done;
};

/* save.c: runs a save whose arguments are checked, and frees everything except the model. */
int save_run(struct save *s);
/* save_stream.c: the same into @s->stream. */
int save_run_stream(struct save *s);
/* save.c: what both begin and end with. */
int save_draw_nonce(struct save *s);
void save_give_report(const struct save *s);
void save_forget_index(struct save *s);

/* An owner whose tables share no shard at all. */
#define SAVE_SHARES_NOTHING UINT32_MAX
/* The rows of each host of the index are that owner's. */
#define SAVE_SHARES_BY_HOST (UINT32_MAX - 1)

/* How a failed save leaves the folder. */
enum save_outcome { SAVE_NOT_COMMITTED, SAVE_MAYBE_COMMITTED, SAVE_COMMITTED };

/* save_commit.c: keeps the old index, reads back what was written, and commits it as @path. */
int save_commit(struct save *s, const char *path, enum save_outcome *outcome);
/* Removes the copy of the old index where nothing was committed. */
void save_forget_kept(struct save *s);

/*
 * save_engine.c: what a source reads of @e's tables behind its gate, with @held and @after set: the steps of
 * the model and of each table, into the index; the room for rows; and rows.
 */
int save_read_steps(struct save *s);
int save_engine_room(struct save *s, size_t table, uint64_t stride, uint64_t *most);
int save_engine_read(struct save *s, size_t table, size_t array,
		     const struct embeng_shard_rows *rows, const char **data);
/* Takes and checks the options of a save of @e's tables. */
int save_take_options(struct save *s, const struct embeng_save_options *options);

/* save_check.c: checks the options of a save of @model. Return: 0, -EINVAL, -ERANGE. */
int save_check_options(const struct save *s, const struct embeng_model *model);

/* write.c: makes @s->buffer, with room for about a MiB of rows. The caller frees it at the end. */
int save_make_room(struct save *s, size_t table, uint64_t stride, uint64_t *most);

/* save_last_finite.c: adds the last finite checkpoint to the earlier ones if none of them is. */
int save_keep_last_finite(struct save *s);

/* save_plan.c: lists the files, and the offsets of all arrays in them. */
int save_plan(struct save *s);
/* Sets the sizes of a shard whose entries are all known. */
int save_plan_shard(struct save *s, size_t home);
/* Forgets the plan, as before save_plan(). */
void save_forget_plan(struct save *s);
/* Notes of all tables, as if all were finite. */
int save_begin_finite(struct save *s);

/*
 * save_delta.c: sets @base to the checkpoint of the folder if a delta is wanted and it fits; else
 * notes why not.
 */
int save_find_base(struct save *s);
/*
 * Compares all rows with the base's and lists the base's files and the delta. Where a delta is of no
 * use, the base is dropped and nothing is listed.
 */
int save_plan_delta(struct save *s);
void save_drop_base(struct save *s);
/* Frees the marks of rows. */
void save_forget_marks(struct save *s);

/*
 * save_delta_rows.c: gives bytes of a tensor of a delta, those behind row *@at, and moves that on
 * @bytes: set to 0 at the end of the tensor
 */
int save_read_delta(struct save *s, const struct index_file *file, size_t array, uint64_t *at,
		    const char **data, uint64_t *bytes);
/* Makes @s->buffer large enough. */
int save_grow_buffer(struct save *s, size_t table, uint64_t bytes);
/* Makes the header of the shard of @home, and sets the offsets of its tensors. */
int save_header(struct save *s, size_t home, char **header, size_t *bytes);

/* save_finite.c: notes whether rows are finite; -ERANGE where they are not and must be. */
int save_look_at_rows(struct save *s, size_t table, size_t array,
		      const struct embeng_shard_rows *rows, const char *data);

/* save_rows.c: makes the plan, then writes and syncs each shard. */
int save_rows(struct save *s);
/* Writes and syncs the shard of @home, which is in the plan. */
int save_shard(struct save *s, size_t home);
/* Syncs each shard that save_rows() wrote with @held set. */
int save_sync_rows(struct save *s);
/* Removes the files that were created and forgets the plan, as before save_rows(). */
void save_forget_rows(struct save *s);

/*
 * save_clean.c: remove the files in @dir that have names of this library and that @keep, where
 * given, does not name.
 */
int clean_folder(const char *dir, const struct index *keep);

#endif
