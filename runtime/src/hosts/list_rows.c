// SPDX-License-Identifier: MIT
/*
 * Rows of tables that are spread, on the host that asked for them: activations are made out of the rows that
 * came, and a sum of gradients for each row that goes back. Both are done by this host's device, in the order
 * of one handle.
 *
 * Lists, rows and sums live in a slot's cargo (lists.c). The rows are the answers thread's until the
 * activations are there; then all is of whoever hands gradients in. No lock is needed.
 */
#include <inttypes.h>
#include <string.h>

#include "host/port.h"
#include "list_stats.h"
#include "samples.h"

static struct embeng_spread spread_of(const struct hosts *h, const struct cargo *cargo)
{
	return EMBENG_INIT(embeng_spread, .tables = cargo->lists, .table_count = h->list_count,
			   .features = cargo->readers, .feature_count = h->reader_count,
			   .hosts = h->hosts, .sharding = h->place.sharding,
			   .allow_non_finite = 1); /* they were checked */
}

/* Floats of the lists before list @end, or of all. */
static uint64_t floats_before(const struct cargo *cargo, size_t end)
{
	uint64_t floats = 0;

	for (size_t i = 0; i < end; i++)
		floats += cargo->lists[i].count * (uint64_t)cargo->lists[i].dim;
	return floats;
}

/* Where the rows of a host begin in a list. */
static uint64_t floats_before_host(const struct embeng_spread_table *list, uint32_t host)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < host; i++)
		rows += list->counts[i];
	return rows * (uint64_t)list->dim;
}

int list_rows_take(struct hosts *h, struct cargo *cargo, uint32_t host, struct reading *segment)
{
	int ret = 0;

	if (h->list_count)
		ret = memory_need_shared(h, &cargo->rows,
					 8 + 4 * floats_before(cargo, h->list_count));
	for (size_t i = 0; !ret && i < h->list_count; i++) {
		const struct embeng_spread_table *list = &cargo->lists[i];
		const uint64_t bytes = 4 * list->counts[host] * (uint64_t)list->dim;
		const char *from;

		if (!hosts_part(h, h->lists[i].table, host))
			continue;
		from = read_next(segment, bytes);
		if (!from)
			return segment_bad(h, host, "rows");
		if (bytes)
			memcpy((float *)(void *)cargo->rows.data + floats_before(cargo, i) +
				       floats_before_host(list, host),
			       from, bytes);
	}
	return ret;
}

int list_rows_pool(struct hosts *h, const struct slot *slot)
{
	struct cargo *cargo = slot->cargo;
	const struct embeng_spread batch = spread_of(h, cargo);
	int ret;

	for (size_t i = 0; i < h->list_count; i++)
		cargo->lists[i].data = (const float *)(const void *)cargo->rows.data +
				       floats_before(cargo, i);
	for (size_t i = 0; i < h->reader_count; i++)
		cargo->readers[i].activations = (float *)(void *)(slot->activations.data +
								  slot->at[h->readers[i]]);
	ret = embeng_spread_pool(h->owner, &batch);
	if (!ret)
		list_stats_look(h, cargo);
	return ret;
}

static int check_sum(const struct hosts *h, const struct slot *slot,
		     const struct embeng_gradients *g, size_t list)
{
	const struct table *t = &h->e->model->tables[h->lists[list].table];

	if (slot->ids_only && !g->sums && t->combiner == EMBENG_MAX)
		return fail(-ENOTSUP,
			    "step %" PRIu64
			    ": the rows of table %s, whose combiner is max, are spread over "
			    "hosts, so its gradients cannot be given without a lookup",
			    slot->step, t->name);
	return 0;
}

static uint64_t most_rows(const struct hosts *h, const struct cargo *cargo)
{
	uint64_t most = 0;

	for (size_t i = 0; i < h->trained_lists; i++)
		most = cargo->lists[i].count > most ? cargo->lists[i].count : most;
	return most;
}

