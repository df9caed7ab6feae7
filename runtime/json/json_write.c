// SPDX-License-Identifier: MIT
/*
 * The writer. Each value begins with what separates it from the one before, so that nothing has to
 * be known of what follows. The text grows by doubling; the writer owns it up to json_write_end().
 */
#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/blob/utf8.h"
#include "json_write.h"

#define NUMBER_TEXT 64
#define CAPACITY_LEAST 256

static void refuse_value(struct json_writer *w, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The first fault is the one that is reported. */
static void refuse_value(struct json_writer *w, int error, const char *format, ...)
{
	va_list args;

	if (w->error)
		return;
	w->error = error;
	va_start(args, format);
	vsnprintf(w->why, sizeof(w->why), format, args);
	va_end(args);
}

void json_write_no_memory(struct json_writer *w)
{
	refuse_value(w, -ENOMEM, "no memory to write JSON");
}

/* Room for @bytes more and a zero byte behind them; NULL once something is wrong. */
static char *make_text_room(struct json_writer *w, size_t bytes)
{
	size_t capacity;
	char *grown;

	if (w->error)
		return NULL;
	if (w->capacity - w->length > bytes)
		return w->text + w->length;
	grown = __builtin_add_overflow(2 * w->capacity + CAPACITY_LEAST, bytes, &capacity)
			? NULL
			: realloc(w->text, capacity);
	if (!grown) {
		json_write_no_memory(w);
		return NULL;
	}
	w->text = grown;
	w->capacity = capacity;
	return w->text + w->length;
}

static void put_bytes(struct json_writer *w, const char *bytes, size_t length)
{
	char *to = make_text_room(w, length);

	if (!to)
		return;
	memcpy(to, bytes, length);
	w->length += length;
}

static void put_line(struct json_writer *w, unsigned int depth)
{
	size_t spaces = 2 * (size_t)depth;
	char *to = make_text_room(w, 1 + spaces);

	if (!to)
		return;
	*to = '\n';
	memset(to + 1, ' ', spaces);
	w->length += 1 + spaces;
}

/* -- texts --------------------------------------------------------------- */

static void put_escaped(struct json_writer *w, unsigned char c)
{
	static const char meanings[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
	const char *meaning = memchr(meanings, c, sizeof(meanings) - 1);
	char text[8];

	if (meaning)
		snprintf(text, sizeof(text), "\\%c", names[meaning - meanings]);
	else
		snprintf(text, sizeof(text), "\\u%04x", c);
	put_bytes(w, text, strlen(text));
}

/*
 * @text ends in a zero byte, which is what utf8_sequence() stops at; a zero byte before that end is
 * a character of its own. Return: whether it is UTF-8.
 */
static bool put_text(struct json_writer *w, const char *text, size_t length)
{
	size_t plain = 0; /* bytes before @i that are yet to be put as they are */

	put_bytes(w, "\"", 1);
	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)text[i];
		u32 bytes = utf8_sequence((const u8 *)text + i);

		if (!bytes)
			return false;
		if (c >= 0x20 && c != '"' && c != '\\') {
			plain += bytes;
		} else {
			put_bytes(w, text + i - plain, plain);
			put_escaped(w, c);
			plain = 0;
		}
		i += bytes;
	}
	put_bytes(w, text + length - plain, plain);
	put_bytes(w, "\"", 1);
	return true;
}

/* -- values -------------------------------------------------------------- */

/* All that stands before a value: comma, place in the line, name. */
static void begin_value(struct json_writer *w, const char *name)
{
	if (w->depth) {
		if (w->filled)
			put_bytes(w, ",", 1);
		if (w->style == JSON_LINES)
			put_line(w, w->depth);
		else if (w->style == JSON_SPACED)
			put_bytes(w, " ", 1);
	}
	w->filled = true;
	if (!name)
		return;
	if (!put_text(w, name, strlen(name)))
		refuse_value(w, -EINVAL, "the name of a member is not UTF-8");
	put_bytes(w, ": ", w->style == JSON_COMPACT ? 1 : 2);
}

static void put_value(struct json_writer *w, const char *name, const char *text)
{
	begin_value(w, name);
	put_bytes(w, text, strlen(text));
}

static void open_container(struct json_writer *w, const char *name, const char *open, char close)
{
	if (w->depth == JSON_WRITE_DEPTH)
		refuse_value(w, -EINVAL, "more than %d containers in each other", JSON_WRITE_DEPTH);
	put_value(w, name, open);
	if (w->error)
		return;
	w->closers[w->depth++] = close;
	w->filled = false;
}

