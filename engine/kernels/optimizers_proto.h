/* SPDX-License-Identifier: MIT */
/*
 * Part of optimizers.h: the optimizers that the family has in its protocol buffer or in its
 * second library alone. embeng-optimizers(7) says which formulas are from the literature.
 */
#ifndef ENGINE_KERNELS_OPTIMIZERS_PROTO_H
#define ENGINE_KERNELS_OPTIMIZERS_PROTO_H

/* Chen et al. 2023. The row moves by the old momentum, which then follows the gradient. */
#define KERNEL_LION_NAME "lion"
#define KERNEL_LION_SLOTS(S) S("momenta", 0.0f, KERNEL_FINITE)
#define KERNEL_LION_HYPER(H) \
	H("beta1", 0.9f, KERNEL_BELOW_ONE) \
	H("beta2", 0.99f, KERNEL_BELOW_ONE)
#define KERNEL_LION_PREPARE
#define KERNEL_LION_STEP \
	w = w - lr * SIGN(h[0] * s[0] + (1.0f - h[0]) * g); \
	s[0] = h[1] * s[0] + (1.0f - h[1]) * g;

#define KERNEL_RMS_PROP_NAME "rms_prop"
#define KERNEL_RMS_PROP_SLOTS(S) S("ms", 0.0f, KERNEL_FROM_ZERO) S("mom", 0.0f, KERNEL_FINITE)
#define KERNEL_RMS_PROP_HYPER(H) \
	H("rho", 0.9f, KERNEL_UP_TO_ONE) \
	H("momentum", 0.0f, KERNEL_FINITE) \
	H("epsilon", 1e-10f, KERNEL_ABOVE_ZERO)
#define KERNEL_RMS_PROP_PREPARE
#define KERNEL_RMS_PROP_STEP \
	s[0] = s[0] + (1.0f - h[0]) * (g * g - s[0]); \
	s[1] = h[1] * s[1] + lr * g / SQRT(s[0] + h[2]); \
	w = w - s[1];

#define KERNEL_CENTERED_RMS_PROP_NAME "centered_rms_prop"
#define KERNEL_CENTERED_RMS_PROP_SLOTS(S) \
	S("ms", 0.0f, KERNEL_FROM_ZERO) \
	S("mom", 0.0f, KERNEL_FINITE) \
	S("mg", 0.0f, KERNEL_FINITE)
#define KERNEL_CENTERED_RMS_PROP_HYPER(H) KERNEL_RMS_PROP_HYPER(H)
#define KERNEL_CENTERED_RMS_PROP_PREPARE
#define KERNEL_CENTERED_RMS_PROP_STEP \
	s[0] = s[0] + (1.0f - h[0]) * (g * g - s[0]); \
	s[2] = s[2] + (1.0f - h[0]) * (g - s[2]); \
	s[1] = h[1] * s[1] + lr * g / SQRT(FROM_ZERO(s[0] - s[2] * s[2]) + h[2]); \
	w = w - s[1];

#define KERNEL_ADADELTA_NAME "adadelta"
#define KERNEL_ADADELTA_SLOTS(S) \
	S("accumulators", 0.0f, KERNEL_FROM_ZERO) \
	S("updates", 0.0f, KERNEL_FROM_ZERO)
#define KERNEL_ADADELTA_HYPER(H) \
	H("rho", 0.95f, KERNEL_UP_TO_ONE) \
	H("epsilon", 1e-8f, KERNEL_ABOVE_ZERO)
#define KERNEL_ADADELTA_PREPARE
#define KERNEL_ADADELTA_STEP \
	s[0] = h[0] * s[0] + (1.0f - h[0]) * (g * g); \
	g = g * SQRT(s[1] + h[1]) / SQRT(s[0] + h[1]); \
	w = w - lr * g; \
	s[1] = h[0] * s[1] + (1.0f - h[0]) * (g * g);

/* From w along g by the rate n of each element, then l1 and l2 in closed form. */
#define KERNEL_PROXIMAL_STEP(n, g, l1, l2) \
	w = w - n * (g); \
	if (l1 != 0.0f) \
		w = SHRINK(w, n * l1); \
	w = w / (1.0f + n * l2);

