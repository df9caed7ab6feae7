// SPDX-License-Identifier: MIT
/*
 * Decides whether two tables may stand in one stack: their optimizers, quantizations and, for JAX,
 * combiners must be the same.
 *
 * Only arguments are read; no lock is needed.
 */
#include <string.h>

#include "model/optimizer.h"
#include "stacking.h"

static bool same_limit(bool has_a, float a, bool has_b, float b)
{
	return has_a == has_b && (!has_a || a == b);
}

static bool same_options(const struct embeng_optimizer *a, const struct embeng_optimizer *b)
{
	return a->use_gradient_accumulation == b->use_gradient_accumulation &&
	       !a->low_dimensional_packing == !b->low_dimensional_packing &&
	       same_limit(a->has_clip_min, a->clip_min, b->has_clip_min, b->clip_min) &&
	       same_limit(a->has_clip_max, a->clip_max, b->has_clip_max, b->clip_max) &&
	       same_limit(a->has_clip_weight_min, a->clip_weight_min, b->has_clip_weight_min,
			  b->clip_weight_min) &&
	       same_limit(a->has_clip_weight_max, a->clip_weight_max, b->has_clip_weight_max,
			  b->clip_weight_max) &&
	       a->weight_decay_factor == b->weight_decay_factor &&
	       !a->multiply_weight_decay_by_rate == !b->multiply_weight_decay_by_rate &&
	       !a->weight_decay_in_gradient == !b->weight_decay_in_gradient &&
	       !a->scale_by_frequency == !b->scale_by_frequency && a->max_norm == b->max_norm;
}

bool same_optimizer(const struct table *a, const struct table *b)
{
	const struct embeng_optimizer *one = &a->optimizer, *other = &b->optimizer;
	const struct optimizer_info *info = optimizer_info(one->kind);

	if (one->kind != other->kind || a->rate != b->rate || a->step_rate != b->step_rate ||
	    (a->rate < 0 && one->learning_rate != other->learning_rate) ||
	    memcmp(a->dynamic, b->dynamic, sizeof(a->dynamic)) != 0 || !same_options(one, other))
		return false;
	for (size_t i = 0; i < info->key_count; i++) {
		if (optimizer_value(one, &info->keys[i]) != optimizer_value(other, &info->keys[i]))
			return false;
	}
	return true;
}

bool same_quantization(const struct table *a, const struct table *b)
{
	const struct embeng_quantization *one = &a->quantization, *other = &b->quantization;

	return one->num_buckets == other->num_buckets && one->lower == other->lower &&
	       one->upper == other->upper;
}

bool stackable_alike(const struct stacker *s, size_t a, size_t b)
{
	const struct table *one = &s->model->tables[a], *other = &s->model->tables[b];

	return (s->options.flavour == EMBENG_PARTITION_TF || one->combiner == other->combiner) &&
	       same_optimizer(one, other) && same_quantization(one, other);
}
