/* SPDX-License-Identifier: MIT */
/* One basket a line, its items separated by spaces or tabs. */
#ifndef CLI_DATA_BASKET_H
#define CLI_DATA_BASKET_H

#include "data_source.h"

/* Empty lines are none. 0, -EBADMSG, -ENOMEM, or what reading failed with. */
int basket_read(struct source *s, struct collector *c);

#endif
