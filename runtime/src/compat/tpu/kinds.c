// SPDX-License-Identifier: MIT
/*
 * The table of optimizers in the protobuf: for each kind its message, and which member of it is
 * which member of struct embeng_optimizer.
 *
 * The tables are constant; any thread may call.
 */
#include <stddef.h>

#include "kinds.h"

#define OURS(name) offsetof(struct embeng_optimizer, name)
#define MEMBER(type, ours, message, theirs) {MEMBER_##type, OURS(ours), offsetof(message, theirs)}
#define COUNTED(array) sizeof(array) / sizeof((array)[0]), array

static const struct tpu_member adagrad_momentum_members[] = {
	MEMBER(NUMBER, momentum, Tpu__AdagradMomentum, momentum),
	MEMBER(SWITCH, use_nesterov, Tpu__AdagradMomentum, use_nesterov),
	MEMBER(NUMBER, exponent, Tpu__AdagradMomentum, exponent),
	MEMBER(NUMBER, beta2, Tpu__AdagradMomentum, beta2),
	MEMBER(NUMBER, epsilon, Tpu__AdagradMomentum, epsilon),
};

static const struct tpu_member ftrl_members[] = {
	MEMBER(NUMBER, l1_regularization_strength, Tpu__Ftrl, l1),
	MEMBER(NUMBER, l2_regularization_strength, Tpu__Ftrl, l2),
	MEMBER(NUMBER, learning_rate_power, Tpu__Ftrl, lr_power),
	MEMBER(NUMBER, beta, Tpu__Ftrl, beta),
	MEMBER(SWITCH, multiply_linear_by_learning_rate, Tpu__Ftrl, multiply_linear_by_lr),
	MEMBER(SWITCH, allow_zero_accumulator, Tpu__Ftrl, allow_zero_accumulator),
};

static const struct tpu_member adam_members[] = {
	MEMBER(NUMBER, beta_1, Tpu__Adam, beta1),
	MEMBER(NUMBER, beta_2, Tpu__Adam, beta2),
	MEMBER(NUMBER, epsilon, Tpu__Adam, epsilon),
	MEMBER(NOT_TRISTATE, lazy_adam, Tpu__Adam, use_non_lazy_adam),
	MEMBER(TRISTATE, sum_inside_sqrt, Tpu__Adam, use_sum_inside_sqrt),
};

static const struct tpu_member momentum_members[] = {
	MEMBER(NUMBER, momentum, Tpu__Momentum, momentum),
	MEMBER(SWITCH, use_nesterov, Tpu__Momentum, use_nesterov),
};

static const struct tpu_member lion_members[] = {
	MEMBER(NUMBER, beta1, Tpu__Lion, beta1),
	MEMBER(NUMBER, beta2, Tpu__Lion, beta2),
	MEMBER(SWITCH, use_non_lazy, Tpu__Lion, use_non_lazy_lion),
};

static const struct tpu_member rms_prop_members[] = {
	MEMBER(NUMBER, rho, Tpu__RmsProp, rho),
	MEMBER(NUMBER, momentum, Tpu__RmsProp, momentum),
	MEMBER(NUMBER, epsilon, Tpu__RmsProp, epsilon),
};

static const struct tpu_member centered_rms_prop_members[] = {
	MEMBER(NUMBER, rho, Tpu__CenteredRmsProp, rho),
	MEMBER(NUMBER, momentum, Tpu__CenteredRmsProp, momentum),
	MEMBER(NUMBER, epsilon, Tpu__CenteredRmsProp, epsilon),
};

static const struct tpu_member adadelta_members[] = {
	MEMBER(NUMBER, rho, Tpu__Adadelta, rho),
	MEMBER(NUMBER, epsilon, Tpu__Adadelta, epsilon),
};

static const struct tpu_member proximal_adagrad_members[] = {
	MEMBER(NUMBER, l1, Tpu__ProximalAdagrad, l1),
	MEMBER(NUMBER, l2, Tpu__ProximalAdagrad, l2),
};

static const struct tpu_member bounded_adagrad_members[] = {
	MEMBER(SWITCH, update_accumulator_first, Tpu__BoundedAdagrad, update_accumulator_first),
	MEMBER(NUMBER, max_var_update, Tpu__BoundedAdagrad, max_var_update),
	MEMBER(NUMBER, max_accumulator, Tpu__BoundedAdagrad, max_accumulator),
};

static const struct tpu_member online_yogi_members[] = {
	MEMBER(NUMBER, l1, Tpu__OnlineYogi, l1),
	MEMBER(NUMBER, l2, Tpu__OnlineYogi, l2),
	MEMBER(NUMBER, beta2, Tpu__OnlineYogi, beta2),
};

static const struct tpu_member proximal_yogi_members[] = {
	MEMBER(NUMBER, l1, Tpu__ProximalYogi, l1),
	MEMBER(NUMBER, l2, Tpu__ProximalYogi, l2),
	MEMBER(NUMBER, beta1, Tpu__ProximalYogi, beta1),
	MEMBER(NUMBER, beta2, Tpu__ProximalYogi, beta2),
	MEMBER(NUMBER, epsilon, Tpu__ProximalYogi, epsilon),
};

