// SPDX-License-Identifier: MIT
/*
 * The table of optimizers: for each kind its keys with ranges and defaults, and its slots. Checks,
 * blobs, checkpoints and the protobuf all go by it.
 *
 * The tables are constant; any thread may call.
 */
#include <stddef.h>
#include <stdio.h>

#include "embeng_engine.h"
#include "optimizer.h"

#define AT(member) offsetof(struct embeng_optimizer, member)
#define KEY(member, type, range, hyper, start) {#member, AT(member), type, range, hyper, start}
#define NUMBER(member, range, start) KEY(member, KEY_NUMBER, RANGE_##range, true, start)
#define SWITCH(member) KEY(member, KEY_SWITCH, RANGE_FINITE, true, 0.0f)
#define COUNTED(array) sizeof(array) / sizeof((array)[0]), array

static const struct optimizer_slot adagrad_slots[] = {
	{"accumulators", AT(initial_accumulator_value), 0.0f},
};
static const struct optimizer_key adagrad_keys[] = {
	NUMBER(epsilon, FROM_0, 0.0f),
	KEY(initial_accumulator_value, KEY_NUMBER, RANGE_FROM_0, false, 0.1f),
};

static const struct optimizer_slot adagrad_momentum_slots[] = {
	{"accumulators", 0, 0.0f},
	{"momenta", 0, 0.0f},
};
static const struct optimizer_key adagrad_momentum_keys[] = {
	NUMBER(momentum, FINITE, 0.0f),	  SWITCH(use_nesterov),
	NUMBER(exponent, ABOVE_0, 2.0f),  NUMBER(beta2, 0_TO_1, 1.0f),
	NUMBER(epsilon, ABOVE_0, 1e-10f),
};

static const struct optimizer_slot ftrl_slots[] = {
	{"accumulators", AT(initial_accumulator_value), 0.0f},
	{"linears", 0, 0.0f},
};
static const struct optimizer_key ftrl_keys[] = {
	NUMBER(learning_rate_power, TO_0, -0.5f),
	NUMBER(l1_regularization_strength, FROM_0, 0.0f),
	NUMBER(l2_regularization_strength, FROM_0, 0.0f),
	NUMBER(beta, FROM_0, 0.0f),
	SWITCH(multiply_linear_by_learning_rate),
	KEY(initial_accumulator_value, KEY_NUMBER, RANGE_ABOVE_0, false, 0.1f),
	KEY(allow_zero_accumulator, KEY_SWITCH, RANGE_FINITE, false, 0.0f),
};

static const struct optimizer_slot adam_slots[] = {
	{"momenta", 0, 0.0f},
	{"velocities", 0, 0.0f},
};
static const struct optimizer_key adam_keys[] = {
	NUMBER(beta_1, 0_BELOW_1, 0.9f),
	NUMBER(beta_2, 0_BELOW_1, 0.999f),
	NUMBER(epsilon, ABOVE_0, 1e-7f),
	KEY(sum_inside_sqrt, KEY_TRISTATE, RANGE_FINITE, true, 0.0f),
	SWITCH(bias_correction),
	SWITCH(epsilon_hat),
	KEY(lazy_adam, KEY_TRISTATE, RANGE_FINITE, false, 0.0f),
};

static const struct optimizer_slot momentum_slots[] = {
	{"momenta", 0, 0.0f},
};
static const struct optimizer_key momentum_keys[] = {
	NUMBER(momentum, FINITE, 0.9f),
	SWITCH(use_nesterov),
};

static const struct optimizer_slot lion_slots[] = {
	{"momenta", 0, 0.0f},
};
static const struct optimizer_key lion_keys[] = {
	NUMBER(beta1, 0_BELOW_1, 0.9f),
	NUMBER(beta2, 0_BELOW_1, 0.99f),
	KEY(use_non_lazy, KEY_SWITCH, RANGE_FINITE, false, 0.0f),
};

