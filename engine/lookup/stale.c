/* SPDX-License-Identifier: MIT */
/*
 * Keeps the rows that an early update changes (stale.h says when that is), and puts them into the
 * tables while a LOOKUP of the next step runs. A lazy optimizer changes the rows that the step touched.
 * An optimizer that is not lazy changes all rows, so that the whole table is copied.
 *
 * Only parameters are kept: lookups read no slots. The memory belongs to the table; lists are kept
 * for the next time, a whole copy is freed once it is not needed. Called without engine->lock by the
 * running command, which alone touches tables.
 */
#include "stale.h"

static void free_whole(struct model *model, struct table *table)
{
	if (!table->stale.whole)
		return;
	port_free_table(table->stale.whole, table->bytes);
	model_count(model, -table->bytes);
	table->stale.whole = NULL;
}

/* A copy takes no table memory of its own, but there must be as much left. */
static int reserve_whole(struct model *model, struct table *table)
{
	struct engine *engine = model->engine;
	bool fits;

	if (table->stale.whole)
		return 0;
	port_lock(engine->lock);
	fits = table->bytes <= engine->caps.table_memory - engine->table_memory_used;
	port_unlock(engine->lock);
	if (fits)
		table->stale.whole = alloc_table(engine, table->bytes);
	if (!table->stale.whole)
		return -1;
	model_count(model, table->bytes);
	return 0;
}

static bool changes_all_rows(const struct table *table)
{
	return table->record.flags & EMBENG_TABLE_NON_LAZY;
}

int stale_reserve(struct model *model, struct table *table, u64 occurrences)
{
	u64 rows = occurrences < table->record.rows ? occurrences : table->record.rows;
	struct stale_rows *stale = &table->stale;

	stale->count = 0;
	if (!table_trains(table) || !blob_has_feature(&model->blob, table->index))
		return 0;
	if (changes_all_rows(table))
		return reserve_whole(model, table);
	if (!rows)
		return 0;
	return grow(model, (void **)&stale->rows, &stale->rows_bytes, rows * sizeof(u64)) ||
			       grow(model, (void **)&stale->data, &stale->data_bytes,
				    rows * 4 * table->record.dim) ?
		       -1 :
		       0;
}

void stale_begin(struct model *model, u64 number)
{
	model->stale_step = number;
}

static u64 kept_rows(const struct table *table, const struct partition *p)
{
	return table->stale.whole ? table->record.rows : p->group_count;
}

static u64 tasks_of(const struct table *table, u64 rows)
{
	u64 chunk = chunk_rows(table->record.dim);

	return rows / chunk + (rows % chunk != 0);
}

/* The end of a task that begins with row @first of @rows. */
static u64 task_end(const struct table *table, u64 first, u64 rows)
{
	u64 chunk = chunk_rows(table->record.dim);

	return rows - first < chunk ? rows : first + chunk;
}

u64 stale_tasks(const struct table *table, const struct partition *p)
{
	return tasks_of(table, kept_rows(table, p));
}

u64 stale_bytes(const struct table *table, const struct partition *p)
{
	return 8ull * table->record.dim * kept_rows(table, p);
}

void stale_keep(struct table *table, const struct partition *p, u64 task)
{
	u64 first = task * chunk_rows(table->record.dim), dim = table->record.dim;
	u64 last = task_end(table, first, kept_rows(table, p));
	struct stale_rows *stale = &table->stale;

	if (stale->whole) {
		memcpy(stale->whole + first * dim, table->data + first * dim,
		       (last - first) * 4 * dim);
		return;
	}
	for (u64 i = first; i < last; i++) {
		stale->rows[i] = p->groups[i].row;
		memcpy(stale->data + i * dim, table->data + stale->rows[i] * dim, 4 * dim);
	}
}

static void swap_row(u32 *a, u32 *b, u32 dim)
{
	for (u32 i = 0; i < dim; i++) {
		u32 kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

static void swap_rows_task(void *arg, u64 task, u32 worker)
{
	struct table *table = arg;
	struct stale_rows *stale = &table->stale;
	u64 first = task * chunk_rows(table->record.dim);
	u64 last = task_end(table, first, stale->count);
	u32 dim = table->record.dim;

	(void)worker;
	for (u64 i = first; i < last; i++)
		swap_row(table->data + stale->rows[i] * dim, stale->data + i * dim, dim);
}

void stale_swap(struct model *model)
{
	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		struct table *table = &model->tables[t];
		struct stale_rows *stale = &table->stale;
		u32 *whole = stale->whole;

		if (whole) {
			stale->whole = table->data;
			table->data = whole;
		} else if (stale->count) {
			workers_run(model->command, swap_rows_task, table,
				    tasks_of(table, stale->count),
				    16ull * table->record.dim * stale->count);
		}
	}
}

void stale_forget(struct model *model)
{
	if (!model->stale_step)
		return;
	model->stale_step = 0;
	for (u32 t = 0; t < model->blob.engine.table_count; t++)
		free_whole(model, &model->tables[t]);
}

u64 stale_memory(const struct table *table)
{
	const struct stale_rows *stale = &table->stale;

	return stale->rows_bytes + stale->data_bytes + (stale->whole ? table->bytes : 0);
}

void stale_free(struct model *model, struct table *table)
{
	free_whole(model, table);
	port_free(table->stale.rows);
	port_free(table->stale.data);
}
