// SPDX-License-Identifier: MIT
/*
 * Names stacks by their tables. JAX cuts a long name and ends it with a digest, so that two stacks
 * keep different names.
 *
 * The name belongs to the caller. No lock is needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/hash/sha256.h"
#include "stacking.h"

#define SHOWN 50       /* characters of a cut name */
#define DIGEST_BYTES 6 /* in its end */

static char *join_table_names(const struct stacker *s, const struct embeng_stack *stack)
{
	size_t length = 1;
	char *name, *at;

	for (size_t i = 0; i < stack->table_count; i++)
		length += strlen(s->model->tables[stack->tables[i]].name) + 1;
	name = malloc(length);
	if (!name)
		return NULL;
	at = name;
	*at = '\0';
	for (size_t i = 0; i < stack->table_count; i++)
		at += sprintf(at, "%s%s", i ? "_" : "", s->model->tables[stack->tables[i]].name);
	return name;
}

/* Bytes of so many characters; all, when there are no more. UTF-8 begins none with 10xxxxxx. */
static size_t bytes_of_characters(const char *text, size_t characters)
{
	size_t at = 0;

	for (;; at++) {
		bool begins = (text[at] & 0xc0) != 0x80;

		if (!text[at] || (begins && !characters))
			return at;
		characters -= begins;
	}
}

static char *cut_name(char *name)
{
	size_t shown = bytes_of_characters(name, SHOWN);
	uint8_t digest[SHA256_BYTES];
	char end[4 + 2 * DIGEST_BYTES] = "...", *shorter;

	if (!name[shown])
		return name;
	sha256_digest(name, strlen(name), digest);
	for (size_t i = 0; i < DIGEST_BYTES; i++)
		snprintf(end + 3 + 2 * i, 3, "%02x", digest[i]);
	shorter = malloc(shown + sizeof(end));
	if (shorter) {
		memcpy(shorter, name, shown);
		memcpy(shorter + shown, end, sizeof(end));
	}
	free(name);
	return shorter;
}

/* The family cuts the names of stacks that it makes, not of a table that is left alone. */
char *stack_name(const struct stacker *s, const struct embeng_stack *stack)
{
	const struct embeng_stacking_options *o = &s->options;
	size_t index = s->tables[stack->tables[0]].stack;
	const char *given = s->names[index];
	bool left = o->no_stacking || (o->group_count && index >= o->group_count);
	char *name = given ? strdup(given) : join_table_names(s, stack);

	if (!name || given || left || o->long_names || o->flavour != EMBENG_PARTITION_JAX)
		return name;
	return cut_name(name);
}
