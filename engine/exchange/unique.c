// SPDX-License-Identifier: MIT
/*
 * Runs a UNIQUE: the distinct rows of each table in order of their hosts, and for each id its place
 * among them. A row becomes a key, host * rows of a host + number there, and equal keys are found by
 * the sort by which an UPDATE finds equal rows.
 *
 * Called without engine->lock by the running command. Features are taken one a core, tables one after
 * another by all cores. Memory of the program is only written.
 */
#include "../memory/record.h"
#include "exchange.h"

/* How the rows of a table are spread. */
struct spread {
	u64 hosts, placement;
	u64 least, longer; /* the rows of a host, and how many of the first hosts have one more */
	u64 part;	   /* keys of a host */
};

struct listing {
	struct command *command;
	struct exchange *x;
	const struct exchange_call *call;
	struct spread spread; /* the table's */
	u32 table;
	bool left_out; /* atomic */
};

static struct spread spread_rows(const struct embeng_row_exchange *g, u64 rows)
{
	struct spread s = { .hosts = g->hosts, .placement = g->placement };

	s.least = rows / s.hosts;
	s.longer = rows % s.hosts;
	s.part = s.least + (s.longer != 0);
	return s;
}

static u64 key_of_row(const struct spread *s, u64 row)
{
	u64 host, head = s->longer * s->part;

	if (s->hosts == 1)
		return row;
	if (s->placement == EMBENG_PLACEMENT_MOD)
		return row % s->hosts * s->part + row / s->hosts;
	if (row < head)
		return row;
	host = (row - head) / s->least;
	return (s->longer + host) * s->part + (row - head) % s->least;
}

/* Where the keys of a feature begin. */
static u64 first_key(const struct exchange_call *call, u32 feature)
{
	u64 first = 0;

	for (u32 i = 0; i < feature; i++)
		first += call->features[i].id_count;
	return first;
}

/* Positions of a sequence that a LOOKUP would not read; DROP has others take their places. */
static void leave_out_tail(struct listing *l, u32 feature, u64 *rows)
{
	const struct embeng_exchange_feature *given = &l->call->features[feature];
	const struct batch_feature *f = &l->x->batch.features[feature];
	bool drops = l->call->tables[given->table].out_of_range == EMBENG_OUT_OF_RANGE_DROP;
	u64 length = given->max_sequence_length, left = PIECE_ROWS;
	const u64 *bag = f->bag.data;

	if (!length || given->form != EMBENG_FORM_CSR)
		return;
	for (u64 s = 0; s < f->outputs; s++) {
		u64 taken = 0;

		for (u64 k = bag[s]; k < bag[s + 1]; k++) {
			if (taken == length)
				rows[k] = KERNEL_ROW_ZERO;
			else
				taken += !drops || rows[k] != KERNEL_ROW_ZERO;
			if (piece_step(l->command, &left))
				return;
		}
	}
}

/* The keys of one feature's ids; those without a row have their places at once. */
static void key_task(void *arg, u64 feature, u32 worker)
{
	struct listing *l = arg;
	const struct batch_feature *f = &l->x->batch.features[feature];
	u64 *keys = l->x->keys + first_key(l->call, (u32)feature), left = PIECE_ROWS;
	s32 *places = exchange_data(l->x, (u32)feature)->data;
	bool out = false;

	(void)worker;
	if (l->call->features[feature].table != l->table)
		return;
	for (u64 k = 0; k < f->occurrences; k++) {
		keys[k] = batch_row(f, k);
		if (piece_step(l->command, &left))
			return;
	}
	leave_out_tail(l, (u32)feature, keys);
	for (u64 k = 0; k < f->occurrences; k++) {
		if (keys[k] == KERNEL_ROW_ZERO) {
			places[k] = -1;
			out = true;
		} else {
			keys[k] = key_of_row(&l->spread, keys[k]);
		}
		if (piece_step(l->command, &left))
			return;
	}
	if (out)
		__atomic_store_n(&l->left_out, true, __ATOMIC_RELAXED);
}

/* The features of a table, one behind the other. Return: how many have ids. */
static u32 list_sources(const struct listing *l)
{
	struct exchange *x = l->x;
	u64 first = 0;
	u32 parts = 0;

	for (u32 i = 0; i < l->call->given.feature_count; i++) {
		u64 count = x->batch.features[i].occurrences;

		if (l->call->features[i].table != l->table || !count)
			continue;
		x->model.sources[parts++] = (struct partition_source){
			.rows = x->keys + first_key(l->call, i),
			.first = first,
			.count = count,
			.base = first
		};
		/* Where the places of these go. */
		x->model.gradients[parts - 1] = *exchange_data(x, i);
		first += count;
	}
	x->partition.sources = x->model.sources;
	x->partition.below = first;
	return parts;
}

