// SPDX-License-Identifier: MIT
/*
 * Reads a vector's optimizer as the library takes it. A key means the same in every kind that has
 * it, so one table of keys serves all.
 */
#include <stdlib.h>
#include <string.h>

#include "settings.h"
#include "value.h"

#define SETTING(key, type, member) {key, SETTING_##type, offsetof(struct embeng_optimizer, member)}

/* A key means the same in every kind that has it. */
static const struct setting settings[] = {
	SETTING("initial_accumulator_value", NUMBER, initial_accumulator_value),
	SETTING("momentum", NUMBER, momentum),
	SETTING("use_nesterov", SWITCH, use_nesterov),
	SETTING("exponent", NUMBER, exponent),
	SETTING("beta2", NUMBER, beta2),
	SETTING("epsilon", NUMBER, epsilon),
	SETTING("learning_rate_power", NUMBER, learning_rate_power),
	SETTING("l1_regularization_strength", NUMBER, l1_regularization_strength),
	SETTING("l2_regularization_strength", NUMBER, l2_regularization_strength),
	SETTING("beta", NUMBER, beta),
	SETTING("multiply_linear_by_learning_rate", SWITCH, multiply_linear_by_learning_rate),
	SETTING("allow_zero_accumulator", SWITCH, allow_zero_accumulator),
	SETTING("beta_1", NUMBER, beta_1),
	SETTING("beta_2", NUMBER, beta_2),
	SETTING("lazy_adam", TRISTATE, lazy_adam),
	SETTING("sum_inside_sqrt", TRISTATE, sum_inside_sqrt),
	SETTING("bias_correction", SWITCH, bias_correction),
	SETTING("beta1", NUMBER, beta1),
	SETTING("use_non_lazy", SWITCH, use_non_lazy),
	SETTING("rho", NUMBER, rho),
	SETTING("l1", NUMBER, l1),
	SETTING("l2", NUMBER, l2),
	SETTING("b1", NUMBER, b1),
	SETTING("b2", NUMBER, b2),
	SETTING("eps", NUMBER, eps),
	SETTING("update_accumulator_first", SWITCH, update_accumulator_first),
	SETTING("max_var_update", NUMBER, max_var_update),
	SETTING("max_accumulator", NUMBER, max_accumulator),
	SETTING("tau", NUMBER, tau),
	SETTING("max_delta", NUMBER, max_delta),
	SETTING("outlier_threshold", NUMBER, outlier_threshold),
	SETTING("weight_exponent", NUMBER, weight_exponent),
	SETTING("max_lr_multiplier", NUMBER, max_lr_multiplier),
	SETTING("probability_exponent", NUMBER, probability_exponent),
	SETTING("accumulator_decay", NUMBER, accumulator_decay),
	SETTING("step_counter", NAME, step_counter),
	SETTING("lr_power", NUMBER, lr_power),
	SETTING("min_servable_mdl_benefit", NUMBER, min_servable_mdl_benefit),
	SETTING("mdl_mix_in_margin", NUMBER, mdl_mix_in_margin),
	SETTING("mdl_benefit_rampup_coeff", NUMBER, mdl_benefit_rampup_coeff),
	SETTING("mdl_min_weight", NUMBER, mdl_min_weight),
	SETTING("benefit_revisit_scale", NUMBER, benefit_revisit_scale),
	SETTING("max_event_benefit", NUMBER, max_event_benefit),
	SETTING("max_total_benefit", NUMBER, max_total_benefit),
	SETTING("mdl_hard_limit", NUMBER, mdl_hard_limit),
	SETTING("hard_limit_min_benefit", SWITCH, hard_limit_min_benefit),
	SETTING("mean_gradient", SWITCH, mean_gradient),
	SETTING("epsilon_hat", SWITCH, epsilon_hat),
	SETTING("weight_decay_in_gradient", SWITCH, weight_decay_in_gradient),
	SETTING("scale_by_frequency", SWITCH, scale_by_frequency),
	SETTING("max_norm", NUMBER, max_norm),
	SETTING("mdl_regularize", SWITCH, mdl_regularize),
	SETTING("weight_decay_factor", NUMBER, weight_decay_factor),
	SETTING("multiply_weight_decay_factor_by_learning_rate", INT,
		multiply_weight_decay_by_rate),
	SETTING("use_gradient_accumulation", TRISTATE, use_gradient_accumulation),
	SETTING("low_dimensional_packing_status", SWITCH, low_dimensional_packing),
};

