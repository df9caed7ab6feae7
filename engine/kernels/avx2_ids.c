// SPDX-License-Identifier: MIT
/*
 * The copying, merging and counting of ids, and the look for numbers that are not finite, for
 * x86-64 with AVX2 and FMA. See avx2.c for why the file is apart.
 */
#include "vec_avx2.h"
#include "body_finite.h"
#include "body_ids.h"
#include "body_merge.h"
