/* SPDX-License-Identifier: MIT */
/* The optimizers of optimizers_proto.h written plainly, one float at a time, in order. */
#ifndef EMBENG_TESTS_RULES_PROTO_H
#define EMBENG_TESTS_RULES_PROTO_H

#include <math.h>
#include <stdint.h>

#include "engine/kernels/math64.h"

/* New w. @h, @s: hyperparameters, slots; @step: from 1. */
typedef float (*rule)(const float *h, float rate, uint64_t step, float w, float g, float *s);

/* The root where it is one; test_kernels_fma.c has the rest. */
static inline float rule_power(float x, double power)
{
	if (power == 0.5)
		return sqrtf(x);
	return power == -0.5 ? 1.0f / sqrtf(x) : (float)math64_pow(x, power);
}

static inline float rule_sign(float x)
{
	if (x > 0.0f)
		return 1.0f;
	return x < 0.0f ? -1.0f : x;
}

static inline float rule_proximal(float p, float n, float l1, float l2)
{
	if (l1 != 0.0f) {
		float rest = fabsf(p) - n * l1;

		p = rule_sign(p) * (rest < 0.0f ? 0.0f : rest);
	}
	return p / (1.0f + n * l2);
}

static inline float rule_momentum(const float *h, float rate, uint64_t step, float w, float g,
				  float *s)
{
	(void)step;
	s[0] = h[0] * s[0] + g;
	return h[1] == 0.0f ? w - rate * s[0] : w - (rate * g + rate * h[0] * s[0]);
}

static inline float rule_lion(const float *h, float rate, uint64_t step, float w, float g, float *s)
{
	float mixed = h[0] * s[0] + (1.0f - h[0]) * g;

	(void)step;
	s[0] = h[1] * s[0] + (1.0f - h[1]) * g;
	return w - rate * rule_sign(mixed);
}

static inline float rule_rms_prop(const float *h, float rate, uint64_t step, float w, float g,
				  float *s)
{
	float square = g * g;

	(void)step;
	s[0] += (1.0f - h[0]) * (square - s[0]);
	s[1] = h[1] * s[1] + rate * g / sqrtf(s[0] + h[2]);
	return w - s[1];
}

static inline float rule_centered_rms_prop(const float *h, float rate, uint64_t step, float w,
					   float g, float *s)
{
	float square = g * g, mean;

	(void)step;
	s[0] += (1.0f - h[0]) * (square - s[0]);
	mean = s[2] + (1.0f - h[0]) * (g - s[2]);
	s[2] = mean;
	square = mean * mean;
	s[1] = h[1] * s[1] + rate * g / sqrtf(s[0] - square + h[2]);
	return w - s[1];
}

static inline float rule_adadelta(const float *h, float rate, uint64_t step, float w, float g,
				  float *s)
{
	float square = g * g, move;

	(void)step;
	s[0] = h[0] * s[0] + (1.0f - h[0]) * square;
	move = g * sqrtf(s[1] + h[1]) / sqrtf(s[0] + h[1]);
	square = move * move;
	s[1] = h[0] * s[1] + (1.0f - h[0]) * square;
	return w - rate * move;
}

static inline float rule_proximal_adagrad(const float *h, float rate, uint64_t step, float w,
					  float g, float *s)
{
	float n;

	(void)step;
	s[0] += g * g;
	n = rate / sqrtf(s[0]);
	return rule_proximal(w - n * g, n, h[0], h[1]);
}

static inline float rule_assign(const float *h, float rate, uint64_t step, float w, float g,
				float *s)
{
	(void)h, (void)rate, (void)step, (void)w, (void)s;
	return g;
}

static inline float rule_laprop(const float *h, float rate, uint64_t step, float w, float g,
				float *s)
{
	double below = 1.0 - (double)powl(h[1], step);
	float decay = (float)(h[1] * (1.0 - (double)powl(h[1], step - 1)) / below);
	float share = (float)sqrt(1.0 - (double)h[0] * h[0]), square = g * g;

	s[1] = decay * s[1] + (1.0f - decay) * (square + h[2]);
	s[0] = h[0] * s[0] + share * g / sqrtf(s[1]);
	return w - rate * s[0];
}

