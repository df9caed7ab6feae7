/* SPDX-License-Identifier: MIT */
/*
 * Every optimizer, once. KERNEL_OPTIMIZERS lists them; for each KIND there are
 *	KERNEL_KIND_NAME	its name
 *	KERNEL_KIND_SLOTS(S)	S(name, start value, enum kernel_range) per slot, in checkpoint
 *				order; the range is what a slot can have that is not written by
 *				the optimizer itself. KERNEL_ONE_NUMBER behind it: the slot has one
 *				number a row
 *	KERNEL_KIND_HYPER(H)	H(name, default, enum kernel_range) per hyperparameter, in
 *				kernel_update.hyper order
 *	KERNEL_KIND_PREPARE	statements over lr, h[], step, p[], power: what the elements
 *				share, once per step and table, with f64 between
 *	KERNEL_KIND_STEP	statements over w, g, s[], lr, h[], p[], SQRT(), POW(), CLIP(),
 *				SIGN(), SHRINK(), SELECT(), SPREAD(), FROM_ZERO(): the update.
 *				POW() raises to power. FROM_ZERO() marks a difference that is
 *				not below 0 but for rounding
 * Kinds of KERNEL_ROWWISE have one number a row in their last slot, and also
 *	KERNEL_KIND_MEAN	over h[]: whether the row needs the mean of its gradients, not that
 *				of their squares
 *	KERNEL_KIND_ROW		statements over lr, h[], p[], mean, slot, r[], ROOT(), ROUND(): the
 *				last slot, and in r[] what the elements of the row share, which
 *				STEP has, too. mean is in f64, which ROUND() makes a float
 * The statements of STEP are compiled for vectors and for single floats. C's order of
 * evaluation is the order of the numbers: every multiplication and addition rounds by itself.
 *
 * Nothing guards a division or a product: where finite numbers give one that is not, mend.c computes
 * the element again from PREPARE and STEP in f64. A result that is not finite there either is what IEEE
 * says; a rate of 0 gives FTRL that of x / 0.
 */
#ifndef ENGINE_KERNELS_OPTIMIZERS_H
#define ENGINE_KERNELS_OPTIMIZERS_H

#include "../types.h"
#include "kernels.h"
#include "optimizers_proto.h"

#define KERNEL_OPTIMIZERS(X) \
	KERNEL_ELEMENTWISE(X) \
	KERNEL_ROWWISE(X)

/* Each element is updated alone. */
#define KERNEL_ELEMENTWISE(X) \
	X(SGD) \
	X(ADAGRAD) \
	X(MOMENTUM) \
	X(ADAM) \
	X(ADAGRAD_MOMENTUM) \
	X(FTRL) \
	X(LION) \
	X(RMS_PROP) \
	X(CENTERED_RMS_PROP) \
	X(ADADELTA) \
	X(PROXIMAL_ADAGRAD) \
	X(ASSIGN) \
	X(LAPROP) \
	X(PROXIMAL_YOGI) \
	X(BOUNDED_ADAGRAD) \
	X(ONLINE_YOGI) \
	X(FREQUENCY_ESTIMATOR) \
	X(FREQUENCY_AWARE_ADAGRAD) \
	X(MDL_ADAGRAD_LIGHT)

/* The last slot has one number a row, which all elements of the row go by. */
#define KERNEL_ROWWISE(X) \
	X(ROWWISE_ADAGRAD) \
	X(PARTIAL_ROWWISE_ADAM)

#define KERNEL_OPTIMIZER_IS_ROWWISE(kind) \
	((kind) == KERNEL_ROWWISE_ADAGRAD || (kind) == KERNEL_PARTIAL_ROWWISE_ADAM)

#define KERNEL_SGD_NAME "sgd"
#define KERNEL_SGD_SLOTS(S)
#define KERNEL_SGD_HYPER(H)
#define KERNEL_SGD_PREPARE
#define KERNEL_SGD_STEP w = w - lr * g;

