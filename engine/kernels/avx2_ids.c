// SPDX-License-Identifier: MIT
/*
 * The copying, merging and counting of ids, for x86-64 with AVX2 and FMA.
 * See avx2.c for why the file is apart.
 */
#include "vec_avx2.h"
#include "body_ids.h"
#include "body_merge.h"
