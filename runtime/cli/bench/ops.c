// SPDX-License-Identifier: MIT
/*
 * The names of the operations and of the optimizers that a benchmark can measure, for the options
 * that choose them and the reports that name them.
 */
#include "call.h"

const char *const bench_ops[] = {
	[BENCH_FWD] = "fwd",	   [BENCH_TRAIN] = "train",	[BENCH_PARTITION] = "partition",
	[BENCH_RING] = "ring",	   [BENCH_CONTEND] = "contend", [BENCH_SAVE] = "save",
	[BENCH_LIMITS] = "limits",
};
const size_t bench_op_count = sizeof(bench_ops) / sizeof(bench_ops[0]);

const struct bench_optimizer bench_optimizers[] = {
	{"sgd", embeng_sgd, 0.01f},
	{"adagrad", embeng_adagrad, 0.01f},
	{"adam", embeng_adam, 0.001f},
	{"rowwise_adagrad", embeng_rowwise_adagrad, 0.01f},
};
const size_t bench_optimizer_count = sizeof(bench_optimizers) / sizeof(bench_optimizers[0]);
