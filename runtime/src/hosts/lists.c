// SPDX-License-Identifier: MIT
/*
 * Lists of rows on their way to their hosts, for tables that are spread by rows. The host that asks lists the
 * rows that a batch reads, each once and by host, and sends each host the numbers that its rows have there. A
 * host reads them in one lookup with whatever else it serves.
 *
 * The lists of a batch live in its cargo until the step is applied, since activations and sums of gradients
 * are made with them (list_rows.c). They are the caller's, and no lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "batch/input.h"
#include "list_stats.h"
#include "samples.h"

static const struct table *table_of_list(const struct hosts *h, size_t list)
{
	return &h->e->model->tables[h->lists[list].table];
}

int lists_new(const struct hosts *h, struct cargo *cargo)
{
	cargo->lists = calloc(h->list_count + 1, sizeof(*cargo->lists));
	cargo->readers = calloc(h->reader_count + 1, sizeof(*cargo->readers));
	cargo->counts = calloc(h->list_count * h->hosts + 1, sizeof(*cargo->counts));
	cargo->asked = calloc(h->list_count + 1, sizeof(*cargo->asked));
	if (!cargo->lists || !cargo->readers || !cargo->counts || !cargo->asked)
		return -ENOMEM;
	for (size_t i = 0; i < h->list_count; i++) {
		const struct table *t = table_of_list(h, i);

		cargo->lists[i] = (struct embeng_spread_table){
			.name = t->name,
			.rows = t->rows,
			.dim = t->dim,
			.combiner = t->combiner,
			.out_of_range = t->policy,
			.counts = &cargo->counts[i * h->hosts],
		};
	}
	for (size_t i = 0; i < h->reader_count; i++) {
		const struct feature *f = &h->e->model->features[h->readers[i]];
		size_t list = 0;

		while (h->lists[list].table != f->table)
			list++;
		cargo->readers[i].name = f->name;
		cargo->readers[i].table = list;
	}
	return occurrences_new(h, cargo);
}

void lists_free(struct hosts *h, struct cargo *cargo)
{
	free(cargo->lists);
	free(cargo->readers);
	free(cargo->counts);
	free(cargo->asked);
	memory_free(h, &cargo->copies);
	memory_free(h, &cargo->rows);
	memory_free(h, &cargo->sums);
	free(cargo->seen.data);
	occurrences_free(cargo);
}

/* Offsets, weights and places of the inputs, and the lists: bytes of all. Sets the rooms of the lists. */
static uint64_t measure_lists(const struct hosts *h, struct cargo *cargo,
			      const struct embeng_batch *b)
{
	uint64_t bytes = 8; /* an empty batch has memory, too */

	for (size_t i = 0; i < h->list_count; i++)
		cargo->lists[i].room = 0;
	for (size_t i = 0; i < h->reader_count; i++) {
		const struct input *in = &b->inputs[h->readers[i]];

		if (in->form == INPUT_CSR)
			bytes += 8 * ((uint64_t)in->samples + 1);
		bytes += 2 * segment_pad(4 * (uint64_t)in->id_count);
		cargo->lists[cargo->readers[i].table].room += in->id_count;
		bytes += 8 * (uint64_t)in->id_count;
	}
	return bytes;
}

static void copy_reader(const struct input *in, const struct feature *f,
			struct embeng_spread_feature *reader, char **to)
{
	reader->offsets = NULL;
	if (in->form == INPUT_CSR)
		reader->offsets = (const void *)put_padded(to, in->offsets, 8 * (in->samples + 1));
	reader->weights = NULL;
	if (in->weights)
		reader->weights = (const void *)put_padded(to, in->weights,
							   4 * (uint64_t)in->id_count);
	reader->places = (void *)*to;
	*to += segment_pad(4 * (uint64_t)in->id_count);
	reader->max_sequence_length = in->pooled ? 0 : f->max_sequence_length;
	reader->samples = in->samples;
	reader->type = in->type;
	reader->ids = in->ids;
	reader->id_count = in->id_count;
}

/* The first feature of the batch that is wrong is told, as one handle does. */
static int tell_first(struct hosts *h, const struct embeng_batch *b, size_t last, int code)
{
	for (size_t f = 0; f <= last; f++) {
		const struct input *in = &b->inputs[f];
		const struct input_copy given = {.offsets = (const void *)in->offsets,
						 .ids = in->ids,
						 .weights = (const void *)in->weights};
		int ret = ids_check(h->e, b, f, &given);

		if (ret)
			return ret;
	}
	return code;
}

static int check_readers(struct hosts *h, const struct cargo *cargo, const struct embeng_batch *b)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < h->reader_count; i++) {
		const struct embeng_spread_feature *reader = &cargo->readers[i];
		const struct input_copy copy = {.offsets = (const void *)reader->offsets,
						.ids = reader->ids,
						.weights = (const void *)reader->weights};

		ret = ids_check(h->e, b, (size_t)h->readers[i], &copy);
		if (ret)
			ret = tell_first(h, b, b->count - 1, ret);
	}
	return ret;
}

