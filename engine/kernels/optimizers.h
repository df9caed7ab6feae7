/* SPDX-License-Identifier: MIT */
/*
 * Every optimizer, once. KERNEL_OPTIMIZERS lists them; for each KIND there are
 *	KERNEL_KIND_NAME	its name
 *	KERNEL_KIND_SLOTS(S)	S(name, start value) per slot, in checkpoint order
 *	KERNEL_KIND_HYPER(H)	H(name, default) per hyperparameter, in kernel_update.hyper order
 *	KERNEL_KIND_STEP	statements over w, g, s[], lr, h[], SQRT(): the update
 * The statements are compiled for vectors and for single floats. C's order of evaluation is
 * the order of the numbers: every multiplication and addition rounds by itself.
 */
#ifndef ENGINE_KERNELS_OPTIMIZERS_H
#define ENGINE_KERNELS_OPTIMIZERS_H

#include "../types.h"
#include "kernels.h"

/* The numbers are positions in this list: append only. */
#define KERNEL_OPTIMIZERS(X) \
	X(SGD) \
	X(ADAGRAD) \
	X(MOMENTUM) \
	X(ADAM)

#define KERNEL_SGD_NAME "sgd"
#define KERNEL_SGD_SLOTS(S)
#define KERNEL_SGD_HYPER(H)
#define KERNEL_SGD_STEP \
	w = w - lr * g;

#define KERNEL_ADAGRAD_NAME "adagrad"
#define KERNEL_ADAGRAD_SLOTS(S) S("accumulators", 0.1f)
#define KERNEL_ADAGRAD_HYPER(H)
#define KERNEL_ADAGRAD_STEP \
	s[0] = s[0] + g * g; \
	w = w - lr * g / SQRT(s[0]);

#define KERNEL_MOMENTUM_NAME "momentum"
#define KERNEL_MOMENTUM_SLOTS(S) S("momenta", 0.0f)
#define KERNEL_MOMENTUM_HYPER(H) H("momentum", 0.9f) H("use_nesterov", 0.0f)
#define KERNEL_MOMENTUM_STEP \
	s[0] = h[0] * s[0] + g; \
	if (h[1] != 0.0f) \
		w = w - (lr * g + lr * h[0] * s[0]); \
	else \
		w = w - lr * s[0];

/* Without bias correction; the caller may fold that into lr. */
#define KERNEL_ADAM_NAME "adam"
#define KERNEL_ADAM_SLOTS(S) S("momenta", 0.0f) S("velocities", 0.0f)
#define KERNEL_ADAM_HYPER(H) \
	H("beta_1", 0.9f) H("beta_2", 0.999f) H("epsilon", 1e-7f) H("sum_inside_sqrt", 1.0f)
#define KERNEL_ADAM_STEP \
	s[0] = h[0] * s[0] + (1.0f - h[0]) * g; \
	s[1] = h[1] * s[1] + (1.0f - h[1]) * (g * g); \
	if (h[3] != 0.0f) \
		w = w - lr * s[0] / SQRT(s[1] + h[2] * h[2]); \
	else \
		w = w - lr * s[0] / (SQRT(s[1]) + h[2]);

enum kernel_optimizer_kind {
#define KERNEL_KIND(KIND) KERNEL_##KIND,
	KERNEL_OPTIMIZERS(KERNEL_KIND)
#undef KERNEL_KIND
	KERNEL_OPTIMIZER_COUNT
};

/**
 * struct kernel_parameter - a slot or a hyperparameter of an optimizer
 * @name: as users and checkpoints know it
 * @value: start value of the slot, default of the hyperparameter
 */
struct kernel_parameter {
	const char *name;
	float value;
};

/**
 * struct kernel_optimizer - what an optimizer is made of
 * @name: as users know it
 * @slot_count: of @slots
 * @hyper_count: of @hyper
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
