/* SPDX-License-Identifier: MIT */
/* The internals of embeng_partition(): the stack, its descriptor and its answer. */
#ifndef EMBENG_PARTITIONING_H
#define EMBENG_PARTITIONING_H

#include "session/session.h"
#include "embeng/stacking.h"

/* A feature of the stack. */
struct place {
	size_t feature;
	uint64_t column_offset;
	uint32_t rotation;
};

/* The features of a batch that have an input, and the places of their tables in the stack. */
struct stack {
	const struct embeng_batch *b;
	const struct embeng_partition_options *o;
	struct place *places;
	size_t count;
	uint64_t columns; /* rows of all tables in the stack, padded */
	uint64_t ids;
};

/*
 * partition_stack.c: makes a stack of a batch's features. 0, or a negative errno with a sentence.
 * Freed by stack_free().
 */
int stack_make(const struct embeng_batch *b, const struct embeng_partition_options *o,
	       struct stack *stack);
void stack_free(struct stack *stack);
/* Makes one stack of a stacking, all of whose features have an input. */
int stack_take(const struct embeng_batch *b, const struct embeng_partition_options *o,
	       const struct embeng_stacking *stacking, size_t index, struct stack *stack);
/* The most row pointers and items that a stack can have. */
void stack_room(const struct stack *stack, uint64_t *row_pointers, uint64_t *items);

/* partition.c: checks that a batch can be partitioned. 0, or a negative errno with a sentence. */
int partition_check_batch(const char *what, const struct embeng *e, const struct embeng_batch *b);
int stack_partition(const struct stack *stack, struct embeng_partitioned *out);

/* handle/check.c: checks that the stacking is given and belongs to the model of @e. */
int check_stacking(const char *what, const struct embeng *e,
		   const struct embeng_stacking *stacking);

/* Checks a grid against a flavour. 0, or a negative errno with a sentence that @what starts. */
int grid_check(const char *what, enum embeng_partition_flavour flavour, uint32_t cores,
	       uint32_t each);

/* partition_error.c: sets the sentence of a PARTITION that failed. Returns the negative errno. */
int partition_error(const struct stack *stack, const struct embeng_cqe *c);

static inline const struct table *stack_table(const struct stack *stack, size_t feature)
{
	const struct embeng_model *model = stack->b->e->model;

	return &model->tables[model->features[feature].table];
}

#endif
