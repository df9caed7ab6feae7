/* SPDX-License-Identifier: MIT */
/* File operations, one of which fails as the test asks. */
#ifndef EMBENG_TESTS_FILE_FAULTS_H
#define EMBENG_TESTS_FILE_FAULTS_H

#include "checkpoint_help.h"

enum fault_op {
	FAULT_OPEN,
	FAULT_SIZE,
	FAULT_READ,
	FAULT_WRITE,
	FAULT_SYNC,
	FAULT_MAP,
	FAULT_COPY,
	FAULT_LOCK,
	FAULT_RENAME,
	FAULT_REMOVE,
	FAULT_FOLDER,
	FAULT_LIST
};

static struct {
	int left;   /* operations that still succeed */
	int code;   /* negative errno of the one after them */
	bool keeps; /* all later ones fail, too, as writes to a full disk do */
	enum fault_op hit;
	bool done;
} fault;

static bool fails(enum fault_op op)
{
	if (fault.done && fault.keeps && op == FAULT_WRITE)
		return true;
	if (fault.done || fault.left--)
		return false;
	fault.done = true;
	fault.hit = op;
	return true;
}

static int fault_open(const char *path, int flags)
{
	return fails(FAULT_OPEN) ? fault.code : file_ops_system.open(path, flags);
}

static int fault_size(int fd, uint64_t *bytes)
{
	return fails(FAULT_SIZE) ? fault.code : file_ops_system.size(fd, bytes);
}

static int64_t fault_read(int fd, void *data, uint64_t bytes)
{
	return fails(FAULT_READ) ? fault.code : file_ops_system.read(fd, data, bytes);
}

/* A disk that fills up writes a part first. */
static int64_t fault_write(int fd, const void *data, uint64_t bytes)
{
	if (!fails(FAULT_WRITE))
		return file_ops_system.write(fd, data, bytes > 7 ? bytes - 7 : bytes);
	return fault.code;
}

static int fault_sync(int fd)
{
	(void)fd;
	return fails(FAULT_SYNC) ? fault.code : 0;
}

static int fault_map(int fd, uint64_t bytes, const void **map)
{
	return fails(FAULT_MAP) ? fault.code : file_ops_system.map(fd, bytes, map);
}

static int fault_copy(void *to, const void *from, uint64_t bytes)
{
	return fails(FAULT_COPY) ? -EFAULT : file_ops_system.copy(to, from, bytes);
}

static int fault_lock(int fd)
{
	return fails(FAULT_LOCK) ? fault.code : file_ops_system.lock(fd);
}

static int fault_rename(const char *from, const char *to)
{
	return fails(FAULT_RENAME) ? fault.code : file_ops_system.rename(from, to);
}

static int fault_remove(const char *path)
{
	return fails(FAULT_REMOVE) ? fault.code : file_ops_system.remove(path);
}

static int fault_folder(const char *path)
{
	return fails(FAULT_FOLDER) ? fault.code : file_ops_system.make_folder(path);
}

static int fault_list(const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	return fails(FAULT_LIST) ? fault.code : file_ops_system.list(path, fn, arg);
}

static const struct file_ops faulty = {
	.open = fault_open,
	.close = NULL,
	.unlock = NULL,
	.size = fault_size,
	.read = fault_read,
	.write = fault_write,
	.sync = fault_sync,
	.map = fault_map,
	.copy = fault_copy,
	.lock = fault_lock,
	.rename = fault_rename,
	.remove = fault_remove,
	.make_folder = fault_folder,
	.remove_folder = NULL,
	.list = fault_list,
};

static struct file_ops faulty_ops;

static void arm(int left, int code, bool keeps)
{
	fault.left = left;
	fault.code = code;
	fault.keeps = keeps;
	fault.done = false;
	faulty_ops = faulty;
	faulty_ops.close = file_ops_system.close;
	faulty_ops.unlock = file_ops_system.unlock;
	faulty_ops.remove_folder = file_ops_system.remove_folder;
	file_ops = &faulty_ops;
}

static void disarm(void)
{
	help_never_sync();
}

#endif
