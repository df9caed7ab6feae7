/* SPDX-License-Identifier: MIT */
/* Registers, their groups and their fields, by name and in words. */
#ifndef CLI_DEVICE_REGISTERS_H
#define CLI_DEVICE_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

/**
 * struct reg - a register, as EMBENG_REGISTER_TABLE has it
 * @writer: DEVICE or DRIVER
 */
struct reg {
	const char *name, *writer, *words;
	uint32_t offset, bytes;
};

/* A group of registers, as EMBENG_REGISTER_GROUP_TABLE has it: those from @first on and before @end. */
struct reg_group {
	const char *name, *words;
	uint32_t first, end;
};

enum reg_field_kind {
	REG_FIELD_NUMBER,
	REG_FIELD_FLAG,
	REG_FIELD_BOOT_STATE,
	REG_FIELD_BOOT_ERROR,
	REG_FIELD_DEVICE_STATUS,
	REG_FIELD_CONTROL,
};

/* A field of the register at @offset, as EMBENG_REGISTER_FIELD_TABLE has it. */
struct reg_field {
	uint32_t offset;
	const char *name;
	unsigned int bit, bits;
	enum reg_field_kind kind;
};

extern const struct reg registers[];
extern const size_t register_count;
extern const struct reg_group register_groups[];
extern const size_t register_group_count;
extern const struct reg_field register_fields[];
extern const size_t register_field_count;

/* These find by name, whatever the case; NULL: there is none of that name. */
const struct reg *register_find(const char *name, size_t length);
const struct reg_group *register_group_find(const char *name);
const struct reg_field *register_field_find(const struct reg *reg, const char *name);

/* The register or group whose name is nearest to @name, or NULL if none is near. */
const char *register_nearest(const char *name);

const struct reg_group *register_group_of(const struct reg *reg);

/* The register in a copy of the register page. */
uint64_t register_read(const struct reg *reg, const char *page);

/* The field in the value of its register. */
uint64_t register_field_read(const struct reg_field *field, uint64_t value);

#define REG_FIELD_TEXT 128

/* The value of a field: a number, "set" or "clear", or a name with what it means. */
const char *register_field_text(const struct reg_field *field, uint64_t value,
				char text[REG_FIELD_TEXT]);

/* The name of a value, "RUNNING"; NULL for numbers and flags, and for a value without a name. */
const char *register_value_name(const struct reg_field *field, uint64_t value);

#endif