#define KERNEL_ADAGRAD_NAME "adagrad"
#define KERNEL_ADAGRAD_SLOTS(S) S("accumulators", 0.1f, KERNEL_FROM_ZERO)
#define KERNEL_ADAGRAD_HYPER(H) H("epsilon", 0.0f, KERNEL_FROM_ZERO)
#define KERNEL_ADAGRAD_PREPARE
#define KERNEL_ADAGRAD_STEP \
	s[0] = s[0] + g * g; \
	w = w - lr * g / (SQRT(s[0]) + h[0]);

#define KERNEL_MOMENTUM_NAME "momentum"
#define KERNEL_MOMENTUM_SLOTS(S) S("momenta", 0.0f, KERNEL_FINITE)
#define KERNEL_MOMENTUM_HYPER(H) \
	H("momentum", 0.9f, KERNEL_FINITE) \
	H("use_nesterov", 0.0f, KERNEL_SWITCH)
#define KERNEL_MOMENTUM_PREPARE
#define KERNEL_MOMENTUM_STEP \
	s[0] = h[0] * s[0] + g; \
	if (h[1] != 0.0f) \
		w = w - (lr * g + lr * h[0] * s[0]); \
	else \
		w = w - lr * s[0];

/*
 * p[0] is the rate and p[1] what is added beside the root. With bias correction both
 * follow the step, and where the sum stands is no question any more.
 */
#define KERNEL_ADAM_NAME "adam"
#define KERNEL_ADAM_SLOTS(S) \
	S("momenta", 0.0f, KERNEL_FINITE) \
	S("velocities", 0.0f, KERNEL_FROM_ZERO)
#define KERNEL_ADAM_HYPER(H) \
	H("beta_1", 0.9f, KERNEL_BELOW_ONE) \
	H("beta_2", 0.999f, KERNEL_BELOW_ONE) \
	H("epsilon", 1e-7f, KERNEL_ABOVE_ZERO) \
	H("sum_inside_sqrt", 1.0f, KERNEL_SWITCH) \
	H("bias_correction", 0.0f, KERNEL_SWITCH) \
	H("epsilon_hat", 0.0f, KERNEL_SWITCH)
#define KERNEL_ADAM_PREPARE \
	if (h[4] != 0.0f) { \
		double root = root64(1.0 - math64_power(h[1], step)); \
		p[0] = lr * root / (1.0 - math64_power(h[0], step)); \
		p[1] = h[5] != 0.0f ? h[2] : h[2] * root; \
	} else { \
		p[0] = lr; \
		p[1] = h[3] != 0.0f ? h[2] * h[2] : h[2]; \
	}
#define KERNEL_ADAM_STEP \
	s[0] = h[0] * s[0] + (1.0f - h[0]) * g; \
	s[1] = h[1] * s[1] + (1.0f - h[1]) * (g * g); \
	if (h[3] != 0.0f && h[4] == 0.0f) \
		w = w - p[0] * s[0] / SQRT(s[1] + p[1]); \
	else \
		w = w - p[0] * s[0] / (SQRT(s[1]) + p[1]);

#define KERNEL_ADAGRAD_MOMENTUM_NAME "adagrad_momentum"
#define KERNEL_ADAGRAD_MOMENTUM_SLOTS(S) \
	S("accumulators", 0.0f, KERNEL_FROM_ZERO) \
	S("momenta", 0.0f, KERNEL_FINITE)
#define KERNEL_ADAGRAD_MOMENTUM_HYPER(H) \
	H("momentum", 0.0f, KERNEL_FINITE) \
	H("use_nesterov", 0.0f, KERNEL_SWITCH) \
	H("exponent", 2.0f, KERNEL_ABOVE_ZERO) \
	H("beta2", 1.0f, KERNEL_UP_TO_ONE) \
	H("epsilon", 1e-10f, KERNEL_ABOVE_ZERO)
