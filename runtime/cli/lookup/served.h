/* SPDX-License-Identifier: MIT */
/* Reads the tables of a training by serving lookups. */
#ifndef CLI_SERVED_H
#define CLI_SERVED_H

#include "../../examples/item2vec/neighbors.h"

/**
 * served_vectors() - look all items up in a checkpoint, without an engine
 * @v: its members in, out and dim are set; the arrays are malloc'd
 *
 * Return: 0, or a negative errno with embeng_last_error() set.
 */
int served_vectors(const char *dir, size_t items, struct vectors *v);

#endif
