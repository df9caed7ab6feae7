/* SPDX-License-Identifier: MIT */
/* Optimizers of tables. Included by embeng.h, whose rules hold. */
#ifndef EMBENG_OPTIMIZER_API_H
#define EMBENG_OPTIMIZER_API_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum embeng_optimizer_name {
	EMBENG_OPTIMIZER_NO = 0, /* the table does not change, no slots */
	EMBENG_SGD,
	EMBENG_ADAGRAD,
	EMBENG_ADAGRAD_MOMENTUM,
	EMBENG_FTRL,
	EMBENG_ADAM,
	EMBENG_MOMENTUM,
	EMBENG_LION,
	EMBENG_RMS_PROP,
	EMBENG_CENTERED_RMS_PROP,
	EMBENG_ADADELTA,
	EMBENG_PROXIMAL_ADAGRAD,
	EMBENG_ASSIGN,
	EMBENG_LAPROP,
	EMBENG_PROXIMAL_YOGI,
	EMBENG_BOUNDED_ADAGRAD,
	EMBENG_ONLINE_YOGI,
	EMBENG_FREQUENCY_ESTIMATOR,
	EMBENG_FREQUENCY_AWARE_ADAGRAD,
	EMBENG_MDL_ADAGRAD_LIGHT,
	EMBENG_ROWWISE_ADAGRAD,
	EMBENG_PARTIAL_ROWWISE_ADAM,
};

enum embeng_tristate { EMBENG_DEFAULT, EMBENG_OFF, EMBENG_ON };

/**
 * struct embeng_dynamic - a hyperparameter that each step gives anew
 * @hyperparameter: a member of &struct embeng_optimizer by its name, such as "beta_1": each that the
 *	update computes with, switches too (0 or 1), and for all kinds "weight_decay_factor",
 *	"clip_min", "clip_max", "clip_weight_min", "clip_weight_max" and "max_norm"
 * @name: by which &struct embeng_rate gives its value. Those of one name, in any tables, share it,
 *	learning rates too
 */
struct embeng_dynamic {
	const char *hyperparameter;
	const char *name;
};

