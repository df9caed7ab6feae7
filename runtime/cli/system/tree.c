// SPDX-License-Identifier: MIT
/*
 * Opens files of this machine or of a recorded tree, and reads them.
 *
 * The kernel resolves paths of a recorded tree by openat2(RESOLVE_IN_ROOT), so that neither an
 * absolute link nor ".." leads out of it. A path is first opened without its contents (O_PATH): a
 * device, a pipe or a socket that somebody put into the tree is recognized and never touched.
 *
 * A tree belongs to one thread. Texts and lists belong to the caller.
 */
#define _GNU_SOURCE
#include "tree_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../text/number.h"

static int open_in_root(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	do {
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN); /* a folder above was renamed meanwhile */
	return fd < 0 ? -errno : fd;
}

int tree_open_path(const struct tree *tree, const char *path, int flags)
{
	char usr[TREE_PATH + 4];
	int fd;

	if (*path != '/')
		return -ENOENT;
	if (tree->recorded) {
		fd = open_in_root(tree->root, path, flags | O_CLOEXEC);
		/* Somebody may have copied /usr without the link by which it has /lib. */
		if (fd != -ENOENT || strncmp(path, "/lib/", 5) ||
		    snprintf(usr, sizeof(usr), "/usr%s", path) >= (int)sizeof(usr))
			return fd;
		return open_in_root(tree->root, usr, flags | O_CLOEXEC);
	}
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tree_open(const char *root, struct tree **out)
{
	struct tree *tree = malloc(sizeof(*tree));
	int probe;

	if (!tree)
		return -ENOMEM;
	*tree = (struct tree){.recorded = root != NULL, .record = -1};
	tree->root = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	probe = tree->root < 0 ? -errno : tree_open_path(tree, "/", O_PATH);
	if (probe < 0) {
		tree_close(tree);
		return probe;
	}
	close(probe);
	*out = tree;
	return 0;
}

int tree_close(struct tree *tree)
{
	int err;

	if (!tree)
		return 0;
	err = tree->record_error;
	if (tree->root >= 0)
		close(tree->root);
	if (tree->record >= 0)
		close(tree->record);
	free(tree);
	return err;
}

bool tree_is_recorded(const struct tree *tree)
{
	return tree->recorded;
}

const char *tree_path(char path[TREE_PATH], const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(path, TREE_PATH, format, args);
	va_end(args);
	if (length < 0 || length >= TREE_PATH)
		*path = '\0';
	return path;
}

/* The type of what a path leads to, as st_mode has it, or a negative errno. */
static int find_file_type(const struct tree *tree, const char *path)
{
	int fd = tree_open_path(tree, path, O_PATH), err;
	struct stat stat;

	if (fd < 0)
		return fd;
	err = fstat(fd, &stat) ? -errno : 0;
	close(fd);
	return err ? err : (int)(stat.st_mode & S_IFMT);
}

enum tree_kind tree_kind(struct tree *tree, const char *path)
{
	int type = find_file_type(tree, path);

	if (type < 0)
		return TREE_NOTHING;
	if (type == S_IFDIR) {
		record_folder(tree, path);
		return TREE_FOLDER;
	}
	if (type != S_IFREG)
		return TREE_OTHER;
	record_file(tree, path, "", 0);
	return TREE_FILE;
}

static int open_tree_file(const struct tree *tree, const char *path)
{
	int type = find_file_type(tree, path);

	if (type < 0)
		return type;
	return type == S_IFREG ? tree_open_path(tree, path, O_RDONLY | O_NONBLOCK) : -EINVAL;
}

/* Reads up to @size bytes: files of sysfs and procfs do not say beforehand how many they have. */
static ssize_t read_tree_file(int fd, char *data, size_t size)
{
	size_t length = 0;
	ssize_t got;

	while (length < size) {
		got = read(fd, data + length, size - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		length += (size_t)got;
	}
	return (ssize_t)length;
}

ssize_t tree_bytes(struct tree *tree, const char *path, void *data, size_t size)
{
	int fd = open_tree_file(tree, path);
	ssize_t got;

	if (fd < 0)
		return fd;
	got = read_tree_file(fd, data, size);
	close(fd);
	if (got >= 0)
		record_file(tree, path, data, (size_t)got);
	return got;
}

ssize_t tree_end(struct tree *tree, const char *path, void *data, size_t size)
{
	int fd = open_tree_file(tree, path);
	ssize_t got = -EINVAL;
	struct stat stat;

	if (fd < 0)
		return fd;
	if (!fstat(fd, &stat) &&
	    lseek(fd, stat.st_size > (off_t)size ? stat.st_size - (off_t)size : 0, SEEK_SET) >= 0)
		got = read_tree_file(fd, data, size);
	close(fd);
	if (got >= 0)
		record_file(tree, path, data, (size_t)got);
	return got;
}

static void clean_text(char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < ' ' && c != '\n' && c != '\t') || c >= 0x7f)
			text[i] = '?';
	}
	text[length] = '\0';
}

