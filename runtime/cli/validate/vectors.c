// SPDX-License-Identifier: MIT
/*
 * Reads /proc/interrupts. A line has a number, a count for each processor, words about the
 * controller, and last the name that the driver gave: embeng-ADDRESS-VECTOR.
 *
 * Nothing is kept; any thread may call.
 */
#include "vectors.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The vector that a line is about, or -1. */
static int find_vector(const char *line, const char *address)
{
	char name[64];
	const char *at;
	char *end;
	long vector;

	snprintf(name, sizeof(name), " embeng-%.40s-", address);
	at = strstr(line, name);
	if (!at)
		return -1;
	vector = strtol(at + strlen(name), &end, 10);
	if ((*end && !isspace((unsigned char)*end)) || vector < 0 || vector >= VECTORS_MOST)
		return -1;
	return (int)vector;
}

static uint64_t sum_processors(const char *line)
{
	const char *at = strchr(line, ':');
	uint64_t sum = 0;

	if (!at)
		return 0;
	for (at++;;) {
		char *end;
		unsigned long long count = strtoull(at, &end, 10);

		if (end == at || !isspace((unsigned char)*end))
			return sum;
		sum += count;
		at = end;
	}
}

void vectors_parse(FILE *file, const char *address, struct vectors *v)
{
	char *line = NULL;
	size_t room = 0;

	*v = (struct vectors){0};
	while (getline(&line, &room, file) > 0) {
		int vector = find_vector(line, address);

		if (vector < 0)
			continue;
		v->fired[vector] = sum_processors(line);
		if (v->count <= (size_t)vector)
			v->count = (size_t)vector + 1;
	}
	free(line);
}

bool vectors_read(const char *address, struct vectors *v)
{
	FILE *file = fopen("/proc/interrupts", "re");

	*v = (struct vectors){0};
	if (file) {
		vectors_parse(file, address, v);
		fclose(file);
	}
	return v->count;
}
