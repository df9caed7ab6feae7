/* SPDX-License-Identifier: MIT */
/* What came of learning: measured once, said as text or as a document. */
#ifndef ITEM2VEC_REPORT_H
#define ITEM2VEC_REPORT_H

#include "../../cli/frame/output.h"
#include "neighbors.h"
#include "trainer.h"

/* Why a training is not at its end. */
enum stop { STOP_NOT, STOP_STEPS, STOP_SIGNAL };

/**
 * struct learned - a training that ended or stopped
 * @source: where the data is from, for people
 * @note: what they should know of it, or NULL
 * @data_hash: dataset_hash() of @data
 * @vectors: the tables, when it is at its end
 * @served: the same from the checkpoint, when @serves
 * @started_ns: clock_ns() before the data was read
 * @steps: of this run
 * @place: where it is
 * @from: where it was resumed, when @resumed
 * @checkpoint: folder of the last save, or NULL
 * @temporary: the folder goes when the run ends
 */
struct learned {
	const char *source, *note;
	const struct dataset *data;
	uint64_t data_hash;
	const struct settings *settings;
	struct vectors vectors, served;
	uint64_t started_ns;
	int64_t epochs, steps;
	size_t epoch_steps;
	struct place place, from;
	enum stop stopped;
	bool resumed, serves, temporary;
	double loss, hit_at_10, popularity_hit_at_10, seconds;
	uint64_t dense_ns, save_ns, serve_ns, saves, checkpoint_bytes;
	const char *checkpoint;
	size_t examples;
	struct embeng_counter_values counters;
	struct embeng_table_stats stats;
	struct embeng_device_info device;
};

/* What was read, before training; nothing with --json. */
void report_data(const struct output *out, const struct learned *l);

/* Before the first step: where the training goes on, when it was resumed. */
void report_start(const struct output *out, const struct learned *l);

/* Where a training stopped, and how it goes on. Return: CLI_OK or CLI_DEVICE. */
int report_stopped(const struct output *out, const struct learned *l);

/**
 * report_result() - quality, hot rows, time per stage, answers
 * @queries: [count] items to answer for
 *
 * Return: CLI_OK, CLI_CHECK when popularity was not beaten, CLI_DEVICE.
 */
int report_result(const struct output *out, const struct learned *l, const uint32_t *queries,
		  size_t count);

#endif
