/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_KERNELS_NORMAL_H
#define ENGINE_KERNELS_NORMAL_H

#include "math64.h"

#define NORMAL_CDF_MINUS_2 0x1.74bcf82c9d860p-6 /* Phi(-2) */
#define NORMAL_WITHIN_2 0x1.e8b4307d3627ap-1	/* Phi(2) - Phi(-2) */

static inline double normal_polynomial(const double c[8], double x)
{
	double sum = c[7];

	for (int i = 6; i >= 0; i--)
		sum = sum * x + c[i];
	return sum;
}

/**
 * normal_quantile() - inverse of the normal distribution function
 * @p: probability, within [1e-11, 1 - 1e-11]
 *
 * M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution",
 * Applied Statistics 37 (3), 1988: about 1 part in 1e16. Its far tail is left out.
 *
 * Return: the value below which a standard normal lies with probability @p.
 */
static inline double normal_quantile(double p)
{
	static const double middle_num[8] = {
		3.3871328727963666080e+0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
		1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
		3.3430575583588128105e+4, 2.5090809287301226727e+3,
	};
	static const double middle_den[8] = {
		1.0,
		4.2313330701600911252e+1,
		6.8718700749205790830e+2,
		5.3941960214247511077e+3,
		2.1213794301586595867e+4,
		3.9307895800092710610e+4,
		2.8729085735721942674e+4,
		5.2264952788528545610e+3,
	};
	static const double tail_num[8] = {
		1.42343711074968357734e+0, 4.63033784615654529590e+0, 5.76949722146069140550e+0,
		3.64784832476320460504e+0, 1.27045825245236838258e+0, 2.41780725177450611770e-1,
		2.27238449892691845833e-2, 7.74545014278341407640e-4,
	};
	static const double tail_den[8] = {
		1.0,
		2.05319162663775882187e+0,
		1.67638483018380384940e+0,
		6.89767334985100004550e-1,
		1.48103976427480074590e-1,
		1.51986665636164571966e-2,
		5.47593808499534494600e-4,
		1.05075007164441684324e-9,
	};
	double q = p - 0.5, r, x;

	if (q >= -0.425 && q <= 0.425) {
		r = 0.180625 - q * q;
		return normal_polynomial(middle_num, r) * q / normal_polynomial(middle_den, r);
	}
	r = root64(-math64_log(q < 0.0 ? p : 1.0 - p)) - 1.6;
	x = normal_polynomial(tail_num, r) / normal_polynomial(tail_den, r);
	return q < 0.0 ? -x : x;
}

#endif
