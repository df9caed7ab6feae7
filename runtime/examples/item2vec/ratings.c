// SPDX-License-Identifier: MIT
/*
 * Reads interactions as separated values, a record a line. A header may name the columns in any
 * order; without one their order is fixed, unless the user says it.
 *
 * A record points into the line that was read last.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ratings.h"

#define HEADER_HINT \
	"; if the first line is a header, name its columns, as in --columns user=who,item=book"

/* Names of the columns in exports; only letters count, so userId is also user_id. */
static const char *const aliases[COLUMN_COUNT][24] = {
	{"user",      "userid",	   "username",	 "customer", "customerid", "member",	"memberid",
	 "session",   "sessionid", "basket",	 "basketid", "orderid",	   "order",	"visitor",
	 "visitorid", "reviewer",  "reviewerid", "invoice",  "invoiceno",  "invoiceid", "uid"},
	{"item",    "itemid",	 "movie",     "movieid",  "product",   "productid",
	 "article", "articleid", "book",      "bookid",	  "isbn",      "title",
	 "asin",    "sku",	 "song",      "songid",	  "track",     "trackid",
	 "artist",  "artistid",	 "stockcode", "business", "businessid"},
	{"rating", "score", "stars", "value", "bookrating", "overall"},
	{"timestamp", "time", "date", "unixtime", "unixreviewtime", "datetime", "invoicedate"},
};

struct layout {
	size_t count;		     /* fields of every record */
	size_t places[COLUMN_COUNT]; /* SIZE_MAX: not there */
};

static const char *separator_of(const struct source *s)
{
	return *s->format.separator ? s->format.separator : ",";
}

/* Behind a colon there is a type, as in user_id:token. */
static bool is_alias(struct piece field, const char *alias)
{
	size_t i = 0;

	for (size_t k = 0; k < field.length && field.text[k] != ':'; k++) {
		if (strchr("_- ", field.text[k]))
			continue;
		if (!alias[i] || strncasecmp(&field.text[k], &alias[i], 1))
			return false;
		i++;
	}
	return i && !alias[i];
}

size_t ratings_named_column(const struct record *header, enum column column)
{
	for (size_t a = 0; a < 24 && aliases[column][a]; a++) {
		for (size_t k = 0; k < header->count; k++) {
			if (is_alias(header->fields[k], aliases[column][a]))
				return k;
		}
	}
	return SIZE_MAX;
}

bool ratings_number(struct piece field, const char *separator, double *value)
{
	char digits[64], *end, *comma;

	if (!field.length || field.length >= sizeof(digits))
		return false;
	memcpy(digits, field.text, field.length);
	digits[field.length] = '\0';
	comma = strcmp(separator, ",") != 0 ? strchr(digits, ',') : NULL;
	if (comma)
		*comma = '.';
	*value = strtod(digits, &end);
	return !*end && isfinite(*value);
}

/* Reads @count digits at *@at and moves on. */
static bool take_digits(const char **at, int count, int64_t *value)
{
	*value = 0;
	for (; count; count--, ++*at) {
		if (!isdigit((unsigned char)**at))
			return false;
		*value = *value * 10 + (**at - '0');
	}
	return true;
}

static bool take_byte(const char **at, const char *bytes)
{
	if (!**at || !strchr(bytes, **at))
		return false;
	++*at;
	return true;
}

