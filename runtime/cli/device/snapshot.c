// SPDX-License-Identifier: MIT
/*
 * Snapshots of registers. A snapshot is the document that `embeng regs --save` writes, which is the
 * one of --json, so that a script can read it, too. Registers are compared by their names: a file may
 * come from another version of the command, which knows others.
 *
 * A snapshot is a plain structure of its caller's. The file is anybody's, so nothing in it is trusted.
 */
#include "snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../json/json_read.h"
#include "../frame/exit.h"
#include "../frame/infile.h"
#include "../frame/terminal.h"

#define FILE_MOST (1u << 20)
#define LEVELS 8

void snapshot_take(struct snapshot *s, const char *device, const char *page)
{
	s->file = NULL;
	snprintf(s->device, sizeof(s->device), "%s", device);
	s->count = register_count;
	for (size_t i = 0; i < register_count; i++) {
		snprintf(s->registers[i].name, SNAPSHOT_NAME, "%s", registers[i].name);
		s->registers[i].value = register_read(&registers[i], page);
	}
}

static bool read_snapshot_row(struct snapshot *s, const struct json *row)
{
	const struct json *name = json_get(row, "name"), *value = json_get(row, "value");

	if (!json_is(name, JSON_TEXT) || !json_is(value, JSON_INTEGER) || value->negative ||
	    name->length >= SNAPSHOT_NAME || strlen(json_string(name)) != name->length)
		return false;
	snprintf(s->registers[s->count].name, SNAPSHOT_NAME, "%s", json_string(name));
	s->registers[s->count++].value = value->magnitude;
	return true;
}

static int read_snapshot(struct snapshot *s, const struct json *document, char *why)
{
	const struct json *rows = json_get(document, "registers");
	const char *device = json_string(json_get(document, "device"));

	if (!json_says(json_get(document, "schema"), "embeng.regs/1") ||
	    !json_is(rows, JSON_ARRAY)) {
		snprintf(why, SNAPSHOT_WHY,
			 "this is no snapshot of registers; embeng regs --save "
			 "writes one");
		return -EBADMSG;
	}
	snprintf(s->device, sizeof(s->device), "%s", device ? device : "");
	if (json_length(rows) > SNAPSHOT_MOST) {
		snprintf(why, SNAPSHOT_WHY, "%zu registers are more than a device has, at most %d",
			 json_length(rows), SNAPSHOT_MOST);
		return -EBADMSG;
	}
	for (size_t i = 0; i < json_length(rows); i++) {
		if (read_snapshot_row(s, json_at(rows, i)))
			continue;
		snprintf(why, SNAPSHOT_WHY,
			 "registers[%zu] lacks a name, or a value that is a whole number", i);
		return -EBADMSG;
	}
	return 0;
}

int snapshot_parse(struct snapshot *s, const char *text, size_t length, char why[SNAPSHOT_WHY])
{
	const struct json *document;
	char reason[JSON_WHY];
	int err = json_read(text, length, LEVELS, &document, reason);

	*s = (struct snapshot){0};
	if (err) {
		snprintf(why, SNAPSHOT_WHY, "%s", reason);
		return err;
	}
	err = read_snapshot(s, document, why);
	json_free(document);
	return err;
}

int snapshot_load(struct snapshot *s, const char *path, char why[SNAPSHOT_WHY])
{
	char *text, reason[SNAPSHOT_WHY];
	size_t length;
	int err = infile_read(path, FILE_MOST, &text, &length);

	if (err) {
		snprintf(why, SNAPSHOT_WHY, "%.160s: %s", path, strerror(-err));
		return err;
	}
	err = snapshot_parse(s, text, length, reason);
	free(text);
	if (err)
		snprintf(why, SNAPSHOT_WHY, "%.100s: %.150s", path, reason);
	s->file = path;
	return err;
}

static bool find_in_snapshot(const struct snapshot *s, const char *name, uint64_t *value)
{
	for (size_t i = 0; i < s->count; i++) {
		if (!strcmp(s->registers[i].name, name)) {
			*value = s->registers[i].value;
			return true;
		}
	}
	return false;
}

/**
 * struct change - a register that is not the same in both
 * @known: the register, or NULL if this version of the command does not know it
 */
