// SPDX-License-Identifier: MIT
/*
 * Lookups of the largest numbers, for x86-64 with AVX-512.
 * See avx512.c for why the file is apart.
 */
#include "vec_avx512.h"
#include "body_lookup_max.h"
