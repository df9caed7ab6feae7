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
 * struct file_ops - calls to the system; each returns a negative errno on failure
 * @open: returns a descriptor; @flags are those of open(2). With O_CREAT the mode is 0666 by the
 *	umask, and a symbolic link of that name is not followed
 * @close: closes the descriptor, even if it returns an error
 * @size: returns the bytes of an open file
 * @read: reads on from where the last read ended; returns the bytes read, 0 at the end
 * @write: returns the bytes written, which may be fewer than asked for
 * @sync: writes a file or a folder to stable storage
 * @map: maps a whole file for reading; the mapping stays when the descriptor is closed
 * @copy: copies out of a mapping; -EFAULT where the file ended early or could not be read
 * @lock: locks the file for this descriptor alone, and writes the number of the process into it;
 *	-EWOULDBLOCK when another holds the lock, -ESTALE when the file was removed meanwhile
 * @unlock: ends the lock, even if a process that was forked meanwhile has the descriptor, too
 * @rename: renames a file in one step
 * @remove: removes a file
 * @make_folder: makes a folder; -EEXIST when there is one
 * @remove_folder: removes an empty folder
 * @list: calls @fn for each name in a folder, and stops when it returns anything but 0
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
	void (*unlock)(int fd);
	int (*rename)(const char *from, const char *to);
	int (*remove)(const char *path);
	int (*make_folder)(const char *path);
	int (*remove_folder)(const char *path);
	int (*list)(const char *path, int (*fn)(void *arg, const char *name), void *arg);
};

#define FILE_HUGE_PAGE ((uintptr_t)1 << 21) /* bytes, of most processors */

extern const struct file_ops file_ops_system;
/* The table that all functions below use. Only tests change it. */
extern const struct file_ops *file_ops;

/* Opens a file. -ENOENT has a sentence too, though to some callers it is no error. */
int file_open(const char *path, int flags);
int file_write(int fd, const char *path, const void *data, uint64_t bytes);
int file_sync(int fd, const char *path);
int file_sync_folder(const char *path);
int file_rename(const char *from, const char *to);
int file_remove(const char *path);
/* Makes a file with @text in it and syncs it; -EEXIST if there is one. No part of it stays behind. */
int file_make(const char *path, const char *text, size_t length);
/* Puts @text into a file in one step; until then it is in a file of a random name beside @path. */
int file_replace(const char *path, const char *text, size_t length);
/* Reads a whole file, with a zero byte behind it; -EBADMSG when it has more than @most bytes. */
int file_read_whole(const char *path, uint64_t most, char **text, size_t *length);
/*
 * Maps a whole file; -EBADMSG unless it has exactly @bytes. The caller calls munmap(). A file of
 * FILE_HUGE_PAGE or more begins at a multiple of it.
 */
int file_map(const char *path, uint64_t bytes, const char **map);
/* The same for a file that is open. */
int file_map_open(int fd, const char *path, uint64_t bytes, const char **map);
/* Makes and locks the file @name in @dir; -EBUSY while somebody else holds the lock. */
int file_lock_folder(const char *dir, const char *name, int *lock);
void file_unlock(int lock);
/* Removes the lock @name, which the caller holds, and @dir if nothing else is in it. */
void file_forget_folder(const char *dir, const char *name);
/* Returns "FOLDER/NAME", malloc'd, or NULL with a sentence. */
char *file_path(const char *folder, const char *name);
/* Returns the folder that @path is in, malloc'd. */
char *file_parent(const char *path);

#endif
