/* SPDX-License-Identifier: MIT */
/* How a structure of the library is described, so that it can be read from a dictionary. */
#ifndef EMBENG_PYTHON_SETTINGS_H
#define EMBENG_PYTHON_SETTINGS_H

#include "core.h"

#include <stddef.h>

enum setting_kind {
	SETTING_F32,
	SETTING_BOOL,	  /* unsigned char */
	SETTING_SWITCH,	  /* int */
	SETTING_TRISTATE, /* True, False, or not given */
	SETTING_I64,
	SETTING_U32,
	SETTING_U64,
	SETTING_SIZE,
	SETTING_TEXT,  /* const char * */
	SETTING_CHARS, /* char[], only described */
	SETTING_NAME,  /* an enum, by the words of @names */
	SETTING_SKIP,  /* read elsewhere */
};

struct setting {
	const char *name;
	size_t offset;
	enum setting_kind kind;
	const char *const *names;
};

struct structure {
	const char *name;
	const struct setting *settings;
};

/* structures.c; core.h has those that other files use. */
extern const struct structure structure_optimizer, structure_schedule, structure_initializer;

/* settings.c: raises a TypeError about a setting. Return: -1. */
int settings_fail_type(const struct structure *structure, const char *name, PyObject *value,
		       const char *wanted);
/* settings.c: a text, or None for NULL. */
PyObject *settings_describe_text(const char *text);

#endif
