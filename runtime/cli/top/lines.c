// SPDX-License-Identifier: MIT
/*
 * Makes the lines of a page. Batch output prints them and the screen draws them, so that both show
 * the same, and tests need no terminal.
 *
 * The lines belong to their list until lines_free(). When memory runs out, the list is marked and
 * keeps the lines that it has.
 */
#define _GNU_SOURCE
#include "lines.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lines_add(struct lines *lines, enum line_kind kind, size_t row, const char *format, ...)
{
	struct line *larger = realloc(lines->list, (lines->count + 1) * sizeof(*larger));
	char *text = NULL;
	va_list args;
	int length;

	if (!larger) {
		lines->failed = true;
		return;
	}
	lines->list = larger;
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0) {
		lines->failed = true;
		return;
	}
	larger[lines->count++] = (struct line){kind, row, text};
}

void lines_free(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->list[i].text);
	free(lines->list);
	*lines = (struct lines){0};
}

static int sum_widths(const struct table *table, const bool *shown)
{
	int sum = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (shown[i])
			sum += table->columns[i].width + (sum ? 2 : 0);
	}
	return sum;
}

/* The column to leave out next, or the number of columns: the first one stays. */
static size_t find_least_wanted(const struct table *table, const bool *shown)
{
	size_t worst = table->count;

	for (size_t i = 1; i < table->count; i++) {
		if (shown[i] &&
		    (worst == table->count || table->columns[i].rank >= table->columns[worst].rank))
			worst = i;
	}
	return worst;
}

void table_fit(const struct table *table, int width, bool *shown)
{
	for (size_t i = 0; i < table->count; i++)
		shown[i] = true;
	while (width && sum_widths(table, shown) > width) {
		size_t worst = find_least_wanted(table, shown);

		if (worst == table->count)
			return;
		shown[worst] = false;
	}
}

/* Appends a cell to a line of @size bytes. */
static void append_cell(char *line, size_t size, const struct column *column, const char *cell)
{
	size_t length = strlen(line);

	snprintf(line + length, size - length, column->left ? "%s%-*s" : "%s%*s",
		 length ? "  " : "", column->width, cell);
}

static void add_cells(struct lines *lines, enum line_kind kind, size_t index, char *line)
{
	size_t length = strlen(line);

	while (length && line[length - 1] == ' ')
		line[--length] = '\0';
	lines_add(lines, kind, index, "%s", line);
}

void table_header(const struct table *table, const bool *shown, struct lines *lines)
{
	char line[1024] = "";

	for (size_t i = 0; i < table->count; i++) {
		if (shown[i])
			append_cell(line, sizeof(line), &table->columns[i],
				    table->columns[i].title);
	}
	add_cells(lines, LINE_HEADER, NO_ROW, line);
}

void table_row(const struct table *table, const bool *shown, enum line_kind kind, size_t index,
	       const void *row, struct lines *lines)
{
	char line[1024] = "", cell[CELL_BYTES];

	for (size_t i = 0; i < table->count; i++) {
		if (!shown[i])
			continue;
		table->columns[i].cell(row, cell);
		append_cell(line, sizeof(line), &table->columns[i], cell);
	}
	add_cells(lines, kind, index, line);
}

const char *count_text(double count, char cell[CELL_BYTES])
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	if (isnan(count)) {
		strcpy(cell, "-");
		return cell;
	}
	/* A value that would be shown as 1000 goes to the next unit. */
	for (; count >= 999.5 && units[unit + 1]; unit++)
		count /= 1000;
	if (!unit && count == floor(count))
		snprintf(cell, CELL_BYTES, "%.0f", count);
	else
		snprintf(cell, CELL_BYTES, "%.*f%.*s", count < 9.995 ? 2 : count < 99.95, count,
			 unit ? 1 : 0, &units[unit]);
	return cell;
}

const char *share_text(double share, char cell[CELL_BYTES])
{
	if (isnan(share))
		strcpy(cell, "-");
	else
		snprintf(cell, CELL_BYTES, "%.0f %%", share * 100);
	return cell;
}
