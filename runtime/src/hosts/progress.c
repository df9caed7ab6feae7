// SPDX-License-Identifier: MIT
/*
 * Tells where things are: the host of a replica, the part of a table, the slot of a step, and whether a stage
 * of the steps can take the next one. All other files of this folder ask here.
 *
 * Nothing is changed. Functions about steps are called with e->lock held; the others look at what is constant.
 */
#include "hosts.h"

const struct place_part *hosts_part(const struct hosts *h, int table, uint32_t host)
{
	for (size_t i = h->place.first[table]; i < h->place.first[table + 1]; i++)
		if (h->place.parts[i].host == host)
			return &h->place.parts[i];
	return NULL;
}

int hosts_locate(const struct hosts *h, int table, int64_t row, uint32_t *host, int64_t *local)
{
	const struct place_part *part = &h->place.parts[h->place.first[table]];
	const struct embeng_shard shard = EMBENG_INIT(embeng_shard, .sharding = h->place.sharding,
						      .hosts = h->hosts);

	if (part->kind == PLACE_ROWS)
		return embeng_shard_find(&shard, h->e->model->tables[table].rows, row, host, local);
	*host = part->host;
	*local = row;
	return row >= 0 && row < part->rows.count ? 0 : -ERANGE;
}

/* Blocks, so that replicas that are neighbours are on one host. */
uint32_t hosts_first_replica(const struct hosts *h, uint32_t host)
{
	return (uint32_t)((uint64_t)host * h->e->replica_count / h->hosts);
}

uint32_t hosts_home(const struct hosts *h, uint32_t replica)
{
	uint32_t host = (uint32_t)((uint64_t)replica * h->hosts / h->e->replica_count);

	while (hosts_first_replica(h, host + 1) <= replica)
		host++;
	return host;
}

uint64_t steps_enqueued(const struct hosts *h)
{
	const struct embeng *e = h->e;
	uint64_t least = e->local_replicas ? UINT64_MAX : 0;

	for (uint32_t i = 0; i < e->local_replicas; i++) {
		const uint64_t accepted = e->steps[e->first_replica + i].accepted;

		least = accepted < least ? accepted : least;
	}
	return least;
}

struct slot *steps_slot(const struct hosts *h, uint32_t local, uint64_t step)
{
	const struct embeng *e = h->e;
	struct replica *r = &e->replicas[e->first_replica + local];

	for (uint32_t k = 0; k < e->slot_count; k++)
		if (r->training[k].state != SLOT_FREE && r->training[k].step == step)
			return &r->training[k];
	return NULL;
}

/* The update that a lookup must see, counted back from its step. */
static uint64_t lag_of(const struct hosts *h)
{
	return h->e->model->engine.pipelining ? 2 : 1;
}

static bool all_gave(const struct hosts *h, uint64_t step)
{
	const struct embeng *e = h->e;

	for (uint32_t i = 0; i < e->local_replicas; i++)
		if (e->steps[e->first_replica + i].updated < step)
			return false;
	return true;
}

static bool ids_can_move(const struct hosts *h)
{
	if (h->looked >= h->updated + h->e->depth)
		return h->ending;
	return h->ending || hosts_serves_only(h) || steps_enqueued(h) > h->looked ||
	       (h->refused && h->refused->step == h->looked + 1);
}

bool stage_can_move(const struct hosts *h, uint32_t stage)
{
	if (h->failed || h->ended[stage])
		return false;
	switch (stage) {
	case CHANNEL_IDS:
		return ids_can_move(h);
	case CHANNEL_ANSWERS:
		return h->answered < h->looked && h->answered < h->updated + lag_of(h);
	default:
		return h->updated < h->answered && (h->ending || all_gave(h, h->updated + 1));
	}
}

bool steps_are_over(const struct hosts *h)
{
	return h->ended[CHANNEL_IDS] && !stage_can_move(h, CHANNEL_ANSWERS) && !h->working &&
	       (h->ended[CHANNEL_GRADIENTS] || h->answered == h->updated);
}

bool steps_can_move(const struct hosts *h)
{
	bool can = false;

	for (uint32_t stage = 0; stage < h->running; stage++)
		can |= stage_can_move(h, stage);
	return can;
}
