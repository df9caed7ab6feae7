// SPDX-License-Identifier: MIT
/*
 * The progress line on stderr, which is written over as the work goes on and appears only on a
 * terminal.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define SHOW_EVERY_NS 100000000u

/* The command's stdout is a stream of its own, which has no descriptor: see sink.c. */
static bool is_terminal(FILE *stream)
{
	int fd = stream == stdout ? STDOUT_FILENO : fileno(stream);
	const char *term = secure_getenv("TERM");

	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static uint64_t read_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool terminal_colors(FILE *stream)
{
	const char *no = secure_getenv("NO_COLOR");

	return is_terminal(stream) && !(no && no[0]);
}

struct progress progress_start(bool wanted)
{
	return (struct progress){.on = wanted && is_terminal(stderr)};
}

struct progress progress_start_slowly(bool wanted)
{
	struct progress p = progress_start(wanted);

	p.last_ns = read_clock_ns();
	return p;
}

void progress_line(struct progress *p, const char *format, ...)
{
	uint64_t now;
	va_list args;

	if (!p->on)
		return;
	now = read_clock_ns();
	if (now - p->last_ns < SHOW_EVERY_NS)
		return;
	fputs("\r", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\x1b[K", stderr);
	fflush(stderr);
	p->shown = true;
	p->last_ns = now;
}

void progress_clear(struct progress *p)
{
	if (!p->shown)
		return;
	fputs("\r\x1b[K", stderr);
	fflush(stderr);
	p->shown = false;
}
