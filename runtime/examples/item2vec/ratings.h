/* SPDX-License-Identifier: MIT */
/* Reads interactions, one on each line: user,item[,rating,timestamp]. */
#ifndef ITEM2VEC_DATA_RATINGS_H
#define ITEM2VEC_DATA_RATINGS_H

#include "record.h"

/**
 * ratings_read() - read separated values, which may be in quotes by the rules of RFC 4180
 * @s: source; its format has the separator and the columns where they are known
 * @c: collector; users become baskets. A rating must be a number; its value is not used
 *
 * A first line that names a user and an item column is a header and may hold other columns, in any
 * order; without it there are two to four columns in the order above, unless the format says
 * otherwise. Return: 0, -EBADMSG, -ENOMEM, or the errno of a failed read.
 */
int ratings_read(struct source *s, struct collector *c);

/* Finds the column with a usual name for it, such as userId or movie_id. SIZE_MAX: there is none. */
size_t ratings_named_column(const struct record *header, enum column column);

/* Whether a field is a finite number, with a point or, unless it separates fields, a comma. */
bool ratings_number(struct piece field, const char *separator, double *value);

/* Whether a field is a date, with or without a time: 2005-04-02, 2005-04-02 23:53:47. */
bool ratings_date(struct piece field, int64_t *seconds);

#endif
