/* SPDX-License-Identifier: MIT */
/* Inside embeng_stacking_make(): options with their defaults, tables with their numbers. */
#ifndef EMBENG_STACKER_H
#define EMBENG_STACKER_H

#include <stdint.h>

#include "base/error.h"
#include "model/model.h"

#define STACK_COLUMNS 8 /* a row is padded to a multiple of so many */
#define STACK_ROWS 8	/* so the rows of a table on each core */
#define NO_STACK SIZE_MAX

/**
 * struct stackable - a table before it is stacked
 * @width: padded
 * @height: padded rows
 * @samples: of one core, as the flavour's rule counts them for the limit
 * @all_samples: of one device
 * @features: that use it
 * @stack: that it is in
 * @position: in the stack
 */
struct stackable {
	int64_t width, height, samples, all_samples, features;
	size_t stack, position;
};

/**
 * struct stacker - one call under way
 * @options: defaults filled in
 * @tables: [model's tables]
 * @order: [model's tables] in which they are stacked
 * @firsts: [stack_count] a table of each stack
 * @names: [stack_count] given by hand, or NULL
 * @rotations: [model's tables] of a profile, or NULL
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

/* stacking_check.c: takes the options. 0, or a negative errno with a sentence. */
int stacker_options(struct stacker *s, const struct embeng_stacking_options *options);

/* stacking_table.c: numbers of all tables, and their order. */
int stacker_tables(struct stacker *s);
/* Samples on one device; 0: its shape is open, -1: more than 64 bits count. */
int64_t feature_samples(const struct feature *f);

/* stacking_alike.c: one optimizer and quantization, one combiner where the flavour wants that. */
bool same_optimizer(const struct table *a, const struct table *b);
bool same_quantization(const struct table *a, const struct table *b);
bool stackable_alike(const struct stacker *s, size_t a, size_t b);

/* stacking_fit.c: a stack for each table, by the rules or by hand. */
void stacker_fit(struct stacker *s);
int stacker_group(struct stacker *s);

/* stacking_name.c: malloc'd, or NULL without memory. @tables of @stack, in their order. */
char *stack_name(const struct stacker *s, const struct embeng_stack *stack);

#endif
