// SPDX-License-Identifier: MIT
/*
 * The tables of devices: work and state, stalls by their cause, and errors. A table has a line for
 * each device; what is not known is "-".
 */
#include "page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../frame/transfer.h"

static const struct sample_device *device_of(const void *row)
{
	return ((const struct rated_device *)row)->now;
}

const char *page_device_state(const struct sample_device *device, char cell[CELL_BYTES])
{
	if (strcmp(device->driver, "embeng") != 0)
		snprintf(cell, CELL_BYTES, *device->driver ? "driver %.40s" : "no driver",
			 device->driver);
	else if (device->gauges[GAUGE_WEDGED])
		strcpy(cell, "wedged");
	else if (!device->known)
		strcpy(cell, "gone");
	else if (device->gauges[GAUGE_AGE])
		snprintf(cell, CELL_BYTES, "not read for %.1f s",
			 (double)device->gauges[GAUGE_AGE] / 1000);
	else
		strcpy(cell, "running");
	return cell;
}

static void put_state(const void *row, char cell[CELL_BYTES])
{
	page_device_state(device_of(row), cell);
}

static void put_address(const void *row, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%s", device_of(row)->address);
}

static void put_node(const void *row, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%s", *device_of(row)->node ? device_of(row)->node : "-");
}

static void put_device_busy(const void *row, char cell[CELL_BYTES])
{
	share_text(((const struct rated_device *)row)->busy, cell);
}

static void put_rate(const void *row, enum count count, char cell[CELL_BYTES])
{
	count_text(((const struct rated_device *)row)->rates[count], cell);
}

static void put_total(const void *row, enum count count, char cell[CELL_BYTES])
{
	const struct sample_device *device = device_of(row);

	if (device->known & 1u << count)
		snprintf(cell, CELL_BYTES, "%llu", (unsigned long long)device->counts[count]);
	else
		strcpy(cell, "-");
}

