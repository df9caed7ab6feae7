// SPDX-License-Identifier: MIT
/*
 * Restores a checkpoint into tables that have grown. It stands apart because libembeng is to do it
 * by itself one day: then one call of embeng_restore() takes its place.
 *
 * Rows are copied in pieces, whose memory lives for one call.
 */
#include <errno.h>
#include <stdlib.h>

#include "grow.h"

/* Rows that are copied together. */
#define PIECE_ROWS 4096

/**
 * struct copy - tables that are copied
 * @table: index of the table in the checkpoint
 * @to: its index in the engine
 * @count: rows of the table in the checkpoint
 */
struct copy {
	const struct embeng_checkpoint *from;
	struct embeng *e;
	int table, to;
	size_t dim, count;
	int64_t *ids;
	float *rows;
};

static int copy_grown_array(const struct copy *c, const char *slot)
{
	size_t count;
	int rc = 0;

	for (size_t first = 0; !rc && first < c->count; first += count) {
		count = c->count - first < PIECE_ROWS ? c->count - first : PIECE_ROWS;
		for (size_t k = 0; k < count; k++)
			c->ids[k] = (int64_t)(first + k);
		rc = embeng_checkpoint_read(c->from, c->table, slot, (int64_t)first, count,
					    c->rows);
		if (!rc)
			rc = embeng_rows_write(c->e, c->to, slot, c->ids, count, c->rows);
	}
	return rc;
}

static int copy_grown_table(struct copy *c, const struct embeng_model *model)
{
	struct embeng_table_config from = {.size = sizeof(from)}, to = {.size = sizeof(to)};
	size_t table = (size_t)c->to;
	int rc = embeng_model_get_table(model, table, &to);

	c->table = embeng_model_table(embeng_checkpoint_model(c->from), to.name);
	if (rc || c->table < 0)
		return rc ? rc : c->table;
	rc = embeng_model_get_table(embeng_checkpoint_model(c->from), (size_t)c->table, &from);
	if (rc)
		return rc;
	/* embeng_restore() has let tables of other shapes pass, these among them. */
	if (from.dim != to.dim || from.vocabulary_size > to.vocabulary_size)
		return -EINVAL;
	c->dim = (size_t)to.dim;
	c->count = (size_t)from.vocabulary_size;
	c->rows = reallocarray(NULL, PIECE_ROWS * c->dim, sizeof(*c->rows));
	rc = c->rows ? copy_grown_array(c, NULL) : -ENOMEM;
	for (size_t k = 0; !rc && k < embeng_model_slot_count(model, table); k++)
		rc = copy_grown_array(c, embeng_model_slot_name(model, table, k));
	free(c->rows);
	return rc;
}

static int copy_grown_tables(struct embeng *e, const char *dir)
{
	const struct embeng_model *model = embeng_get_model(e);
	struct copy c = {.e = e, .ids = reallocarray(NULL, PIECE_ROWS, sizeof(*c.ids))};
	struct embeng_checkpoint *checkpoint;
	int rc = c.ids ? embeng_checkpoint_open(dir, &checkpoint, NULL) : -ENOMEM;

	if (!rc) {
		c.from = checkpoint;
		for (; !rc && c.to < (int)embeng_model_table_count(model); c.to++)
			rc = copy_grown_table(&c, model);
		embeng_checkpoint_close(checkpoint);
	}
	free(c.ids);
	return rc;
}

int grow_restore(struct trainer *t, const char *dir, const struct embeng_restore_options *options)
{
	struct embeng_restore_options step_alone = *options;
	int rc;

	/* The count of updates is restored by this call, and no table that has grown. */
	step_alone.flags |= EMBENG_RESTORE_OTHER_SHAPES;
	rc = embeng_restore(t->e, dir, &step_alone);
	return rc ? rc : copy_grown_tables(t->e, dir);
}
