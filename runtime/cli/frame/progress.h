/* SPDX-License-Identifier: MIT */
/* A progress line on stderr that is overwritten. It is shown only on a terminal. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	bool on;
	bool shown;
	uint64_t last_ns;
};

/*
 * Starts a line. @wanted is false for --quiet and the like; a pipe or TERM=dumb shows none anyway.
 */
struct progress progress_start(bool wanted);

/* Starts a line that is not shown for the first tenth of a second, since short work needs none. */
struct progress progress_start_slowly(bool wanted);

/* Shows the line, at most ten times a second. */
void progress_line(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Removes the line. It must be called before anything else is printed. */
void progress_clear(struct progress *p);

/* Whether to print colours: on a terminal, without NO_COLOR and TERM=dumb. */
bool terminal_colors(FILE *stream);

#endif
