/* SPDX-License-Identifier: MIT */
/* Measures which way of fetching rows ahead is the fastest on this machine. */
#ifndef CLI_TUNE_MEASURE_H
#define CLI_TUNE_MEASURE_H

#include "../../src/host/tune_file.h"

struct kernel_ops;

enum tune_kind { TUNE_NEAR_LOOKUP, TUNE_NEAR_UPDATE, TUNE_FAR_LOOKUP, TUNE_FAR_UPDATE, TUNE_KINDS };

#define TUNE_TRIALS 8

/**
 * struct tune_trial - a way that was tried
 * @ns: for one row, the median over all tables of the fastest pass over each
 */
struct tune_trial {
	struct fetch_way way;
	double ns;
};

/**
 * struct tune_found - the ways that were tried for lookups or updates of small or large models
 * @trials: [@count]; the first is what a device takes when there is no tune file
 * @best: index of the one to take
 */
struct tune_found {
	struct tune_trial trials[TUNE_TRIALS];
	int count, best;
};

/* Called before each pass over a table; @done and @all count passes. */
typedef void tune_progress_fn(void *arg, enum tune_kind kind, int done, int all);

/* Bytes of memory that tune_measure() takes at once, at most. */
#define TUNE_MEMORY_BYTES (600ull << 20)

/**
 * tune_measure() - measure all kinds of enum tune_kind
 * @kernels: kernel variant to measure
 * @plan: the plan of a device without a tune file; it stays unless another is worth the change
 * @found: [TUNE_KINDS], filled
 *
 * Takes a few seconds, on the calling thread, which had better stay on one processor.
 *
 * Return: 0 or -ENOMEM.
 */
int tune_measure(const struct kernel_ops *kernels, const struct fetch_plan *plan,
		 struct tune_found *found, tune_progress_fn *progress, void *arg);

#endif
