/* SPDX-License-Identifier: MIT */
/* The workloads that are measured, those of tests/bench/torch_peer.py, and ids by their laws. */
#ifndef CLI_BENCH_WORKLOAD_H
#define CLI_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_TABLES 200

enum bench_law { LAW_UNIFORM, LAW_ZIPF, LAW_SAME };

/**
 * struct bench_workload - what one step looks up
 * @tables: each with one feature
 * @rows: [tables]
 * @pool: ids of a sample
 * @pooled: they are summed; else each has its own output
 * @law: of the ids
 * @exponent: of Zipf's law: the row of rank r has a share of (r + 1) ^ -exponent
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

/* Index of a name, or -1. */
int bench_workload_find(const char *name);

/* With rows and samples multiplied by @scale: rows from one, samples a multiple of 8. */
struct bench_workload bench_workload_scaled(const struct bench_workload *workload, double scale);

/* What of a workload is to be otherwise; 0: as it is. */
struct bench_shape {
	int tables;
	int64_t rows, dim, samples, pool;
};

/* The workload in another shape, named "shaped" if it has one; @shape's rows are of each table. */
struct bench_workload bench_workload_shaped(const struct bench_workload *workload,
					    const struct bench_shape *shape);

/* Ids of a table and step; and of all tables. */
size_t bench_table_ids(const struct bench_workload *workload);
uint64_t bench_step_ids(const struct bench_workload *workload);

/* Outputs of a feature; and elements of its activations and of their gradients. */
size_t bench_bags(const struct bench_workload *workload);
size_t bench_elements(const struct bench_workload *workload);

/**
 * bench_draw() - ids by a workload's law
 * @ids: out, [count], within the rows of @table
 *
 * The same ids for the same workload, table, batch and seed.
 */
void bench_draw(const struct bench_workload *workload, int table, int batch, uint64_t seed,
		int64_t *ids, size_t count);

/* Numbers within [0, 1), likewise. */
void bench_draw_floats(uint64_t seed, uint64_t stream, float *values, size_t count);

/**
 * bench_zipf_rank() - a rank from 0 to @rows - 1 by the truncated law of Zipf
 * @uniform: [0, 1) numbers, one a call
 */
int64_t bench_zipf_rank(int64_t rows, double exponent, double (*uniform)(void *arg), void *arg);

#endif
