/* SPDX-License-Identifier: MIT */
/* The vector format as data: the keys of each object, and their types. */
#ifndef CLI_VECTOR_SCHEMA_H
#define CLI_VECTOR_SCHEMA_H

#include <stdbool.h>

enum value_type {
	TYPE_TEXT,
	TYPE_TEXTS,
	TYPE_BOOL,
	TYPE_INTEGER,
	TYPE_INTEGERS,
	TYPE_NUMBER,	    /* a number, or "nan", "inf", "-inf" */
	TYPE_INTEGER_LISTS, /* [[i, ...], ...] */
	TYPE_NESTED,	    /* numbers in lists of any depth */
	TYPE_MATRIX,	    /* nested, fill, arange or row_id */
	TYPE_GRADIENT,	    /* nested or fill */
	TYPE_WEIGHTS,	    /* numbers, or lists of numbers */
	TYPE_RATE,
	TYPE_DYNAMIC, /* a number or {"dynamic": name} */
	TYPE_CLIP,    /* a number or [low, high], either null */
	TYPE_ITEMS,   /* lists of four numbers */
	TYPE_OBJECT,  /* keys */
	TYPE_OBJECTS, /* a list of them */
	TYPE_MAP,     /* any name, each value an object of keys */
	TYPE_MAP_NESTED,
	TYPE_MAP_MATRIX,
	TYPE_MAP_NUMBER,
	TYPE_MAP_TEXT,
	TYPE_MAP_GRADIENT, /* may be null */
	TYPE_ERROR,	   /* errno, contains */
	TYPE_OPTIMIZER,
	TYPE_INPUT,
	TYPE_CONFIG, /* one of hex and import_hex */
	TYPE_STEP,
};

struct key {
	const char *name; /* NULL ends a list */
	enum value_type type;
	enum { OPTIONAL, REQUIRED, NULLABLE } need; /* NULLABLE: optional, null is as if absent */
	const struct key *keys;
};

extern const struct key vector_keys[], model_keys[];
extern const struct key step_error_keys[];

/* The verbs of a step, each with its keys. */
extern const struct key step_verbs[];

/* Keys that all optimizers have, and keys of one kind; NULL for kinds that may have any key. */
extern const struct key optimizer_common_keys[];
const struct key *optimizer_keys(const char *kind);
bool optimizer_is_known(const char *kind);
/* Whether any kind of optimizer has this key. */
bool optimizer_has_key(const char *name);

/* Keys of inputs, for each form. */
extern const struct key input_dense_keys[], input_sparse_keys[], input_ragged_keys[];
extern const struct key ragged_rows_keys[], ragged_splits_keys[];

#endif
