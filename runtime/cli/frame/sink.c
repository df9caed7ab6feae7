// SPDX-License-Identifier: MIT
/*
 * Streams that know why a write failed. A stream of stdio forgets the errno of a full buffer that
 * could not be written, so writes go through a cookie that keeps it.
 *
 * The sink must outlive its stream. That of stdout is static.
 */
#define _GNU_SOURCE /* fopencookie */
#include <errno.h>
#include <unistd.h>

#include "sink.h"

static struct sink stdout_sink = {.fd = STDOUT_FILENO};

/* All of it, or stdio takes the rest for lost. */
static ssize_t write_sink(void *cookie, const char *data, size_t size)
{
	struct sink *s = cookie;
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(s->fd, data + done, size - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			s->err = s->err ? s->err : n ? -errno : -EIO;
			break;
		}
	}
	return (ssize_t)done;
}

static int close_sink(void *cookie)
{
	const struct sink *s = cookie;

	return close(s->fd);
}

FILE *sink_open(struct sink *s)
{
	s->err = 0;
	return fopencookie(s, "w",
			   (cookie_io_functions_t){.write = write_sink, .close = close_sink});
}

int sink_flush(const struct sink *s, FILE *stream)
{
	errno = 0;
	if (!fflush(stream) && !ferror(stream))
		return 0;
	return s->err ? s->err : errno ? -errno : -EIO;
}

void sink_take_stdout(void)
{
	FILE *stream = sink_open(&stdout_sink);

	if (!stream)
		return;
	if (isatty(STDOUT_FILENO))
		setvbuf(stream, NULL, _IOLBF, BUFSIZ);
	stdout = stream;
}

int sink_flush_stdout(void)
{
	return sink_flush(&stdout_sink, stdout);
}
