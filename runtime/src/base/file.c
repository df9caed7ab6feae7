// SPDX-License-Identifier: MIT
/*
 * Files and folders with error sentences: open, read, write, sync, map, rename and lock. The system
 * calls are behind struct file_ops (file_system.c), so that tests can let any of them fail.
 *
 * Memory that is returned belongs to the caller. No lock is needed.
 */
#define _GNU_SOURCE /* asprintf */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "file.h"

#define LOCK_TRIES 8 /* a lock file may be removed while it is opened */

static int fail_file(int code, const char *path, const char *what)
{
	errno = -code;
	return fail(code, "%s: %s: %m", path, what);
}

int file_open(const char *path, int flags)
{
	int fd = file_ops->open(path, flags);

	return fd < 0 ? fail_file(fd, path, flags & O_CREAT ? "cannot be made" : "cannot be opened")
		      : fd;
}

int file_write(int fd, const char *path, const void *data, uint64_t bytes)
{
	const char *p = data;

	while (bytes) {
		int64_t n = file_ops->write(fd, p, bytes);

		if (n <= 0)
			return fail_file(n ? (int)n : -EIO, path, "cannot be written");
		p += n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

int file_sync(int fd, const char *path)
{
	int ret = file_ops->sync(fd);

	return ret ? fail_file(ret, path, "cannot be synced to disk") : 0;
}

int file_make(const char *path, const char *text, size_t length)
{
	int fd = file_open(path, O_WRONLY | O_CREAT | O_EXCL), ret;

	if (fd < 0)
		return fd;
	ret = file_write(fd, path, text, length);
	ret = ret ? ret : file_sync(fd, path);
	file_ops->close(fd);
	if (ret)
		file_ops->remove(path);
	return ret;
}

int file_replace(const char *path, const char *text, size_t length)
{
	uint64_t nonce;
	char *aside;
	int ret;

	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return fail(-errno, "%s: no random number for a name beside it: %s", path,
			    strerror(errno));
	if (asprintf(&aside, "%s.%016" PRIx64 ".tmp", path, nonce) < 0)
		return fail(-ENOMEM, "%s: no memory for a name beside it", path);
	ret = file_make(aside, text, length);
	if (!ret) {
		ret = file_rename(aside, path);
		if (ret)
			file_ops->remove(aside);
	}
	free(aside);
	return ret;
}

int file_sync_folder(const char *path)
{
	int fd = file_open(path, O_RDONLY | O_DIRECTORY), ret;

	if (fd < 0)
		return fd;
	ret = file_ops->sync(fd);
	file_ops->close(fd);
	/* A file system that does not sync folders says so; others keep their order. */
	return ret && ret != -EINVAL ? fail_file(ret, path, "cannot be synced to disk") : 0;
}

int file_rename(const char *from, const char *to)
{
	int ret = file_ops->rename(from, to);

	return ret ? fail_file(ret, to, "cannot be replaced") : 0;
}

int file_remove(const char *path)
{
	int ret = file_ops->remove(path);

	return ret ? fail_file(ret, path, "cannot be removed") : 0;
}

static int read_all(int fd, const char *path, char *to, uint64_t bytes)
{
	while (bytes) {
		int64_t n = file_ops->read(fd, to, bytes);

		if (n < 0)
			return fail_file((int)n, path, "cannot be read");
		if (!n)
			return fail(-EBADMSG, "%s: ended %" PRIu64 " bytes early", path, bytes);
		to += n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

static int size_of_file(int fd, const char *path, uint64_t *bytes)
{
	int ret = file_ops->size(fd, bytes);

	if (ret == -EINVAL)
		return fail(-EBADMSG, "%s: is not a regular file", path);
	return ret ? fail_file(ret, path, "cannot be read") : 0;
}

static int read_open(int fd, const char *path, uint64_t most, char **text, size_t *length)
{
	uint64_t bytes;
	char *made;
	int ret = size_of_file(fd, path, &bytes);

	if (ret)
		return ret;
	if (bytes > most)
		return fail(-EBADMSG, "%s: has %" PRIu64 " bytes, at most %" PRIu64 " are allowed",
			    path, bytes, most);
	made = malloc(bytes + 1);
	if (!made)
		return fail(-ENOMEM, "%s: no memory for %" PRIu64 " bytes", path, bytes);
	ret = read_all(fd, path, made, bytes);
	if (ret) {
		free(made);
		return ret;
	}
	made[bytes] = '\0';
	*text = made;
	*length = bytes;
	return 0;
}

int file_read_whole(const char *path, uint64_t most, char **text, size_t *length)
{
	int fd = file_open(path, O_RDONLY), ret;

	if (fd < 0)
		return fd;
	ret = read_open(fd, path, most, text, length);
	file_ops->close(fd);
	return ret;
}

int file_map_open(int fd, const char *path, uint64_t bytes, const char **map)
{
	const void *mapped;
	uint64_t there;
	int ret = size_of_file(fd, path, &there);

	if (ret)
		return ret;
	if (there != bytes)
		return fail(-EBADMSG, "%s: has %" PRIu64 " bytes, the index says %" PRIu64, path,
			    there, bytes);
	ret = file_ops->map(fd, bytes, &mapped);
	if (ret)
		return fail_file(ret, path, "cannot be mapped into memory");
	*map = mapped;
	return 0;
}

int file_map(const char *path, uint64_t bytes, const char **map)
{
	int fd = file_open(path, O_RDONLY), ret;

	if (fd < 0)
		return fd;
	ret = file_map_open(fd, path, bytes, map);
	file_ops->close(fd);
	return ret;
}

/*
 * Each user who may write to the folder may lock it. The file has nothing but the number of a
 * process, so that its maker's umask has nothing to hide. The mode of another user's file stays.
 */
static void let_all_read(int fd)
{
	const mode_t all = S_IRUSR | S_IRGRP | S_IROTH;
	struct stat stat;

	if (!fstat(fd, &stat) && stat.st_uid == geteuid() && (stat.st_mode & all) != all)
		(void)fchmod(fd, (stat.st_mode | all) & 07777);
}

/*
 * A lock asks for no right to write, which a file that another user made may not give. Network file
 * systems want it where it can be had.
 */
static int open_lock(const char *path)
{
	int fd = file_ops->open(path, O_RDWR | O_CREAT);

	if (fd == -EACCES)
		return file_open(path, O_RDONLY | O_NOFOLLOW);
	if (fd < 0)
		return fail_file(fd, path, "cannot be made");
	let_all_read(fd);
	return fd;
}

/* The process in the lock file. A lock that another user's process holds may have none. */
static int refuse_second(int fd, const char *dir)
{
	char text[24] = "";
	int64_t n = file_ops->read(fd, text, sizeof(text) - 1);
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (pid > 0)
		return fail(-EBUSY,
			    "%s: another save into this folder is under way, by process %ld; wait "
			    "until it has ended, or save into another folder",
			    dir, pid);
	return fail(-EBUSY,
		    "%s: another save into this folder is under way; wait until it has ended, or "
		    "save into another folder",
		    dir);
}

static int try_lock(const char *path, int *lock)
{
	int fd = open_lock(path);

	*lock = fd;
	return fd < 0 ? fd : file_ops->lock(fd);
}

static int lock_path(const char *dir, const char *path, int *lock)
{
	int ret = try_lock(path, lock);

	for (int i = 1; ret == -ESTALE && *lock >= 0 && i < LOCK_TRIES; i++) {
		file_ops->close(*lock);
		ret = try_lock(path, lock);
	}
	if (!ret || *lock < 0)
		return ret;
	if (ret == -EWOULDBLOCK)
		ret = refuse_second(*lock, dir);
	else
		ret = fail_file(ret, path, "cannot be locked");
	file_ops->close(*lock);
	return ret;
}

void file_forget_folder(const char *dir, const char *name)
{
	char *path = file_path(dir, name);

	/* Removed with the lock held: nobody locks a file that is there no more. */
	if (path && !file_ops->remove(path))
		file_ops->remove_folder(dir);
	free(path);
}

void file_unlock(int lock)
{
	file_ops->unlock(lock);
	file_ops->close(lock);
}

int file_lock_folder(const char *dir, const char *name, int *lock)
{
	char *path = file_path(dir, name);
	int ret = path ? lock_path(dir, path, lock) : -ENOMEM;

	free(path);
	return ret;
}

char *file_path(const char *folder, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", folder, name) >= 0)
		return path;
	fail(-ENOMEM, "no memory for the name of a file");
	return NULL;
}

char *file_parent(const char *path)
{
	size_t length = strlen(path);
	char *parent;

	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length && path[length - 1] != '/')
		length--;
	parent = length ? strndup(path, length) : strdup(".");
	if (!parent)
		fail(-ENOMEM, "no memory for the name of a folder");
	return parent;
}
