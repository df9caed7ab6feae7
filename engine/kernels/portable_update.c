// SPDX-License-Identifier: MIT
/*
 * Sums of gradients and updates of rows, for any processor.
 * See portable.c for why the file is apart.
 */
#include "vec_portable.h"
#include "body_rows.h"
