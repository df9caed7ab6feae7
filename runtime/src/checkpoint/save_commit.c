// SPDX-License-Identifier: MIT
/*
 * The last part of a save: keeps the index that is replaced, reads the new checkpoint back whole,
 * and puts the new index in its place by one rename.
 *
 * Called with the lock of the folder held.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "save.h"

/* The old index under a name of its own; until the commit nobody needs it. */
static int keep_old(struct save *s, const char *temporary)
{
	char *path;
	int ret;

	if (!s->old_text || !s->index.earlier_count ||
	    strcmp(s->index.earlier[0], s->known.earlier[0]) != 0)
		return 0;
	path = file_path(s->dir, s->index.earlier[0]);
	if (!path)
		return -ENOMEM;
	ret = file_make(temporary, s->old_text, s->old_length);
	if (!ret) {
		ret = file_rename(temporary, path);
		if (ret)
			file_ops->remove(temporary);
		s->kept_old = !ret;
	}
	free(path);
	return ret ? ret : file_sync_folder(s->dir);
}

/* A checkpoint that is not on disk as it was written must not replace anything. */
static int read_back_whole(struct save *s, const char *name)
{
	struct embeng_checkpoint *c;
	int ret;

	if (s->source->verify)
		return s->source->verify(s, name);
	ret = checkpoint_open_index(s->dir, name, &c);

	if (ret)
		return ret;
	/* The base of a delta was read when the rows were compared. */
	ret = checkpoint_verify_from(c, s->own, NULL, NULL);
	embeng_checkpoint_close(c);
	return ret;
}

static int commit_text(struct save *s, const char *path, const char *name, const char *text,
		       size_t length, enum save_outcome *outcome)
{
	char *temporary = file_path(s->dir, name);
	int ret = temporary ? file_sync_folder(s->dir) : -ENOMEM;

	ret = ret ? ret : keep_old(s, temporary);
	ret = ret ? ret : file_make(temporary, text, length);
	if (!ret) {
		ret = read_back_whole(s, name);
		if (ret)
			file_ops->remove(temporary);
	}
	if (!ret) {
		*outcome = SAVE_MAYBE_COMMITTED;
		ret = file_rename(temporary, path);
		ret = ret ? ret : file_sync_folder(s->dir);
		if (!ret)
			*outcome = SAVE_COMMITTED;
	}
	free(temporary);
	return ret;
}

int save_commit(struct save *s, const char *path, enum save_outcome *outcome)
{
	char name[SHARD_NAME_SIZE], *text;
	size_t length;
	int ret = save_keep_last_finite(s);

	ret = ret ? ret : index_write(&s->index, &text, &length);
	if (ret)
		return ret;
	index_temporary_name(name, s->nonce);
	ret = commit_text(s, path, name, text, length, outcome);
	free(text);
	return ret;
}

/* The sentence of the failure stays the last one. */
void save_forget_kept(struct save *s)
{
	char *path = s->kept_old ? file_path(s->dir, s->index.earlier[0]) : NULL;

	if (path)
		file_ops->remove(path);
	free(path);
}
