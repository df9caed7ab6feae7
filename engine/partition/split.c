// SPDX-License-Identifier: MIT
/*
 * Decides which neighbouring buckets share a minibatch. A boundary lies before bucket 1 .. 63. A
 * partition that is too large asks for some boundaries, and a boundary that any partition asks for
 * holds for all. Each flavour (TF, JAX) has its own rule and its own mask of boundaries.
 *
 * It runs alone, and touches only its job.
 */
#include "partition.h"

#define BUCKETS EMBENG_PARTITION_BUCKETS
#define LEVELS 6u

/* Ids and columns of the buckets before each one. */
struct sums {
	u64 ids[BUCKETS + 1], columns[BUCKETS + 1];
};

static bool counts_fit(const struct embeng_partition *g, u64 ids, u64 columns)
{
	return (!g->max_ids || ids <= g->max_ids) &&
	       (!g->max_unique_ids || columns <= g->max_unique_ids);
}

static bool stretch_fits(const struct pcsr_job *job, const struct sums *s, u32 first, u32 last)
{
	return counts_fit(job->given, s->ids[last] - s->ids[first],
			  s->columns[last] - s->columns[first]);
}

static void sum_up(const struct pcsr_run *runs, struct sums *s)
{
	s->ids[0] = s->columns[0] = 0;
	for (u32 b = 0; b < BUCKETS; b++) {
		s->ids[b + 1] = s->ids[b] + runs[b].kept;
		s->columns[b + 1] = s->columns[b] + runs[b].kept_columns;
	}
}

/* TF halves what is too large, from the whole down. */
static u64 halve_sections(const struct pcsr_job *job, const struct sums *s)
{
	u64 parted = 1, boundaries = 0; /* bit of a section's first bucket: it was parted off */

	for (u32 size = BUCKETS; size > 1; size /= 2) {
		u64 next = 0;

		for (u32 first = 0; first < BUCKETS; first += size) {
			if (!(parted >> first & 1) || stretch_fits(job, s, first, first + size))
				continue;
			boundaries |= 1ull << (first + size / 2);
			next |= 1ull << first | 1ull << (first + size / 2);
		}
		parted = next;
	}
	return boundaries;
}

/* Then pieces are put together again from the left, as far as they fit. */
static u64 join_sections(const struct pcsr_job *job, const struct sums *s, u64 boundaries)
{
	u64 kept = 0;
	u32 first = 0, before = 0;

	for (u32 b = 1; b <= BUCKETS; b++) {
		if (b < BUCKETS && !(boundaries >> b & 1))
			continue;
		if (!stretch_fits(job, s, first, b)) {
			kept |= 1ull << before;
			first = before;
		}
		before = b;
	}
	return kept;
}

/* The pieces of one partition are those of all before it, too: so does the family. */
static u64 split_tf(const struct pcsr_job *job)
{
	u64 pieces = 0, kept = 0;
	struct sums s;

	for (u32 c = 0; c < job->device_cores; c++) {
		for (u32 p = 0; p < job->given->cores; p++) {
			sum_up(pcsr_runs(job, c, p), &s);
			pieces |= halve_sections(job, &s);
			kept |= join_sections(job, &s, pieces);
		}
	}
	return kept;
}

/* JAX joins pairs, pairs of pairs and so on; what it cannot join counts as its larger part. */
static u64 part_pairs(u64 *counts, u64 limit)
{
	u64 boundaries = 0;

	for (u32 size = 2; size <= BUCKETS; size *= 2) {
		for (u32 first = 0; first < BUCKETS; first += size) {
			u64 left = counts[first], right = counts[first + size / 2];

			if (limit && left + right > limit) {
				boundaries |= 1ull << (first + size / 2);
				counts[first] = left > right ? left : right;
			} else {
				counts[first] = left + right;
			}
		}
	}
	return boundaries;
}

static u64 split_jax(const struct pcsr_job *job)
{
	u64 boundaries = 0, ids[BUCKETS], columns[BUCKETS];

	for (u32 c = 0; c < job->device_cores; c++) {
		for (u32 p = 0; p < job->given->cores; p++) {
			const struct pcsr_run *runs = pcsr_runs(job, c, p);

			for (u32 b = 0; b < BUCKETS; b++) {
				ids[b] = runs[b].ids;
				columns[b] = runs[b].columns;
			}
			boundaries |= part_pairs(ids, job->given->max_ids) |
				      part_pairs(columns, job->given->max_unique_ids);
		}
	}
	return boundaries;
}

/* The builtin is a call into the compiler's library, which a kernel lacks. */
static u32 count_bits(u64 word)
{
	u32 count = 0;

	for (; word; word &= word - 1)
		count++;
	return count;
}

/*
 * Bit of a flavour's mask that stands for the first boundary of a level; those of the level
 * follow it, a section apart. JAX numbers the levels from the pairs up.
 */
static u32 first_bit(u32 level, bool jax)
{
	return jax ? BUCKETS - 2 * (1u << level) : (1u << level) - 1;
}

static u64 mask_of(u64 boundaries, bool jax)
{
	u64 mask = 0;

	for (u32 level = 0; level < LEVELS; level++) {
		u32 size = BUCKETS >> level, bit = first_bit(level, jax);

		for (u32 first = 0; first < BUCKETS; first += size, bit++)
			mask |= (boundaries >> (first + size / 2) & 1) << bit;
	}
	return mask;
}

static u64 boundaries_of(u64 mask, bool jax)
{
	u64 boundaries = 0;

	for (u32 level = 0; level < LEVELS; level++) {
		u32 size = BUCKETS >> level, bit = first_bit(level, jax);

		for (u32 first = 0; first < BUCKETS; first += size, bit++)
			boundaries |= (mask >> bit & 1) << (first + size / 2);
	}
	return boundaries;
}

void pcsr_split(struct pcsr_job *job)
{
	bool jax = job->given->flavour == EMBENG_FLAVOUR_JAX;

	job->starts = 0;
	if (job->buckets == BUCKETS)
		job->starts = (jax ? split_jax(job) : split_tf(job)) |
			      boundaries_of(job->given->splits, jax);
	job->splits = mask_of(job->starts, jax);
	job->minibatches = 1 + count_bits(job->starts);
}
