/* SPDX-License-Identifier: MIT */
/* A save by all hosts of a group. */
#ifndef EMBENG_HOSTS_SAVE_H
#define EMBENG_HOSTS_SAVE_H

#include "checkpoint/save.h"
#include "collective.h"

/**
 * struct hosts_save - one save, of this host
 * @whole: the checkpoint, which is planned alike on all hosts. Host 0 runs it, with the folder locked
 * @own: reads rows of the owner handle
 * @model: the whole model, as the index has it
 * @owners: [tables] for the plan
 * @writers: [files]: the host that writes a shard, by the shard's first entry
 * @started: [files]: this host has created it
 * @over: all hosts have learnt that the save fails, with @code
 * @ready: this host has said that its shards are on disk and right
 * @verified: all hosts have said so
 * @undone: its shards were removed
 * @lap: the entries of a cut table that hosts write side by side now
 * @columns: memory of this host's columns for the writers of a lap
 */
struct hosts_save {
	struct hosts *h;
	struct save *whole;
	struct save own;
	struct embeng_model *model;
	uint32_t *owners, *writers;
	bool *started;
	bool over, ready, verified, undone;
	int code;
	uint64_t beat; /* when this host last said that it is at work */
	struct lap {
		size_t first, count; /* entries */
		size_t arrays[ARRAYS_MAX];
		size_t array_count;
		uint64_t most; /* rows of a turn */
		uint64_t turn;
	} lap;
	struct hosts_memory columns;
};

/* save_plan.c: the model of the index, to be freed; NULL: no memory. */
struct embeng_model *save_model_of_hosts(const struct hosts *h);
/* All hosts tell the steps of their tables, which @own has. @status: how reading them went */
int save_tell_plan(struct hosts_save *a, int status);
/* Lists the shards and their writers. */
int save_plan_hosts(struct hosts_save *a);

/*
 * save_shards.c: one exchange, in which a failure of one host becomes every host's. After that it returns the
 * failure at once.
 */
int save_agree(struct hosts_save *a, int status, const struct embeng_bytes *send,
	       struct embeng_bytes *received);
/* A host calls this while it writes, or reads its shards back. */
int save_beat(struct hosts_save *a);
/* A host that is done waits until all are. */
int save_await_done(struct hosts_save *a, int status, const struct embeng_bytes *send);
/* Writes a shard of this host. */
int save_own_shard(struct hosts_save *a, size_t home);
/* Host 0 gets the checksums of all hosts' shards. @status: how the writing went */
int save_tell_sums(struct hosts_save *a, int status);
static inline bool save_is_own(const struct hosts_save *a, size_t home)
{
	return a->writers[home] == a->h->rank;
}

/*
 * save_columns.c: writes the shards of tables that are cut by columns. Each is written by one owner, who gets
 * the columns of the others; the owners write side by side. Return: 0, or a failure that is this host's until
 * the next save_agree().
 */
int save_cut_tables(struct hosts_save *a);
/* The rows of this host's shard that come next, put together. */
int save_next_turn(struct hosts_save *a);
static inline bool is_cut(const struct hosts *h, size_t table)
{
	return h->place.parts[h->place.first[table]].kind == PLACE_COLUMN;
}

#endif
