// SPDX-License-Identifier: MIT
/*
 * Counts the ids of tables that are spread by rows. Owners are asked for each row of a batch once, so that only the
 * host of a replica knows how often the row occurs; it counts what the engine counts for tables that are not
 * spread (engine/update/row_stats.c), by steps. hosts_stats() puts the counts of all hosts together.
 *
 * Batches are looked at when they are enqueued, and counted when their step is over, or when statistics are asked for
 * after the lookup. h->list_lock guards the counts; a caller may hold e->lock.
 */
#include <stdlib.h>
#include <string.h>

#include "../../../engine/f32.h"
#include "../../../engine/kernels/kernels.h"
#include "../../../engine/update/hot_rows.h"
#include "list_stats.h"
#include "segment.h"

int list_stats_new(struct hosts *h)
{
	int ret = 0;

	pthread_mutex_init(&h->list_lock, NULL);
	h->list_stats = calloc(h->list_count + 1, sizeof(*h->list_stats));
	for (size_t i = 0; h->list_stats && i < h->list_count; i++) {
		h->list_stats[i].hot.rows = malloc(HOT_BYTES);
		ret |= !h->list_stats[i].hot.rows;
	}
	return h->list_stats && !ret ? 0 : -ENOMEM;
}

void list_stats_free(struct hosts *h)
{
	for (size_t i = 0; h->list_stats && i < h->list_count; i++)
		free(h->list_stats[i].hot.rows);
	if (h->list_stats)
		pthread_mutex_destroy(&h->list_lock);
	free(h->list_stats);
	free(h->groups.data);
}

static int64_t id_of_reader(const struct embeng_spread_feature *f, size_t k)
{
	return f->type == EMBENG_I32 ? ((const int32_t *)f->ids)[k] : ((const int64_t *)f->ids)[k];
}

/* Return: whether an id is left out. */
static bool note_id(const struct embeng_spread_table *t, int64_t id, struct list_counts *counts)
{
	if (id >= 0 && id < t->rows)
		return false;
	counts->dropped += t->out_of_range == EMBENG_POLICY_DROP;
	counts->clamped += t->out_of_range == EMBENG_POLICY_CLAMP;
	counts->zeroed += t->out_of_range == EMBENG_POLICY_ZERO;
	return t->out_of_range == EMBENG_POLICY_DROP;
}

/* Ids beyond the length of a sequence are not asked for; those that are dropped take none of it. */
static void note_sequences(const struct embeng_spread_feature *f,
			   const struct embeng_spread_table *t, struct list_counts *counts)
{
	for (size_t s = 0; s < f->samples; s++) {
		int64_t taken = 0;

		for (int64_t k = f->offsets[s];
		     k < f->offsets[s + 1] && taken < f->max_sequence_length; k++) {
			counts->ids++;
			taken += !note_id(t, id_of_reader(f, (size_t)k), counts);
		}
	}
}

void list_stats_note(const struct hosts *h, struct cargo *cargo)
{
	cargo->counted = false;
	memset(cargo->asked, 0, h->list_count * sizeof(*cargo->asked));
	for (size_t i = 0; i < h->reader_count; i++) {
		const struct embeng_spread_feature *f = &cargo->readers[i];
		const struct embeng_spread_table *t = &cargo->lists[f->table];
		struct list_counts *counts = &cargo->asked[f->table];

		if (f->max_sequence_length && f->offsets) {
			note_sequences(f, t, counts);
			continue;
		}
		counts->ids += f->id_count;
		/* Ids outside the table were refused under the policy that they are errors. */
		for (size_t k = 0; t->out_of_range != EMBENG_POLICY_ERROR && k < f->id_count; k++)
			note_id(t, id_of_reader(f, k), counts);
	}
}

/* Rows by host and number there, which is the order of the list. */
static uint64_t rows_of_a_host(const struct hosts *h, size_t list)
{
	const uint64_t rows = (uint64_t)h->e->model->tables[h->lists[list].table].rows;

	return (rows - 1) / h->hosts + 1;
}

static void count_hot(struct hosts *h, const struct cargo *cargo, size_t index)
{
	const struct embeng_spread_table *list = &cargo->lists[index];
	struct kernel_group *groups = (void *)h->groups.data;
	size_t n = 0;

	for (uint32_t host = 0; host < h->hosts; host++)
		for (size_t k = 0; k < list->counts[host]; k++, n++)
			groups[n] = (struct kernel_group){.row = host * rows_of_a_host(h, index) +
								 (uint64_t)list->list[n]};
	for (size_t i = 0; i < h->reader_count; i++)
		for (size_t k = 0;
		     cargo->readers[i].table == index && k < cargo->readers[i].id_count; k++)
			if (cargo->readers[i].places[k] >= 0)
				groups[cargo->readers[i].places[k]].count++;
	hot_add(&h->list_stats[index].hot, groups, list->count, NULL);
}

