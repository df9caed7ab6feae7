// SPDX-License-Identifier: MIT
/*
 * Finds names that are near one which is not there, for the hint of a message. It is apart from
 * row_names.c, which reads and writes names.
 *
 * Only arguments are touched.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../frame/edit_distance.h"
#include "row_names.h"

#define SHOWN 3

/* How far a name is from another; SIZE_MAX: too far to be meant. */
static size_t name_distance(const char *name, const char *other)
{
	size_t length = strnlen(name, EDIT_DISTANCE_BYTES),
	       their = strnlen(other, EDIT_DISTANCE_BYTES), distance;
	size_t limit = length < 4 ? 1 : length < 8 ? 2 : 3;

	if ((length > their ? length - their : their - length) <= limit) {
		distance = edit_distance(name, other);
		if (distance <= limit)
			return distance;
	}
	if (length >= 3 && strcasestr(other, name))
		return limit + 1;
	return SIZE_MAX;
}

const char *row_names_near(char *const *text, size_t count, const char *name,
			   char near[ROW_NAMES_NEAR])
{
	size_t found[SHOWN], distances[SHOWN], shown = 0, length;

	for (size_t k = 0; k < count; k++) {
		size_t distance = name_distance(name, text[k]), at = shown;

		if (distance == SIZE_MAX)
			continue;
		while (at && distances[at - 1] > distance)
			at--;
		if (at == SHOWN)
			continue;
		shown += shown < SHOWN;
		for (size_t i = shown - 1; i > at; i--) {
			found[i] = found[i - 1];
			distances[i] = distances[i - 1];
		}
		found[at] = k;
		distances[at] = distance;
	}
	if (!shown)
		return NULL;
	length = (size_t)snprintf(near, ROW_NAMES_NEAR, "Near it:");
	for (size_t k = 0; k < shown; k++)
		length += (size_t)snprintf(near + length, ROW_NAMES_NEAR - length, "%s %.50s",
					   k ? "," : "", text[found[k]]);
	return near;
}
