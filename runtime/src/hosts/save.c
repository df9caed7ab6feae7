// SPDX-License-Identifier: MIT
/*
 * Saves a checkpoint of tables that lie on several hosts. All hosts make the same plan, and each writes shards
 * of it. Host 0 runs the save as a single handle does (checkpoint/save.c): it alone locks the folder, keeps
 * and removes older checkpoints, and writes the index. The others join it in these exchanges:
 *
 * 1. plan: host 0 gives the random part of names, and all tell the steps of their tables.
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
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "save.h"
#include "segment.h"

#define WHAT "embeng_save"

/* Equal on all hosts, but for the nonce, which is host 0's. Steps that tables were frozen for follow. */
struct plan_head {
	uint64_t nonce, step, shard_bytes;
	uint32_t flags, unused;
};

/* -- the plan -- */

static int refuse_plan(const struct hosts_save *a, uint32_t host, const char *what, uint64_t has,
		       uint64_t first)
{
	return fail(-EINVAL,
		    WHAT ": host %" PRIu32 " (%s) has %s %" PRIu64 ", host 0 (%s) %" PRIu64, host,
		    embeng_group_host(a->h->group, host), what, has,
		    embeng_group_host(a->h->group, 0), first);
}

/* One host's message, against that of host 0. */
static int check_plan(struct hosts_save *a, uint32_t host, const struct embeng_bytes *came,
		      const struct plan_head *first)
{
	struct plan_head head;

	if (came->bytes != sizeof(head) + 8 * a->h->e->model->table_count)
		return segment_bad(a->h, host, "a plan");
	memcpy(&head, came->data, sizeof(head));
	if (head.step != first->step)
		return refuse_plan(a, host, "step", head.step, first->step);
	if (head.shard_bytes != first->shard_bytes)
		return refuse_plan(a, host, "shard_bytes", head.shard_bytes, first->shard_bytes);
	if (head.flags != first->flags)
		return refuse_plan(a, host, "flags", head.flags, first->flags);
	return 0;
}

/* Each table's number is its first owner's. */
static int take_plans(struct hosts_save *a, const struct embeng_bytes *received)
{
	struct save *s = a->whole;
	struct plan_head first;
	int ret = 0;

	if (received[0].bytes < sizeof(first))
		return segment_bad(a->h, 0, "a plan");
	memcpy(&first, received[0].data, sizeof(first));
	for (uint32_t i = 0; !ret && i < a->h->hosts; i++)
		ret = check_plan(a, i, &received[i], &first);
	s->nonce = first.nonce;
	s->index.step = first.step;
	for (size_t t = 0; !ret && t < s->index.model->table_count; t++) {
		const char *from = received[a->h->place.parts[a->h->place.first[t]].host].data;

		memcpy(&s->index.frozen_steps[t], from + sizeof(first) + 8 * t, 8);
	}
	return ret;
}

/* @own has the steps of the owner handle's tables. */
static int tell_plan(struct hosts_save *a, int status)
{
	struct save *s = a->whole;
	const size_t tables = s->index.model->table_count;
	const size_t bytes = sizeof(struct plan_head) + 8 * tables;
	struct embeng_bytes *send = a->h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = a->h->received[CHANNEL_CONTROL];
	struct plan_head *head = calloc(1, bytes);
	int ret = status;

	if (!ret && !head)
		ret = fail(-ENOMEM, WHAT ": there is no memory for a plan");
	ret = ret ? ret : index_make_frozen(&s->index, NULL);
	if (!ret) {
		uint64_t *frozen = (uint64_t *)(void *)(head + 1);

		*head = (struct plan_head){.nonce = s->nonce,
					   .step = a->own.index.step,
					   .shard_bytes = s->options.shard_bytes,
					   .flags = s->options.flags};
		for (size_t t = 0; t < tables; t++)
			if (a->h->tables[t] >= 0)
				frozen[t] = a->own.index.frozen_steps[a->h->tables[t]];
	}
	for (uint32_t i = 0; i < a->h->hosts; i++)
		send[i] = (struct embeng_bytes){head, bytes};
	ret = save_agree(a, ret, send, received);
	free(head);
	return ret ? ret : take_plans(a, received);
}

/* Tables that are cut have a writer for each shard, one owner after the other. */
static int choose_writers(struct hosts_save *a)
{
	const struct index *index = &a->whole->index;
	const struct placement *place = &a->h->place;

	a->writers = calloc(index->file_count + 1, sizeof(*a->writers));
	a->started = calloc(index->file_count + 1, sizeof(*a->started));
	if (!a->writers || !a->started)
		return fail(-ENOMEM, WHAT ": there is no memory for a list of shards");
	for (size_t i = 0, first = 0; i < index->file_count; i++) {
		const size_t t = index->files[i].table;

		if (t != index->files[first].table)
			first = i;
		a->writers[i] = place->parts[place->first[t] +
					     (i - first) % (place->first[t + 1] - place->first[t])]
					.host;
	}
	return 0;
}

/* For progress: what the other hosts write is not this host's to do. */
static void leave_to_others(struct hosts_save *a)
{
	struct save *s = a->whole;

	s->before = 0;
	for (size_t i = 0; i < s->index.file_count; i = next_home(&s->index, i))
		s->before += save_is_own(a, i) ? 0 : s->index.files[i].bytes;
}

static int plan_shards_of_hosts(struct hosts_save *a)
{
	struct save *s = a->whole;
	int ret;

	for (size_t t = 0; t < s->index.model->table_count; t++)
		a->owners[t] = is_cut(a->h, t) ? SAVE_SHARES_NOTHING
					       : a->h->place.parts[a->h->place.first[t]].host;
	s->owners = a->owners;
	s->owner_count = a->h->hosts;
	ret = save_plan(s);
	ret = ret ? ret : choose_writers(a);
	if (!ret)
		leave_to_others(a);
	return ret;
}

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
	ret = tell_plan(a, ret);
	ret = ret ? ret : plan_shards_of_hosts(a);
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
	s->index.model = s->e->model;
	s->index.model_hash = s->e->model_hash;
	s->index.program_state = (char *)(uintptr_t)s->options.program_state;
	return 0;
}

static int find_room_of_hosts(struct save *s, size_t table, uint64_t stride, uint64_t *most)
{
	struct hosts_save *a = s->hosts;

	if (is_cut(a->h, table))
		return save_make_room(s, table, stride, most);
	return save_engine_room(&a->own, (size_t)a->h->tables[table], stride, most);
}

static int read_rows_of_hosts(struct save *s, size_t table, size_t array,
			      const struct embeng_shard_rows *rows, const char **data)
{
	struct hosts_save *a = s->hosts;
	int ret;

	if (is_cut(a->h, table)) {
		*data = s->buffer;
		return save_next_turn(a);
	}
	ret = save_beat(a);
	return ret ? ret
		   : save_engine_read(&a->own, (size_t)a->h->tables[table], array, rows, data);
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
	if (!ret && !a->owners)
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
	int ret = hosts_refuse_spread(e->hosts, -1, "embeng_save");

	ret = ret ? ret : hosts_enter(e);
	if (ret)
		return ret;
	s.hosts = &a;
	ret = run_hosts_save(&a, dir, options);
	hosts_leave(e);
	free(a.owners);
	free(a.writers);
	free(a.started);
	free(a.columns.data);
	free(s.buffer);
	return ret;
}
