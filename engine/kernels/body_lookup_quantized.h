/* SPDX-License-Identifier: MIT */
/* Lookups of rows that are quantized as they are read. */
#ifndef ENGINE_KERNELS_BODY_LOOKUP_QUANTIZED_H
#define ENGINE_KERNELS_BODY_LOOKUP_QUANTIZED_H

#include "body_lookup.h"

LOOKUP_FORM(lookup_quantized, .weighted = w->weights, .quantized = true)
LOOKUP_FORM(lookup_quantized_narrow, .weighted = w->weights, .quantized = true, .narrow = true)

#endif
