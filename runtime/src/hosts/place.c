// SPDX-License-Identifier: MIT
/*
 * Chooses which host of a group owns which table, which columns of a table, or which rows. The choice is a file
 * of its own because the group's handle and embeng_hosts_plan() must make the same one, and because
 * each host makes it alone: there is only integer arithmetic in it, and no order is left open.
 *
 * A part is a table, or some columns of a table that has more bytes than its fair share, or some rows of one that
 * cannot be cut by columns. Each part that is not of rows, the heaviest first, goes to the host that is then the
 * least loaded. A host's load is its share of all bytes or its share of all numbers that lookups return, whichever is
 * larger: many small tables have few bytes, but each adds to the traffic of its owner like a large one.
 *
 * A placement belongs to the caller until placement_free(). The model is only read; no lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/model.h"
#include "place.h"

#define SHARE_BITS 31 /* a share is a part of the whole, in 2^-31 */

/* A part and its shares. All parts of a table have the rank of the heaviest, so that they stay together. */
struct item {
	struct place_part part;
	uint64_t bytes, traffic;
	uint64_t heaviest, sum;
	size_t at; /* in the order of tables and columns */
};

struct load {
	uint64_t bytes, traffic; /* sums of shares */
	int last;		 /* table of the last part, or -1 */
};

struct placer {
	const struct embeng_model *model;
	uint64_t total, fair;	   /* bytes */
	uint64_t *bytes, *traffic; /* [tables] */
	bool *spread;		   /* [tables] */
	uint64_t all_traffic;
	struct place_wish wish;
	struct item *items;
	size_t item_count;
	struct load *loads; /* [hosts] */
};

static enum embeng_exchange_kind wish_of(const struct placer *p, size_t table)
{
	const enum embeng_exchange_kind wish = p->wish.each ? p->wish.each[table]
							    : p->wish.exchange;

	if (!place_must_spread(p->model) || place_can_spread(p->model, table, wish))
		return wish;
	return place_refuse_sums(p->model, table) ? EMBENG_EXCHANGE_ROWS_GRADIENTS
						  : EMBENG_EXCHANGE_ROWS;
}

/*
 * A table that is too large for its share, and that nobody asked to spread, is not spread if it would take fewer calls
 * then: embeng_update() needs to know which row had the largest number.
 */
static bool must_spread(const struct placer *p, size_t table)
{
	return !wish_of(p, table) && p->bytes[table] > p->fair &&
	       p->model->tables[table].combiner != EMBENG_MAX &&
	       !place_is_elementwise(p->model, (int)table, NULL);
}

static bool may_spread(const struct placer *p, size_t table)
{
	return place_can_spread(p->model, table, wish_of(p, table)) ||
	       (must_spread(p, table) && !place_refuse_sums(p->model, table));
}

static bool is_cut(const struct placer *p, size_t table)
{
	if (wish_of(p, table) == EMBENG_EXCHANGE_TABLE ||
	    !place_is_elementwise(p->model, (int)table, NULL))
		return false;
	return wish_of(p, table) == EMBENG_EXCHANGE_COLUMN || p->bytes[table] > p->fair;
}

/* Numbers that a lookup of one sample returns, all features together; a sum too large stays. */
static uint64_t count_traffic(const struct embeng_model *model, size_t table)
{
	uint64_t sum = 0;

	for (size_t f = 0; f < model->feature_count; f++) {
		const struct feature *feature = &model->features[f];
		uint64_t positions = 1, numbers;

		if (feature->table != (int)table)
			continue;
		if (feature->max_sequence_length)
			positions = (uint64_t)feature->max_sequence_length;
		if (__builtin_mul_overflow(positions, (uint64_t)model->tables[table].dim,
					   &numbers) ||
		    __builtin_add_overflow(sum, numbers, &sum))
			return UINT64_MAX;
	}
	return sum;
}

static int measure_tables(struct placer *p, uint32_t hosts)
{
	for (size_t t = 0; t < p->model->table_count; t++) {
		const struct table *table = &p->model->tables[t];

		if (__builtin_mul_overflow((uint64_t)table->rows, model_whole_row_bytes(table),
					   &p->bytes[t]) ||
		    __builtin_add_overflow(p->total, p->bytes[t], &p->total))
			return fail(-ERANGE, "table %s: more bytes than 64 bits count",
				    table->name);
	}
	p->fair = p->total / hosts + (p->total % hosts != 0);
	return 0;
}

static bool asks_for_rows(enum embeng_exchange_kind kind)
{
	return kind == EMBENG_EXCHANGE_ROWS || kind == EMBENG_EXCHANGE_ROWS_GRADIENTS;
}

/* Tables that are spread load all hosts alike, and so do not count for the others. */
static void choose_spread_tables(struct placer *p, uint32_t hosts)
{
	for (size_t t = 0; t < p->model->table_count; t++)
		p->spread[t] = may_spread(p, t);
	for (size_t t = 0; t < p->model->table_count; t++) {
		if (p->spread[t]) {
			p->total -= p->bytes[t];
			continue;
		}
		p->traffic[t] = count_traffic(p->model, t);
		if (__builtin_add_overflow(p->all_traffic, p->traffic[t], &p->all_traffic))
			p->all_traffic = UINT64_MAX;
	}
	if (asks_for_rows(p->wish.exchange))
		p->fair = p->total / hosts + (p->total % hosts != 0);
}

