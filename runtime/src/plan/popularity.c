// SPDX-License-Identifier: MIT
/*
 * Rows by popularity: how many different ones are expected in a batch, and which hosts own them. It is
 * a file because it is all of the probability in a plan of hosts; the rest is whole numbers.
 *
 * A Zipf law is cut into pieces of successive ranks that count as equally frequent: single ranks at
 * first, then pieces that grow with their rank, so that a table of 10^10 rows takes some thousands of
 * steps. In a piece of a to b, the frequency is that of the middle rank. Its error is below
 * s (s + 1) / 24 ((b - a) / a)^2, 10^-5 for an exponent s of 3.
 *
 * Working memory lives for one call; no lock is needed.
 */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "popularity.h"

#define SINGLE_RANKS 4096 /* so many ranks are pieces of their own */
#define PIECE_PART 256	  /* a longer piece has this part of its first rank as its length */
#define FIT_STEPS 60

/* Successive ranks that are asked for equally often. */
struct piece {
	uint64_t first, count;
	double weight; /* each rank has it */
};

/* The piece that begins with rank @first, counted from 0. */
static struct piece find_piece(uint64_t first, uint64_t rows, double zipf)
{
	uint64_t count = first < SINGLE_RANKS ? 1 : first / PIECE_PART;
	double middle;

	if (zipf <= 0.0)
		return (struct piece){first, rows - first, 1.0};
	count = count < rows - first ? count : rows - first;
	middle = (double)first + ((double)count + 1.0) / 2.0;
	return (struct piece){first, count, pow(middle, -zipf)};
}

/* Sum of the weights of ranks from @first to before @end. */
static double sum_weights(uint64_t first, uint64_t end, double zipf)
{
	double sum = 0.0;

	while (first < end) {
		const struct piece piece = find_piece(first, end, zipf);

		sum += piece.weight * (double)piece.count;
		first += piece.count;
	}
	return sum;
}

static double counted_share(const struct embeng_profile_counts *counts)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < counts->hot_count; i++)
		sum += counts->hot[i].count;
	return counts->ids ? (double)sum / (double)counts->ids : 0.0;
}