/* Sums that the program gave: those of one row are added in the order of features and samples. */
static void add_given_sums(const struct hosts *h, const struct cargo *cargo)
{
	uint32_t *seen = (uint32_t *)(void *)cargo->seen.data;
	struct port_fpu fpu;

	port_fpu_begin(&fpu);
	for (size_t i = 0, list = SIZE_MAX; i < h->trained_readers; i++) {
		const struct embeng_spread_feature *reader = &cargo->readers[i];
		const struct embeng_spread_table *t = &cargo->lists[reader->table];
		const uint64_t dim = (uint64_t)t->dim;

		if (reader->table != list)
			memset(seen, 0, t->count * sizeof(*seen));
		list = reader->table;
		for (size_t k = 0; k < reader->id_count; k++) {
			const int32_t place = reader->places[k];
			float *to = t->sums + (place < 0 ? 0 : (uint64_t)place * dim);

			for (uint64_t c = 0; place >= 0 && c < dim; c++) {
				const float x = reader->gradients ? reader->gradients[k * dim + c]
								  : 0.0f;

				to[c] = seen[place] ? to[c] + x : x;
			}
			if (place >= 0)
				seen[place] = 1;
		}
	}
	port_fpu_end(&fpu);
}

/* Lists whose sums this host sends. Owners make the sums of the others, unless a program gave sums. */
static size_t summed_lists(const struct hosts *h, const struct slot *slot)
{
	return slot->sums ? h->trained_lists : h->summed_lists;
}

int list_rows_sum(struct hosts *h, const struct slot *slot, const struct embeng_gradients *g)
{
	struct cargo *cargo = slot->cargo;
	struct embeng_spread batch = spread_of(h, cargo);
	const size_t lists = summed_lists(h, slot);
	int ret = 0;

	if (!h->trained_lists)
		return 0;
	batch.table_count = lists;
	batch.feature_count = h->summed_readers;
	for (size_t i = 0; !ret && i < h->trained_lists; i++)
		ret = check_sum(h, slot, g, i);
	for (size_t i = 0; !ret && i < h->trained_readers; i++) {
		const size_t f = (size_t)h->readers[i];

		cargo->readers[i].gradients = session_gradient(h->e, g, f);
		if (cargo->readers[i].gradients)
			ret = gradients_check(h->e, slot, f, cargo->readers[i].gradients);
	}
	if (!ret)
		ret = memory_need_shared(h, &cargo->sums, 8 + 4 * floats_before(cargo, lists));
	for (size_t i = 0; !ret && i < lists; i++)
		cargo->lists[i].sums = (float *)(void *)cargo->sums.data + floats_before(cargo, i);
	if (!ret && cargo->occurrences)
		samples_count(h, cargo);
	if (ret || !g->sums)
		return ret || !lists ? ret : embeng_spread_sum(h->owner, &batch);
	ret = memory_need(&cargo->seen, 8 + 4 * most_rows(h, cargo));
	if (!ret)
		add_given_sums(h, cargo);
	return ret;
}

uint64_t list_sums_bytes(const struct hosts *h, const struct slot *slot, uint32_t host)
{
	const struct cargo *cargo = slot->cargo;
	uint64_t bytes = 0;

	if (cargo->occurrences && !slot->sums)
		bytes = samples_bytes(h, cargo, host);
	for (size_t i = 0; i < summed_lists(h, slot); i++)
		if (hosts_part(h, h->lists[i].table, host))
			bytes += segment_pad(4 * cargo->lists[i].counts[host] *
					     (uint64_t)cargo->lists[i].dim);
	return bytes;
}

char *list_sums_put(const struct hosts *h, const struct slot *slot, uint32_t host, char *to)
{
	struct cargo *cargo = slot->cargo;

	for (size_t i = 0; i < summed_lists(h, slot); i++) {
		const struct embeng_spread_table *list = &cargo->lists[i];

		if (hosts_part(h, h->lists[i].table, host))
			put_padded(&to, list->sums + floats_before_host(list, host),
				   4 * list->counts[host] * (uint64_t)list->dim);
	}
	if (!cargo->occurrences || slot->sums)
		return to;
	cargo->at[host] = to; /* samples_put() goes on from here */
	return to + samples_bytes(h, cargo, host);
}
