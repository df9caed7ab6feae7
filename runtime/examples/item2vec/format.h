/* SPDX-License-Identifier: MIT */
/* The format of a data file: baskets or ratings, the separator, and the meaning of the columns. */
#ifndef ITEM2VEC_DATA_FORMAT_H
#define ITEM2VEC_DATA_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "dataset.h"

enum format_kind { FORMAT_UNKNOWN, FORMAT_BASKETS, FORMAT_RATINGS };

enum column { COLUMN_USER, COLUMN_ITEM, COLUMN_RATING, COLUMN_TIME, COLUMN_COUNT };

/* The names of the columns in messages and in --columns. */
extern const char *const column_names[COLUMN_COUNT];

enum columns_by { COLUMNS_UNKNOWN, COLUMNS_BY_PLACE, COLUMNS_BY_NAME };

/**
 * struct columns - where a record has its user, item, rating and timestamp
 * @by: says which of the members below are used; COLUMNS_UNKNOWN: the header or the usual order
 *	decides
 * @count: fields of a record, for COLUMNS_BY_PLACE
 * @places: index of each column for COLUMNS_BY_PLACE; SIZE_MAX: there is none
 * @names: name of each column in the header for COLUMNS_BY_NAME, parts of the option's text; an
 *	empty one: there is none
 */
struct columns {
	enum columns_by by;
	size_t count;
	size_t places[COLUMN_COUNT];
	struct piece names[COLUMN_COUNT];
};

#define SEPARATOR_SIZE 9

/* Any number of spaces and tabs is one separator. */
#define SEPARATOR_BLANK " "

/**
 * struct format - a format, of which the user may have said any part
 * @separator: text between two columns or items; empty: not known, which readers take for a comma
 *	in ratings and for blanks in baskets
 */
struct format {
	enum format_kind kind;
	char separator[SEPARATOR_SIZE];
	struct columns columns;
};

#define FORMAT_ERROR 240

/*
 * Each reads the argument of the option of its name. Return: 0, or -EINVAL with a sentence in
 * @error.
 */
int format_read_kind(struct format *f, const char *text, char error[FORMAT_ERROR]);
int format_read_separator(struct format *f, const char *text, char error[FORMAT_ERROR]);
/* Columns are named in their order (user,-,item), or by a header's names (user=who,item=book). */
int format_read_columns(struct format *f, const char *text, char error[FORMAT_ERROR]);

/* Whether the parts fit together. Return: as above. */
int format_check(const struct format *f, char error[FORMAT_ERROR]);

#define SEPARATOR_TEXT 24

/* The separator with its article, for messages: "a comma", "'::'". */
const char *separator_words(const char *separator, char text[SEPARATOR_TEXT]);

/* The separator as an argument of --separator: "comma", "'::'". */
const char *separator_option(const char *separator, char text[SEPARATOR_TEXT]);

#endif
