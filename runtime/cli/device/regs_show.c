// SPDX-License-Identifier: MIT
/*
 * Shows registers with their fields, as lines for people or as a document. They are chosen by
 * names of registers, groups and fields, which regs.c has checked.
 */
#include "regs_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../frame/exit.h"
#include "registers.h"

/* True if @name means this register, a group that it is in, or one of its fields. */
static bool is_named_register(const char *name, const struct reg *reg)
{
	size_t length = strcspn(name, ".");
	const struct reg_group *group = register_group_find(name);

	if (register_find(name, length) == reg)
		return true;
	return group && register_group_of(reg) == group;
}

static bool shows_register(const struct regs_chosen *chosen, const struct reg *reg)
{
	for (size_t i = 0; i < chosen->count; i++) {
		if (is_named_register(chosen->names[i], reg))
			return true;
	}
	return !chosen->count;
}

/* False if only fields of the register are named. */
static bool shows_whole_register(const struct regs_chosen *chosen, const struct reg *reg)
{
	bool named = false;

	for (size_t i = 0; i < chosen->count; i++) {
		if (!is_named_register(chosen->names[i], reg))
			continue;
		if (!strchr(chosen->names[i], '.'))
			return true;
		named = true;
	}
	return !named;
}

static bool shows_field(const struct regs_chosen *chosen, const struct reg *reg,
			const struct reg_field *field)
{
	if (shows_whole_register(chosen, reg))
		return true;
	for (size_t i = 0; i < chosen->count; i++) {
		const char *dot = strchr(chosen->names[i], '.');

		if (dot && is_named_register(chosen->names[i], reg) &&
		    register_field_find(reg, dot + 1) == field)
			return true;
	}
	return false;
}

#define LINE_COLUMNS 78
#define FIELD_INDENT 7

/* Prints the next word of a list, on a new line where the old one is full. */
static void print_flag(const char *name, int *column)
{
	int width = (int)strlen(name);

	if (*column && *column + 2 + width > LINE_COLUMNS) {
		printf(",\n%*s", FIELD_INDENT + 5, "");
		*column = FIELD_INDENT + 5;
	} else {
		*column += printf("%s", *column ? ", " : "");
	}
	printf("%s", name);
	*column += width;
}

/* Flags that are set share lines, since a register may have two dozen of them. */
static void print_set_flags(const struct reg *reg, uint64_t value)
{
	int column = 0;

	for (size_t i = 0; i < register_field_count; i++) {
		const struct reg_field *field = &register_fields[i];

		if (field->offset != reg->offset || field->kind != REG_FIELD_FLAG ||
		    !register_field_read(field, value))
			continue;
		if (!column)
			printf("%*sset: ", FIELD_INDENT, "");
		print_flag(field->name, &column);
	}
	if (column)
		putchar('\n');
}

static void print_fields(const struct regs_chosen *chosen, const struct reg *reg, uint64_t value)
{
	char text[REG_FIELD_TEXT];
	bool flags = false;

	for (size_t i = 0; i < register_field_count; i++) {
		const struct reg_field *field = &register_fields[i];
		bool flag = field->kind == REG_FIELD_FLAG;

		if (field->offset != reg->offset || !shows_field(chosen, reg, field))
			continue;
		if (flag && shows_whole_register(chosen, reg))
			flags = true;
		else
			printf("%*s.%-19s %s\n", FIELD_INDENT - 2, "", field->name,
			       register_field_text(field, register_field_read(field, value), text));
	}
	if (flags)
		print_set_flags(reg, value);
}

static void print_register(const struct regs_chosen *chosen, const struct reg *reg,
			   const char *page)
{
	uint64_t value = register_read(reg, page);

	printf("%03x  %-20s %#18" PRIx64 "  %-6s  %s\n", reg->offset, reg->name, value,
	       strcmp(reg->writer, "DEVICE") ? "driver" : "device", reg->words);
	print_fields(chosen, reg, value);
}

static struct json_object *document_field(const struct reg_field *field, uint64_t value)
{
	struct json_object *row = json_object_new_object();
	uint64_t number = register_field_read(field, value);
	char text[REG_FIELD_TEXT];

	json_add_text(row, "name", field->name);
	json_add_number(row, "bit", field->bit);
	json_add_number(row, "bits", field->bits);
	json_add_number(row, "value", number);
	json_add_text(row, "value_name", register_value_name(field, number));
	json_add_text(row, "text", register_field_text(field, number, text));
	return row;
}

static struct json_object *document_register(const struct regs_chosen *chosen,
					     const struct reg *reg, const char *page)
{
	struct json_object *row = json_object_new_object(), *fields = json_object_new_array();
	uint64_t value = register_read(reg, page);

	json_add_text(row, "name", reg->name);
	json_add_text(row, "group", register_group_of(reg)->name);
	json_add_number(row, "offset", reg->offset);
	json_add_number(row, "bytes", reg->bytes);
	json_add_number(row, "value", value);
	json_add_text(row, "writer", strcmp(reg->writer, "DEVICE") ? "driver" : "device");
	json_add_text(row, "meaning", reg->words);
	for (size_t i = 0; i < register_field_count; i++) {
		const struct reg_field *field = &register_fields[i];

		if (field->offset == reg->offset && shows_field(chosen, reg, field))
			json_object_array_add(fields, document_field(field, value));
	}
	json_object_object_add(row, "fields", fields);
	return row;
}

struct json_object *regs_document(const struct output *out, const struct regs_chosen *chosen,
				  const char *device, const char *page)
{
	struct json_object *document = json_document(out), *rows = json_object_new_array();

	for (size_t i = 0; i < register_count; i++) {
		if (shows_register(chosen, &registers[i]))
			json_object_array_add(rows, document_register(chosen, &registers[i], page));
	}
	json_add_text(document, "device", device);
	json_object_object_add(document, "registers", rows);
	return document;
}

int regs_show(const struct output *out, const struct regs_chosen *chosen, const char *device,
	      const char *page)
{
	if (out->json)
		return json_emit(regs_document(out, chosen, device, page));
	printf("registers of %s\n", device);
	for (size_t i = 0; i < register_count; i++) {
		if (shows_register(chosen, &registers[i]))
			print_register(chosen, &registers[i], page);
	}
	return CLI_OK;
}
