// SPDX-License-Identifier: MIT
/*
 * The place of a table in a larger one, of which it is a part, in a checkpoint's index, read and
 * written. It is apart from index_model.c, which would be too long with it. Whether the numbers are
 * possible is checked by embeng_model_add_table().
 *
 * Only arguments are touched; no lock is needed.
 */
#include "index.h"

int index_read_part(const struct json *table, const struct place *at, struct embeng_table_part *out)
{
	uint64_t rows, first_row, row_step, dim, first_column;
	const struct json *o;
	int ret;

	if (!json_get(table, "part"))
		return 0;
	ret = json_member(table, at, "part", JSON_OBJECT, &o);
	ret = ret ? ret : json_number(o, at, "rows", 1, INT64_MAX, &rows);
	ret = ret ? ret : json_number(o, at, "first_row", 0, INT64_MAX, &first_row);
	ret = ret ? ret : json_number(o, at, "row_step", 1, INT64_MAX, &row_step);
	ret = ret ? ret : json_number(o, at, "dim", 1, UINT32_MAX, &dim);
	ret = ret ? ret : json_number(o, at, "first_column", 0, UINT32_MAX, &first_column);
	if (ret)
		return ret;
	*out = (struct embeng_table_part){.rows = (int64_t)rows,
					  .first_row = (int64_t)first_row,
					  .row_step = (int64_t)row_step,
					  .dim = (int64_t)dim,
					  .first_column = (int64_t)first_column};
	return 0;
}

void index_write_part(struct json_writer *w, const struct embeng_table_part *p)
{
	if (!p->rows)
		return;
	json_write_object(w, "part");
	json_write_number(w, "rows", (uint64_t)p->rows);
	json_write_number(w, "first_row", (uint64_t)p->first_row);
	json_write_number(w, "row_step", (uint64_t)p->row_step);
	json_write_number(w, "dim", (uint64_t)p->dim);
	json_write_number(w, "first_column", (uint64_t)p->first_column);
	json_write_close(w);
}
