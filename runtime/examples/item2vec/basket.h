/* SPDX-License-Identifier: MIT */
/* One basket a line, its items separated by spaces or tabs. */
#ifndef ITEM2VEC_DATA_BASKET_H
#define ITEM2VEC_DATA_BASKET_H

#include "source.h"

/* Empty lines are none. 0, -EBADMSG, -ENOMEM, or what reading failed with. */
int basket_read(struct source *s, struct collector *c);

#endif
