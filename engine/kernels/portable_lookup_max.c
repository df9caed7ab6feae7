// SPDX-License-Identifier: MIT
/*
 * Lookups of the largest numbers, for any processor.
 * See portable.c for why the file is apart.
 */
#include "vec_portable.h"
#include "body_lookup_max.h"
