// SPDX-License-Identifier: MIT
/* Where rows lie: in the mapped shards of a checkpoint, or side by side. */
#include "serving.h"

int source_open(const struct embeng_checkpoint *checkpoint, int table, size_t dim,
		struct row_source *source)
{
	int count = checkpoint_pieces(checkpoint, table, 0, &source->pieces);

	if (count < 0)
		return count;
	source->checkpoint = checkpoint;
	source->dim = dim;
	source->piece_count = (size_t)count;
	/* the lowest, so that no offset is negative */
	for (size_t i = 0; i < source->piece_count; i++)
		if (!i || source->pieces[i].rows < source->base)
			source->base = source->pieces[i].rows;
	return 0;
}

static uint64_t place_of(const struct row_source *source, int64_t row)
{
	size_t low = 0, high = source->id_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (source->ids[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t source_offset(const struct row_source *source, int64_t row)
{
	const struct checkpoint_piece *piece;

	if (!source->pieces)
		return place_of(source, row) * source->dim;
	if (source->piece_count == 1)
		return (uint64_t)row * source->dim;
	piece = checkpoint_piece_of(source->pieces, source->piece_count, row);
	return ((uintptr_t)piece->rows - (uintptr_t)source->base) / sizeof(float) +
	       (uint64_t)(row - piece->first) * source->dim;
}

int source_check(const struct row_source *source, int64_t row)
{
	const struct checkpoint_piece *piece =
		checkpoint_piece_of(source->pieces, source->piece_count, row);
	uint64_t bytes = source->dim * sizeof(float);

	return checkpoint_check(source->checkpoint, piece, (uint64_t)(row - piece->first) * bytes,
				bytes);
}

int source_check_all(const struct row_source *source)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < source->piece_count; i++)
		ret = checkpoint_check(source->checkpoint, &source->pieces[i], 0,
				       (uint64_t)source->pieces[i].count * source->dim *
					       sizeof(float));
	return ret;
}
