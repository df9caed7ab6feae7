/* SPDX-License-Identifier: MIT */
/* Shared by the parts of embeng/spread.h: the call, its checks and its errors. */
#ifndef EMBENG_SPREAD_H
#define EMBENG_SPREAD_H

#include "embeng/spread.h"
#include "session.h"

/* The name of the call that runs a command. */
const char *spread_call(uint16_t opcode);

/*
 * spread_check.c: checks all that can be checked without looking at ids. 0, or a negative errno with a
 * sentence.
 */
int spread_check(const struct embeng *e, uint16_t opcode, const struct embeng_spread *batch);

/* The sentence of a command that failed. Returns the negative errno. */
int spread_error(uint16_t opcode, const struct embeng_spread *batch, const struct embeng_cqe *c);

/* Whether a command reads the rows of a table's list. */
static inline bool spread_reads_rows(uint16_t opcode, const struct embeng_spread_table *t)
{
	return opcode == EMBENG_OP_POOL || (opcode == EMBENG_OP_SUM && t->combiner == EMBENG_MAX);
}

/* Rows of a feature's activations. */
static inline uint64_t spread_outputs(const struct embeng_spread_feature *f)
{
	return f->samples *
	       (f->max_sequence_length && f->offsets ? (uint64_t)f->max_sequence_length : 1);
}

#endif
