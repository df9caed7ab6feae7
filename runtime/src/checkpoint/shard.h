/* SPDX-License-Identifier: MIT */
/* The distribution of a table's rows over hosts. */
#ifndef EMBENG_SHARD_H
#define EMBENG_SHARD_H

#include "embeng/shard.h"

/* The rows of a host. The arguments are checked already. */
struct embeng_shard_rows shard_rows(enum embeng_sharding sharding, uint32_t hosts, uint32_t host,
				    int64_t table_rows);

/* Number of hosts that have any rows. They are the first ones. */
static inline uint32_t shard_hosts(uint32_t hosts, int64_t table_rows)
{
	return table_rows < (int64_t)hosts ? (uint32_t)table_rows : hosts;
}

/*
 * shard_range() - convert rows [first, first + count) of a host's part to rows of the table
 * @what: name of the public call, for sentences
 * @rows: set to the rows of the table
 *
 * Return: 0, -EINVAL, -ERANGE.
 */
int shard_range(const char *what, const struct embeng_shard *shard, const char *table,
		int64_t table_rows, int64_t first, size_t count, struct embeng_shard_rows *rows);

#endif
