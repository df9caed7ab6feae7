// SPDX-License-Identifier: MIT
/*
 * The characters of a JSON text. json-c, strict as it can be, still takes NaN,
 * Infinity, "1." and raw control characters, and forgets equal keys; this finds
 * the first four and counts members, which shows the last.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "vector_file.h"

struct scan {
	const char *text;
	size_t length, at;
};

static int refuse(const struct scan *s, const char *what, char *error)
{
	snprintf(error, VECTOR_ERROR_TEXT, "no JSON: %s at byte %zu", what, s->at);
	return -1;
}

/* From behind the opening quote to behind the closing one. An unclosed one is the parser's. */
static int skip_string(struct scan *s, char *error)
{
	for (; s->at < s->length && s->text[s->at] != '"'; s->at++) {
		if ((unsigned char)s->text[s->at] < 0x20)
			return refuse(s, "a control character in a text", error);
		if (s->text[s->at] == '\\')
			s->at++;
	}
	s->at++;
	return 0;
}

static bool take(struct scan *s, const char *word)
{
	size_t length = strlen(word);

	if (s->length - s->at < length || memcmp(s->text + s->at, word, length))
		return false;
	s->at += length;
	return true;
}

static bool is_digit(const struct scan *s, size_t at)
{
	return at < s->length && s->text[at] >= '0' && s->text[at] <= '9';
}

static int skip_plain(struct scan *s, char *error)
{
	char c = s->text[s->at];

	if (take(s, "true") || take(s, "false") || take(s, "null"))
		return 0;
	if (!c || !strchr("{}[],: \t\r\n+-.eE0123456789", c))
		return refuse(s, "a character that has no place here", error);
	if (c == '.' && (!s->at || !is_digit(s, s->at - 1) || !is_digit(s, s->at + 1)))
		return refuse(s, "a decimal point without digits on both sides", error);
	s->at++;
	return 0;
}

int vector_lexis_check(const char *text, size_t length, size_t *members, char *error)
{
	struct scan s = {.text = text, .length = length};

	error[0] = '\0';
	*members = 0;
	while (s.at < s.length) {
		char c = text[s.at];
		int err;

		if (c == '"') {
			s.at++;
			err = skip_string(&s, error);
		} else {
			*members += c == ':';
			err = skip_plain(&s, error);
		}
		if (err)
			return err;
	}
	return 0;
}
