// SPDX-License-Identifier: MIT
/*
 * Restores a checkpoint into tables that lie on several hosts. Each host opens the checkpoint and reads the
 * tables, columns or rows that it owns, as a single handle does (checkpoint/restore.c). No host replaces a row before
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
#include "part.h"
#include "segment.h"

#define WHAT "embeng_restore"

/*
 * The checkpoint that a host reads. Behind it stands, for each array of each table, whether the host found a value
 * there that is not finite.
 */
struct found {
	uint64_t step;
	char shard[SHARD_NAME_SIZE]; /* name of the last one */
};

/**
 * struct hosts_restore - one restore, of this host
 * @told: all hosts know whether all were ready
 * @beat: when this host last said that it is at work
 * @message: a struct found and what stands behind it
 */
struct hosts_restore {
	struct hosts *h;
	struct restore r;
	struct restore_parts parts;
	bool told;
	uint64_t beat;
	char *message;
};

static size_t notes_of_tables(const struct hosts_restore *a)
{
	return a->h->e->model->table_count * ARRAYS_MAX;
}

/*
 * Pairs that stay are those of this host's tables. All owners of columns read whole rows, and the first one notes
 * numbers in the report; owners of rows note those of their own.
 */
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
		pair->rows = part_rows_before(part, (int64_t)pair->rows);
		pair->to_rows = part->rows;
		pair->to_first = part->first_column;
		pair->to_columns = part_width(h, part, (size_t)pair->array);
		pair->noted = part->kind == PLACE_COLUMN && part->first_column;
		r->total += pair->rows * pair->to_columns * sizeof(float);
		r->pairs[kept++] = *pair;
	}
	r->pair_count = kept;
	return 0;
}

static void describe_found(struct hosts_restore *a)
{
	const struct index *index = &a->r.c->index;
	struct found found = {.step = index->step};
	char *notes = a->message + sizeof(found);

	if (index->file_count)
		memcpy(found.shard, index->files[index->file_count - 1].name, sizeof(found.shard));
	memcpy(a->message, &found, sizeof(found));
	for (size_t i = 0; i < a->r.pair_count; i++) {
		const struct array_pair *pair = &a->r.pairs[i];

		notes[pair->table * ARRAYS_MAX + pair->array] |= pair->found;
	}
}

/* An array counts once, whoever has found a value in it that is not finite. */
static void join_notes(struct hosts_restore *a, const struct embeng_bytes *received)
{
	a->r.report.not_finite = 0;
	for (size_t k = 0; k < notes_of_tables(a); k++) {
		bool found = false;

		for (uint32_t i = 0; i < a->h->hosts; i++)
			found |= ((const char *)received[i].data)[sizeof(struct found) + k] != 0;
		a->r.report.not_finite += found;
	}
}

/* Another save may have come between, and folders of the same name may be two. */
static int compare_found(const struct hosts *h, uint32_t host, const struct embeng_bytes *came,
			 const struct embeng_bytes *first, uint64_t bytes)
{
	struct found a, b;

	if (came->bytes != bytes || first->bytes != bytes)
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

static int tell_ready(struct hosts_restore *a, int status)
{
	const uint64_t bytes = sizeof(struct found) + notes_of_tables(a);
	struct embeng_bytes *send = a->h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = a->h->received[CHANNEL_CONTROL];
	int ret;

	a->told = true;
	for (uint32_t i = 0; i < a->h->hosts; i++)
		send[i] = (struct embeng_bytes){a->message, bytes};
	do
		ret = hosts_control(a->h->e, "restore", status, send, received);
	while (!ret && !hosts_are_done(a->h, received));
	for (uint32_t i = 1; !ret && i < a->h->hosts; i++)
		ret = compare_found(a->h, i, &received[i], &received[0], bytes);
	if (!ret)
		join_notes(a, received);
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
	struct hosts_restore *a = r->parts->arg;

	if (a->told)
		return status;
	describe_found(a);
	return tell_ready(a, status);
}

static int run_hosts_restore(struct hosts_restore *a, const struct embeng_restore_options *options)
{
	uint64_t step = 0;
	int ret;

	a->message = calloc(1, sizeof(struct found) + notes_of_tables(a));
	if (!a->message)
		ret = fail(-ENOMEM, WHAT ": there is no memory for a message");
	else
		ret = restore_folder(&a->r, options);
	if (!a->told)
		return tell_ready(a, ret);
	/* If all hosts know of a failure before rows were replaced, there is nothing to end. */
	if (ret && !a->r.replacing)
		return ret;
	ret = ret ? ret : embeng_step(a->h->owner, &step);
	if (!ret)
		hosts_count_from(a->h, step);
	/* All hosts have replaced their rows. */
	return hosts_control(a->h->e, "restore", ret, NULL, NULL);
}

int hosts_restore(struct embeng *e, const char *dir, const struct embeng_restore_options *options)
{
	struct hosts *h = e->hosts;
	struct hosts_restore a = {
		.h = h,
		.parts = {.choose = choose_own_pairs, .agree = agree_on_ready, .beat = say_at_work},
		.r = {.e = e, .to = h->owner, .dir = dir},
	};
	int ret = hosts_enter(e);

	if (ret)
		return ret;
	a.parts.arg = &a;
	a.r.parts = &a.parts;
	ret = run_hosts_restore(&a, options);
	hosts_leave(e);
	free(a.message);
	if (!ret)
		restore_give_report(&a.r);
	return ret;
}
