/* SPDX-License-Identifier: MIT */
/*
 * Logarithm, exponential and powers in f64 from separate multiplications and additions: the
 * same bits on every processor. No libm. How near the true value each is: tested.
 */
#ifndef ENGINE_KERNELS_MATH64_H
#define ENGINE_KERNELS_MATH64_H

#include "root.h"
#include "../types.h"

#define MATH64_LN2_HIGH 0x1.62e42fefa3800p-1 /* low bits zero: times an exponent it is exact */
#define MATH64_LN2_LOW 0x1.ef35793c76730p-45

union math64 {
	double value;
	u64 bits;
};

static inline double math64_of_bits(u64 bits)
{
	union math64 u = { .bits = bits };

	return u.value;
}

/* 2 * atanh(s) - 2 * s, by its series; |s| <= 0.1716, so 11 terms reach 2^-58. */
static inline double math64_atanh_rest(double s)
{
	double z = s * s, sum = 0.0;

	for (int k = 23; k >= 3; k -= 2)
		sum = sum * z + 2.0 / k;
	return sum * z * s;
}

/**
 * math64_log() - natural logarithm
 * @x: NaN gives NaN, negative NaN, 0 -inf
 *
 * Return: the logarithm, within 2 ulp.
 */
static inline double math64_log(double x)
{
	union math64 u = { .value = x };
	int exponent, shift = 0;
	double f, s, half;

	if (!(x > 0.0))
		return x == 0.0 ? -__builtin_inf() : __builtin_nan("");
	if (u.bits >= 0x7ff0000000000000)
		return x;
	if (u.bits < 0x0010000000000000) {
		u.value = x * 0x1p54;
		shift = -54;
	}
	/* x = 2^exponent * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)) */
	exponent = (int)((u.bits + 0x00095f619980c433) >> 52) - 1023;
	u.bits -= (u64)(s64)exponent << 52;
	exponent += shift;
	f = u.value - 1.0;
	s = f / (2.0 + f);
	half = 0.5 * f * f;
	/* 2 s = f - s f: written so that f, which is exact, dominates */
	return exponent * MATH64_LN2_HIGH -
	       ((half - (s * half + math64_atanh_rest(s) + exponent * MATH64_LN2_LOW)) - f);
}

/**
 * math64_exp() - exponential
 * @x: NaN gives NaN
 *
 * Return: e to the x, within 2 ulp; infinity and zero (or a denormal) at the ends.
 */
static inline double math64_exp(double x)
{
	double n, r, sum = 1.0;
	int scale, first;

	if (x != x)
		return x;
	if (x > 709.79)
		return __builtin_inf();
	if (x < -745.14)
		return 0.0;
	scale = (int)(x * 0x1.71547652b82fep0 + (x < 0.0 ? -0.5 : 0.5));
	n = scale;
	r = (x - n * MATH64_LN2_HIGH) - n * MATH64_LN2_LOW;
	for (int k = 14; k >= 2; k--)
		sum = 1.0 + sum * r / k;
	sum = 1.0 + r * sum;
	/* Two factors: a denormal result's scale is no normal number. */
	first = scale / 2;
	return sum * math64_of_bits((u64)(first + 1023) << 52) *
	       math64_of_bits((u64)(scale - first + 1023) << 52);
}

/* The sum of both, which f64 alone could not hold. */
struct math64_pair {
	double high, low;
};

/* x as the sum of two numbers of 26 bits: their products are exact (Veltkamp). */
static inline struct math64_pair math64_split(double x)
{
	double big = x * 0x1.0000002p27, high = big - (big - x);

	return (struct math64_pair){ high, x - high };
}

/* The product of the highs is exact (Dekker); relative error below 2^-100. */
static inline struct math64_pair math64_multiply(struct math64_pair a, struct math64_pair b)
{
	struct math64_pair x = math64_split(a.high), y = math64_split(b.high);
	double product = a.high * b.high, rest, sum;

	rest = x.high * y.high - product;
	rest = rest + x.high * y.low;
	rest = rest + x.low * y.high;
	rest = rest + x.low * y.low;
	rest = rest + (a.high * b.low + a.low * b.high);
	sum = product + rest;
	return (struct math64_pair){ sum, rest - (sum - product) };
}

/**
 * math64_power() - a number multiplied by itself
 * @x: a value of f32, within [0, 1]
 * @n: how many factors
 *
 * The product over the one bits i of @n, from the lowest, of x^(2^i), each the square of
 * the one before it; all in pairs. The error of that doubles with each square, and x^n is 0
 * before it could show.
 *
 * Return: @x to the @n, within 1 ulp when it is 2^-900 or more.
 */
static inline double math64_power(double x, u64 n)
{
	struct math64_pair square = { x, 0.0 }, power = { 1.0, 0.0 };

	for (; n; n >>= 1) {
		if (n & 1)
			power = math64_multiply(power, square);
		square = math64_multiply(square, square);
	}
	return power.high;
}

/**
 * math64_pow() - a float to any finite power
 * @x: NaN or negative gives NaN, unless @y is 0
 * @y: 0 gives 1
 *
 * Return: @x to the @y, within 2^-43 of itself when that is in the range of f32.
 */
static inline double math64_pow(float x, double y)
{
	return y == 0.0 ? 1.0 : math64_exp(y * math64_log(x));
}

#endif
