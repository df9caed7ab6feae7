/* SPDX-License-Identifier: MIT */
/* The stream of a checkpoint: a tar archive that is written and read from its start to its end. */
#ifndef EMBENG_CHECKPOINT_STREAM_H
#define EMBENG_CHECKPOINT_STREAM_H

#include "embeng/stream.h"
#include "index.h"
#include "tar.h"

#define STREAM_FAMILY "embeng.checkpoint.stream/"
#define STREAM_SCHEMA STREAM_FAMILY "1"
#define STREAM_NAME "the stream" /* as sentences call it, in place of a folder */

/* -- writing (stream_write.c) ---------------------------------------------- */

/*
 * struct stream_out - a stream that is being written
 * @what: name of the public call, for sentences
 * @at: bytes that the program has taken
 * @left: bytes of the member that are to come, with its padding behind them
 */
struct stream_out {
	struct embeng_writer to;
	const char *what;
	uint64_t at, left, padding;
};

/* Copies and checks the caller's structure. Return: 0, -EINVAL. */
int stream_out_take(struct stream_out *out, const struct embeng_writer *to, const char *what);
/* Writes the first member, a comment with the version and with @bytes, those of all shards. */
int stream_begin(struct stream_out *out, uint64_t bytes);
/* Begins a file. The member before it is filled up with zeros if it lacks bytes: nothing names that one. */
int stream_member(struct stream_out *out, const char *name, uint64_t bytes);
/* Bytes of the member; its padding follows the last one. */
int stream_put(struct stream_out *out, const void *data, uint64_t bytes);
/* The index, and the two blocks that end the stream. */
int stream_finish(struct stream_out *out, const struct index *index);

/* -- reading (stream_read.c) ----------------------------------------------- */

/* A file of the stream: where its bytes begin there and, where it was spooled, in the spool. */
struct stream_file {
	char name[TAR_NAME];
	uint64_t bytes, at, spooled;
};

/*
 * struct stream_in - a stream that is being read
 * @what: name of the public call, for sentences
 * @word: word for the call in progress reports
 * @at: bytes that were read
 * @said: bytes of the shards as the comment says; 0: there is no comment
 * @taken: bytes of files that were taken so far
 * @index: the text of the index, with a zero byte behind its @index_bytes; NULL until it came
 * @files: [file_count] those that were taken, in the order of the stream
 * @take: called for each file but the index; sets *@wanted, and is then ready for its bytes
 * @put: takes bytes of that file
 * @end: called behind the last byte of the file
 * @arg: for these
 */
struct stream_in {
	struct embeng_reader from;
	const char *what, *word;
	embeng_progress_fn progress;
	void *progress_arg;
	uint64_t at, said, taken;
	char *buffer, *index;
	size_t index_bytes;
	struct stream_file *files;
	size_t file_count, capacity;
	int (*take)(void *arg, struct stream_file *file, bool *wanted);
	int (*put)(void *arg, const char *data, uint64_t bytes);
	int (*end)(void *arg);
	void *arg;
};

/* Copies and checks the caller's structure. Return: 0, -EINVAL. */
int stream_in_take(struct stream_in *in, const struct embeng_reader *from, const char *what);
/*
 * stream_receive() - read all of the stream
 *
 * Return: 0; -EBADMSG with the offset of what is wrong; -ENOTSUP; -EFBIG; -ECANCELED; what the reader
 * or @take, @put and @end returned. The caller calls stream_in_free(), also then.
 */
int stream_receive(struct stream_in *in);
void stream_in_free(struct stream_in *in);
/* Finds a file among those that were taken, which are sorted by then; NULL if there is none. */
const struct stream_file *stream_find(const struct stream_file *files, size_t count,
				      const char *name);

/* Finds the shard of an entry of the index that came with it. Return: 0, -EBADMSG. */
int stream_find_shard(const struct stream_file *files, size_t count, const struct index *index,
		      size_t home, const struct stream_file **out);

/* Compares the size in the comment with that of the shards. Return: 0, -EBADMSG. */
int stream_check_said(const struct stream_in *in, const struct index *index);

/* -- the spool (spool.c) ---------------------------------------------------- */

/*
 * struct spool - the shards of a stream, in one file that has no name
 * @map: [bytes] where it is mapped, or NULL
 * @files: [file_count] by name
 */
struct spool {
	const char *map;
	uint64_t bytes;
	struct stream_file *files;
	size_t file_count;
};

/* Unmaps and frees it, which ends the file. NULL is fine. */
void spool_free(struct spool *spool);
/* Receives a stream, whose index is then in @in. Return: as stream_receive(), or an errno of the file. */
int spool_receive(struct stream_in *in, struct spool **out);

/* stream_open.c: receives, opens and checks a checkpoint whole; its folder is STREAM_NAME. */
int checkpoint_open_stream(const struct embeng_reader *from, const char *what,
			   embeng_progress_fn progress, void *progress_arg,
			   struct embeng_checkpoint **out);

#endif
