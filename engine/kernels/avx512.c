// SPDX-License-Identifier: MIT
/* Kernels for x86-64 with AVX-512 F, VL, DQ and BW; built with their flags, and only there. */
#include "vec_avx512.h"
#include "body.h"
#include "variants.h"

KERNEL_OPS(kernel_ops_avx512, "avx512");
