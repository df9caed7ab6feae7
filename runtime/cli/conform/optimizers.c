// SPDX-License-Identifier: MIT
/*
 * The keys of every kind of optimizer, as the vector format names them. They are apart from
 * keys.c, which would be too long with them.
 */
#include <stddef.h>
#include <string.h>

#include "schema.h"

const struct key optimizer_common_keys[] = {
	{"kind", TYPE_TEXT, REQUIRED, NULL},
	{"learning_rate", TYPE_RATE, OPTIONAL, NULL},
	{"clip_weight_min", TYPE_NUMBER, NULLABLE, NULL},
	{"clip_weight_max", TYPE_NUMBER, NULLABLE, NULL},
	{"clipvalue", TYPE_CLIP, NULLABLE, NULL},
	{"weight_decay_factor", TYPE_NUMBER, NULLABLE, NULL},
	{"multiply_weight_decay_factor_by_learning_rate", TYPE_BOOL, NULLABLE, NULL},
	{"use_gradient_accumulation", TYPE_BOOL, OPTIONAL, NULL},
	{"low_dimensional_packing_status", TYPE_BOOL, OPTIONAL, NULL},
	{"weight_decay_in_gradient", TYPE_BOOL, OPTIONAL, NULL},
	{"scale_by_frequency", TYPE_BOOL, OPTIONAL, NULL},
	{"max_norm", TYPE_NUMBER, OPTIONAL, NULL},
	{"dynamic", TYPE_MAP_TEXT, OPTIONAL, NULL},
	{0},
};

#define NUMBER_KEY(name) {name, TYPE_NUMBER, OPTIONAL, NULL}
#define BOOL_KEY(name) {name, TYPE_BOOL, OPTIONAL, NULL}

static const struct key none_keys[] = {{0}};
static const struct key adagrad_keys[] = {
	NUMBER_KEY("initial_accumulator_value"), NUMBER_KEY("epsilon"), {0}};
static const struct key adagrad_momentum_keys[] = {
	NUMBER_KEY("momentum"), BOOL_KEY("use_nesterov"), NUMBER_KEY("exponent"),
	NUMBER_KEY("beta2"),	NUMBER_KEY("epsilon"),	  {0},
};
static const struct key ftrl_keys[] = {
	NUMBER_KEY("learning_rate_power"),	  NUMBER_KEY("l1_regularization_strength"),
	NUMBER_KEY("l2_regularization_strength"), NUMBER_KEY("beta"),
	NUMBER_KEY("initial_accumulator_value"),  BOOL_KEY("multiply_linear_by_learning_rate"),
	BOOL_KEY("allow_zero_accumulator"),	  {0},
};
static const struct key adam_keys[] = {
	NUMBER_KEY("beta_1"),	     NUMBER_KEY("beta_2"),
	NUMBER_KEY("epsilon"),	     BOOL_KEY("lazy_adam"),
	BOOL_KEY("sum_inside_sqrt"), BOOL_KEY("bias_correction"),
	BOOL_KEY("epsilon_hat"),     {0},
};
static const struct key momentum_keys[] = {NUMBER_KEY("momentum"), BOOL_KEY("use_nesterov"), {0}};
static const struct key lion_keys[] = {
	NUMBER_KEY("beta1"), NUMBER_KEY("beta2"), BOOL_KEY("use_non_lazy"), {0}};
static const struct key rms_prop_keys[] = {
	NUMBER_KEY("rho"), NUMBER_KEY("momentum"), NUMBER_KEY("epsilon"), {0}};
static const struct key adadelta_keys[] = {NUMBER_KEY("rho"), NUMBER_KEY("epsilon"), {0}};
static const struct key proximal_adagrad_keys[] = {
	NUMBER_KEY("l1"), NUMBER_KEY("l2"), NUMBER_KEY("initial_accumulator_value"), {0}};
static const struct key bounded_adagrad_keys[] = {
	BOOL_KEY("update_accumulator_first"),
	NUMBER_KEY("max_var_update"),
	NUMBER_KEY("max_accumulator"),
	NUMBER_KEY("initial_accumulator_value"),
	{0},
};
static const struct key online_yogi_keys[] = {
	NUMBER_KEY("l1"), NUMBER_KEY("l2"), NUMBER_KEY("beta2"), {0}};
