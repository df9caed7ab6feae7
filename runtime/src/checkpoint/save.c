// SPDX-License-Identifier: MIT
/*
 * Saves a checkpoint. The order of writes makes it survive a crash at any point:
 *
 * - Shards are written under names that never were, each written and synced, and the folder is
 *   synced.
 * - The index is written and synced under a temporary name and renamed over index.json, which is
 *   the commit, and the folder is synced.
 * - Only then are the shards of the old index removed.
 *
 * The folder is locked for the whole save. A struct save lives for one call; where its rows come
 * from is up to its source (save_engine.c, reshard.c).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/file.h"
#include "save.h"

/* How a failed save leaves the folder. */
enum outcome { NOT_COMMITTED, MAYBE_COMMITTED, COMMITTED };

static int make_folder(const char *dir)
{
	int ret = file_ops->make_folder(dir);
	char *parent;

	if (ret == -EEXIST)
		return 0;
	if (ret)
		return fail(ret, "%s: cannot be made: %s", dir, strerror(-ret));
	parent = file_parent(dir);
	ret = parent ? file_sync_folder(parent) : -ENOMEM;
	free(parent);
	return ret;
}

/* Leftovers of a save that died; what cannot be removed now is in nobody's way. */
static void clean_leftovers(struct save *s, const struct index *keep)
{
	struct embeng_error error = {.size = sizeof(error)};

	if (!clean_folder(s->dir, keep) || !s->e)
		return;
	embeng_last_error(&error);
	log_say(&s->e->log, EMBENG_LOG_WARNING, "embeng_save: %s", error.text);
}

static int check_old(struct save *s, const char *path, const char *text, size_t length)
{
	int ret = index_recognize(text, length, path);
	struct index old;

	if (ret == -ENOMEM)
		return ret;
	if (ret)
		return fail(-EBADMSG,
			    "%s: is not the index of a checkpoint; it and what belongs to it are "
			    "left alone, save into another folder",
			    path);
	/* If an index cannot be read in full, nobody knows which shards it names. */
	if (index_parse(text, length, path, &old))
		return 0;
	clean_leftovers(s, &old);
	index_free(&old);
	return 0;
}

static int look_at_old(struct save *s, const char *path)
{
	size_t length;
	char *text;
	int ret = file_read_whole(path, INDEX_BYTES_MAX, &text, &length);

	if (ret == -ENOENT) {
		clean_leftovers(s, NULL);
		return 0;
	}
	if (ret)
		return ret;
	ret = check_old(s, path, text, length);
	free(text);
	return ret;
}

static int write_temporary(const char *path, const char *text, size_t length)
{
	int fd = file_open(path, O_WRONLY | O_CREAT | O_EXCL), ret;

	if (fd < 0)
		return fd;
	ret = file_write(fd, path, text, length);
	ret = ret ? ret : file_sync(fd, path);
	file_ops->close(fd);
	if (ret)
		file_ops->remove(path);
	return ret;
}

static int commit_text(struct save *s, const char *path, const char *temporary, const char *text,
		       size_t length, enum outcome *outcome)
{
	int ret = file_sync_folder(s->dir);

	ret = ret ? ret : write_temporary(temporary, text, length);
	if (ret)
		return ret;
	*outcome = MAYBE_COMMITTED;
	ret = file_rename(temporary, path);
	ret = ret ? ret : file_sync_folder(s->dir);
	if (!ret)
		*outcome = COMMITTED;
	return ret;
}

static int commit_index(struct save *s, const char *path, enum outcome *outcome)
{
	char name[SHARD_NAME_SIZE], *temporary, *text;
	size_t length;
	int ret = index_write(&s->index, &text, &length);

	if (ret)
		return ret;
	index_temporary_name(name, s->nonce);
	temporary = file_path(s->dir, name);
	ret = temporary ? commit_text(s, path, temporary, text, length, outcome) : -ENOMEM;
	free(temporary);
	free(text);
	return ret;
}

/* The sentence of the failure stays the last one. */
static void remove_own(struct save *s)
{
	for (size_t i = 0; i < s->begun; i++) {
		char *path = file_path(s->dir, s->index.files[i].name);

		if (path)
			file_ops->remove(path);
		free(path);
	}
}

static int save_locked(struct save *s, const char *path)
{
	enum outcome outcome = NOT_COMMITTED;
	int ret = look_at_old(s, path);

	ret = ret ? ret : s->source->begin(s);
	ret = ret ? ret : s->source->rows(s);
	ret = ret ? ret : commit_index(s, path, &outcome);
	/* Where the rename may have happened, its shards are worth more than their room. */
	if (outcome == NOT_COMMITTED)
		remove_own(s);
	if (outcome == COMMITTED)
		clean_leftovers(s, &s->index);
	return ret;
}

static int save_into(struct save *s)
{
	char *path = file_path(s->dir, INDEX_NAME);
	int lock, ret = path ? make_folder(s->dir) : -ENOMEM;

	ret = ret ? ret : file_lock_folder(s->dir, LOCK_NAME, &lock);
	if (!ret) {
		ret = save_locked(s, path);
		file_ops->close(lock);
	}
	free(path);
	return ret;
}

int save_run(struct save *s)
{
	int ret;

	if (getrandom(&s->nonce, sizeof(s->nonce), 0) != sizeof(s->nonce))
		return fail(-EIO, "%s: no random number for names of files", s->source->what);
	ret = save_into(s);
	s->index.model = NULL;
	s->index.program_state = NULL;
	index_free(&s->index);
	return ret;
}
