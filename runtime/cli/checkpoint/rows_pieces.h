/* SPDX-License-Identifier: MIT */
/* Reads rows of a checkpoint piece by piece. */
#ifndef CLI_ROWS_PIECES_H
#define CLI_ROWS_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../frame/transfer.h"
#include "commands.h"

/**
 * struct rows_pieces - rows to read, and who takes them
 * @first: the first row
 * @end: the row behind the last
 * @write: takes @count rows from row @first on, which it may overwrite; 0 or a negative errno
 * @progress: counts bytes, and goes on over several calls
 * @reading: out: the reading failed, and the library has the sentence
 */
struct rows_pieces {
	const struct embeng_checkpoint *c;
	const struct checkpoint_array *array;
	int64_t first, end;
	int (*write)(void *arg, int64_t first, float *data, size_t count);
	void *arg;
	struct transfer *transfer;
	struct embeng_progress progress;
	bool reading;
};

/* Return: 0, -ENOMEM, -ECANCELED, or what the reading or @write failed with. */
int rows_in_pieces(struct rows_pieces *p);

#endif
