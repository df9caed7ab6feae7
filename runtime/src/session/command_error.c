// SPDX-License-Identifier: MIT
/*
 * Sentences of commands that the engine refused, with the names that the model has for what the
 * completion numbers: tables, features, slots. Lookups have their own in lookup_error.c, and model
 * blobs theirs in blob_error.c.
 *
 * Model and completion are only read; no lock is needed.
 */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "model/numbers.h"
#include "session.h"

int table_command_error(const struct embeng *e, const char *what, const struct embeng_cqe *c)
{
	char where[256];

	if (c->feature >= e->model->table_count)
		return command_error(what, c);
	snprintf(where, sizeof(where), "%.100s: table %s", what, e->model->tables[c->feature].name);
	return command_error(where, c);
}

int feature_command_error(const struct embeng *e, const char *what, const struct embeng_cqe *c)
{
	/* A hang has no feature at fault. */
	bool hung = c->status == EMBENG_STATUS_HUNG;
	bool stack = c->field >= EMBENG_FIELD_CORES && c->field <= EMBENG_FIELD_BOUNDS;
	char where[256];

	if (hung || stack || c->feature >= e->model->feature_count)
		return command_error(what, c);
	snprintf(where, sizeof(where), "%.100s: feature %s", what,
		 e->model->features[c->feature].name);
	return command_error(where, c);
}

/* The row that the @k-th of a ROWS_* is. */
static uint64_t row_of(const struct embeng *e, const struct embeng_rows *rows, uint64_t k)
{
	uint64_t row = rows->first + k;

	if (rows->ids.length)
		memcpy(&row, e->staging.data + rows->ids.offset + 8 * k, sizeof(row));
	return row;
}

int rows_command_error(const struct embeng *e, const char *what, const struct embeng_rows *rows,
		       const struct embeng_cqe *c)
{
	uint64_t width = model_width(&e->model->tables[rows->table], rows->slot);
	const char *slot = model_slot_name(e->model, (int)rows->table, rows->slot);
	char where[320];

	if (c->status == EMBENG_STATUS_NUMBER && c->field == EMBENG_FIELD_DATA)
		return numbers_error(e->model, what, (int)rows->table, rows->slot,
				     row_of(e, rows, c->element / width), c->element % width,
				     float_of((uint32_t)c->value));
	snprintf(where, sizeof(where), "%.100s: table %s, %s%s", what,
		 e->model->tables[rows->table].name, rows->slot ? "slot " : "", slot);
	return command_error(where, c);
}
