/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_KERNELS_VARIANTS_H
#define ENGINE_KERNELS_VARIANTS_H

#include "kernels.h"

extern const struct kernel_ops kernel_ops_portable;
#ifdef __x86_64__
extern const struct kernel_ops kernel_ops_avx2;
extern const struct kernel_ops kernel_ops_avx512;
#endif

/**
 * kernel_variant() - name of a variant that was built in
 * @index: from 0, best first; the processor may lack it all the same
 *
 * Return: NULL past the last one.
 */
const char *kernel_variant(u32 index);

/**
 * kernel_variant_exists() - whether a variant of this name was built in
 * @name: as kernel_select() takes it
 *
 * Return: true also where kernel_select() gives NULL because the processor lacks it.
 */
bool kernel_variant_exists(const char *name);

#endif
