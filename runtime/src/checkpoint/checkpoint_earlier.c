// SPDX-License-Identifier: MIT
/*
 * Finds and opens the earlier checkpoints of a folder, by their age or by their step. The index says
 * which there are; where it is missing or broken, the names of files do.
 *
 * A list of names lives for one call. A save may remove a checkpoint meanwhile, so the list is read
 * again if one is gone.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "open.h"
#include "session/session.h"

/* Only a saver that keeps replacing checkpoints makes more needed. */
#define TRIES 5

static int read_earlier(const char *dir, const char *path, struct index *index)
{
	size_t length;
	char *text;
	int ret = file_read_whole(path, INDEX_BYTES_MAX, &text, &length);

	if (!ret) {
		ret = index_parse(text, length, path, index);
		free(text);
	}
	return ret && ret != -ENOMEM ? index_list_kept(dir, index) : ret;
}

/* Only the list of the index is of use. */
static int list_earlier(const char *dir, struct index *index)
{
	char *path = file_path(dir, INDEX_NAME);
	int ret = path ? read_earlier(dir, path, index) : -ENOMEM;

	free(path);
	return ret;
}

static int try_earlier(const char *dir, size_t back, struct embeng_checkpoint **out)
{
	struct index index = {0};
	int ret = list_earlier(dir, &index);

	if (!ret && back > index.earlier_count)
		ret = fail(-ENODATA, "%s: there is no checkpoint %zu before the newest, but %zu",
			   dir, back, index.earlier_count);
	ret = ret ? ret : checkpoint_open_index(dir, index.earlier[back - 1], out);
	index_free(&index);
	return ret;
}

static int open_earlier(const char *dir, size_t back, struct embeng_checkpoint **out)
{
	int ret = -ENOENT;

	if (!dir || !out)
		return fail(-EINVAL, "embeng_checkpoint_open_earlier: dir and out must be given");
	if (!back)
		return embeng_checkpoint_open(dir, out, NULL);
	for (int i = 0; i < TRIES && ret == -ENOENT; i++)
		ret = try_earlier(dir, back, out);
	return ret;
}

int embeng_checkpoint_open_earlier(const char *dir, size_t back, struct embeng_checkpoint **out,
				   struct embeng_error *error)
{
	int ret = open_earlier(dir, back, out);

	if (ret)
		give_error(error);
	return ret;
}

static int open_earlier_step(const char *dir, uint64_t step, struct embeng_checkpoint **out)
{
	struct index index = {0};
	int ret = list_earlier(dir, &index);
	size_t at = 0;

	while (!ret && at < index.earlier_count && step_of_name(index.earlier[at]) != step)
		at++;
	if (!ret && at == index.earlier_count)
		ret = fail(-ENODATA,
			   "%s: has no checkpoint of step %" PRIu64
			   "; embeng checkpoint list shows "
			   "those that it has",
			   dir, step);
	ret = ret ? ret : checkpoint_open_index(dir, index.earlier[at], out);
	index_free(&index);
	return ret;
}

int checkpoint_open_step(const char *dir, uint64_t step, struct embeng_checkpoint **out)
{
	int ret = embeng_checkpoint_open(dir, out, NULL);

	/* A newest one that is broken does not keep anybody from an earlier one. */
	if (ret == -ENOMEM || (!ret && (*out)->index.step == step))
		return ret;
	if (!ret)
		embeng_checkpoint_close(*out);
	*out = NULL;
	ret = -ENOENT;
	for (int i = 0; i < TRIES && ret == -ENOENT; i++)
		ret = open_earlier_step(dir, step, out);
	return ret;
}

int embeng_checkpoint_open_step(const char *dir, uint64_t step, struct embeng_checkpoint **out,
				struct embeng_error *error)
{
	int ret = dir && out
			  ? checkpoint_open_step(dir, step, out)
			  : fail(-EINVAL, "embeng_checkpoint_open_step: dir and out must be given");

	if (ret)
		give_error(error);
	return ret;
}
