// SPDX-License-Identifier: MIT
/*
 * Names of hosts in sentences. They are a file because exchanges, trials and parcels all name
 * hosts, in the same form: "host 2 (n17)", "hosts 0, 1, 3".
 *
 * The names are constant once the hello is done; until then a host is its rank alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "group.h"

#define LISTED_MOST 8

const char *host_words(const struct embeng_group *g, uint32_t rank, char *to)
{
	if (g->names[rank][0])
		snprintf(to, GROUP_HOST_WORDS, "host %" PRIu32 " (%s)", rank, g->names[rank]);
	else
		snprintf(to, GROUP_HOST_WORDS, "host %" PRIu32, rank);
	return to;
}

static uint32_t count_ranks(const struct embeng_group *g, const uint64_t *set)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < g->ranks; rank++)
		count += rank_in(set, rank);
	return count;
}

void hosts_words(const struct embeng_group *g, const uint64_t *set, char *to, size_t size)
{
	const uint32_t count = count_ranks(g, set);
	char who[GROUP_HOST_WORDS];
	uint32_t listed = 0;

	snprintf(to, size, count > 1 ? "hosts " : "no host");
	for (uint32_t rank = 0; rank < g->ranks && listed < LISTED_MOST; rank++) {
		const size_t at = strlen(to);

		if (!rank_in(set, rank))
			continue;
		if (count == 1)
			snprintf(to, size, "%s", host_words(g, rank, who));
		else
			snprintf(to + at, size - at, "%s%" PRIu32, listed ? ", " : "", rank);
		listed++;
	}
	if (count > listed)
		snprintf(to + strlen(to), size - strlen(to), " and %" PRIu32 " more",
			 count - listed);
}
