// SPDX-License-Identifier: MIT
/*
 * Writes the shards of tables that are cut by columns. The shards of such a table are dealt to its owners in
 * turn; a lap has one shard of each owner, and they are written side by side. In each turn of a lap every
 * owner sends its columns of the next rows to each writer. All hosts know all turns from the plan, and so all
 * make the same exchanges, also hosts that have no part of the table.
 *
 * A struct hosts_save lives for one save. The rows are read behind the gate of the owner handle.
 */
#include <string.h>

#include "save.h"
#include "segment.h"

/* Rows of one array of an entry. */
struct turn_rows {
	size_t array;
	struct embeng_shard_rows rows;
};

static uint64_t turns_of_array(const struct hosts_save *a, size_t entry)
{
	const uint64_t rows = (uint64_t)a->whole->index.files[entry].rows;

	return (rows - 1) / a->lap.most + 1;
}

static uint64_t turns_of_entry(const struct hosts_save *a, size_t entry)
{
	return turns_of_array(a, entry) * a->lap.array_count;
}

/* The rows of an entry in this turn; false if all of them have passed. */
static bool find_turn(const struct hosts_save *a, size_t entry, struct turn_rows *out)
{
	const struct index_file *file = &a->whole->index.files[entry];
	const uint64_t turns = turns_of_array(a, entry), turn = a->lap.turn;
	const uint64_t at = turn % turns * a->lap.most;
	const uint64_t left = (uint64_t)file->rows - at;

	if (turn >= turns_of_entry(a, entry))
		return false;
	*out = (struct turn_rows){
		.array = a->lap.arrays[turn / turns],
		.rows = {.first = file->first + (int64_t)at * file->stride,
			 .stride = file->stride,
			 .count = (int64_t)(left < a->lap.most ? left : a->lap.most)},
	};
	return true;
}

/* This host's columns, as many rows at once as the staging memory takes. */
static int read_columns(struct hosts_save *a, const struct place_part *part,
			const struct turn_rows *turn, char *to)
{
	const size_t table = (size_t)a->h->tables[part->table];
	const uint64_t row = 4 * part_width(a->h, part, turn->array);
	uint64_t most = 0;
	int ret = save_engine_room(&a->own, table, (uint64_t)turn->rows.stride, &most);

	for (uint64_t at = 0; !ret && at < (uint64_t)turn->rows.count; at += most) {
		const uint64_t left = (uint64_t)turn->rows.count - at;
		const struct embeng_shard_rows rows = {
			.first = turn->rows.first + (int64_t)at * turn->rows.stride,
			.stride = turn->rows.stride,
			.count = (int64_t)(left < most ? left : most),
		};
		const char *data = NULL;

		ret = save_engine_read(&a->own, table, turn->array, &rows, &data);
		if (!ret)
			memcpy(to + at * row, data, (uint64_t)rows.count * row);
	}
	return ret;
}

/* Columns of each entry of the lap for its writer. */
static int pack_turn(struct hosts_save *a, int table, struct embeng_bytes *send)
{
	const struct place_part *part = hosts_part(a->h, table, a->h->rank);
	int ret = 0;
	char *to;

	memset(send, 0, a->h->hosts * sizeof(*send));
	if (!part)
		return 0;
	ret = memory_need(&a->columns, a->lap.count * a->lap.most * 4 * part->columns);
	to = a->columns.data;
	for (size_t i = a->lap.first; !ret && i < a->lap.first + a->lap.count; i++) {
		struct turn_rows turn;

		if (!find_turn(a, i, &turn))
			continue;
		ret = read_columns(a, part, &turn, to);
		send[a->writers[i]] = (struct embeng_bytes){
			to, (uint64_t)turn.rows.count * 4 * part_width(a->h, part, turn.array)};
		to += send[a->writers[i]].bytes;
	}
	return ret;
}

