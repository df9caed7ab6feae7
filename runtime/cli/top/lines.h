/* SPDX-License-Identifier: MIT */
/* Lines of text as a page of `embeng top` has them, and tables that fit into a width. */
#ifndef CLI_TOP_LINES_H
#define CLI_TOP_LINES_H

#include <stdbool.h>
#include <stddef.h>

enum line_kind {
	LINE_TEXT,
	LINE_TITLE,  /* says what the page is about */
	LINE_HEADER, /* names the columns of a table */
	LINE_ROW,
	LINE_ALARM, /* tells of an error or a limit */
};

#define NO_ROW ((size_t)-1)

/* One line; @row: index of the context that it is about, or NO_ROW. */
struct line {
	enum line_kind kind;
	size_t row;
	char *text;
};

/* All lines of a page. @failed: memory ran out, and lines are missing. */
struct lines {
	struct line *list;
	size_t count;
	bool failed;
};

void lines_add(struct lines *lines, enum line_kind kind, size_t row, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void lines_free(struct lines *lines);

#define CELL_BYTES 64

/**
 * struct column - a column of a table
 * @title: its name; a cell that is wider than @width moves what follows it
 * @width: columns of the terminal that it takes
 * @left: text begins at its left side; numbers end at its right side
 * @rank: columns with the highest rank are left out first when the width does not hold all
 * @cell: writes the text of one row
 */
struct column {
	const char *title;
	int width;
	bool left;
	int rank;
	void (*cell)(const void *row, char cell[CELL_BYTES]);
};

struct table {
	const struct column *columns;
	size_t count;
};

/* Chooses which columns fit into @width; 0 holds all. @shown: [@table->count] */
void table_fit(const struct table *table, int width, bool *shown);

/* These write a line without blanks at its end. */
void table_header(const struct table *table, const bool *shown, struct lines *lines);
void table_row(const struct table *table, const bool *shown, enum line_kind kind, size_t index,
	       const void *row, struct lines *lines);

/* A rate or count in three digits: "0", "17.3", "1.20k", "45.1M"; "-" for NaN. */
const char *count_text(double count, char cell[CELL_BYTES]);

/* "37 %"; "-" for NaN. */
const char *share_text(double share, char cell[CELL_BYTES]);

#endif
