/* SPDX-License-Identifier: MIT */
/* The tables of a training as serving gives them. */
#ifndef CLI_SERVED_H
#define CLI_SERVED_H

#include "../../examples/item2vec/neighbors.h"

/**
 * served_vectors() - look every item up in a checkpoint, without an engine
 * @v: in, out and dim are set; malloc'd
 *
 * Return: 0, or a negative errno with embeng_last_error() set.
 */
int served_vectors(const char *dir, size_t items, struct vectors *v);

#endif
