/* SPDX-License-Identifier: MIT */
/* The rules of updates, written as plainly as possible: one float at a time. */
#ifndef TEST_KERNELS_RULES_H
#define TEST_KERNELS_RULES_H

#include <check.h>
#include <math.h>

#include "rules_proto.h"
#include "test_kernels_step.h"

static inline const struct kernel_segment *segment_of(const struct step *s, u32 occurrence)
{
	for (u32 i = 0;; i++)
		if (occurrence >= s->segments[i].first && occurrence < s->segments[i].end)
			return &s->segments[i];
}

static inline float gradient_of(const struct step *s, u32 occurrence, u32 column, float *coef)
{
	const struct kernel_segment *seg = segment_of(s, occurrence);
	u64 k = occurrence - seg->first;

	*coef = seg->coef ? seg->coef[k] : 1.0f;
	return seg->gradients[(seg->grad_row ? seg->grad_row[k] : k) * seg->stride + column];
}

static inline float expected_sum(const struct step *s, const struct kernel_group *group, u32 column)
{
	const u32 *occ = s->occ + group->first;
	float sum = 0.0f;
	bool any = false;

	for (u32 replica = 0; replica <= SEGMENTS / 3; replica++) {
		float total = 0.0f, acc = 0.0f, coef;
		u64 n = 0;

		for (u64 k = 0; k < group->count; k++) {
			float g = gradient_of(s, occ[k], column, &coef);

			if (segment_of(s, occ[k])->replica != replica)
				continue;
			if (n && n % 256 == 0) {
				total = n == 256 ? acc : total + acc;
				acc = 0.0f;
			}
			acc = fmaf(coef, g, acc);
			n++;
		}
		if (!n)
			continue;
		total = n > 256 ? total + acc : acc;
		sum = any ? sum + total : total;
		any = true;
	}
	return sum;
}

static inline float limit(float x, float low, float high)
{
	if (x < low)
		return low;
	return x > high ? high : x;
}

/* The volatile ones keep the compiler from fusing, whatever its flags. */
static inline float rule_adam(const struct kernel_update *u, float w, float g, float *slot)
{
	const float *h = u->hyper;
	float rate = u->lr, epsilon = h[2];
	volatile float t = (1.0f - h[0]) * g;

	slot[0] = h[0] * slot[0] + t;
	t = g * g;
	t = (1.0f - h[1]) * t;
	slot[1] = h[1] * slot[1] + t;
	if (h[4] != 0.0f) {
		double root = sqrt(1.0 - math64_power(h[1], u->step));

		rate = (float)(u->lr * root / (1.0 - math64_power(h[0], u->step)));
		epsilon = h[5] != 0.0f ? h[2] : (float)(h[2] * root);
	}
	t = h[2] * h[2];
	t = h[3] != 0.0f && h[4] == 0.0f ? sqrtf(slot[1] + t) : sqrtf(slot[1]) + epsilon;
	return w - rate * slot[0] / t;
}

static inline float rule_adagrad_momentum(const struct kernel_update *u, float w, float g,
					  float *slot)
{
	const float *h = u->hyper;
	volatile float square = g * g, t = (1.0f - h[3]) * square;

	slot[0] = h[3] == 1.0f ? slot[0] + square : h[3] * slot[0] + t;
	g *= rule_power(slot[0] + h[4], -1.0 / h[2]);
	t = h[0] * slot[1];
	slot[1] = t + g;
	t = h[0] * slot[1];
	t = u->lr * (h[1] != 0.0f ? t + g : slot[1]);
	return w - t;
}

static inline float rule_ftrl(const struct kernel_update *u, float w, float g, float *slot)
{
	const float *h = u->hyper;
	bool multiplied = h[4] != 0.0f;
	volatile float square = g * g, before = rule_power(slot[0], -(double)h[0]), after, t, l1;

	slot[0] = slot[0] + square;
	after = rule_power(slot[0], -(double)h[0]);
	t = (after - before) * w;
	l1 = multiplied ? u->lr * h[1] : h[1];
	if (multiplied) {
		volatile float step = u->lr * g;

		slot[1] = slot[1] + step - t;
		t = 2.0f * u->lr * h[2];
		t = after + h[3] + t;
	} else {
		slot[1] = slot[1] + g - t / u->lr;
		t = 2.0f * h[2];
		t = (after + h[3]) / u->lr + t;
	}
	return (h[1] == 0.0f ? -slot[1] : limit(slot[1], -l1, l1) - slot[1]) / t;
}

