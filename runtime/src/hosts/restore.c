// SPDX-License-Identifier: MIT
/*
 * Restores a checkpoint into tables that lie on several hosts. Each host opens the checkpoint and reads the
 * tables, or columns, that it owns, as a single handle does (checkpoint/restore.c). No host replaces a row before
 * all have read and checked theirs; where the owner handle has no memory for copies, it checks them first,
 * and reads them once more after that.
 *
 * A struct hosts_restore lives for one call. The rows move behind the gate of the owner handle.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/restore.h"
#include "collective.h"
#include "segment.h"

#define WHAT "embeng_restore"

/* The checkpoint that a host reads. */
struct found {
	uint64_t step;
	char shard[SHARD_NAME_SIZE]; /* name of the last one */
};

/**
 * struct hosts_restore - one restore, of this host
 * @told: all hosts know whether all were ready
 * @beat: when this host last said that it is at work
 */
struct hosts_restore {
	struct hosts *h;
	struct restore r;
	struct restore_parts parts;
	bool told;
	uint64_t beat;
};

/* Pairs that stay are those of this host's tables. A table's first owner notes its numbers in the report. */
static int choose_own_pairs(struct restore *r)
{
	const struct hosts_restore *a = r->parts->arg;
	const struct hosts *h = a->h;
	size_t kept = 0;

	r->total = 0;
	for (size_t i = 0; i < r->pair_count; i++) {
		struct array_pair *pair = &r->pairs[i];
		const struct place_part *part = hosts_part(h, pair->table, h->rank);

		if (!part)
			continue;
		pair->to_table = h->tables[pair->table];
		pair->to_first = part->first_column;
		pair->to_columns = part_width(h, part, (size_t)pair->array);
		pair->noted = part != &h->place.parts[h->place.first[pair->table]];
		r->total += pair->rows * pair->to_columns * sizeof(float);
		r->pairs[kept++] = *pair;
	}
	r->pair_count = kept;
	return 0;
}

static void describe_found(const struct restore *r, struct found *found)
{
	const struct index *index = &r->c->index;

	*found = (struct found){.step = index->step};
	if (index->file_count)
		memcpy(found->shard, index->files[index->file_count - 1].name,
		       sizeof(found->shard));
}

/* Another save may have come between, and folders of the same name may be two. */
static int compare_found(const struct hosts *h, uint32_t host, const struct embeng_bytes *came,
			 const struct embeng_bytes *first)
{
	struct found a, b;

	if (came->bytes != sizeof(a) || first->bytes != sizeof(b))
		return segment_bad(h, host, "a checkpoint's name");
	memcpy(&a, came->data, sizeof(a));
	memcpy(&b, first->data, sizeof(b));
	if (a.step == b.step && !memcmp(a.shard, b.shard, sizeof(a.shard)))
		return 0;
	return fail(-ESTALE,
		    WHAT ": host %" PRIu32 " (%s) found a checkpoint of step %" PRIu64
			 ", and host 0 (%s) another one, of step %" PRIu64
			 "; the tables are as they were",
		    host, embeng_group_host(h->group, host), a.step, embeng_group_host(h->group, 0),
		    b.step);
}

static int tell_ready(struct hosts_restore *a, int status, const struct found *found)
{
	struct embeng_bytes *send = a->h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = a->h->received[CHANNEL_CONTROL];
	int ret;

	a->told = true;
	for (uint32_t i = 0; i < a->h->hosts; i++)
		send[i] = (struct embeng_bytes){found, sizeof(*found)};
	do
		ret = hosts_control(a->h->e, "restore", status, send, received);
	while (!ret && !hosts_are_done(a->h, received));
	for (uint32_t i = 1; !ret && i < a->h->hosts; i++)
		ret = compare_found(a->h, i, &received[i], &received[0]);
	return ret;
}

/* All have failed if this fails, and nobody has to be told. */
static int say_at_work(struct restore *r)
{
	struct hosts_restore *a = r->parts->arg;
	int ret = 0;

	if (hosts_beat_is_due(&a->beat))
		ret = hosts_control(a->h->e, "restore", 0, NULL, a->h->received[CHANNEL_CONTROL]);
	a->told |= ret != 0;
	return ret;
}

static int agree_on_ready(struct restore *r, int status)
{
	const struct hosts_restore *a = r->parts->arg;
	struct found found;

	if (a->told)
		return status;
	describe_found(r, &found);
	return tell_ready(r->parts->arg, status, &found);
}

/* All hosts have replaced their rows; numbers that are not finite were counted by each. */
static int end_restore(struct hosts_restore *a, int status)
{
	const uint64_t own = a->r.report.not_finite;
	struct embeng_bytes *send = a->h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = a->h->received[CHANNEL_CONTROL];
	int ret;

	for (uint32_t i = 0; i < a->h->hosts; i++)
		send[i] = (struct embeng_bytes){&own, sizeof(own)};
	ret = hosts_control(a->h->e, "restore", status, send, received);
	a->r.report.not_finite = 0;
	for (uint32_t i = 0; !ret && i < a->h->hosts; i++) {
		uint64_t count;

		if (received[i].bytes != sizeof(count))
			return segment_bad(a->h, i, "a report");
		memcpy(&count, received[i].data, sizeof(count));
		a->r.report.not_finite += count;
	}
	return ret;
}

static int run_hosts_restore(struct hosts_restore *a, const struct embeng_restore_options *options)
{
	uint64_t step = 0;
	int ret = restore_folder(&a->r, options);

	if (!a->told)
		return tell_ready(a, ret, NULL);
	/* If all hosts know of a failure before rows were replaced, there is nothing to end. */
	if (ret && !a->r.replacing)
		return ret;
	ret = ret ? ret : embeng_step(a->h->owner, &step);
	ret = end_restore(a, ret);
	if (!ret)
		hosts_count_from(a->h, step);
	return ret;
}

int hosts_restore(struct embeng *e, const char *dir, const struct embeng_restore_options *options)
{
	struct hosts *h = e->hosts;
	struct hosts_restore a = {
		.h = h,
		.parts = {.choose = choose_own_pairs, .agree = agree_on_ready, .beat = say_at_work},
		.r = {.e = e, .to = h->owner, .dir = dir},
	};
	int ret = hosts_refuse_spread(h, -1, "embeng_restore");

	ret = ret ? ret : hosts_enter(e);
	if (ret)
		return ret;
	a.parts.arg = &a;
	a.r.parts = &a.parts;
	ret = run_hosts_restore(&a, options);
	hosts_leave(e);
	if (!ret)
		restore_give_report(&a.r);
	return ret;
}
