// SPDX-License-Identifier: MIT
/*
 * Cuts the first lines of a file at a separator and counts how the fields look. The sniffer judges
 * by these counts.
 *
 * A look owns nothing; each line is cut in a copy, which lives as long as the line is looked at.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"
#include "ratings.h"

bool look_mostly(size_t part, size_t whole)
{
	return whole && part * 5 >= whole * 4;
}

static void count_value(struct look_column *c, double value)
{
	for (size_t k = 0; k < c->value_count; k++) {
		if (c->values[k] == value)
			return;
	}
	if (c->value_count < LOOK_VALUES)
		c->values[c->value_count++] = value;
}

static void count_field(struct look_column *c, struct piece field, const char *separator)
{
	int64_t seconds;
	double value;

	if (ratings_date(field, &seconds)) {
		c->dates++;
	} else if (ratings_number(field, separator, &value)) {
		c->numbers++;
		c->small += value >= -10 && value <= 100;
		c->fractions += value != floor(value);
		c->large += value >= 1e5;
		c->huge += value >= 1e8;
		count_value(c, value);
	}
}

static bool has_blank(const struct record *r)
{
	for (size_t k = 0; k < r->count; k++) {
		int64_t seconds;

		if (memchr(r->fields[k].text, ' ', r->fields[k].length) &&
		    !ratings_date(r->fields[k], &seconds))
			return true;
	}
	return false;
}

/* Copies a line, to be cut. Return: 1 when it was, 0 when it cannot be, or -ENOMEM. */
static int cut_copy(const char *line, const char *separator, struct source *copy,
		    struct record *record)
{
	*copy = (struct source){.name = "", .text = strdup(line), .length = strlen(line)};
	if (!copy->text)
		return -ENOMEM;
	if (record_split(copy, separator, record))
		record->count = 0;
	while (record->count > 1 && !record->fields[record->count - 1].length)
		record->count--;
	return record->count > 0;
}

static void find_usual_count(struct look *look, const size_t counts[LOOK_COLUMNS + 2])
{
	for (size_t n = 0; n <= LOOK_COLUMNS + 1; n++) {
		if (counts[n] > look->alike) {
			look->alike = counts[n];
			look->fields = n;
		}
	}
}

static bool is_empty_line(const char *line)
{
	return !line[strspn(line, " \t")];
}

static int count_lines(const struct source *s, struct look *look)
{
	size_t counts[LOOK_COLUMNS + 2] = {0};

	for (size_t k = 0; k < s->ahead_count; k++) {
		struct source copy;
		struct record r;
		int rc = is_empty_line(s->ahead[k])
				 ? 0
				 : cut_copy(s->ahead[k], look->separator, &copy, &r);

		if (rc < 0)
			return rc;
		if (is_empty_line(s->ahead[k]))
			continue;
		counts[r.count <= LOOK_COLUMNS ? r.count : LOOK_COLUMNS + 1]++;
		look->cut += r.count > 1;
		if (!look->lines++) {
			look->first_cut = r.count > 1;
			look->header = ratings_named_column(&r, COLUMN_USER) != SIZE_MAX &&
				       ratings_named_column(&r, COLUMN_ITEM) != SIZE_MAX;
		}
		source_free(&copy);
	}
	find_usual_count(look, counts);
	return 0;
}

static int count_fields(const struct source *s, struct look *look)
{
	char last[64] = "", first[64];

	for (size_t k = 0; k < s->ahead_count; k++) {
		struct source copy;
		struct record r;
		int rc = cut_copy(s->ahead[k], look->separator, &copy, &r);

		if (rc < 0)
			return rc;
		if (rc && r.count == look->fields) {
			snprintf(first, sizeof(first), "%.*s", PIECE_SHOWN(r.fields[0]));
			look->grouped += !strcmp(first, last);
			look->blanks += has_blank(&r);
			memcpy(last, first, sizeof(last));
			for (size_t f = 0; f < r.count && f < LOOK_COLUMNS; f++)
				count_field(&look->columns[f], r.fields[f], look->separator);
		}
		source_free(&copy);
	}
	return 0;
}

int look_at(const struct source *s, const char *separator, struct look *look)
{
	int rc;

	*look = (struct look){.separator = separator};
	rc = count_lines(s, look);
	return rc ? rc : count_fields(s, look);
}