static const struct tpu_member frequency_estimator_members[] = {
	MEMBER(NUMBER, tau, Tpu__FrequencyEstimator, tau),
	MEMBER(NUMBER, max_delta, Tpu__FrequencyEstimator, max_delta),
	MEMBER(NUMBER, outlier_threshold, Tpu__FrequencyEstimator, outlier_threshold),
	MEMBER(NUMBER, weight_exponent, Tpu__FrequencyEstimator, weight_exponent),
};

static const struct tpu_member frequency_aware_adagrad_members[] = {
	MEMBER(NUMBER, l1_regularization_strength, Tpu__FrequencyAwareAdagrad,
	       l1_regularization_strength),
	MEMBER(NUMBER, l2_regularization_strength, Tpu__FrequencyAwareAdagrad,
	       l2_regularization_strength),
	MEMBER(NUMBER, max_lr_multiplier, Tpu__FrequencyAwareAdagrad, max_lr_multiplier),
	MEMBER(NUMBER, probability_exponent, Tpu__FrequencyAwareAdagrad, probability_exponent),
	MEMBER(NUMBER, accumulator_decay, Tpu__FrequencyAwareAdagrad, accumulator_decay),
	MEMBER(NUMBER, initial_accumulator_value, Tpu__FrequencyAwareAdagrad,
	       initial_accumulator_value),
};

static const struct tpu_member mdl_adagrad_light_members[] = {
	MEMBER(NUMBER, l2, Tpu__MdlAdagradLight, l2),
	MEMBER(NUMBER, lr_power, Tpu__MdlAdagradLight, lr_power),
	MEMBER(NUMBER, min_servable_mdl_benefit, Tpu__MdlAdagradLight, min_servable_mdl_benefit),
	MEMBER(NUMBER, mdl_mix_in_margin, Tpu__MdlAdagradLight, mdl_mix_in_margin),
	MEMBER(NUMBER, mdl_benefit_rampup_coeff, Tpu__MdlAdagradLight, mdl_benefit_rampup_coeff),
	MEMBER(NUMBER, mdl_min_weight, Tpu__MdlAdagradLight, mdl_min_weight),
	MEMBER(NUMBER, benefit_revisit_scale, Tpu__MdlAdagradLight, benefit_revisit_scale),
	MEMBER(NUMBER, max_event_benefit, Tpu__MdlAdagradLight, max_event_benefit),
	MEMBER(NUMBER, max_total_benefit, Tpu__MdlAdagradLight, max_total_benefit),
	MEMBER(NUMBER, mdl_hard_limit, Tpu__MdlAdagradLight, mdl_hard_limit),
	MEMBER(SWITCH, hard_limit_min_benefit, Tpu__MdlAdagradLight, hard_limit_min_benefit),
	MEMBER(SWITCH, mdl_regularize, Tpu__MdlAdagradLight, mdl_regularize),
};

#define PLAIN(OURS_, THEIRS, name) \
	{EMBENG_##OURS_, TPU__OPTIMIZATION_PARAMETERS__PARAMETERS_##THEIRS, \
	 &tpu__##name##__descriptor, 0, NULL}
#define KIND(NAME, name) \
	{EMBENG_##NAME, TPU__OPTIMIZATION_PARAMETERS__PARAMETERS_##NAME, \
	 &tpu__##name##__descriptor, COUNTED(name##_members)}

static const struct tpu_kind kinds[] = {
	PLAIN(SGD, STOCHASTIC_GRADIENT_DESCENT, stochastic_gradient_descent),
	PLAIN(ADAGRAD, ADAGRAD, adagrad),
	PLAIN(ASSIGN, ASSIGN, assign),
	KIND(ADAGRAD_MOMENTUM, adagrad_momentum),
	KIND(FTRL, ftrl),
	KIND(ADAM, adam),
	KIND(MOMENTUM, momentum),
	KIND(LION, lion),
	KIND(RMS_PROP, rms_prop),
	KIND(CENTERED_RMS_PROP, centered_rms_prop),
	KIND(ADADELTA, adadelta),
	KIND(PROXIMAL_ADAGRAD, proximal_adagrad),
	KIND(BOUNDED_ADAGRAD, bounded_adagrad),
	KIND(ONLINE_YOGI, online_yogi),
	KIND(PROXIMAL_YOGI, proximal_yogi),
	KIND(FREQUENCY_ESTIMATOR, frequency_estimator),
	KIND(FREQUENCY_AWARE_ADAGRAD, frequency_aware_adagrad),
	KIND(MDL_ADAGRAD_LIGHT, mdl_adagrad_light),
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

const struct tpu_kind *tpu_kind_of(enum embeng_optimizer_name ours)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (kinds[i].ours == ours)
			return &kinds[i];
	}
	return NULL;
}

const struct tpu_kind *tpu_kind_in(Tpu__OptimizationParameters__ParametersCase theirs)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (kinds[i].theirs == theirs)
			return &kinds[i];
	}
	return NULL;
}
