// SPDX-License-Identifier: MIT
/*
 * The table of the kernels for x86-64 with AVX2 and FMA. They are compiled in avx2_*.c, since
 * compilers take long over them: several processors share the files, and a change of one kernel
 * compiles one file anew. Only these files are built with -mavx2 -mfma; select.c asks the
 * processor first.
 */
#include "vec_avx2.h"
#include "body.h"

const struct kernel_ops kernel_ops_avx2 = { .name = "avx2", KERNEL_OPS(KERNEL_ENTRY) };
