// SPDX-License-Identifier: MIT
/*
 * "frozen_steps" of a checkpoint's index: for each table, how many of the updates that "step" counts
 * it was frozen for, so that its optimizer goes on with its own count. The member is absent where
 * no table was frozen.
 *
 * The list belongs to the struct index and is freed by index_free(). No lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "index.h"

int index_make_frozen(struct index *index, const uint64_t *steps)
{
	size_t count = index->model->table_count;

	index->frozen_steps = calloc(count + 1, sizeof(*index->frozen_steps));
	if (!index->frozen_steps)
		return fail(-ENOMEM, "no memory for the steps of frozen tables");
	if (steps)
		memcpy(index->frozen_steps, steps, count * sizeof(*steps));
	return 0;
}

int index_read_frozen(const struct json *o, const struct place *at, struct index *index)
{
	const struct json *array;
	int ret;

	if (!json_get(o, "frozen_steps"))
		return 0;
	ret = json_member(o, at, "frozen_steps", JSON_ARRAY, &array);
	if (ret)
		return ret;
	if (json_length(array) != index->model->table_count)
		return json_bad(at, "\"frozen_steps\" has %zu numbers for %zu tables",
				json_length(array), index->model->table_count);
	ret = index_make_frozen(index, NULL);
	for (size_t t = 0; !ret && t < index->model->table_count; t++) {
		if (!json_is_number(json_at(array, t), index->step, &index->frozen_steps[t]))
			ret = json_bad(at,
				       "\"frozen_steps\" of table %s is no number up to \"step\"",
				       index->model->tables[t].name);
	}
	return ret;
}

void index_write_frozen(struct json_writer *w, const struct index *index)
{
	size_t count = index->model->table_count;
	uint64_t any = 0;

	for (size_t t = 0; index->frozen_steps && t < count; t++)
		any |= index->frozen_steps[t];
	if (!any)
		return;
	json_write_array(w, "frozen_steps");
	for (size_t t = 0; t < count; t++)
		json_write_number(w, NULL, index->frozen_steps[t]);
	json_write_close(w);
}
