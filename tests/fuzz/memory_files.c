// SPDX-License-Identifier: MIT
/* A folder in memory behind file_ops, from which the fuzzer of checkpoints reads without a disk. */
#include "memory_files.h"

#include <errno.h>
#include <sys/mman.h>

#include "../../runtime/src/base/file.h"
#include "fuzz.h"

struct memory_file memory_files[MEMORY_FILES];
static uint32_t until_broken;

static int find(const char *name)
{
	for (int i = 0; i < MEMORY_FILES; i++) {
		if (memory_files[i].data && !strcmp(memory_files[i].name, name))
			return i;
	}
	return -ENOENT;
}

static int open_file(const char *path, int flags)
{
	const char *name = strrchr(path, '/');
	int fd = name ? find(name + 1) : -ENOENT;

	(void)flags;
	if (fd >= 0)
		memory_files[fd].at = 0;
	return fd;
}

static void close_file(int fd)
{
	(void)fd;
}

static int file_bytes(int fd, uint64_t *bytes)
{
	*bytes = memory_files[fd].bytes;
	return 0;
}

static int64_t read_file(int fd, void *data, uint64_t bytes)
{
	struct memory_file *file = &memory_files[fd];
	size_t left = file->bytes - file->at, n = bytes < left ? bytes : left;

	memcpy(data, file->data + file->at, n);
	file->at += n;
	return (int64_t)n;
}

/* The reader unmaps what it was given, so that it must be a mapping. */
static int map_file(int fd, uint64_t bytes, const void **map)
{
	void *p = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0)
			: MAP_FAILED;

	if (p == MAP_FAILED)
		return -ENOMEM;
	memcpy(p, memory_files[fd].data, bytes);
	*map = p;
	return 0;
}

static int copy(void *to, const void *from, uint64_t bytes)
{
	if (until_broken && !--until_broken)
		return -EFAULT;
	memcpy(to, from, bytes);
	return 0;
}

/* Readers write nothing. */
static const struct file_ops reading = {
	.open = open_file,
	.close = close_file,
	.size = file_bytes,
	.read = read_file,
	.map = map_file,
	.copy = copy,
};

void memory_files_begin(void)
{
	file_ops = &reading;
}

void memory_file_put(const char *name, const void *data, size_t bytes)
{
	uint8_t *fresh = fuzz_memory(bytes);
	int i = find(name);

	memcpy(fresh, data, bytes);
	for (int k = 0; i < 0 && k < MEMORY_FILES; k++) {
		if (!memory_files[k].data)
			i = k;
	}
	fuzz_check(i >= 0, "more than %d files", MEMORY_FILES);
	free(memory_files[i].data);
	memory_files[i].data = fresh;
	memory_files[i].bytes = bytes;
	if (name != memory_files[i].name)
		snprintf(memory_files[i].name, sizeof(memory_files[i].name), "%s", name);
}

void memory_file_remove(const char *name)
{
	int i = find(name);

	fuzz_check(i >= 0, "%s", name);
	free(memory_files[i].data);
	memory_files[i] = (struct memory_file){0};
}

void memory_files_break(uint32_t nth)
{
	until_broken = nth;
}

void memory_files_end(void)
{
	until_broken = 0;
	for (int i = 0; i < MEMORY_FILES; i++) {
		free(memory_files[i].data);
		memory_files[i] = (struct memory_file){0};
	}
}
