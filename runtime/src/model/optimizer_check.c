// SPDX-License-Identifier: MIT
/*
 * Checks the settings of an optimizer, and says in a sentence which one is wrong and what is
 * allowed.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <math.h>

#include "base/check.h"
#include "optimizer.h"

/* A pair of limits, either of which may be missing. */
static int limits_check(const char *where, const char *what, bool has_min, float min, bool has_max,
			float max)
{
	if ((has_min && isnan(min)) || (has_max && isnan(max)))
		return fail(-ERANGE, "%s: %s [%g, %g] must be numbers", where, what, (double)min,
			    (double)max);
	if (has_min && has_max && min > max)
		return fail(-ERANGE, "%s: %s_min %g is above %s_max %g", where, what, (double)min,
			    what, (double)max);
	if (has_min && isinf(min) && min > 0)
		return fail(-ERANGE,
			    "%s: %s_min %g would make all numbers infinite; give a finite "
			    "one, or leave it out for no limit",
			    where, what, (double)min);
	if (has_max && isinf(max) && max < 0)
		return fail(-ERANGE,
			    "%s: %s_max %g would make all numbers infinite; give a finite "
			    "one, or leave it out for no limit",
			    where, what, (double)max);
	return 0;
}

static int clips_check(const char *where, const struct embeng_optimizer *o)
{
	int code = limits_check(where, "clip_weight", o->has_clip_weight_min, o->clip_weight_min,
				o->has_clip_weight_max, o->clip_weight_max);

	if (!code)
		code = limits_check(where, "clip", o->has_clip_min, o->clip_min, o->has_clip_max,
				    o->clip_max);
	if (!code &&
	    (o->has_clip_min || o->has_clip_max || number_is_dynamic(o, "clip_min") ||
	     number_is_dynamic(o, "clip_max")) &&
	    o->use_gradient_accumulation == EMBENG_OFF)
		code = fail(-EINVAL,
			    "%s: gradient clipping needs gradient accumulation, which is off; "
			    "clip_min and clip_max limit a row's summed gradient",
			    where);
	return code;
}

/* A constant rate, or that of a step. */
static int value_check(const char *where, const struct embeng_optimizer *o)
{
	int code = number_check(isfinite(o->learning_rate), where, "learning_rate",
				o->learning_rate, "finite");

	if (!code && o->kind == EMBENG_ONLINE_YOGI)
		code = number_check(o->learning_rate > 0.0f, where, "online_yogi: learning_rate",
				    o->learning_rate, "above 0, for the update divides by it");
	/* A switch that a step gives is looked at again in that step. */
	if (!code && o->kind == EMBENG_FTRL)
		code = o->multiply_linear_by_learning_rate ||
				       number_is_dynamic(o, "multiply_linear_by_learning_rate")
			       ? number_check(o->learning_rate >= 0.0f, where,
					      "ftrl: learning_rate", o->learning_rate, "0 or above")
			       : number_check(o->learning_rate > 0.0f, where, "ftrl: learning_rate",
					      o->learning_rate,
					      "above 0, for the update divides by it; 0 needs "
					      "multiply_linear_by_learning_rate");
	return code;
}

static int rate_check(const char *where, const struct embeng_optimizer *o)
{
	if (o->kind == EMBENG_FREQUENCY_AWARE_ADAGRAD && o->step_counter) {
		int code = name_check("step_counter", o->step_counter);

		if (code)
			return code;
	}
	return o->rate_name ? name_check("learning rate", o->rate_name) : value_check(where, o);
}

int optimizer_rate_check(const char *where, const struct embeng_optimizer *o, float rate)
{
	struct embeng_optimizer at = *o;

	at.learning_rate = rate;
	return value_check(where, &at);
}

static int tristate_check(const char *where, const char *what, enum embeng_tristate value)
{
	if ((unsigned int)value <= EMBENG_ON)
		return 0;
	return fail(-EINVAL, "%s: %s %d is not EMBENG_DEFAULT, EMBENG_OFF or EMBENG_ON", where,
		    what, (int)value);
}

