// SPDX-License-Identifier: MIT
/*
 * The table of the kernels for any processor. They are compiled in portable_*.c, since compilers
 * take long over them: several processors share the files, and a change of one kernel compiles one
 * file anew.
 */
#include "vec_portable.h"
#include "body.h"

const struct kernel_ops kernel_ops_portable = { .name = "portable", KERNEL_OPS(KERNEL_ENTRY) };
