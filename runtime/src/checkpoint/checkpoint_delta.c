// SPDX-License-Identifier: MIT
/*
 * The deltas of an open checkpoint: which rows they hold, and reading those in place of the rows that
 * stand before them. The row numbers are copied when the checkpoint is opened, so that what is searched
 * later cannot change under the search.
 *
 * The copies belong to the checkpoint until it is closed, and are only read after that. Any number of
 * threads may read.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "open.h"

static int check_row_numbers(const struct embeng_checkpoint *c, const struct index_file *file,
			     const int64_t *numbers)
{
	int64_t last = -1;

	for (int64_t i = 0; i < file->rows; i++) {
		if (numbers[i] <= last || numbers[i] >= c->index.model->tables[file->table].rows)
			return fail(-EBADMSG,
				    "%s/%s: row number %" PRId64 " of table %s is %" PRId64
				    ": they must rise from 0 on and stay below %" PRId64,
				    c->folder, file->name, i,
				    c->index.model->tables[file->table].name, numbers[i],
				    c->index.model->tables[file->table].rows);
		last = numbers[i];
	}
	return 0;
}

/* The shard is open. */
static struct checkpoint_piece piece_of_delta(const struct embeng_checkpoint *c,
					      const struct index_file *file, size_t array)
{
	struct checkpoint_piece piece = {
		.count = file->rows,
		.stride = 1,
		.file = file->home,
		.offset = file->at[array],
	};

	piece_place(c, &piece);
	return piece;
}

static int read_row_numbers(const struct embeng_checkpoint *c, const struct index_file *file,
			    struct delta_rows *delta)
{
	size_t arrays = entry_arrays(&c->index, file);
	struct checkpoint_piece numbers;
	uint64_t bytes = (uint64_t)file->rows * sizeof(int64_t);
	int ret = shard_use(c, file->home);

	if (ret)
		return ret;
	numbers = piece_of_delta(c, file, arrays - 1);
	ret = checkpoint_check(c, &numbers, 0, bytes);
	if (ret)
		return ret;
	delta->numbers = malloc(bytes);
	if (!delta->numbers)
		return fail(-ENOMEM, "%s/%s: no memory for its row numbers", c->folder, file->name);
	ret = copy_bytes(c, numbers.file, numbers.offset, bytes, delta->numbers);
	ret = ret ? ret : check_row_numbers(c, file, delta->numbers);
	delta->count = (size_t)file->rows;
	for (size_t i = 0; i + 1 < arrays; i++)
		delta->pieces[i] = piece_of_delta(c, file, i);
	return ret;
}

/* Each table gets a run of the list. */
static void divide_list(struct embeng_checkpoint *c)
{
	struct delta_rows *next = c->deltas;

	for (size_t i = c->index.base_count; i < c->index.file_count; i++)
		c->tables[c->index.files[i].table].delta_count++;
	for (size_t t = 0; t < c->index.model->table_count; t++) {
		c->tables[t].deltas = next;
		next += c->tables[t].delta_count;
		c->tables[t].delta_count = 0;
	}
}

int checkpoint_open_deltas(struct embeng_checkpoint *c)
{
	size_t count = c->index.file_count - c->index.base_count;
	int ret = 0;

	if (!count)
		return 0;
	c->deltas = calloc(count, sizeof(*c->deltas));
	if (!c->deltas)
		return fail(-ENOMEM, "no memory to open a checkpoint");
	divide_list(c);
	for (size_t i = c->index.base_count; !ret && i < c->index.file_count; i++) {
		struct table_files *table = &c->tables[c->index.files[i].table];

		ret = read_row_numbers(c, &c->index.files[i], &table->deltas[table->delta_count++]);
	}
	return ret;
}

void checkpoint_close_deltas(struct embeng_checkpoint *c)
{
	for (size_t i = 0; c->deltas && i < c->index.file_count - c->index.base_count; i++)
		free(c->deltas[i].numbers);
	free(c->deltas);
	c->deltas = NULL;
}

/* Index of the first number that is at least @row, or the count. */
static size_t find_row_number(const struct delta_rows *delta, int64_t row)
{
	size_t low = 0, high = delta->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (delta->numbers[middle] < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct checkpoint_piece *checkpoint_find_delta(const struct embeng_checkpoint *c, int table,
						     int slot, int64_t row, int64_t *place)
{
	const struct table_files *files = &c->tables[table];

	for (size_t i = files->delta_count; i--;) {
		size_t at = find_row_number(&files->deltas[i], row);

		if (at < files->deltas[i].count && files->deltas[i].numbers[at] == row) {
			*place = (int64_t)at;
			return &files->deltas[i].pieces[slot];
		}
	}
	return NULL;
}

size_t checkpoint_delta_count(const struct embeng_checkpoint *c, int table)
{
	return c->tables[table].delta_count;
}

const struct checkpoint_piece *checkpoint_delta_piece(const struct embeng_checkpoint *c, int table,
						      int slot, size_t delta)
{
	return &c->tables[table].deltas[delta].pieces[slot];
}

static int gather_delta(const struct embeng_checkpoint *c, const struct delta_rows *delta, int slot,
			const struct embeng_shard_rows *rows, uint64_t row_bytes, char *to)
{
	const struct checkpoint_piece *piece = &delta->pieces[slot];
	int64_t last = rows->first + (rows->count - 1) * rows->stride;
	int ret = 0;

	for (size_t i = find_row_number(delta, rows->first);
	     !ret && i < delta->count && delta->numbers[i] <= last; i++) {
		int64_t behind = delta->numbers[i] - rows->first;

		if (behind % rows->stride)
			continue;
		ret = checkpoint_check(c, piece, i * row_bytes, row_bytes);
		ret = ret ? ret
			  : copy_bytes(c, piece->file, piece->offset + i * row_bytes, row_bytes,
				       to + (uint64_t)(behind / rows->stride) * row_bytes);
	}
	return ret;
}

int checkpoint_gather_deltas(const struct embeng_checkpoint *c, int table, int slot,
			     const struct embeng_shard_rows *rows, char *to)
{
	const struct table_files *files = &c->tables[table];
	uint64_t row_bytes = model_row_bytes(&c->index.model->tables[table], (size_t)slot);
	int ret = 0;

	for (size_t i = 0; !ret && rows->count && i < files->delta_count; i++)
		ret = gather_delta(c, &files->deltas[i], slot, rows, row_bytes, to);
	return ret;
}
