// SPDX-License-Identifier: MIT
/*
 * The table of the kernels for x86-64 with AVX-512. They are compiled in avx512_*.c, since
 * compilers take long over them: several processors share the files, and a change of one kernel
 * compiles one file anew. Only these files are built with the flags of F, VL, DQ and BW; select.c
 * asks the processor first.
 */
#include "vec_avx512.h"
#include "body.h"

const struct kernel_ops kernel_ops_avx512 = { .name = "avx512", KERNEL_OPS(KERNEL_ENTRY) };
