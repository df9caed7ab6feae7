// SPDX-License-Identifier: MIT
/*
 * Temporary folders: makes one, and removes it with all that is in it. The path belongs to the
 * caller until scratch_remove() frees it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "scratch.h"

int scratch_make(char **path)
{
	const char *parent = secure_getenv("TMPDIR");
	char *made;

	if (asprintf(&made, "%s/embeng-XXXXXX", parent && *parent ? parent : "/tmp") < 0)
		return -ENOMEM;
	if (!mkdtemp(made)) {
		int err = errno;

		free(made);
		return -err;
	}
	*path = made;
	return 0;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *place)
{
	(void)stat;
	(void)type;
	(void)place;
	remove(path);
	return 0;
}

void scratch_remove(char *path)
{
	if (path)
		nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}
