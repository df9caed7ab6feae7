/* SPDX-License-Identifier: MIT */
/* Files by their name in the folder of a test of base/file.h. */
#ifndef EMBENG_TESTS_FILE_HELP_H
#define EMBENG_TESTS_FILE_HELP_H

#include "base/file.h"
#include "scratch_help.h"

static char folder[32];

/* "FOLDER/NAME"; lives until the second call after it. */
static inline const char *at(const char *name)
{
	static char paths[2][128];
	static int turn;

	turn = !turn;
	snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", folder, name);
	return paths[turn];
}

static inline void put(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "we");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static inline void expect_text(const char *name, const char *want)
{
	char *text = NULL;
	size_t length = 0;

	ck_assert_int_eq(file_read_whole(at(name), 1000, &text, &length), 0);
	ck_assert_uint_eq(length, strlen(want));
	ck_assert_str_eq(text, want);
	free(text);
}

static inline void teardown(void)
{
	file_ops = &file_ops_system;
	scratch_folder_remove(folder);
}

#endif
