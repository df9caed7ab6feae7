/* SPDX-License-Identifier: MIT */
/* Counts of what the first lines of a file look like when they are cut at one separator. */
#ifndef ITEM2VEC_DATA_LOOK_H
#define ITEM2VEC_DATA_LOOK_H

#include "source.h"

/* Columns that are looked at. */
#define LOOK_COLUMNS 8

/* More different values than this are not told apart. */
#define LOOK_VALUES 24

/**
 * struct look_column - how many of the lines have such a field in a column
 * @numbers: finite numbers
 * @small: numbers from -10 to 100, as ratings are
 * @fractions: numbers that are not whole
 * @large: numbers from 1e5 on
 * @huge: numbers from 1e8 on, as seconds since 1970 are
 * @dates: dates
 * @values: [value_count] different numbers among them, up to LOOK_VALUES
 */
struct look_column {
	size_t numbers, small, fractions, large, huge, dates, value_count;
	double values[LOOK_VALUES];
};

/**
 * struct look - the counts for one separator
 * @lines: lines that are not empty
 * @cut: lines of two fields or more
 * @fields: the most frequent number of fields
 * @alike: lines of that many fields; the members below are about these
 * @blanks: lines with a blank inside of a field
 * @grouped: lines whose first field is that of the line before
 * @header: the first line names a user and an item column
 * @first_cut: the first line has two fields or more
 */
struct look {
	const char *separator;
	size_t lines, cut, fields, alike, blanks, grouped;
	bool header, first_cut;
	struct look_column columns[LOOK_COLUMNS];
};

/* Counts over the lines that source_peek() has read. Return: 0 or -ENOMEM. */
int look_at(const struct source *s, const char *separator, struct look *look);

/* Whether @part is at least four fifths of @whole. */
bool look_mostly(size_t part, size_t whole);

#endif
