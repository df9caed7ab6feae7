// SPDX-License-Identifier: MIT
/*
 * Looks for gradients that are not finite when they are handed in, so that the call that brings one
 * can refuse it. Those that are copied are looked at while they are in the cache. Those that wait
 * for a fence are not here yet, and the engine looks at them.
 *
 * Called without e->lock; the gradients are the caller's or the slot's, and nobody else's.
 */
#include <inttypes.h>
#include <stdio.h>

#include "../../../engine/kernels/kernels.h"
#include "base/ask.h"
#include "session.h"

#define COPY_PIECE 8192u /* floats; they are still in the nearest cache after they were copied */
#define CHECK_PIECE (1u << 20) /* floats that are looked at before the program is asked */

int gradient_error(const struct embeng *e, uint64_t step, uint32_t replica, uint32_t feature,
		   uint64_t element, float value)
{
	const struct feature *f = &e->model->features[feature];
	uint64_t dim = (uint64_t)e->model->tables[f->table].dim, row = element / dim;
	uint64_t length = f->max_sequence_length ? (uint64_t)f->max_sequence_length : 1;
	char position[48] = "";

	if (length > 1)
		snprintf(position, sizeof(position), ", position %" PRIu64, row % length);
	return error_set(-ERANGE, EMBENG_STATUS_GRADIENT,
			 "step %" PRIu64 ", replica %" PRIu32 ": feature %s, sample %" PRIu64
			 "%s, column %" PRIu64 " (element %" PRIu64 "): the gradient is %g, but "
			 "must be finite; no row was touched. Correct it, or give the model "
			 "another policy (non_finite)",
			 step, replica, f->name, row / length, position, element % dim, element,
			 (double)value);
}

static int refuse_given_gradient(const struct embeng *e, const struct slot *slot, size_t f,
				 uint64_t element, float value)
{
	return gradient_error(e, slot->step, slot->replica, (uint32_t)f, element, value);
}

/*
 * Sums are not checked: the program has checked the gradients of which it made them, and a sum of
 * finite gradients need not be finite.
 */
bool gradients_are_checked(const struct embeng *e, const struct slot *slot, size_t f)
{
	return e->model->engine.non_finite == EMBENG_NON_FINITE_ERROR &&
	       !slot_takes_sums(e, slot, f);
}

int gradients_check(const struct embeng *e, const struct slot *slot, size_t f, const float *from)
{
	uint64_t count = gradients_are_checked(e, slot, f) ? slot->elements[f] : 0;
	int ret = 0;

	for (uint64_t at = 0, n; !ret && at < count; at += n) {
		uint64_t bad;

		n = count - at < CHECK_PIECE ? count - at : CHECK_PIECE;
		bad = kernel_finite_until(e->kernels, from + at, n);
		ret = bad < n ? refuse_given_gradient(e, slot, f, at + bad, from[at + bad])
			      : ask_program();
	}
	return ret;
}

int gradients_copy(struct embeng *e, const struct slot *slot, size_t f, float *to,
		   const float *from)
{
	uint64_t count = slot->elements[f], most = CHECK_PIECE;
	bool checks = gradients_are_checked(e, slot, f);
	int ret = 0;

	if (checks)
		most = COPY_PIECE;
	for (uint64_t at = 0, n; !ret && at < count; at += n) {
		uint64_t bad;

		n = count - at < most ? count - at : most;
		copy_counted(e, to + at, from + at, 4 * n);
		bad = checks ? kernel_finite_until(e->kernels, to + at, n) : n;
		ret = bad < n ? refuse_given_gradient(e, slot, f, at + bad, to[at + bad])
			      : ask_program();
	}
	return ret;
}
