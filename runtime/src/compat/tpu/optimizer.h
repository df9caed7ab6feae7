/* SPDX-License-Identifier: MIT */
/* Optimizers as OptimizationParameters. */
#ifndef EMBENG_TPU_OPTIMIZER_H
#define EMBENG_TPU_OPTIMIZER_H

#include "model/optimizer.h"
#include "tpu.pb-c.h"
#include "wire.h"

#define TPU_NO_TAG (-1) /* of a constant rate */

/* Tags of what an optimizer is given each step, TPU_NO_TAG for what it is not. */
struct tpu_tags {
	int32_t rate;
	int32_t step; /* step_counter */
};

/* A pair of limits. */
struct tpu_limits {
	Tpu__ClippingLimits message;
	Tpu__FloatValue lower, upper;
};

/* OptimizationParameters with all that they may point to. */
struct tpu_parameters {
	Tpu__OptimizationParameters message;
	Tpu__LearningRate rate;
	Tpu__DynamicHyperParameter tag, step;
	struct tpu_limits weights, gradients;
	Tpu__HotIdReplication hot_ids;
	Tpu__SimulatedQuantization quantization;
	struct tpu_limits levels;
	union {
		ProtobufCMessage base;
		Tpu__Adadelta adadelta;
		Tpu__Adagrad adagrad;
		Tpu__AdagradMomentum adagrad_momentum;
		Tpu__Adam adam;
		Tpu__Assign assign;
		Tpu__BoundedAdagrad bounded_adagrad;
		Tpu__CenteredRmsProp centered_rms_prop;
		Tpu__FrequencyAwareAdagrad frequency_aware_adagrad;
		Tpu__FrequencyEstimator frequency_estimator;
		Tpu__Ftrl ftrl;
		Tpu__Lion lion;
		Tpu__MdlAdagradLight mdl_adagrad_light;
		Tpu__Momentum momentum;
		Tpu__OnlineYogi online_yogi;
		Tpu__ProximalAdagrad proximal_adagrad;
		Tpu__ProximalYogi proximal_yogi;
		Tpu__RmsProp rms_prop;
		Tpu__StochasticGradientDescent sgd;
	} kind;
};

/* The limits that there are, NULL for none. */
Tpu__ClippingLimits *tpu_limits_fill(struct tpu_limits *to, bool has_min, float min, bool has_max,
				     float max);

/*
 * tpu_parameters_fill() - say an optimizer in the protobuf's words
 * @to: not to be moved afterwards, it points into itself
 * @optimizer: checked, of some kind
 * @tags: those that it has count
 * @where: starts the sentence
 *
 * Return: 0, or -ENOTSUP: the protobuf has no such optimizer.
 */
int tpu_parameters_fill(struct tpu_parameters *to, const struct embeng_optimizer *optimizer,
			struct tpu_tags tags, const char *where);

/*
 * tpu_parameters_read() - the optimizer that the protobuf means
 * @place: of the message, NULL: it is the whole
 * @optional: an optimizer or a rate may be missing: then the kind is EMBENG_OPTIMIZER_NO, or
 *	the rate 0
 * @tags: out; the caller sets the names
 *
 * What it gives is not checked (optimizer_check()). Return: 0, -EINVAL, -ERANGE, -ENOTSUP.
 */
int tpu_parameters_read(const struct tpu_place *place, const Tpu__OptimizationParameters *from,
			bool optional, struct embeng_optimizer *optimizer, struct tpu_tags *tags);

/* quantization.c: of a table, which the protobuf says with its optimizer. */

/* @to->message is initialized. @q: checked; num_buckets 0 changes nothing. */
void tpu_quantization_fill(struct tpu_parameters *to, const struct embeng_quantization *q);

/*
 * tpu_quantization_read() - what is not enabled is none
 * @place: of @from
 *
 * Levels are not compared with each other. Return: 0, -EINVAL, -ERANGE.
 */
int tpu_quantization_read(const struct tpu_place *place, const Tpu__OptimizationParameters *from,
			  struct embeng_quantization *q);

#endif