static int range_check(const char *where, const char *what, enum key_range range, float x)
{
	static const char *const allowed[] = {
		[RANGE_FINITE] = "finite",
		[RANGE_ABOVE_0] = "above 0 and finite",
		[RANGE_FROM_0] = "0 or above, and finite",
		[RANGE_TO_0] = "0 or below, and finite",
		[RANGE_0_TO_1] = "within [0, 1]",
		[RANGE_0_BELOW_1] = "within [0, 1), 1 itself excluded",
	};
	const bool ok[] = {
		[RANGE_FINITE] = true,
		[RANGE_ABOVE_0] = x > 0.0f,
		[RANGE_FROM_0] = x >= 0.0f,
		[RANGE_TO_0] = x <= 0.0f,
		[RANGE_0_TO_1] = x >= 0.0f && x <= 1.0f,
		[RANGE_0_BELOW_1] = x >= 0.0f && x < 1.0f,
	};

	return number_check(ok[range] && isfinite(x), where, what, x, allowed[range]);
}

int optimizer_step_check(const char *where, float step)
{
	return range_check(where, "step_counter", RANGE_FROM_0, step);
}

int number_value_check(const char *where, const struct embeng_optimizer *o, int number, float value)
{
	const char *what = number_name(o->kind, number);
	const struct optimizer_key *key;

	if (number == NUMBER_DECAY || number == NUMBER_MAX_NORM)
		return range_check(where, what, RANGE_FROM_0, value);
	if (number == NUMBER_CLIP_MIN || number == NUMBER_CLIP_WEIGHT_MIN)
		return number_check(!isnan(value) && !(isinf(value) && value > 0), where, what,
				    value, "a number, or -inf for no limit");
	if (number < NUMBER_FIRST_KEY)
		return number_check(!isnan(value) && !(isinf(value) && value < 0), where, what,
				    value, "a number, or inf for no limit");
	key = number_key(o->kind, number);
	if (key->type == KEY_NUMBER)
		return range_check(where, what, key->range, value);
	return number_check((value == 0.0f && !signbit(value)) || value == 1.0f, where, what, value,
			    "0 or 1");
}

static int keys_check(const char *where, const struct embeng_optimizer *o)
{
	const struct optimizer_info *info = optimizer_info(o->kind);
	int code = 0;

	for (size_t i = 0; !code && i < info->key_count; i++) {
		const struct optimizer_key *key = &info->keys[i];
		const void *member = (const char *)o + key->at;

		if (key->type == KEY_NUMBER)
			code = range_check(where, key->name, key->range, optimizer_value(o, key));
		else if (key->type == KEY_TRISTATE)
			code = tristate_check(where, key->name,
					      *(const enum embeng_tristate *)member);
	}
	return code;
}

static int form_check(const char *where, const struct embeng_optimizer *o)
{
	if (!optimizer_info(o->kind))
		return fail(
			-EINVAL,
			"%s: optimizer kind %d is unknown; there are EMBENG_OPTIMIZER_NO and those "
			"from EMBENG_SGD to EMBENG_PARTIAL_ROWWISE_ADAM",
			where, (int)o->kind);
	if (o->size != sizeof(*o))
		return fail(-EINVAL,
			    "%s: the optimizer's size %zu is not %zu; start from embeng_sgd() "
			    "or the function of another kind",
			    where, o->size, sizeof(*o));
	return tristate_check(where, "use_gradient_accumulation", o->use_gradient_accumulation);
}

static int lazy_check(const char *where, const struct embeng_optimizer *o)
{
	if (o->use_gradient_accumulation != EMBENG_OFF)
		return 0;
	if (o->kind == EMBENG_ADAM && o->lazy_adam == EMBENG_OFF)
		return fail(-EINVAL,
			    "%s: lazy_adam off needs use_gradient_accumulation, which is off; "
			    "turn one of them on",
			    where);
	if (o->kind == EMBENG_LION && o->use_non_lazy)
		return fail(-EINVAL,
			    "%s: use_non_lazy needs use_gradient_accumulation, which is off; "
			    "turn use_non_lazy off or that on",
			    where);
	return 0;
}

