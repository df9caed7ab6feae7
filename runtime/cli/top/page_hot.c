// SPDX-License-Identifier: MIT
/*
 * The hottest tables and rows of one context as lines. A table has one line, which names as many of
 * its hottest rows as fit, each with its share of the table's ids.
 */
#include "page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_TABLES 8u
#define SHOWN_ROWS 8u
#define ROWS_BYTES 512
#define FRONT_BYTES (2 * CELL_BYTES)

static void append_hot_row(const struct hot_table *table, const struct embeng_hot_row *row,
			   size_t room, char text[ROWS_BYTES])
{
	char share[CELL_BYTES], one[2 * CELL_BYTES];
	size_t length = strlen(text);

	snprintf(one, sizeof(one), "%s%llu (%s)", length ? ", " : "", (unsigned long long)row->row,
		 share_text(table->ids ? (double)row->count / (double)table->ids : NAN, share));
	if (length + strlen(one) <= room)
		strcpy(text + length, one);
}

/* Rows that do not fit are left out from the first one on. */
static const char *list_hot_rows(const struct hot_table *table, size_t room, char text[ROWS_BYTES])
{
	size_t before;

	if (room > ROWS_BYTES - 1)
		room = ROWS_BYTES - 1;
	*text = '\0';
	for (size_t i = 0; i < table->row_count && i < SHOWN_ROWS; i++) {
		before = strlen(text);
		append_hot_row(table, &table->rows[i], room, text);
		if (strlen(text) == before)
			break;
	}
	return *text ? text : "-";
}

static void add_hot_table(const struct hot_table *table, int width, struct lines *lines)
{
	char rate[CELL_BYTES], front[FRONT_BYTES], rows[ROWS_BYTES];
	size_t room = ROWS_BYTES, used;

	snprintf(front, sizeof(front), "%5u  %7s  %15llu  ", table->table,
		 count_text(table->ids_rate, rate), (unsigned long long)table->ids);
	used = strlen(front);
	if (width)
		room = (size_t)width > used ? (size_t)width - used : 0;
	lines_add(lines, LINE_ROW, NO_ROW, "%s%s", front, list_hot_rows(table, room, rows));
}

void page_hot(const struct page *page, const struct hot_look *look, struct lines *lines)
{
	if (*look->reason) {
		lines_add(lines, LINE_TEXT, NO_ROW, "Its hottest rows are not known: %s.",
			  look->reason);
		return;
	}
	lines_add(lines, LINE_HEADER, NO_ROW, "%5s  %7s  %15s  %s", "TABLE", "IDS/S", "IDS",
		  "HOTTEST ROWS (SHARE OF THE IDS)");
	for (size_t i = 0; i < look->count && i < SHOWN_TABLES; i++)
		add_hot_table(&look->tables[i], page->width, lines);
	if (look->model_tables > SHOWN_TABLES)
		lines_add(lines, LINE_TEXT, NO_ROW, "the hottest %u of %u tables", SHOWN_TABLES,
			  look->model_tables);
}

void page_hot_contexts(const struct page *page, const struct rates *rates, struct lines *lines)
{
	for (size_t i = 0; i < rates->sample->context_count; i++) {
		const struct rated_context *context = &rates->contexts[i];

		if (!context->hot)
			continue;
		lines_add(lines, LINE_TEXT, NO_ROW, "%s", "");
		lines_add(lines, LINE_TITLE, NO_ROW,
			  "hottest tables and rows of %s, process %u, on %s", context->now->program,
			  context->now->pid, context->now->info.address);
		page_hot(page, context->hot, lines);
	}
}
