// SPDX-License-Identifier: MIT
/*
 * Scales of bags whose weights are so small that 1 / D is too large for f32 (decision 16). Mean and
 * sqrtn stay what they are when all weights are multiplied by one number, so such a bag is computed
 * as if its weights were larger by a power of two. That is rare, and is compiled once, not for each
 * variant of the kernels.
 *
 * The caller is inside an FP section. The functions write only what their arguments name.
 */
#include "scale.h"

#define F64_BIAS 1023
#define F64_FRACTION_BITS 52
#define F32_LARGEST_EXPONENT 127
#define F32_SMALLEST_EXPONENT (-126) /* numbers below have fewer bits */

union bits64 {
	double value;
	u64 bits;
};

/* The number is normal in f64, as every sum of floats is, and of their squares. */
static int exponent_of(double x)
{
	union bits64 u = { .value = x };

	return (int)(u.bits >> F64_FRACTION_BITS & 0x7ff) - F64_BIAS;
}

static double make_power_of_two(int exponent)
{
	union bits64 u = { .bits = (u64)(exponent + F64_BIAS) << F64_FRACTION_BITS };

	return u.value;
}

static double denominator_of(u32 combiner, double sum)
{
	return combiner == KERNEL_SQRTN ? root64(sum) : sum;
}

/*
 * The largest weight becomes 1 to 2, and larger where the others cancel it so well that D would
 * still be too small.
 */
double kernel_stretch(u32 combiner, double sum, float largest)
{
	int above = exponent_of(largest), below = exponent_of(denominator_of(combiner, sum));
	int by = -above, least = F32_SMALLEST_EXPONENT - below;

	by = by < least ? least : by;
	if (by > F32_LARGEST_EXPONENT - above)
		by = F32_LARGEST_EXPONENT - above;
	return make_power_of_two(by);
}

float kernel_stretched_scale(u32 combiner, double sum, double stretch)
{
	float scale = (float)(1.0 / (denominator_of(combiner, sum) * stretch));

	if (!scale_overflows(scale))
		return scale;
	return scale > 0.0f ? __FLT_MAX__ : -__FLT_MAX__;
}

static float largest_weight(const float *weights, u64 first, u64 end)
{
	float largest = 0.0f;

	for (u64 k = first; k < end; k++) {
		float size = weights[k] < 0.0f ? -weights[k] : weights[k];

		largest = size > largest ? size : largest;
	}
	return largest;
}

void kernel_stretch_bag(const struct kernel_scale_work *work, u64 bag, double sum)
{
	u64 first = work->bag[bag], end = work->bag[bag + 1];
	double inverse = 1.0 / denominator_of(work->combiner, sum);
	double stretch = kernel_stretch(work->combiner, sum,
					largest_weight(work->weights, first, end));

	if (work->scales)
		work->scales[bag] = kernel_stretched_scale(work->combiner, sum, stretch);
	for (u64 k = first; work->coef && k < end; k++)
		work->coef[k] = (float)(inverse * work->weights[k]);
	for (u64 k = first; work->stretched && k < end; k++)
		work->stretched[k] = (float)(stretch * work->weights[k]);
}
