// SPDX-License-Identifier: MIT
/*
 * Reads baskets: one a line, its items separated by spaces or tabs. It is one of the three formats
 * that fill a collector; the other two are in csv.c and debian.c.
 */
#include <errno.h>
#include <string.h>

#include "basket.h"

static int check_characters(struct source *s)
{
	for (size_t i = 0; i < s->length; i++) {
		unsigned char byte = (unsigned char)s->text[i];

		if ((byte < ' ' && byte != '\t') || byte == 0x7f)
			return source_malformed(s,
						"control character 0x%02x in column %zu; items "
						"are separated by spaces or tabs",
						byte, i + 1);
	}
	return 0;
}

static int basket_line(struct source *s, struct collector *c)
{
	char number[24];
	struct piece basket = {number, 0};
	int rc = check_characters(s);

	basket.length = (size_t)snprintf(number, sizeof(number), "%llu",
					 (unsigned long long)s->line);
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
