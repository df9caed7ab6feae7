// SPDX-License-Identifier: MIT
/*
 * The copying, merging and counting of ids, and the look for numbers that are not finite, for
 * any processor. See portable.c for why the file is apart.
 */
#include "vec_portable.h"
#include "body_finite.h"
#include "body_ids.h"
#include "body_merge.h"
