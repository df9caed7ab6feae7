// SPDX-License-Identifier: MIT
/*
 * Reads rows of several tables at one moment, for calls that each host makes with rows of its own choice: the
 * bags of embeng_weight_gradients(), and those of tables whose combiner is max. The hosts tell each other which
 * tables they want, and then read these together, one table after the other.
 *
 * hosts_enter() lets one call in at a time. The memory here lives for one table.
 */
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "segment.h"

/**
 * struct gathering - the rows of one table that this host reads
 * @ids: [@count]
 * @data: [@count][dim]
 */
struct gathering {
	size_t count;
	int64_t *ids;
	float *data;
};

static int gather_ids(const struct hosts *h, const char *what, int table,
		      const struct rows_reading *readings, size_t count, struct gathering *g)
{
	const struct table *t = &h->e->model->tables[table];
	size_t at = 0;

	for (size_t i = 0; i < count; i++)
		g->count += readings[i].table == table ? readings[i].count : 0;
	g->ids = reallocarray(NULL, g->count + 1, sizeof(*g->ids));
	g->data = reallocarray(NULL, g->count + 1, (size_t)t->dim * sizeof(*g->data));
	if (!g->ids || !g->data)
		return fail(-ENOMEM, "%s: no memory for %zu rows of table %s", what, g->count,
			    t->name);
	for (size_t i = 0; i < count; i++) {
		if (readings[i].table != table || !readings[i].count)
			continue;
		memcpy(g->ids + at, readings[i].ids, readings[i].count * sizeof(*g->ids));
		at += readings[i].count;
	}
	return 0;
}

static void hand_out_rows(const struct hosts *h, int table, const struct rows_reading *readings,
			  size_t count, const struct gathering *g)
{
	const size_t dim = (size_t)h->e->model->tables[table].dim;
	const float *from = g->data;

	for (size_t i = 0; i < count; i++) {
		const size_t floats = readings[i].count * dim;

		if (readings[i].table != table || !floats)
			continue;
		memcpy(readings[i].data, from, floats * sizeof(*from));
		from += floats;
	}
}

static int read_wished_table(struct hosts *h, const char *what, int table,
			     const struct rows_reading *readings, size_t count)
{
	struct gathering g = {0};
	struct rows_asked asked = {.what = what, .op = EMBENG_OP_ROWS_READ, .table = table};
	int ret;

	asked.status = gather_ids(h, what, table, readings, count, &g);
	asked.ids = g.ids;
	asked.data = g.data;
	asked.count = g.count;
	ret = move_hosts_rows(h->e, &asked);
	if (!ret)
		hand_out_rows(h, table, readings, count, &g);
	free(g.ids);
	free(g.data);
	return ret;
}

/* @wanted: [tables] in: what this host wants; out: what any host wants */
static int join_wishes(struct hosts *h, const char *what, int status, char *wanted)
{
	const size_t tables = h->e->model->table_count;
	struct embeng_bytes *received = h->received[CHANNEL_CONTROL];
	int ret;

	for (uint32_t i = 0; i < h->hosts; i++)
		h->send[CHANNEL_CONTROL][i] = (struct embeng_bytes){wanted, tables};
	ret = hosts_control(h->e, "rows together", status, h->send[CHANNEL_CONTROL], received);
	for (uint32_t i = 0; !ret && i < h->hosts; i++) {
		const char *theirs = received[i].data;

		if (received[i].bytes != tables)
			return segment_bad(h, i, what);
		for (size_t t = 0; t < tables; t++)
			wanted[t] |= theirs[t];
	}
	return ret;
}

int hosts_read_together(struct embeng *e, const char *what, const struct rows_reading *readings,
			size_t count, int status)
{
	char *wanted = calloc(e->model->table_count + 1, 1);
	int ret;

	if (!status && !wanted)
		status = fail(-ENOMEM, "%s: no memory for %zu tables", what, e->model->table_count);
	for (size_t i = 0; !status && i < count; i++)
		if (readings[i].count)
			wanted[readings[i].table] = 1;
	ret = hosts_enter_with(e, status);
	if (!ret) {
		ret = join_wishes(e->hosts, what, status, wanted);
		for (size_t t = 0; !ret && t < e->model->table_count; t++)
			ret = wanted[t] ? read_wished_table(e->hosts, what, (int)t, readings, count)
					: 0;
		hosts_leave(e);
	}
	free(wanted);
	return ret;
}
