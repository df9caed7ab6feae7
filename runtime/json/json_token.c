// SPDX-License-Identifier: MIT
/*
 * Texts, numbers and words of a document. A file of its own because none of it knows where in the
 * document it is. The texts that it makes live in the document's arena.
 */
#define _GNU_SOURCE /* strtod_l */
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/blob/utf8.h"
#include "../text/number.h"
#include "json_token.h"

int json_refuse(struct json_source *s, const char *what)
{
	snprintf(s->why, JSON_WHY, "no JSON at byte %zu: %s", s->at, what);
	return -EBADMSG;
}

int json_refuse_end(struct json_source *s)
{
	s->at = s->length;
	return json_refuse(s, "the text ends too early");
}

int json_no_memory(struct json_source *s)
{
	snprintf(s->why, JSON_WHY, "no memory to read %zu bytes of JSON", s->length);
	return -ENOMEM;
}

int json_take_word(struct json_source *s, const char *word)
{
	for (; *word; word++, s->at++) {
		if (s->at == s->length)
			return json_refuse_end(s);
		if (s->text[s->at] != *word)
			return json_refuse(s, "a character that has no place here");
	}
	return 0;
}

/* -- texts --------------------------------------------------------------- */

static int take_hex4(struct json_source *s, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++, s->at++) {
		char c;

		if (s->at == s->length)
			return json_refuse_end(s);
		c = s->text[s->at];
		if (c >= '0' && c <= '9')
			*out = *out << 4 | (uint32_t)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			*out = *out << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
		else
			return json_refuse(s, "\\u without four hexadecimal digits");
	}
	return 0;
}

/* A character beyond U+FFFF is a high and a low surrogate, and each needs the other. */
static int take_code_point(struct json_source *s, uint32_t *out)
{
	static const char lone[] = "one half of a surrogate pair without the other";
	uint32_t low;
	int ret = take_hex4(s, out);

	if (ret || *out < 0xd800 || *out > 0xdfff)
		return ret;
	if (*out > 0xdbff)
		return json_refuse(s, lone);
	for (int i = 0; i < 2; i++, s->at++) {
		if (s->at == s->length)
			return json_refuse_end(s);
		if (s->text[s->at] != "\\u"[i])
			return json_refuse(s, lone);
	}
	ret = take_hex4(s, &low);
	if (ret)
		return ret;
	if (low < 0xdc00 || low > 0xdfff)
		return json_refuse(s, lone);
	*out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
	return 0;
}

static char *put_utf8(char *to, uint32_t code)
{
	if (code < 0x80) {
		*to++ = (char)code;
		return to;
	}
	if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
	} else if (code < 0x10000) {
		*to++ = (char)(0xe0 | code >> 12);
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
	} else {
		*to++ = (char)(0xf0 | code >> 18);
		*to++ = (char)(0x80 | (code >> 12 & 0x3f));
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (code & 0x3f));
	return to;
}

/* From the backslash on; no escape is shorter than what it stands for. */
static int take_escape(struct json_source *s, char **to)
{
	static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *name;
	uint32_t code;
	int ret;

	if (++s->at == s->length)
		return json_refuse_end(s);
	if (s->text[s->at] == 'u') {
		s->at++;
		ret = take_code_point(s, &code);
		if (!ret)
			*to = put_utf8(*to, code);
		return ret;
	}
	name = memchr(names, s->text[s->at], sizeof(names) - 1);
	if (!name)
		return json_refuse(s, "a backslash before a character that needs none");
	*(*to)++ = meanings[name - names];
	s->at++;
	return 0;
}

static int take_character(struct json_source *s, char **to)
{
	u8 next[5] = {0}; /* the text need not end in the zero that utf8_sequence() stops at */
	size_t left = s->length - s->at;
	u32 bytes;

	memcpy(next, s->text + s->at, left < 4 ? left : 4);
	if (next[0] < 0x20)
		return json_refuse(s, "a control character in a text");
	bytes = utf8_sequence(next);
	if (!bytes)
		return json_refuse(s, "a text that is not UTF-8");
	memcpy(*to, next, bytes);
	*to += bytes;
	s->at += bytes;
	return 0;
}