/**
 * struct embeng_optimizer - an optimizer and its settings
 * @size: sizeof(struct embeng_optimizer)
 * @kind: enum embeng_optimizer_name
 * @learning_rate: constant rate; ignored with @rate_name. ftrl, online_yogi: above 0, for
 *	they divide by it; ftrl: 0 too with @multiply_linear_by_learning_rate.
 *	frequency_estimator: the step
 * @rate_name: name of a dynamic rate, given at every embeng_apply_gradients();
 *	tables that name the same share it. NULL: constant
 * @initial_accumulator_value: adagrad, ftrl, proximal_adagrad, bounded_adagrad,
 *	frequency_aware_adagrad, proximal_yogi: above 0; start of "accumulators" or "v".
 *	adagrad with @epsilon above 0, and rowwise_adagrad: at least 0
 * @momentum: adagrad_momentum, momentum, rms_prop, centered_rms_prop
 * @use_nesterov: adagrad_momentum, momentum
 * @exponent: adagrad_momentum, above 0
 * @beta2: adagrad_momentum, within [0, 1]; 1 sums squares without decay. lion,
 *	proximal_yogi, online_yogi: within [0, 1)
 * @epsilon: adagrad_momentum, adam, rms_prop, centered_rms_prop, adadelta,
 *	proximal_yogi, rowwise_adagrad, partial_rowwise_adam: above 0. adagrad: at least 0
 * @learning_rate_power: ftrl, at most 0
 * @l1_regularization_strength: ftrl, frequency_aware_adagrad: at least 0
 * @l2_regularization_strength: ftrl, frequency_aware_adagrad: at least 0
 * @beta: ftrl, at least 0
 * @multiply_linear_by_learning_rate: ftrl
 * @allow_zero_accumulator: ftrl; kept, without effect
 * @beta_1: adam, partial_rowwise_adam, within [0, 1)
 * @beta_2: adam, partial_rowwise_adam, within [0, 1)
 * @lazy_adam: default on: only touched rows; off: every row of the table decays at
 *	every step, untouched ones with a gradient of 0. Off needs accumulation
 * @sum_inside_sqrt: adam, default on; without meaning under @bias_correction
 * @bias_correction: adam: the form with bias correction
 * @use_gradient_accumulation: default on
 * @low_dimensional_packing: kept for the protobuf; rows of small dim are packed
 *	always. Only for dims 1, 2, 4 and optimizers for which a gradient of 0
 *	changes nothing (sgd, adagrad)
 * @has_clip_weight_min: @clip_weight_min counts
 * @has_clip_weight_max: @clip_weight_max counts
 * @clip_weight_min: lower limit of parameters after an update
 * @clip_weight_max: upper limit
 * @has_clip_min: @clip_min counts
 * @has_clip_max: @clip_max counts
 * @clip_min: lower limit of a row's summed gradient
 * @clip_max: upper limit
 * @weight_decay_factor: 0: none
 * @multiply_weight_decay_by_rate: decay by factor times rate
 * @beta1: lion, proximal_yogi: within [0, 1)
 * @use_non_lazy: lion: every row decays at every step, as with @lazy_adam off
 * @rho: rms_prop, centered_rms_prop, adadelta: within [0, 1]
 * @l1: proximal_adagrad, proximal_yogi, online_yogi: at least 0
 * @l2: proximal_adagrad, proximal_yogi, online_yogi, mdl_adagrad_light: at least 0
 * @b1: laprop, within [0, 1)
 * @b2: laprop, within [0, 1)
 * @eps: laprop, above 0
 * @update_accumulator_first: bounded_adagrad: the square counts in the step it is of
 * @max_var_update: bounded_adagrad: most that a step moves by; 0: any
 * @max_accumulator: bounded_adagrad: most of "accumulators"; 0: any
 * @tau: frequency_estimator, within [0, 1]: weight of the newest distance
 * @max_delta: frequency_estimator, above 0: most of a distance
 * @outlier_threshold: frequency_estimator, at least 0: a distance of so many times the
 *	estimate replaces it
 * @weight_exponent: frequency_estimator; kept: no part of the update
 * @max_lr_multiplier: frequency_aware_adagrad, above 0
 * @probability_exponent: frequency_aware_adagrad
 * @accumulator_decay: frequency_aware_adagrad, within [0, 1]
 * @step_counter: frequency_aware_adagrad: name of a dynamic rate, 0 or above, that is the
 *	step; 0 is 1. NULL: the engine's own count of updates
 * @lr_power: mdl_adagrad_light, at most 0: the accumulator's power that the rate is times
 * @min_servable_mdl_benefit: mdl_adagrad_light: benefit from which on an element is served
 * @mdl_mix_in_margin: mdl_adagrad_light, at least 0: benefit beyond that until it is whole
 * @mdl_benefit_rampup_coeff: mdl_adagrad_light, at least 0: how much less early events count
 * @mdl_min_weight: mdl_adagrad_light, within [0, 1]: least share that is served
 * @benefit_revisit_scale: mdl_adagrad_light, within [0, 1]: share of the way that those left
 *	out come back at each update
 * @max_event_benefit: mdl_adagrad_light, at least 0: most of one update; 0: any
 * @max_total_benefit: mdl_adagrad_light, at least 0: most of all; 0: any
 * @mdl_hard_limit: mdl_adagrad_light, at least 0: most that is missing to be served
 * @hard_limit_min_benefit: mdl_adagrad_light: @mdl_hard_limit counts
 * @mdl_regularize: mdl_adagrad_light: off, every element is served whole
 * @mean_gradient: rowwise_adagrad: the row moves as one, by the mean of its gradients
 * @epsilon_hat: adam with @bias_correction: @epsilon is added to the root as it is, not corrected
 * @weight_decay_in_gradient: @weight_decay_factor times the row is added to the gradient after its
 *	clip, which is L2 regularization, in place of being taken from the row. Not with
 *	@multiply_weight_decay_by_rate, assign and frequency_estimator
 * @scale_by_frequency: a row's summed gradient is divided by the number of its occurrences in the
 *	step, in all features and replicas, before its clip. Needs accumulation
 * @max_norm: at least 0; a row that an update leaves longer, by the square root of the sum of its
 *	squares, is multiplied so that it is so long; 0: any length
 * @dynamic: [@dynamic_count] hyperparameters whose values come with each step, like that of
 *	@rate_name, and by the same rules. Steps do not use the member that such a one names, but it
 *	is checked, and slots start from it. A value that the member could not have is refused; an
 *	infinite clip is no limit. The bits are those of a model with these values as constants; a
 *	bias correction is that of the step's own beta. The model copies the array and the names
 * @dynamic_count: elements of @dynamic
 *
 * Make it with the function of its kind, which sets the defaults, then set what
 * differs. embeng-optimizers(7) has all keys, defaults, slots and formulas.
 */
