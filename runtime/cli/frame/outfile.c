// SPDX-License-Identifier: MIT
/*
 * Writes a file that appears whole or not at all: it is written under another name and then
 * renamed.
 *
 * A struct outfile owns its stream and names until it is committed or aborted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outfile.h"

static int in_place(struct outfile *f, const char *path)
{
	*f = (struct outfile){.stream = stdout, .sink.fd = -1};
	if (!path)
		return 0;
	f->sink.fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (f->sink.fd < 0)
		return -errno;
	f->stream = sink_open(&f->sink);
	if (f->stream)
		return 0;
	close(f->sink.fd);
	return -ENOMEM;
}

/* mkostemp() makes files for their owner alone; this one is to be like any other. */
static void open_to_others(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	fchmod(fd, 0666 & ~mask);
}

static int open_aside(struct outfile *f)
{
	if (asprintf(&f->aside, "%s.XXXXXX", f->path) < 0) {
		f->aside = NULL;
		return -ENOMEM;
	}
	f->sink.fd = mkostemp(f->aside, O_CLOEXEC);
	if (f->sink.fd < 0)
		return -errno;
	open_to_others(f->sink.fd);
	f->stream = sink_open(&f->sink);
	if (f->stream)
		return 0;
	close(f->sink.fd);
	unlink(f->aside);
	return -ENOMEM;
}

static void forget_outfile(struct outfile *f)
{
	free(f->path);
	free(f->aside);
	*f = (struct outfile){0};
}

int outfile_open(struct outfile *f, const char *path)
{
	struct stat there;
	int rc;

	if (!path || !strcmp(path, "-"))
		return in_place(f, NULL);
	rc = stat(path, &there);
	if (!rc && !S_ISREG(there.st_mode))
		return in_place(f, path);
	*f = (struct outfile){.path = rc ? strdup(path) : realpath(path, NULL)};
	rc = f->path ? open_aside(f) : -ENOMEM;
	if (rc)
		forget_outfile(f);
	return rc;
}

static int close_stream(struct outfile *f)
{
	int rc = f->stream == stdout ? sink_flush_stdout() : sink_flush(&f->sink, f->stream);

	if (!rc && f->aside && fsync(f->sink.fd))
		rc = -errno;
	if (f->stream != stdout && fclose(f->stream) && !rc)
		rc = -errno;
	return rc;
}

int outfile_commit(struct outfile *f)
{
	int rc = close_stream(f);

	if (!rc && f->aside && rename(f->aside, f->path))
		rc = -errno;
	if (rc && f->aside)
		unlink(f->aside);
	forget_outfile(f);
	return rc;
}

void outfile_abort(struct outfile *f)
{
	if (!f->stream)
		return;
	if (f->stream != stdout)
		fclose(f->stream);
	if (f->aside)
		unlink(f->aside);
	forget_outfile(f);
}

int outfile_end(struct outfile *f, int rc)
{
	if (!rc)
		return outfile_commit(f);
	outfile_abort(f);
	return rc;
}