static const struct key proximal_yogi_keys[] = {
	NUMBER_KEY("l1"),
	NUMBER_KEY("l2"),
	NUMBER_KEY("beta1"),
	NUMBER_KEY("beta2"),
	NUMBER_KEY("epsilon"),
	NUMBER_KEY("initial_accumulator_value"),
	{0},
};
static const struct key mdl_adagrad_light_keys[] = {
	NUMBER_KEY("l2"),
	NUMBER_KEY("lr_power"),
	NUMBER_KEY("min_servable_mdl_benefit"),
	NUMBER_KEY("mdl_mix_in_margin"),
	NUMBER_KEY("mdl_benefit_rampup_coeff"),
	NUMBER_KEY("mdl_min_weight"),
	NUMBER_KEY("benefit_revisit_scale"),
	NUMBER_KEY("max_event_benefit"),
	NUMBER_KEY("max_total_benefit"),
	NUMBER_KEY("mdl_hard_limit"),
	BOOL_KEY("hard_limit_min_benefit"),
	BOOL_KEY("mdl_regularize"),
	{0},
};
static const struct key frequency_aware_adagrad_keys[] = {
	NUMBER_KEY("l1_regularization_strength"),
	NUMBER_KEY("l2_regularization_strength"),
	NUMBER_KEY("max_lr_multiplier"),
	NUMBER_KEY("probability_exponent"),
	NUMBER_KEY("accumulator_decay"),
	NUMBER_KEY("initial_accumulator_value"),
	{"step_counter", TYPE_DYNAMIC, OPTIONAL, NULL},
	{0},
};
static const struct key frequency_estimator_keys[] = {
	NUMBER_KEY("tau"),
	NUMBER_KEY("max_delta"),
	NUMBER_KEY("outlier_threshold"),
	NUMBER_KEY("weight_exponent"),
	{0},
};
static const struct key laprop_keys[] = {
	NUMBER_KEY("b1"), NUMBER_KEY("b2"), NUMBER_KEY("eps"), {0}};

static const struct key rowwise_adagrad_keys[] = {
	NUMBER_KEY("epsilon"),
	BOOL_KEY("mean_gradient"),
	NUMBER_KEY("initial_accumulator_value"),
	{0},
};

static const struct key partial_rowwise_adam_keys[] = {
	NUMBER_KEY("beta_1"), NUMBER_KEY("beta_2"), NUMBER_KEY("epsilon"), {0}};

static const struct {
	const char *kind;
	const struct key *keys;
} kinds[] = {
	{"sgd", none_keys},
	{"adagrad", adagrad_keys},
	{"adagrad_momentum", adagrad_momentum_keys},
	{"ftrl", ftrl_keys},
	{"adam", adam_keys},
	{"momentum", momentum_keys},
	{"lion", lion_keys},
	{"rms_prop", rms_prop_keys},
	{"centered_rms_prop", rms_prop_keys},
	{"adadelta", adadelta_keys},
	{"proximal_adagrad", proximal_adagrad_keys},
	{"bounded_adagrad", bounded_adagrad_keys},
	{"online_yogi", online_yogi_keys},
	{"proximal_yogi", proximal_yogi_keys},
	{"mdl_adagrad_light", mdl_adagrad_light_keys},
	{"frequency_aware_adagrad", frequency_aware_adagrad_keys},
	{"frequency_estimator", frequency_estimator_keys},
	{"laprop", laprop_keys},
	{"assign", none_keys},
	{"rowwise_adagrad", rowwise_adagrad_keys},
	{"partial_rowwise_adam", partial_rowwise_adam_keys},
	{"program", NULL}, /* its keys are the program's own hyperparameters: any */
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

const struct key *optimizer_keys(const char *kind)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (!strcmp(kinds[i].kind, kind))
			return kinds[i].keys;
	}
	return NULL;
}

bool optimizer_is_known(const char *kind)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (!strcmp(kinds[i].kind, kind))
			return true;
	}
	return false;
}

bool optimizer_has_key(const char *name)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		for (const struct key *key = kinds[i].keys; key && key->name; key++) {
			if (!strcmp(key->name, name))
				return true;
		}
	}
	return false;
}