static const struct optimizer_slot rms_prop_slots[] = {
	{"ms", 0, 0.0f},
	{"mom", 0, 0.0f},
};
static const struct optimizer_key rms_prop_keys[] = {
	NUMBER(rho, 0_TO_1, 0.9f),
	NUMBER(momentum, FINITE, 0.0f),
	NUMBER(epsilon, ABOVE_0, 1e-10f),
};

static const struct optimizer_slot centered_rms_prop_slots[] = {
	{"ms", 0, 0.0f},
	{"mom", 0, 0.0f},
	{"mg", 0, 0.0f},
};

static const struct optimizer_slot adadelta_slots[] = {
	{"accumulators", 0, 0.0f},
	{"updates", 0, 0.0f},
};
static const struct optimizer_key adadelta_keys[] = {
	NUMBER(rho, 0_TO_1, 0.95f),
	NUMBER(epsilon, ABOVE_0, 1e-8f),
};

static const struct optimizer_key proximal_adagrad_keys[] = {
	NUMBER(l1, FROM_0, 0.0f),
	NUMBER(l2, FROM_0, 0.0f),
	KEY(initial_accumulator_value, KEY_NUMBER, RANGE_ABOVE_0, false, 0.1f),
};

static const struct optimizer_slot laprop_slots[] = {
	{"mu", 0, 0.0f},
	{"nu", 0, 0.0f},
};
static const struct optimizer_key laprop_keys[] = {
	NUMBER(b1, 0_BELOW_1, 0.9f),
	NUMBER(b2, 0_BELOW_1, 0.95f),
	NUMBER(eps, ABOVE_0, 1e-30f),
};

static const struct optimizer_slot proximal_yogi_slots[] = {
	{"v", AT(initial_accumulator_value), 0.0f},
	{"m", 0, 0.0f},
};
static const struct optimizer_key proximal_yogi_keys[] = {
	NUMBER(l1, FROM_0, 0.0f),
	NUMBER(l2, FROM_0, 0.0f),
	NUMBER(beta1, 0_BELOW_1, 0.9f),
	NUMBER(beta2, 0_BELOW_1, 0.999f),
	NUMBER(epsilon, ABOVE_0, 1e-3f),
	KEY(initial_accumulator_value, KEY_NUMBER, RANGE_ABOVE_0, false, 1e-6f),
};

static const struct optimizer_key bounded_adagrad_keys[] = {
	SWITCH(update_accumulator_first),
	NUMBER(max_var_update, FROM_0, 0.0f),
	NUMBER(max_accumulator, FROM_0, 0.0f),
	KEY(initial_accumulator_value, KEY_NUMBER, RANGE_ABOVE_0, false, 0.1f),
};

static const struct optimizer_slot online_yogi_slots[] = {
	{"vs", 0, 0.1f},
	{"linears", 0, 0.0f},
};
static const struct optimizer_key online_yogi_keys[] = {
	NUMBER(l1, FROM_0, 0.0f),
	NUMBER(l2, FROM_0, 0.0f),
	NUMBER(beta2, 0_BELOW_1, 0.999f),
};

static const struct optimizer_slot frequency_estimator_slots[] = {
	{"last_hit_step", 0, 0.0f},
};
static const struct optimizer_key frequency_estimator_keys[] = {
	NUMBER(tau, 0_TO_1, 0.01f),
	NUMBER(max_delta, ABOVE_0, 10000.0f),
	NUMBER(outlier_threshold, FROM_0, 100.0f),
	NUMBER(weight_exponent, FINITE, 1.0f),
};

static const struct optimizer_slot frequency_aware_adagrad_slots[] = {
	{"accumulators", AT(initial_accumulator_value), 0.0f},
	{"counters", 0, 0.0f},
};
static const struct optimizer_key frequency_aware_adagrad_keys[] = {
	NUMBER(l1_regularization_strength, FROM_0, 0.0f),
	NUMBER(l2_regularization_strength, FROM_0, 0.0f),
	NUMBER(max_lr_multiplier, ABOVE_0, 1e6f),
	NUMBER(probability_exponent, FINITE, 0.5f),
	NUMBER(accumulator_decay, 0_TO_1, 1.0f),
	NUMBER(initial_accumulator_value, ABOVE_0, 0.1f),
};

