/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_HIGHWAY_H
#define EMBENG_ENGINE_HIGHWAY_H

#include "../types.h"

/* HighwayHash64 of the four bytes of a column, little-endian. */
u64 highway_column(u32 column);

#endif
