// SPDX-License-Identifier: MIT
/*
 * The descriptions of the optimizers (slots, hyperparameters and their ranges), and the values that
 * a step computes once per table before its rows are updated. Both are expanded from the same list
 * as the kernels, so that an optimizer is written down in one place.
 *
 * The functions with floats are called inside an FP section. They write only their arguments.
 */
#include "math64.h"
#include "optimizers.h"

#define ONE_MORE(...) +1
/* A parameter says in a fourth number whether it has one number a row; most leave it out. */
#define PARAMETER(name, value, range, one_number, ...) { name, value, range, one_number },
#define SLOT(...) PARAMETER(__VA_ARGS__, false, )
#define HYPER(...) PARAMETER(__VA_ARGS__, false, )
#define DESCRIPTION(KIND) \
	[KERNEL_##KIND] = { \
		.name = KERNEL_##KIND##_NAME, \
		.slot_count = 0 KERNEL_##KIND##_SLOTS(ONE_MORE), \
		.hyper_count = 0 KERNEL_##KIND##_HYPER(ONE_MORE), \
		.slots = { KERNEL_##KIND##_SLOTS(SLOT) }, \
		.hyper = { KERNEL_##KIND##_HYPER(HYPER) }, \
	},

const struct kernel_optimizer kernel_optimizers[KERNEL_OPTIMIZER_COUNT] = { KERNEL_OPTIMIZERS(
	DESCRIPTION) };

#define DEFINE_PREPARE(KIND) \
	static void prepare_##KIND(float lr, const float *h, u64 step, float *p, double *power) \
	{ \
		(void)lr, (void)h, (void)step, (void)p, (void)power; \
		KERNEL_##KIND##_PREPARE \
	}

KERNEL_OPTIMIZERS(DEFINE_PREPARE)

/* Neither too large for f32, nor so small that it rounds to 0. */
static bool is_a_step(float range, u32 num_buckets)
{
	return range <= __FLT_MAX__ && (range <= 0.0f || range / (float)(num_buckets - 1) > 0.0f);
}

void kernel_quantization_set(struct kernel_quantization *q, u32 num_buckets, u32 lower, u32 upper)
{
	union {
		u32 bits;
		float value;
	} low = { lower }, high = { upper };

	q->factor = 1.0f;
	if (!is_a_step(high.value - low.value, num_buckets))
		q->factor = high.value - low.value > 1.0f ? 0.25f : 0x1p100f;
	q->lower = low.value * q->factor;
	q->upper = high.value * q->factor;
	q->step = (q->upper - q->lower) / (float)(num_buckets - 1);
}

void kernel_divide(float *sum, u32 dim, u64 count)
{
	const float by = (float)count;

	for (u32 c = 0; c < dim; c++)
		sum[c] /= by;
}

u64 kernel_step(u32 bits)
{
	union {
		u32 bits;
		float value;
	} step = { bits };

	if (!(step.value >= 1.0f))
		return 1;
	return step.value < 0x1p63f ? (u64)step.value : 1ull << 63;
}

#define PREPARE_ENTRY(KIND) [KERNEL_##KIND] = prepare_##KIND,

/* 0, or so far from the ends of f32 that a product of two is not near them, nor is a square. */
static bool is_tame(float x)
{
	float size = x < 0.0f ? -x : x;

	return size == 0.0f || (size > 0x1p-60f && size < 0x1p60f);
}

static bool has_tame_settings(const struct kernel_update *u)
{
	bool tame = is_tame(u->lr) && is_tame(u->decay);

	for (u32 i = 0; i < kernel_optimizers[u->optimizer].hyper_count; i++)
		tame &= is_tame(u->hyper[i]);
	return tame;
}

void kernel_prepare(struct kernel_update *u)
{
	static void (*const functions[KERNEL_OPTIMIZER_COUNT])(
		float, const float *, u64, float *,
		double *) = { KERNEL_OPTIMIZERS(PREPARE_ENTRY) };

	functions[u->optimizer](u->lr, u->hyper, u->step, u->prepared, &u->power);
	u->mends = !KERNEL_OPTIMIZER_IS_TAME(u->optimizer) || !has_tame_settings(u);
}