static inline float optimize(const struct kernel_update *u, float w, float g, float *slot)
{
	static const rule rules[KERNEL_OPTIMIZER_COUNT] = {
		[KERNEL_MOMENTUM] = rule_momentum,
		[KERNEL_LION] = rule_lion,
		[KERNEL_RMS_PROP] = rule_rms_prop,
		[KERNEL_CENTERED_RMS_PROP] = rule_centered_rms_prop,
		[KERNEL_ADADELTA] = rule_adadelta,
		[KERNEL_PROXIMAL_ADAGRAD] = rule_proximal_adagrad,
		[KERNEL_ASSIGN] = rule_assign,
		[KERNEL_LAPROP] = rule_laprop,
		[KERNEL_PROXIMAL_YOGI] = rule_proximal_yogi,
		[KERNEL_BOUNDED_ADAGRAD] = rule_bounded_adagrad,
		[KERNEL_ONLINE_YOGI] = rule_online_yogi,
		[KERNEL_FREQUENCY_ESTIMATOR] = rule_frequency_estimator,
		[KERNEL_FREQUENCY_AWARE_ADAGRAD] = rule_frequency_aware_adagrad,
		[KERNEL_MDL_ADAGRAD_LIGHT] = rule_mdl_adagrad_light,
	};
	volatile float t;

	switch (u->optimizer) {
	case KERNEL_SGD:
		t = u->lr * g;
		return w - t;
	case KERNEL_ADAGRAD:
		t = g * g;
		slot[0] += t;
		t = u->lr * g;
		t = t / (sqrtf(slot[0]) + u->hyper[0]);
		return w - t;
	case KERNEL_ADAM:
		return rule_adam(u, w, g, slot);
	case KERNEL_ADAGRAD_MOMENTUM:
		return rule_adagrad_momentum(u, w, g, slot);
	case KERNEL_FTRL:
		return rule_ftrl(u, w, g, slot);
	}
	if (!rules[u->optimizer])
		ck_abort_msg("no rule for optimizer %u", u->optimizer);
	return rules[u->optimizer](u->hyper, u->lr, u->step, w, g, slot);
}

/* The slot of one number, and what the elements of its row go by. */
static inline void rule_row(const struct kernel_update *u, double mean, float *slot, float *shared)
{
	const float *h = u->hyper;
	double root = sqrt(1.0 - math64_power(h[1], u->step));
	volatile float t;

	if (u->optimizer == KERNEL_ROWWISE_ADAGRAD) {
		*slot += (float)(h[1] != 0.0f ? mean * mean : mean);
		shared[0] = u->lr / (sqrtf(*slot) + h[0]);
		shared[1] = (float)mean;
		return;
	}
	t = (1.0f - h[1]) * (float)mean;
	*slot = h[1] * *slot + t;
	t = sqrtf(*slot) + (float)(h[2] * root);
	shared[0] = (float)(u->lr * root / (1.0 - math64_power(h[0], u->step))) / t;
}

static inline float rule_of_row(const struct kernel_update *u, float w, float g, float *slot,
				const float *shared)
{
	volatile float t;

	if (u->optimizer == KERNEL_ROWWISE_ADAGRAD) {
		t = shared[0] * (u->hyper[1] != 0.0f ? shared[1] : g);
		return w - t;
	}
	t = (1.0f - u->hyper[0]) * g;
	slot[0] = u->hyper[0] * slot[0] + t;
	t = shared[0] * slot[0];
	return w - t;
}

/* An element that is not finite in f32 is computed in f64: test_kernels_mend has its numbers. */
static inline void expected_mend(const struct kernel_update *u, const struct kernel_shared *shared,
				 const float *before, float g, float *w, float *slot)
{
	struct kernel_mend m = {.gradients = &g, .count = 1, .shared = shared};

	for (u32 i = 0; i <= kernel_optimizers[u->optimizer].slot_count; i++) {
		m.row[i] = before + i;
		m.to[i] = i ? slot + i - 1 : w;
	}
	kernel_mend(u, &m);
}

static inline float expected_taken(const struct kernel_update *u, float w, float g)
{
	volatile float d = u->decay * w;

	if (u->flags & KERNEL_GRADIENT_SCALE)
		g *= u->gradient_multiplier;
	if (u->flags & KERNEL_GRADIENT_CLIP)
		g = limit(g, u->gradient_min, u->gradient_max);
	return u->flags & KERNEL_DECAY_GRADIENT ? g + d : g;
}

