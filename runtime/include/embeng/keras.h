/* SPDX-License-Identifier: MIT */
/*
 * The rules of the Keras layer of TPU embeddings for optimizers, as data: names, defaults,
 * translation, slots of its checkpoints. Source: TensorFlow Recommenders,
 * layers/embedding/tpu_embedding_layer.py. Included by embeng.h, whose rules hold.
 */
#ifndef EMBENG_KERAS_API_H
#define EMBENG_KERAS_API_H

#include "optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * embeng_keras_by_name() - the optimizer that a text stands for
 * @name: "sgd", "adagrad", "adam" or "ftrl"
 * @optimizer: out, with the rate and all that embeng-optimizers(7) lists as defaults
 *
 * Return: 0, -EINVAL, or -ENOENT ("Unknown optimizer name", naming those that there are).
 */
EMBENG_API int embeng_keras_by_name(const char *name, struct embeng_optimizer *optimizer);

/**
 * embeng_keras_accept() - does the layer take this optimizer as it is?
 *
 * Return: 0 for sgd, adagrad, adam without bias_correction and ftrl; -EINVAL for any other
 * ("Unknown optimizer type").
 */
EMBENG_API int embeng_keras_accept(const struct embeng_optimizer *optimizer);

/**
 * struct embeng_keras_optimizer - a legacy Keras optimizer, as its get_config() tells it
 * @size: sizeof(struct embeng_keras_optimizer)
 * @class_name: "SGD", "Adagrad", "Adam" or "Ftrl"
 * @new_style: a tf.keras.optimizers.experimental.Optimizer; refused
 * @learning_rate: a constant one
 * @rate_name: the rate is a tensor, a function or a LearningRateSchedule: the name of the
 *	dynamic rate that stands for it (embeng/schedule.h has the schedules). NULL: constant
 * @has_clipnorm: refused, whatever its value
 * @has_clipvalue: refused, whatever its value
 * @decay: SGD, Adam: refused unless 0
 * @momentum: SGD: refused unless 0
 * @nesterov: SGD: refused
 * @initial_accumulator_value: Adagrad, Ftrl
 * @epsilon: Adam. Adagrad: has no place and is refused unless the default, 1e-7
 * @beta_1: Adam
 * @beta_2: Adam
 * @amsgrad: Adam: refused
 * @learning_rate_power: Ftrl
 * @l1_regularization_strength: Ftrl
 * @l2_regularization_strength: Ftrl
 * @l2_shrinkage_regularization_strength: Ftrl: refused unless 0
 * @beta: Ftrl
 *
 * Make it with embeng_keras_defaults(), then set what differs. Members that its class lacks are
 * ignored.
 */
struct embeng_keras_optimizer {
	size_t size;
	const char *class_name;
	unsigned char new_style;
	float learning_rate;
	const char *rate_name;
	unsigned char has_clipnorm;
	unsigned char has_clipvalue;
	float decay;
	float momentum;
	unsigned char nesterov;
	float initial_accumulator_value;
	float epsilon;
	float beta_1;
	float beta_2;
	unsigned char amsgrad;
	float learning_rate_power;
	float l1_regularization_strength;
	float l2_regularization_strength;
	float l2_shrinkage_regularization_strength;
	float beta;
};

/**
 * embeng_keras_defaults() - an optimizer of Keras as its class makes it
 * @class_name: as above; kept by pointer
 * @keras: out
 *
 * Return: 0, -EINVAL, or -ENOENT ("Keras optimizer ... is unsupported for TPU Embedding").
 */
EMBENG_API int embeng_keras_defaults(const char *class_name, struct embeng_keras_optimizer *keras);

/**
 * embeng_keras_translate() - a Keras optimizer as a table's
 * @keras: checked in the layer's order: style, class, clipnorm, clipvalue, then the settings
 *	of its class
 * @optimizer: out, untouched on failure. Settings that Keras lacks are at their defaults:
 *	adam is lazy, with epsilon inside of the root
 *
 * Return: 0, -EINVAL ("Optimizer parameter ... is unsupported for TPU embeddings", or a new
 * style of optimizer), -ENOENT (class), -ERANGE (a number that the optimizer does not take).
 */
EMBENG_API int embeng_keras_translate(const struct embeng_keras_optimizer *keras,
				      struct embeng_optimizer *optimizer);

/**
 * embeng_keras_slot() - a slot's name in checkpoints of the layer
 * @kind: kind of the optimizer
 * @slot: as embeng_model_slot_name() gives it
 *
 * Return: "accumulator" of adagrad's and ftrl's accumulators, "linear" of ftrl's linears,
 * "m" and "v" of adam's momenta and velocities; NULL for all else.
 */
EMBENG_API const char *embeng_keras_slot(enum embeng_optimizer_name kind, const char *slot);

#ifdef __cplusplus
}
#endif

#endif
