/* SPDX-License-Identifier: MIT */
/* Translation between optimizers and the message OptimizationParameters. */
#ifndef EMBENG_TPU_OPTIMIZER_H
#define EMBENG_TPU_OPTIMIZER_H

#include "model/optimizer.h"
#include "tpu.pb-c.h"
#include "wire.h"

#define TPU_NO_TAG (-1) /* the rate is constant */

/* Tags of the values that an optimizer is given each step; TPU_NO_TAG for those that it is not. */
struct tpu_tags {
	int32_t rate;
	int32_t step; /* step_counter */
};

/* A lower and an upper limit. */
struct tpu_limits {
	Tpu__ClippingLimits message;
	Tpu__FloatValue lower, upper;
};

/* OptimizationParameters, with the memory of everything that they may point to. */
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

/* Fills the limits that are given. Return: the message, or NULL if there is no limit. */
Tpu__ClippingLimits *tpu_limits_fill(struct tpu_limits *to, bool has_min, float min, bool has_max,
				     float max);

/*
 * tpu_parameters_fill() - translate an optimizer to the protobuf
 * @to: filled in; it points into itself, so it must not be moved afterwards
 * @optimizer: checked optimizer of any kind
 * @tags: tags, of which those that the optimizer has are used
 * @where: start of the sentence of a failure
 *
 * Return: 0, or -ENOTSUP when the protobuf has no such optimizer.
 */
int tpu_parameters_fill(struct tpu_parameters *to, const struct embeng_optimizer *optimizer,
			struct tpu_tags tags, const char *where);

/*
 * tpu_parameters_read() - translate an optimizer from the protobuf
 * @place: place of the message in the whole, NULL when it is the whole
 * @optional: an optimizer or a rate may be missing; the kind is EMBENG_OPTIMIZER_NO then, or
 *	the rate 0
 * @tags: filled in; the caller sets the names
 *
 * The result is not checked; see optimizer_check(). Return: 0, -EINVAL, -ERANGE, -ENOTSUP.
 */
int tpu_parameters_read(const struct tpu_place *place, const Tpu__OptimizationParameters *from,
			bool optional, struct embeng_optimizer *optimizer, struct tpu_tags *tags);

/* quantization.c: quantization of a table, which is a part of the optimizer in the protobuf. */

/* @to->message is initialized already. @q is checked; num_buckets 0 changes nothing. */
void tpu_quantization_fill(struct tpu_parameters *to, const struct embeng_quantization *q);

/*
 * tpu_quantization_read() - read the quantization of a table; one that is not enabled is none
 * @place: place of @from
 *
 * Levels are not compared with each other. Return: 0, -EINVAL, -ERANGE.
 */
int tpu_quantization_read(const struct tpu_place *place, const Tpu__OptimizationParameters *from,
			  struct embeng_quantization *q);

#endif
