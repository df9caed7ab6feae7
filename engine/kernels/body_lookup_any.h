/* SPDX-License-Identifier: MIT */
/* Lookups without weights, of any dim. */
#ifndef ENGINE_KERNELS_BODY_LOOKUP_ANY_H
#define ENGINE_KERNELS_BODY_LOOKUP_ANY_H

#include "body_lookup.h"

LOOKUP_FORM(lookup_any, .weighted = false)
LOOKUP_FORM(lookup_any_narrow, .narrow = true)

#endif
