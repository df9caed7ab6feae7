// SPDX-License-Identifier: MIT
/*
 * Statistics of tables that lie on several hosts. All hosts tell what they have counted, and each puts that together:
 * owners of columns have seen the same ids; of rows that are spread, owners know how they were updated, and the hosts
 * that asked for them how often (list_stats.c). It is apart from state.c because only here counts are put together.
 *
 * hosts_enter() lets one call in at a time, which has h->answer. No lock is held here.
 */
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "list_stats.h"
#include "segment.h"

static void keep_larger(uint64_t *number, uint64_t other)
{
	*number = other > *number ? other : *number;
}

/*
 * All owners of a table's columns see the same ids. A row or an activation that is not finite may be so in the
 * columns of one owner alone, and nobody knows in which others: the largest count is the least that is true.
 */
static void add_part_stats(struct embeng_table_stats *all, const struct embeng_table_stats *part)
{
	keep_larger(&all->nonfinite_activations, part->nonfinite_activations);
	keep_larger(&all->nonfinite_rows, part->nonfinite_rows);
	keep_larger(&all->nonfinite_gradient_rows, part->nonfinite_gradient_rows);
}

static int join_stats(struct hosts *h, int table, struct embeng_table_stats *stats)
{
	const size_t first = h->place.first[table];
	const size_t size = stats->size;
	struct embeng_table_stats part;

	for (size_t i = first; i < h->place.first[table + 1]; i++) {
		const uint32_t host = h->place.parts[i].host;
		const struct embeng_bytes *came = &h->received[CHANNEL_CONTROL][host];

		if (came->bytes != sizeof(part))
			return segment_bad(h, host, "statistics");
		memcpy(&part, came->data, sizeof(part));
		if (i == first)
			*stats = part;
		else
			add_part_stats(stats, &part);
	}
	stats->size = size;
	return 0;
}

/* The owner of rows knows these counts. Each host knows how often it asked for rows. */
static void add_owned_rows(struct embeng_table_stats *all, const struct embeng_table_stats *part)
{
	all->unique_ids += part->unique_ids;
	keep_larger(&all->steps, part->steps);
	all->updated_rows += part->updated_rows;
	all->untouched_rows += part->untouched_rows;
	all->nonfinite_rows += part->nonfinite_rows;
	all->nonfinite_gradient_rows += part->nonfinite_gradient_rows;
	all->core_count = part->core_count > all->core_count ? part->core_count : all->core_count;
	for (size_t i = 0; i < part->core_count && i < EMBENG_MAX_CORES; i++)
		all->core_ids[i] += part->core_ids[i];
}

/* Puts a row into the list of the hottest, which is in the order of counts and then of rows. */
static void add_hot_row(struct embeng_table_stats *all, const struct embeng_hot_row *row)
{
	size_t at = all->hot_count;

	while (at &&
	       (all->hot[at - 1].count < row->count || (all->hot[at - 1].count == row->count &&
							(uint64_t)all->hot[at - 1].row > row->row)))
		at--;
	if (at == EMBENG_HOT_ROWS)
		return;
	all->hot_count += all->hot_count < EMBENG_HOT_ROWS;
	memmove(&all->hot[at + 1], &all->hot[at], (all->hot_count - at - 1) * sizeof(*all->hot));
	all->hot[at].row = (int64_t)row->row;
	all->hot[at].count = row->count;
}

static int compare_hot_rows(const void *a, const void *b)
{
	const struct embeng_hot_row *x = a, *y = b;

	return x->row < y->row ? -1 : x->row > y->row;
}

/* The rows of all hosts' lists; those of one row are added. */
static void join_hot_rows(struct embeng_table_stats *all, struct embeng_hot_row *rows, size_t count)
{
	qsort(rows, count, sizeof(*rows), compare_hot_rows);
	for (size_t i = 0; i < count; i++) {
		struct embeng_hot_row row = rows[i];

		for (; i + 1 < count && rows[i + 1].row == row.row; i++)
			row.count += rows[i + 1].count;
		add_hot_row(all, &row);
	}
}

