// SPDX-License-Identifier: MIT
/*
 * Computes by how many edits two names differ (Levenshtein). Verbs and names of rows that are
 * misspelt are found by it.
 *
 * Only arguments are touched.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "edit_distance.h"

static size_t pick_least(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

size_t edit_distance(const char *a, const char *b)
{
	size_t n = strnlen(a, EDIT_DISTANCE_BYTES), m = strnlen(b, EDIT_DISTANCE_BYTES);
	size_t row[EDIT_DISTANCE_BYTES + 1];

	for (size_t k = 0; k <= m; k++)
		row[k] = k;
	for (size_t i = 0; i < n; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t k = 0; k < m; k++) {
			bool same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[k]);
			size_t replaced = diagonal + !same;

			diagonal = row[k + 1];
			row[k + 1] = pick_least(replaced, row[k] + 1, row[k + 1] + 1);
		}
	}
	return row[m];
}
