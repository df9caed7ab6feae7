// SPDX-License-Identifier: MIT
/*
 * Reads the options --format, --separator and --columns, and words separators for messages. The
 * readers of data and the sniffer share these words.
 *
 * Names of columns point into the argument that they were read from.
 */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "format.h"

const char *const column_names[COLUMN_COUNT] = {"user", "item", "rating", "timestamp"};

static const struct {
	const char *separator, *option, *words;
} known_separators[] = {
	{"\t", "tab", "a tab"},
	{",", "comma", "a comma"},
	{";", "semicolon", "a semicolon"},
	{"::", "'::'", "'::'"},
	{"|", "'|'", "'|'"},
	{":", "':'", "a colon"},
	{SEPARATOR_BLANK, "blank", "a blank"},
};

#define KNOWN (sizeof(known_separators) / sizeof(known_separators[0]))

const char *separator_words(const char *separator, char text[SEPARATOR_TEXT])
{
	snprintf(text, SEPARATOR_TEXT, "'%s'", separator);
	for (size_t k = 0; k < KNOWN; k++) {
		if (!strcmp(known_separators[k].separator, separator))
			snprintf(text, SEPARATOR_TEXT, "%s", known_separators[k].words);
	}
	return text;
}

const char *separator_option(const char *separator, char text[SEPARATOR_TEXT])
{
	snprintf(text, SEPARATOR_TEXT, "'%s'", separator);
	for (size_t k = 0; k < KNOWN; k++) {
		if (!strcmp(known_separators[k].separator, separator))
			snprintf(text, SEPARATOR_TEXT, "%s", known_separators[k].option);
	}
	return text;
}

int format_read_kind(struct format *f, const char *text, char error[FORMAT_ERROR])
{
	if (!strcmp(text, "baskets")) {
		f->kind = FORMAT_BASKETS;
	} else if (!strcmp(text, "ratings")) {
		f->kind = FORMAT_RATINGS;
	} else if (!strcmp(text, "csv")) {
		f->kind = FORMAT_RATINGS;
		snprintf(f->separator, SEPARATOR_SIZE, ",");
	} else {
		snprintf(
			error, FORMAT_ERROR,
			"--format takes baskets, ratings or csv (ratings with commas), not '%.40s'",
			text);
		return -EINVAL;
	}
	return 0;
}

/* Letters and digits are parts of names and numbers, and a quote begins a field. */
static bool is_separator(const char *text)
{
	size_t length = strlen(text);

	for (size_t k = 0; k < length; k++) {
		unsigned char byte = (unsigned char)text[k];

		if (isalnum(byte) || strchr("\"'.-+_", byte) ||
		    (iscntrl(byte) && strcmp(text, "\t") != 0) || (byte == ' ' && length > 1))
			return false;
	}
	return length && length < SEPARATOR_SIZE;
}

int format_read_separator(struct format *f, const char *text, char error[FORMAT_ERROR])
{
	if (!strcmp(text, "\\t"))
		text = "\t";
	else if (!strcmp(text, "space"))
		text = SEPARATOR_BLANK;
	for (size_t k = 0; k < KNOWN; k++) {
		if (!strcmp(known_separators[k].option, text))
			text = known_separators[k].separator;
	}
	if (!is_separator(text)) {
		snprintf(error, FORMAT_ERROR,
			 "--separator takes tab, comma, semicolon, blank, or the characters "
			 "themselves, such as '::'; not '%.40s'",
			 text);
		return -EINVAL;
	}
	snprintf(f->separator, SEPARATOR_SIZE, "%s", text);
	return 0;
}

static enum column find_column(struct piece name)
{
	for (int c = 0; c < COLUMN_COUNT; c++) {
		if (name.length == strlen(column_names[c]) &&
		    !strncmp(name.text, column_names[c], name.length))
			return (enum column)c;
	}
	return name.length == 4 && !strncmp(name.text, "time", 4) ? COLUMN_TIME : COLUMN_COUNT;
}

static int refuse_columns(const char *text, const char *why, char error[FORMAT_ERROR])
{
	snprintf(error, FORMAT_ERROR,
		 "--columns takes user, item, rating, timestamp and - in the order of the file, "
		 "or names of its header, as in user=who,item=book; '%.30s' %.32s",
		 text, why);
	return -EINVAL;
}

/* One entry of the list. Return: NULL, or the reason for which it is refused. */
static const char *take_column(struct columns *c, struct piece entry)
{
	const char *equals = memchr(entry.text, '=', entry.length);
	enum columns_by by = equals ? COLUMNS_BY_NAME : COLUMNS_BY_PLACE;
	struct piece name = {entry.text, equals ? (size_t)(equals - entry.text) : entry.length};
	enum column column = find_column(name);
	size_t place = c->count++;

	if (c->by != COLUMNS_UNKNOWN && c->by != by)
		return "mixes the two";
	c->by = by;
	if (!equals && name.length == 1 && *name.text == '-')
		return NULL;
	if (column == COLUMN_COUNT)
		return "has another word";
	if (c->places[column] != SIZE_MAX)
		return "names a column twice";
	c->places[column] = place;
	if (equals)
		c->names[column] = (struct piece){equals + 1, entry.length - name.length - 1};
	return equals && !c->names[column].length ? "has an empty name" : NULL;
}

int format_read_columns(struct format *f, const char *text, char error[FORMAT_ERROR])
{
	struct columns c = {.places = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX}};
	const char *why = NULL;

	for (const char *at = text; !why; at++) {
		size_t length = strcspn(at, ",");

		why = take_column(&c, (struct piece){at, length});
		at += length;
		if (!*at)
			break;
	}
	if (!why && (c.places[COLUMN_USER] == SIZE_MAX || c.places[COLUMN_ITEM] == SIZE_MAX))
		why = "does not name both user and item";
	if (why)
		return refuse_columns(text, why, error);
	f->columns = c;
	return 0;
}

int format_check(const struct format *f, char error[FORMAT_ERROR])
{
	if (f->kind != FORMAT_BASKETS || f->columns.by == COLUMNS_UNKNOWN)
		return 0;
	snprintf(error, FORMAT_ERROR,
		 "--columns is about ratings; --format baskets has no columns");
	return -EINVAL;
}
