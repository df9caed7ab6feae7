// SPDX-License-Identifier: MIT
/*
 * Reads comma-separated interactions (RFC 4180, a record a line). A header may name the columns in
 * any order; without one their order is fixed.
 *
 * A record points into the line that was read last.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "csv.h"

#define MAX_COLUMNS 256

enum column { COLUMN_USER, COLUMN_ITEM, COLUMN_RATING, COLUMN_TIME, COLUMN_COUNT };

static const char *const column_names[COLUMN_COUNT] = {"user", "item", "rating", "timestamp"};

/* Names of the columns in exports; only letters count, so userId is also user_id. */
static const char *const aliases[COLUMN_COUNT][12] = {
	{"user", "userid", "username", "customer", "customerid", "member", "memberid", "session",
	 "sessionid", "basket", "basketid", "orderid"},
	{"item", "itemid", "movie", "movieid", "product", "productid", "article", "articleid",
	 "book", "bookid", "isbn", "title"},
	{"rating", "score", "stars", "value", "bookrating"},
	{"timestamp", "time", "date", "unixtime", "unixreviewtime"},
};

struct record {
	struct piece fields[MAX_COLUMNS];
	size_t count;
};

struct layout {
	size_t count;		     /* fields of every record */
	size_t places[COLUMN_COUNT]; /* SIZE_MAX: not there */
};

/* Unquotes in place from @at; @end is where the field ended. */
static int quoted_field(struct source *s, char *at, struct piece *field, char **end)
{
	char *to = at, *from = at;

	for (;;) {
		if (!*from)
			return source_malformed(s, "the line opens a quote and does not close it");
		if (*from == '"' && *++from != '"')
			break;
		*to++ = *from++;
	}
	if (*from && *from != ',')
		return source_malformed(s, "a comma must follow the closing quote, not '%.20s'",
					from);
	*field = (struct piece){at, (size_t)(to - at)};
	*end = from;
	return 0;
}

static int split_record(struct source *s, struct record *record)
{
	char *at = s->text;

	for (record->count = 0;; at++) {
		struct piece *field = &record->fields[record->count];
		int rc;

		if (record->count == MAX_COLUMNS)
			return source_malformed(s, "the line has more than %d columns",
						MAX_COLUMNS);
		record->count++;
		if (*at == '"') {
			rc = quoted_field(s, at + 1, field, &at);
			if (rc)
				return rc;
		} else {
			*field = (struct piece){at, strcspn(at, ",")};
			at += field->length;
		}
		if (!*at)
			return 0;
	}
}

static bool is_alias(struct piece field, const char *alias)
{
	size_t i = 0;

	for (size_t k = 0; k < field.length; k++) {
		if (strchr("_- ", field.text[k]))
			continue;
		if (!alias[i] || strncasecmp(&field.text[k], &alias[i], 1))
			return false;
		i++;
	}
	return i && !alias[i];
}

static size_t place_of(const struct record *header, enum column column)
{
	for (size_t a = 0; a < 12 && aliases[column][a]; a++) {
		for (size_t k = 0; k < header->count; k++) {
			if (is_alias(header->fields[k], aliases[column][a]))
				return k;
		}
	}
	return SIZE_MAX;
}

/* 1: @first is a header, 0: it is data, -EBADMSG: it cannot be told. */
static int find_layout(struct source *s, const struct record *first, struct layout *layout)
{
	layout->count = first->count;
	for (int c = 0; c < COLUMN_COUNT; c++)
		layout->places[c] = place_of(first, c);
	if (layout->places[COLUMN_USER] != SIZE_MAX && layout->places[COLUMN_ITEM] != SIZE_MAX)
		return 1;
	if (first->count < 2 || first->count > COLUMN_COUNT)
		return source_malformed(s,
					"the line has %zu columns and no header names user and "
					"item; without a header there must be 2 to 4 columns: "
					"user,item,rating,timestamp",
					first->count);
	for (size_t c = 0; c < COLUMN_COUNT; c++)
		layout->places[c] = c < first->count ? c : SIZE_MAX;
	return 0;
}

static int number_in(struct source *s, struct piece field, enum column column, double *value)
{
	char digits[64], *end;

	if (!field.length || field.length >= sizeof(digits))
		return source_malformed(s, "the %s '%.*s' is not a number", column_names[column],
					PIECE_SHOWN(field));
	memcpy(digits, field.text, field.length);
	digits[field.length] = '\0';
	*value = strtod(digits, &end);
	if (*end || !isfinite(*value))
		return source_malformed(s, "the %s '%s' is not a number", column_names[column],
					digits);
	return 0;
}

static int read_time(struct source *s, struct piece field, int64_t *time)
{
	double value;
	int rc = number_in(s, field, COLUMN_TIME, &value);

	if (rc)
		return rc;
	if (fabs(value) >= 0x1p62)
		return source_malformed(s, "the timestamp '%.*s' is beyond 2^62",
					PIECE_SHOWN(field));
	*time = (int64_t)value;
	return 0;
}

static int collect_record(struct source *s, const struct record *r, const struct layout *layout,
			  struct collector *c)
{
	const size_t *places = layout->places;
	bool timed = places[COLUMN_TIME] != SIZE_MAX;
	double rating;
	int64_t time;
	int rc = 0;

	if (r->count != layout->count)
		return source_malformed(s, "the line has %zu columns, the first line has %zu",
					r->count, layout->count);
	for (int k = COLUMN_USER; k <= COLUMN_ITEM; k++) {
		if (!r->fields[places[k]].length)
			return source_malformed(s, "the %s is empty", column_names[k]);
	}
	if (places[COLUMN_RATING] != SIZE_MAX)
		rc = number_in(s, r->fields[places[COLUMN_RATING]], COLUMN_RATING, &rating);
	if (!rc && timed)
		rc = read_time(s, r->fields[places[COLUMN_TIME]], &time);
	if (rc)
		return rc;
	return collector_add(c, r->fields[places[COLUMN_USER]], r->fields[places[COLUMN_ITEM]],
			     timed ? &time : NULL);
}

static void skip_byte_order_mark(struct source *s)
{
	if (s->length >= 3 && !memcmp(s->text, "\xef\xbb\xbf", 3)) {
		s->length -= 3;
		memmove(s->text, s->text + 3, s->length + 1);
	}
}

int csv_read(struct source *s, struct collector *c)
{
	struct layout layout = {0};
	struct record record;
	int rc;

	while ((rc = source_line(s)) > 0) {
		if (s->line == 1)
			skip_byte_order_mark(s);
		if (!s->length)
			continue;
		rc = split_record(s, &record);
		if (!rc && !layout.count) {
			rc = find_layout(s, &record, &layout);
			if (rc > 0)
				continue;
		}
		if (!rc)
			rc = collect_record(s, &record, &layout, c);
		if (rc)
			break;
	}
	return rc;
}
