/* SPDX-License-Identifier: MIT */
/*
 * The files by which a machine tells about itself, below /sys, /proc, /dev, /etc and /lib. They are
 * read from this machine, or from a folder into which somebody recorded those of another one.
 */
#ifndef CLI_SYSTEM_TREE_H
#define CLI_SYSTEM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TREE_PATH 512  /* bytes of a path; a longer one is -ENAMETOOLONG */
#define TREE_LIST 4096 /* most names of a folder; what is beyond is left out */
#define TREE_LINE 512  /* bytes that hold any line that the kernel writes into one attribute */
/*
 * Bytes of a file of many lines. Debian's configuration of a kernel has 300,000, and a machine with
 * thousands of containers has as much in /proc/self/mountinfo.
 */
#define TREE_TEXT 4194304

struct tree;

/**
 * tree_open() - open the files of a machine
 * @root: folder with a recorded tree; NULL: this machine
 * @out: the tree; tree_close() frees it
 *
 * A recorded tree is not trusted. Symbolic links in it lead to places inside of it, only regular
 * files and folders are opened, and no read takes more than its caller allows. Paths of the
 * functions below begin with a slash, as on the machine itself.
 *
 * Return: 0 or a negative errno; -ENOSYS: this kernel cannot keep links inside a recorded tree.
 */
int tree_open(const char *root, struct tree **out);

/**
 * tree_record() - copy everything that is read from now on into a folder
 * @folder: folder to make; one that is there must be empty
 *
 * The folder is then a recorded tree, from which the same calls give the same answers. Parts of
 * files that tell of people and not of devices are left out of it: see record.c.
 *
 * Return: 0 or a negative errno.
 */
int tree_record(struct tree *tree, const char *folder);

/* Frees a tree; NULL is ignored. Return: 0, or a negative errno if the record is not complete. */
int tree_close(struct tree *tree);

/* True for a recorded tree: what is done to this machine's devices says nothing about it. */
bool tree_is_recorded(const struct tree *tree);

enum tree_kind { TREE_NOTHING, TREE_FILE, TREE_FOLDER, TREE_OTHER };

/* Tells what is at @path; links are followed. */
enum tree_kind tree_kind(struct tree *tree, const char *path);

/**
 * tree_bytes() - read the beginning of a file
 * @size: most bytes to read; what is behind them is ignored
 *
 * Return: the number of bytes, or a negative errno; -EINVAL if it is no regular file.
 */
ssize_t tree_bytes(struct tree *tree, const char *path, void *data, size_t size);

/* Reads the end of a file of a file system on disk, as tree_bytes() reads the beginning. */
ssize_t tree_end(struct tree *tree, const char *path, void *data, size_t size);

/**
 * tree_text() - read a file of several lines
 * @most: most bytes that it may have
 *
 * Bytes that are no ASCII text become '?', so that the text may be printed and be put into JSON.
 *
 * Return: the text, to be freed; NULL with errno set, which is EFBIG if the file is larger.
 */
char *tree_text(struct tree *tree, const char *path, size_t most);

/**
 * tree_line() - read the first line of a file, cleaned as tree_text() does it, without its newline
 * and without blanks around it
 * @line: "" on failure
 *
 * Return: 0 or a negative errno; -EFBIG if it does not fit.
 */
int tree_line(struct tree *tree, const char *path, char *line, size_t size);

/* Reads a number, 17 or 0x11, that the first line consists of. Return: 0 or a negative errno. */
int tree_number(struct tree *tree, const char *path, uint64_t *value);

/**
 * tree_link() - read where a symbolic link leads to
 * @name: last part of the target, cleaned; "" on failure
 *
 * Return: 0 or a negative errno; -EINVAL if it is no link.
 */
int tree_link(struct tree *tree, const char *path, char *name, size_t size);

/* The names in a folder, sorted, without "." and ".."; cleared by tree_names_free(). */
struct tree_names {
	char **list;
	size_t count;
};

/* Return: 0 or a negative errno; @names is empty then. */
int tree_list(struct tree *tree, const char *path, struct tree_names *names);

void tree_names_free(struct tree_names *names);

/**
 * struct tree_node - a character device
 * @mode: permission bits
 * @owner, @group: numbers of the user and the group
 * @major, @minor: number of the device
 * @opens: 0 if this process may open it for reading and writing, else a negative errno
 */
struct tree_node {
	unsigned int mode, owner, group, major, minor;
	int opens;
};

/**
 * tree_node() - look at a device node
 *
 * On this machine the node is opened and closed again. In a recorded tree it is a file with the line
 * "node MODE owner N group N number MAJOR:MINOR opens RESULT": the mode is octal, the result is "yes"
 * or the name of an errno.
 *
 * Return: 0; -ENOENT if there is none; -EINVAL if something else is there; or a negative errno.
 */
int tree_node(struct tree *tree, const char *path, struct tree_node *node);

/* Writes a path into @path. Return: @path; "" if it does not fit, which no file has. */
const char *tree_path(char path[TREE_PATH], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