/* Days from 1970-01-01 in the Gregorian calendar; years begin in March, so that leap days are last. */
static int64_t days_of_date(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month > 2 ? year : year - 1, m = (month + 9) % 12;

	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* The time of a day, in seconds, and its zone: 23:53, 23:53:47.5, 23:53:47Z, 23:53:47+02:00. */
static bool take_time(const char **at, int64_t *seconds)
{
	int64_t hour, minute, second = 0, zone_hour, zone_minute;
	const char *zone;

	if (!take_digits(at, 2, &hour) || !take_byte(at, ":") || !take_digits(at, 2, &minute))
		return false;
	if (take_byte(at, ":") && !take_digits(at, 2, &second))
		return false;
	if (take_byte(at, "."))
		*at += strspn(*at, "0123456789");
	*seconds += hour * 3600 + minute * 60 + second;
	if (hour > 24 || minute > 59 || second > 60)
		return false;
	zone = *at;
	if (take_byte(at, "Z") || !take_byte(at, "+-"))
		return true;
	if (!take_digits(at, 2, &zone_hour) ||
	    (take_byte(at, ":"), !take_digits(at, 2, &zone_minute)))
		return false;
	*seconds -= (*zone == '-' ? -1 : 1) * (zone_hour * 3600 + zone_minute * 60);
	return true;
}

bool ratings_date(struct piece field, int64_t *seconds)
{
	int64_t year, month, day;
	char text[48];
	const char *at = text;

	if (field.length < 10 || field.length >= sizeof(text))
		return false;
	memcpy(text, field.text, field.length);
	text[field.length] = '\0';
	if (!take_digits(&at, 4, &year) || !take_byte(&at, "-/") || !take_digits(&at, 2, &month) ||
	    !take_byte(&at, "-/") || !take_digits(&at, 2, &day))
		return false;
	if (month < 1 || month > 12 || day < 1 || day > 31)
		return false;
	*seconds = days_of_date(year, month, day) * 86400;
	if (take_byte(&at, "T ") && !take_time(&at, seconds))
		return false;
	return !*at;
}

/* The names in a header, for a message. */
static const char *list_names(const struct record *header, char text[160])
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t k = 0; k < header->count && length < 100; k++)
		length += (size_t)snprintf(
			text + length, 160 - length, "%s%.*s", k ? ", " : "",
			(int)(header->fields[k].length < 40 ? header->fields[k].length : 40),
			header->fields[k].text);
	return text;
}

static size_t find_name(const struct record *header, struct piece name)
{
	for (size_t k = 0; k < header->count; k++) {
		if (header->fields[k].length == name.length &&
		    !memcmp(header->fields[k].text, name.text, name.length))
			return k;
	}
	return SIZE_MAX;
}

/* The user has said the names in the header. */
static int find_told_names(struct source *s, const struct record *first, struct layout *layout)
{
	const struct columns *told = &s->format.columns;
	char names[160];

	for (int c = 0; c < COLUMN_COUNT; c++) {
		layout->places[c] = SIZE_MAX;
		if (!told->names[c].length)
			continue;
		layout->places[c] = find_name(first, told->names[c]);
		if (layout->places[c] == SIZE_MAX)
			return source_malformed(s,
						"the header has no column '%.*s', which --columns "
						"names; it has %s",
						PIECE_SHOWN(told->names[c]),
						list_names(first, names));
	}
	return 1;
}

static bool has_number(const struct source *s, const struct record *r, size_t place)
{
	int64_t date;
	double value;

	return place == SIZE_MAX || ratings_number(r->fields[place], separator_of(s), &value) ||
	       ratings_date(r->fields[place], &date);
}

/* The user has said the order. A first line with words for numbers is a header. */
static int find_told_places(struct source *s, const struct record *first, struct layout *layout)
{
	const struct columns *told = &s->format.columns;
	bool named = ratings_named_column(first, COLUMN_USER) != SIZE_MAX &&
		     ratings_named_column(first, COLUMN_ITEM) != SIZE_MAX;

	layout->count = told->count;
	if (first->count != told->count)
		return source_malformed(s,
					"the line has %zu columns, and --columns names %zu; write "
					"- for a column that is not used",
					first->count, told->count);
	memcpy(layout->places, told->places, sizeof(layout->places));
	return named || !has_number(s, first, told->places[COLUMN_RATING]) ||
	       !has_number(s, first, told->places[COLUMN_TIME]);
}

