/* SPDX-License-Identifier: MIT */
/* Partitioned CSR as a batch keeps it until the engine takes it apart. */
#ifndef EMBENG_PARTITIONED_H
#define EMBENG_PARTITIONED_H

#include "session/session.h"

/**
 * struct stack_input - copies of one stack
 * @name: of the stack
 * @given: numbers of the descriptor; keys come with the slot
 * @members: [given.member_count]
 * @row_pointers: [@pointer_count], all arrays in one piece of memory, @memory
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

/* NULL is fine. */
void partitioned_free(struct partitioned *p);

/* Arrays of a stack, in the order of the engine's descriptor. */
enum {
	STACK_POINTERS,
	STACK_TOKENS,
	STACK_SAMPLES,
	STACK_GAINS,
	STACK_BOUNDS,
	STACK_ARRAYS
};

/* Whether @feature's input is what its stack has. */
bool is_partitioned(const struct embeng_batch *b, uint32_t feature);

/* The next stack from *at on that some feature still takes, or NULL; *at goes behind it. */
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
 * partitioned_walk() - the partitions of a stack that have items, as far as they lie where they may
 * @fn: called for each; true ends the walk
 *
 * Return: whether it was ended.
 */
bool partitioned_walk(const struct stack_input *s,
		      bool (*fn)(void *arg, const struct stack_place *place), void *arg);

/* The member of a core's sample, or NULL. */
const struct embeng_lookup_member *partitioned_member(const struct stack_input *s, int32_t sample);

/*
 * partitioned_rows.c: the rows that a feature's items name, but for those that its table does not
 * have. Return: how many there can be, with @rows NULL; else how many there are.
 */
size_t partitioned_rows(const struct embeng_batch *b, uint32_t feature, int64_t *rows);

/* partitioned_error.c: the sentence of a LOOKUP that failed by a stack. Returns the errno. */
int partitioned_error(const struct embeng_batch *b, const struct embeng_cqe *c);

#endif
