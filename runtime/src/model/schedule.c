// SPDX-License-Identifier: MIT
/*
 * Learning rates that follow a schedule by the step. They are computed in f64 without libm, so that
 * every processor gets the same bits.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "host/port.h"
#include "schedule.h"

#include "../../../engine/kernels/math64.h"

#define PI 0x1.921fb54442d18p1

static struct embeng_schedule start_schedule(enum embeng_schedule_name kind, float learning_rate)
{
	return (struct embeng_schedule){
		.size = sizeof(struct embeng_schedule),
		.kind = kind,
		.learning_rate = learning_rate,
	};
}

struct embeng_schedule embeng_schedule_constant(float learning_rate)
{
	return start_schedule(EMBENG_SCHEDULE_CONSTANT, learning_rate);
}

static struct embeng_schedule start_decay(enum embeng_schedule_name kind, float learning_rate,
					  uint64_t decay_steps, float decay_rate)
{
	struct embeng_schedule s = start_schedule(kind, learning_rate);

	s.decay_steps = decay_steps;
	s.decay_rate = decay_rate;
	return s;
}

struct embeng_schedule embeng_schedule_exponential(float learning_rate, uint64_t decay_steps,
						   float decay_rate)
{
	return start_decay(EMBENG_SCHEDULE_EXPONENTIAL, learning_rate, decay_steps, decay_rate);
}

struct embeng_schedule embeng_schedule_inverse_time(float learning_rate, uint64_t decay_steps,
						    float decay_rate)
{
	return start_decay(EMBENG_SCHEDULE_INVERSE_TIME, learning_rate, decay_steps, decay_rate);
}

struct embeng_schedule embeng_schedule_polynomial(float learning_rate, uint64_t decay_steps)
{
	struct embeng_schedule s = start_decay(EMBENG_SCHEDULE_POLYNOMIAL, learning_rate,
					       decay_steps, 0.0f);

	s.end_learning_rate = 0.0001f;
	s.power = 1.0f;
	return s;
}

struct embeng_schedule embeng_schedule_cosine(float learning_rate, uint64_t decay_steps)
{
	return start_decay(EMBENG_SCHEDULE_COSINE, learning_rate, decay_steps, 0.0f);
}

struct embeng_schedule embeng_schedule_piecewise(const uint64_t *boundaries, const float *values,
						 size_t boundary_count)
{
	struct embeng_schedule s = start_schedule(EMBENG_SCHEDULE_PIECEWISE, 0.0f);

	s.boundaries = boundaries;
	s.values = values;
	s.boundary_count = boundary_count;
	return s;
}

static double raise_to_power(double x, double y)
{
	if (y == 0.0 || y == 1.0)
		return y == 0.0 ? 1.0 : x;
	return math64_exp(y * math64_log(x));
}

static double count_decays(const struct embeng_schedule *s, uint64_t step)
{
	return s->staircase ? (double)(step / s->decay_steps)
			    : (double)step / (double)s->decay_steps;
}

/* The part of a decay that is left: from 1 at its begin to 0 at its end. */
static double part_left(const struct embeng_schedule *s, uint64_t step)
{
	uint64_t cycles = step / s->decay_steps + (step % s->decay_steps != 0);

	if (s->cycle && cycles > 1) {
		double left = 1.0 - (double)step / ((double)s->decay_steps * (double)cycles);

		/* Steps above 2^53 are rounded, and may come out behind the cycle's end. */
		return left > 0.0 ? left : 0.0;
	}
	return step < s->decay_steps ? 1.0 - (double)step / (double)s->decay_steps : 0.0;
}

/* The sine of pi x, x within [0, 1/4]: ten terms of its series reach 2^-60. */
static double sine_of_pi(double x)
{
	double z = PI * x, square = z * z, sum = 1.0;

	for (int k = 18; k >= 2; k -= 2)
		sum = 1.0 - sum * square / (k * (k + 1));
	return z * sum;
}

/* (1 + cos(pi x)) / 2 is the square of cos(pi x / 2), and 1 less that of its sine. */
static double half_cosine(double x)
{
	double near = sine_of_pi(x <= 0.5 ? x / 2 : (1.0 - x) / 2);

	return x <= 0.5 ? 1.0 - near * near : near * near;
}

static double cosine_rate(const struct embeng_schedule *s, uint64_t step)
{
	double done = step < s->decay_steps ? (double)step / (double)s->decay_steps : 1.0;
	double alpha = s->alpha;

	return (double)s->learning_rate * ((1.0 - alpha) * half_cosine(done) + alpha);
}

static double piecewise_rate(const struct embeng_schedule *s, uint64_t step)
{
	size_t i = 0;

	while (i < s->boundary_count && step > s->boundaries[i])
		i++;
	return s->values[i];
}

/* A power may exceed f64, but nothing times it is nothing. */
static double exponential_rate(const struct embeng_schedule *s, uint64_t step)
{
	double rate = s->learning_rate;

	return rate == 0.0 ? rate : rate * raise_to_power(s->decay_rate, count_decays(s, step));
}

/* Without warm-up. */
static double rate_without_warmup(const struct embeng_schedule *s, uint64_t step)
{
	double rate = s->learning_rate, end = s->end_learning_rate;

	switch (s->kind) {
	case EMBENG_SCHEDULE_CONSTANT:
		return rate;
	case EMBENG_SCHEDULE_EXPONENTIAL:
		return exponential_rate(s, step);
	case EMBENG_SCHEDULE_INVERSE_TIME:
		return rate / (1.0 + (double)s->decay_rate * count_decays(s, step));
	case EMBENG_SCHEDULE_POLYNOMIAL:
		return (rate - end) * raise_to_power(part_left(s, step), s->power) + end;
	case EMBENG_SCHEDULE_COSINE:
		return cosine_rate(s, step);
	case EMBENG_SCHEDULE_PIECEWISE:
		break;
	}
	return piecewise_rate(s, step);
}

static double rate_with_warmup(const struct embeng_schedule *s, uint64_t step)
{
	uint64_t skipped = s->starts_after_warmup ? s->warmup_steps : 0;
	double from = s->warmup_learning_rate;

	if (step >= s->warmup_steps)
		return rate_without_warmup(s, step - skipped);
	if (!step)
		return from + 0.0; /* however large the rate is that follows */
	return from + (rate_without_warmup(s, s->warmup_steps - skipped) - from) *
			      ((double)step / (double)s->warmup_steps);
}

int schedule_rate(const char *where, const struct embeng_schedule *s, uint64_t step, float *rate)
{
	struct port_fpu fpu;
	float found;

	port_fpu_begin(&fpu);
	found = (float)rate_with_warmup(s, step);
	port_fpu_end(&fpu);
	if (!isfinite(found))
		return fail(-ERANGE,
			    "%s: step %" PRIu64 ": the learning rate of the %s schedule is %g",
			    where, step, embeng_schedule_text(s->kind), (double)found);
	*rate = found;
	return 0;
}

int embeng_schedule_rate(const struct embeng_schedule *schedule, uint64_t step, float *rate)
{
	struct embeng_schedule s;
	int code;

	if (!rate)
		return fail(-EINVAL, "embeng_schedule_rate: rate must be given");
	code = config_take(&s, schedule, sizeof(s), "embeng_schedule");
	if (!code)
		code = schedule_check("embeng_schedule_rate", &s);
	return code ? code : schedule_rate("embeng_schedule_rate", &s, step, rate);
}
