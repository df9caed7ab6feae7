/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_KERNELS_VARIANTS_H
#define ENGINE_KERNELS_VARIANTS_H

#include "kernels.h"

extern const struct kernel_ops kernel_ops_portable;
#ifdef __x86_64__
extern const struct kernel_ops kernel_ops_avx2;
#endif

#endif
