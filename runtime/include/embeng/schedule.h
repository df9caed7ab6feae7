/* SPDX-License-Identifier: MIT */
/* Learning rates that follow the step. Included by embeng.h, whose rules hold. */
#ifndef EMBENG_SCHEDULE_API_H
#define EMBENG_SCHEDULE_API_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum embeng_schedule_name {
	EMBENG_SCHEDULE_CONSTANT = 1,
	EMBENG_SCHEDULE_EXPONENTIAL,
	EMBENG_SCHEDULE_INVERSE_TIME,
	EMBENG_SCHEDULE_POLYNOMIAL,
	EMBENG_SCHEDULE_COSINE,
	EMBENG_SCHEDULE_PIECEWISE,
};

/**
 * struct embeng_schedule - a learning rate as a function of the step
 * @size: sizeof(struct embeng_schedule)
 * @kind: enum embeng_schedule_name
 * @learning_rate: where it starts, finite; not of piecewise
 * @decay_steps: exponential, inverse_time, polynomial, cosine: from 1
 * @decay_rate: exponential, inverse_time: 0 or above, finite
 * @staircase: exponential, inverse_time: only whole multiples of @decay_steps count
 * @end_learning_rate: polynomial: where it ends
 * @power: polynomial, 0 or above, finite
 * @cycle: polynomial: starts again from @learning_rate, with a longer decay each time
 * @alpha: cosine: where it ends, as a part of @learning_rate
 * @boundaries: piecewise: [boundary_count], rising
 * @values: piecewise: [boundary_count + 1], finite; values[i] up to and with step
 *	boundaries[i], the last one behind all of them
 * @boundary_count: piecewise, from 1
 * @warmup_steps: before this step the rate rises in a line from @warmup_learning_rate to
 *	what the schedule has when it goes on; 0: no warm-up. Any kind has it
 * @warmup_learning_rate: at step 0, finite
 * @starts_after_warmup: the schedule's own step 0 is the step @warmup_steps; otherwise its
 *	first @warmup_steps steps are replaced
 *
 * Make it with the function of its kind, which sets the defaults, then set what differs.
 * Arrays stay the caller's. embeng-schedules(7) has all formulas.
 */
struct embeng_schedule {
	size_t size;
	enum embeng_schedule_name kind;
	float learning_rate;
	uint64_t decay_steps;
	float decay_rate;
	unsigned char staircase;
	float end_learning_rate;
	float power;
	unsigned char cycle;
	float alpha;
	const uint64_t *boundaries;
	const float *values;
	size_t boundary_count;
	uint64_t warmup_steps;
	float warmup_learning_rate;
	unsigned char starts_after_warmup;
};

/** embeng_schedule_constant() - the same rate at every step */
EMBENG_API struct embeng_schedule embeng_schedule_constant(float learning_rate);

/**
 * embeng_schedule_exponential() - learning_rate * decay_rate ^ (step / decay_steps)
 *
 * With staircase the quotient is a whole number. Source: Keras, ExponentialDecay.
 */
EMBENG_API struct embeng_schedule embeng_schedule_exponential(float learning_rate,
							      uint64_t decay_steps,
							      float decay_rate);

/**
 * embeng_schedule_inverse_time() - learning_rate / (1 + decay_rate * (step / decay_steps))
 *
 * With staircase the quotient is a whole number. Source: Keras, InverseTimeDecay.
 */
EMBENG_API struct embeng_schedule embeng_schedule_inverse_time(float learning_rate,
							       uint64_t decay_steps,
							       float decay_rate);

/**
 * embeng_schedule_polynomial() - from learning_rate to end_learning_rate
 *
 * end + (learning_rate - end) * (1 - p) ^ power, p = min(step, decay_steps) / decay_steps;
 * with cycle p = step / (decay_steps * max(ceil(step / decay_steps), 1)). Defaults:
 * end_learning_rate 0.0001, power 1. Source: Keras, PolynomialDecay.
 */
EMBENG_API struct embeng_schedule embeng_schedule_polynomial(float learning_rate,
							     uint64_t decay_steps);

/**
 * embeng_schedule_cosine() - half a cosine, from learning_rate to alpha * learning_rate
 *
 * learning_rate * ((1 - alpha) * (1 + cos(pi * p)) / 2 + alpha),
 * p = min(step, decay_steps) / decay_steps. Default: alpha 0. Source: Loshchilov, Hutter
 * 2017; Keras, CosineDecay.
 */
EMBENG_API struct embeng_schedule embeng_schedule_cosine(float learning_rate, uint64_t decay_steps);

/**
 * embeng_schedule_piecewise() - constant between boundaries
 * @boundaries: [boundary_count], not copied
 * @values: [boundary_count + 1], not copied
 *
 * Source: Keras, PiecewiseConstantDecay.
 */
EMBENG_API struct embeng_schedule embeng_schedule_piecewise(const uint64_t *boundaries,
							    const float *values,
							    size_t boundary_count);

/**
 * embeng_schedule_text() - "constant", "exponential", "inverse_time", "polynomial",
 * "cosine", "piecewise"; NULL for no kind
 */
EMBENG_API const char *embeng_schedule_text(enum embeng_schedule_name kind);

/**
 * embeng_schedule_rate() - the rate of a step
 * @step: updates before this one: 0 for the first, as optimizers of Keras count
 * @rate: out
 *
 * A function of its arguments alone: computed in 64 bits, the same on every processor, and
 * rounded once. It is the value of &struct embeng_rate that embeng_apply_gradients() takes
 * for a dynamic rate; embeng_model_set_schedule() has the library take it by itself.
 *
 * Return: 0, -EINVAL, -ERANGE naming the setting, or the step whose rate is not finite.
 */
EMBENG_API int embeng_schedule_rate(const struct embeng_schedule *schedule, uint64_t step,
				    float *rate);

#ifdef __cplusplus
}
#endif

#endif