#define KERNEL_PROXIMAL_ADAGRAD_NAME "proximal_adagrad"
#define KERNEL_PROXIMAL_ADAGRAD_SLOTS(S) S("accumulators", 0.1f, KERNEL_FROM_ZERO)
#define KERNEL_PROXIMAL_ADAGRAD_HYPER(H) \
	H("l1", 0.0f, KERNEL_FROM_ZERO) \
	H("l2", 0.0f, KERNEL_FROM_ZERO)
#define KERNEL_PROXIMAL_ADAGRAD_PREPARE
#define KERNEL_PROXIMAL_ADAGRAD_STEP \
	__typeof__(w) n; \
	s[0] = s[0] + g * g; \
	n = lr / SQRT(s[0]); \
	KERNEL_PROXIMAL_STEP(n, g, h[0], h[1])

#define KERNEL_ASSIGN_NAME "assign"
#define KERNEL_ASSIGN_SLOTS(S)
#define KERNEL_ASSIGN_HYPER(H)
#define KERNEL_ASSIGN_PREPARE
#define KERNEL_ASSIGN_STEP w = g;

/* p[0]: beta_2 so corrected that the first step forgets where nu began; p[1]: sqrt(1 - b1^2). */
#define KERNEL_LAPROP_NAME "laprop"
#define KERNEL_LAPROP_SLOTS(S) S("mu", 0.0f, KERNEL_FINITE) S("nu", 0.0f, KERNEL_FROM_ZERO)
#define KERNEL_LAPROP_HYPER(H) \
	H("b1", 0.9f, KERNEL_BELOW_ONE) \
	H("b2", 0.95f, KERNEL_BELOW_ONE) \
	H("eps", 1e-30f, KERNEL_ABOVE_ZERO)
#define KERNEL_LAPROP_PREPARE \
	p[0] = h[1] * (1.0 - math64_power(h[1], step - 1)) / (1.0 - math64_power(h[1], step)); \
	p[1] = root64(1.0 - (double)h[0] * h[0]);
#define KERNEL_LAPROP_STEP \
	s[1] = p[0] * s[1] + (1.0f - p[0]) * (g * g + h[2]); \
	s[0] = h[0] * s[0] + p[1] * g / SQRT(s[1]); \
	w = w - lr * s[0];

/* Zaheer et al. 2018: towards the square of the gradient by a share of that square. */
#define KERNEL_YOGI(v, beta2) v - (1.0f - beta2) * SIGN(v - g * g) * (g * g)

#define KERNEL_PROXIMAL_YOGI_NAME "proximal_yogi"
#define KERNEL_PROXIMAL_YOGI_SLOTS(S) S("v", 1e-6f, KERNEL_FROM_ZERO) S("m", 0.0f, KERNEL_FINITE)
#define KERNEL_PROXIMAL_YOGI_HYPER(H) \
	H("l1", 0.0f, KERNEL_FROM_ZERO) \
	H("l2", 0.0f, KERNEL_FROM_ZERO) \
	H("beta1", 0.9f, KERNEL_BELOW_ONE) \
	H("beta2", 0.999f, KERNEL_BELOW_ONE) \
	H("epsilon", 1e-3f, KERNEL_ABOVE_ZERO)
#define KERNEL_PROXIMAL_YOGI_PREPARE
#define KERNEL_PROXIMAL_YOGI_STEP \
	__typeof__(w) n; \
	s[1] = h[2] * s[1] + (1.0f - h[2]) * g; \
	s[0] = KERNEL_YOGI(s[0], h[3]); \
	n = lr / (SQRT(s[0]) + h[4]); \
	KERNEL_PROXIMAL_STEP(n, s[1], h[0], h[1])

#define KERNEL_BOUNDED_ADAGRAD_NAME "bounded_adagrad"
#define KERNEL_BOUNDED_ADAGRAD_SLOTS(S) S("accumulators", 0.1f, KERNEL_FROM_ZERO)
#define KERNEL_BOUNDED_ADAGRAD_HYPER(H) \
	H("update_accumulator_first", 0.0f, KERNEL_SWITCH) \
	H("max_var_update", 0.0f, KERNEL_FROM_ZERO) \
	H("max_accumulator", 0.0f, KERNEL_FROM_ZERO)
