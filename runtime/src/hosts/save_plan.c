// SPDX-License-Identifier: MIT
/*
 * The plan of a save by all hosts: which shards there are and which host writes each. All hosts tell each other
 * what the plan depends on, and then each makes the same one. It is apart from save.c because nothing is
 * written here.
 *
 * A struct hosts_save lives for one call. The steps were read behind the gate of the owner handle.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "save.h"
#include "segment.h"

#define WHAT "embeng_save"

/*
 * An index has one distribution of rows for all tables. If rows are spread it is that of the group, so that each
 * host writes its own; tables that are not spread have their shards divided alike.
 */
struct embeng_model *save_model_of_hosts(const struct hosts *h)
{
	struct embeng_model *model = model_copy(h->e->model);

	for (size_t t = 0; model && t < model->table_count; t++)
		if (hosts_is_spread(h, (int)t)) {
			model->engine.hosts = h->hosts;
			model->engine.sharding = h->place.sharding;
		}
	return model;
}

/* Equal on all hosts, but for the nonce, which is host 0's. Steps that tables were frozen for follow. */
struct plan_head {
	uint64_t nonce, step, shard_bytes;
	uint32_t flags, unused;
};

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

/* The step of a table is the one that its first owner tells. */
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
int save_tell_plan(struct hosts_save *a, int status)
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

/*
 * The host that writes an entry: that of its rows or of its table; a table that is cut has its owners by turns.
 * @turn: the entry's number among those of its table
 */
static uint32_t choose_writer(const struct hosts *h, const struct index_file *file, size_t turn)
{
	const size_t first = h->place.first[file->table], end = h->place.first[file->table + 1];
	uint32_t host;
	int64_t local;

	if (is_cut(h, file->table))
		return h->place.parts[first + turn % (end - first)].host;
	return hosts_locate(h, (int)file->table, file->first, &host, &local) ? h->hosts : host;
}

static int choose_writers(struct hosts_save *a)
{
	const struct index *index = &a->whole->index;

	a->writers = calloc(index->file_count + 1, sizeof(*a->writers));
	a->started = calloc(index->file_count + 1, sizeof(*a->started));
	if (!a->writers || !a->started)
		return fail(-ENOMEM, WHAT ": there is no memory for a list of shards");
	for (size_t i = 0, first = 0; i < index->file_count; i++) {
		if (index->files[i].table != index->files[first].table)
			first = i;
		a->writers[i] = choose_writer(a->h, &index->files[i], i - first);
	}
	return 0;
}

/* Progress counts what this host writes; the others write the rest. */
static void leave_to_others(struct hosts_save *a)
{
	struct save *s = a->whole;

	s->before = 0;
	for (size_t i = 0; i < s->index.file_count; i = next_home(&s->index, i))
		s->before += save_is_own(a, i) ? 0 : s->index.files[i].bytes;
}

int save_plan_hosts(struct hosts_save *a)
{
	struct save *s = a->whole;
	int ret;

	for (size_t t = 0; t < s->index.model->table_count; t++)
		a->owners[t] = is_cut(a->h, t) ? SAVE_SHARES_NOTHING
			       : hosts_is_spread(a->h, (int)t)
				       ? SAVE_SHARES_BY_HOST
				       : a->h->place.parts[a->h->place.first[t]].host;
	s->owners = a->owners;
	s->owner_count = a->h->hosts;
	ret = save_plan(s);
	ret = ret ? ret : choose_writers(a);
	if (!ret)
		leave_to_others(a);
	return ret;
}