static int join_columns(struct hosts_save *a, const struct place_part *part,
			const struct turn_rows *turn, const struct embeng_bytes *came)
{
	const uint64_t width = 4 * part_width(a->h, part, turn->array);
	const uint64_t whole = 4 * (uint64_t)a->h->e->model->tables[part->table].dim;
	const char *from = came->data;
	char *to = a->whole->buffer + 4 * (uint64_t)part->first_column;

	if (came->bytes != (uint64_t)turn->rows.count * width)
		return segment_bad(a->h, part->host, "columns");
	for (int64_t k = 0; k < turn->rows.count; k++)
		memcpy(to + (uint64_t)k * whole, from + (uint64_t)k * width, width);
	return 0;
}

/* @own: this host's entry of the lap, or NULL */
static int make_turn(struct hosts_save *a, const size_t *own)
{
	struct hosts *h = a->h;
	const int table = (int)a->whole->index.files[a->lap.first].table;
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = h->received[CHANNEL_CONTROL];
	struct turn_rows turn;
	int ret = pack_turn(a, table, send);

	ret = save_agree(a, ret, send, received);
	if (!ret && own && find_turn(a, *own, &turn))
		for (size_t i = h->place.first[table]; !ret && i < h->place.first[table + 1]; i++)
			ret = join_columns(a, &h->place.parts[i], &turn,
					   &received[h->place.parts[i].host]);
	a->lap.turn++;
	return ret;
}

/* This host's entry of the lap, or NULL. */
static const size_t *find_own_entry(const struct hosts_save *a, size_t *entry)
{
	for (*entry = a->lap.first; *entry < a->lap.first + a->lap.count; (*entry)++)
		if (a->writers[*entry] == a->h->rank)
			return entry;
	return NULL;
}

int save_next_turn(struct hosts_save *a)
{
	size_t entry;

	return make_turn(a, find_own_entry(a, &entry));
}

static uint64_t turns_of_lap(const struct hosts_save *a)
{
	uint64_t most = 0;

	for (size_t i = a->lap.first; i < a->lap.first + a->lap.count; i++) {
		const uint64_t turns = turns_of_entry(a, i);

		most = turns > most ? turns : most;
	}
	return most;
}

/* Writing a shard takes turns; those that others still need are made behind it. */
static int save_lap(struct hosts_save *a, size_t first, size_t count)
{
	uint64_t turns;
	size_t entry;
	int ret = 0;

	a->lap.first = first;
	a->lap.count = count;
	a->lap.turn = 0;
	turns = turns_of_lap(a);
	if (find_own_entry(a, &entry))
		ret = save_own_shard(a, entry);
	while (!ret && a->lap.turn < turns)
		ret = make_turn(a, NULL);
	return ret;
}

/* In the order in which the arrays stand in a shard; it is that of their names. */
static int order_arrays(struct hosts_save *a, size_t entry)
{
	struct shard_tensors all;
	int ret = shard_tensors_make(&a->whole->index, entry, &all);

	if (ret)
		return ret;
	a->lap.array_count = 0;
	for (size_t i = 0; i < all.count; i++)
		if (all.of[i].array != CHUNK_TABLE)
			a->lap.arrays[a->lap.array_count++] = all.of[i].array;
	shard_tensors_free(&all);
	return 0;
}

static int save_cut_table(struct hosts_save *a, size_t first, size_t count)
{
	const size_t table = a->whole->index.files[first].table;
	const size_t owners = a->h->place.first[table + 1] - a->h->place.first[table];
	int ret = order_arrays(a, first);

	ret = ret ? ret : save_make_room(a->whole, table, 1, &a->lap.most);
	for (size_t at = 0; !ret && at < count; at += owners)
		ret = save_lap(a, first + at, count - at < owners ? count - at : owners);
	return ret;
}

int save_cut_tables(struct hosts_save *a)
{
	const struct index *index = &a->whole->index;
	int ret = 0;

	for (size_t i = 0, end; !ret && i < index->file_count; i = end) {
		const size_t table = index->files[i].table;

		for (end = i; end < index->file_count && index->files[end].table == table;)
			end++;
		if (is_cut(a->h, table))
			ret = save_cut_table(a, i, end - i);
	}
	return ret;
}