#define KERNEL_BOUNDED_ADAGRAD_PREPARE
#define KERNEL_BOUNDED_ADAGRAD_STEP \
	__typeof__(w) before = s[0], move; \
	s[0] = s[0] + g * g; \
	if (h[2] != 0.0f) \
		s[0] = CLIP(s[0], -__builtin_inff(), h[2]); \
	move = lr * g / SQRT(h[0] != 0.0f ? s[0] : before); \
	if (h[1] != 0.0f) \
		move = CLIP(move, -h[1], h[1]); \
	w = w - move;

/* FTRL's leader over Yogi's v: see KERNEL_FTRL_STEP for the clamp. */
#define KERNEL_ONLINE_YOGI_NAME "online_yogi"
#define KERNEL_ONLINE_YOGI_SLOTS(S) \
	S("vs", 0.1f, KERNEL_FROM_ZERO) \
	S("linears", 0.0f, KERNEL_FINITE)
#define KERNEL_ONLINE_YOGI_HYPER(H) \
	H("l1", 0.0f, KERNEL_FROM_ZERO) \
	H("l2", 0.0f, KERNEL_FROM_ZERO) \
	H("beta2", 0.999f, KERNEL_BELOW_ONE)
#define KERNEL_ONLINE_YOGI_PREPARE
#define KERNEL_ONLINE_YOGI_STEP \
	__typeof__(w) before = SQRT(s[0]), after; \
	s[0] = KERNEL_YOGI(s[0], h[2]); \
	after = SQRT(s[0]); \
	s[1] = s[1] + g - (after - before) * w / lr; \
	after = after / lr + 2.0f * h[1]; \
	if (h[0] != 0.0f) \
		w = (CLIP(s[1], -h[0], h[0]) - s[1]) / after; \
	else \
		w = -s[1] / after;

/* Yi et al. 2019. The rate is the step, the row the steps between two touches. */
#define KERNEL_FREQUENCY_ESTIMATOR_NAME "frequency_estimator"
#define KERNEL_FREQUENCY_ESTIMATOR_SLOTS(S) S("last_hit_step", 0.0f, KERNEL_FINITE)
#define KERNEL_FREQUENCY_ESTIMATOR_HYPER(H) \
	H("tau", 0.01f, KERNEL_UP_TO_ONE) \
	H("max_delta", 10000.0f, KERNEL_ABOVE_ZERO) \
	H("outlier_threshold", 100.0f, KERNEL_FROM_ZERO) \
	H("weight_exponent", 1.0f, KERNEL_FINITE)
#define KERNEL_FREQUENCY_ESTIMATOR_PREPARE
#define KERNEL_FREQUENCY_ESTIMATOR_STEP \
	__typeof__(w) delta = lr - s[0]; \
	__typeof__(w) near = CLIP(delta, -__builtin_inff(), h[1]); \
	w = SELECT(delta >= h[2] * w, near, (1.0f - h[0]) * w + h[0] * near); \
	s[0] = SPREAD(lr);

/* p[0] is the step: over the touches of a row it is how rare that is. */
#define KERNEL_FREQUENCY_AWARE_ADAGRAD_NAME "frequency_aware_adagrad"
#define KERNEL_FREQUENCY_AWARE_ADAGRAD_SLOTS(S) \
	S("accumulators", 0.1f, KERNEL_FROM_ZERO) \
	S("counters", 0.0f, KERNEL_FROM_ZERO)
#define KERNEL_FREQUENCY_AWARE_ADAGRAD_HYPER(H) \
	H("l1_regularization_strength", 0.0f, KERNEL_FROM_ZERO) \
	H("l2_regularization_strength", 0.0f, KERNEL_FROM_ZERO) \
	H("max_lr_multiplier", 1e6f, KERNEL_ABOVE_ZERO) \
	H("probability_exponent", 0.5f, KERNEL_FINITE) \
	H("accumulator_decay", 1.0f, KERNEL_UP_TO_ONE) \
	H("initial_accumulator_value", 0.1f, KERNEL_ABOVE_ZERO)
