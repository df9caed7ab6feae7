// SPDX-License-Identifier: MIT
/*
 * Spreads the rows of some tables of a placement. It is a file of its own because the tables that are
 * not spread must keep the owners that a plan of hosts gives them: the plan compares exchanges with
 * these.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/model.h"
#include "place.h"

static int add_shards_of(const struct table *t, struct placement *p, int table,
			 enum embeng_exchange_kind kind)
{
	const uint32_t count = place_row_parts(t, p->hosts);
	int ret = 0;

	for (uint32_t i = 0; !ret && i < count; i++) {
		const struct embeng_shard shard = EMBENG_INIT(embeng_shard, .sharding = p->sharding,
							      .hosts = p->hosts, .host = i);
		struct place_part *part = &p->parts[p->part_count++];

		part->table = table;
		ret = place_row_part(t, &shard, kind, part);
	}
	return ret;
}

static int fill_spread(const struct placement *from, const struct embeng_model *model,
		       const enum embeng_exchange_kind *each, struct placement *to)
{
	int ret = 0;

	for (size_t t = 0; !ret && t < model->table_count; t++) {
		const size_t first = from->first[t], count = from->first[t + 1] - first;

		to->first[t] = to->part_count;
		if (place_can_spread(model, t, each[t])) {
			ret = add_shards_of(&model->tables[t], to, (int)t, each[t]);
		} else {
			memcpy(&to->parts[to->part_count], &from->parts[first],
			       count * sizeof(*to->parts));
			to->part_count += count;
		}
	}
	to->first[model->table_count] = to->part_count;
	for (size_t i = 0; !ret && i < to->part_count; i++)
		to->bytes[to->parts[i].host] += place_part_bytes(model, &to->parts[i]);
	return ret;
}

int placement_spread(struct placement *placement, const struct embeng_model *model,
		     const enum embeng_exchange_kind *each, enum embeng_sharding sharding)
{
	struct placement spread = {.hosts = placement->hosts, .sharding = sharding};
	size_t most = placement->part_count;
	int ret;

	for (size_t t = 0; t < model->table_count; t++)
		most += place_can_spread(model, t, each[t])
				? place_row_parts(&model->tables[t], placement->hosts)
				: 0;
	spread.parts = calloc(most + 1, sizeof(*spread.parts));
	spread.first = calloc(model->table_count + 1, sizeof(*spread.first));
	spread.bytes = calloc(placement->hosts, sizeof(*spread.bytes));
	ret = spread.parts && spread.first && spread.bytes
		      ? fill_spread(placement, model, each, &spread)
		      : fail(-ENOMEM, "no memory to distribute tables");
	if (ret) {
		placement_free(&spread);
		return ret;
	}
	placement_free(placement);
	*placement = spread;
	return 0;
}
