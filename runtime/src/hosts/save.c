// SPDX-License-Identifier: MIT
/*
 * Saves a checkpoint of tables that lie on several hosts. All hosts make the same plan, and each writes shards
 * of it: those of its tables and of its rows. Host 0 runs the save as a single handle does (checkpoint/save.c): it alone locks the folder, keeps
 * and removes older checkpoints, and writes the index. The others join it in these exchanges:
 *
 * 1. plan: host 0 gives the random part of names, and all tell the steps of their tables (save_plan.c).
 * 2. columns of tables that are cut, turn by turn (save_columns.c).
 * 3. sums: each host has written its shards, synced them, and synced the folder; host 0 gets checksums.
 * 4. look: host 0 has written the index under a temporary name; all read their shards back by it.
 * 5. right: all have found them right. Only now does host 0 rename the index.
 * 6. end: host 0 has committed.
 *
 * Before the third and the fifth, hosts that are done wait for the others, who say every so often that they
 * are at work. A failure of one host becomes all hosts' in the next exchange. Up to the fifth all then remove their shards,
 * and the folder is as it was. A host that has said that its shards are right keeps them if the group fails
 * after that, since host 0 may have committed; the next save removes what no index names.
 *
 * A struct hosts_save lives for one call. The rows are read behind the gate of the owner handle, with its
 * e->rows held.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "save.h"
#include "segment.h"

#define WHAT "embeng_save"

/* -- shards -- */

static int write_own_shards(struct hosts_save *a)
{
	const struct index *index = &a->whole->index;
	int ret = save_cut_tables(a);

	for (size_t i = 0; !ret && i < index->file_count; i = next_home(index, i))
		if (save_is_own(a, i) && !is_cut(a->h, index->files[i].table))
			ret = save_own_shard(a, i);
	return ret ? ret : file_sync_folder(a->whole->dir);
}

static int save_part(struct embeng *owner, void *arg, uint64_t after)
{
	struct hosts_save *a = arg;
	int ret;

	a->own = (struct save){.source = a->whole->source,
			       .e = owner,
			       .held = true,
			       .after = after,
			       .index.model = owner->model};
	ret = save_read_steps(&a->own);
	ret = save_tell_plan(a, ret);
	ret = ret ? ret : save_plan_hosts(a);
	ret = ret ? ret : write_own_shards(a);
	ret = save_tell_sums(a, ret);
	a->whole->before = 0;
	free(a->own.index.frozen_steps);
	return ret;
}

static int rows_of_hosts(struct save *s)
{
	struct hosts_save *a = s->hosts;

	return rows_behind_gate(a->h->owner, WHAT, save_part, a);
}

/* -- commit -- */

static int verify_own_shard(struct hosts_save *a, const struct embeng_checkpoint *c, size_t home)
{
	int ret = save_beat(a);

	return ret ? ret : checkpoint_verify_shard(c, home);
}

static int read_back_own(struct hosts_save *a, const char *name)
{
	struct embeng_checkpoint *c;
	int ret = checkpoint_open_index(a->whole->dir, name, &c);

	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < c->index.file_count; i = next_home(&c->index, i))
		ret = save_is_own(a, i) ? verify_own_shard(a, c, i) : 0;
	embeng_checkpoint_close(c);
	return ret;
}

static int verify_by_hosts(struct save *s, const char *name)
{
	struct hosts_save *a = s->hosts;
	int ret = save_agree(a, 0, NULL, NULL);

	if (ret)
		return ret;
	ret = read_back_own(a, name);
	a->ready = !ret;
	for (uint32_t i = 0; i < a->h->hosts; i++)
		a->h->send[CHANNEL_CONTROL][i] = (struct embeng_bytes){"", 1};
	ret = save_await_done(a, ret, a->h->send[CHANNEL_CONTROL]);
	a->verified = !ret;
	return ret;
}

static bool group_is_dead(struct hosts *h)
{
	bool dead;

	pthread_mutex_lock(&h->e->lock);
	dead = h->failed;
	pthread_mutex_unlock(&h->e->lock);
	return dead;
}

/* Removes this host's shards, unless host 0 may have committed them; then waits for the others. */
static void undo_save(struct hosts_save *a)
{
	struct embeng_error error = {.size = sizeof(error)};
	const bool dead = group_is_dead(a->h);

	if (a->undone)
		return;
	a->undone = true;
	embeng_last_error(&error);
	for (size_t i = 0; a->started && i < a->whole->index.file_count; i++) {
		char *path;

		if (!a->started[i] || (dead && a->ready))
			continue;
		path = file_path(a->whole->dir, a->whole->index.files[i].name);
		if (path)
			file_ops->remove(path);
		free(path);
	}
	if (!dead)
		hosts_control(a->h->e, "save undone", 0, NULL, NULL);
	error_set(error.code, error.status, "%s", error.text);
}

