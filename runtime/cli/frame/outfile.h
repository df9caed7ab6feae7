/* SPDX-License-Identifier: MIT */
/* Writing a file that appears as a whole or not at all. */
#ifndef CLI_OUTFILE_H
#define CLI_OUTFILE_H

#include "sink.h"

/**
 * struct outfile - a file being written; must not move until it is committed or aborted
 * @stream: stream to write to; outfile_commit() reports failed writes
 * @sink: sink of @stream, unless that is stdout
 * @path: final path; NULL: the file is written in place (stdout, a device, a pipe)
 * @aside: temporary path until it is committed
 */
struct outfile {
	FILE *stream;
	struct sink sink;
	char *path, *aside;
};

/**
 * outfile_open() - begin to write a file
 * @path: path; NULL or "-": stdout. Links are followed; anything but a regular file is written in
 *	place
 *
 * Return: 0 or a negative errno.
 */
int outfile_open(struct outfile *f, const char *path);

/* Puts the file under its name, synced to disk. On failure removes it. 0 or a negative errno. */
int outfile_commit(struct outfile *f);

/* Removes the file. After a failed outfile_open() or a commit it does nothing. */
void outfile_abort(struct outfile *f);

/* Commits the file where @rc is 0, and removes it where it is not. 0, @rc or a negative errno. */
int outfile_end(struct outfile *f, int rc);

#endif
