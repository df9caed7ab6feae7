// SPDX-License-Identifier: MIT
/*
 * Gives the bytes of a delta: the numbers of the rows that are marked, and these rows side by side.
 *
 * The bytes stay until the next read. Called with the lock of the folder held.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "save.h"

#define NUMBERS 4096u /* at most, in one read */

int save_grow_buffer(struct save *s, size_t table, uint64_t bytes)
{
	char *larger;

	if (s->buffer_bytes >= bytes)
		return 0;
	larger = realloc(s->buffer, bytes);
	if (!larger)
		return fail(-ENOMEM, "%s: no memory for rows of table %s", s->source->what,
			    s->index.model->tables[table].name);
	s->buffer = larger;
	s->buffer_bytes = bytes;
	return 0;
}

/* The first marked row from @row on and before @end, or @end. */
static uint64_t find_marked(const uint64_t *marks, uint64_t row, uint64_t end)
{
	while (row < end) {
		uint64_t word = marks[row / 64] >> row % 64;

		if (word) {
			row += (uint64_t)__builtin_ctzll(word);
			return row < end ? row : end;
		}
		row += 64 - row % 64;
	}
	return end;
}

static int read_numbers(struct save *s, size_t table, uint64_t *at, const char **data,
			uint64_t *bytes)
{
	uint64_t end = (uint64_t)s->index.model->tables[table].rows;
	int ret = save_grow_buffer(s, table, NUMBERS * sizeof(uint64_t));

	*bytes = 0;
	if (ret)
		return ret;
	for (*at = find_marked(s->marks[table], *at, end);
	     *at < end && *bytes < NUMBERS * sizeof(uint64_t);
	     *at = find_marked(s->marks[table], *at + 1, end)) {
		memcpy(s->buffer + *bytes, at, sizeof(*at));
		*bytes += sizeof(*at);
	}
	*data = s->buffer;
	return 0;
}

/* Leaves the marked ones of @rows, side by side. */
static uint64_t pick_marked(struct save *s, size_t table, const struct embeng_shard_rows *rows,
			    const char *data)
{
	uint64_t row = 4 * (uint64_t)s->index.model->tables[table].dim, bytes = 0;
	uint64_t first = (uint64_t)rows->first, end = first + (uint64_t)rows->count;

	for (uint64_t at = find_marked(s->marks[table], first, end); at < end;
	     at = find_marked(s->marks[table], at + 1, end)) {
		memcpy(s->buffer + bytes, data + (at - first) * row, row);
		bytes += row;
	}
	return bytes;
}

static int read_marked(struct save *s, size_t table, size_t array, uint64_t *at, const char **data,
		       uint64_t *bytes)
{
	uint64_t end = (uint64_t)s->index.model->tables[table].rows, most = 0;
	uint64_t row = 4 * (uint64_t)s->index.model->tables[table].dim;
	struct embeng_shard_rows rows = {.stride = 1};
	int ret;

	*bytes = 0;
	*at = find_marked(s->marks[table], *at, end);
	if (*at == end)
		return 0;
	ret = s->source->room(s, table, 1, &most);
	rows.first = (int64_t)*at;
	rows.count = (int64_t)(end - *at < most ? end - *at : most);
	ret = ret ? ret : save_grow_buffer(s, table, (uint64_t)rows.count * row);
	ret = ret ? ret : s->source->read(s, table, array, &rows, data);
	if (ret)
		return ret;
	*bytes = pick_marked(s, table, &rows, *data);
	*at += (uint64_t)rows.count;
	*data = s->buffer;
	return 0;
}

int save_read_delta(struct save *s, const struct index_file *file, size_t array, uint64_t *at,
		    const char **data, uint64_t *bytes)
{
	if (is_row_numbers(&s->index, file, array))
		return read_numbers(s, file->table, at, data, bytes);
	return read_marked(s, file->table, array, at, data, bytes);
}
