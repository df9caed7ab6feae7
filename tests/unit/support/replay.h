/* SPDX-License-Identifier: MIT */
/*
 * A disk that forgets: file operations are recorded, and any prefix of them is laid out
 * as a crash may leave it. Data that was not synced may be there, be cut short, be zeros or
 * noise; names that were not synced may be missing, one of them or all from one on. Where threads are hosts,
 * a folder that one of them syncs keeps the names that this host has made.
 */
#ifndef EMBENG_TESTS_REPLAY_H
#define EMBENG_TESTS_REPLAY_H

#include <fcntl.h>

#include "checkpoint_edit.h"

enum replay_kind { OP_CREATE, OP_WRITE, OP_SYNC, OP_SYNC_FOLDER, OP_RENAME, OP_REMOVE };

struct replay_op {
	enum replay_kind kind;
	char name[SHARD_NAME_SIZE], to[SHARD_NAME_SIZE];
	int file; /* number of the file, as an inode has one */
	size_t bytes;
	uint32_t host;
};

#define REPLAY_OPS 256
#define REPLAY_FILES 64
#define REPLAY_NAMES 64
#ifndef REPLAY_BYTES
#define REPLAY_BYTES (EDIT_BYTES / 8) /* in the largest file */
#endif

struct replay_file {
	char data[REPLAY_BYTES];
	size_t length; /* largest length that the file ever had */
};

struct replay_name {
	char name[SHARD_NAME_SIZE];
	int file;
};

/* The contents of a folder: names of files. */
struct replay_names {
	struct replay_name list[REPLAY_NAMES];
	size_t count;
};

static struct {
	struct replay_op ops[REPLAY_OPS];
	size_t op_count;
	struct replay_file files[REPLAY_FILES];
	int file_count;
	struct replay_names start; /* on disk when recording began */
	size_t start_length[REPLAY_FILES];
	int of_fd[1024]; /* file + 1, or -1 for a folder */
} replay;

/* The host that a thread is. */
static _Thread_local uint32_t replay_host;

static inline const char *replay_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static inline struct replay_op *replay_add(enum replay_kind kind, const char *name, int file)
{
	struct replay_op *op = &replay.ops[replay.op_count++];

	ck_assert_uint_lt(replay.op_count, REPLAY_OPS);
	*op = (struct replay_op){.kind = kind, .file = file, .host = replay_host};
	snprintf(op->name, sizeof(op->name), "%s", name);
	return op;
}

static int *replay_find(struct replay_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++) {
		if (!strcmp(names->list[i].name, name))
			return &names->list[i].file;
	}
	return NULL;
}

static inline void replay_set(struct replay_names *names, const char *name, int file)
{
	int *there = replay_find(names, name);

	if (!there) {
		ck_assert_uint_lt(names->count, REPLAY_NAMES);
		strcpy(names->list[names->count].name, name);
		there = &names->list[names->count++].file;
	}
	*there = file;
}

static inline void replay_unset(struct replay_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++) {
		if (!strcmp(names->list[i].name, name)) {
			names->list[i] = names->list[--names->count];
			return;
		}
	}
}

/* -- recording ----------------------------------------------------------- */

static int replay_open(const char *path, int flags)
{
	int fd = file_ops_system.open(path, flags);

	if (fd < 0)
		return fd;
	ck_assert_int_lt(fd, 1024);
	replay.of_fd[fd] = flags & O_DIRECTORY ? -1 : 0;
	if ((flags & O_CREAT) && (flags & O_EXCL)) {
		ck_assert_int_lt(replay.file_count, REPLAY_FILES);
		replay_add(OP_CREATE, replay_base(path), replay.file_count);
		replay.of_fd[fd] = ++replay.file_count;
	}
	return fd;
}

static int64_t replay_write(int fd, const void *data, uint64_t bytes)
{
	struct replay_file *file = &replay.files[replay.of_fd[fd] - 1];

	ck_assert_int_gt(replay.of_fd[fd], 0);
	ck_assert_uint_le(file->length + bytes, sizeof(file->data));
	memcpy(file->data + file->length, data, bytes);
	file->length += bytes;
	replay_add(OP_WRITE, "", replay.of_fd[fd] - 1)->bytes = bytes;
	return file_ops_system.write(fd, data, bytes);
}

static int replay_sync(int fd)
{
	ck_assert_int_ne(replay.of_fd[fd], 0);
	if (replay.of_fd[fd] < 0)
		replay_add(OP_SYNC_FOLDER, "", 0);
	else
		replay_add(OP_SYNC, "", replay.of_fd[fd] - 1);
	return 0;
}

static int replay_rename(const char *from, const char *to)
{
	strcpy(replay_add(OP_RENAME, replay_base(from), 0)->to, replay_base(to));
	return file_ops_system.rename(from, to);
}

static int replay_remove(const char *path)
{
	replay_add(OP_REMOVE, replay_base(path), 0);
	return file_ops_system.remove(path);
}

