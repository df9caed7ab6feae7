/* SPDX-License-Identifier: MIT */
/* The workloads of measurements, which tests/bench/torch_peer.py has as well, and their ids. */
#ifndef CLI_BENCH_WORKLOAD_H
#define CLI_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_TABLES 200

enum bench_law { LAW_UNIFORM, LAW_ZIPF, LAW_SAME };

/**
 * struct bench_workload - the lookups of one step
 * @tables: number of tables, each with one feature
 * @rows: [tables] rows of each table
 * @pool: ids in a sample
 * @pooled: the rows of a sample are summed; else each has an output of its own
 * @law: distribution of the ids
 * @exponent: exponent of Zipf's law: the share of the row of rank r is (r + 1) ^ -exponent
 */
struct bench_workload {
	const char *name;
	int tables;
	int64_t rows[BENCH_TABLES];
	int64_t dim, samples, pool;
	bool pooled;
	enum bench_law law;
	double exponent;
};

#define BENCH_WORKLOADS 7

extern const struct bench_workload bench_workloads[BENCH_WORKLOADS];

/* Index of the workload with this name, or -1. */
int bench_workload_find(const char *name);

/* The workload with rows, at least 1, and samples, a multiple of 8, multiplied by @scale. */
struct bench_workload bench_workload_scaled(const struct bench_workload *workload, double scale);

/* Changes to a workload. A member that is 0 changes nothing. */
struct bench_shape {
	int tables;
	int64_t rows, dim, samples, pool;
};

/* The workload in another shape, then named "shaped". @shape->rows is for each table. */
struct bench_workload bench_workload_shaped(const struct bench_workload *workload,
					    const struct bench_shape *shape);

/* Number of ids in a step, for one table and for all tables. */
size_t bench_table_ids(const struct bench_workload *workload);
uint64_t bench_step_ids(const struct bench_workload *workload);

/* Number of a feature's outputs, and of the floats in its activations or gradients. */
size_t bench_bags(const struct bench_workload *workload);
size_t bench_elements(const struct bench_workload *workload);

/**
 * bench_draw() - draw ids by a workload's distribution
 * @ids: [count] set to row numbers of @table
 *
 * The ids depend only on workload, table, batch and seed.
 */
void bench_draw(const struct bench_workload *workload, int table, int batch, uint64_t seed,
		int64_t *ids, size_t count);

/* Draws numbers in [0, 1), which depend only on seed and stream. */
void bench_draw_floats(uint64_t seed, uint64_t stream, float *values, size_t count);

/**
 * bench_zipf_rank() - draw a rank from 0 to @rows - 1 by the truncated law of Zipf
 * @uniform: returns another number in [0, 1) on each call
 */
int64_t bench_zipf_rank(int64_t rows, double exponent, double (*uniform)(void *arg), void *arg);

#endif
