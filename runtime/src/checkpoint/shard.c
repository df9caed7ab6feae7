// SPDX-License-Identifier: MIT
/*
 * Says which rows of a table belong to which host, for both shardings (div and mod), and where a
 * row is among its host's.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>

#include "base/check.h"
#include "shard.h"

struct embeng_shard_rows shard_rows(enum embeng_sharding sharding, uint32_t hosts, uint32_t host,
				    int64_t table_rows)
{
	int64_t q = table_rows / hosts, e = table_rows % hosts;
	struct embeng_shard_rows rows = {.stride = 1, .count = q + (host < e)};

	if (!rows.count)
		return rows;
	if (sharding == EMBENG_SHARDING_MOD) {
		rows.first = host;
		rows.stride = hosts;
	} else {
		rows.first = host * q + (host < e ? host : e);
	}
	return rows;
}

static int take_shard(const char *what, const struct embeng_shard *given,
		      struct embeng_shard *shard)
{
	int code = config_take(shard, given, sizeof(*shard), "embeng_shard");

	if (code)
		return code;
	if ((unsigned int)shard->sharding > EMBENG_SHARDING_MOD)
		return fail(-EINVAL,
			    "%s: sharding %d is unknown; there are EMBENG_SHARDING_DIV and "
			    "EMBENG_SHARDING_MOD",
			    what, (int)shard->sharding);
	if (!shard->hosts || shard->hosts > INT32_MAX)
		return fail(-ERANGE, "%s: %" PRIu32 " hosts, allowed are 1 to %d", what,
			    shard->hosts, INT32_MAX);
	if (shard->host >= shard->hosts)
		return fail(-ERANGE, "%s: host %" PRIu32 " of %" PRIu32 ", which count from 0",
			    what, shard->host, shard->hosts);
	return 0;
}

static int check_table_rows(const char *what, int64_t table_rows)
{
	if (table_rows > 0)
		return 0;
	return fail(-ERANGE, "%s: a table of %" PRId64 " rows; it has at least one", what,
		    table_rows);
}

int embeng_shard_rows(const struct embeng_shard *shard, int64_t table_rows,
		      struct embeng_shard_rows *rows)
{
	struct embeng_shard s;
	int code = take_shard("embeng_shard_rows", shard, &s);

	if (!code && !rows)
		code = fail(-EINVAL, "embeng_shard_rows: rows must be given");
	code = code ? code : check_table_rows("embeng_shard_rows", table_rows);
	if (!code)
		*rows = shard_rows(s.sharding, s.hosts, s.host, table_rows);
	return code;
}

static void find_row(const struct embeng_shard *s, int64_t table_rows, int64_t row, uint32_t *host,
		     int64_t *place)
{
	int64_t q = table_rows / s->hosts, larger = table_rows % s->hosts * (q + 1);

	if (s->sharding == EMBENG_SHARDING_MOD) {
		*host = (uint32_t)(row % s->hosts);
		*place = row / s->hosts;
	} else if (row < larger) {
		*host = (uint32_t)(row / (q + 1));
		*place = row % (q + 1);
	} else {
		*host = (uint32_t)(table_rows % s->hosts + (row - larger) / q);
		*place = (row - larger) % q;
	}
}

int embeng_shard_find(const struct embeng_shard *shard, int64_t table_rows, int64_t row,
		      uint32_t *host, int64_t *place)
{
	struct embeng_shard s;
	struct embeng_shard any;
	int code = config_take(&any, shard, sizeof(any), "embeng_shard");

	if (code)
		return code;
	any.host = 0;
	code = take_shard("embeng_shard_find", &any, &s);
	if (!code && (!host || !place))
		code = fail(-EINVAL, "embeng_shard_find: host and place must be given");
	code = code ? code : check_table_rows("embeng_shard_find", table_rows);
	if (!code && (row < 0 || row >= table_rows))
		code = fail(-ERANGE,
			    "embeng_shard_find: row %" PRId64 " is outside the table, which has "
			    "rows 0 to %" PRId64,
			    row, table_rows - 1);
	if (!code)
		find_row(&s, table_rows, row, host, place);
	return code;
}

int shard_range(const char *what, const struct embeng_shard *shard, const char *table,
		int64_t table_rows, int64_t first, size_t count, struct embeng_shard_rows *rows)
{
	struct embeng_shard_rows all;
	struct embeng_shard s;
	int code = take_shard(what, shard, &s);

	if (code)
		return code;
	all = shard_rows(s.sharding, s.hosts, s.host, table_rows);
	if (first < 0 || first > all.count || count > (uint64_t)(all.count - first))
		return fail(-ERANGE,
			    "%s: %zu rows from %" PRId64 " of host %" PRIu32 " of %" PRIu32
			    ", which has %" PRId64 " of table %s",
			    what, count, first, s.host, s.hosts, all.count, table);
	*rows = (struct embeng_shard_rows){.first = all.first + first * all.stride,
					   .stride = all.stride,
					   .count = (int64_t)count};
	return 0;
}
