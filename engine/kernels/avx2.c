// SPDX-License-Identifier: MIT
/* Kernels for x86-64 with AVX2 and FMA; built with -mavx2 -mfma, and only there. */
#include "vec_avx2.h"
#include "body.h"
#include "variants.h"

KERNEL_OPS(kernel_ops_avx2, "avx2");