const struct setting *setting_find(const char *key)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (!strcmp(settings[i].key, key))
			return &settings[i];
	}
	return NULL;
}

static void store_setting(struct embeng_optimizer *o, const struct setting *setting,
			  const struct json *value)
{
	void *at = (char *)o + setting->at;

	switch (setting->type) {
	case SETTING_NUMBER:
		*(float *)at = (float)value_number(value);
		break;
	case SETTING_NAME:
		*(const char **)at = text_member(value, "dynamic", NULL);
		break;
	case SETTING_SWITCH:
		*(unsigned char *)at = json_true(value);
		break;
	case SETTING_INT:
		*(int *)at = json_true(value);
		break;
	case SETTING_TRISTATE:
		*(enum embeng_tristate *)at = json_true(value) ? EMBENG_ON : EMBENG_OFF;
		break;
	}
}

/* Some kinds have another default rate than the others. */
static float default_rate(const char *kind)
{
	static const char *const hundredth[] = {"sgd", "proximal_yogi", "online_yogi",
						"frequency_aware_adagrad"};

	for (size_t i = 0; i < sizeof(hundredth) / sizeof(hundredth[0]); i++) {
		if (!strcmp(hundredth[i], kind))
			return 0.01f;
	}
	return 0.001f;
}

static bool start_optimizer(const struct json *spec, struct embeng_optimizer *o)
{
	const char *kind = text_member(spec, "kind", "");
	float rate = default_rate(kind);

	if (embeng_optimizer_by_name(kind, rate, o))
		return false;
	if (o->kind == EMBENG_ADAM && bool_member(spec, "bias_correction", false))
		*o = embeng_adam_corrected(rate);
	return true;
}

static void set_limit(const struct json *limit, unsigned char *has, float *value)
{
	*has = !json_is(limit, JSON_NULL);
	if (*has)
		*value = (float)value_number(limit);
}

static void set_clips(const struct json *spec, struct embeng_optimizer *o)
{
	const struct json *clip = member(spec, "clipvalue");

	set_limit(member(spec, "clip_weight_min"), &o->has_clip_weight_min, &o->clip_weight_min);
	set_limit(member(spec, "clip_weight_max"), &o->has_clip_weight_max, &o->clip_weight_max);
	if (json_is(clip, JSON_ARRAY)) {
		set_limit(json_at(clip, 0), &o->has_clip_min, &o->clip_min);
		set_limit(json_at(clip, 1), &o->has_clip_max, &o->clip_max);
		return;
	}
	set_limit(clip, &o->has_clip_min, &o->clip_min);
	set_limit(clip, &o->has_clip_max, &o->clip_max);
	o->clip_min = -o->clip_min;
}

/* {hyperparameter: name} */
static void set_dynamic(const struct json *map, struct embeng_optimizer *o)
{
	struct embeng_dynamic *list = json_length(map) ? calloc(json_length(map), sizeof(*list))
						       : NULL;

	if (!list)
		return;
	o->dynamic = list;
	o->dynamic_count = json_length(map);
	for (size_t i = 0; i < o->dynamic_count; i++) {
		list[i].hyperparameter = json_name(map, i);
		list[i].name = text_member(map, list[i].hyperparameter, NULL);
	}
}

bool optimizer_read(const struct json *spec, struct embeng_optimizer *o)
{
	const struct json *rate = member(spec, "learning_rate");

	if (!start_optimizer(spec, o))
		return false;
	o->rate_name = text_member(rate, "dynamic", NULL);
	if (rate && !o->rate_name)
		o->learning_rate = (float)value_number(rate);
	set_clips(spec, o);
	for (size_t i = 0; i < json_length(spec); i++) {
		const char *key = json_name(spec, i);
		const struct json *value = json_at(spec, i);
		const struct setting *setting = setting_find(key);

		if (setting && !json_is(value, JSON_NULL))
			store_setting(o, setting, value);
	}
	set_dynamic(member(spec, "dynamic"), o);
	return true;
}
