// SPDX-License-Identifier: MIT
/*
 * Moves rows between a table and the memory of its stack, and says where a row of a table lies in
 * it. The checks of a table's layout are here too.
 *
 * The memory belongs to the caller. No lock is needed.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "layout_check.h"

/* One table and the shards that are there, with strides filled in. */
struct move {
	const struct embeng_table_layout *layout;
	struct embeng_shards shards;
	int64_t row_stride; /* the table's */
	int64_t height;	    /* rows of the table on each core */
};

static int check_sizes(const char *what, const struct embeng_table_layout *l)
{
	if (l->sparse_cores < 1 || l->partitions < 1 || l->sparse_cores % l->partitions)
		return fail(-EINVAL,
			    "%s: %d sparse_cores in %d partitions; both are from 1, and the "
			    "cores a multiple",
			    what, l->sparse_cores, l->partitions);
	if (l->rows < 1 || l->padded_rows < l->rows || l->padded_rows % l->sparse_cores)
		return fail(-EINVAL,
			    "%s: %" PRId64 " rows padded to %" PRId64 ", which must be as "
			    "many at least and a multiple of %d sparse_cores",
			    what, l->rows, l->padded_rows, l->sparse_cores);
	if (l->dim < 1 || l->padded_dim < l->dim)
		return fail(-EINVAL,
			    "%s: %" PRId64 " columns padded to %" PRId64 ", which must be as "
			    "many at least",
			    what, l->dim, l->padded_dim);
	return 0;
}

int layout_check(const char *what, const struct embeng_table_layout *l)
{
	int ret;

	if (!l || l->size < sizeof(*l))
		return fail(-EINVAL, "%s: no layout, or of another size", what);
	ret = check_sizes(what, l);
	if (ret)
		return ret;
	if (l->row_offset < 0 || l->rows_per_core < 0 ||
	    l->row_offset > l->rows_per_core - l->padded_rows / l->sparse_cores)
		return fail(-EINVAL,
			    "%s: %" PRId64 " rows of a core from row_offset %" PRId64 " on "
			    "do not fit rows_per_core %" PRId64,
			    what, l->padded_rows / l->sparse_cores, l->row_offset,
			    l->rows_per_core);
	if (l->rotation < 0)
		return fail(-EINVAL, "%s: rotation %" PRId64 " is below 0", what, l->rotation);
	return 0;
}

/* row + rotation may be more than 64 bits count. */
static int64_t core_of(const struct embeng_table_layout *l, int64_t row)
{
	return (row % l->sparse_cores + l->rotation % l->sparse_cores) % l->sparse_cores;
}

int embeng_layout_place(const struct embeng_table_layout *layout, int64_t row,
			struct embeng_row_place *place)
{
	int ret = layout_check("embeng_layout_place", layout);
	struct embeng_row_place at;
	int64_t each;

	if (ret)
		return ret;
	if (!place)
		return fail(-EINVAL, "embeng_layout_place: no place for the answer");
	if (row < 0 || row >= layout->rows)
		return fail(-ERANGE,
			    "embeng_layout_place: row %" PRId64 "; the table has rows 0 to "
			    "%" PRId64,
			    row, layout->rows - 1);
	each = layout->sparse_cores / layout->partitions;
	at.core = core_of(layout, row);
	at.row = row / layout->sparse_cores + layout->row_offset;
	at.partition = at.core / each;
	/* A layout may be of more rows than there can be memory for. */
	if (__builtin_mul_overflow(layout->rows_per_core, at.core % each, &at.partition_row) ||
	    __builtin_add_overflow(at.partition_row, at.row, &at.partition_row))
		return fail(-ERANGE,
			    "embeng_layout_place: row %" PRId64 " of a partition is more "
			    "than 64 bits count",
			    row);
	*place = at;
	return 0;
}

/* @count of them @stride apart, each of @length floats, within what a pointer reaches. */
static bool pointer_reaches(int64_t count, int64_t stride, int64_t length)
{
	int64_t floats;

	return !__builtin_mul_overflow(count - 1, stride, &floats) &&
	       !__builtin_add_overflow(floats, length, &floats) &&
	       floats <= (int64_t)(PTRDIFF_MAX / sizeof(float));
}

