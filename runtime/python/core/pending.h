/* SPDX-License-Identifier: MIT */
/*
 * Gradients that wait for an update, for frameworks whose backward pass gives gradients and whose
 * optimizer step comes later. Nothing here needs Python; rules and errors are those of raw.h.
 */
#ifndef EMBENG_PYTHON_PENDING_H
#define EMBENG_PYTHON_PENDING_H

#include "raw.h"

/*
 * pending_push() - keep a copy of the gradients of some features, for pending_apply()
 * @part: among what is pending, lower parts come first, and those of one part in their order
 *
 * Features with coordinates (@indices) are refused: -ENOTSUP.
 */
int pending_push(int64_t engine, uint32_t part, const struct raw_feature *features, size_t count,
		 struct embeng_error *error);

/*
 * pending_apply() - make one update of all that is pending
 * @expected: how many pushes there must be; another number is -EPROTO, and leaves them there
 *
 * Without any there is no step. Whatever else it returns, nothing is pending afterwards.
 */
int pending_apply(int64_t engine, size_t expected, const struct raw_step *step,
		  struct embeng_error *error);

/* Drops what is pending. Return: how many pushes that were, or an error. */
int64_t pending_drop(int64_t engine, struct embeng_error *error);

/* Frees what is pending, before an engine is shut. */
void pending_free(struct open_engine *open);

#endif
