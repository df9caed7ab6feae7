/* SPDX-License-Identifier: MIT */
/*
 * Files, through a table of functions: tests put in one that records, fails or runs out
 * of space. The calls below return a negative errno with a sentence that names the file.
 */
#ifndef EMBENG_FILE_H
#define EMBENG_FILE_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct file_ops - what is asked of the system; each returns a negative errno on failure
 * @open: a descriptor; @flags as of open(2)
 * @close: the descriptor is gone whatever happens
 * @size: bytes of an open file
 * @read: from where the last read ended; bytes, 0 at the end
 * @write: bytes written, fewer than asked for perhaps
 * @sync: of a file or a folder
 * @map: all of a file, for reading; stays when the descriptor is closed
 * @copy: out of a mapping; -EFAULT where the file ended early or could not be read
 * @lock: for this descriptor alone, -EWOULDBLOCK when another has it
 * @rename: atomic
 * @remove: a file
 * @make_folder: -EEXIST when it is there
 * @list: names in a folder; stops at what @fn returns other than 0
 */
struct file_ops {
	int (*open)(const char *path, int flags);
	void (*close)(int fd);
	int (*size)(int fd, uint64_t *bytes);
	int64_t (*read)(int fd, void *data, uint64_t bytes);
	int64_t (*write)(int fd, const void *data, uint64_t bytes);
	int (*sync)(int fd);
	int (*map)(int fd, uint64_t bytes, const void **map);
	int (*copy)(void *to, const void *from, uint64_t bytes);
	int (*lock)(int fd);
	int (*rename)(const char *from, const char *to);
	int (*remove)(const char *path);
	int (*make_folder)(const char *path);
	int (*list)(const char *path, int (*fn)(void *arg, const char *name), void *arg);
};

extern const struct file_ops file_ops_system;
/* What all calls below go through; only tests change it. */
extern const struct file_ops *file_ops;

/* -ENOENT is for the caller to judge; it has its sentence all the same. */
int file_open(const char *path, int flags);
int file_write(int fd, const char *path, const void *data, uint64_t bytes);
int file_sync(int fd, const char *path);
int file_sync_folder(const char *path);
int file_rename(const char *from, const char *to);
int file_remove(const char *path);
/* A whole file with a zero byte behind it; -EBADMSG when it has more than @most bytes. */
int file_read_whole(const char *path, uint64_t most, char **text, size_t *length);
/* A whole file, which must have exactly @bytes: -EBADMSG. Unmap it with munmap(). */
int file_map(const char *path, uint64_t bytes, const char **map);
/* Locks the file @name in @dir, which is made for it; -EBUSY while another has it. */
int file_lock_folder(const char *dir, const char *name, int *lock);
/* "FOLDER/NAME", malloc'd; NULL with a sentence. */
char *file_path(const char *folder, const char *name);
/* The folder that @path lies in, malloc'd. */
char *file_parent(const char *path);

#endif
