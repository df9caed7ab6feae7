// SPDX-License-Identifier: MIT
/*
 * Finds for each id of a batch which row it is of those that a host is asked for, where the host is sent the
 * gradients of samples. If a table takes each gradient by itself, its host is asked for each row as often as
 * it occurs: first once, as it is for all lists, and behind that again, in the order of ids. So each
 * occurrence has a place of its own, and those of one row keep their order.
 *
 * All memory belongs to the cargo, which one thread fills at a time. No lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "samples.h"

int occurrences_new(const struct hosts *h, struct cargo *cargo)
{
	struct occurrences *o;

	if (h->summed_lists == h->trained_lists)
		return 0;
	o = cargo->occurrences = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->again = calloc(h->list_count * h->hosts + 1, sizeof(*o->again));
	o->repeated = calloc(h->list_count + 1, sizeof(*o->repeated));
	o->owners = calloc(h->list_count + 1, sizeof(*o->owners));
	o->places = calloc(h->reader_count + 1, sizeof(*o->places));
	o->picked = calloc(h->reader_count * h->hosts + 1, sizeof(*o->picked));
	o->cursors = calloc(h->hosts, sizeof(*o->cursors));
	return o->again && o->repeated && o->owners && o->places && o->picked && o->cursors
		       ? 0
		       : -ENOMEM;
}

void occurrences_free(struct cargo *cargo)
{
	struct occurrences *o = cargo->occurrences;

	if (!o)
		return;
	free(o->again);
	free(o->repeated);
	free(o->owners);
	free(o->places);
	free(o->picked);
	free(o->cursors);
	free(o->memory.data);
	free(o->work.data);
	free(o);
}

void occurrences_clear(const struct hosts *h, struct cargo *cargo)
{
	if (cargo->occurrences)
		memset(cargo->occurrences->again, 0,
		       h->list_count * h->hosts * sizeof(*cargo->occurrences->again));
}

static int divide_memory(const struct hosts *h, struct cargo *cargo)
{
	struct occurrences *o = cargo->occurrences;
	uint64_t bytes = 8;
	char *to;
	int ret;

	for (size_t i = h->summed_lists; i < h->trained_lists; i++)
		bytes += 8 * (uint64_t)cargo->lists[i].room +
			 segment_pad(4 * (uint64_t)cargo->lists[i].count);
	for (size_t i = h->summed_readers; i < h->trained_readers; i++)
		bytes += segment_pad(4 * (uint64_t)cargo->readers[i].id_count);
	ret = memory_need(&o->memory, bytes);
	to = o->memory.data;
	for (size_t i = h->summed_lists; !ret && i < h->trained_lists; i++) {
		o->repeated[i] = (void *)to;
		to += 8 * (uint64_t)cargo->lists[i].room;
		o->owners[i] = (void *)to;
		to += segment_pad(4 * (uint64_t)cargo->lists[i].count);
	}
	for (size_t i = h->summed_readers; !ret && i < h->trained_readers; i++) {
		o->places[i] = (void *)to;
		to += segment_pad(4 * (uint64_t)cargo->readers[i].id_count);
	}
	return ret;
}

static void find_owners(const struct hosts *h, const struct embeng_spread_table *list,
			uint32_t *owners)
{
	for (uint32_t host = 0; host < h->hosts; host++)
		for (size_t k = 0; k < list->counts[host]; k++)
			*owners++ = host;
}

/* Places among the rows of a host, of all features of the list. */
static void place_once(const struct hosts *h, struct cargo *cargo, size_t list, size_t *before)
{
	const struct occurrences *o = cargo->occurrences;

	for (size_t i = h->summed_readers; i < h->trained_readers; i++) {
		const struct embeng_spread_feature *r = &cargo->readers[i];

		for (size_t k = 0; r->table == list && k < r->id_count; k++) {
			const int32_t place = r->places[k];

			o->places[i][k] = place < 0
						  ? -1
						  : place - (int32_t)before[o->owners[list][place]];
		}
	}
}

/* The first id of each row keeps its place; the others get one each, behind those. */
static void place_again(const struct hosts *h, struct cargo *cargo, size_t list, uint32_t *seen)
{
	const struct embeng_spread_table *t = &cargo->lists[list];
	const struct occurrences *o = cargo->occurrences;
	size_t *again = &o->again[list * h->hosts];

	memset(seen, 0, t->count * sizeof(*seen));
	for (size_t i = h->summed_readers; i < h->trained_readers; i++) {
		const struct embeng_spread_feature *r = &cargo->readers[i];

		for (size_t k = 0; r->table == list && k < r->id_count; k++) {
			const int32_t place = r->places[k];
			uint32_t host;

			if (place < 0 || !seen[place]++)
				continue;
			host = o->owners[list][place];
			o->places[i][k] = (int32_t)(t->counts[host] + again[host]++);
		}
	}
}

/* Numbers of the rows that are asked for again, those of each host together. @next: [hosts], used up */
static void list_repeated(const struct hosts *h, struct cargo *cargo, size_t list, size_t *next)
{
	const struct embeng_spread_table *t = &cargo->lists[list];
	const struct occurrences *o = cargo->occurrences;
	const size_t *again = &o->again[list * h->hosts];

	for (size_t host = 0, at = 0; host < h->hosts; at += again[host++])
		next[host] = at;
	for (size_t i = h->summed_readers; i < h->trained_readers; i++) {
		const struct embeng_spread_feature *r = &cargo->readers[i];

		for (size_t k = 0; r->table == list && k < r->id_count; k++) {
			const int32_t place = r->places[k];
			uint32_t host = place < 0 ? 0 : o->owners[list][place];

			if (place >= 0 && (size_t)o->places[i][k] >= t->counts[host])
				o->repeated[list][next[host]++] = t->list[place];
		}
	}
}

int occurrences_make(const struct hosts *h, struct cargo *cargo)
{
	struct occurrences *o = cargo->occurrences;
	uint64_t most = 0;
	size_t *numbers;
	int ret = o ? divide_memory(h, cargo) : 0;

	if (!o || ret)
		return ret;
	for (size_t i = h->summed_lists; i < h->trained_lists; i++)
		most = cargo->lists[i].count > most ? cargo->lists[i].count : most;
	occurrences_clear(h, cargo);
	ret = memory_need(&o->work, 8 * (uint64_t)h->hosts + 4 * most + 8);
	if (ret)
		return ret;
	numbers = (void *)o->work.data;
	for (size_t i = h->summed_lists; i < h->trained_lists; i++) {
		find_owners(h, &cargo->lists[i], o->owners[i]);
		for (size_t host = 0, before = 0; host < h->hosts; host++) {
			numbers[host] = before;
			before += cargo->lists[i].counts[host];
		}
		place_once(h, cargo, i, numbers);
		if (!h->lists[i].repeats)
			continue;
		place_again(h, cargo, i, (uint32_t *)(void *)(numbers + h->hosts));
		list_repeated(h, cargo, i, numbers);
	}
	return 0;
}
