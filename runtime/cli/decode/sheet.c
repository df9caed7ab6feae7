// SPDX-License-Identifier: MIT
/*
 * The result of decoding as data, apart from the readers of the formats, so that none of them prints
 * and each of them can be tested for what it found.
 *
 * Text of a file is anybody's: bytes that are no UTF-8, and control characters, become '?' here. The
 * sheet owns its objects until sheet_document() or sheet_end(). One thread uses it.
 */
#include "sheet.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "../../../engine/blob/utf8.h"
#include "../frame/output.h"

static void clean_sentence(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p;) {
		uint32_t bytes = utf8_sequence(p);

		if (!bytes || *p < ' ' || *p == 0x7f)
			*p = '?';
		p += bytes ? bytes : 1;
	}
}

/* Fills @to, cut where it is full. */
static void write_sentence(char to[SHEET_SENTENCE], const char *format, va_list args)
{
	vsnprintf(to, SHEET_SENTENCE, format, args);
	clean_sentence(to);
}

void sheet_begin(struct sheet *s)
{
	*s = (struct sheet){.parts = json_object_new_array(), .odd = json_object_new_array()};
}

void sheet_end(struct sheet *s)
{
	json_object_put(s->parts);
	json_object_put(s->odd);
	*s = (struct sheet){0};
}

void sheet_verdict(struct sheet *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_sentence(s->verdict, format, args);
	va_end(args);
}

void sheet_part(struct sheet *s, uint64_t offset, const char *format, ...)
{
	char name[SHEET_SENTENCE];
	va_list args;

	va_start(args, format);
	write_sentence(name, format, args);
	va_end(args);
	snprintf(s->name, sizeof(s->name), "%.*s", SHEET_NAME - 1, name);
	clean_sentence(s->name);
	s->part = NULL;
	if (s->part_count++ >= SHEET_PARTS_MAX)
		return;
	s->part = json_object_new_object();
	s->fields = json_object_new_array();
	json_add_text(s->part, "part", s->name);
	json_add_number(s->part, "offset", offset);
	if (s->line)
		json_add_number(s->part, "line", s->line);
	json_object_object_add(s->part, "fields", s->fields);
	json_object_array_add(s->parts, s->part);
}

void sheet_says(struct sheet *s, const char *format, ...)
{
	char text[SHEET_SENTENCE];
	va_list args;

	if (!s->part)
		return;
	va_start(args, format);
	write_sentence(text, format, args);
	va_end(args);
	json_add_text(s->part, "says", text);
}

/* The name of a field may be a word of the file, as that of a register in a dump is. */
static struct json_object *add_field(struct sheet *s, uint64_t offset, const char *field)
{
	struct json_object *made = json_object_new_object();
	char name[SHEET_NAME];

	snprintf(name, sizeof(name), "%s", field);
	clean_sentence(name);
	json_add_text(made, "field", name);
	json_add_number(made, "offset", offset);
	json_object_array_add(s->fields, made);
	return made;
}

void sheet_number(struct sheet *s, uint64_t offset, const char *field, uint64_t value,
		  const char *words)
{
	struct json_object *made;

	if (!s->part)
		return;
	made = add_field(s, offset, field);
	json_add_number(made, "value", value);
	if (words)
		json_add_text(made, "means", words);
}

void sheet_text(struct sheet *s, uint64_t offset, const char *field, const char *format, ...)
{
	char text[SHEET_SENTENCE];
	va_list args;

	if (!s->part)
		return;
	va_start(args, format);
	write_sentence(text, format, args);
	va_end(args);
	json_add_text(add_field(s, offset, field), "value", text);
}

void sheet_odd(struct sheet *s, uint64_t offset, const char *format, ...)
{
	struct json_object *made;
	char text[SHEET_SENTENCE];
	va_list args;

	if (s->odd_count++ >= SHEET_ODD_MAX)
		return;
	va_start(args, format);
	write_sentence(text, format, args);
	va_end(args);
	made = json_object_new_object();
	json_add_text(made, "part", s->name);
	json_add_number(made, "offset", offset);
	if (s->line)
		json_add_number(made, "line", s->line);
	json_add_text(made, "what", text);
	json_object_array_add(s->odd, made);
}

/* "" for a member that is not there. */
static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *member = json_object_object_get(o, key);

	return member ? json_object_get_string(member) : "";
}

static uint64_t number_of(struct json_object *o, const char *key)
{
	struct json_object *member = json_object_object_get(o, key);

	return member ? json_object_get_uint64(member) : 0;
}

/* A place of a binary file is a byte, one of a text is a line. */
static void print_place(struct json_object *o, FILE *stream)
{
	uint64_t line = number_of(o, "line");

	if (line)
		fprintf(stream, "line %" PRIu64, line);
	else
		fprintf(stream, "byte %" PRIu64, number_of(o, "offset"));
}

static void print_field(struct json_object *field, bool binary, FILE *stream)
{
	const char *means = text_of(field, "means");

	if (binary)
		fprintf(stream, "%10" PRIu64, number_of(field, "offset"));
	fprintf(stream, "  %-20s %s%s%s\n", text_of(field, "field"), text_of(field, "value"),
		*means ? "  " : "", means);
}

static void print_sheet_part(struct json_object *part, FILE *stream)
{
	struct json_object *fields = json_object_object_get(part, "fields");
	const char *says = text_of(part, "says");

	fprintf(stream, "\n%s, ", text_of(part, "part"));
	print_place(part, stream);
	fprintf(stream, "%s%s\n", *says ? ": " : "", says);
	for (size_t i = 0; i < json_object_array_length(fields); i++)
		print_field(json_object_array_get_idx(fields, i), !number_of(part, "line"), stream);
}

static void print_odd(const struct sheet *s, FILE *stream)
{
	size_t count = json_object_array_length(s->odd);

	if (!s->odd_count) {
		fputs("\nNothing is odd.\n", stream);
		return;
	}
	fprintf(stream, "\nOdd, %" PRIu64 " in all:\n", s->odd_count);
	for (size_t i = 0; i < count; i++) {
		struct json_object *o = json_object_array_get_idx(s->odd, i);

		fputs("  ", stream);
		print_place(o, stream);
		fprintf(stream, ", %s: %s\n", text_of(o, "part"), text_of(o, "what"));
	}
	if (s->odd_count > count)
		fprintf(stream, "  and %" PRIu64 " more\n", s->odd_count - count);
}

void sheet_print(const struct sheet *s, FILE *stream)
{
	size_t count = json_object_array_length(s->parts);

	if (*s->verdict)
		fprintf(stream, "%s\n", s->verdict);
	for (size_t i = 0; i < count; i++)
		print_sheet_part(json_object_array_get_idx(s->parts, i), stream);
	if (s->part_count > count)
		fprintf(stream, "\n%" PRIu64 " more parts were examined and are not shown.\n",
			s->part_count - count);
	print_odd(s, stream);
}

void sheet_document(struct sheet *s, struct json_object *document)
{
	json_add_text(document, "verdict", *s->verdict ? s->verdict : NULL);
	json_add_number(document, "part_count", s->part_count);
	json_add_number(document, "odd_count", s->odd_count);
	json_object_object_add(document, "parts", s->parts);
	json_object_object_add(document, "odd", s->odd);
	*s = (struct sheet){0};
}
