// SPDX-License-Identifier: MIT
/*
 * The entries of deltas in a checkpoint's index: which tables have rows in a delta, and how many.
 * Reading and writing are side by side, so that they stay alike. The row numbers themselves are in
 * the shard.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>

#include "index.h"

/* Deltas are counted from 1 on, each is one shard, and its tables rise. */
static int check_delta_order(const struct place *at, const struct index *index,
			     const struct index_file *file, uint64_t table, bool shares)
{
	const struct index_file *before = &index->files[index->file_count - 1];

	if (!shares && file->delta != before->delta + 1)
		return json_bad(at, "has delta %" PRIu32 ", expected is %" PRIu32, file->delta,
				before->delta + 1);
	if (shares && (file->delta != before->delta || file->home != before->home))
		return json_bad(at, "shares no file with delta %" PRIu32 " before it", file->delta);
	if (shares && table <= before->table)
		return json_bad(at, "has table %" PRIu64 " behind table %zu of the same delta",
				table, before->table);
	return 0;
}

int index_read_delta(const struct json *o, const struct place *at, const struct index *index,
		     struct index_file *file)
{
	const struct embeng_model *model = index->model;
	uint64_t table, rows, delta;
	int ret = json_number(o, at, "delta", 1, DELTAS_MAX, &delta);

	ret = ret ? ret : json_number(o, at, "table", 0, INT32_MAX, &table);
	ret = ret ? ret : json_number(o, at, "rows", 1, INT64_MAX, &rows);
	if (ret)
		return ret;
	if (table >= model->table_count || rows > (uint64_t)model->tables[table].rows)
		return json_bad(at,
				"has %" PRIu64 " rows of table %" PRIu64 ", which are not there",
				rows, table);
	file->delta = (uint32_t)delta;
	ret = check_delta_order(at, index, file, table, json_get(o, "shares"));
	file->table = (size_t)table;
	file->rows = (int64_t)rows;
	file->stride = 1;
	return ret;
}

void index_write_delta(struct json_writer *w, const struct index_file *file)
{
	json_write_number(w, "delta", file->delta);
	json_write_number(w, "table", file->table);
	json_write_number(w, "rows", (uint64_t)file->rows);
}

bool index_tensor_bytes(const struct index *index, const struct index_file *file, size_t array,
			uint64_t *bytes)
{
	uint64_t row = is_row_numbers(index, file, array)
			       ? sizeof(int64_t)
			       : model_row_bytes(&index->model->tables[file->table], array);

	return !__builtin_mul_overflow((uint64_t)file->rows, row, bytes) && *bytes <= INT64_MAX;
}
