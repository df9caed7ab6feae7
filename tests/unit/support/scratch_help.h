/* SPDX-License-Identifier: MIT */
/* A folder of a test, and its contents. */
#ifndef EMBENG_TESTS_SCRATCH_HELP_H
#define EMBENG_TESTS_SCRATCH_HELP_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/frame/scratch.h"

/* For tests that link no part of the command; scratch_make() is the command's. */
static inline void scratch_folder_make(char path[32])
{
	strcpy(path, "/tmp/embeng-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(path));
}

static inline void scratch_folder_remove(const char *path)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", path);
	ck_assert_int_eq(system(command), 0);
}

/* Number of entries of a folder, without . and .. */
static inline size_t entries(const char *path)
{
	DIR *folder = opendir(path);
	size_t count = 0;

	ck_assert_ptr_nonnull(folder);
	for (const struct dirent *entry; (entry = readdir(folder));)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(folder);
	return count;
}

static inline char *inside(const char *folder, const char *name)
{
	size_t size = strlen(folder) + strlen(name) + 2;
	char *path = malloc(size);

	ck_assert_ptr_nonnull(path);
	snprintf(path, size, "%s/%s", folder, name);
	return path;
}

#endif
