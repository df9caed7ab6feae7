/* SPDX-License-Identifier: MIT */
/*
 * Keeps the old contents of rows for a snapshot (see kept_rows.h). It is a file of its own because
 * updates, writes of rows and reads of a snapshot all need it.
 *
 * Places and blocks belong to the table until kept_end() or kept_free(), and their bytes are in the
 * account of table memory. engine->lock is taken for the account alone.
 */
#include "kept_rows.h"
#include "../model/model.h"

#define BLOCK_BYTES (2u << 20) /* one huge page */
#define ROWS_AHEAD 8u	       /* fetched before they are copied */

static u64 places_bytes(const struct table *table)
{
	return table->record.rows * sizeof(*table->kept.places);
}

static u64 block_bytes(const struct table *table)
{
	return table->kept.block_rows * table_whole_row_bytes(table);
}

/* Table memory, if the account has that much left. */
static void *take_kept_memory(struct model *model, u64 bytes)
{
	struct engine *engine = model->engine;
	void *p = NULL;
	bool fits;

	port_lock(engine->lock);
	fits = bytes <= engine->caps.table_memory - engine->table_memory_used;
	if (fits)
		table_memory_change(model, bytes);
	port_unlock(engine->lock);
	if (fits)
		p = alloc_table(engine, bytes);
	if (fits && !p)
		table_memory_give(model, bytes);
	return p;
}

int kept_begin(struct model *model, struct table *table)
{
	struct kept_rows *kept = &table->kept;
	u64 rows = BLOCK_BYTES / table_whole_row_bytes(table);

	memset(kept, 0, sizeof(*kept));
	kept->block_rows = !rows ? 1 : rows < table->record.rows ? rows : table->record.rows;
	kept->places = take_kept_memory(model, places_bytes(table));
	return kept->places ? 0 : -1;
}

void kept_free(struct table *table)
{
	struct kept_rows *kept = &table->kept;

	if (!kept->places)
		return;
	for (u64 i = 0; i < kept->block_count; i++)
		port_free_table(kept->blocks[i], block_bytes(table));
	port_free(kept->blocks);
	port_free_table(kept->places, places_bytes(table));
	memset(kept, 0, sizeof(*kept));
}

void kept_end(struct model *model, struct table *table)
{
	u64 bytes = places_bytes(table) + table->kept.block_count * block_bytes(table);

	if (!table->kept.places)
		return;
	kept_free(table);
	table_memory_give(model, bytes);
}

void kept_end_all(struct model *model)
{
	for (u32 t = 0; t < model->blob.engine.table_count; t++)
		kept_end(model, &model->tables[t]);
	model->snapshot = 0;
}

static int grow_block_list(struct kept_rows *kept)
{
	u64 room = kept->room ? 2 * kept->room : 16;
	u8 **larger;

	if (kept->block_count < kept->room)
		return 0;
	larger = port_alloc(room * sizeof(*larger));
	if (!larger)
		return -1;
	if (kept->block_count)
		memcpy(larger, kept->blocks, kept->block_count * sizeof(*larger));
	port_free(kept->blocks);
	kept->blocks = larger;
	kept->room = room;
	return 0;
}

static int add_kept_block(struct model *model, struct table *table)
{
	struct kept_rows *kept = &table->kept;
	u8 *block;

	if (grow_block_list(kept))
		return -1;
	block = take_kept_memory(model, block_bytes(table));
	if (!block)
		return -1;
	kept->blocks[kept->block_count++] = block;
	return 0;
}

void kept_reserve(struct model *model, struct table *table, u64 rows)
{
	struct kept_rows *kept = &table->kept;
	u64 need = table->record.rows;
	int failed = 0;

	if (!kept->places)
		return;
	/* Each row is kept once. */
	if (rows < need - kept->used)
		need = kept->used + rows;
	if (need >= U32_MAX)
		failed = -1;
	while (!failed && kept->block_count * kept->block_rows < need &&
	       !piece_over(model->command))
		failed = add_kept_block(model, table);
	if (failed)
		kept_end_all(model);
}

static void fetch_row_ahead(struct table *table, u64 row)
{
	if (table->kept.places[row])
		return;
	for (u32 slot = 0; slot <= table->record.slot_count; slot++) {
		u64 width = table_width(table, slot);
		const u32 *from = *table_array(table, slot) + row * width;

		for (u64 i = 0; i < width; i += 16)
			__builtin_prefetch(from + i);
	}
}

static u8 *find_kept_place(const struct table *table, u64 place)
{
	const struct kept_rows *kept = &table->kept;

	return kept->blocks[place / kept->block_rows] +
	       place % kept->block_rows * table_whole_row_bytes(table);
}

static void keep_row(struct table *table, u64 row, u64 place)
{
	u8 *to = find_kept_place(table, place);

	for (u32 slot = 0; slot <= table->record.slot_count; slot++) {
		u64 bytes = table_row_bytes(table, slot);

		memcpy(to, (u8 *)*table_array(table, slot) + row * bytes, bytes);
		to += bytes;
	}
	table->kept.places[row] = (u32)(place + 1);
}

/* Places for so many rows more, for the caller alone. */
static u64 take_places(struct kept_rows *kept, u64 rows)
{
	return __atomic_fetch_add(&kept->used, rows, __ATOMIC_RELAXED);
}

void kept_add_groups(struct table *table, const struct kernel_group *groups, u64 count)
{
	struct kept_rows *kept = &table->kept;
	u64 fresh = 0, place;

	if (!kept->places)
		return;
	for (u64 i = 0; i < count; i++)
		fresh += !kept->places[groups[i].row];
	place = take_places(kept, fresh);
	for (u64 i = 0; fresh && i < count; i++) {
		if (i + ROWS_AHEAD < count)
			fetch_row_ahead(table, groups[i + ROWS_AHEAD].row);
		if (!kept->places[groups[i].row])
			keep_row(table, groups[i].row, place++);
	}
}

void kept_add_range(struct table *table, u64 first, u64 count)
{
	struct kept_rows *kept = &table->kept;

	for (u64 row = first; kept->places && row < first + count; row++) {
		if (!kept->places[row])
			keep_row(table, row, take_places(kept, 1));
	}
}

const u8 *kept_find(struct table *table, u64 row, u32 slot)
{
	u32 place = table->kept.places[row];
	u64 before = 0;

	if (!place)
		return (const u8 *)*table_array(table, slot) + row * table_row_bytes(table, slot);
	for (u32 s = 0; s < slot; s++)
		before += table_row_bytes(table, s);
	return find_kept_place(table, place - 1) + before;
}