/* Takes the contents of @folder as safe on disk, and records all operations from now on. */
static inline void replay_begin(const char *folder)
{
	static struct file_ops ops;
	static char names[HELP_FILES][256];
	size_t count = folder_files(folder, names, HELP_FILES);

	memset(&replay, 0, sizeof(replay));
	for (size_t i = 0; i < count; i++) {
		struct replay_file *file = &replay.files[replay.file_count];
		static char text[EDIT_BYTES];

		file->length = edit_read(folder, names[i], text);
		ck_assert_uint_le(file->length, sizeof(file->data));
		memcpy(file->data, text, file->length);
		replay.start_length[replay.file_count] = file->length;
		replay_set(&replay.start, names[i], replay.file_count++);
	}
	ops = file_ops_system;
	ops.open = replay_open;
	ops.write = replay_write;
	ops.sync = replay_sync;
	ops.rename = replay_rename;
	ops.remove = replay_remove;
	file_ops = &ops;
}

static inline void replay_end(void)
{
	file_ops = &file_ops_system;
}

/* -- what a crash leaves ------------------------------------------------- */

/* The fate of the unsynced bytes behind the surviving eighths. */
enum replay_loss { LOSS_CUT, LOSS_ZEROS, LOSS_NOISE, LOSS_KINDS };

#define REPLAY_CUTS 9 /* eighths that survive: 0 to 8 */

struct replay_crash {
	size_t prefix; /* operations that were done */
	enum replay_loss loss;
	size_t eighths;
	size_t keep;	 /* number of unsynced names that survive, */
	size_t drop_one; /* or all but this one, from 1 on */
};

/* The state of the disk, as far as syncs made it sure. */
struct replay_disk {
	struct replay_names names;
	size_t written[REPLAY_FILES], synced[REPLAY_FILES];
	const struct replay_op *pending[REPLAY_OPS]; /* names not synced */
	size_t pending_count;
};

static inline void replay_name_op(struct replay_names *names, const struct replay_op *op)
{
	int *file;

	if (op->kind == OP_CREATE)
		replay_set(names, op->name, op->file);
	else if (op->kind == OP_REMOVE)
		replay_unset(names, op->name);
	else if ((file = replay_find(names, op->name))) {
		int moved = *file;

		replay_unset(names, op->name);
		replay_set(names, op->to, moved);
	}
}

/* The names that a host has made last from now on; the others still may not. */
static inline void replay_keep_names(struct replay_disk *disk, uint32_t host)
{
	size_t left = 0;

	for (size_t k = 0; k < disk->pending_count; k++) {
		if (disk->pending[k]->host == host)
			replay_name_op(&disk->names, disk->pending[k]);
		else
			disk->pending[left++] = disk->pending[k];
	}
	disk->pending_count = left;
}

static inline void replay_run(struct replay_disk *disk, size_t prefix)
{
	*disk = (struct replay_disk){.names = replay.start};
	for (int i = 0; i < REPLAY_FILES; i++)
		disk->written[i] = disk->synced[i] = replay.start_length[i];
	for (size_t i = 0; i < prefix; i++) {
		const struct replay_op *op = &replay.ops[i];

		if (op->kind == OP_WRITE) {
			disk->written[op->file] += op->bytes;
		} else if (op->kind == OP_SYNC) {
			disk->synced[op->file] = disk->written[op->file];
		} else if (op->kind == OP_SYNC_FOLDER) {
			replay_keep_names(disk, op->host);
		} else {
			disk->pending[disk->pending_count++] = op;
		}
	}
}

/* Bytes of a file after the crash, in @data. */
static inline size_t replay_bytes(const struct replay_disk *disk, int file,
				  const struct replay_crash *crash, char *data)
{
	size_t synced = disk->synced[file], written = disk->written[file];
	size_t sure = synced + (written - synced) * crash->eighths / 8;

	memcpy(data, replay.files[file].data, written);
	if (crash->loss == LOSS_CUT)
		return sure;
	for (size_t i = sure; i < written; i++)
		data[i] = crash->loss == LOSS_ZEROS ? 0 : (char)(i * 37 + 11);
	return written;
}

/* Lays the crash out in @folder, which is emptied before. */
static inline void replay_lay_out(const struct replay_disk *disk, const struct replay_crash *crash,
				  const char *folder)
{
	static char data[sizeof(replay.files[0].data)];
	struct replay_names names = disk->names;

	for (size_t k = 0; k < disk->pending_count; k++) {
		if (crash->drop_one ? k + 1 != crash->drop_one : k < crash->keep)
			replay_name_op(&names, disk->pending[k]);
	}
	folder_remove(folder);
	ck_assert_int_eq(mkdir(folder, 0777), 0);
	for (size_t i = 0; i < names.count; i++)
		edit_write(folder, names.list[i].name, data,
			   replay_bytes(disk, names.list[i].file, crash, data));
}

#endif
