/* SPDX-License-Identifier: MIT */
/* The vectors that the command line names: files, and folders of files. */
#ifndef CLI_VECTOR_LIST_H
#define CLI_VECTOR_LIST_H

#include <stddef.h>

#include "../../json/json_read.h"
#include "../frame/output.h"

struct vector_entry {
	char *path;
	const struct json *vector;
};

struct vector_list {
	size_t count;
	struct vector_entry *entries;
};

/*
 * Reads and checks all of them, folders in the order of their names. Returns 0, or
 * an exit code after the failure was reported, and no vector is run then.
 */
int vector_list_read(struct vector_list *list, char *const *paths, size_t count,
		     const struct output *out);
void vector_list_free(struct vector_list *list);

#endif