static void add_asked_ids(struct embeng_table_stats *all, const struct list_told *told)
{
	all->ids += told->counts.ids;
	all->dropped_ids += told->counts.dropped;
	all->clamped_ids += told->counts.clamped;
	all->zeroed_ids += told->counts.zeroed;
	all->nonfinite_activations += told->counts.nonfinite;
	all->hot_error += told->hot_error;
}

/* One host's message: what it has, then what it asked for. Adds its hot rows to @rows. */
static int join_spread_host(struct hosts *h, int table, uint32_t host,
			    struct embeng_table_stats *all, struct embeng_hot_row *rows,
			    size_t *count)
{
	const struct embeng_bytes *came = &h->received[CHANNEL_CONTROL][host];
	struct reading message = {came->data, came->bytes};
	const void *own = read_next(&message, sizeof(*all)), *told, *hot = NULL;
	struct embeng_table_stats part;
	struct list_told asked = {0};

	told = own ? read_next(&message, sizeof(asked)) : NULL;
	if (told)
		memcpy(&asked, told, sizeof(asked));
	if (told && asked.hot_count <= HOT_ROWS)
		hot = read_next(&message, asked.hot_count * sizeof(*rows));
	if (!hot)
		return segment_bad(h, host, "statistics");
	memcpy(&part, own, sizeof(part));
	if (hosts_part(h, table, host))
		add_owned_rows(all, &part);
	add_asked_ids(all, &asked);
	memcpy(rows + *count, hot, asked.hot_count * sizeof(*rows));
	*count += asked.hot_count;
	return 0;
}

static int join_spread_stats(struct hosts *h, int table, struct embeng_table_stats *stats)
{
	struct embeng_table_stats all = {.size = stats->size};
	struct embeng_hot_row *rows = calloc((size_t)h->hosts * HOT_ROWS, sizeof(*rows));
	size_t count = 0;
	int ret = rows ? 0 : fail(-ENOMEM, "embeng_stats: there is no memory for hot rows");

	for (uint32_t i = 0; !ret && i < h->hosts; i++)
		ret = join_spread_host(h, table, i, &all, rows, &count);
	if (!ret) {
		join_hot_rows(&all, rows, count);
		*stats = all;
	}
	free(rows);
	return ret;
}

/* The message of this host for all. */
static int pack_stats(struct hosts *h, int table, int clear, struct embeng_bytes *send)
{
	struct embeng_table_stats own = {.size = sizeof(own)};
	size_t bytes = 0, list = 0;
	struct list_told *told;
	int ret = memory_need(&h->answer, sizeof(own) + list_stats_bytes());

	if (!ret && h->tables[table] >= 0)
		ret = embeng_stats(h->owner, h->tables[table], clear, &own);
	if (ret)
		return ret;
	memcpy(h->answer.data, &own, sizeof(own));
	told = (void *)(h->answer.data + sizeof(own));
	while (list < h->list_count && h->lists[list].table != table)
		list++;
	if (h->tables[table] >= 0)
		bytes = sizeof(own);
	if (hosts_is_spread(h, table)) {
		*told = (struct list_told){0};
		bytes = sizeof(own) + (list < h->list_count ? list_stats_tell(h, list, clear, told)
							    : sizeof(*told));
	}
	for (uint32_t i = 0; i < h->hosts; i++)
		send[i] = (struct embeng_bytes){h->answer.data, bytes};
	return 0;
}

int hosts_stats(struct embeng *e, int table, int clear, struct embeng_table_stats *stats,
		int status)
{
	const int32_t asked[] = {table, clear != 0};
	struct hosts *h = e->hosts;
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	int ret = hosts_enter_with(e, status);

	if (ret)
		return ret;
	ret = hosts_agree_on(e, "stats", status, asked, sizeof(asked), "another table or switch");
	if (!ret) {
		ret = pack_stats(h, table, clear, send);
		ret = hosts_control(e, "stats", ret, send, h->received[CHANNEL_CONTROL]);
		if (!ret)
			ret = hosts_is_spread(h, table) ? join_spread_stats(h, table, stats)
							: join_stats(h, table, stats);
	}
	hosts_leave(e);
	return ret;
}
