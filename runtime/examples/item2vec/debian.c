// SPDX-License-Identifier: MIT
/*
 * Reads control stanzas of Debian packages (deb-control(5), Debian policy 5.1 and 7.1): a source
 * package is a basket, and the packages its binaries depend on are the items.
 *
 * Memory for the fields is kept from stanza to stanza and freed at the end of the file.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "debian.h"

enum field { FIELD_PACKAGE, FIELD_SOURCE, FIELD_DEPENDS, FIELD_PRE_DEPENDS, FIELD_COUNT };

static const char *const field_names[FIELD_COUNT] = {"Package", "Source", "Depends", "Pre-Depends"};

/* A field's value with its continuation lines; the memory is kept between stanzas. */
struct value {
	char *text;
	size_t length, capacity;
	bool present;
};

struct stanza {
	struct value fields[FIELD_COUNT];
	struct value *open; /* takes continuation lines; NULL: they belong to a field not kept */
	bool any;
};

static int value_append(struct value *v, const char *text, size_t length)
{
	if (v->length + length + 1 > v->capacity) {
		size_t capacity = 2 * (v->length + length + 1);
		char *grown = realloc(v->text, capacity);

		if (!grown)
			return -ENOMEM;
		v->text = grown;
		v->capacity = capacity;
	}
	memcpy(v->text + v->length, text, length);
	v->length += length;
	v->text[v->length] = '\0';
	return 0;
}

static struct piece trim_blanks(const char *text, size_t length)
{
	while (length && isspace((unsigned char)*text)) {
		text++;
		length--;
	}
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	return (struct piece){text, length};
}

/* Up to the first of @stops. */
static struct piece cut_piece(struct piece p, const char *stops)
{
	size_t length = 0;

	while (length < p.length && !strchr(stops, p.text[length]))
		length++;
	return trim_blanks(p.text, length);
}

static bool is_package_name(struct piece p)
{
	if (!p.length || !isalnum((unsigned char)p.text[0]))
		return false;
	for (size_t i = 1; i < p.length; i++) {
		if (!isalnum((unsigned char)p.text[i]) && !strchr("+-._", p.text[i]))
			return false;
	}
	return true;
}

static int name_in(struct source *s, struct piece p, enum field field, struct piece *name)
{
	struct piece found = cut_piece(p, " \t(:[<");

	if (!is_package_name(found))
		return source_malformed(s,
					"field %s of the package that ends here does not begin "
					"with the name of a package: '%.*s'",
					field_names[field], PIECE_SHOWN(p));
	*name = found;
	return 0;
}

static int read_dependencies(struct source *s, struct collector *c, struct piece basket,
			     const struct value *v, enum field field)
{
	struct piece rest = v->present ? trim_blanks(v->text, v->length) : (struct piece){"", 0};

	while (rest.length) {
		struct piece entry = cut_piece(rest, ","), first = cut_piece(entry, "|"), name;
		const char *comma = memchr(rest.text, ',', rest.length);
		size_t used = comma ? (size_t)(comma - rest.text) + 1 : rest.length;
		int rc = name_in(s, first, field, &name);

		if (!rc)
			rc = collector_add(c, basket, name, NULL);
		if (rc)
			return rc;
		rest = trim_blanks(rest.text + used, rest.length - used);
	}
	return 0;
}

/* Takes the stanza into @c and empties it. */
static int stanza_end(struct source *s, struct stanza *st, struct collector *c)
{
	enum field naming = st->fields[FIELD_SOURCE].present ? FIELD_SOURCE : FIELD_PACKAGE;
	const struct value *v = &st->fields[naming];
	struct piece basket;
	int rc;

	if (!st->any)
		return 0;
	if (!st->fields[FIELD_PACKAGE].present)
		return source_malformed(s, "the package that ends here has no field Package");
	rc = name_in(s, trim_blanks(v->text, v->length), naming, &basket);
	for (int f = FIELD_DEPENDS; !rc && f <= FIELD_PRE_DEPENDS; f++)
		rc = read_dependencies(s, c, basket, &st->fields[f], f);
	for (int f = 0; f < FIELD_COUNT; f++) {
		st->fields[f].present = false;
		st->fields[f].length = 0;
	}
	st->any = false;
	st->open = NULL;
	return rc;
}

static bool is_field_name(struct piece p)
{
	if (!p.length || p.text[0] == '-' || p.text[0] == '#')
		return false;
	for (size_t i = 0; i < p.length; i++) {
		if (p.text[i] < '!' || p.text[i] > '~')
			return false;
	}
	return true;
}

static int continue_field(struct source *s, struct stanza *st)
{
	if (!st->any)
		return source_malformed(s, "the line begins with a space and continues no field");
	return st->open ? value_append(st->open, s->text, s->length) : 0;
}

static int field_line(struct source *s, struct stanza *st)
{
	const char *colon = memchr(s->text, ':', s->length);
	struct piece name = {s->text, colon ? (size_t)(colon - s->text) : 0};

	if (!is_field_name(name))
		return source_malformed(s,
					"the line is neither 'Field: value', nor a "
					"continuation, nor empty: '%.60s'",
					s->text);
	st->any = true;
	st->open = NULL;
	for (int f = 0; f < FIELD_COUNT; f++) {
		if (strlen(field_names[f]) != name.length ||
		    strncasecmp(field_names[f], name.text, name.length))
			continue;
		if (st->fields[f].present)
			return source_malformed(s, "the package has field %s twice",
						field_names[f]);
		st->fields[f].present = true;
		st->open = &st->fields[f];
		return value_append(st->open, colon + 1, s->length - name.length - 1);
	}
	return 0;
}

static int one_line(struct source *s, struct stanza *st, struct collector *c)
{
	if (!s->length)
		return stanza_end(s, st, c);
	return s->text[0] == ' ' || s->text[0] == '\t' ? continue_field(s, st) : field_line(s, st);
}

int debian_read(struct source *s, struct collector *c)
{
	struct stanza st = {0};
	int rc;

	while ((rc = source_line(s)) > 0) {
		rc = one_line(s, &st, c);
		if (rc < 0)
			break;
	}
	if (!rc)
		rc = stanza_end(s, &st, c);
	for (int f = 0; f < FIELD_COUNT; f++)
		free(st.fields[f].text);
	return rc;
}
