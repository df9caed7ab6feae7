/* SPDX-License-Identifier: MIT */
/* Lists that grow. */
#ifndef EMBENG_LIST_H
#define EMBENG_LIST_H

#include <stddef.h>

/*
 * list_grow() - make a list longer; what is new is zero
 * @list: address of the pointer to it
 * @had: items that it has
 * @count: items that it is to have; fewer than @had: it stays as it is
 * @each: bytes of an item
 *
 * Return: 0, or -ENOMEM with a sentence and the list as it was.
 */
int list_grow(void *list, size_t had, size_t count, size_t each);

#endif