/* Bytes up to the closing quote, or to the end where there is none. */
static size_t measure_text(const struct json_source *s)
{
	size_t end = s->at;

	while (end < s->length && s->text[end] != '"')
		end += s->text[end] == '\\' ? 2 : 1;
	return (end < s->length ? end : s->length) - s->at;
}

int json_take_text(struct json_source *s, const char **text, size_t *length)
{
	char *made, *to;
	int ret = 0;

	s->at++;
	made = json_arena_take(s->arena, measure_text(s) + 1);
	if (!made)
		return json_no_memory(s);
	for (to = made; !ret && s->at < s->length && s->text[s->at] != '"';)
		ret = s->text[s->at] == '\\' ? take_escape(s, &to) : take_character(s, &to);
	if (ret)
		return ret;
	if (s->at == s->length)
		return json_refuse_end(s);
	s->at++;
	*to = '\0';
	*text = made;
	*length = (size_t)(to - made);
	return 0;
}

/* -- numbers ------------------------------------------------------------- */

static bool next_is_digit(const struct json_source *s)
{
	return s->at < s->length && s->text[s->at] >= '0' && s->text[s->at] <= '9';
}

static bool next_is(const struct json_source *s, const char *any)
{
	return s->at < s->length && s->text[s->at] && strchr(any, s->text[s->at]);
}

static int skip_digits(struct json_source *s, const char *what)
{
	if (s->at == s->length)
		return json_refuse_end(s);
	if (!next_is_digit(s))
		return json_refuse(s, what);
	while (next_is_digit(s))
		s->at++;
	return 0;
}

/* To behind the number; *real tells whether a fraction or an exponent makes it one. */
static int skip_number(struct json_source *s, bool *real)
{
	int ret = 0;

	*real = false;
	if (next_is(s, "-"))
		s->at++;
	if (next_is(s, "0")) {
		s->at++;
		if (next_is_digit(s))
			return json_refuse(s, "a number with a zero before its first digit");
	} else {
		ret = skip_digits(s, "a minus sign without a digit behind it");
	}
	*real = !ret && next_is(s, ".eE");
	if (!ret && next_is(s, ".")) {
		s->at++;
		ret = skip_digits(s, "a decimal point without a digit behind it");
	}
	if (!ret && next_is(s, "eE")) {
		s->at++;
		if (next_is(s, "+-"))
			s->at++;
		ret = skip_digits(s, "an exponent without a digit");
	}
	return ret;
}

/* Whether 64 bits hold the integer from @text to @end. */
static bool make_integer(const char *text, const char *end, struct json *out)
{
	bool negative = *text == '-';
	uint64_t magnitude;

	text += negative;
	if (number_read(text, (size_t)(end - text), 10, &magnitude))
		return false;
	if (negative && magnitude > (uint64_t)INT64_MAX + 1)
		return false;
	*out = (struct json){.kind = JSON_INTEGER, .negative = negative, .magnitude = magnitude};
	return true;
}

/* Rounded to nearest, subnormals kept, whatever the caller has set. */
static double nearest_double(const char *text, locale_t plain)
{
	fenv_t callers;
	double value;

	fegetenv(&callers);
	fesetenv(FE_DFL_ENV);
	value = strtod_l(text, NULL, plain);
	fesetenv(&callers);
	return value;
}

/* Copied, for a text to end where the number does. */
static int make_real(struct json_source *s, size_t from, struct json *out)
{
	size_t length = s->at - from;
	char few[64], *copy = length < sizeof(few) ? few : malloc(length + 1);
	double value;

	if (!copy)
		return json_no_memory(s);
	memcpy(copy, s->text + from, length);
	copy[length] = '\0';
	value = nearest_double(copy, s->plain);
	if (copy != few)
		free(copy);
	if (isinf(value)) {
		s->at = from;
		return json_refuse(s, "a number that no 64-bit float reaches");
	}
	*out = (struct json){.kind = JSON_REAL, .real = value};
	return 0;
}

int json_take_number(struct json_source *s, struct json *out)
{
	size_t from = s->at;
	bool real;
	int ret = skip_number(s, &real);

	if (ret)
		return ret;
	if (!real && make_integer(s->text + from, s->text + s->at, out))
		return 0;
	return make_real(s, from, out);
}
