/* SPDX-License-Identifier: MIT */
/* The ids, weights and gradients of some steps, drawn or read. */
#ifndef CLI_BENCH_INPUT_H
#define CLI_BENCH_INPUT_H

#include "embeng.h"

#include "../frame/output.h"
#include "workload.h"

#define BENCH_BATCHES 64

/**
 * struct bench_column - input of one feature in one step
 * @ids: [bench_table_ids()] ids of the input's type
 * @splits: [bench_bags() + 1] row splits
 * @weights: [bench_table_ids()] weights, or NULL
 */
struct bench_column {
	void *ids;
	int64_t *splits;
	float *weights;
};

/**
 * struct bench_input - input of all steps
 * @columns: [batches][tables] inputs
 * @gradient: [bench_elements()] gradients, which all features share
 * @blocks: allocations, which the columns point into
 */
struct bench_input {
	enum embeng_id_type type;
	int batches;
	struct bench_column columns[BENCH_BATCHES][BENCH_TABLES];
	float *gradient;
	void **blocks;
	size_t block_count;
};

/**
 * struct bench_source - origin of the input
 * @folder: folder that tests/bench/torch_peer.py --dump wrote; NULL: the input is drawn
 * @type: type of drawn ids; that of read ones follows from the files' lengths
 * @batches: most batches to make
 * @weights: draw weights if the folder has none; weights in the folder are always used
 */
struct bench_source {
	const char *folder;
	enum embeng_id_type type;
	int batches;
	bool weights;
	uint64_t seed;
};

/* Makes the input. Return: 0, or an exit code after a reported failure, with nothing to free. */
int bench_input_make(struct bench_input *input, const struct bench_workload *workload,
		     const struct bench_source *source, const struct output *out);
void bench_input_free(struct bench_input *input);

/* Allocates zeroed memory that is freed with the input. Return: NULL without memory. */
void *bench_input_block(struct bench_input *input, size_t count, size_t width);

/* input_read.c: bench_input_make() for a folder. */
int bench_input_read(struct bench_input *input, const struct bench_workload *workload,
		     const struct bench_source *source, const struct output *out);

size_t bench_id_width(enum embeng_id_type type);

/* Fills @splits, [bench_bags() + 1], with bags of equal length. */
void bench_even_splits(const struct bench_workload *workload, int64_t *splits);

/* The k-th id of a column, of either type. */
int64_t bench_id(const struct bench_input *input, const struct bench_column *column, size_t k);

/* Number of different rows that a step looks up, as mean over the steps; -1: out of memory. */
double bench_unique(const struct bench_input *input, const struct bench_workload *workload);

#endif
