/* SPDX-License-Identifier: MIT */
/* The internals of embeng_stacking_make(): options with defaults, tables with their sizes. */
#ifndef EMBENG_STACKER_H
#define EMBENG_STACKER_H

#include <stdint.h>

#include "base/error.h"
#include "model/model.h"
#include "embeng/stacking.h"

#define STACK_COLUMNS 8 /* rows are padded to a multiple of this many columns */
#define STACK_ROWS 8	/* a table's rows on each core are padded to a multiple of this */
#define NO_STACK SIZE_MAX

/**
 * struct stackable - a table before it is stacked
 * @width: padded columns
 * @height: padded rows
 * @samples: samples of one core, as the flavour counts them for its limit
 * @all_samples: samples of one device
 * @features: number of features that use the table
 * @stack: stack that the table is in
 * @position: position of the table in the stack
 */
struct stackable {
	int64_t width, height, samples, all_samples, features;
	size_t stack, position;
};

/**
 * struct stacker - state of one call of embeng_stacking_make()
 * @options: options with defaults filled in
 * @tables: [tables of the model] sizes
 * @order: [tables of the model] order in which they are stacked
 * @firsts: [stack_count] a table of each stack
 * @names: [stack_count] names given by hand, or NULL
 * @rotations: [tables of the model] rotations from a profile, or NULL
 */
struct stacker {
	const struct embeng_model *model;
	struct embeng_stacking_options options;
	struct stackable *tables;
	size_t *order;
	size_t *firsts;
	const char **names;
	uint32_t *rotations;
	size_t stack_count;
};

/* stacking_check.c: checks and copies the options. 0, or a negative errno with a sentence. */
int stacker_options(struct stacker *s, const struct embeng_stacking_options *options);

/* stacking_table.c: computes the sizes of all tables, and their order. */
int stacker_tables(struct stacker *s);
/* Samples on one device; 0: the feature's shape is not known, -1: more than fit into 64 bits. */
int64_t feature_samples(const struct feature *f);

/* stacking_alike.c: compares tables, which share a stack only if their settings are equal. */
bool same_optimizer(const struct table *a, const struct table *b);
bool same_quantization(const struct table *a, const struct table *b);
bool stackable_alike(const struct stacker *s, size_t a, size_t b);

/* stacking_fit.c: chooses a stack for each table, by the rules or as given by hand. */
void stacker_fit(struct stacker *s);
int stacker_group(struct stacker *s);

/* stacking_name.c: makes the name of a stack from its tables, malloc'd; NULL without memory. */
char *stack_name(const struct stacker *s, const struct embeng_stack *stack);

#endif