static inline float rule_yogi(float v, float g, float beta2)
{
	float square = g * g;

	return v - (1.0f - beta2) * rule_sign(v - square) * square;
}

static inline float rule_proximal_yogi(const float *h, float rate, uint64_t step, float w, float g,
				       float *s)
{
	float n;

	(void)step;
	s[0] = rule_yogi(s[0], g, h[3]);
	s[1] = h[2] * s[1] + (1.0f - h[2]) * g;
	n = rate / (sqrtf(s[0]) + h[4]);
	return rule_proximal(w - n * s[1], n, h[0], h[1]);
}

static inline float rule_bounded_adagrad(const float *h, float rate, uint64_t step, float w,
					 float g, float *s)
{
	float old = s[0], move;

	(void)step;
	s[0] = old + g * g;
	if (h[2] > 0.0f && s[0] > h[2])
		s[0] = h[2];
	move = rate * g / sqrtf(h[0] == 0.0f ? old : s[0]);
	if (h[1] > 0.0f && fabsf(move) > h[1])
		move = move < 0.0f ? -h[1] : h[1];
	return w - move;
}

static inline float rule_online_yogi(const float *h, float rate, uint64_t step, float w, float g,
				     float *s)
{
	float before = sqrtf(s[0]), after, over;

	(void)step;
	s[0] = rule_yogi(s[0], g, h[2]);
	after = sqrtf(s[0]);
	s[1] = s[1] + g - (after - before) * w / rate;
	over = s[1] < -h[0] ? -h[0] : s[1] > h[0] ? h[0] : s[1];
	over = h[0] == 0.0f ? -s[1] : over - s[1];
	return over / (after / rate + 2.0f * h[1]);
}

static inline float rule_frequency_estimator(const float *h, float rate, uint64_t step, float w,
					     float g, float *s)
{
	float delta = rate - s[0], held = delta > h[1] ? h[1] : delta;

	(void)step, (void)g;
	s[0] = rate;
	if (delta >= h[2] * w)
		return held;
	return (1.0f - h[0]) * w + h[0] * held;
}

static inline float rule_frequency_aware_adagrad(const float *h, float rate, uint64_t step, float w,
						 float g, float *s)
{
	float rare, pull;

	s[1] += 1.0f;
	rare = rule_power((float)step / s[1], h[3]);
	rare = rare > h[2] ? h[2] : rare;
	s[0] = h[4] * s[0] + g * g;
	s[0] = s[0] < h[5] ? h[5] : s[0];
	pull = g * rare / sqrtf(s[0]) + h[0] * rule_sign(w);
	return w - rate * (pull + h[1] * w);
}

/* A limit of 0 is none. */
static inline float rule_within(float x, float limit)
{
	if (!(limit > 0.0f))
		return x;
	if (x < -limit)
		return -limit;
	return x > limit ? limit : x;
}

/* Slot 2 after the event that one gradient is. */
static inline float rule_benefit(const float *h, float event, float before)
{
	float benefit = before + rule_within(event, h[7]), least = h[2] - h[9];

	if (h[6] > 0.0f && benefit < h[2])
		benefit += h[6] * (h[2] - benefit);
	benefit = rule_within(benefit, h[8]);
	return h[10] == 1.0f && benefit < least ? least : benefit;
}

static inline float rule_mdl_adagrad_light(const float *h, float rate, uint64_t step, float w,
					   float g, float *s)
{
	float all = w + s[1], event = -g * all, n, share;

	(void)step;
	s[0] += g * g;
	if (h[4] > 0.0f)
		event *= s[0] / (s[0] + h[4]);
	s[2] = rule_benefit(h, event, s[2]);
	n = rate * rule_power(s[0], h[1]);
	all = (all - n * g) / (1.0f + 2.0f * h[0] * n);
	s[1] = 0.0f;
	if (h[11] == 0.0f)
		return all;
	share = s[2] >= h[2] ? 1.0f : 0.0f;
	if (h[3] > 0.0f) {
		share = (s[2] - h[2]) / h[3];
		share = share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share;
	}
	w = (h[5] + (1.0f - h[5]) * share) * all;
	s[1] = all - w;
	return w;
}

#endif
