// SPDX-License-Identifier: MIT
/*
 * The shards that one host writes in a save of all hosts, and how it agrees with the others on them. It is
 * apart from save.c because the writing of tables that are cut (save_columns.c) needs it too.
 *
 * A struct hosts_save belongs to the calling thread. No lock is taken here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "save.h"
#include "segment.h"

/* A shard that was written. */
struct shard_sums {
	uint64_t home;
	uint32_t crc;
	char sha[SHA256_DIGITS + 1];
};

int save_agree(struct hosts_save *a, int status, const struct embeng_bytes *send,
	       struct embeng_bytes *received)
{
	int ret;

	if (a->over)
		return a->code;
	ret = hosts_control(a->h->e, "save", status, send, received);
	if (ret) {
		a->over = true;
		a->code = ret;
	}
	return ret;
}

uint64_t hosts_beat_ns = 1000000000;

/* A host calls this while it writes, or reads its shards back. */
int save_beat(struct hosts_save *a)
{
	return hosts_beat_is_due(&a->beat) ? save_agree(a, 0, NULL, a->h->received[CHANNEL_CONTROL])
					   : 0;
}

/* A host that is done waits until all are. */
int save_await_done(struct hosts_save *a, int status, const struct embeng_bytes *send)
{
	struct embeng_bytes *received = a->h->received[CHANNEL_CONTROL];
	int ret;

	do
		ret = save_agree(a, status, send, received);
	while (!ret && !hosts_are_done(a->h, received));
	return ret;
}

int save_own_shard(struct hosts_save *a, size_t home)
{
	int ret = save_shard(a->whole, home);

	/* Shards are not removed by their number, since others write some of them. */
	a->started[home] = a->whole->begun;
	a->whole->begun = 0;
	return ret;
}

/* Notes of tables, and behind them the checksums of this host's shards. */
static int pack_sums(struct hosts_save *a, struct hosts_memory *to, uint64_t *bytes)
{
	const struct index *index = &a->whole->index;
	const size_t tables = index->model->table_count;
	char *at;
	int ret = memory_need(to, segment_pad(tables) +
					  index->file_count * sizeof(struct shard_sums) + 1);

	if (ret)
		return ret;
	at = to->data;
	memset(at, 0, segment_pad(tables));
	for (size_t t = 0; t < tables; t++)
		at[t] = index->finite[t] == INDEX_NOT_FINITE;
	at += segment_pad(tables);
	for (size_t i = 0; i < index->file_count; i = next_home(index, i)) {
		struct shard_sums sums = {.home = i, .crc = index->files[i].table_crc};

		if (!save_is_own(a, i))
			continue;
		memcpy(sums.sha, index->files[i].table_sha, sizeof(sums.sha));
		memcpy(at, &sums, sizeof(sums));
		at += sizeof(sums);
	}
	*bytes = (uint64_t)(at - to->data);
	return 0;
}

static int take_sums_of(struct hosts_save *a, uint32_t host, const struct embeng_bytes *came)
{
	struct index *index = &a->whole->index;
	const size_t tables = index->model->table_count;
	struct reading message = {came->data, came->bytes};
	const char *finite = read_next(&message, tables);
	struct shard_sums sums;

	for (size_t t = 0; finite && t < tables; t++)
		if (finite[t])
			index->finite[t] = INDEX_NOT_FINITE;
	for (; finite && message.left >= sizeof(sums);
	     message.at += sizeof(sums), message.left -= sizeof(sums)) {
		memcpy(&sums, message.at, sizeof(sums));
		if (sums.home >= index->file_count || a->writers[sums.home] != host ||
		    sums.sha[SHA256_DIGITS])
			break;
		index->files[sums.home].table_crc = sums.crc;
		memcpy(index->files[sums.home].table_sha, sums.sha, sizeof(sums.sha));
	}
	return finite && !message.left ? 0 : segment_bad(a->h, host, "checksums");
}

int save_tell_sums(struct hosts_save *a, int status)
{
	struct embeng_bytes *send = a->h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = a->h->received[CHANNEL_CONTROL];
	uint64_t bytes = 0;
	int ret = status ? status : pack_sums(a, &a->columns, &bytes);

	for (uint32_t i = 0; i < a->h->hosts; i++)
		send[i] = (struct embeng_bytes){a->columns.data, i ? 1 : bytes};
	ret = save_await_done(a, ret, send);
	for (uint32_t i = 0; !ret && !a->h->rank && i < a->h->hosts; i++)
		ret = take_sums_of(a, i, &received[i]);
	return ret;
}
