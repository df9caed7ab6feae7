/* SPDX-License-Identifier: MIT */
/* The batches that a plan supposes. */
#ifndef EMBENG_PLAN_SUPPOSE_H
#define EMBENG_PLAN_SUPPOSE_H

#include "../../../engine/model/plan.h"
#include "model/shape.h"

/*
 * suppose_options() - check the options of a plan, and fill in defaults
 * @options: NULL: all defaults
 *
 * Return: 0, -EINVAL, -ERANGE.
 */
int suppose_options(const struct embeng_model *model, const struct embeng_plan_options *options,
		    struct embeng_plan_options *out);

/*
 * suppose_feature() - the largest batch of a feature
 * @options: from suppose_options()
 * @output: out: its shape
 *
 * Return: 0, or -ERANGE with a sentence that names the feature.
 */
int suppose_feature(const struct embeng_model *model, const struct embeng_plan_options *options,
		    size_t feature, struct output *output, struct plan_input *input);

#endif