#define TEXT_FIRST 16384

/*
 * Reads a file of up to @most bytes into a buffer that grows with it: most files are short, and the
 * longest are a hundred times as long as their fellows. Return: its length or a negative errno.
 */
static ssize_t read_growing(int fd, size_t most, char **text)
{
	size_t room = most < TEXT_FIRST ? most : TEXT_FIRST, length = 0;

	*text = NULL;
	for (;;) {
		char *larger = realloc(*text, room + 2);
		ssize_t got = -ENOMEM;

		if (larger) {
			*text = larger;
			got = read_tree_file(fd, larger + length, room + 1 - length);
		}
		if (got < 0)
			return got;
		length += (size_t)got;
		if (length <= room)
			return (ssize_t)length;
		if (room == most)
			return -EFBIG;
		room = room > most / 2 ? most : 2 * room;
	}
}

char *tree_text(struct tree *tree, const char *path, size_t most)
{
	int fd = open_tree_file(tree, path);
	char *text = NULL, *fitting;
	ssize_t got = fd < 0 ? fd : read_growing(fd, most, &text);

	if (fd >= 0)
		close(fd);
	if (got < 0) {
		free(text);
		errno = (int)-got;
		return NULL;
	}
	record_file(tree, path, text, (size_t)got);
	clean_text(text, (size_t)got);
	fitting = realloc(text, (size_t)got + 1);
	return fitting ? fitting : text;
}

static void strip_line(char *line)
{
	size_t first = strspn(line, " \t"), end = strlen(line);

	while (end > first && strchr(" \t", line[end - 1]))
		end--;
	memmove(line, line + first, end - first);
	line[end - first] = '\0';
}

int tree_line(struct tree *tree, const char *path, char *line, size_t size)
{
	ssize_t got = tree_bytes(tree, path, line, size - 1);
	bool whole;

	if (got < 0) {
		*line = '\0';
		return (int)got;
	}
	clean_text(line, (size_t)got);
	whole = strchr(line, '\n') || (size_t)got < size - 1;
	line[whole ? strcspn(line, "\n") : 0] = '\0';
	strip_line(line);
	return whole ? 0 : -EFBIG;
}

int tree_number(struct tree *tree, const char *path, uint64_t *value)
{
	char line[TREE_LINE];
	int err = tree_line(tree, path, line, sizeof(line));

	return err ? err : number_read_code(line, value);
}

int tree_link(struct tree *tree, const char *path, char *name, size_t size)
{
	int fd = tree_open_path(tree, path, O_PATH | O_NOFOLLOW);
	char target[TREE_PATH];
	const char *last;
	ssize_t got;

	*name = '\0';
	if (fd < 0)
		return fd;
	got = readlinkat(fd, "", target, sizeof(target) - 1);
	got = got < 0 ? -errno : got;
	close(fd);
	if (got < 0)
		return got == -ENOENT ? -EINVAL : (int)got;
	target[got] = '\0';
	record_link(tree, path, target);
	clean_text(target, (size_t)got);
	/* A name is put into sentences, as a line is. */
	for (char *c = target; *c; c++)
		*c = *c < ' ' ? '?' : *c;
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	if (strlen(last) >= size)
		return -ENAMETOOLONG;
	strcpy(name, last);
	return 0;
}