struct embeng_optimizer {
	size_t size;
	enum embeng_optimizer_name kind;
	float learning_rate;
	const char *rate_name;
	float initial_accumulator_value;
	float momentum;
	unsigned char use_nesterov;
	float exponent;
	float beta2;
	float epsilon;
	float learning_rate_power;
	float l1_regularization_strength;
	float l2_regularization_strength;
	float beta;
	unsigned char multiply_linear_by_learning_rate;
	unsigned char allow_zero_accumulator;
	float beta_1;
	float beta_2;
	enum embeng_tristate lazy_adam;
	enum embeng_tristate sum_inside_sqrt;
	unsigned char bias_correction;
	enum embeng_tristate use_gradient_accumulation;
	unsigned char low_dimensional_packing;
	unsigned char has_clip_weight_min;
	unsigned char has_clip_weight_max;
	unsigned char has_clip_min;
	unsigned char has_clip_max;
	float clip_weight_min;
	float clip_weight_max;
	float clip_min;
	float clip_max;
	float weight_decay_factor;
	int multiply_weight_decay_by_rate;
	float beta1;
	unsigned char use_non_lazy;
	float rho;
	float l1;
	float l2;
	float b1;
	float b2;
	float eps;
	unsigned char update_accumulator_first;
	float max_var_update;
	float max_accumulator;
	float tau;
	float max_delta;
	float outlier_threshold;
	float weight_exponent;
	float max_lr_multiplier;
	float probability_exponent;
	float accumulator_decay;
	const char *step_counter;
	float lr_power;
	float min_servable_mdl_benefit;
	float mdl_mix_in_margin;
	float mdl_benefit_rampup_coeff;
	float mdl_min_weight;
	float benefit_revisit_scale;
	float max_event_benefit;
	float max_total_benefit;
	float mdl_hard_limit;
	unsigned char hard_limit_min_benefit;
	unsigned char mdl_regularize;
	unsigned char mean_gradient;
	unsigned char epsilon_hat;
	unsigned char weight_decay_in_gradient;
	unsigned char scale_by_frequency;
	float max_norm;
	const struct embeng_dynamic *dynamic;
	size_t dynamic_count;
};

/** embeng_sgd() - w -= learning_rate * g */
EMBENG_API struct embeng_optimizer embeng_sgd(float learning_rate);

/**
 * embeng_adagrad() - a += g * g; w -= learning_rate * g / (sqrt(a) + epsilon)
 *
 * Slot "accumulators", starting at initial_accumulator_value, 0.1 by default; epsilon is 0.
 * Source: Duchi, Hazan, Singer 2011, as TPUEmbedding has it (no epsilon).
 */
EMBENG_API struct embeng_optimizer embeng_adagrad(float learning_rate);

/**
 * embeng_adagrad_epsilon() - Adagrad that starts from 0, with epsilon beside the root
 *
 * embeng_adagrad() with initial_accumulator_value 0 and epsilon 1e-10:
 * w -= learning_rate * g / (sqrt(a) + epsilon). Source: torch.optim.Adagrad without lr_decay;
 * FBGEMM's EXACT_ADAGRAD, whose epsilon is 1e-8.
 */
EMBENG_API struct embeng_optimizer embeng_adagrad_epsilon(float learning_rate);

/**
 * embeng_adagrad_momentum() - Adagrad's preconditioner, then momentum
 *
 * a = beta2 == 1 ? a + g * g : beta2 * a + (1 - beta2) * g * g;
 * s = g * (a + epsilon) ^ (-1 / exponent); m = momentum * m + s;
 * w -= learning_rate * (use_nesterov ? momentum * m + s : m).
 * Slots "accumulators" and "momenta", from 0. Defaults: momentum 0, no nesterov,
 * exponent 2, beta2 1, epsilon 1e-10. Source: TPUEmbedding (SparseCore op).
 */