/* How many parts a table is cut into; as many as there are hosts at most if it is spread. */
static uint32_t count_parts(const struct placer *p, size_t table, uint32_t hosts)
{
	const struct table *t = &p->model->tables[table];
	uint64_t parts, most = (uint64_t)t->dim / PLACE_COLUMNS_LEAST;

	if (p->spread[table])
		return p->wish.plans ? 1 : place_row_parts(t, hosts);
	if (!is_cut(p, table))
		return 1;
	parts = p->bytes[table] / p->fair + (p->bytes[table] % p->fair != 0);
	if (wish_of(p, table) == EMBENG_EXCHANGE_COLUMN)
		parts = hosts;
	parts = parts < most ? parts : most;
	parts = parts < hosts ? parts : hosts;
	return parts ? (uint32_t)parts : 1;
}

/* No f64, whose last bit compilers do not agree about; and no product that leaves 64 bits. */
static uint64_t share_of(uint64_t of, uint64_t all)
{
	while (all >> 32) {
		all >>= 1;
		of >>= 1;
	}
	return all ? (of << SHARE_BITS) / all : 0;
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Cuts between blocks of 16 columns, so that parts begin at whole cache lines. */
static void cut_table(struct placer *p, size_t table, uint32_t parts)
{
	const uint64_t dim = (uint64_t)p->model->tables[table].dim;
	const uint64_t blocks = dim / PLACE_COLUMNS_LEAST;
	const uint64_t bytes = share_of(p->bytes[table], p->total);
	const uint64_t traffic = share_of(p->traffic[table], p->all_traffic);
	struct item *items = &p->items[p->item_count];
	uint64_t first = 0, end, heaviest = 0, sum = 0;

	for (uint32_t i = 0; i < parts; i++, first = end) {
		end = i + 1 < parts ? (i + 1) * blocks / parts * PLACE_COLUMNS_LEAST : dim;
		items[i] = (struct item){
			.part = {.kind = parts > 1 ? PLACE_COLUMN : PLACE_TABLE,
				 .table = (int)table,
				 .first_column = (uint32_t)first,
				 .columns = (uint32_t)(end - first),
				 .rows = {0, 1, p->model->tables[table].rows}},
			.bytes = bytes * (end - first) / dim,
			.traffic = traffic * (end - first) / dim,
			.at = p->item_count++,
		};
		heaviest = larger_of(heaviest, larger_of(items[i].bytes, items[i].traffic));
		sum = larger_of(sum, items[i].bytes + items[i].traffic);
	}
	for (uint32_t i = 0; i < parts; i++) {
		items[i].heaviest = heaviest;
		items[i].sum = sum;
	}
}

static int deal_rows(struct placer *p, size_t table, uint32_t parts, uint32_t hosts)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < parts; i++) {
		const struct embeng_shard shard = EMBENG_INIT(
			embeng_shard, .sharding = p->wish.sharding, .hosts = hosts, .host = i);
		struct item *item = &p->items[p->item_count];

		*item = (struct item){.part.table = (int)table, .at = p->item_count++};
		ret = place_row_part(&p->model->tables[table], &shard, wish_of(p, table),
				     &item->part);
	}
	return ret;
}

/* For costs alone: it weighs nothing, so that it comes behind all others. */
static void keep_whole(struct placer *p, size_t table)
{
	const struct table *t = &p->model->tables[table];

	p->items[p->item_count] = (struct item){
		.part = {.kind = PLACE_ROWS,
			 .table = (int)table,
			 .columns = (uint32_t)t->dim,
			 .rows = {0, 1, t->rows}},
		.at = p->item_count,
	};
	p->item_count++;
}

static int compare_item_weights(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->heaviest != y->heaviest)
		return x->heaviest < y->heaviest ? 1 : -1;
	if (x->sum != y->sum)
		return x->sum < y->sum ? 1 : -1;
	return x->at < y->at ? -1 : 1;
}

/* The least loaded host that has no part of this table; of equal ones the lowest rank. */
static uint32_t choose_host(const struct placer *p, const struct item *item, uint32_t hosts)
{
	uint64_t least = UINT64_MAX, least_sum = UINT64_MAX;
	uint32_t chosen = 0;

	for (uint32_t h = 0; h < hosts; h++) {
		const struct load *load = &p->loads[h];
		uint64_t bytes = load->bytes + item->bytes, traffic = load->traffic + item->traffic;
		uint64_t most = larger_of(bytes, traffic);

		if (load->last == item->part.table || most > least ||
		    (most == least && bytes + traffic >= least_sum))
			continue;
		least = most;
		least_sum = bytes + traffic;
		chosen = h;
	}
	return chosen;
}