struct change {
	const char *name;
	const struct reg *known;
	bool was, is;
	uint64_t before, after;
};

static void print_changed_fields(const struct change *c)
{
	char before[REG_FIELD_TEXT], after[REG_FIELD_TEXT];

	for (size_t i = 0; c->known && i < register_field_count; i++) {
		const struct reg_field *field = &register_fields[i];
		uint64_t was = register_field_read(field, c->before);
		uint64_t is = register_field_read(field, c->after);

		if (field->offset != c->known->offset || was == is)
			continue;
		printf("  %s.%s was %s, is %s\n", c->name, field->name,
		       register_field_text(field, was, before),
		       register_field_text(field, is, after));
	}
}

static void print_change(const struct change *c)
{
	terminal_put(c->name);
	if (!c->was || !c->is) {
		printf(" is only in the %s: %#" PRIx64 "\n", c->was ? "first" : "second",
		       c->was ? c->before : c->after);
		return;
	}
	printf(" was %#" PRIx64 ", is %#" PRIx64, c->before, c->after);
	if (c->known && c->after > c->before)
		printf(" (+%" PRIu64 ")", c->after - c->before);
	if (c->known)
		printf("  %s", c->known->words);
	putchar('\n');
	print_changed_fields(c);
}

static struct json_object *document_changed_fields(const struct change *c)
{
	struct json_object *list = json_object_new_array();
	char text[REG_FIELD_TEXT];

	for (size_t i = 0; c->known && c->was && c->is && i < register_field_count; i++) {
		const struct reg_field *field = &register_fields[i];
		uint64_t was = register_field_read(field, c->before);
		uint64_t is = register_field_read(field, c->after);
		struct json_object *row;

		if (field->offset != c->known->offset || was == is)
			continue;
		row = json_object_new_object();
		json_add_text(row, "name", field->name);
		json_add_number(row, "before", was);
		json_add_number(row, "after", is);
		json_add_text(row, "before_text", register_field_text(field, was, text));
		json_add_text(row, "after_text", register_field_text(field, is, text));
		json_object_array_add(list, row);
	}
	return list;
}

static struct json_object *document_change(const struct change *c)
{
	struct json_object *row = json_object_new_object();

	json_add_text(row, "register", c->name);
	json_object_object_add(row, "before", c->was ? json_object_new_uint64(c->before) : NULL);
	json_object_object_add(row, "after", c->is ? json_object_new_uint64(c->after) : NULL);
	json_add_text(row, "meaning", c->known ? c->known->words : NULL);
	json_object_object_add(row, "fields", document_changed_fields(c));
	return row;
}

static void note_change(struct json_object *list, const struct change *c, size_t *count)
{
	if (c->was && c->is && c->before == c->after)
		return;
	(*count)++;
	if (list)
		json_object_array_add(list, document_change(c));
	else
		print_change(c);
}

static struct json_object *document_side(const struct snapshot *s)
{
	struct json_object *side = json_object_new_object();

	json_add_text(side, "device", s->device);
	json_add_text(side, "file", s->file);
	return side;
}

/* Registers of @before first, then those that only @after has. */
static size_t list_changes(struct json_object *list, const struct snapshot *before,
			   const struct snapshot *after)
{
	size_t count = 0;

	for (size_t i = 0; i < before->count + after->count; i++) {
		bool first = i < before->count;
		const char *name = first ? before->registers[i].name
					 : after->registers[i - before->count].name;
		struct change c = {.name = name, .known = register_find(name, strlen(name))};

		c.was = find_in_snapshot(before, name, &c.before);
		c.is = find_in_snapshot(after, name, &c.after);
		if (first || !c.was)
			note_change(list, &c, &count);
	}
	return count;
}

int snapshot_compare(const struct output *out, const struct snapshot *before,
		     const struct snapshot *after)
{
	struct json_object *list = out->json ? json_object_new_array() : NULL, *document;
	size_t count = list_changes(list, before, after);

	if (!list) {
		printf("%zu of %zu registers changed\n", count, after->count);
		return CLI_OK;
	}
	document = json_document(out);
	json_object_object_add(document, "before", document_side(before));
	json_object_object_add(document, "after", document_side(after));
	json_object_object_add(document, "changes", list);
	return json_emit(document);
}
