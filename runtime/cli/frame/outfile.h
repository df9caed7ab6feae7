/* SPDX-License-Identifier: MIT */
/* A file that appears whole or not at all. */
#ifndef CLI_OUTFILE_H
#define CLI_OUTFILE_H

#include "sink.h"

/**
 * struct outfile - a file being written; stays in place until it is committed or aborted
 * @stream: written to; a failed write is told by outfile_commit()
 * @sink: of @stream, unless that is stdout
 * @path: where it will be, NULL: it is written in place (stdout, a device, a pipe)
 * @aside: where it is until then
 */
struct outfile {
	FILE *stream;
	struct sink sink;
	char *path, *aside;
};

/**
 * outfile_open() - begin
 * @path: NULL or "-": stdout. Links are followed; what is no regular file is written in place
 *
 * Return: 0 or a negative errno.
 */
int outfile_open(struct outfile *f, const char *path);

/* All of it is on disk under its name, or the errno of what failed and nothing is left. */
int outfile_commit(struct outfile *f);

/* Nothing is left. After a failed outfile_open() or a commit: nothing to do. */
void outfile_abort(struct outfile *f);

#endif