EMBENG_API struct embeng_optimizer embeng_adagrad_momentum(float learning_rate);

/**
 * embeng_ftrl() - follow the regularized leader
 *
 * Slots "accumulators", from initial_accumulator_value (0.1), and "linears", from
 * 0. Rows are recomputed from "linears": a gradient of 0 changes them, too.
 * Defaults: power -0.5, l1 = l2 = beta = 0. Source: McMahan et al. 2013, as
 * TPUEmbedding has it.
 */
EMBENG_API struct embeng_optimizer embeng_ftrl(float learning_rate);

/**
 * embeng_adam() - Adam without bias correction
 *
 * m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g * g; then
 * w -= learning_rate * m / sqrt(v + epsilon * epsilon), or without sum_inside_sqrt
 * w -= learning_rate * m / (sqrt(v) + epsilon).
 * Slots "momenta" and "velocities", from 0. Defaults: 0.9, 0.999, 1e-7, lazy.
 * Source: Kingma, Ba 2015 without bias correction, as TPUEmbedding has it.
 */
EMBENG_API struct embeng_optimizer embeng_adam(float learning_rate);

/**
 * embeng_adam_corrected() - Adam with bias correction, epsilon 1e-8
 *
 * t counts updates from 1; w -= learning_rate * sqrt(1 - b2^t) / (1 - b1^t) * m /
 * (sqrt(v) + epsilon * sqrt(1 - b2^t)). The count is the engine's and in the
 * checkpoint. Source: Kingma, Ba 2015, as jax-tpu-embedding, torch.optim.Adam and FBGEMM's
 * ADAM have it.
 */
EMBENG_API struct embeng_optimizer embeng_adam_corrected(float learning_rate);

/**
 * embeng_adam_epsilon_hat() - Adam with bias correction, epsilon beside the root as it is
 *
 * embeng_adam_corrected() with epsilon_hat: w -= learning_rate * sqrt(1 - b2^t) / (1 - b1^t) * m /
 * (sqrt(v) + epsilon), with epsilon 1e-8. Source: Kingma, Ba 2015, section 2, "epsilon hat", as
 * torch.optim.SparseAdam and Keras have it, whose epsilon is 1e-7.
 */
EMBENG_API struct embeng_optimizer embeng_adam_epsilon_hat(float learning_rate);

/**
 * embeng_adamw() - Adam with decoupled weight decay
 *
 * embeng_adam_corrected() with weight_decay_factor 0.01, times the rate:
 * w -= learning_rate * 0.01 * w, then Adam. Only touched rows decay unless lazy_adam is off.
 * Source: Loshchilov, Hutter 2019, as torch.optim.AdamW has it. Keras has 0.004 and epsilon_hat.
 */
EMBENG_API struct embeng_optimizer embeng_adamw(float learning_rate);

/**
 * embeng_momentum() - m = momentum * m + g; w -= learning_rate * m
 *
 * With use_nesterov w -= learning_rate * g + learning_rate * momentum * m. Slot "momenta",
 * from 0. Default: momentum 0.9. Source: TensorFlow, ApplyMomentum.
 */
EMBENG_API struct embeng_optimizer embeng_momentum(float learning_rate);

/**
 * embeng_lion() - the sign of two momenta mixed
 *
 * w -= learning_rate * sign(beta1 * m + (1 - beta1) * g); then
 * m = beta2 * m + (1 - beta2) * g. Slot "momenta", from 0. Defaults: 0.9, 0.99, lazy.
 * Source: Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms".
 */
EMBENG_API struct embeng_optimizer embeng_lion(float learning_rate);

/**
 * embeng_rms_prop() - a mean of squares, then momentum
 *
 * ms += (1 - rho) * (g * g - ms); mom = momentum * mom + learning_rate * g /
 * sqrt(ms + epsilon); w -= mom. Slots "ms" and "mom", from 0. Defaults: rho 0.9,
 * momentum 0, epsilon 1e-10. Source: TensorFlow, ApplyRMSProp.
 */
EMBENG_API struct embeng_optimizer embeng_rms_prop(float learning_rate);

