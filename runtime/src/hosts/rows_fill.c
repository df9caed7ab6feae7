// SPDX-License-Identifier: MIT
/*
 * Fills rows of tables that lie on several hosts: each host says what it wants filled, and each owner fills
 * its part of that, for one host after the other.
 *
 * Called within a collective call, by hosts_rows(). No lock is held.
 */
#include <string.h>

#include "collective.h"
#include "part.h"
#include "segment.h"

/* A host's request. */
struct filling {
	uint64_t first, count, seed;
	uint32_t table, slot, kind;
	float a, b;
	uint32_t unused;
};

static int fill_for_hosts(struct hosts *h)
{
	struct filling before = {0}, filling;
	bool filled = false;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < h->hosts; i++) {
		const struct embeng_bytes *came = &h->received[CHANNEL_CONTROL][i];
		struct embeng_initializer initializer;

		if (came->bytes != sizeof(filling))
			return segment_bad(h, i, "a fill");
		memcpy(&filling, came->data, sizeof(filling));
		/* In most programs all hosts make the very same call. */
		if (i && !memcmp(&filling, &before, sizeof(filling)))
			continue;
		before = filling;
		initializer = (struct embeng_initializer){
			.kind = (enum embeng_initializer_name)filling.kind,
			.a = filling.a,
			.b = filling.b,
			.seed = filling.seed};
		ret = part_fill(h, (int)filling.table, filling.slot, filling.first, filling.count,
				&initializer);
		filled |= filling.count != 0;
	}
	/* Where the rows are on other hosts, pipelining has to be told. */
	return !ret && filled ? steps_see_updates(h->owner) : ret;
}

int fill_hosts_rows(struct embeng *e, const struct rows_asked *asked)
{
	struct hosts *h = e->hosts;
	struct filling own = {0};
	int ret;

	if (!asked->status)
		own = (struct filling){.first = asked->first,
				       .count = asked->count,
				       .seed = asked->initializer->seed,
				       .table = (uint32_t)asked->table,
				       .slot = (uint32_t)asked->slot,
				       .kind = (uint32_t)asked->initializer->kind,
				       .a = asked->initializer->a,
				       .b = asked->initializer->b};
	for (uint32_t i = 0; i < h->hosts; i++)
		h->send[CHANNEL_CONTROL][i] = (struct embeng_bytes){&own, sizeof(own)};
	ret = hosts_control(e, "rows fill", asked->status, h->send[CHANNEL_CONTROL],
			    h->received[CHANNEL_CONTROL]);
	return ret ? ret : hosts_control(e, "rows fill", fill_for_hosts(h), NULL, NULL);
}
