/* SPDX-License-Identifier: MIT */
/* Lookups with weights, of any dim. */
#ifndef ENGINE_KERNELS_BODY_LOOKUP_WEIGHTED_H
#define ENGINE_KERNELS_BODY_LOOKUP_WEIGHTED_H

#include "body_lookup.h"

LOOKUP_FORM(lookup_weighted, .weighted = true)
LOOKUP_FORM(lookup_weighted_narrow, .weighted = true, .narrow = true)

#endif
