/* SPDX-License-Identifier: MIT */
/* The ids, weights and gradients of some steps, drawn or read. */
#ifndef CLI_BENCH_INPUT_H
#define CLI_BENCH_INPUT_H

#include "embeng.h"

#include "../frame/output.h"
#include "workload.h"

#define BENCH_BATCHES 64

/**
 * struct bench_column - what one feature gets in one step
 * @ids: [bench_table_ids()] of the input's type
 * @splits: [bench_bags() + 1]
 * @weights: [bench_table_ids()] or NULL
 */
struct bench_column {
	void *ids;
	int64_t *splits;
	float *weights;
};

/**
 * struct bench_input - of all steps
 * @columns: [batches][tables]
 * @gradient: [bench_elements()], the same for each feature
 * @blocks: what is freed; the columns point into them
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
 * struct bench_source - where it comes from
 * @folder: what tests/bench/torch_peer.py --dump wrote, or NULL: drawn
 * @type: of drawn ids; read ones are what the files' lengths say
 * @batches: at most so many
 * @weights: drawn ones where the folder has none; what it has is used in any case
 */
struct bench_source {
	const char *folder;
	enum embeng_id_type type;
	int batches;
	bool weights;
	uint64_t seed;
};

/* 0, or an exit code: the failure is reported, and @input needs no freeing. */
int bench_input_make(struct bench_input *input, const struct bench_workload *workload,
		     const struct bench_source *source, const struct output *out);
void bench_input_free(struct bench_input *input);

/* Zeroed memory that goes with the input, or NULL. */
void *bench_input_block(struct bench_input *input, size_t count, size_t width);

/* input_read.c: bench_input_make() of a folder. */
int bench_input_read(struct bench_input *input, const struct bench_workload *workload,
		     const struct bench_source *source, const struct output *out);

size_t bench_id_width(enum embeng_id_type type);

/* Bags of equal length. @splits: out, [bench_bags() + 1] */
void bench_even_splits(const struct bench_workload *workload, int64_t *splits);

/* The id at a place, whatever the type. */
int64_t bench_id(const struct bench_input *input, const struct bench_column *column, size_t k);

/* Different rows that one step looks up, the mean over the steps; -1: out of memory. */
double bench_unique(const struct bench_input *input, const struct bench_workload *workload);

#endif
