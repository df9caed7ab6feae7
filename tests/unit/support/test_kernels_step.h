/* SPDX-License-Identifier: MIT */
/* A random step on a small table: occurrences, gradients, rows, settings of an optimizer. */
#ifndef TEST_KERNELS_STEP_H
#define TEST_KERNELS_STEP_H

#include <math.h>

#include "engine/kernels/kernels.h"
#include "engine/kernels/optimizers.h"
#include "test_kernels.h"

#define ROWS 6u
#define SEGMENTS 7u
#define SAMPLES 40u

/* Occurrences of ROWS rows in SEGMENTS (replica, feature) parts, as an engine sorts them. */
struct step {
	u32 dim;
	u64 stride;
	struct kernel_segment segments[SEGMENTS];
	float *gradients[SEGMENTS];
	u32 *grad_rows[SEGMENTS];
	float *coefs[SEGMENTS];
	u32 *occ;
	struct kernel_group groups[ROWS];
	float *table;
	float *slots[KERNEL_MAX_SLOTS];
	float *sums; /* [ROWS][dim], once step_sums() has made them */
};

static inline void segment_random(struct step *s, u32 i, u64 first, u64 count)
{
	struct kernel_segment *seg = &s->segments[i];
	bool null = random_below(5) == 0, direct = !null && random_below(3) == 0;
	u64 stride = s->dim + random_below(4);

	s->gradients[i] = null ? calloc(s->dim, sizeof(float))
			       : random_values((direct ? count : SAMPLES) * stride);
	s->coefs[i] = random_values(count);
	s->grad_rows[i] = malloc((count + 1) * sizeof(u32));
	for (u64 k = 0; k < count; k++)
		s->grad_rows[i][k] = (u32)random_below(SAMPLES);
	*seg = (struct kernel_segment){.first = first,
				       .end = first + count,
				       .replica = i / 3,
				       .gradients = s->gradients[i],
				       .stride = null ? 0 : stride,
				       .grad_row = direct ? NULL : s->grad_rows[i],
				       .coef = random_below(2) ? s->coefs[i] : NULL,
				       .far = random_below(2)};
}

/* Row 0 is hot: it fills several runs per replica. The last row occurs once. */
static inline void step_random(struct step *s, u32 dim, u64 hot)
{
	u64 total = 0, at = 0;

	s->dim = dim;
	s->sums = NULL;
	s->stride = dim + random_below(5);
	for (u32 i = 0; i < SEGMENTS; i++) {
		u64 count = i == 1 ? 0 : 20 + random_below(hot);

		segment_random(s, i, total, count);
		total += count;
	}
	s->occ = malloc(total * sizeof(*s->occ));
	for (u32 row = 0; row < ROWS; row++) {
		s->groups[row] = (struct kernel_group){.row = row, .first = at};
		for (u32 k = 0; k < total; k++)
			if (row == (k % 10 || k > 40 ? 0 : 1 + k / 10))
				s->occ[at++] = k;
		s->groups[row].count = at - s->groups[row].first;
	}
	s->table = random_values(ROWS * s->stride);
	for (u32 i = 0; i < KERNEL_MAX_SLOTS; i++) {
		s->slots[i] = random_values(ROWS * s->stride);
		for (u64 k = 0; k < ROWS * s->stride; k++)
			s->slots[i][k] = fabsf(s->slots[i][k]);
	}
}

static inline void step_free(struct step *s)
{
	for (u32 i = 0; i < SEGMENTS; i++) {
		free(s->gradients[i]);
		free(s->coefs[i]);
		free(s->grad_rows[i]);
	}
	for (u32 i = 0; i < KERNEL_MAX_SLOTS; i++)
		free(s->slots[i]);
	free(s->occ);
	free(s->table);
	free(s->sums);
}

static inline float *copy_rows(const struct step *s, const float *rows)
{
	float *copy = malloc(ROWS * s->stride * sizeof(*copy));

	return memcpy(copy, rows, ROWS * s->stride * sizeof(*copy));
}

static inline float hyper_random(const struct kernel_parameter *parameter)
{
	static const float choices[][4] = {
		[KERNEL_FINITE] = {0.9f, 0.0f, 0.5f, -0.3f},
		[KERNEL_SWITCH] = {0.0f, 1.0f, 0.0f, 1.0f},
		[KERNEL_ABOVE_ZERO] = {1e-7f, 2.0f, 3.0f, 0.7f},
		[KERNEL_FROM_ZERO] = {0.0f, 0.01f, 0.0f, 0.3f},
		[KERNEL_UP_TO_ZERO] = {-0.5f, 0.0f, -1.0f, -0.7f},
		[KERNEL_UP_TO_ONE] = {1.0f, 0.999f, 0.5f, 0.0f},
		[KERNEL_BELOW_ONE] = {0.9f, 0.999f, 0.5f, 0.0f},
	};

	return random_below(3) ? choices[parameter->range][random_below(4)] : parameter->value;
}

static inline struct kernel_update update_random(const struct step *s, u32 optimizer)
{
	struct kernel_update u = {
		.optimizer = optimizer,
		.flags = (u32)random_below(3) ? (u32)random_below(512) : 0,
		.dim = s->dim,
		.prefetch = (u32)random_below(3),
		.stride = s->stride,
		.segment_count = SEGMENTS,
		.segments = s->segments,
		.lr = 0.0625f + random_unit() / 32,
		.gradient_multiplier = 0.75f,
		.gradient_min = -0.5f,
		.gradient_max = 0.375f,
		.decay = 0.01f,
		.weight_min = -0.4f,
		.weight_max = 0.5f,
		.max_norm = 0.25f + random_unit() / 8,
	};

	for (u32 i = 0; i < kernel_optimizers[optimizer].hyper_count; i++)
		u.hyper[i] = hyper_random(&kernel_optimizers[optimizer].hyper[i]);
	u.step = 1 + random_below(random_below(2) ? 4 : 100000);
	if (random_below(20) == 0)
		u.lr = 0.0f;
	kernel_prepare(&u);
	return u;
}

#endif
