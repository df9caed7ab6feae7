// SPDX-License-Identifier: MIT
/*
 * Lists that grow, for structures whose lists have an item for each table or feature, and sorted lists
 * of ids. A list belongs to who holds its pointer. No lock is taken.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "list.h"

int list_grow(void *list, size_t had, size_t count, size_t each)
{
	char *items;

	if (count <= had)
		return 0;
	/* Any pointer to an object has the representation of a char pointer here. */
	memcpy(&items, list, sizeof(items));
	items = reallocarray(items, count, each);
	if (!items)
		return fail(-ENOMEM, "no memory for a list of %zu items", count);
	memset(items + had * each, 0, (count - had) * each);
	memcpy(list, &items, sizeof(items));
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

size_t list_keep_unique(int64_t *numbers, size_t count)
{
	size_t kept = 0;

	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	for (size_t i = 0; i < count; i++)
		if (!kept || numbers[i] != numbers[kept - 1])
			numbers[kept++] = numbers[i];
	return kept;
}

size_t list_find_place(const int64_t *numbers, size_t count, int64_t number)
{
	const int64_t *at = bsearch(&number, numbers, count, sizeof(*numbers), compare_numbers);

	return (size_t)(at - numbers);
}
