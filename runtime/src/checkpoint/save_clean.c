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

	if (!is_shard_name(name) && !is_temporary_name(name))
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

static int compare_leftovers(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Marks what @keep names by taking it off the sorted list. */
static void spare_kept(struct names *names, const struct index *keep)
{
	for (size_t i = 0; keep && i < keep->file_count; i++) {
		const char *name = keep->files[i].name;
		char **found = bsearch(&name, names->list, names->count, sizeof(*names->list),
				       compare_leftovers);

		if (found)
			(*found)[0] = '\0';
	}
}

static int remove_all(const char *dir, const struct names *names)
{
	int ret = 0;

	for (size_t i = 0; i < names->count; i++) {
		char *path;
		int code;

		if (!names->list[i][0])
			continue;
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
		qsort(names.list, names.count, sizeof(*names.list), compare_leftovers);
		spare_kept(&names, keep);
		ret = remove_all(dir, &names);
	}
	for (size_t i = 0; i < names.count; i++)
		free(names.list[i]);
	free(names.list);
	return ret;
}
