/* SPDX-License-Identifier: MIT */
/* The arguments of `embeng bench`. */
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
	BENCH_SAVE,
	BENCH_LIMITS,
};

/* True if the operation is a few commands on a ring, whose times are given in microseconds. */
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
 * struct bench_call - arguments of `embeng bench`
 * @workloads: bits of the workloads to run, by index
 * @ops: bits of the operations to run
 * @optimizers: bits of the optimizers to run
 * @threads: threads that measure the memory's limits, as many as a soft device has cores; 0: not
 *	given
 * @cores: cores of the device
 * @step_depth: step depth of the device, 0: that of a soft device
 * @shape: shape to use instead of the workloads' own
 * @device: name of a device to use instead of the soft device, or NULL
 * @named: memory for the text of @device
 * @type: type of drawn ids
 * @type_given: @type is set; else ids of partitions have 32 bits, and others 64
 * @costs: measure each option of partitions by itself, too
 * @cpus: [@cpu_count] processors that this process may use
 * @busy: share of the processors that other processes used at the start, -1: not known
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
