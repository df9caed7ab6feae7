// SPDX-License-Identifier: MIT
/*
 * Cuts lines into fields, for baskets and ratings with any separator.
 *
 * A record points into the line that was read last.
 */
#include <errno.h>
#include <string.h>

#include "record.h"

int record_check_characters(struct source *s)
{
	for (size_t i = 0; i < s->length; i++) {
		unsigned char byte = (unsigned char)s->text[i];

		if ((byte < ' ' && byte != '\t') || byte == 0x7f)
			return source_malformed(s, "control character 0x%02x in column %zu", byte,
						i + 1);
	}
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Blanks that are not the separator itself. */
static char *skip_blanks(char *at, const char *separator)
{
	while (is_blank(*at) && *at != *separator)
		at++;
	return at;
}

static char *find_separator(char *at, const char *separator)
{
	char *found = *separator == ' ' ? at + strcspn(at, " \t") : strstr(at, separator);

	return found ? found : at + strlen(at);
}

/* Unquotes in place from @at; @end is set behind the closing quote. */
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
	*field = (struct piece){at, (size_t)(to - at)};
	*end = from;
	return 0;
}

static int take_quoted(struct source *s, char *at, const char *separator, struct piece *field,
		       char **end)
{
	char words[SEPARATOR_TEXT], *behind = at, *next;
	int rc = quoted_field(s, at, field, &behind);

	if (rc)
		return rc;
	behind = skip_blanks(behind, separator);
	next = find_separator(behind, separator);
	if (next != behind)
		return source_malformed(s, "%s must follow the closing quote, not '%.20s'",
					separator_words(separator, words), behind);
	*end = next;
	return 0;
}

static void take_plain(char *at, const char *separator, struct piece *field, char **end)
{
	*end = find_separator(at, separator);
	*field = (struct piece){at, (size_t)(*end - at)};
	while (field->length && is_blank(at[field->length - 1]))
		field->length--;
}

/* Behind the separator at @at; NULL when no field follows. */
static char *next_field(char *at, const char *separator)
{
	if (!*at)
		return NULL;
	if (*separator != ' ')
		return at + strlen(separator);
	at += strspn(at, " \t");
	return *at ? at : NULL;
}

int record_split(struct source *s, const char *separator, struct record *record)
{
	char *at = *separator == ' ' ? s->text + strspn(s->text, " \t") : s->text;
	int rc = 0;

	for (record->count = 0; at && !rc; at = rc ? at : next_field(at, separator)) {
		struct piece *field = &record->fields[record->count];

		if (record->count == RECORD_FIELDS)
			return source_malformed(s, "the line has more than %d columns",
						RECORD_FIELDS);
		record->count++;
		at = skip_blanks(at, separator);
		if (*at == '"')
			rc = take_quoted(s, at + 1, separator, field, &at);
		else
			take_plain(at, separator, field, &at);
	}
	return rc;
}
