/* SPDX-License-Identifier: MIT */
/* This host's part of a group's model. */
#ifndef EMBENG_HOSTS_PART_H
#define EMBENG_HOSTS_PART_H

#include "hosts.h"

/*
 * part_model() - the model of the owner handle
 *
 * Sets @tables, @features, @served and where @lists are served of @h. Return: 0, -ENOMEM, or what a table or feature is refused with.
 */
int part_model(struct hosts *h, struct embeng_model **out);

/*
 * part_fill() - fill rows [@first, @first + @count) of this host's part of a table from an initializer
 * @slot: 0 for parameters, 1 + k for slot k
 *
 * The rows are in the table, and the initializer was checked. Return: 0, also where this host has no part
 * of the table, or as embeng_rows_fill().
 */
int part_fill(const struct hosts *h, int table, size_t slot, size_t first, size_t count,
	      const struct embeng_initializer *initializer);

/* The number of a part's rows before row @row of the table. */
size_t part_rows_before(const struct place_part *part, int64_t row);

#endif
