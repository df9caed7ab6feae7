// SPDX-License-Identifier: MIT
/*
 * Registers, groups and fields by name, and values in words. All of it comes from the tables of
 * embeng_regs.h and embeng_fields.h; this file only looks things up, for the verb regs and its
 * snapshots. Nothing here is allocated or changes.
 */
#include "registers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "embeng_fields.h"

#include "../frame/edit_distance.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct reg registers[] = {
#define ROW(name, offset, bytes, writer, reset, words) {#name, #writer, words, offset, bytes},
	EMBENG_REGISTER_TABLE(ROW)
#undef ROW
};

const size_t register_count = COUNT(registers);

const struct reg_group register_groups[] = {
#define ROW(name, first, end, words) {#name, words, first, end},
	EMBENG_REGISTER_GROUP_TABLE(ROW)
#undef ROW
};

const size_t register_group_count = COUNT(register_groups);

const struct reg_field register_fields[] = {
#define ROW(reg, name, bit, bits, kind) {EMBENG_REG_##reg, #name, bit, bits, REG_FIELD_##kind},
	EMBENG_REGISTER_FIELD_TABLE(ROW)
#undef ROW
#define ROW(name, value) {EMBENG_REG_OPTIMIZERS, #name, value, 1, REG_FIELD_FLAG},
		EMBENG_OPTIMIZER_TABLE(ROW)
#undef ROW
};

const size_t register_field_count = COUNT(register_fields);

static const struct {
	enum reg_field_kind kind;
	const char *name;
	uint64_t value;
	const char *words;
} values[] = {
#define ROW(kind, name, value, words) {REG_FIELD_##kind, #name, value, words},
	EMBENG_REGISTER_VALUE_TABLE(ROW)
#undef ROW
#define ROW(name, value, words) {REG_FIELD_BOOT_ERROR, #name, value, words},
		EMBENG_BOOT_ERROR_TABLE(ROW)
#undef ROW
};

const struct reg *register_find(const char *name, size_t length)
{
	for (size_t i = 0; i < register_count; i++) {
		if (strlen(registers[i].name) == length &&
		    !strncasecmp(registers[i].name, name, length))
			return &registers[i];
	}
	return NULL;
}

const struct reg_group *register_group_find(const char *name)
{
	for (size_t i = 0; i < register_group_count; i++) {
		if (!strcasecmp(register_groups[i].name, name))
			return &register_groups[i];
	}
	return NULL;
}

const struct reg_field *register_field_find(const struct reg *reg, const char *name)
{
	for (size_t i = 0; i < register_field_count; i++) {
		if (register_fields[i].offset == reg->offset &&
		    !strcasecmp(register_fields[i].name, name))
			return &register_fields[i];
	}
	return NULL;
}

const char *register_nearest(const char *name)
{
	const char *best = NULL;
	size_t least = 4;

	for (size_t i = 0; i < register_count + register_group_count; i++) {
		const char *other = i < register_count ? registers[i].name
						       : register_groups[i - register_count].name;
		size_t distance = edit_distance(name, other);

		if (distance < least) {
			least = distance;
			best = other;
		}
	}
	return best;
}

const struct reg_group *register_group_of(const struct reg *reg)
{
	const struct reg_group *group = register_groups;

	while (reg->offset >= group->end)
		group++;
	return group;
}

uint64_t register_read(const struct reg *reg, const char *page)
{
	uint32_t word;
	uint64_t value;

	if (reg->bytes == sizeof(word)) {
		memcpy(&word, page + reg->offset, sizeof(word));
		return word;
	}
	memcpy(&value, page + reg->offset, sizeof(value));
	return value;
}

uint64_t register_field_read(const struct reg_field *field, uint64_t value)
{
	return value >> field->bit & ((field->bits < 64 ? UINT64_C(1) << field->bits : 0) - 1);
}

static size_t find_value(const struct reg_field *field, uint64_t value)
{
	size_t i = 0;

	while (i < COUNT(values) && (values[i].kind != field->kind || values[i].value != value))
		i++;
	return i;
}

const char *register_value_name(const struct reg_field *field, uint64_t value)
{
	size_t i = find_value(field, value);

	return i < COUNT(values) ? values[i].name : NULL;
}

const char *register_field_text(const struct reg_field *field, uint64_t value,
				char text[REG_FIELD_TEXT])
{
	size_t i = find_value(field, value);

	if (field->kind == REG_FIELD_FLAG)
		snprintf(text, REG_FIELD_TEXT, "%s", value ? "set" : "clear");
	else if (field->kind == REG_FIELD_NUMBER)
		snprintf(text, REG_FIELD_TEXT, "%" PRIu64, value);
	else if (i < COUNT(values))
		snprintf(text, REG_FIELD_TEXT, "%s: %s", values[i].name, values[i].words);
	else
		snprintf(text, REG_FIELD_TEXT, "%" PRIu64 ", which has no name", value);
	return text;
}