static const struct optimizer_slot mdl_adagrad_light_slots[] = {
	{"accumulators", 0, 0.1f},
	{"weights", 0, 0.0f},
	{"benefits", 0, 0.0f},
};
static const struct optimizer_key mdl_adagrad_light_keys[] = {
	NUMBER(l2, FROM_0, 0.0f),
	NUMBER(lr_power, TO_0, -0.5f),
	NUMBER(min_servable_mdl_benefit, FINITE, 0.0f),
	NUMBER(mdl_mix_in_margin, FROM_0, 0.0f),
	NUMBER(mdl_benefit_rampup_coeff, FROM_0, 0.0f),
	NUMBER(mdl_min_weight, 0_TO_1, 0.0f),
	NUMBER(benefit_revisit_scale, 0_TO_1, 0.0f),
	NUMBER(max_event_benefit, FROM_0, 0.0f),
	NUMBER(max_total_benefit, FROM_0, 0.0f),
	NUMBER(mdl_hard_limit, FROM_0, 0.0f),
	SWITCH(hard_limit_min_benefit),
	SWITCH(mdl_regularize),
};

static const struct optimizer_key rowwise_adagrad_keys[] = {
	NUMBER(epsilon, ABOVE_0, 1e-8f),
	SWITCH(mean_gradient),
	KEY(initial_accumulator_value, KEY_NUMBER, RANGE_FROM_0, false, 0.0f),
};

static const struct optimizer_key partial_rowwise_adam_keys[] = {
	NUMBER(beta_1, 0_BELOW_1, 0.9f),
	NUMBER(beta_2, 0_BELOW_1, 0.999f),
	NUMBER(epsilon, ABOVE_0, 1e-8f),
};

