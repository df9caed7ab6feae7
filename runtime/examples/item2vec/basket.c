// SPDX-License-Identifier: MIT
/*
 * Reads baskets: one a line, its items separated by spaces or tabs, or as the format says. It is one
 * of three formats that fill a collector (ratings.c, debian.c).
 */
#include <errno.h>
#include <string.h>

#include "basket.h"
#include "record.h"

static int add_blank_items(struct source *s, struct collector *c, struct piece basket)
{
	int rc = 0;

	for (const char *at = s->text; !rc;) {
		size_t length;

		at += strspn(at, " \t");
		length = strcspn(at, " \t");
		if (!length)
			break;
		rc = collector_add(c, basket, (struct piece){at, length}, NULL);
		at += length;
	}
	return rc;
}

/* Items between separators may have blanks inside and be in quotes; empty ones are left out. */
static int add_separated_items(struct source *s, struct collector *c, struct piece basket)
{
	struct record record;
	int rc = record_split(s, s->format.separator, &record);

	for (size_t k = 0; !rc && k < record.count; k++) {
		if (record.fields[k].length)
			rc = collector_add(c, basket, record.fields[k], NULL);
	}
	return rc;
}

static int basket_line(struct source *s, struct collector *c)
{
	const char *separator = s->format.separator;
	char number[24];
	struct piece basket = {number, 0};
	int rc = record_check_characters(s);

	basket.length = (size_t)snprintf(number, sizeof(number), "%llu",
					 (unsigned long long)s->line);
	if (rc)
		return rc;
	if (!*separator || !strcmp(separator, SEPARATOR_BLANK))
		return add_blank_items(s, c, basket);
	return add_separated_items(s, c, basket);
}

int basket_read(struct source *s, struct collector *c)
{
	int rc;

	while ((rc = source_line(s)) > 0) {
		rc = basket_line(s, c);
		if (rc)
			break;
	}
	return rc;
}