/* @shared: the numbers of the row, if the optimizer has a slot of one number. */
static inline void expected_update(const struct kernel_update *u, float *w, float g, float *slot,
				   const struct kernel_shared *shared)
{
	float before[1 + KERNEL_MAX_SLOTS] = {*w}, sum = g;

	memcpy(before + 1, slot, kernel_optimizers[u->optimizer].slot_count * sizeof(*slot));
	g = expected_taken(u, *w, g);
	if (u->flags & KERNEL_DECAY) {
		volatile float d = u->flags & KERNEL_DECAY_TIMES_LR ? u->decay * u->lr : u->decay;

		d = d * *w;
		*w -= d;
	}
	*w = shared ? rule_of_row(u, *w, g, slot, shared->r) : optimize(u, *w, g, slot);
	if (u->flags & KERNEL_WEIGHT_CLIP)
		*w = limit(*w, u->weight_min, u->weight_max);
	if (u->mends)
		expected_mend(u, shared, before, sum, w, slot);
}

#define MOST_COLUMNS 130u

/* The sum of a row in 16 lanes, which are added by halves. */
static inline double sum_in_lanes(const float *x, u32 dim, bool squares)
{
	double lane[16] = {0};

	for (u32 c = 0; c < dim; c++) {
		volatile double square = (double)x[c] * x[c];

		lane[c % 16] += squares ? square : x[c];
	}
	for (u32 n = 8; n; n /= 2)
		for (u32 i = 0; i < n; i++)
			lane[i] += lane[i + n];
	return lane[0];
}

/* @w: [dim] the row; @slots: [dim] of each, or one number; @g: [dim]. */
static inline void expected_row(const struct kernel_update *u, float *w, float *const *slots,
				const float *g)
{
	const bool rowwise = KERNEL_OPTIMIZER_IS_ROWWISE(u->optimizer);
	const u32 wide = kernel_optimizers[u->optimizer].slot_count - rowwise;
	struct kernel_shared shared = {0};
	float taken[MOST_COLUMNS];
	double norm;

	for (u32 c = 0; c < u->dim; c++)
		taken[c] = expected_taken(u, w[c], g[c]);
	if (rowwise) {
		bool squares = u->optimizer != KERNEL_ROWWISE_ADAGRAD || u->hyper[1] == 0.0f;

		shared.mean = sum_in_lanes(taken, u->dim, squares) / u->dim;
		shared.slot = *slots[wide];
		rule_row(u, shared.mean, slots[wide], shared.r);
	}
	for (u32 c = 0; c < u->dim; c++) {
		float slot[KERNEL_MAX_SLOTS];

		for (u32 i = 0; i < wide; i++)
			slot[i] = slots[i][c];
		expected_update(u, &w[c], g[c], slot, rowwise ? &shared : NULL);
		for (u32 i = 0; i < wide; i++)
			slots[i][c] = slot[i];
	}
	norm = sqrt(sum_in_lanes(w, u->dim, true));
	if (!(u->flags & KERNEL_MAX_NORM) || !(norm > u->max_norm) || isinf(norm))
		return;
	for (u32 c = 0; c < u->dim; c++)
		w[c] *= (float)(u->max_norm / norm);
}

/* Computes all sums once, for tests that need those of the same gradients repeatedly. */
static inline void step_sums(struct step *s)
{
	s->sums = malloc(ROWS * s->dim * sizeof(*s->sums));
	for (u32 row = 0; row < ROWS; row++)
		for (u32 c = 0; c < s->dim; c++)
			s->sums[row * s->dim + c] = expected_sum(s, &s->groups[row], c);
}

static inline void expected_group(const struct kernel_update *u, const struct step *s,
				  const struct kernel_group *group, float *w, float *const *slots)
{
	float g[MOST_COLUMNS], coef;

	for (u32 c = 0; !(u->flags & KERNEL_EACH_OCCURRENCE) && c < s->dim; c++) {
		g[c] = s->sums ? s->sums[group->row * s->dim + c] : expected_sum(s, group, c);
		if (u->flags & KERNEL_BY_FREQUENCY)
			g[c] /= (float)group->count;
	}
	if (!(u->flags & KERNEL_EACH_OCCURRENCE))
		return expected_row(u, w, slots, g);
	for (u64 k = 0; k < group->count; k++) {
		for (u32 c = 0; c < s->dim; c++) {
			float x = gradient_of(s, s->occ[group->first + k], c, &coef);

			g[c] = fmaf(coef, x, 0.0f);
		}
		expected_row(u, w, slots, g);
	}
}

#endif
