// SPDX-License-Identifier: MIT
/*
 * Numbers texts in the order in which they were first seen, by a hash table, and finds the text of
 * a number.
 *
 * The texts are copies that belong to the struct names until names_free().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "names.h"

static uint64_t hash_name(const char *text, size_t length)
{
	uint64_t h = hash_more(HASH_START, text, length);

	return h ^ h >> 32;
}

static size_t find_name_slot(const struct names *names, const char *text, size_t length)
{
	size_t mask = names->slot_count - 1, slot = hash_name(text, length) & mask;

	for (; names->slots[slot]; slot = (slot + 1) & mask) {
		const char *known = names->text[names->slots[slot] - 1];

		if (!strncmp(known, text, length) && !known[length])
			break;
	}
	return slot;
}

static int grow_names(struct names *names)
{
	size_t capacity = names->capacity ? names->capacity * 2 : 512;
	char **text = reallocarray(names->text, capacity, sizeof(*text));
	uint32_t *slots = calloc(capacity * 2, sizeof(*slots));

	if (text)
		names->text = text;
	if (!text || !slots || capacity >= UINT32_MAX) {
		free(slots);
		return -ENOMEM;
	}
	free(names->slots);
	names->slots = slots;
	names->slot_count = capacity * 2;
	names->capacity = capacity;
	for (size_t i = 0; i < names->count; i++)
		slots[find_name_slot(names, text[i], strlen(text[i]))] = (uint32_t)i + 1;
	return 0;
}

int64_t names_add(struct names *names, const char *text, size_t length)
{
	size_t slot;

	if (names->count == names->capacity && grow_names(names) < 0)
		return -ENOMEM;
	slot = find_name_slot(names, text, length);
	if (!names->slots[slot]) {
		char *copy = strndup(text, length);

		if (!copy)
			return -ENOMEM;
		names->text[names->count++] = copy;
		names->slots[slot] = (uint32_t)names->count;
	}
	return names->slots[slot] - 1;
}

int64_t names_find(const struct names *names, const char *text, size_t length)
{
	uint32_t found = names->slot_count ? names->slots[find_name_slot(names, text, length)] : 0;

	return found ? (int64_t)found - 1 : -ENOENT;
}

void names_free(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->text[i]);
	free(names->text);
	free(names->slots);
	*names = (struct names){0};
}
