/* SPDX-License-Identifier: MIT */
/* The operations that are measured, each after a pass that is not counted. */
#ifndef CLI_BENCH_MEASURE_H
#define CLI_BENCH_MEASURE_H

#include "call.h"
#include "result.h"

/**
 * struct bench_job - the part of a call for one workload
 * @limits: limits for rows of this workload
 * @unique: different rows of a step
 */
struct bench_job {
	const struct bench_call *call;
	const struct bench_workload *workload;
	const struct bench_input *input;
	const struct bench_limits *limits;
	double unique;
	struct bench_results *results;
	const struct output *out;
};

/* Each adds its results. Return: 0, or an exit code after the failure was reported. */
int bench_lookups(const struct bench_job *job);
int bench_training(const struct bench_job *job, const struct bench_optimizer *optimizer);
int bench_partitions(const struct bench_job *job);
int bench_rings(const struct bench_job *job);
int bench_contention(const struct bench_job *job);
int bench_saves(const struct bench_job *job, const struct bench_optimizer *optimizer);

#endif
