// SPDX-License-Identifier: MIT
/*
 * Lists that grow, for structures whose lists have an item for each table or feature. A list belongs
 * to who holds its pointer. No lock is taken.
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
