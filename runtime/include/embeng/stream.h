/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints as streams: through functions of the program into a pipe, a socket, a pickle or the
 * object of a store, and back. Included by embeng.h, whose rules hold.
 *
 * A stream is a tar archive of the files that a checkpoint's folder has, with index.json as the last
 * one, so that "tar x" unpacks it into such a folder. It is written and read from its start to its
 * end, never twice; embeng-checkpoint(5) has the rest.
 */
#ifndef EMBENG_STREAM_API_H
#define EMBENG_STREAM_API_H

#include "checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct embeng_writer - a function of the program that takes the bytes of a stream
 * @size: sizeof(struct embeng_writer)
 * @write: takes the first ones of @bytes bytes, which are at least 1. Return: how many it took, at
 *	least 1, or a negative errno, which ends the stream and is what the call returns. It is called
 *	by the calling thread, with no lock of the library that lookups and updates need, and may
 *	wait; it may not use the engine
 * @arg: for @write
 */
struct embeng_writer {
	size_t size;
	int64_t (*write)(void *arg, const void *data, size_t bytes);
	void *arg;
};

#define EMBENG_READER_GOES_ON (1u << 0) /* other data follow the stream, and are not read */

/**
 * struct embeng_reader - a function of the program that gives the bytes of a stream
 * @size: sizeof(struct embeng_reader)
 * @read: fills the first ones of @bytes bytes, which are at least 1. Return: how many it filled,
 *	0 at the end, or a negative errno, which is what the call returns. It is called by the
 *	calling thread and may wait; it may not use the engine
 * @arg: for @read
 * @flags: EMBENG_READER_*. Without EMBENG_READER_GOES_ON the stream is read up to its end, where
 *	only zeros may stand behind the checkpoint
 * @spool: folder for the rows until they are checked, in one file that has no name there and ends
 *	with the checkpoint, or with the process; NULL: $TMPDIR or /var/tmp. A folder in a tmpfs,
 *	such as /dev/shm, keeps them in memory
 * @most_bytes: bytes that the stream may have; 0: any number, which the room in @spool limits
 */
struct embeng_reader {
	size_t size;
	int64_t (*read)(void *arg, void *data, size_t bytes);
	void *arg;
	uint32_t flags;
	const char *spool;
	uint64_t most_bytes;
};

/**
 * embeng_save_stream() - save tables, slots and the optimizer's step count into a stream
 * @to: only used during the call
 * @options: NULL: defaults; keep and EMBENG_SAVE_DELTA are for folders, and are refused
 *
 * Writes the checkpoint that embeng_save() would write, and sees the same updates. Steps go on
 * meanwhile as there, however slow @to is. Where the device runs out of memory for that, the rows
 * are written to the stream once more, while updates wait until @to has taken them. It needs no
 * memory that grows with the tables beyond what embeng_save() needs. A failed call has written
 * a stream that ends early, and every reader refuses that.
 *
 * Return: as embeng_save() but for files; -EINVAL (also @to or @options); what @to returned;
 * -EIO (@to took nothing, or more than there was).
 */
EMBENG_API int embeng_save_stream(struct embeng *e, const struct embeng_writer *to,
				  const struct embeng_save_options *options);

/**
 * embeng_restore_stream() - load tables, slots and the step count from a stream
 * @from: only used during the call
 * @options: as for embeng_restore(); with EMBENG_RESTORE_STEP a stream of another step is -ENODATA
 *
 * All of the stream is received and every byte of it checked before a row of the engine is touched;
 * then it is embeng_restore(). Progress is told of "receive", then "verify", then "restore".
 *
 * Return: as embeng_restore() and embeng_checkpoint_open_stream().
 */
EMBENG_API int embeng_restore_stream(struct embeng *e, const struct embeng_reader *from,
				     const struct embeng_restore_options *options);

/**
 * embeng_checkpoint_open_stream() - receive a checkpoint and open it, without a device
 * @from: only used during the call
 * @progress: NULL or told about bytes: "receive", then "verify". A total of 0 is unknown
 *
 * The rows lie in a file of @from->spool, as many bytes as the stream has, until
 * embeng_checkpoint_close(); the index, of 1 GiB at most, is in memory. Every byte is checked. Return: 0;
 * -EBADMSG naming the byte of the stream, and the table where it is known; -ENOTSUP (a newer format);
 * -EFBIG (@from->most_bytes); -ECANCELED; -ENOSPC and the like of the spool; what @from returned; -EIO
 * (it returned more than it was asked for).
 */
EMBENG_API int embeng_checkpoint_open_stream(const struct embeng_reader *from,
					     embeng_progress_fn progress, void *progress_arg,
					     struct embeng_checkpoint **out,
					     struct embeng_error *error);

/**
 * struct embeng_pack_options - how a checkpoint goes into a stream, or out of one; all zero: defaults
 * @size: sizeof(struct embeng_pack_options)
 * @progress: NULL or told about bytes: "pack", or "unpack"
 * @progress_arg: for @progress
 * @files: names of other files of the folder that go along, such as those of a program's own
 * @file_count: entries of @files
 * @keep: when unpacking: as in &struct embeng_save_options
 */
struct embeng_pack_options {
	size_t size;
	embeng_progress_fn progress;
	void *progress_arg;
	const char *const *files;
	size_t file_count;
	uint32_t keep;
};

/**
 * embeng_checkpoint_pack() - write an open checkpoint into a stream
 * @checkpoint: one of a folder, where @options has files
 * @to: only used during the call
 * @options: NULL: defaults
 *
 * The stream has the same shards, those of its deltas too, but no earlier checkpoints. Every shard is
 * checked before it is written. Files of @options that are not there are left out. Return: 0,
 * -EINVAL, -EBADMSG naming file and offset, -ECANCELED, -EIO, what @to returned.
 */
EMBENG_API int embeng_checkpoint_pack(const struct embeng_checkpoint *checkpoint,
				      const struct embeng_writer *to,
				      const struct embeng_pack_options *options,
				      struct embeng_error *error);

/**
 * embeng_checkpoint_unpack() - make the checkpoint of a folder out of a stream
 * @from: only used during the call; its spool is not used
 * @dir: as for embeng_save(), whose rules for the checkpoint that is there already hold
 * @options: NULL: defaults; of other files those alone are made that its files name
 *
 * The files are written into the folder under their own names, and committed by one rename once all
 * has been read and checked. On failure the folder is as it was. Return: as
 * embeng_checkpoint_open_stream() and embeng_save(); -EEXIST (the folder has a file of such a name).
 */
EMBENG_API int embeng_checkpoint_unpack(const struct embeng_reader *from, const char *dir,
					const struct embeng_pack_options *options,
					struct embeng_error *error);

#ifdef __cplusplus
}
#endif

#endif
