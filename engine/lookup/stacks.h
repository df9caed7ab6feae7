/* SPDX-License-Identifier: MIT */
/*
 * The stacks of a LOOKUP: partitioned CSR becomes rows and weights by sample, as the other forms
 * have them, and all that comes later knows no difference. Memory of the program is read once:
 * row pointers and items as they are met, into what is checked and used from then on.
 */
#ifndef EMBENG_ENGINE_STACKS_H
#define EMBENG_ENGINE_STACKS_H

#include "batch.h"

/**
 * struct stack_member - a member with what its stack and its feature say of it
 * @given: private copy
 * @f: NULL: nobody's
 * @samples: on each core
 * @first: its first sample within a core
 * @token: that of its table's first row
 * @rows: its table's
 * @count: items so far
 * @limit: the most of them
 * @finite: gains must be
 */
struct stack_member {
	struct embeng_lookup_member given;
	struct batch_feature *f;
	u32 samples, first, token;
	u64 rows, count, limit;
	bool finite;
};

/* An item that is read: checked, its partition left behind. */
struct stack_item {
	u64 place;  /* member of the stack, row of its table */
	u32 sample; /* numbered within the feature */
	u32 gain;
};

/* One stack, its members known. */
struct stack {
	u32 index;
	const struct embeng_lookup_stack *given;
	struct stack_member *members;
	u32 samples; /* on each core */
};

/* The header alone. *bytes: its own, with those of the stacks and members behind the features. */
u16 stacks_check_header(const struct engine *engine, const struct embeng_lookup *header, u64 *bytes,
			struct fault *fault);

/* Stacks and members, as the checked header has them. */
u16 stacks_copy(struct model *model, struct stacks *stacks, const u8 *from, struct fault *fault);

/* A feature that is to be in a stack, on its own. */
u16 stacks_check_feature(const struct embeng_lookup_feature *g, u32 index, struct fault *fault);

/* Checks all stacks against the features, which are checked; then takes them apart. */
u16 stacks_accept(struct command *command, struct batch *batch, struct stacks *stacks,
		  bool training);

/* stacks_take.c: the items of one stack become its features' rows. */
u16 stacks_take(struct command *command, struct stacks *stacks, struct stack *stack, bool training);

void stacks_free(struct stacks *stacks);

#endif
