/* SPDX-License-Identifier: MIT */
/* One line on stderr that is written over, only when that is a terminal. */
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

/* @wanted: false for --quiet and the like; a pipe or TERM=dumb is off anyway. */
struct progress progress_start(bool wanted);

/* One that shows nothing for its first tenth of a second: what is done by then needs no line. */
struct progress progress_start_slowly(bool wanted);

/* Shows the line, at most ten times a second. */
void progress_line(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Takes the line away; before anything else is printed. */
void progress_clear(struct progress *p);

/* Colours are welcome: a terminal, no NO_COLOR, not TERM=dumb. */
bool terminal_colors(FILE *stream);

#endif
