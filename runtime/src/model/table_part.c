// SPDX-License-Identifier: MIT
/*
 * Tables that are parts of larger ones: checks which rows and columns of the whole table they say that
 * they are, and fills in defaults. It is a file of its own because model.c is long, and because the
 * arithmetic must not overflow, whatever a program gives.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>

#include "base/error.h"
#include "embeng_engine.h"
#include "model.h"

/* Rows from a row to the next, and columns of the whole, as they are meant. */
static int64_t given_step(const struct embeng_table_part *p)
{
	return p->row_step ? p->row_step : 1;
}

static int64_t given_dim(const struct embeng_table_config *c)
{
	return c->part.dim ? c->part.dim : c->dim;
}

static int check_part_number(const char *where, const char *what, int64_t value, int64_t least,
			     int64_t most)
{
	if (value >= least && value <= most)
		return 0;
	return fail(-ERANGE, "%s: part: %s %" PRId64 " must be %" PRId64 " to %" PRId64, where,
		    what, value, least, most);
}

/* No number is looked at before those that it is limited by. */
static int check_part_rows(const char *where, const struct embeng_table_config *c)
{
	const struct embeng_table_part *p = &c->part;
	const int64_t rows = c->vocabulary_size;
	int ret;

	if (p->rows < rows)
		return fail(-ERANGE,
			    "%s: part: its whole table has %" PRId64 " rows, fewer than its own "
			    "%" PRId64,
			    where, p->rows, rows);
	ret = check_part_number(where, "first_row", p->first_row, 0, p->rows - rows);
	if (ret)
		return ret;
	if (rows == 1)
		return check_part_number(where, "row_step", given_step(p), 1, INT64_MAX);
	if (given_step(p) >= 1 && given_step(p) <= (p->rows - 1 - p->first_row) / (rows - 1))
		return 0;
	return fail(-ERANGE,
		    "%s: part: row_step %" PRId64 " must be 1 to %" PRId64 ", so that the last of "
		    "its %" PRId64 " rows from row %" PRId64 " on is one of the %" PRId64
		    " of the whole table",
		    where, p->row_step, (p->rows - 1 - p->first_row) / (rows - 1), rows,
		    p->first_row, p->rows);
}

int table_part_check(const char *where, const struct embeng_table_config *c)
{
	int ret;

	if (!c->part.rows)
		return 0;
	ret = check_part_rows(where, c);
	if (!ret && (given_dim(c) < c->dim || given_dim(c) > UINT32_MAX))
		return fail(-ERANGE,
			    "%s: part: dim %" PRId64 " of its whole table must be %" PRId64
			    ", its own, to %" PRIu32,
			    where, c->part.dim, c->dim, UINT32_MAX);
	return ret ? ret
		   : check_part_number(where, "first_column", c->part.first_column, 0,
				       given_dim(c) - c->dim);
}

struct embeng_table_part table_part_resolve(const struct embeng_table_config *c)
{
	struct embeng_table_part p = c->part;

	/* A step from the only row leads nowhere. */
	p.row_step = c->vocabulary_size == 1 ? 1 : given_step(&p);
	p.dim = given_dim(c);
	if (!p.rows || (p.rows == c->vocabulary_size && p.dim == c->dim))
		return (struct embeng_table_part){0};
	return p;
}

uint32_t table_first_column(const struct table *t, size_t slot)
{
	const uint32_t dim = (uint32_t)t->part.dim;

	/* A slot of one number a row is not cut. */
	if (embeng_slot_width(optimizer_info(t->optimizer.kind)->engine_kind, (uint32_t)slot,
			      dim) != dim)
		return 0;
	return (uint32_t)t->part.first_column;
}
