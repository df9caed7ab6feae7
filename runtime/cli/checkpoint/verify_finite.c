// SPDX-License-Identifier: MIT
/*
 * Names the values of a checkpoint that are not finite: for parameters and slots of each table the
 * first. Only tables are read of which the index does not say that they are finite.
 *
 * A list that is given belongs to the caller.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "commands.h"
#include "rows_pieces.h"
#include "verify_finite.h"

#define FOUND (-EDOM) /* ends the reading */

/* The search through parameters or a slot, and the first value that it found. */
struct search {
	int64_t dim, row, column;
	float value;
};

static int look_at_piece(void *arg, int64_t first, float *data, size_t count)
{
	struct search *search = arg;

	for (size_t i = 0; i < count * (size_t)search->dim; i++) {
		if (isfinite(data[i]))
			continue;
		search->row = first + (int64_t)i / search->dim;
		search->column = (int64_t)i % search->dim;
		search->value = data[i];
		return FOUND;
	}
	return 0;
}

/* Tells of one: in a line, or as an entry of @list. */
static void tell_not_finite(const char *dir, const struct checkpoint_array *array,
			    const struct search *found, struct json_object *list)
{
	const char *name = array->slot ? array->slot : "parameters";
	struct json_object *entry;

	if (!list) {
		printf("%s: table %s, %s%s: row %" PRId64 ", column %" PRId64
		       " is %g; it is restored only where the policy non_finite is allow\n",
		       dir, array->config.name, array->slot ? "slot " : "", name, found->row,
		       found->column, (double)found->value);
		return;
	}
	entry = json_object_new_object();
	json_add_text(entry, "table", array->config.name);
	json_add_text(entry, "array", name);
	json_add_number(entry, "row", (uint64_t)found->row);
	json_add_number(entry, "column", (uint64_t)found->column);
	json_add_float(entry, "value", (double)found->value);
	json_object_array_add(list, entry);
}

static int search_array(const char *dir, const struct embeng_checkpoint *c,
			const struct checkpoint_array *array, struct json_object *list)
{
	struct search search = {.dim = array->width};
	struct transfer quiet = {.cancels = true};
	struct rows_pieces pieces = {
		.c = c,
		.array = array,
		.end = array->config.vocabulary_size,
		.write = look_at_piece,
		.arg = &search,
		.transfer = &quiet,
		.progress = {.what = "verify"},
	};
	int rc = rows_in_pieces(&pieces);

	if (rc != FOUND)
		return rc;
	tell_not_finite(dir, array, &search, list);
	return 0;
}

static int search_table(const char *dir, const struct embeng_checkpoint *c, size_t table,
			struct json_object *list)
{
	const struct embeng_model *model = embeng_checkpoint_model(c);
	struct checkpoint_array array = {.table = (int)table, .config.size = sizeof(array.config)};
	int rc = embeng_model_get_table(model, table, &array.config);

	for (size_t k = 0; !rc && k <= embeng_model_slot_count(model, table); k++) {
		array.slot = k ? embeng_model_slot_name(model, table, k - 1) : NULL;
		array.width = embeng_model_slot_width(model, (int)table, array.slot);
		rc = search_array(dir, c, &array, list);
	}
	return rc;
}

int verify_finite(const char *dir, const struct embeng_checkpoint *c, struct json_object *list)
{
	size_t tables = embeng_model_table_count(embeng_checkpoint_model(c));
	int rc = 0;

	for (size_t t = 0; !rc && t < tables; t++) {
		if (embeng_checkpoint_finite(c, (int)t) != 1)
			rc = search_table(dir, c, t, list);
	}
	return rc;
}
