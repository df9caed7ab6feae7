/* SPDX-License-Identifier: MIT */
/*
 * Tests of every kernel variant. One that the processor lacks is the only thing that a test
 * may skip; it is said by name, in the form that scripts/check.py counts.
 */
#ifndef EMBENG_TESTS_VARIANTS_H
#define EMBENG_TESTS_VARIANTS_H

#include <check.h>
#include <stdio.h>

#include "engine/kernels/kernels.h"
#include "engine/kernels/variants.h"
#include "sample.h"

/* The variant, or NULL after saying what is skipped. */
static inline const struct kernel_ops *variant_or_skip(u32 index, const char *test)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(index));

	if (!ops)
		printf("# SKIP %s: this processor lacks it (%s)\n", kernel_variant(index), test);
	fflush(stdout); /* a forked test would say it again */
	return ops;
}

/* @count cases for each variant: _i is the variant's index times @count plus the case. */
static inline void add_variant_tests(TCase *tcase, const TTest *test, int count)
{
	for (int v = 0; kernel_variant((u32)v); v++)
		if (variant_or_skip((u32)v, test->name))
			tcase_add_loop_test(tcase, test, v * count, (v + 1) * count);
}

/* The same with those of the cases that are in the sample. */
static inline void add_sampled_variant_tests(TCase *tcase, const TTest *test, int count)
{
	for (int v = 0; kernel_variant((u32)v); v++)
		if (variant_or_skip((u32)v, test->name))
			add_sampled_loop(tcase, test, v * count, (v + 1) * count);
}

/* For a test that compares the variants among themselves. */
#define for_each_variant(ops) \
	for (u32 v_ = 0; kernel_variant(v_); v_++) \
		if (((ops) = variant_or_skip(v_, __func__)))

#endif
