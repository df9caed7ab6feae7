/* SPDX-License-Identifier: MIT */
/* Reads files with a basket on each line, whose items are separated by blanks or as the format says. */
#ifndef ITEM2VEC_DATA_BASKET_H
#define ITEM2VEC_DATA_BASKET_H

#include "source.h"

/* Empty lines are no baskets. Return: 0, -EBADMSG, -ENOMEM, or the errno of a failed read. */
int basket_read(struct source *s, struct collector *c);

#endif
