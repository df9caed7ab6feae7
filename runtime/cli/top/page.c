// SPDX-License-Identifier: MIT
/*
 * The page of all devices and contexts, and the page of one context. A number that is not known
 * is "-": a rate of the first sample, or a number that an older driver does not have.
 */
#include "page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../frame/transfer.h"

/* A context with what the driver tells administrators of its queues. */
struct context_row {
	const struct rated_context *context;
	const struct sample *sample;
};

static const struct rated_context *context_of(const void *row)
{
	return ((const struct context_row *)row)->context;
}

static const struct fdinfo *info_of(const void *row)
{
	return &context_of(row)->now->info;
}

bool page_queue_is_of(const struct sample_queue *queue, const struct sample_context *context)
{
	if (strcmp(queue->address, context->info.address) != 0)
		return false;
	if (context->info.known & FDINFO_BIT(NUMBER))
		return queue->context == context->info.numbers[FDINFO_NUMBER];
	return queue->pid == context->pid;
}

static void put_pid(const void *row, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%u", context_of(row)->now->pid);
}

static void put_program(const void *row, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%s", context_of(row)->now->program);
}

static void put_device(const void *row, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%s", info_of(row)->address);
}

static void put_context_busy(const void *row, char cell[CELL_BYTES])
{
	share_text(context_of(row)->busy, cell);
}

static void put_context_rate(const void *row, enum fdinfo_number number, char cell[CELL_BYTES])
{
	count_text(context_of(row)->rates[number], cell);
}

static void put_number(const void *row, enum fdinfo_number number, char cell[CELL_BYTES])
{
	const struct fdinfo *info = info_of(row);

	if (info->known & 1u << number)
		snprintf(cell, CELL_BYTES, "%llu", (unsigned long long)info->numbers[number]);
	else
		strcpy(cell, "-");
}

static void put_memory(const void *row, char cell[CELL_BYTES])
{
	const struct fdinfo *info = info_of(row);
	char text[BYTES_TEXT];

	if (info->known & FDINFO_BIT(MEMORY))
		snprintf(cell, CELL_BYTES, "%s", bytes_text(info->numbers[FDINFO_MEMORY], text));
	else
		strcpy(cell, "-");
}

static void put_context_stalls(const void *row, char cell[CELL_BYTES])
{
	count_text(rates_context_waits(context_of(row)), cell);
}

/* The things that its queues wait for at this moment: "lookup, space". */
static void put_waiting(const void *row, char cell[CELL_BYTES])
{
	const struct sample *sample = ((const struct context_row *)row)->sample;
	const struct sample_context *context = context_of(row)->now;
	size_t length = 0, known = 0;

	*cell = '\0';
	for (size_t i = 0; i < sample->queue_count; i++) {
		const struct sample_queue *queue = &sample->queues[i];
		const char *wait = sample_queue_wait(queue);

		if (!page_queue_is_of(queue, context))
			continue;
		known++;
		if (!strcmp(wait, "nothing") || strstr(cell, wait) || length >= CELL_BYTES - 12)
			continue;
		length += (size_t)snprintf(cell + length, CELL_BYTES - length, "%s%s",
					   length ? ", " : "", wait);
	}
	if (!length)
		strcpy(cell, known ? "nothing" : "-");
}

#define CELL(name, put, ...) \
	static void name(const void *row, char cell[CELL_BYTES]) \
	{ \
		put(row, __VA_ARGS__, cell); \
	}

CELL(put_context_number, put_number, FDINFO_NUMBER)
CELL(put_queues, put_number, FDINFO_QUEUES)
CELL(put_commands, put_context_rate, FDINFO_COMMANDS)
CELL(put_context_ids, put_context_rate, FDINFO_IDS)
CELL(put_context_rows, put_context_rate, FDINFO_ROWS)

static const struct column context_columns[] = {
	{"PID", 7, false, 0, put_pid},
	{"PROGRAM", 15, true, 1, put_program},
	{"DEVICE", 12, true, 4, put_device},
	{"CTX", 4, false, 6, put_context_number},
	{"BUSY", 5, false, 1, put_context_busy},
	{"QUEUES", 6, false, 5, put_queues},
	{"CMDS/S", 6, false, 4, put_commands},
	{"IDS/S", 6, false, 1, put_context_ids},
	{"ROWS/S", 6, false, 2, put_context_rows},
	{"MEMORY", 10, false, 3, put_memory},
	{"STALLS/S", 8, false, 3, put_context_stalls},
	{"WAITS FOR", 9, true, 6, put_waiting},
};

#define CONTEXT_COLUMNS (sizeof(context_columns) / sizeof(context_columns[0]))

