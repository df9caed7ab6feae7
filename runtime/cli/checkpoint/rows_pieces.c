// SPDX-License-Identifier: MIT
/*
 * Reads rows of a table or slot in pieces, so that a command needs little memory however large the
 * table is. dump and export write what it reads.
 *
 * The piece lives for one call.
 */
#include <errno.h>
#include <stdlib.h>

#include "rows_pieces.h"

#define PIECE (1 << 20) /* floats */

/* A piece has about 4 MiB, and at least one row. */
static size_t count_rows_of_piece(int64_t dim)
{
	return dim < PIECE ? PIECE / (size_t)dim : 1;
}

int rows_in_pieces(struct rows_pieces *p)
{
	size_t dim = (size_t)p->array->width, piece = count_rows_of_piece((int64_t)dim), count;
	float *data = malloc(piece * dim * sizeof(*data));
	int rc = data ? 0 : -ENOMEM;

	for (int64_t row = p->first; !rc && row < p->end; row += (int64_t)count) {
		count = p->end - row < (int64_t)piece ? (size_t)(p->end - row) : piece;
		rc = embeng_checkpoint_read(p->c, p->array->table, p->array->slot, row, count,
					    data);
		p->reading = rc;
		rc = rc ? rc : p->write(p->arg, row, data, count);
		p->progress.done += count * dim * sizeof(*data);
		if (!rc && transfer_progress(p->transfer, &p->progress))
			rc = -ECANCELED;
	}
	free(data);
	return rc;
}
