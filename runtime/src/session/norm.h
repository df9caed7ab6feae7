/* SPDX-License-Identifier: MIT */
/*
 * The parts of embeng_gradient_norm() that one process and a group of hosts share: which touches a table has,
 * and the sums of squares of its columns. Columns never meet before they are added up, so hosts may have some
 * each.
 */
#ifndef EMBENG_NORM_H
#define EMBENG_NORM_H

#include "touches.h"

/**
 * struct norm_call - the parts of a step whose norm is asked for
 * @parts: [@count], checked
 * @held: [@held_count] bags of the combiner max with their holders, by part and then by feature
 */
struct norm_call {
	struct embeng *e;
	struct given_gradients *parts;
	size_t count;
	struct held_bags *held;
	size_t held_count;
};

/**
 * struct norm_fault - the first gradient that is not finite
 * @found: 1: there is one, which the others name
 */
struct norm_fault {
	uint64_t found, part, feature, sample, element;
};

/* Whether an update touches rows of @table for a feature of a part; without gradients they get zeros. */
bool norm_touches(const struct norm_call *call, size_t part, size_t feature, size_t table);
/* The holders of a feature of a part, or NULL: it has none. */
const uint32_t *norm_holders(const struct norm_call *call, size_t part, uint32_t feature);
/* All gradients count, also those that reach no row: an update would refuse them. */
struct norm_fault norm_find_fault(const struct norm_call *call);

/*
 * norm_add_columns() - sort touches by row, and sum the squares of each column over the rows
 * @touches: [2 * @count], of which the second half is room
 * @dim: columns that gradients and holders have
 * @columns: [2 * @dim] out: the sums, in the second half
 * Return: 0, -EINTR.
 */
int norm_add_columns(const struct table *t, struct touch *touches, size_t count, size_t dim,
		     double *columns);
/* The sum over the columns. */
double norm_sum_columns(const double *squares, size_t dim);

#endif
