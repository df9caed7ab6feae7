// SPDX-License-Identifier: MIT
/*
 * The files that embeng top reads of a recorded tree: the first byte says which, "f" for the fdinfo
 * of a descriptor and "q" for the driver's list of contexts and queues; or "h" for statistics in
 * memory that another program may write. The second byte says which allocation fails ("0": none).
 * The rest is the text or the statistics.
 */
#include "../../runtime/cli/top/page.h"
#include "../unit/support/failing_alloc.h"
#include "fuzz.h"

/* Only numbers that the file has are known, and only such descriptors are one context. */
static void try_fdinfo(const char *text, struct sample *sample)
{
	struct fdinfo info;
	int err;

	fdinfo_read(text, &info);
	fuzz_check(info.known < 1u << FDINFO_NUMBERS, "%x", info.known);
	for (size_t i = 0; i < FDINFO_NUMBERS; i++)
		fuzz_check(info.known & 1u << i || !info.numbers[i], "number %zu", i);
	fuzz_check(info.has_client || !info.client, "client");
	err = sample_take_descriptor(sample, &info, 1, 4, info.driver);
	err = err ? err : sample_take_descriptor(sample, &info, 2, 4, info.driver);
	fuzz_check(err || sample->context_count == (info.has_client ? 1 : 2), "%zu contexts",
		   sample->context_count);
}

static void try_queues(const char *text, struct sample *sample)
{
	size_t lines = 1;

	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	(void)sample_take_queues(sample, "0000:01:00.0", text);
	fuzz_check(sample->queue_count <= lines, "%zu queues", sample->queue_count);
	for (size_t i = 0; i < sample->queue_count; i++) {
		fuzz_check(*sample_queue_kind(&sample->queues[i]), "kind");
		fuzz_check(*sample_queue_wait(&sample->queues[i]), "wait");
	}
}

/* Whatever stands there, the rows are within the answer, and no line is wider than the screen. */
static void try_hot(const char *bytes, size_t size)
{
	struct embeng_stats stats = {0};
	struct hot_table table;
	struct hot_look look = {.model_tables = 1, .tables = &table, .count = 1};
	struct page page = {.width = 80};
	struct lines lines = {0};

	memcpy(&stats, bytes, size < sizeof(stats) ? size : sizeof(stats));
	if (!hot_read(&stats, 0, &table))
		return;
	fuzz_check(table.row_count <= EMBENG_STATS_HOT, "%zu rows", table.row_count);
	hot_compare(&look, NULL);
	page_hot(&page, &look, &lines);
	for (size_t i = 0; i < lines.count; i++)
		fuzz_check(strlen(lines.list[i].text) <= 80, "%s", lines.list[i].text);
	lines_free(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sample sample = {0};
	char *text;

	if (size < 2)
		return 0;
	text = malloc(size - 1);
	if (!text)
		return 0;
	memcpy(text, data + 2, size - 2);
	text[size - 2] = '\0';
	scarce_begin(data[1] > '0' ? (data[1] - (uint32_t)'0') % 32 : 0);
	if (data[0] == 'h')
		try_hot(text, size - 2);
	else if (data[0] == 'q')
		try_queues(text, &sample);
	else
		try_fdinfo(text, &sample);
	(void)scarce_end();
	sample_free(&sample);
	free(text);
	return 0;
}
