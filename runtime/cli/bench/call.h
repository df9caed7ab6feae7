/* SPDX-License-Identifier: MIT */
/* What `embeng bench` was asked for. */
#ifndef CLI_BENCH_CALL_H
#define CLI_BENCH_CALL_H

#include "embeng.h"

#include "../frame/machine.h"
#include "input.h"

enum bench_op {
	BENCH_FWD,
	BENCH_TRAIN,
	BENCH_PARTITION,
	BENCH_RING,
	BENCH_CONTEND,
	BENCH_LIMITS
};

/* Of commands of a ring, whose times are microseconds. */
static inline bool bench_op_is_small(enum bench_op op)
{
	return op == BENCH_RING || op == BENCH_CONTEND;
}

struct bench_optimizer {
	const char *name;
	struct embeng_optimizer (*make)(float learning_rate);
	float learning_rate;
};

extern const char *const bench_ops[];
extern const size_t bench_op_count;
extern const struct bench_optimizer bench_optimizers[];
extern const size_t bench_optimizer_count;

/**
 * struct bench_call - a verb's arguments
 * @workloads: bits, by index
 * @ops: so
 * @optimizers: so
 * @threads: at the memory's limits, as many as a soft device has cores; 0: not given
 * @cores: of the device
 * @step_depth: so, 0: what a soft one has
 * @shape: other than the workloads'
 * @device: instead of the soft device, or NULL
 * @named: where @device may stand
 * @type: of drawn ids
 * @type_given: else ids of partitions have 32 bits, others 64
 * @costs: each option of partitions, too
 * @cpus: [@cpu_count] that this process may use
 * @busy: share of the processors that others used when it began, -1: not known
 */
struct bench_call {
	uint32_t workloads, ops, optimizers, cores, step_depth;
	int threads, runs, batches;
	double scale;
	struct bench_shape shape;
	const char *input, *device, *svg;
	char named[256];
	enum embeng_id_type type;
	bool type_given, weights, costs;
	uint64_t seed;
	int cpus[MACHINE_CPUS], cpu_count;
	double busy;
};

#endif
