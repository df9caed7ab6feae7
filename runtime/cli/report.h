/* SPDX-License-Identifier: MIT */
/* What came of learning: measured once, said as text or as a document. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "json.h"
#include "neighbors.h"
#include "trainer.h"

/**
 * struct learned - a finished training
 * @source: where the data is from, for people
 * @started_ns: clock_ns() before the data was read
 * @note: what they should know of it, or NULL
 */
struct learned {
	const char *source, *note;
	const struct dataset *data;
	const struct settings *settings;
	struct vectors vectors;
	uint64_t started_ns;
	int64_t epochs;
	double loss, hit_at_10, popularity_hit_at_10, seconds;
	uint64_t dense_ns;
	size_t examples;
	struct embeng_counter_values counters;
	struct embeng_table_stats stats;
	struct embeng_device_info device;
};

/* What was read, before training; nothing with --json. */
void report_data(const struct output *out, const struct learned *l);

/**
 * report_result() - quality, hot rows, time per stage, answers
 * @queries: [count] items to answer for
 *
 * Return: CLI_OK, CLI_CHECK when popularity was not beaten, CLI_DEVICE.
 */
int report_result(const struct output *out, const struct learned *l, const uint32_t *queries,
		  size_t count);

#endif
