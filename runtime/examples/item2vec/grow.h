/* SPDX-License-Identifier: MIT */
/* Restores the tables of a training that has got new items. */
#ifndef ITEM2VEC_GROW_H
#define ITEM2VEC_GROW_H

#include "trainer.h"

/**
 * grow_restore() - restore a checkpoint into tables that have more rows
 * @dir: folder of the checkpoint, whose rows are the first ones of the tables
 * @options: options of embeng_restore()
 *
 * Rows that the checkpoint does not have stay as they were initialized. Return: 0 or the errno of
 * libembeng.
 */
int grow_restore(struct trainer *t, const char *dir, const struct embeng_restore_options *options);

#endif
