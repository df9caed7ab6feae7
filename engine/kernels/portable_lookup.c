// SPDX-License-Identifier: MIT
/*
 * Lookups of the usual dims, streamed lookups and scales, for any processor.
 * See portable.c for why the file is apart.
 */
#include "vec_portable.h"
#include "body_lookup_forms.h"