double popularity_fit(uint64_t rows, const struct embeng_profile_counts *counts)
{
	const double share = counted_share(counts);
	double low = 0.0, high = POPULARITY_ZIPF_MOST;

	if (counts->hot_count >= rows || share >= 1.0)
		return 0.0;
	for (int i = 0; i < FIT_STEPS; i++) {
		const double middle = (low + high) / 2.0;
		const double counted = sum_weights(0, counts->hot_count, middle);
		const double others = sum_weights(counts->hot_count, rows, middle);

		if (counted / (counted + others) < share)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Loads of hosts, as differences between a host and the next, so that a piece takes two additions. */
struct loads {
	uint32_t hosts;
	uint64_t each, longer;	/* the first @longer hosts have @each + 1 successive rows */
	double all;		/* each host has it */
	double *steps, *inside; /* [hosts + 1] */
};

static void add_mod(struct loads *l, const struct piece *piece, double value)
{
	const uint64_t begin = piece->first % l->hosts, more = piece->count % l->hosts;

	l->all += value * (double)(piece->count / l->hosts);
	l->steps[begin] += value;
	if (begin + more < l->hosts) {
		l->steps[begin + more] -= value;
		return;
	}
	l->steps[0] += value;
	l->steps[begin + more - l->hosts] -= value;
}

static uint64_t find_first_row(const struct loads *l, uint64_t host)
{
	return host * l->each + (host < l->longer ? host : l->longer);
}

static uint64_t owner_of_row(const struct loads *l, uint64_t row)
{
	const uint64_t before = l->longer * (l->each + 1);

	return row < before ? row / (l->each + 1) : l->longer + (row - before) / l->each;
}

/* Hosts whose rows are all in the piece get a step of density; the two at its ends a part. */
static void add_div(struct loads *l, const struct piece *piece, double value)
{
	const uint64_t end = piece->first + piece->count;
	const uint64_t low = owner_of_row(l, piece->first), high = owner_of_row(l, end - 1);

	if (low == high) {
		l->inside[low] += value * (double)piece->count;
		return;
	}
	l->inside[low] += value * (double)(find_first_row(l, low + 1) - piece->first);
	l->inside[high] += value * (double)(end - find_first_row(l, high));
	l->steps[low + 1] += value;
	l->steps[high] -= value;
}

static void add_piece(struct loads *l, enum embeng_sharding sharding, const struct piece *piece,
		      double value)
{
	if (sharding == EMBENG_SHARDING_MOD)
		add_mod(l, piece, value);
	else
		add_div(l, piece, value);
}

static void fill_loads(const struct loads *l, enum embeng_sharding sharding, double *out)
{
	double step = 0.0;

	for (uint32_t h = 0; h < l->hosts; h++) {
		const double rows = (double)(find_first_row(l, (uint64_t)h + 1) -
					     find_first_row(l, h));

		step += l->steps[h];
		out[h] = sharding == EMBENG_SHARDING_MOD ? l->all + step
							 : l->all + l->inside[h] + step * rows;
		out[h] = out[h] > 0.0 ? out[h] : 0.0; /* differences of sums are inexact */
	}
}

/* 1 - (1 - p)^n */
static double chance_of_one(double p, uint64_t n)
{
	if (!n || p <= 0.0)
		return 0.0;
	return p < 1.0 ? -expm1((double)n * log1p(-p)) : 1.0;
}

static void spread_counted(const struct popularity *law, uint64_t ids,
			   enum embeng_sharding sharding, struct loads *unique, struct loads *share)
{
	const struct embeng_profile_counts *counts = law->counts;

	for (size_t i = 0; i < counts->hot_count; i++) {
		const struct piece piece = {(uint64_t)counts->hot[i].row, 1, 0.0};
		const double p = (double)counts->hot[i].count / (double)counts->ids;

		if (piece.first >= law->rows)
			continue;
		add_piece(unique, sharding, &piece, chance_of_one(p, ids));
		add_piece(share, sharding, &piece, p);
	}
}

static void spread_ranks(const struct popularity *law, uint64_t ids, enum embeng_sharding sharding,
			 struct loads *unique, struct loads *share)
{
	const uint64_t begin = law->counts ? law->counts->hot_count : 0;
	const double mass = law->counts ? 1.0 - counted_share(law->counts) : 1.0;
	double sum;

	if (begin >= law->rows || mass <= 0.0)
		return;
	sum = sum_weights(begin, law->rows, law->zipf);
	for (uint64_t at = begin; at < law->rows;) {
		const struct piece piece = find_piece(at, law->rows, law->zipf);
		const double p = mass * (piece.weight / sum);

		if (law->counts) {
			unique->all += chance_of_one(p, ids) * (double)piece.count / unique->hosts;
			share->all += p * (double)piece.count / share->hosts;
		} else {
			add_piece(unique, sharding, &piece, chance_of_one(p, ids));
			add_piece(share, sharding, &piece, p);
		}
		at += piece.count;
	}
}

int popularity_spread(const struct popularity *law, uint64_t ids, enum embeng_sharding sharding,
		      struct spread *spread)
{
	const size_t n = (size_t)spread->hosts + 1;
	double *steps = calloc(4 * n, sizeof(*steps));
	struct loads unique = {.hosts = spread->hosts,
			       .each = law->rows / spread->hosts,
			       .longer = law->rows % spread->hosts,
			       .steps = steps,
			       .inside = steps + n};
	struct loads share = unique;

	if (!steps)
		return fail(-ENOMEM, "no memory to distribute rows over %u hosts", spread->hosts);
	share.steps = steps + 2 * n;
	share.inside = steps + 3 * n;
	if (law->counts)
		spread_counted(law, ids, sharding, &unique, &share);
	spread_ranks(law, ids, sharding, &unique, &share);
	fill_loads(&unique, sharding, spread->unique);
	fill_loads(&share, sharding, spread->ids);
	free(steps);
	return 0;
}