static void count_batch_of_list(struct hosts *h, const struct cargo *cargo, size_t index,
				bool trains)
{
	const struct list_counts *counts = &cargo->asked[index];
	struct list_stats *stats = &h->list_stats[index];

	stats->counts.dropped += counts->dropped;
	stats->counts.clamped += counts->clamped;
	stats->counts.zeroed += counts->zeroed;
	if (!trains || cargo->discarded)
		return;
	stats->counts.ids += counts->ids;
	/* Without memory the rows of the step are missing, and counts fall short by their occurrences at most. */
	if (memory_need(&h->groups, 8 + cargo->lists[index].count * sizeof(struct kernel_group)))
		stats->hot.error += counts->ids;
	else
		count_hot(h, cargo, index);
}

void list_stats_count(struct hosts *h, struct cargo *cargo, bool trains)
{
	if (!h->list_count)
		return;
	pthread_mutex_lock(&h->list_lock);
	for (size_t i = 0; !cargo->counted && i < h->list_count; i++)
		count_batch_of_list(h, cargo, i, trains);
	cargo->counted = true;
	pthread_mutex_unlock(&h->list_lock);
}

/* Steps that were looked up and whose gradients have not come. */
void list_stats_count_looked(struct hosts *h)
{
	pthread_mutex_lock(&h->e->lock);
	for (uint64_t step = h->updated + 1; step <= h->looked; step++)
		for (uint32_t i = 0; i < h->e->local_replicas; i++) {
			const struct slot *slot = steps_slot(h, i, step);

			if (slot)
				list_stats_count(h, slot->cargo, true);
		}
	pthread_mutex_unlock(&h->e->lock);
}

/* Outputs of all features, which were pooled here and not by an owner. */
void list_stats_look(struct hosts *h, const struct cargo *cargo)
{
	for (size_t i = 0; i < h->reader_count; i++) {
		const struct embeng_spread_feature *f = &cargo->readers[i];
		const uint64_t dim = (uint64_t)cargo->lists[f->table].dim;
		const size_t length = f->offsets && f->max_sequence_length
					      ? (size_t)f->max_sequence_length
					      : 1;
		uint64_t count = 0;

		for (size_t k = 0; k < f->samples * length; k++)
			count += !f32_row_finite(
				(const u32 *)(const void *)f->activations + k * dim, (u32)dim);
		if (!count)
			continue;
		pthread_mutex_lock(&h->list_lock);
		h->list_stats[f->table].counts.nonfinite += count;
		pthread_mutex_unlock(&h->list_lock);
	}
}

/* -- what hosts tell each other -- */

static int64_t row_of_key(const struct hosts *h, size_t list, uint64_t key)
{
	const uint64_t part = rows_of_a_host(h, list);
	const struct place_part *own = hosts_part(h, h->lists[list].table, (uint32_t)(key / part));

	return own ? own->rows.first + (int64_t)(key % part) * own->rows.stride : 0;
}

size_t list_stats_bytes(void)
{
	return sizeof(struct list_told) + HOT_ROWS * sizeof(struct embeng_hot_row);
}

size_t list_stats_tell(struct hosts *h, size_t list, bool clear, struct list_told *to)
{
	struct list_stats *stats = &h->list_stats[list];
	struct embeng_hot_row *rows = (void *)(to + 1);

	list_stats_count_looked(h);
	pthread_mutex_lock(&h->list_lock);
	*to = (struct list_told){.counts = stats->counts,
				 .hot_error = stats->hot.error,
				 .hot_count = stats->hot.count};
	for (uint32_t i = 0; i < stats->hot.count; i++)
		rows[i] = (struct embeng_hot_row){
			.row = (uint64_t)row_of_key(h, list, stats->hot.rows[i].row),
			.count = stats->hot.rows[i].count};
	if (clear) {
		stats->counts = (struct list_counts){0};
		hot_clear(&stats->hot);
	}
	pthread_mutex_unlock(&h->list_lock);
	return sizeof(*to) + to->hot_count * sizeof(*rows);
}
