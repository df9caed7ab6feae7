// SPDX-License-Identifier: MIT
/*
 * Scales of bags whose weights are so small that 1 / D is too large for f32 (decision 16). Mean and
 * sqrtn stay what they are when all weights are multiplied by one number, so such a bag is computed
 * as if its weights were larger by a power of two. Here are also the scales of bags that are so long
 * that they come in parts. Both are rare, and are compiled once, not for each variant of the kernels.
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

void kernel_long_bag_add(struct kernel_long_bag *bag, u64 first, u64 end)
{
	const float *weights = bag->work->weights;

	if (!weights)
		bag->sum += (double)(end - first);
	for (u64 k = first; weights && k < end; k++) {
		float size = weights[k] < 0.0f ? -weights[k] : weights[k];

		bag->sum = scale_add(bag->work->combiner, bag->sum, weights[k]);
		bag->largest = size > bag->largest ? size : bag->largest;
	}
}

void kernel_long_bag_end(struct kernel_long_bag *bag)
{
	u32 combiner = bag->work->combiner;
	float scale = scale_of(combiner, bag->sum);

	bag->inverse = scale;
	if (scale_overflows(scale)) {
		bag->inverse = 1.0 / denominator_of(combiner, bag->sum);
		bag->stretch = kernel_stretch(combiner, bag->sum, bag->largest);
		scale = kernel_stretched_scale(combiner, bag->sum, bag->stretch);
	}
	if (bag->work->scales)
		bag->work->scales[bag->sample] = scale;
}

/* In f32 as it is for short bags, but where the scale does not fit that. */
static float coefficient_of(const struct kernel_long_bag *bag, u64 k)
{
	const float *weights = bag->work->weights;

	if (!weights)
		return (float)bag->inverse;
	if (bag->stretch == 0.0)
		return (float)bag->inverse * weights[k];
	return (float)(bag->inverse * weights[k]);
}

void kernel_long_bag_apply(const struct kernel_long_bag *bag, u64 first, u64 end)
{
	const struct kernel_scale_work *work = bag->work;

	for (u64 k = first; work->coef && k < end; k++)
		work->coef[k] = coefficient_of(bag, k);
	for (u64 k = first; work->stretched && bag->stretch != 0.0 && k < end; k++)
		work->stretched[k] = (float)(bag->stretch * work->weights[k]);
}

void kernel_stretch_bag(const struct kernel_scale_work *work, u64 sample)
{
	struct kernel_long_bag bag = { .work = work, .sample = sample };
	u64 first = work->bag[sample], end = work->bag[sample + 1];

	kernel_long_bag_add(&bag, first, end);
	kernel_long_bag_end(&bag);
	kernel_long_bag_apply(&bag, first, end);
}
