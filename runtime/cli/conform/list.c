// SPDX-License-Identifier: MIT
/*
 * Finds the vector files that a call names: files, and folders of them in order of their names.
 *
 * The list owns paths and documents until vector_list_free().
 */
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/exit.h"
#include "file.h"
#include "list.h"

static int report_no_memory(const struct output *out)
{
	return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
}

static int add_file(struct vector_list *list, const char *path, const struct output *out)
{
	struct vector_entry *grown;
	char error[VECTOR_ERROR_TEXT];

	grown = realloc(list->entries, (list->count + 1) * sizeof(*grown));
	if (!grown)
		return report_no_memory(out);
	list->entries = grown;
	grown += list->count;
	grown->path = strdup(path);
	if (!grown->path)
		return report_no_memory(out);
	grown->vector = vector_read(path, error);
	list->count++;
	if (grown->vector)
		return 0;
	return output_fail(out, CLI_USAGE, EBADMSG, "Nothing was run; correct the file", "%s: %s",
			   path, error);
}

static bool is_vector_name(const char *name)
{
	size_t length = strlen(name);

	return length > 5 && !strcmp(name + length - 5, ".json");
}

/* A file that is named is read whatever its name. */
static int add_entry(struct vector_list *list, const FTSENT *entry, const struct output *out)
{
	switch (entry->fts_info) {
	case FTS_F:
	case FTS_DEFAULT:
		if (entry->fts_level && !is_vector_name(entry->fts_name))
			return 0;
		return add_file(list, entry->fts_path, out);
	case FTS_NS:
	case FTS_ERR:
	case FTS_DNR:
		return output_fail(out, exit_of_errno(entry->fts_errno), entry->fts_errno, NULL,
				   "%s: %s", entry->fts_path, strerror(entry->fts_errno));
	default:
		return 0;
	}
}

static int compare_file_names(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_path(struct vector_list *list, char *path, const struct output *out)
{
	char *const paths[] = {path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_file_names);
	size_t before = list->count;
	const FTSENT *entry;
	int code = 0;

	if (!tree)
		return report_no_memory(out);
	while (!code && (entry = fts_read(tree)))
		code = add_entry(list, entry, out);
	fts_close(tree);
	if (!code && list->count == before)
		code = output_fail(out, CLI_USAGE, ENOENT, NULL,
				   "%s: there is no *.json file in this folder", path);
	return code;
}

int vector_list_read(struct vector_list *list, char *const *paths, size_t count,
		     const struct output *out)
{
	int code = 0;

	for (size_t i = 0; !code && i < count; i++)
		code = add_path(list, paths[i], out);
	return code;
}

void vector_list_free(struct vector_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->entries[i].path);
		json_free(list->entries[i].vector);
	}
	free(list->entries);
}