#define KERNEL_FREQUENCY_AWARE_ADAGRAD_PREPARE \
	p[0] = step; \
	*power = h[3];
#define KERNEL_FREQUENCY_AWARE_ADAGRAD_STEP \
	__typeof__(w) rare; \
	s[1] = s[1] + 1.0f; \
	rare = CLIP(POW(p[0] / s[1]), -__builtin_inff(), h[2]); \
	s[0] = CLIP(h[4] * s[0] + g * g, h[5], __builtin_inff()); \
	w = w - lr * (g * rare / SQRT(s[0]) + h[0] * SIGN(w) + h[1] * w);

/*
 * After Shamir 2015; what the settings do is embeng's reading. s[1] is what is held back of
 * the trained weight, s[2] what the element has been seen to save of the loss.
 */
#define KERNEL_MDL_ADAGRAD_LIGHT_NAME "mdl_adagrad_light"
#define KERNEL_MDL_ADAGRAD_LIGHT_SLOTS(S) \
	S("accumulators", 0.1f, KERNEL_FROM_ZERO) \
	S("weights", 0.0f, KERNEL_FINITE) \
	S("benefits", 0.0f, KERNEL_FINITE)
#define KERNEL_MDL_ADAGRAD_LIGHT_HYPER(H) \
	H("l2", 0.0f, KERNEL_FROM_ZERO) \
	H("lr_power", -0.5f, KERNEL_UP_TO_ZERO) \
	H("min_servable_mdl_benefit", 0.0f, KERNEL_FINITE) \
	H("mdl_mix_in_margin", 0.0f, KERNEL_FROM_ZERO) \
	H("mdl_benefit_rampup_coeff", 0.0f, KERNEL_FROM_ZERO) \
	H("mdl_min_weight", 0.0f, KERNEL_UP_TO_ONE) \
	H("benefit_revisit_scale", 0.0f, KERNEL_UP_TO_ONE) \
	H("max_event_benefit", 0.0f, KERNEL_FROM_ZERO) \
	H("max_total_benefit", 0.0f, KERNEL_FROM_ZERO) \
	H("mdl_hard_limit", 0.0f, KERNEL_FROM_ZERO) \
	H("hard_limit_min_benefit", 0.0f, KERNEL_SWITCH) \
	H("mdl_regularize", 0.0f, KERNEL_SWITCH)
#define KERNEL_MDL_ADAGRAD_LIGHT_PREPARE *power = h[1];
#define KERNEL_MDL_ADAGRAD_LIGHT_STEP \
	__typeof__(w) all = w + s[1], event = -(g * all), n, share; \
	s[0] = s[0] + g * g; \
	if (h[4] != 0.0f) \
		event = event * (s[0] / (s[0] + h[4])); \
	if (h[7] != 0.0f) \
		event = CLIP(event, -h[7], h[7]); \
	s[2] = s[2] + event; \
	if (h[6] != 0.0f) \
		s[2] = SELECT(s[2] < SPREAD(h[2]), s[2] + h[6] * (h[2] - s[2]), s[2]); \
	if (h[8] != 0.0f) \
		s[2] = CLIP(s[2], -h[8], h[8]); \
	if (h[10] != 0.0f) \
		s[2] = CLIP(s[2], h[2] - h[9], __builtin_inff()); \
	n = lr * POW(s[0]); \
	all = (all - n * g) / (1.0f + 2.0f * h[0] * n); \
	if (h[3] != 0.0f) \
		share = CLIP((s[2] - h[2]) / h[3], 0.0f, 1.0f); \
	else \
		share = SELECT(s[2] >= SPREAD(h[2]), SPREAD(1.0f), SPREAD(0.0f)); \
	share = h[5] + (1.0f - h[5]) * share; \
	w = h[11] != 0.0f ? all * share : all; \
	s[1] = h[11] != 0.0f ? all - w : SPREAD(0.0f);

#endif
