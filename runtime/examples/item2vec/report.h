/* SPDX-License-Identifier: MIT */
/* The report of a training, as text or as a JSON document. */
#ifndef ITEM2VEC_REPORT_H
#define ITEM2VEC_REPORT_H

#include "../../cli/frame/output.h"
#include "../../cli/lookup/row_names.h"
#include "neighbors.h"
#include "trainer.h"

/* The reason for which a training is not at its end. */
enum stop { STOP_NOT, STOP_STEPS, STOP_SIGNAL };

/**
 * struct learned - a training that ended or stopped
 * @source: origin of the data, for people
 * @note: a remark on the data, or NULL
 * @data_hash: dataset_hash() of @data
 * @vectors: rows of the tables, when the training is at its end
 * @served: the rows as read from the checkpoint, when @serves
 * @started_ns: clock_ns() before the data was read
 * @steps: steps of this run
 * @place: place of the training
 * @from: place at which it was resumed, when @resumed
 * @keep: checkpoints that stay in the folder, 0: as many as the library keeps
 * @delta: save only the rows that changed
 * @deltas: saves that did so
 * @last_save: counts of the last save
 * @names: mark of the names of @data's items
 * @names_saved: the names are in the folder of this run's checkpoints
 * @other_data: it was resumed with other data than it was saved with
 * @new_items: items of @data that the checkpoint does not have
 * @restored: the report of the restore, when @resumed
 * @saved_at: place in the last of the @saves checkpoints
 * @checkpoint: folder of the last save, or NULL
 * @temporary: the folder is removed when the run ends
 */
struct learned {
	const char *source, *note;
	const struct dataset *data;
	uint64_t data_hash;
	const struct settings *settings;
	int64_t keep;
	bool delta;
	uint64_t deltas;
	struct embeng_save_report last_save;
	struct vectors vectors, served;
	uint64_t started_ns;
	int64_t epochs, steps;
	size_t epoch_steps;
	struct place place, from, saved_at;
	enum stop stopped;
	bool resumed, serves, temporary, other_data, names_saved;
	struct row_names_mark names;
	size_t new_items;
	struct embeng_restore_report restored;
	double loss, hit_at_10, popularity_hit_at_10, seconds;
	uint64_t dense_ns, save_ns, serve_ns, saves, checkpoint_bytes;
	const char *checkpoint;
	size_t examples;
	struct embeng_counter_values counters;
	struct embeng_table_stats stats;
	struct embeng_device_info device;
};

/* Prints a summary of the data before training; prints nothing with --json. */
void report_data(const struct output *out, const struct learned *l);

/* Prints, before the first step, where a resumed training goes on. */
void report_start(const struct output *out, const struct learned *l);

/* Prints what a save wrote, where only the rows that changed are asked for. */
void report_save(const struct output *out, const struct learned *l);

/* Prints where a training stopped and how to resume it. Return: CLI_OK or CLI_DEVICE. */
int report_stopped(const struct output *out, const struct learned *l);

/**
 * report_result() - print quality, hot rows, time of each stage, and answers
 * @queries: [count] items whose neighbours are shown
 *
 * Return: CLI_OK, CLI_CHECK when popularity was not beaten, CLI_DEVICE.
 */
int report_result(const struct output *out, const struct learned *l, const uint32_t *queries,
		  size_t count);

#endif
