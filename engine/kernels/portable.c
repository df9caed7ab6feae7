// SPDX-License-Identifier: MIT
/* Kernels for any processor. */
#include "vec_portable.h"
#include "body.h"
#include "variants.h"

KERNEL_OPS(kernel_ops_portable, "portable");