void json_write_object(struct json_writer *w, const char *name)
{
	open_container(w, name, "{", '}');
}

void json_write_array(struct json_writer *w, const char *name)
{
	open_container(w, name, "[", ']');
}

void json_write_close(struct json_writer *w)
{
	if (w->error)
		return;
	w->depth--;
	if (w->style == JSON_LINES)
		put_line(w, w->depth);
	else if (w->style == JSON_SPACED)
		put_bytes(w, " ", 1);
	put_bytes(w, &w->closers[w->depth], 1);
	w->filled = true;
}

static void write_text_bytes(struct json_writer *w, const char *name, const char *text,
			     size_t length)
{
	begin_value(w, name);
	if (put_text(w, text, length))
		return;
	if (name)
		refuse_value(w, -EINVAL, "the text of \"%.60s\" is not UTF-8", name);
	else
		refuse_value(w, -EINVAL, "a text in a list is not UTF-8");
}

void json_write_text(struct json_writer *w, const char *name, const char *text)
{
	write_text_bytes(w, name, text, strlen(text));
}

static void write_integer(struct json_writer *w, const char *name, bool negative, uint64_t number)
{
	char text[NUMBER_TEXT];

	snprintf(text, sizeof(text), "%s%" PRIu64, negative ? "-" : "", number);
	put_value(w, name, text);
}

void json_write_number(struct json_writer *w, const char *name, uint64_t number)
{
	write_integer(w, name, false, number);
}

void json_write_flag(struct json_writer *w, const char *name, bool flag)
{
	put_value(w, name, flag ? "true" : "false");
}

void json_write_null(struct json_writer *w, const char *name)
{
	put_value(w, name, "null");
}

/* The locale decides what stands between the digits, if anything does. */
static void set_point(char text[NUMBER_TEXT])
{
	char *point = text + strspn(text, "-0123456789");
	char *end = point + strcspn(point, "0123456789e");

	if (end == point)
		return;
	*point = '.';
	memmove(point + 1, end, strlen(end) + 1);
}

/* Rounded to nearest: 17 digits are enough then, whatever the caller has set. */
static void print_real(char text[NUMBER_TEXT], double real)
{
	fenv_t callers;

	fegetenv(&callers);
	fesetenv(FE_DFL_ENV);
	snprintf(text, NUMBER_TEXT - 2, "%.17g", real);
	fesetenv(&callers);
}

/* A number that looks like an integer gets a fraction, so that it is read back as a real. */
void json_write_real(struct json_writer *w, const char *name, double real)
{
	char text[NUMBER_TEXT];

	if (!isfinite(real)) {
		refuse_value(w, -EINVAL, "a real is not finite, which JSON has no number for");
		return;
	}
	print_real(text, real);
	set_point(text);
	if (!strpbrk(text, ".e"))
		strcat(text, ".0");
	put_value(w, name, text);
}

void json_write_digits(struct json_writer *w, const char *name, const char *digits)
{
	put_value(w, name, digits);
}

void json_write_value(struct json_writer *w, const char *name, const struct json *value)
{
	switch (value ? value->kind : JSON_NULL) {
	case JSON_NULL:
		json_write_null(w, name);
		return;
	case JSON_BOOLEAN:
		json_write_flag(w, name, value->boolean);
		return;
	case JSON_INTEGER:
		write_integer(w, name, value->negative, value->magnitude);
		return;
	case JSON_REAL:
		json_write_real(w, name, value->real);
		return;
	case JSON_TEXT:
		write_text_bytes(w, name, value->text, value->length);
		return;
	case JSON_ARRAY:
		json_write_array(w, name);
		break;
	case JSON_OBJECT:
		json_write_object(w, name);
		break;
	}
	/* At JSON_WRITE_DEPTH an error ends it, and with it the calls of this function. */
	for (size_t i = 0; !w->error && i < value->length; i++)
		json_write_value(w, value->kind == JSON_OBJECT ? json_name(value, i) : NULL,
				 json_at(value, i));
	json_write_close(w);
}

/* -- the document -------------------------------------------------------- */

void json_write_begin(struct json_writer *w, enum json_style style)
{
	*w = (struct json_writer){.style = style};
}

int json_write_end(struct json_writer *w, char **text, size_t *length)
{
	put_bytes(w, "\n", w->style == JSON_LINES);
	if (w->error) {
		free(w->text);
		return w->error;
	}
	w->text[w->length] = '\0';
	*text = w->text;
	*length = w->length;
	return 0;
}
