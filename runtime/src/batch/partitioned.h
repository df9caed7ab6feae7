/* SPDX-License-Identifier: MIT */
/* Inputs in partitioned CSR form, as a batch keeps them for the engine. */
#ifndef EMBENG_PARTITIONED_H
#define EMBENG_PARTITIONED_H

#include "session/session.h"

/**
 * struct stack_input - a copy of the input of one stack
 * @name: name of the stack
 * @given: numbers for the descriptor; memory keys are added with the slot
 * @members: [given.member_count]
 * @row_pointers: [@pointer_count]; all arrays are parts of one allocation, @memory
 */
struct stack_input {
	char *name;
	struct embeng_lookup_stack given;
	struct embeng_lookup_member *members;
	uint64_t pointer_count;
	void *memory;
	uint64_t *bounds; /* [2][given.device_cores] */
	int32_t *row_pointers, *tokens, *samples;
	float *gains;
};

struct partitioned {
	size_t count;
	struct stack_input stacks[];
};

/* Frees partitioned inputs. NULL is ignored. */
void partitioned_free(struct partitioned *p);

/* Arrays of a stack, in the order of the engine's descriptor. */
enum { STACK_POINTERS, STACK_TOKENS, STACK_SAMPLES, STACK_GAINS, STACK_BOUNDS, STACK_ARRAYS };

/* Whether @feature gets its input from its stack. */
bool is_partitioned(const struct embeng_batch *b, uint32_t feature);

/* The next stack from *at on that some feature still uses, or NULL. *at moves behind it. */
const struct stack_input *next_stack(const struct embeng_batch *b, size_t *at);

/*
 * partitioned_describe.c: stacks and members of a LOOKUP. @arrays: room for STACK_ARRAYS of each
 * stack.
 */
struct stack_counts {
	uint32_t stacks, members;
};
struct stack_counts stacks_list(const struct embeng_batch *b, struct array *arrays);
uint64_t stacks_bytes(const struct stack_counts *counts);
void stacks_write(const struct embeng_batch *b, const struct array *arrays, char *to);

/* Items of a partition, [at, end). */
struct stack_place {
	uint32_t core, minibatch, partition;
	uint64_t at, end;
};

/**
 * partitioned_walk() - visit the partitions of a stack that have items and are within its bounds
 * @fn: called for each partition; returning true ends the walk
 *
 * Return: whether @fn ended the walk.
 */
bool partitioned_walk(const struct stack_input *s,
		      bool (*fn)(void *arg, const struct stack_place *place), void *arg);

/*
 * The member that a sample of a core belongs to, or NULL. @first: out, the member's first sample on each
 * core; may be NULL
 */
const struct embeng_lookup_member *partitioned_member(const struct stack_input *s, int32_t sample,
						      uint64_t *first);

/**
 * struct partitioned_item - one item of a feature
 * @row: row of its table
 * @sample: sample of the feature
 * @gain: factor of the row
 */
struct partitioned_item {
	int64_t row;
	uint64_t sample;
	float gain;
};

/*
 * partitioned_rows.c: calls @fn for each item of a feature, in order, except those whose row its table
 * does not have; how many these are at most.
 */
void partitioned_each(const struct embeng_batch *b, uint32_t feature,
		      void (*fn)(void *arg, const struct partitioned_item *item), void *arg);
size_t partitioned_most(const struct embeng_batch *b, uint32_t feature);

/*
 * partitioned_error.c: sets the sentence of a LOOKUP that failed because of a stack. Returns the
 * errno.
 */
int partitioned_error(const struct embeng_batch *b, const struct embeng_cqe *c);

#endif
