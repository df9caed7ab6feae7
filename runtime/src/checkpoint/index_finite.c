// SPDX-License-Identifier: MIT
/*
 * The notes in a checkpoint's index that say of each table whether all values are finite. Reading
 * and writing are side by side, so that they stay alike.
 *
 * The notes belong to the struct index and are freed by index_free(). No lock is needed.
 */
#include <stdlib.h>

#include "base/error.h"
#include "index.h"

int index_make_finite(struct index *index, const char *what)
{
	free(index->finite);
	index->finite = calloc(index->model->table_count + 1, sizeof(*index->finite));
	return index->finite ? 0 : fail(-ENOMEM, "%s: no memory for notes of tables", what);
}

/* The list was read already: it has an object for each table. */
int index_read_finite(const struct json *o, const struct place *at, struct index *index)
{
	const struct json *tables;
	int ret = json_member(o, at, "tables", JSON_ARRAY, &tables);

	ret = ret ? ret : index_make_finite(index, at->file);
	for (size_t i = 0; !ret && i < index->model->table_count; i++) {
		const struct place place = {.file = at->file, .list = "tables", .index = i};
		const struct json *table = json_at(tables, i);
		bool finite = false;

		if (!json_get(table, "finite"))
			continue;
		ret = json_flag(table, &place, "finite", &finite);
		index->finite[i] = finite ? INDEX_FINITE : INDEX_NOT_FINITE;
	}
	return ret;
}

void index_write_finite(struct json_writer *w, const struct index *index, size_t table)
{
	if (index->finite && index->finite[table] != INDEX_FINITE_UNKNOWN)
		json_write_flag(w, "finite", index->finite[table] == INDEX_FINITE);
}
