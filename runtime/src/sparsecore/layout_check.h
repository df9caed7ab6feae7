/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_LAYOUT_CHECK_H
#define EMBENG_LAYOUT_CHECK_H

#include "base/error.h"
#include "embeng/stacking.h"

/* stack_rows.c: checks the layout of a table. 0, or -EINVAL; @what starts the sentence. */
int layout_check(const char *what, const struct embeng_table_layout *layout);

#endif
