// SPDX-License-Identifier: MIT
/*
 * Removes the shards in a folder that no index names, and indices that were never committed. They
 * are left behind by saves that failed or replaced others.
 *
 * Called with the lock of the folder held. The list of names lives for one call.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "save.h"

struct names {
	char **list;
	size_t count, capacity;
};

/* All names first: a folder is not changed while it is read. */
static int note_name(void *arg, const char *name)
{
	struct names *names = arg;

	if (!is_shard_name(name) && !is_temporary_name(name) && !is_kept_name(name))
		return 0;
	if (names->count == names->capacity) {
		size_t wanted = names->capacity ? 2 * names->capacity : 16;
		char **larger = reallocarray(names->list, wanted, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		names->list = larger;
		names->capacity = wanted;
	}
	names->list[names->count] = strdup(name);
	if (!names->list[names->count])
		return -ENOMEM;
	names->count++;
	return 0;
}

/* Earlier checkpoints stay with their shards, which their names tell. */
static bool belongs_to_earlier(const char *name, const struct index *keep)
{
	for (size_t i = 0; i < keep->earlier_count; i++) {
		if (!strcmp(name, keep->earlier[i]) || is_shard_of_kept(name, keep->earlier[i]))
			return true;
	}
	return false;
}

static int compare_kept_files(const void *a, const void *b)
{
	const char *const *key = a;
	const struct index_file *const *file = b;

	return strcmp(*key, (*file)->name);
}

static int compare_files(const void *a, const void *b)
{
	const struct index_file *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* Takes what @keep names off the list. */
static int spare_kept(struct names *names, const struct index *keep)
{
	const struct index_file **files = calloc(keep->file_count + 1, sizeof(*files));
	size_t left = 0;

	if (!files)
		return -ENOMEM;
	for (size_t i = 0; i < keep->file_count; i++)
		files[i] = &keep->files[i];
	qsort(files, keep->file_count, sizeof(*files), compare_files);
	for (size_t i = 0; i < names->count; i++) {
		char *name = names->list[i];

		if (belongs_to_earlier(name, keep) ||
		    bsearch(&name, files, keep->file_count, sizeof(*files), compare_kept_files))
			free(name);
		else
			names->list[left++] = name;
	}
	names->count = left;
	free(files);
	return 0;
}

static int remove_all(const char *dir, const struct names *names)
{
	int ret = 0;

	for (size_t i = 0; i < names->count; i++) {
		char *path;
		int code;

		path = file_path(dir, names->list[i]);
		code = path ? file_remove(path) : -ENOMEM;
		free(path);
		ret = ret ? ret : code;
	}
	return ret;
}

int clean_folder(const char *dir, const struct index *keep)
{
	struct names names = {0};
	int ret = file_ops->list(dir, note_name, &names);

	if (ret) {
		fail(ret, "%s: its files cannot be listed: %s", dir, strerror(-ret));
	} else if (names.count) {
		ret = keep ? spare_kept(&names, keep) : 0;
		ret = ret ? fail(ret, "%s: no memory for the names of its files", dir)
			  : remove_all(dir, &names);
	}
	for (size_t i = 0; i < names.count; i++)
		free(names.list[i]);
	free(names.list);
	return ret;
}
