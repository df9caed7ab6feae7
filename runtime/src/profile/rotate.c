// SPDX-License-Identifier: MIT
/*
 * Tells what a profile has counted, and computes rotations: where the rows of each table go so that
 * cores have equal work.
 *
 * The profile is only read. Working memory lives for one call; no lock is needed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "open.h"

int embeng_profile_counts(const struct embeng_profile *p, size_t table,
			  struct embeng_profile_counts *counts)
{
	const struct hot_counts *known;
	size_t size;

	if (!p || !counts || counts->size < sizeof(*counts))
		return fail(-EINVAL, "embeng_profile_counts: a profile, and counts with their "
				     "size, must be given");
	if (table >= p->model->table_count)
		return fail(-ENOENT, "there is no table %zu; the profile has %zu", table,
			    p->model->table_count);
	known = &p->tables[table].known;
	size = counts->size;
	memset(counts, 0, sizeof(*counts));
	counts->size = size;
	counts->batches = known->batches;
	counts->ids = known->ids;
	counts->hot_count = known->row_count;
	profile_by_count(known, counts);
	return 0;
}

/* Ids of a table's hot rows by core, unrotated; what is not hot is the same on all. */
static uint64_t count_core_load(const struct hot_counts *known, uint32_t cores, uint64_t *load)
{
	uint64_t most = 0;

	memset(load, 0, cores * sizeof(*load));
	for (size_t i = 0; i < known->row_count; i++)
		load[(uint64_t)known->rows[i].row % cores] += known->rows[i].count;
	for (uint32_t c = 0; c < cores; c++)
		most = load[c] > most ? load[c] : most;
	return most;
}

/* Ids of the fullest core when a table is rotated so. */
static uint64_t find_fullest(const uint64_t *total, const uint64_t *load, uint32_t cores,
			     uint32_t rotation)
{
	uint64_t most = 0;

	for (uint32_t c = 0; c < cores; c++) {
		uint64_t sum = total[(c + (uint64_t)rotation) % cores] + load[c];

		most = sum > most ? sum : most;
	}
	return most;
}

static uint32_t place_rotated(uint64_t *total, const uint64_t *load, uint32_t cores)
{
	uint64_t least = UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t r = 0; r < cores; r++) {
		uint64_t most = find_fullest(total, load, cores, r);

		if (most < least) {
			least = most;
			best = r;
		}
	}
	for (uint32_t c = 0; c < cores; c++)
		total[(c + (uint64_t)best) % cores] += load[c];
	return best;
}

/* The table not yet placed whose fullest core has most, the first of those; -1: none. */
static int next_table(const struct embeng_profile *p, const bool *placed, uint32_t cores,
		      uint64_t *load)
{
	uint64_t largest = 0;
	int found = -1;

	for (size_t t = 0; t < p->model->table_count; t++) {
		uint64_t most = placed[t] ? 0 : count_core_load(&p->tables[t].known, cores, load);

		if (!placed[t] && (found < 0 || most > largest)) {
			largest = most;
			found = (int)t;
		}
	}
	return found;
}

static void rotate_tables(const struct embeng_profile *p, uint32_t cores, uint64_t *total,
			  uint64_t *load, bool *placed, uint32_t *rotations)
{
	int t;

	while ((t = next_table(p, placed, cores, load)) >= 0) {
		placed[t] = true;
		count_core_load(&p->tables[t].known, cores, load);
		rotations[t] = place_rotated(total, load, cores);
	}
}

int embeng_profile_rotations(const struct embeng_profile *p, uint32_t cores, uint32_t *rotations)
{
	uint64_t *total, *load;
	bool *placed;
	int ret = 0;

	if (!p || !rotations)
		return fail(-EINVAL, "embeng_profile_rotations: all arguments must be given");
	if (!cores || cores > EMBENG_PROFILE_CORES)
		return fail(-ERANGE,
			    "embeng_profile_rotations: %" PRIu32 " cores, allowed are 1 "
			    "to %d",
			    cores, EMBENG_PROFILE_CORES);
	total = calloc(cores, sizeof(*total));
	load = calloc(cores, sizeof(*load));
	placed = calloc(p->model->table_count + 1, sizeof(*placed));
	if (total && load && placed)
		rotate_tables(p, cores, total, load, placed, rotations);
	else
		ret = fail(-ENOMEM, "no memory for the loads of cores");
	free(total);
	free(load);
	free(placed);
	return ret;
}