#define KERNEL_ADAGRAD_MOMENTUM_PREPARE *power = -1.0 / h[2];
#define KERNEL_ADAGRAD_MOMENTUM_STEP \
	if (h[3] == 1.0f) \
		s[0] = s[0] + g * g; \
	else \
		s[0] = h[3] * s[0] + (1.0f - h[3]) * (g * g); \
	g = g * POW(s[0] + h[4]); \
	s[1] = h[0] * s[1] + g; \
	if (h[1] != 0.0f) \
		w = w - lr * (h[0] * s[1] + g); \
	else \
		w = w - lr * s[1];

/* Without l1 the clamp to [-0, 0] must not be taken: it would lose the zero's sign. */
#define KERNEL_FTRL_NAME "ftrl"
#define KERNEL_FTRL_SLOTS(S) \
	S("accumulators", 0.1f, KERNEL_FROM_ZERO) \
	S("linears", 0.0f, KERNEL_FINITE)
#define KERNEL_FTRL_HYPER(H) \
	H("learning_rate_power", -0.5f, KERNEL_UP_TO_ZERO) \
	H("l1_regularization_strength", 0.0f, KERNEL_FROM_ZERO) \
	H("l2_regularization_strength", 0.0f, KERNEL_FROM_ZERO) \
	H("beta", 0.0f, KERNEL_FROM_ZERO) \
	H("multiply_linear_by_learning_rate", 0.0f, KERNEL_SWITCH)
#define KERNEL_FTRL_PREPARE \
	p[0] = h[4] != 0.0f ? lr * h[1] : h[1]; \
	p[1] = 2.0f * (h[4] != 0.0f ? lr * h[2] : h[2]); \
	*power = -h[0];
#define KERNEL_FTRL_STEP \
	__typeof__(w) before = POW(s[0]), after; \
	s[0] = s[0] + g * g; \
	after = POW(s[0]); \
	if (h[4] != 0.0f) { \
		s[1] = s[1] + lr * g - (after - before) * w; \
		after = after + h[3] + p[1]; \
	} else { \
		s[1] = s[1] + g - (after - before) * w / lr; \
		after = (after + h[3]) / lr + p[1]; \
	} \
	if (h[1] != 0.0f) \
		w = (CLIP(s[1], -p[0], p[0]) - s[1]) / after; \
	else \
		w = -s[1] / after;

/*
 * FBGEMM's EXACT_ROWWISE_ADAGRAD. With mean_gradient the row moves as one, by the mean of its
 * gradients, as the class RowWiseAdagrad of torchrec has it.
 */
#define KERNEL_ROWWISE_ADAGRAD_NAME "rowwise_adagrad"
#define KERNEL_ROWWISE_ADAGRAD_SLOTS(S) S("accumulators", 0.0f, KERNEL_FROM_ZERO, KERNEL_ONE_NUMBER)
#define KERNEL_ROWWISE_ADAGRAD_HYPER(H) \
	H("epsilon", 1e-8f, KERNEL_ABOVE_ZERO) \
	H("mean_gradient", 0.0f, KERNEL_SWITCH)
#define KERNEL_ROWWISE_ADAGRAD_PREPARE
#define KERNEL_ROWWISE_ADAGRAD_MEAN h[1] != 0.0f
#define KERNEL_ROWWISE_ADAGRAD_ROW \
	slot = slot + ROUND(h[1] != 0.0f ? mean * mean : mean); \
	r[0] = lr / (ROOT(slot) + h[0]); \
	r[1] = ROUND(mean);
#define KERNEL_ROWWISE_ADAGRAD_STEP w = w - r[0] * (h[1] != 0.0f ? SPREAD(r[1]) : g);