static void add_summary(const struct rates *rates, struct lines *lines)
{
	const struct sample *sample = rates->sample;
	char span[48] = "no rates yet";

	if (rates->seconds > 0)
		snprintf(span, sizeof(span), "rates over %.2f s", rates->seconds);
	lines_add(lines, LINE_TITLE, NO_ROW, "embeng top: %zu device%s, %zu context%s, %s",
		  sample->device_count, sample->device_count == 1 ? "" : "s", sample->context_count,
		  sample->context_count == 1 ? "" : "s", span);
	if (sample->hidden)
		lines_add(lines, LINE_TEXT, NO_ROW,
			  "contexts of %u processes of other users are not shown; root sees all",
			  sample->hidden);
	lines_add(lines, LINE_TEXT, NO_ROW, "%s", "");
}

void page_overview(const struct page *page, const struct rates *rates, struct lines *lines)
{
	static const struct table contexts = {context_columns, CONTEXT_COLUMNS};
	bool shown[CONTEXT_COLUMNS];

	add_summary(rates, lines);
	if (!rates->sample->device_count) {
		lines_add(lines, LINE_TEXT, NO_ROW,
			  "no engine on the PCI bus; `embeng list` shows the devices");
		return;
	}
	page_devices(page, rates, lines);
	lines_add(lines, LINE_TITLE, NO_ROW, "contexts by %s", order_word(page->order));
	table_fit(&contexts, page->width, shown);
	table_header(&contexts, shown, lines);
	for (size_t i = 0; i < rates->sample->context_count; i++) {
		struct context_row row = {&rates->contexts[i], rates->sample};

		if (!page_shows(page, row.context->now->info.address))
			continue;
		table_row(&contexts, shown, LINE_ROW, i, &row, lines);
	}
}

static void add_number(const struct rated_context *context, size_t number, const char *words,
		       struct lines *lines)
{
	const struct fdinfo *info = &context->now->info;
	char rate[CELL_BYTES];

	if (!(info->known & 1u << number))
		lines_add(lines, LINE_TEXT, NO_ROW, "%-26s %14s", words, "-");
	else if (isnan(context->rates[number]))
		lines_add(lines, LINE_TEXT, NO_ROW, "%-26s %14llu", words,
			  (unsigned long long)info->numbers[number]);
	else
		lines_add(lines, LINE_TEXT, NO_ROW, "%-26s %14llu  %s/s", words,
			  (unsigned long long)info->numbers[number],
			  count_text(context->rates[number], rate));
}

static void add_queues(const struct rates *rates, const struct sample_context *context,
		       struct lines *lines)
{
	const struct sample *sample = rates->sample;

	lines_add(lines, LINE_TEXT, NO_ROW, "%s", "");
	if (sample->queues_hidden) {
		lines_add(lines, LINE_TEXT, NO_ROW,
			  "queues are shown to root, where debugfs is mounted");
		return;
	}
	lines_add(lines, LINE_HEADER, NO_ROW, "%-6s %-10s %-9s %-8s %-10s %s", "QUEUE", "KIND",
		  "PATH", "PENDING", "WAITS FOR", "OF REPLICA, STEP");
	for (size_t i = 0; i < sample->queue_count; i++) {
		const struct sample_queue *queue = &sample->queues[i];

		if (page_queue_is_of(queue, context))
			lines_add(lines, LINE_ROW, NO_ROW, "%-6u %-10s %-9s %-8u %-10s %u, %llu",
				  queue->number, sample_queue_kind(queue),
				  queue->mapped ? "mapped" : "validated", queue->tail - queue->head,
				  sample_queue_wait(queue), queue->replica,
				  (unsigned long long)queue->step);
	}
}

void page_context(const struct page *page, const struct rates *rates, size_t index,
		  struct lines *lines)
{
	static const char *const words[FDINFO_NUMBERS] = {
#define WORDS(name, key, json, words) words,
		FDINFO_TABLE(WORDS)
#undef WORDS
	};
	const struct rated_context *context = &rates->contexts[index];
	const struct sample_context *now = context->now;
	char busy[CELL_BYTES];

	lines_add(lines, LINE_TITLE, NO_ROW, "context of %s, process %u, on %s", now->program,
		  now->pid, now->info.address);
	lines_add(lines, LINE_TEXT, NO_ROW,
		  "%u descriptor%s in %u process%s; the device is busy "
		  "for it %s of the time",
		  now->descriptors, now->descriptors == 1 ? "" : "s", now->processes,
		  now->processes == 1 ? "" : "es", share_text(context->busy, busy));
	lines_add(lines, LINE_TEXT, NO_ROW, "%s", "");
	for (size_t i = 0; i < FDINFO_NUMBERS; i++)
		add_number(context, i, words[i], lines);
	add_queues(rates, now, lines);
	lines_add(lines, LINE_TEXT, NO_ROW, "%s", "");
	if (context->hot)
		page_hot(page, context->hot, lines);
	else
		lines_add(lines, LINE_TEXT, NO_ROW,
			  "Only running programs can be asked for their hottest rows.");
}
