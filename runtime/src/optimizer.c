// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdbool.h>

#include "config.h"

struct embeng_optimizer embeng_sgd(float learning_rate)
{
	return (struct embeng_optimizer){
		.size = sizeof(struct embeng_optimizer),
		.kind = EMBENG_SGD,
		.learning_rate = learning_rate,
	};
}

struct embeng_optimizer embeng_adagrad(float learning_rate)
{
	return (struct embeng_optimizer){
		.size = sizeof(struct embeng_optimizer),
		.kind = EMBENG_ADAGRAD,
		.learning_rate = learning_rate,
		.initial_accumulator_value = 0.1f,
	};
}

static int number_check(bool ok, const char *where, const char *what, float value,
			const char *allowed)
{
	return ok ? 0 : fail(-ERANGE, "%s: %s %g must be %s", where, what, (double)value, allowed);
}

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
	return 0;
}

static int clips_check(const char *where, const struct embeng_optimizer *o)
{
	int code = limits_check(where, "clip_weight", o->has_clip_weight_min, o->clip_weight_min,
				o->has_clip_weight_max, o->clip_weight_max);

	if (!code)
		code = limits_check(where, "clip", o->has_clip_min, o->clip_min, o->has_clip_max,
				    o->clip_max);
	if (!code && (o->has_clip_min || o->has_clip_max) &&
	    o->use_gradient_accumulation == EMBENG_OFF)
		code = fail(-EINVAL,
			    "%s: gradient clipping needs gradient accumulation, which is off; "
			    "clip_min and clip_max limit a row's summed gradient",
			    where);
	return code;
}

static int rate_check(const char *where, const struct embeng_optimizer *o)
{
	if (!o->rate_name)
		return number_check(isfinite(o->learning_rate), where, "learning_rate",
				    o->learning_rate, "finite");
	return name_check("learning rate", o->rate_name);
}

static int form_check(const char *where, const struct embeng_optimizer *o)
{
	if (o->kind != EMBENG_SGD && o->kind != EMBENG_ADAGRAD)
		return fail(-EINVAL,
			    "%s: optimizer kind %d is unknown; there are EMBENG_OPTIMIZER_NO, "
			    "EMBENG_SGD and EMBENG_ADAGRAD",
			    where, (int)o->kind);
	if (o->size != sizeof(*o))
		return fail(-EINVAL,
			    "%s: the optimizer's size %zu is not %zu; start from embeng_sgd() "
			    "or embeng_adagrad()",
			    where, o->size, sizeof(*o));
	if ((unsigned int)o->use_gradient_accumulation > EMBENG_ON)
		return fail(-EINVAL,
			    "%s: use_gradient_accumulation %d is not EMBENG_DEFAULT, "
			    "EMBENG_OFF or EMBENG_ON",
			    where, (int)o->use_gradient_accumulation);
	return 0;
}

int optimizer_check(const char *where, const struct embeng_optimizer *o)
{
	int code;

	if (o->kind == EMBENG_OPTIMIZER_NO)
		return 0;
	code = form_check(where, o);
	if (!code)
		code = rate_check(where, o);
	if (!code && o->kind == EMBENG_ADAGRAD)
		code = number_check(o->initial_accumulator_value > 0.0f &&
					    isfinite(o->initial_accumulator_value),
				    where, "initial_accumulator_value",
				    o->initial_accumulator_value, "above 0 and finite");
	if (!code)
		code = clips_check(where, o);
	if (!code)
		code = number_check(o->weight_decay_factor >= 0.0f &&
					    isfinite(o->weight_decay_factor),
				    where, "weight_decay_factor", o->weight_decay_factor,
				    "0 (none) or above, and finite");
	return code;
}

int initializer_check(const char *where, const struct embeng_initializer *i)
{
	int code;

	if ((unsigned int)i->kind > EMBENG_INIT_TRUNCATED_NORMAL)
		return fail(-EINVAL, "%s: initializer kind %d is unknown; 0 to %d are known", where,
			    (int)i->kind, EMBENG_INIT_TRUNCATED_NORMAL);
	if (i->kind == EMBENG_INIT_DEFAULT)
		return 0;
	code = number_check(isfinite(i->a), where, "initializer a", i->a, "finite");
	if (code || i->kind == EMBENG_INIT_CONSTANT)
		return code;
	code = number_check(isfinite(i->b), where, "initializer b", i->b, "finite");
	if (!code && i->kind == EMBENG_INIT_UNIFORM && i->a > i->b)
		code = fail(-ERANGE, "%s: the uniform initializer's a %g is above its b %g", where,
			    (double)i->a, (double)i->b);
	if (!code && i->kind == EMBENG_INIT_TRUNCATED_NORMAL)
		code = number_check(i->b >= 0.0f, where, "initializer's deviation b", i->b,
				    "0 or above");
	return code;
}
