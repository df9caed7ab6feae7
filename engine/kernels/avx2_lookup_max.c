// SPDX-License-Identifier: MIT
/*
 * Lookups of the largest numbers, for x86-64 with AVX2 and FMA.
 * See avx2.c for why the file is apart.
 */
#include "vec_avx2.h"
#include "body_lookup_max.h"