#define PLACES_MAX 0x7fffffffull      /* they are signed, of 32 bits */
#define LIST_GROUPS (PIECE_ROWS / 16) /* rows of the list in a task */

/* The rows of one host, or of several that have few, and the places of their ids. */
static void list_places_task(void *arg, u64 task, u32 worker)
{
	const struct listing *l = arg;
	const struct partition *p = &l->x->partition;
	u64 first = task * LIST_GROUPS, last = first + LIST_GROUPS, left = PIECE_ROWS;
	u64 *rows = exchange_rows(l->x, l->table)->data;

	(void)worker;
	last = last < p->group_count ? last : p->group_count;
	for (u64 g = first; g < last; g++) {
		const struct kernel_group *group = &p->groups[g];
		const u32 *occ = p->order + group->first;
		const struct partition_source *source = p->sources;

		rows[g] = group->row % l->spread.part;
		for (u32 i = 0; i < group->count; i++) {
			while (occ[i] - source->first >= source->count)
				source++;
			((s32 *)l->x->model.gradients[source - p->sources]
				 .data)[occ[i] - source->first] = (s32)g;
			if (piece_step(l->command, &left))
				return;
		}
	}
}

static void count_by_host(const struct listing *l)
{
	const struct partition *p = &l->x->partition;
	u64 *counts = exchange_result(l->x, l->table)->data, from = 0;

	for (u64 host = 0; host < l->spread.hosts; host++) {
		u64 end = groups_from(p->groups, from, p->group_count, (host + 1) * l->spread.part);

		counts[host] = end - from;
		from = end;
	}
}

static u16 list_rows_of_table(struct listing *l, u32 index)
{
	const struct exchange_call *call = l->call;
	struct exchange *x = l->x;
	u64 room = call->tables[index].rows.length / sizeof(u64), found;
	u32 cores = x->model.engine->caps.cores;

	l->table = index;
	l->left_out = false;
	l->spread = spread_rows(&call->given, call->tables[index].row_count);
	if (!workers_run(l->command, key_task, l, call->given.feature_count, x->batch.bytes))
		return abort_command(l->command);
	if (partition_make(&x->partition, list_sources(l), l->spread.part * l->spread.hosts,
			   __atomic_load_n(&l->left_out, __ATOMIC_RELAXED), l->command, true,
			   cores))
		return exchange_no_memory(l->command);
	found = x->partition.group_count;
	room = room < PLACES_MAX ? room : PLACES_MAX;
	if (found > room)
		return fault_set(&l->command->fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_ROWS, index,
				 0, found, room);
	if (!workers_run(l->command, list_places_task, l,
			 found / LIST_GROUPS + (found % LIST_GROUPS != 0), x->partition.count * 16))
		return abort_command(l->command);
	count_by_host(l);
	l->command->result += found;
	return 0;
}

/* Rows of the list that nobody writes to stay as they are. */
static void record_lists(struct command *command, const struct exchange *x)
{
	const struct exchange_call *call = command->state;

	port_lock(command->context->engine->lock);
	for (u32 i = 0; i < call->given.table_count; i++) {
		if (exchange_rows(x, i)->data)
			record_before(command, &call->tables[i].rows, exchange_rows(x, i)->data);
	}
	port_unlock(command->context->engine->lock);
}

static u16 get_places(struct command *command, struct exchange *x)
{
	const struct exchange_call *call = command->state;
	u16 status = 0;

	for (u32 i = 0; !status && i < call->given.feature_count; i++)
		status = check_length(&call->features[i].data, call->features[i].id_count, 4,
				      EMBENG_FIELD_DATA, i, &command->fault);
	if (!status)
		status = exchange_map_data(command, x, EMBENG_REGION_DEVICE_WRITE,
					   EMBENG_FIELD_DATA);
	if (!status && grow(&x->model, (void **)&x->keys, &x->keys_bytes,
			    (exchange_ids(call) + 1) * sizeof(*x->keys)))
		status = exchange_no_memory(command);
	return status;
}

u16 unique_run(struct command *command)
{
	struct listing l = { .command = command, .call = command->state };
	u16 status = exchange_begin(command, false, &l.x);

	if (!status)
		status = get_places(command, l.x);
	if (!status)
		record_lists(command, l.x);
	for (u32 i = 0; !status && i < l.call->given.table_count; i++)
		status = list_rows_of_table(&l, i);
	exchange_end(command, l.x);
	return status;
}
