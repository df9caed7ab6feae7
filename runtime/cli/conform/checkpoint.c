// SPDX-License-Identifier: MIT
/*
 * The steps save, restore and reopen of a vector. Their folders lie in a scratch folder of the run,
 * and a path that leads out of it is refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../frame/scratch.h"
#include "run.h"
#include "value.h"

/* Relative, and nothing in it leads out. */
static bool stays_inside(const char *dir)
{
	const char *part = dir;
	size_t length;

	if (!*dir || *dir == '/')
		return false;
	for (; *part; part += length + (part[length] == '/')) {
		length = strcspn(part, "/");
		if (length == 2 && !strncmp(part, "..", 2))
			return false;
	}
	return true;
}

static int find_folder(struct run *r, const struct json *body, char **path)
{
	const char *dir = text_member(body, "dir", "");
	int err;

	if (!stays_inside(dir))
		return run_fail(r, -EINVAL,
				"dir '%s' must be in the folder of the run: relative, without ..",
				dir);
	if (!r->scratch) {
		err = scratch_make(&r->scratch);
		if (err)
			return run_fail(r, err, "there is no temporary folder: %s", strerror(-err));
	}
	if (asprintf(path, "%s/%s", r->scratch, dir) < 0)
		return run_fail(r, -ENOMEM, "out of memory");
	return 0;
}

/* The folders above the last; that one is embeng_save()'s to make. */
static int make_parents(struct run *r, char *path)
{
	for (char *slash = strchr(path + strlen(r->scratch) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		int failed;

		*slash = '\0';
		failed = mkdir(path, 0777) && errno != EEXIST ? -errno : 0;
		if (failed)
			return run_fail(r, failed, "%s: %s", path, strerror(-failed));
		*slash = '/';
	}
	return 0;
}

int step_save(struct run *r, const struct json *body)
{
	/* Vectors hold that special values come back as they were. */
	const struct embeng_save_options all = EMBENG_INIT(embeng_save_options,
							   .flags = EMBENG_SAVE_NOT_FINITE);
	char *path = NULL;
	int err = find_folder(r, body, &path);

	if (err)
		return err;
	err = make_parents(r, path);
	if (!err) {
		err = embeng_save(r->e, path, &all);
		if (err)
			run_library(r, err);
	}
	free(path);
	return err;
}

int step_restore(struct run *r, const struct json *body)
{
	char *path = NULL;
	int err = find_folder(r, body, &path);

	if (err)
		return err;
	err = embeng_restore(r->e, path, NULL);
	if (err)
		run_library(r, err);
	free(path);
	return err;
}

int step_reopen(struct run *r, const struct json *body)
{
	return run_open(r, member(body, "engine"), bool_member(body, "optimizer", true));
}