/* Host 0 has failed, maybe alone. */
static void undo_save_on_all(struct save *s)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	save_agree(s->hosts, error.code, NULL, NULL);
	undo_save(s->hosts);
}

static int begin_on_hosts(struct save *s)
{
	s->index.model = s->hosts->model;
	s->index.model_hash = s->e->model_hash;
	s->index.program_state = (char *)(uintptr_t)s->options.program_state;
	return 0;
}

static int find_room_of_hosts(struct save *s, size_t table, uint64_t stride, uint64_t *most)
{
	struct hosts_save *a = s->hosts;

	if (is_cut(a->h, table))
		return save_make_room(s, table, stride, most);
	if (hosts_is_spread(a->h, (int)table))
		stride = 1;
	return save_engine_room(&a->own, (size_t)a->h->tables[table], stride, most);
}

/* Rows of the whole table, all on this host, by their numbers here. */
static struct embeng_shard_rows own_rows_of(const struct hosts *h, size_t table,
					    const struct embeng_shard_rows *rows)
{
	const struct place_part *part = hosts_part(h, (int)table, h->rank);

	return (struct embeng_shard_rows){
		.first = (rows->first - part->rows.first) / part->rows.stride,
		.stride = rows->stride / part->rows.stride,
		.count = rows->count,
	};
}

static int read_rows_of_hosts(struct save *s, size_t table, size_t array,
			      const struct embeng_shard_rows *rows, const char **data)
{
	struct hosts_save *a = s->hosts;
	struct embeng_shard_rows own;
	int ret;

	if (is_cut(a->h, table)) {
		*data = s->buffer;
		return save_next_turn(a);
	}
	own = own_rows_of(a->h, table, rows);
	ret = save_beat(a);
	return ret ? ret
		   : save_engine_read(&a->own, (size_t)a->h->tables[table], array, &own, data);
}

static const struct save_source hosts_source = {
	.what = WHAT,
	.progress = "save",
	.begin = begin_on_hosts,
	.rows = rows_of_hosts,
	.room = find_room_of_hosts,
	.read = read_rows_of_hosts,
	.verify = verify_by_hosts,
	.forget = undo_save_on_all,
};

/* -- both sides -- */

static int lead_save(struct hosts_save *a)
{
	int ret = save_run(a->whole);

	ret = save_agree(a, ret, NULL, NULL);
	if (ret && !a->verified)
		undo_save(a);
	return ret;
}

/* The same without the folder's lock and index. */
static int join_save(struct hosts_save *a)
{
	struct save *s = a->whole;
	char name[SHARD_NAME_SIZE];
	int ret = s->source->begin(s);

	ret = ret ? ret : save_find_base(s);
	ret = ret ? ret : s->source->rows(s);
	if (!ret) {
		index_temporary_name(name, s->nonce);
		ret = verify_by_hosts(s, name);
	}
	ret = save_agree(a, ret, NULL, NULL);
	if (ret && !a->verified)
		undo_save(a);
	if (!ret)
		save_give_report(s);
	save_forget_index(s);
	return ret;
}

static int run_hosts_save(struct hosts_save *a, const char *dir,
			  const struct embeng_save_options *options)
{
	const size_t tables = a->h->e->model->table_count;
	int ret = save_take_options(a->whole, options);

	if (!ret && !dir)
		ret = fail(-EINVAL, WHAT ": no folder given");
	a->owners = calloc(tables + 1, sizeof(*a->owners));
	a->model = save_model_of_hosts(a->h);
	if (!ret && (!a->owners || !a->model))
		ret = fail(-ENOMEM, WHAT ": there is no memory for a plan");
	if (ret) {
		ret = save_agree(a, ret, NULL, NULL);
		undo_save(a);
		return ret;
	}
	return a->h->rank ? join_save(a) : lead_save(a);
}

int hosts_save(struct embeng *e, const char *dir, const struct embeng_save_options *options)
{
	struct save s = {.source = &hosts_source, .e = e, .dir = dir};
	struct hosts_save a = {.h = e->hosts, .whole = &s};
	int ret = hosts_enter(e);

	if (ret)
		return ret;
	s.hosts = &a;
	ret = run_hosts_save(&a, dir, options);
	hosts_leave(e);
	embeng_model_free(a.model);
	free(a.owners);
	free(a.writers);
	free(a.started);
	free(a.columns.data);
	free(s.buffer);
	return ret;
}