static void give_parts_owners(struct placer *p, uint32_t hosts)
{
	qsort(p->items, p->item_count, sizeof(*p->items), compare_item_weights);
	for (uint32_t h = 0; h < hosts; h++)
		p->loads[h].last = -1;
	for (size_t i = 0; i < p->item_count; i++) {
		struct item *item = &p->items[i];
		struct load *load;

		if (item->part.kind == PLACE_ROWS && !p->wish.plans)
			continue;
		load = &p->loads[choose_host(p, item, hosts)];
		item->part.host = (uint32_t)(load - p->loads);
		load->bytes += item->bytes;
		load->traffic += item->traffic;
		load->last = item->part.table;
	}
}

static void fill_placement(const struct placer *p, struct placement *out)
{
	size_t at = 0;

	for (size_t i = 0; i < p->item_count; i++)
		out->parts[p->items[i].at] = p->items[i].part;
	for (size_t t = 0; t < p->model->table_count; t++) {
		out->first[t] = at;
		for (; at < p->item_count && out->parts[at].table == (int)t; at++)
			out->bytes[out->parts[at].host] += place_part_bytes(p->model,
									    &out->parts[at]);
	}
	out->first[p->model->table_count] = at;
	out->part_count = at;
}

static int make_placement(struct placer *p, struct placement *out)
{
	const size_t tables = p->model->table_count;
	size_t parts = 0;
	int ret = measure_tables(p, out->hosts);

	if (ret)
		return ret;
	choose_spread_tables(p, out->hosts);
	for (size_t t = 0; t < tables; t++)
		parts += count_parts(p, t, out->hosts);
	p->items = calloc(parts + 1, sizeof(*p->items));
	p->loads = calloc(out->hosts, sizeof(*p->loads));
	out->parts = calloc(parts + 1, sizeof(*out->parts));
	out->first = calloc(tables + 1, sizeof(*out->first));
	out->bytes = calloc(out->hosts, sizeof(*out->bytes));
	if (!p->items || !p->loads || !out->parts || !out->first || !out->bytes)
		return fail(-ENOMEM, "no memory to distribute %zu tables over %u hosts", tables,
			    out->hosts);
	for (size_t t = 0; !ret && t < tables; t++) {
		if (p->spread[t] && p->wish.plans)
			keep_whole(p, t);
		else if (p->spread[t])
			ret = deal_rows(p, t, count_parts(p, t, out->hosts), out->hosts);
		else
			cut_table(p, t, count_parts(p, t, out->hosts));
	}
	if (ret)
		return ret;
	give_parts_owners(p, out->hosts);
	fill_placement(p, out);
	return 0;
}

/* Where all tables must be spread, each must allow one of the two exchanges. */
static int check_spread_tables(const struct embeng_model *m)
{
	for (size_t t = 0; place_must_spread(m) && t < m->table_count; t++) {
		const char *why = place_refuse_gradients(m, t);

		if (place_refuse_sums(m, t) && why)
			return fail(-EINVAL,
				    "a model of more than %u replicas has the rows of all tables "
				    "spread over the hosts, and table %s does not allow it: %s",
				    place_replicas_most, m->tables[t].name, why);
	}
	return 0;
}

/* A wish is for all tables that allow it, but one that none allows is refused. */
static int check_wish(const struct placer *p)
{
	const struct embeng_model *m = p->model;

	const bool sums = p->wish.exchange == EMBENG_EXCHANGE_ROWS;

	if (p->wish.each || !m->table_count ||
	    (!sums && p->wish.exchange != EMBENG_EXCHANGE_ROWS_GRADIENTS))
		return 0;
	for (size_t t = 0; t < m->table_count; t++)
		if (place_can_spread(m, t, p->wish.exchange))
			return 0;
	return fail(-EINVAL,
		    "no table of the model can be spread by rows (exchange=%s); table %s: not "
		    "allowed: %s",
		    sums ? "rows" : "rows+grads", m->tables[0].name,
		    sums ? place_refuse_sums(m, 0) : place_refuse_gradients(m, 0));
}

int place_model(const struct embeng_model *model, uint32_t hosts, const struct place_wish *wish,
		struct placement *out)
{
	struct placer p = {.model = model, .wish = wish ? *wish : (struct place_wish){0}};
	struct placement placement = {.hosts = hosts};
	int ret;

	if (!p.wish.exchange && !p.wish.each)
		p.wish.sharding = EMBENG_SHARDING_MOD;
	placement.sharding = p.wish.sharding;
	if (!model || !hosts || !out)
		return fail(-EINVAL, "tables can be distributed over 1 host or more, not 0");
	ret = check_spread_tables(model);
	ret = ret ? ret : check_wish(&p);
	if (ret)
		return ret;
	p.bytes = calloc(model->table_count + 1, sizeof(*p.bytes));
	p.traffic = calloc(model->table_count + 1, sizeof(*p.traffic));
	p.spread = calloc(model->table_count + 1, sizeof(*p.spread));
	ret = p.bytes && p.traffic && p.spread ? make_placement(&p, &placement)
					       : fail(-ENOMEM, "no memory to distribute tables");
	free(p.bytes);
	free(p.traffic);
	free(p.spread);
	free(p.items);
	free(p.loads);
	if (ret)
		placement_free(&placement);
	else
		*out = placement;
	return ret;
}
