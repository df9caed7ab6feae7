/* SPDX-License-Identifier: MIT */
/* Lists that grow, and lists of numbers. */
#ifndef EMBENG_LIST_H
#define EMBENG_LIST_H

#include <stddef.h>
#include <stdint.h>

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

/* Sorts numbers and keeps one of each. Return: how many are left. */
size_t list_keep_unique(int64_t *numbers, size_t count);

/* The place of a number in a sorted list that has it. */
size_t list_find_place(const int64_t *numbers, size_t count, int64_t number);

#endif