static void put_gauge(const void *row, enum gauge gauge, double unit, const char *format,
		      char cell[CELL_BYTES])
{
	const struct sample_device *device = device_of(row);

	if (!(device->gauged & 1u << gauge)) {
		strcpy(cell, "-");
		return;
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(cell, CELL_BYTES, format, (double)device->gauges[gauge] / unit);
#pragma GCC diagnostic pop
}

static void put_gauge_bytes(const void *row, enum gauge gauge, char cell[CELL_BYTES])
{
	const struct sample_device *device = device_of(row);
	char text[BYTES_TEXT];

	if (device->gauged & 1u << gauge && device->gauges[gauge] >= 0)
		snprintf(cell, CELL_BYTES, "%s", bytes_text((uint64_t)device->gauges[gauge], text));
	else
		strcpy(cell, "-");
}

static void put_link(const void *row, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%s", *device_of(row)->link ? device_of(row)->link : "-");
}

#define CELL(name, put, ...) \
	static void name(const void *row, char cell[CELL_BYTES]) \
	{ \
		put(row, __VA_ARGS__, cell); \
	}

CELL(put_ids, put_rate, COUNT_IDS)
CELL(put_rows, put_rate, COUNT_ROWS)
CELL(put_batches, put_rate, COUNT_BATCHES)
CELL(put_steps, put_rate, COUNT_UPDATES)
CELL(put_read, put_rate, COUNT_BYTES_READ)
CELL(put_written, put_rate, COUNT_BYTES_WRITTEN)
CELL(put_used, put_gauge_bytes, GAUGE_MEMORY_USED)
CELL(put_memory_total, put_gauge_bytes, GAUGE_MEMORY_TOTAL)
CELL(put_temperature, put_gauge, GAUGE_TEMPERATURE, 1000, "%.1f C")
CELL(put_power, put_gauge, GAUGE_POWER, 1e6, "%.1f W")
CELL(put_clock, put_gauge, GAUGE_CLOCK, 1e6, "%.0f MHz")
CELL(put_stalls, put_rate, COUNT_WAITS)
CELL(put_waits_lookup, put_rate, COUNT_WAITS_LOOKUP)
CELL(put_waits_update, put_rate, COUNT_WAITS_UPDATE)
CELL(put_waits_queue, put_rate, COUNT_WAITS_QUEUE)
CELL(put_waits_space, put_rate, COUNT_WAITS_SPACE)
CELL(put_errors_program, put_total, COUNT_ERRORS_PROGRAM)
CELL(put_errors_model, put_total, COUNT_ERRORS_MODEL)
CELL(put_errors_device, put_total, COUNT_ERRORS_DEVICE)
CELL(put_ecc_correctable, put_total, COUNT_ECC_CORRECTABLE)
CELL(put_ecc_uncorrectable, put_total, COUNT_ECC_UNCORRECTABLE)
CELL(put_resets_queue, put_total, COUNT_RESETS_QUEUE)
CELL(put_resets_context, put_total, COUNT_RESETS_CONTEXT)
CELL(put_resets_engine, put_total, COUNT_RESETS_ENGINE)
CELL(put_resets_function, put_total, COUNT_RESETS_FUNCTION)

#define ADDRESS {"DEVICE", 12, true, 0, put_address}

static const struct column work_columns[] = {
	ADDRESS,
	{"NODE", 7, true, 6, put_node},
	{"BUSY", 5, false, 1, put_device_busy},
	{"IDS/S", 6, false, 1, put_ids},
	{"ROWS/S", 6, false, 2, put_rows},
	{"LOOKUPS/S", 9, false, 5, put_batches},
	{"STEPS/S", 7, false, 3, put_steps},
	{"READ B/S", 8, false, 4, put_read},
	{"WRITTEN B/S", 11, false, 4, put_written},
	{"MEMORY", 10, false, 3, put_used},
	{"OF", 10, false, 6, put_memory_total},
	{"TEMP", 7, false, 3, put_temperature},
	{"POWER", 7, false, 5, put_power},
	{"CLOCK", 8, false, 5, put_clock},
	{"LINK", 18, true, 7, put_link},
	{"STATE", 7, true, 2, put_state},
};

static const struct column stall_columns[] = {
	ADDRESS,
	{"STALLS/S", 8, false, 1, put_stalls},
	{"LOOKUP", 6, false, 2, put_waits_lookup},
	{"UPDATE", 6, false, 2, put_waits_update},
	{"QUEUE", 6, false, 2, put_waits_queue},
	{"SPACE", 6, false, 2, put_waits_space},
};

static const struct column error_columns[] = {
	ADDRESS,
	{"PROGRAM", 7, false, 2, put_errors_program},
	{"MODEL", 7, false, 2, put_errors_model},
	{"DEVICE", 7, false, 1, put_errors_device},
	{"ECC", 6, false, 3, put_ecc_correctable},
	{"ECC LOST", 8, false, 1, put_ecc_uncorrectable},
	{"RESETS: QUEUE", 13, false, 4, put_resets_queue},
	{"CONTEXT", 7, false, 4, put_resets_context},
	{"ENGINE", 6, false, 3, put_resets_engine},
	{"FUNCTION", 8, false, 3, put_resets_function},
};

#define COLUMNS_MOST 16
#define TABLE(columns) {columns, sizeof(columns) / sizeof((columns)[0])}

static bool needs_alarm(const struct rated_device *device)
{
	const struct sample_device *now = device->now;
	bool hot = now->gauged & 1u << GAUGE_TEMPERATURE &&
		   now->gauged & 1u << GAUGE_TEMPERATURE_LIMIT &&
		   now->gauges[GAUGE_TEMPERATURE] >= now->gauges[GAUGE_TEMPERATURE_LIMIT];

	return hot || now->gauges[GAUGE_WEDGED] || now->gauges[GAUGE_AGE] || !now->known;
}

/* Errors of the program are its own matter. */
static bool has_new_errors(const struct rated_device *device)
{
	return device->rates[COUNT_ERRORS_DEVICE] > 0 || device->rates[COUNT_ECC_UNCORRECTABLE] > 0;
}

static void add_table(const struct page *page, const struct table *table, const char *title,
		      const struct rates *rates, bool (*alarms)(const struct rated_device *device),
		      struct lines *lines)
{
	bool shown[COLUMNS_MOST];

	if (title)
		lines_add(lines, LINE_TITLE, NO_ROW, "%s", title);
	table_fit(table, page->width, shown);
	table_header(table, shown, lines);
	for (size_t i = 0; i < rates->sample->device_count; i++) {
		const struct rated_device *device = &rates->devices[i];

		if (!page_shows(page, device->now->address))
			continue;
		table_row(table, shown, alarms && alarms(device) ? LINE_ALARM : LINE_ROW, NO_ROW,
			  device, lines);
	}
	lines_add(lines, LINE_TEXT, NO_ROW, "%s", "");
}

void page_devices(const struct page *page, const struct rates *rates, struct lines *lines)
{
	static const struct table work = TABLE(work_columns), stalls = TABLE(stall_columns),
				  errors = TABLE(error_columns);

	add_table(page, &work, NULL, rates, needs_alarm, lines);
	add_table(page, &stalls, "queues that began to wait, by what they wait for", rates, NULL,
		  lines);
	add_table(page, &errors, "commands that failed by whose fault, and resets, since the bind",
		  rates, has_new_errors, lines);
}
