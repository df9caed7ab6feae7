/* SPDX-License-Identifier: MIT */
/* Reads interactions, one on each line: user,item[,rating,timestamp]. */
#ifndef ITEM2VEC_DATA_CSV_H
#define ITEM2VEC_DATA_CSV_H

#include "source.h"

/**
 * csv_read() - read comma-separated values, quoted by the rules of RFC 4180
 * @c: collector; users become baskets. A rating must be a number; its value is not used
 *
 * A first line that names a user and an item column is a header and may hold
 * other columns, in any order; without it there are two to four columns in the
 * order above. Return: 0, -EBADMSG, -ENOMEM, or the errno of a failed read.
 */
int csv_read(struct source *s, struct collector *c);

#endif