static const struct optimizer_info infos[] = {
	[EMBENG_OPTIMIZER_NO] = {NULL, EMBENG_OPTIMIZER_NONE, false, 0, NULL, 0, NULL},
	[EMBENG_SGD] = {"sgd", EMBENG_OPTIMIZER_SGD, true, 0, NULL, 0, NULL},
	[EMBENG_ADAGRAD] = {"adagrad", EMBENG_OPTIMIZER_ADAGRAD, true, COUNTED(adagrad_slots),
			    COUNTED(adagrad_keys)},
	[EMBENG_ADAGRAD_MOMENTUM] = {"adagrad_momentum", EMBENG_OPTIMIZER_ADAGRAD_MOMENTUM, false,
				     COUNTED(adagrad_momentum_slots),
				     COUNTED(adagrad_momentum_keys)},
	[EMBENG_FTRL] = {"ftrl", EMBENG_OPTIMIZER_FTRL, false, COUNTED(ftrl_slots),
			 COUNTED(ftrl_keys)},
	[EMBENG_ADAM] = {"adam", EMBENG_OPTIMIZER_ADAM, false, COUNTED(adam_slots),
			 COUNTED(adam_keys)},
	[EMBENG_MOMENTUM] = {"momentum", EMBENG_OPTIMIZER_MOMENTUM, false, COUNTED(momentum_slots),
			     COUNTED(momentum_keys)},
	[EMBENG_LION] = {"lion", EMBENG_OPTIMIZER_LION, false, COUNTED(lion_slots),
			 COUNTED(lion_keys)},
	[EMBENG_RMS_PROP] = {"rms_prop", EMBENG_OPTIMIZER_RMS_PROP, false, COUNTED(rms_prop_slots),
			     COUNTED(rms_prop_keys)},
	[EMBENG_CENTERED_RMS_PROP] = {"centered_rms_prop", EMBENG_OPTIMIZER_CENTERED_RMS_PROP,
				      false, COUNTED(centered_rms_prop_slots),
				      COUNTED(rms_prop_keys)},
	[EMBENG_ADADELTA] = {"adadelta", EMBENG_OPTIMIZER_ADADELTA, false, COUNTED(adadelta_slots),
			     COUNTED(adadelta_keys)},
	[EMBENG_PROXIMAL_ADAGRAD] = {"proximal_adagrad", EMBENG_OPTIMIZER_PROXIMAL_ADAGRAD, false,
				     COUNTED(adagrad_slots), COUNTED(proximal_adagrad_keys)},
	[EMBENG_ASSIGN] = {"assign", EMBENG_OPTIMIZER_ASSIGN, false, 0, NULL, 0, NULL},
	[EMBENG_LAPROP] = {"laprop", EMBENG_OPTIMIZER_LAPROP, false, COUNTED(laprop_slots),
			   COUNTED(laprop_keys)},
	[EMBENG_PROXIMAL_YOGI] = {"proximal_yogi", EMBENG_OPTIMIZER_PROXIMAL_YOGI, false,
				  COUNTED(proximal_yogi_slots), COUNTED(proximal_yogi_keys)},
	[EMBENG_BOUNDED_ADAGRAD] = {"bounded_adagrad", EMBENG_OPTIMIZER_BOUNDED_ADAGRAD, false,
				    COUNTED(adagrad_slots), COUNTED(bounded_adagrad_keys)},
	[EMBENG_ONLINE_YOGI] = {"online_yogi", EMBENG_OPTIMIZER_ONLINE_YOGI, false,
				COUNTED(online_yogi_slots), COUNTED(online_yogi_keys)},
	[EMBENG_FREQUENCY_ESTIMATOR] = {"frequency_estimator", EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR,
					false, COUNTED(frequency_estimator_slots),
					COUNTED(frequency_estimator_keys)},
	[EMBENG_FREQUENCY_AWARE_ADAGRAD] = {"frequency_aware_adagrad",
					    EMBENG_OPTIMIZER_FREQUENCY_AWARE_ADAGRAD, false,
					    COUNTED(frequency_aware_adagrad_slots),
					    COUNTED(frequency_aware_adagrad_keys)},
	[EMBENG_MDL_ADAGRAD_LIGHT] = {"mdl_adagrad_light", EMBENG_OPTIMIZER_MDL_ADAGRAD_LIGHT,
				      false, COUNTED(mdl_adagrad_light_slots),
				      COUNTED(mdl_adagrad_light_keys)},
	[EMBENG_ROWWISE_ADAGRAD] = {"rowwise_adagrad", EMBENG_OPTIMIZER_ROWWISE_ADAGRAD, false,
				    COUNTED(adagrad_slots), COUNTED(rowwise_adagrad_keys)},
	[EMBENG_PARTIAL_ROWWISE_ADAM] = {"partial_rowwise_adam",
					 EMBENG_OPTIMIZER_PARTIAL_ROWWISE_ADAM, false,
					 COUNTED(adam_slots), COUNTED(partial_rowwise_adam_keys)},
};

const struct optimizer_info *optimizer_info(enum embeng_optimizer_name kind)
{
	return (size_t)kind < sizeof(infos) / sizeof(infos[0]) ? &infos[kind] : NULL;
}

const char *slot_names(enum embeng_optimizer_name kind, const char *none,
		       char text[SLOT_NAMES_TEXT])
{
	const struct optimizer_info *info = optimizer_info(kind);
	size_t at = 0;

	snprintf(text, SLOT_NAMES_TEXT, "%s", none);
	for (size_t i = 0; i < info->slot_count && at < SLOT_NAMES_TEXT; i++)
		at += (size_t)snprintf(text + at, SLOT_NAMES_TEXT - at, "%s%s",
				       i == 0			   ? ""
				       : i + 1 == info->slot_count ? " and "
								   : ", ",
				       info->slots[i].name);
	return text;
}
