/* SPDX-License-Identifier: MIT */
/* How often each row of a table is asked for, and so how many different rows a batch has. */
#ifndef EMBENG_PLAN_POPULARITY_H
#define EMBENG_PLAN_POPULARITY_H

#include <stddef.h>
#include <stdint.h>

#include "embeng.h"
#include "embeng/profile.h"

#define POPULARITY_ZIPF_MOST 8.0

/**
 * struct popularity - the law by which rows of a table are asked for
 * @rows: rows of the table
 * @zipf: exponent of the rows that are not in @counts; 0: each equally often
 * @counts: NULL, or a profile's counts with @batches above 0. Rows that are not in it have unknown
 *	numbers, and are supposed to be spread evenly over hosts
 */
struct popularity {
	uint64_t rows;
	double zipf;
	const struct embeng_profile_counts *counts;
};

/*
 * popularity_fit() - the exponent of a profile's rows
 *
 * It is the one with which the counted rows, as the most frequent ones of the table, have the share of
 * all ids that they have in the profile.
 */
double popularity_fit(uint64_t rows, const struct embeng_profile_counts *counts);

/**
 * struct spread - the part of a batch that each host owns
 * @hosts: how many
 * @unique: [hosts] expected number of different rows
 * @ids: [hosts] share of the ids, which add up to 1
 */
struct spread {
	uint32_t hosts;
	double *unique, *ids;
};

/*
 * popularity_spread() - distribute the rows of a batch over their owners
 * @ids: in the batch, drawn independently
 * @sharding: the distribution of rows over hosts
 * @spread: its arrays are filled
 *
 * Return: 0, or -ENOMEM.
 */
int popularity_spread(const struct popularity *law, uint64_t ids, enum embeng_sharding sharding,
		      struct spread *spread);

#endif
