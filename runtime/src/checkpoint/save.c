// SPDX-License-Identifier: MIT
/*
 * Saves a checkpoint. The order of writes makes it survive a crash at any point:
 *
 * - Shards are written under names that never were, each written and synced, and the folder is
 *   synced.
 * - The old index is written under a name of its own, if its checkpoint is to be kept.
 * - The new index is written and synced under a temporary name, and all that it names is read back.
 * - It is renamed over index.json, which is the commit, and the folder is synced (save_commit.c).
 * - Only then are checkpoints removed that are not kept, and what no index names.
 *
 * The folder is locked for the whole save. If the save made the folder and fails, it removes it again.
 * A struct save lives for one call. Its rows come from its source (save_engine.c, reshard.c, write.c).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/file.h"
#include "save.h"

#define KEEP_DEFAULT 2u

/* @made: the folder was not there */
static int make_folder(const char *dir, bool *made)
{
	int ret = file_ops->make_folder(dir);
	char *parent;

	*made = !ret;
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

static size_t kept_at_most(const struct save *s)
{
	return (s->options.keep ? s->options.keep : KEEP_DEFAULT) - 1;
}

static int keep_name(struct save *s, const char *name)
{
	int ret = index_add_earlier(&s->known, name);

	if (!ret && s->index.earlier_count < kept_at_most(s))
		ret = index_add_earlier(&s->index, name);
	return ret;
}

static int keep_names(struct save *s, const struct index *of)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < of->earlier_count; i++)
		ret = keep_name(s, of->earlier[i]);
	return ret;
}

/* Earlier checkpoints are known by names alone where the index is missing or cannot be read. */
static int keep_listed(struct save *s, bool clean)
{
	struct index kept = {0};
	int ret = index_list_kept(s->dir, &kept);

	if (!ret && clean)
		clean_leftovers(s, &kept);
	ret = ret ? ret : keep_names(s, &kept);
	index_free(&kept);
	return ret;
}

/* The old checkpoint becomes the newest of the earlier ones; one without a file has no name. */
static int keep_earlier(struct save *s, const struct index *old, const char *text, size_t length)
{
	char name[SHARD_NAME_SIZE];
	int ret;

	if (!old->file_count)
		return keep_names(s, old);
	kept_name(name, old->files[old->file_count - 1].name);
	ret = keep_name(s, name);
	ret = ret ? ret : keep_names(s, old);
	if (ret)
		return ret;
	s->old_text = strndup(text, length);
	s->old_length = length;
	return s->old_text ? 0 : fail(-ENOMEM, "%s: no memory for its index", s->dir);
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
	ret = index_parse(text, length, path, &old);
	if (ret)
		return ret == -ENOMEM ? ret : keep_listed(s, false);
	clean_leftovers(s, &old);
	ret = keep_earlier(s, &old, text, length);
	index_free(&old);
	return ret;
}

static int look_at_old(struct save *s, const char *path)
{
	size_t length;
	char *text;
	int ret = file_read_whole(path, INDEX_BYTES_MAX, &text, &length);

	if (ret == -ENOENT)
		return keep_listed(s, true);
	if (ret)
		return ret;
	ret = check_old(s, path, text, length);
	free(text);
	return ret;
}

static int save_locked(struct save *s, const char *path)
{
	enum save_outcome outcome = SAVE_NOT_COMMITTED;
	int ret = look_at_old(s, path);

	ret = ret ? ret : s->source->begin(s);
	ret = ret ? ret : save_find_base(s);
	ret = ret ? ret : s->source->rows(s);
	ret = ret ? ret : save_commit(s, path, &outcome);
	/* Where the rename may have happened, its shards are worth more than their room. */
	if (outcome == SAVE_NOT_COMMITTED) {
		if (s->source->forget)
			s->source->forget(s);
		save_forget_rows(s);
		save_forget_kept(s);
	}
	if (outcome == SAVE_COMMITTED)
		clean_leftovers(s, &s->index);
	return ret;
}

static int save_into(struct save *s)
{
	char *path = file_path(s->dir, INDEX_NAME);
	bool made = false;
	int lock, ret = path ? make_folder(s->dir, &made) : -ENOMEM;

	ret = ret ? ret : file_lock_folder(s->dir, LOCK_NAME, &lock);
	if (!ret) {
		ret = save_locked(s, path);
		if (ret && made)
			file_forget_folder(s->dir, LOCK_NAME);
		file_unlock(lock);
	} else if (made) {
		file_ops->remove_folder(s->dir);
	}
	free(path);
	return ret;
}

/* The caller's structure may be longer than ours. */
void save_give_report(const struct save *s)
{
	struct embeng_save_report *out = s->options.report;
	size_t size = out ? out->size : 0;

	if (!out)
		return;
	*out = (struct embeng_save_report){
		.size = size,
		.delta = delta_count(&s->index),
		.bytes = s->index.bytes - s->before,
	};
	if (out->delta)
		out->base_step = step_of_name(s->index.files[0].name);
	for (size_t i = s->own; i < s->index.file_count; i++)
		out->rows += (uint64_t)s->index.files[i].rows;
	memcpy(out->why_full, s->why_full, sizeof(out->why_full));
}

int save_draw_nonce(struct save *s)
{
	if (getrandom(&s->nonce, sizeof(s->nonce), 0) == sizeof(s->nonce))
		return 0;
	return fail(-EIO, "%s: no random number for names of files", s->source->what);
}

void save_forget_index(struct save *s)
{
	s->index.model = NULL;
	s->index.program_state = NULL;
	index_free(&s->index);
}

int save_run(struct save *s)
{
	int ret;

	if (s->options.keep > KEEP_MAX)
		return fail(-ERANGE, "%s: keep is %u, at most %u checkpoints can be kept",
			    s->source->what, s->options.keep, KEEP_MAX);
	ret = save_draw_nonce(s);
	if (ret)
		return ret;
	ret = save_into(s);
	if (!ret)
		save_give_report(s);
	save_forget_marks(s);
	save_drop_base(s);
	save_forget_index(s);
	index_free(&s->known);
	free(s->old_text);
	return ret;
}
