/* SPDX-License-Identifier: MIT */
/* Interactions: user,item[,rating,timestamp], one a line. */
#ifndef ITEM2VEC_DATA_CSV_H
#define ITEM2VEC_DATA_CSV_H

#include "source.h"

/**
 * csv_read() - read comma-separated values, quoted as RFC 4180 has it
 * @c: users are baskets. A rating must be a number; that there is one is what counts
 *
 * A first line that names a user and an item column is a header and may hold
 * other columns, in any order; without it there are two to four columns in the
 * order above. Return: 0, -EBADMSG, -ENOMEM, or what reading failed with.
 */
int csv_read(struct source *s, struct collector *c);

#endif
