// SPDX-License-Identifier: MIT
/*
 * Lists a folder of a tree in the order of its names. It is apart from tree.c, which reads files.
 *
 * A folder of a recorded tree may have any number of names: no more than TREE_LIST are looked at.
 * The list belongs to the caller.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tree_parts.h"

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* False for "." and "..", and for a name that could not be printed. */
static bool is_plain_name(const char *name)
{
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (; *name; name++) {
		if (*name < ' ' || (unsigned char)*name >= 0x7f)
			return false;
	}
	return true;
}

static int add_name(struct tree_names *names, const char *name)
{
	char **larger = realloc(names->list, (names->count + 1) * sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	names->list = larger;
	larger[names->count] = strdup(name);
	return larger[names->count] ? (names->count++, 0) : -ENOMEM;
}

static int read_names(DIR *folder, struct tree_names *names)
{
	struct dirent *entry;
	int err = 0;

	for (size_t seen = 0; !err && seen < TREE_LIST; seen++) {
		errno = 0;
		entry = readdir(folder);
		if (!entry)
			return -errno;
		if (is_plain_name(entry->d_name))
			err = add_name(names, entry->d_name);
	}
	return err;
}

int tree_list(struct tree *tree, const char *path, struct tree_names *names)
{
	int fd = tree_open_path(tree, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK), err;
	DIR *folder;

	*names = (struct tree_names){0};
	if (fd < 0)
		return fd;
	folder = fdopendir(fd);
	if (!folder) {
		err = -errno;
		close(fd);
		return err;
	}
	err = read_names(folder, names);
	closedir(folder);
	if (err) {
		tree_names_free(names);
		return err;
	}
	record_folder(tree, path);
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), by_version);
	return 0;
}

void tree_names_free(struct tree_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct tree_names){0};
}
