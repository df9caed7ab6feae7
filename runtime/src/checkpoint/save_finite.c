// SPDX-License-Identifier: MIT
/*
 * Looks at each row on its way into a shard: whether all of its values are finite. A training that
 * diverged must not replace a checkpoint that is good, unless the program says so.
 *
 * The notes of tables go into the struct index of the save. Called with the lock of the folder held.
 */
#include <inttypes.h>
#include <string.h>

#include "../../../engine/f32.h"
#include "base/error.h"
#include "save.h"

/* Index of the first value that is an infinity or no number, or @count. */
static size_t find_not_finite(const char *data, size_t count)
{
	uint32_t bits;

	for (size_t i = 0; i < count; i++) {
		memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
		if (!f32_finite(bits))
			return i;
	}
	return count;
}

int save_look_at_rows(struct save *s, size_t table, size_t array,
		      const struct embeng_shard_rows *rows, const char *data)
{
	const char *then = s->stream ? "ends within a checkpoint" : "is as it was";
	const struct embeng_model *m = s->index.model;
	size_t width = model_width(&m->tables[table], array), count = (size_t)rows->count * width;
	size_t at = find_not_finite(data, count);
	float value;

	if (at == count)
		return 0;
	s->index.finite[table] = INDEX_NOT_FINITE;
	if (s->options.flags & EMBENG_SAVE_NOT_FINITE)
		return 0;
	memcpy(&value, data + at * sizeof(value), sizeof(value));
	return fail(-ERANGE,
		    "%s: table %s, %s%s: row %" PRId64 ", element %zu is %g, which is not finite; "
		    "%s %s, EMBENG_SAVE_NOT_FINITE saves it",
		    s->source->what, m->tables[table].name, array ? "slot " : "",
		    model_slot_name(m, (int)table, array),
		    rows->first + (int64_t)(at / width) * rows->stride, at % width, (double)value,
		    s->dir, then);
}
