// SPDX-License-Identifier: MIT
/*
 * Gives the bytes of a delta: the numbers of the rows that are marked, and these rows side by side. The
 * source is asked for these rows alone.
 *
 * The bytes stay until the next read. Called with the lock of the folder held.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "save.h"

#define NUMBERS 65536u /* at most, in one read */

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

/* Lists marked rows from *@at on in the buffer, at most @most, and moves *@at behind them. */
static int list_marked(struct save *s, size_t table, uint64_t *at, uint64_t most, uint64_t *count)
{
	uint64_t end = (uint64_t)s->index.model->tables[table].rows, *numbers;
	int ret;

	most = most < NUMBERS ? most : NUMBERS;
	ret = save_grow_buffer(s, table, most * sizeof(*numbers));
	*count = 0;
	if (ret)
		return ret;
	numbers = (uint64_t *)(void *)s->buffer;
	for (*at = find_marked(s->marks[table], *at, end); *at < end && *count < most;
	     *at = find_marked(s->marks[table], *at + 1, end))
		numbers[(*count)++] = *at;
	return 0;
}

/* The rows alone, wherever they are: a table may have few of them, far apart. */
static int read_marked(struct save *s, size_t table, size_t array, uint64_t *at, const char **data,
		       uint64_t *bytes)
{
	uint64_t row = model_row_bytes(&s->index.model->tables[table], array);
	uint64_t most = 0, count = 0;
	int ret = s->source->room(s, table, 2, &most);

	ret = ret ? ret : list_marked(s, table, at, most, &count);
	*bytes = count * row;
	if (ret || !count)
		return ret;
	return s->source->pick(s, table, array, (const uint64_t *)(void *)s->buffer, count, data);
}

static int read_numbers(struct save *s, size_t table, uint64_t *at, const char **data,
			uint64_t *bytes)
{
	uint64_t count = 0;
	int ret = list_marked(s, table, at, NUMBERS, &count);

	*bytes = count * sizeof(uint64_t);
	*data = s->buffer;
	return ret;
}

int save_read_delta(struct save *s, const struct index_file *file, size_t array, uint64_t *at,
		    const char **data, uint64_t *bytes)
{
	if (is_row_numbers(&s->index, file, array))
		return read_numbers(s, file->table, at, data, bytes);
	return read_marked(s, file->table, array, at, data, bytes);
}