/**
 * embeng_centered_rms_prop() - likewise, over the variance
 *
 * mg += (1 - rho) * (g - mg), and the root is that of ms - mg * mg + epsilon. Slots "ms",
 * "mom" and "mg", from 0. Source: TensorFlow, ApplyCenteredRMSProp.
 */
EMBENG_API struct embeng_optimizer embeng_centered_rms_prop(float learning_rate);

/**
 * embeng_adadelta() - steps in the unit of the steps before
 *
 * a = rho * a + (1 - rho) * g * g; d = g * sqrt(u + epsilon) / sqrt(a + epsilon);
 * w -= learning_rate * d; u = rho * u + (1 - rho) * d * d. Slots "accumulators" and
 * "updates", from 0. Defaults: 0.95, 1e-8. Source: Zeiler 2012; TensorFlow, ApplyAdadelta.
 */
EMBENG_API struct embeng_optimizer embeng_adadelta(float learning_rate);

/**
 * embeng_proximal_adagrad() - Adagrad, then l1 and l2 in closed form
 *
 * a += g * g; n = learning_rate / sqrt(a); p = w - n * g;
 * w = sign(p) * max(|p| - n * l1, 0) / (1 + n * l2). Slot "accumulators", from 0.1.
 * Defaults: 0, 0. Source: Duchi, Singer 2009; TensorFlow, ApplyProximalAdagrad.
 */
EMBENG_API struct embeng_optimizer embeng_proximal_adagrad(float learning_rate);

/** embeng_assign() - w = g; no slots, and the rate is not used */
EMBENG_API struct embeng_optimizer embeng_assign(float learning_rate);

/**
 * embeng_laprop() - momentum of normalized gradients
 *
 * t counts updates from 1; d = b2 * (1 - b2^(t - 1)) / (1 - b2^t);
 * nu = d * nu + (1 - d) * (g * g + eps); mu = b1 * mu + sqrt(1 - b1 * b1) * g / sqrt(nu);
 * w -= learning_rate * mu. Slots "mu" and "nu", from 0. Defaults: 0.9, 0.95, 1e-30.
 * Source: Ziyin et al. 2020, as jax-tpu-embedding has it.
 */
EMBENG_API struct embeng_optimizer embeng_laprop(float learning_rate);

/**
 * embeng_proximal_yogi() - Yogi, then l1 and l2 in closed form; from the literature
 *
 * m = beta1 * m + (1 - beta1) * g; v -= (1 - beta2) * sign(v - g * g) * g * g;
 * n = learning_rate / (sqrt(v) + epsilon); p = w - n * m; then as
 * embeng_proximal_adagrad(). Slots "v", from 1e-6, and "m", from 0. Defaults: 0, 0, 0.9,
 * 0.999, 1e-3. Source: Zaheer et al. 2018, with the proximal step of TensorFlow Addons.
 */
EMBENG_API struct embeng_optimizer embeng_proximal_yogi(float learning_rate);

/**
 * embeng_bounded_adagrad() - Adagrad with bounds; from the literature
 *
 * b = min(a + g * g, max_accumulator); d = learning_rate * g / sqrt(a), or with
 * update_accumulator_first of b; w -= clamp(d, -max_var_update, max_var_update); a = b.
 * Slot "accumulators", from 0.1. Source: Duchi, Hazan, Singer 2011, and the words of the
 * family's protocol buffer on its bounds.
 */
EMBENG_API struct embeng_optimizer embeng_bounded_adagrad(float learning_rate);

/**
 * embeng_online_yogi() - FTRL over Yogi's mean of squares; from the literature
 *
 * q = v - (1 - beta2) * sign(v - g * g) * g * g;
 * l += g - (sqrt(q) - sqrt(v)) * w / learning_rate; v = q;
 * w = (clamp(l, -l1, l1) - l) / (sqrt(v) / learning_rate + 2 * l2). Slots "vs", from 0.1,
 * and "linears", from 0. Defaults: 0, 0, 0.999. Source: Zaheer et al. 2018, algorithm 2,
 * with the leader of McMahan et al. 2013, as the protocol buffer says in words.
 */
EMBENG_API struct embeng_optimizer embeng_online_yogi(float learning_rate);

