// SPDX-License-Identifier: MIT
/*
 * File operations as the system does them. They are a table of functions, in whose place tests put
 * one that fails or records. Each returns 0 or a negative errno and says nothing.
 *
 * Nothing is kept; any thread may call.
 */
#define _GNU_SOURCE /* process_vm_readv */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "file.h"

/*
 * Without waiting: a pipe in a file's place would not open until somebody wrote to it. A file that
 * is made is made where its name says: somebody else's symbolic link does not lead elsewhere.
 */
static int system_open(const char *path, int flags)
{
	int fd = open(path, flags | (flags & O_CREAT ? O_NOFOLLOW : 0) | O_CLOEXEC | O_NONBLOCK,
		      0666);

	return fd < 0 ? -errno : fd;
}

static void system_close(int fd)
{
	close(fd);
}

static int system_size(int fd, uint64_t *bytes)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -EINVAL;
	*bytes = (uint64_t)stat.st_size;
	return 0;
}

static int64_t system_read(int fd, void *data, uint64_t bytes)
{
	ssize_t n;

	do
		n = read(fd, data, bytes);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int64_t system_write(int fd, const void *data, uint64_t bytes)
{
	ssize_t n;

	do
		n = write(fd, data, bytes);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int system_sync(int fd)
{
	return fsync(fd) ? -errno : 0;
}

/* Unmaps what a reservation has too much around the file. */
static void trim_reservation(char *reserved, uint64_t all, char *start, uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char *end = start + (bytes + page - 1) / page * page;

	if (start > reserved)
		munmap(reserved, (size_t)(start - reserved));
	if (reserved + all > end)
		munmap(end, (size_t)(reserved + all - end));
}

/*
 * Begins at a multiple of a huge page, without which no part of the file can be mapped by huge
 * pages: few file systems see to that. MAP_FAILED where there is no room for it.
 */
static void *map_aligned(int fd, uint64_t bytes)
{
	const uint64_t all = bytes + FILE_HUGE_PAGE;
	char *reserved, *start;

	if (bytes < FILE_HUGE_PAGE || all > SIZE_MAX)
		return MAP_FAILED;
	reserved = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserved == MAP_FAILED)
		return MAP_FAILED;
	start = reserved + (-(uintptr_t)reserved & (FILE_HUGE_PAGE - 1));
	if (mmap(start, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(reserved, all);
		return MAP_FAILED;
	}
	trim_reservation(reserved, all, start, bytes);
	return start;
}

static int system_map(int fd, uint64_t bytes, const void **map)
{
	void *p = map_aligned(fd, bytes);

	if (p == MAP_FAILED && bytes <= SIZE_MAX)
		p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return bytes > SIZE_MAX ? -ENOMEM : -errno;
	*map = p;
	return 0;
}

/*
 * A load from a page that the file no longer has, or that cannot be read, kills the
 * process. The kernel's own copy says EFAULT instead; where it is forbidden (a seccomp
 * filter), the load is all there is.
 */
static int system_copy(void *to, const void *from, uint64_t bytes)
{
	while (bytes) {
		struct iovec local = {.iov_base = to, .iov_len = bytes};
		struct iovec remote = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
		ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

		if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
			memcpy(to, from, bytes);
			return 0;
		}
		if (n <= 0)
			return n ? -errno : -EFAULT;
		to = (char *)to + n;
		from = (const char *)from + n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

/* The number is for a sentence; a lock that may not be written is one all the same. */
static int system_lock(int fd)
{
	struct stat stat;
	char text[24];
	int length;

	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &stat))
		return -errno;
	if (!stat.st_nlink)
		return -ESTALE;
	length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)length, 0) < 0)
		errno = 0;
	return 0;
}

static void system_unlock(int fd)
{
	if (ftruncate(fd, 0))
		errno = 0;
	flock(fd, LOCK_UN);
}

static int system_rename(const char *from, const char *to)
{
	return rename(from, to) ? -errno : 0;
}

static int system_remove(const char *path)
{
	return unlink(path) ? -errno : 0;
}

static int system_make_folder(const char *path)
{
	return mkdir(path, 0777) ? -errno : 0;
}

static int system_remove_folder(const char *path)
{
	return rmdir(path) ? -errno : 0;
}

static int system_list(const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int ret = 0;

	if (!folder)
		return -errno;
	errno = 0;
	while (!ret && (entry = readdir(folder))) {
		ret = fn(arg, entry->d_name);
		errno = 0;
	}
	if (!ret && errno)
		ret = -errno;
	closedir(folder);
	return ret;
}

const struct file_ops file_ops_system = {
	.open = system_open,
	.close = system_close,
	.size = system_size,
	.read = system_read,
	.write = system_write,
	.sync = system_sync,
	.map = system_map,
	.copy = system_copy,
	.lock = system_lock,
	.unlock = system_unlock,
	.rename = system_rename,
	.remove = system_remove,
	.make_folder = system_make_folder,
	.remove_folder = system_remove_folder,
	.list = system_list,
};

const struct file_ops *file_ops = &file_ops_system;