static int check_shards(const char *what, const struct move *m)
{
	const struct embeng_table_layout *l = m->layout;
	const struct embeng_shards *s = &m->shards;
	int64_t length;

	if (s->first_core < 0 || s->core_count < 1 || s->core_count > l->sparse_cores ||
	    s->first_core > l->sparse_cores - s->core_count)
		return fail(-ERANGE,
			    "%s: %" PRId64 " cores from core %" PRId64 " on; the grid has %d", what,
			    s->core_count, s->first_core, l->sparse_cores);
	if (m->row_stride < l->dim || s->row_stride < l->padded_dim)
		return fail(-EINVAL,
			    "%s: row_stride %" PRId64 " of the table, %" PRId64 " of the "
			    "shards; at least %" PRId64 " and %" PRId64 " are needed",
			    what, m->row_stride, s->row_stride, l->dim, l->padded_dim);
	if (!pointer_reaches(l->rows, m->row_stride, l->dim) ||
	    __builtin_mul_overflow(l->rows_per_core, s->row_stride, &length))
		return fail(-ERANGE, "%s: more floats than memory has", what);
	if (s->core_stride < length)
		return fail(-EINVAL,
			    "%s: core_stride %" PRId64 "; the rows of a core take %" PRId64, what,
			    s->core_stride, length);
	if (!pointer_reaches(s->core_count, s->core_stride, length))
		return fail(-ERANGE, "%s: more floats than memory has", what);
	return 0;
}

static int move_make(const char *what, const struct embeng_table_layout *layout,
		     const struct embeng_shards *shards, int64_t row_stride, struct move *m)
{
	int ret = layout_check(what, layout);

	if (ret)
		return ret;
	if (!shards || shards->size < sizeof(*shards) || !shards->data)
		return fail(-EINVAL, "%s: no shards, or of another size", what);
	*m = (struct move){.layout = layout, .shards = *shards, .row_stride = row_stride};
	m->height = layout->padded_rows / layout->sparse_cores;
	if (!row_stride)
		m->row_stride = layout->dim;
	if (!m->shards.row_stride)
		m->shards.row_stride = layout->padded_dim;
	if (!m->shards.core_stride &&
	    __builtin_mul_overflow(layout->rows_per_core, m->shards.row_stride,
				   &m->shards.core_stride))
		return fail(-ERANGE, "%s: more floats than memory has", what);
	return check_shards(what, m);
}

/* The table's first row on a core; the others follow a grid apart. */
static int64_t first_row(const struct move *m, int64_t core)
{
	int64_t cores = m->layout->sparse_cores;

	return (m->shards.first_core + core + cores - m->layout->rotation % cores) % cores;
}

static float *row_at(const struct move *m, int64_t core, int64_t k)
{
	return m->shards.data + core * m->shards.core_stride +
	       (m->layout->row_offset + k) * m->shards.row_stride;
}

static void put_row(const struct move *m, const float *from, float padding, float *to)
{
	int64_t have = from ? m->layout->dim : 0;

	if (from)
		memcpy(to, from, (size_t)have * sizeof(*to));
	for (int64_t c = have; c < m->layout->padded_dim; c++)
		to[c] = padding;
}

int embeng_table_shard(const struct embeng_table_layout *layout, const float *rows,
		       int64_t row_stride, float padding, const struct embeng_shards *shards)
{
	struct move m;
	int ret = move_make("embeng_table_shard", layout, shards, row_stride, &m);

	if (!ret && !rows)
		ret = fail(-EINVAL, "embeng_table_shard: no rows");
	for (int64_t core = 0; !ret && core < m.shards.core_count; core++) {
		int64_t row = first_row(&m, core);

		for (int64_t k = 0; k < m.height; k++, row += layout->sparse_cores)
			put_row(&m, row < layout->rows ? rows + row * m.row_stride : NULL, padding,
				row_at(&m, core, k));
	}
	return ret;
}

int embeng_table_unshard(const struct embeng_table_layout *layout,
			 const struct embeng_shards *shards, float *rows, int64_t row_stride)
{
	struct move m;
	int ret = move_make("embeng_table_unshard", layout, shards, row_stride, &m);

	if (!ret && !rows)
		ret = fail(-EINVAL, "embeng_table_unshard: no rows");
	for (int64_t core = 0; !ret && core < m.shards.core_count; core++) {
		int64_t row = first_row(&m, core);

		for (int64_t k = 0; row < layout->rows; k++, row += layout->sparse_cores)
			memcpy(rows + row * m.row_stride, row_at(&m, core, k),
			       (size_t)layout->dim * sizeof(*rows));
	}
	return ret;
}