/* 1: @first is a header, 0: it is data, -EBADMSG: it cannot be told. */
static int find_layout(struct source *s, const struct record *first, struct layout *layout)
{
	layout->count = first->count;
	if (s->format.columns.by == COLUMNS_BY_NAME)
		return find_told_names(s, first, layout);
	if (s->format.columns.by == COLUMNS_BY_PLACE)
		return find_told_places(s, first, layout);
	for (int c = 0; c < COLUMN_COUNT; c++)
		layout->places[c] = ratings_named_column(first, (enum column)c);
	if (layout->places[COLUMN_USER] != SIZE_MAX && layout->places[COLUMN_ITEM] != SIZE_MAX)
		return 1;
	if (first->count < 2 || first->count > COLUMN_COUNT)
		return source_malformed(s,
					"the line has %zu columns and no header names user and "
					"item; without a header there must be 2 to 4 columns: "
					"user,item,rating,timestamp; --columns says others",
					first->count);
	for (size_t c = 0; c < COLUMN_COUNT; c++)
		layout->places[c] = c < first->count ? c : SIZE_MAX;
	return 0;
}

static int read_rating(struct source *s, struct piece field)
{
	double value;

	if (ratings_number(field, separator_of(s), &value))
		return 0;
	return source_malformed(s, "the rating '%.*s' is not a number%s", PIECE_SHOWN(field),
				s->line == 1 ? HEADER_HINT : "");
}

static int read_time(struct source *s, struct piece field, int64_t *time)
{
	double value;

	if (ratings_date(field, time))
		return 0;
	if (!ratings_number(field, separator_of(s), &value))
		return source_malformed(s,
					"the timestamp '%.*s' is not a number, nor a date such as "
					"2005-04-02 23:53:47; without a timestamp in --columns it "
					"is not read%s",
					PIECE_SHOWN(field), s->line == 1 ? HEADER_HINT : "");
	if (fabs(value) >= 0x1p62)
		return source_malformed(s, "the timestamp '%.*s' is beyond 2^62",
					PIECE_SHOWN(field));
	*time = (int64_t)value;
	return 0;
}

/* Separators at the end of a line make empty fields, which count for nothing. */
static int check_field_count(struct source *s, const struct record *r, const struct layout *layout)
{
	size_t count = r->count;

	while (count > layout->count && !r->fields[count - 1].length)
		count--;
	if (count == layout->count)
		return 0;
	return source_malformed(s, "the line has %zu columns, the first line has %zu", r->count,
				layout->count);
}

static int collect_record(struct source *s, const struct record *r, const struct layout *layout,
			  struct collector *c)
{
	const size_t *places = layout->places;
	bool timed = places[COLUMN_TIME] != SIZE_MAX;
	int64_t time;
	int rc = check_field_count(s, r, layout);

	if (rc)
		return rc;
	for (int k = COLUMN_USER; k <= COLUMN_ITEM; k++) {
		if (!r->fields[places[k]].length)
			return source_malformed(s, "the %s is empty", column_names[k]);
	}
	if (places[COLUMN_RATING] != SIZE_MAX)
		rc = read_rating(s, r->fields[places[COLUMN_RATING]]);
	if (!rc && timed)
		rc = read_time(s, r->fields[places[COLUMN_TIME]], &time);
	if (rc)
		return rc;
	return collector_add(c, r->fields[places[COLUMN_USER]], r->fields[places[COLUMN_ITEM]],
			     timed ? &time : NULL);
}

/* A tab at the end of every line is no column. */
static void drop_empty_ends(const struct source *s, struct record *first)
{
	if (strcmp(separator_of(s), "\t") != 0)
		return;
	while (first->count > 1 && !first->fields[first->count - 1].length)
		first->count--;
}

static int read_ratings_line(struct source *s, struct layout *layout, struct collector *c)
{
	struct record record;
	int rc = record_check_characters(s);

	if (!rc)
		rc = record_split(s, separator_of(s), &record);
	if (!rc && !layout->count) {
		drop_empty_ends(s, &record);
		rc = find_layout(s, &record, layout);
		if (rc > 0)
			return 0;
	}
	return rc ? rc : collect_record(s, &record, layout, c);
}

int ratings_read(struct source *s, struct collector *c)
{
	struct layout layout = {0};
	int rc;

	while ((rc = source_line(s)) > 0) {
		if (!s->text[strspn(s->text, " \t")])
			continue;
		rc = read_ratings_line(s, &layout, c);
		if (rc)
			break;
	}
	return rc;
}