/* FBGEMM's PARTIAL_ROWWISE_ADAM: Adam with bias correction, whose mean of squares is the row's. */
#define KERNEL_PARTIAL_ROWWISE_ADAM_NAME "partial_rowwise_adam"
#define KERNEL_PARTIAL_ROWWISE_ADAM_SLOTS(S) \
	S("momenta", 0.0f, KERNEL_FINITE) \
	S("velocities", 0.0f, KERNEL_FROM_ZERO, KERNEL_ONE_NUMBER)
#define KERNEL_PARTIAL_ROWWISE_ADAM_HYPER(H) \
	H("beta_1", 0.9f, KERNEL_BELOW_ONE) \
	H("beta_2", 0.999f, KERNEL_BELOW_ONE) \
	H("epsilon", 1e-8f, KERNEL_ABOVE_ZERO)
#define KERNEL_PARTIAL_ROWWISE_ADAM_PREPARE \
	double root = root64(1.0 - math64_power(h[1], step)); \
	p[0] = lr * root / (1.0 - math64_power(h[0], step)); \
	p[1] = h[2] * root;
#define KERNEL_PARTIAL_ROWWISE_ADAM_MEAN false
#define KERNEL_PARTIAL_ROWWISE_ADAM_ROW \
	slot = h[1] * slot + (1.0f - h[1]) * ROUND(mean); \
	r[0] = p[0] / (ROOT(slot) + p[1]);
#define KERNEL_PARTIAL_ROWWISE_ADAM_STEP \
	s[0] = h[0] * s[0] + (1.0f - h[0]) * g; \
	w = w - r[0] * s[0];

/*
 * These five need no mending if kernel_prepare() finds all settings tame: their products leave f32
 * only where a slot or the new row does. They are what most tables have, and no test costs nothing.
 */
#define KERNEL_OPTIMIZER_IS_TAME(kind) \
	((kind) == KERNEL_SGD || (kind) == KERNEL_MOMENTUM || (kind) == KERNEL_ADAGRAD || \
	 (kind) == KERNEL_ADAM || (kind) == KERNEL_ROWWISE_ADAGRAD)

enum kernel_optimizer_kind {
#define KERNEL_KIND(KIND) KERNEL_##KIND,
	KERNEL_OPTIMIZERS(KERNEL_KIND)
#undef KERNEL_KIND
		KERNEL_OPTIMIZER_COUNT
};

/* The ranges of hyperparameters and slots; all are finite. */
enum kernel_range {
	KERNEL_FINITE,
	KERNEL_SWITCH, /* +0 or 1 */
	KERNEL_ABOVE_ZERO,
	KERNEL_FROM_ZERO,  /* zero or more */
	KERNEL_UP_TO_ZERO, /* zero or less */
	KERNEL_UP_TO_ONE,  /* [0, 1] */
	KERNEL_BELOW_ONE,  /* [0, 1) */
};

#define KERNEL_ONE_NUMBER true

/**
 * struct kernel_parameter - a slot or a hyperparameter of an optimizer
 * @name: as users and checkpoints know it
 * @value: start value of the slot, default of the hyperparameter
 * @range: enum kernel_range of its numbers
 * @one_number: the slot has one number a row, in place of as many as the row
 */
struct kernel_parameter {
	const char *name;
	float value;
	u32 range;
	bool one_number;
};

/**
 * struct kernel_optimizer - the description of an optimizer
 * @name: as users know it
 * @slot_count: elements of @slots
 * @hyper_count: elements of @hyper
 * @slots: in checkpoint order
 * @hyper: in the order of kernel_update.hyper
 */
struct kernel_optimizer {
	const char *name;
	u32 slot_count;
	u32 hyper_count;
	struct kernel_parameter slots[KERNEL_MAX_SLOTS];
	struct kernel_parameter hyper[KERNEL_MAX_HYPER];
};

/* By enum kernel_optimizer_kind. */
extern const struct kernel_optimizer kernel_optimizers[KERNEL_OPTIMIZER_COUNT];

#endif
