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

/* Takes the shards of @keep off the list, and what belongs to the earlier ones by its name. */
static int spare_named(struct names *names, const struct index *keep)
{
	const struct index_file **files = calloc(keep->file_count + 1, sizeof(*files));
	size_t left = 0;

	if (!files)
		return fail(-ENOMEM, "no memory for the names of files");
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

/* The shards of an earlier checkpoint that stands on others; one without an index has none. */
static int spare_earlier(struct names *names, const char *dir, const char *name)
{
	struct index index = {0};
	char *path = file_path(dir, name), *text;
	size_t length;
	int ret = path ? file_read_whole(path, INDEX_BYTES_MAX, &text, &length) : -ENOMEM;

	if (!ret) {
		ret = index_parse(text, length, path, &index);
		free(text);
		index.earlier_count = 0;
		ret = ret ? ret : spare_named(names, &index);
	}
	index_free(&index);
	free(path);
	return ret == -ENOENT ? 0 : ret;
}

/*
 * Takes all that is needed off the list. A delta stands on shards of checkpoints before it, so each
 * index is read; if one cannot be, nobody knows what it needs, and nothing is removed.
 */
static int spare_kept(struct names *names, const char *dir, const struct index *keep)
{
	int ret = spare_named(names, keep);

	for (size_t i = 0; !ret && names->count && i < keep->earlier_count; i++)
		ret = spare_earlier(names, dir, keep->earlier[i]);
	return ret;
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
		ret = keep ? spare_kept(&names, dir, keep) : 0;
		ret = ret ? ret : remove_all(dir, &names);
	}
	for (size_t i = 0; i < names.count; i++)
		free(names.list[i]);
	free(names.list);
	return ret;
}