static int dim_check(const char *where, const struct embeng_optimizer *o, int64_t dim)
{
	if (o->kind != EMBENG_FREQUENCY_ESTIMATOR || dim == 1)
		return 0;
	return fail(-EINVAL, "%s: frequency_estimator keeps one number a row: dim %lld must be 1",
		    where, (long long)dim);
}

/* Adagrad divides by the root of what is 0 in a row with no gradient yet. */
static int accumulator_check(const char *where, const struct embeng_optimizer *o)
{
	if (o->kind != EMBENG_ADAGRAD || o->epsilon > 0.0f)
		return 0;
	return number_check(o->initial_accumulator_value > 0.0f, where, "initial_accumulator_value",
			    o->initial_accumulator_value,
			    "above 0 and finite, unless epsilon is above 0");
}

static int weight_decay_check(const char *where, const struct embeng_optimizer *o)
{
	int code = range_check(where, "weight_decay_factor", RANGE_FROM_0, o->weight_decay_factor);

	if (code || !o->weight_decay_in_gradient)
		return code;
	if (o->kind == EMBENG_ASSIGN || o->kind == EMBENG_FREQUENCY_ESTIMATOR)
		return fail(-EINVAL,
			    "%s: weight_decay_in_gradient is not possible with %s, which does not "
			    "go along its gradient; turn it off",
			    where, embeng_optimizer_text(o->kind));
	if (o->multiply_weight_decay_by_rate)
		return fail(-EINVAL,
			    "%s: weight_decay_in_gradient is not possible with "
			    "multiply_weight_decay_by_rate, for the rate is in the step already; "
			    "turn one of them off",
			    where);
	return 0;
}

static int frequency_check(const char *where, const struct embeng_optimizer *o)
{
	if (!o->scale_by_frequency || o->use_gradient_accumulation != EMBENG_OFF)
		return 0;
	return fail(
		-EINVAL,
		"%s: scale_by_frequency needs use_gradient_accumulation, which is off; turn one "
		"of them on and the other off",
		where);
}

/* A neighbour in a packed line gets a gradient of 0, which must leave it alone. */
static int packing_check(const char *where, const struct embeng_optimizer *o, int64_t dim)
{
	if (!o->low_dimensional_packing)
		return 0;
	if (!optimizer_info(o->kind)->idle)
		return fail(-EINVAL,
			    "%s: low_dimensional_packing is not possible with %s, which a gradient "
			    "of 0 moves; sgd and adagrad allow it",
			    where, embeng_optimizer_text(o->kind));
	if (dim != 1 && dim != 2 && dim != 4)
		return fail(-EINVAL,
			    "%s: low_dimensional_packing is not possible with dim %lld; 1, 2 and 4 "
			    "allow it",
			    where, (long long)dim);
	return 0;
}

int optimizer_values_check(const char *where, const struct embeng_optimizer *o)
{
	int code = value_check(where, o);

	if (!code)
		code = keys_check(where, o);
	if (!code)
		code = clips_check(where, o);
	return code ? code : accumulator_check(where, o);
}

int optimizer_check(const char *where, const struct embeng_optimizer *o, int64_t dim)
{
	int code;

	if (o->kind == EMBENG_OPTIMIZER_NO)
		return 0;
	code = form_check(where, o);
	if (!code)
		code = dynamic_check(where, o);
	if (!code)
		code = rate_check(where, o);
	if (!code)
		code = keys_check(where, o);
	if (!code)
		code = clips_check(where, o);
	if (!code)
		code = accumulator_check(where, o);
	if (!code)
		code = weight_decay_check(where, o);
	if (!code)
		code = range_check(where, "max_norm", RANGE_FROM_0, o->max_norm);
	if (!code)
		code = frequency_check(where, o);
	if (!code)
		code = lazy_check(where, o);
	if (!code)
		code = dim_check(where, o, dim);
	return code ? code : packing_check(where, o, dim);
}
