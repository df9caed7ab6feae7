// SPDX-License-Identifier: MIT
/*
 * Counts of rows: adds two lists, and keeps the rows that come most often. The choice depends on
 * the counts alone and not on the order in which they came.
 *
 * The lists belong to the caller until profile_free(). No lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "profile.h"

static int by_row(const void *a, const void *b)
{
	const struct hot_row *x = a, *y = b;

	return (x->row > y->row) - (x->row < y->row);
}

/* Most first; of equal ones the lower row, so that what is kept depends on no order. */
static int by_count(const void *a, const void *b)
{
	const struct hot_row *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return by_row(a, b);
}

size_t profile_join(struct hot_row *rows, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(rows, count, sizeof(*rows), by_row);
	for (size_t i = 0; i < count; i++) {
		if (kept && rows[kept - 1].row == rows[i].row)
			rows[kept - 1].count += rows[i].count;
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

static size_t keep_hottest(struct hot_row *rows, size_t count)
{
	if (count <= EMBENG_PROFILE_HOT)
		return count;
	qsort(rows, count, sizeof(*rows), by_count);
	qsort(rows, EMBENG_PROFILE_HOT, sizeof(*rows), by_row);
	return EMBENG_PROFILE_HOT;
}

int profile_add(struct hot_counts *to, const struct hot_counts *from)
{
	size_t count = to->row_count + from->row_count;
	struct hot_row *rows = reallocarray(NULL, count + 1, sizeof(*rows));

	if (!rows)
		return fail(-ENOMEM, "no memory for the rows of a profile");
	if (to->row_count)
		memcpy(rows, to->rows, to->row_count * sizeof(*rows));
	if (from->row_count)
		memcpy(rows + to->row_count, from->rows, from->row_count * sizeof(*rows));
	free(to->rows);
	to->rows = rows;
	to->row_count = keep_hottest(rows, profile_join(rows, count));
	to->batches += from->batches;
	to->ids += from->ids;
	return 0;
}

void profile_by_count(const struct hot_counts *known, struct embeng_profile_counts *out)
{
	struct hot_row rows[EMBENG_PROFILE_HOT];

	if (!known->row_count)
		return;
	memcpy(rows, known->rows, known->row_count * sizeof(*rows));
	qsort(rows, known->row_count, sizeof(*rows), by_count);
	for (size_t i = 0; i < known->row_count; i++) {
		out->hot[i].row = rows[i].row;
		out->hot[i].count = rows[i].count;
	}
}

void profile_free(struct hot_counts *counts)
{
	free(counts->rows);
	*counts = (struct hot_counts){0};
}