int lists_make(struct hosts *h, const struct slot *slot, const struct embeng_batch *b)
{
	struct cargo *cargo = slot->cargo;
	const struct embeng_spread batch = EMBENG_INIT(
		embeng_spread, .tables = cargo->lists, .table_count = h->list_count,
		.features = cargo->readers, .feature_count = h->reader_count, .hosts = h->hosts,
		.sharding = h->place.sharding);
	char *to;
	int ret;

	if (!h->list_count)
		return 0;
	ret = memory_need_shared(h, &cargo->copies, measure_lists(h, cargo, b));
	if (ret)
		return ret;
	to = cargo->copies.data;
	for (size_t i = 0; i < h->reader_count; i++)
		copy_reader(&b->inputs[h->readers[i]], &h->e->model->features[h->readers[i]],
			    &cargo->readers[i], &to);
	for (size_t i = 0; i < h->list_count; i++) {
		cargo->lists[i].list = (void *)to;
		to += 8 * cargo->lists[i].room;
	}
	ret = check_readers(h, cargo, b);
	ret = ret ? ret : embeng_spread_unique(h->owner, &batch);
	if (!ret)
		list_stats_note(h, cargo);
	if (slot->mode == EMBENG_TRAIN)
		return ret ? ret : occurrences_make(h, cargo);
	occurrences_clear(h, cargo);
	return ret;
}

/* Rows that a host is asked for again, behind those that it is asked for once. */
static uint64_t count_again(const struct hosts *h, const struct cargo *cargo, size_t list,
			    uint32_t host)
{
	return h->lists[list].repeats ? cargo->occurrences->again[list * h->hosts + host] : 0;
}

/* Numbers of rows: those that go back, and for a table that takes each gradient by itself those asked for again. */
static uint64_t bytes_of_counts(const struct row_list *list)
{
	return (list->repeats ? 2 : 1) * sizeof(uint64_t);
}

uint64_t lists_bytes(const struct hosts *h, const struct cargo *cargo, uint32_t host)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < h->list_count; i++)
		if (hosts_part(h, h->lists[i].table, host))
			bytes += bytes_of_counts(&h->lists[i]) +
				 segment_pad(h->lists[i].width * (cargo->lists[i].counts[host] +
								  count_again(h, cargo, i, host)));
	return bytes;
}

static const int64_t *list_of_host(const struct embeng_spread_table *list, uint32_t host)
{
	const int64_t *rows = list->list;

	for (uint32_t i = 0; i < host; i++)
		rows += list->counts[i];
	return rows;
}

static const int64_t *again_of_host(const struct hosts *h, const struct cargo *cargo, size_t list,
				    uint32_t host)
{
	const int64_t *rows = cargo->occurrences->repeated[list];

	for (uint32_t i = 0; i < host; i++)
		rows += count_again(h, cargo, list, i);
	return rows;
}

/* Numbers of @width bytes. Return: behind them */
static char *put_rows(uint32_t width, const int64_t *rows, uint64_t count, char *to)
{
	if (width == sizeof(*rows) && count)
		memcpy(to, rows, count * sizeof(*rows));
	for (uint64_t k = 0; width != sizeof(*rows) && k < count; k++)
		((int32_t *)(void *)to)[k] = (int32_t)rows[k];
	return to + width * count;
}

char *lists_put(const struct hosts *h, const struct cargo *cargo, uint32_t host, char *to)
{
	for (size_t i = 0; i < h->list_count; i++) {
		const struct embeng_spread_table *list = &cargo->lists[i];
		const uint32_t width = h->lists[i].width;
		const uint64_t counts[2] = {list->counts[host], count_again(h, cargo, i, host)};
		const uint64_t bytes = width * (counts[0] + counts[1]);

		if (!hosts_part(h, h->lists[i].table, host))
			continue;
		put_padded(&to, counts, bytes_of_counts(&h->lists[i]));
		to = put_rows(width, list_of_host(list, host), counts[0], to);
		if (counts[1])
			to = put_rows(width, again_of_host(h, cargo, i, host), counts[1], to);
		memset(to, 0, segment_pad(bytes) - bytes);
		to += segment_pad(bytes) - bytes;
	}
	return to;
}

void lists_input(const struct row_list *list, const void *rows, uint64_t count, struct input *in)
{
	input_clear(in);
	in->form = INPUT_DENSE;
	in->gathers = true;
	in->type = list->width == 4 ? EMBENG_I32 : EMBENG_I64;
	in->rank = 1;
	in->ids = rows;
	in->samples = in->id_count = count;
	in->shape[0] = (int64_t)count;
}

int lists_unpack(const struct hosts *h, struct reading *segment, uint32_t host,
		 struct embeng_batch *b, size_t next, uint64_t *firsts)
{
	for (size_t i = 0; i < h->list_count; i++) {
		const uint64_t *count;
		const void *rows = NULL;
		uint64_t all = 0;

		if (h->lists[i].served < 0)
			continue;
		count = read_next(segment, bytes_of_counts(&h->lists[i]));
		if (count &&
		    (*count > UINT32_MAX || (h->lists[i].repeats && count[1] > UINT32_MAX)))
			count = NULL;
		if (count)
			all = *count + (h->lists[i].repeats ? count[1] : 0);
		if (count && firsts)
			firsts[i] = *count;
		if (count)
			rows = read_next(segment, h->lists[i].width * all);
		if (!rows)
			return segment_bad(h, host, "rows");
		lists_input(&h->lists[i], rows, all, &b->inputs[next++]);
	}
	return 0;
}
