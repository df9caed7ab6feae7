// SPDX-License-Identifier: MIT
/*
 * Lookups of quantized rows, for any processor.
 * See portable.c for why the file is apart.
 */
#include "vec_portable.h"
#include "body_lookup_quantized.h"