/**
 * embeng_frequency_estimator() - steps between two touches of a row; dim 1
 * @step: the step, as a rate: name a dynamic one, @rate_name, and give it each step
 *
 * d = step - last; c = min(d, max_delta); w = d >= outlier_threshold * w ? c :
 * (1 - tau) * w + tau * c; last = step. The gradient is not used. Slot "last_hit_step",
 * from 0. Defaults, which are embeng's: 0.01, 10000, 100, 1. Source: Yi et al. 2019,
 * algorithm 2, as TPUEmbedding's protocol buffer has it.
 */
EMBENG_API struct embeng_optimizer embeng_frequency_estimator(float step);

/**
 * embeng_frequency_aware_adagrad() - Adagrad that moves rare rows further
 *
 * t counts updates from 1, or is @step_counter; c += 1; r = min((t / c) ^ probability_exponent,
 * max_lr_multiplier); a = max(accumulator_decay * a + g * g, initial_accumulator_value);
 * w -= learning_rate * (g * r / sqrt(a) + l1 * sign(w) + l2 * w). Slots "accumulators",
 * from 0.1, and "counters", from 0. Defaults: l1 = l2 = 0, 1e6, 0.5, 1. Source:
 * jax-tpu-embedding; the decay is from the protocol buffer.
 */
EMBENG_API struct embeng_optimizer embeng_frequency_aware_adagrad(float learning_rate);

/**
 * embeng_mdl_adagrad_light() - Adagrad that serves what saves of the loss; our reading
 *
 * An element that lookups read takes part as far as its benefit says: what it has been seen
 * to save of the loss. embeng-optimizers(7) has the formula. The effect of the settings was never
 * published, so that this is embeng's reading, and rows trained elsewhere may go on otherwise.
 * Slots "accumulators", from 0.1, "weights", what is held back of the trained weight, and
 * "benefits", both from 0. Defaults: lr_power -0.5, the others 0 and off, which is Adagrad.
 * Source: after Shamir 2015.
 */
EMBENG_API struct embeng_optimizer embeng_mdl_adagrad_light(float learning_rate);

/**
 * embeng_rowwise_adagrad() - Adagrad with one accumulator a row
 *
 * a += mean(g * g), over the elements of the row; w -= learning_rate / (sqrt(a) + epsilon) * g.
 * With mean_gradient a += mean(g)^2; w -= learning_rate / (sqrt(a) + epsilon) * mean(g). Slot
 * "accumulators", one number a row (embeng_model_slot_width()), from
 * initial_accumulator_value, 0 by default. Defaults: epsilon 1e-8, off. The mean is computed in
 * f64. Source: FBGEMM, EXACT_ROWWISE_ADAGRAD, which torchrec trains with; the class
 * torchrec.optim.RowWiseAdagrad itself has the form with mean_gradient, and epsilon 1e-10.
 */
EMBENG_API struct embeng_optimizer embeng_rowwise_adagrad(float learning_rate);

/**
 * embeng_partial_rowwise_adam() - Adam with one mean of squares a row
 *
 * t counts updates from 1; m = beta_1 * m + (1 - beta_1) * g;
 * v = beta_2 * v + (1 - beta_2) * mean(g * g), over the elements of the row;
 * w -= learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m /
 * (sqrt(v) + epsilon * sqrt(1 - beta_2^t)). Slots "momenta" and "velocities", the latter one number
 * a row, from 0. Defaults: 0.9, 0.999, 1e-8. The mean is computed in f64. Source: FBGEMM,
 * PARTIAL_ROWWISE_ADAM; its weight_decay is multiply_weight_decay_by_rate here.
 */
EMBENG_API struct embeng_optimizer embeng_partial_rowwise_adam(float learning_rate);

/** embeng_optimizer_text() - "sgd", "adagrad_momentum", ...; NULL for no kind */
EMBENG_API const char *embeng_optimizer_text(enum embeng_optimizer_name kind);

/**
 * embeng_optimizer_by_name() - make an optimizer of a kind by its name, with its defaults
 * @name: as embeng_optimizer_text() gives it
 * @optimizer: out
 *
 * Return: 0, -EINVAL, or -ENOENT naming those that there are.
 */
EMBENG_API int embeng_optimizer_by_name(const char *name, float learning_rate,
					struct embeng_optimizer *optimizer);

#ifdef __cplusplus
}
#endif

#endif
