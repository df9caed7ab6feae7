// SPDX-License-Identifier: MIT
/*
 * The verb `embeng bench`: its options. The measurements begin in run.c, so that options can
 * be read without them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/command.h"
#include "../frame/numbers.h"
#include "clock.h"
#include "run.h"

static const char doc[] =
	"Measure a device on fixed workloads and, in the same run, the limits of the memory.\v"
	"The workloads are W1 (8 tables of a million rows, dim 64, 4096 samples of 20 uniform\n"
	"ids), W2 (W1 with Zipf's law, exponent 1.05), W3 (the 26 tables of Criteo-Kaggle, dim\n"
	"128), W4 (16 million rows, dim 32, bags of 50), W5 (4 million rows, dim 128, not\n"
	"pooled), W1-zipf1.2, and W1-same (every id is the same row).\n\n"
	"The operations are fwd (lookups), train (lookups and updates), partition (making\n"
	"partitioned CSR), ring (round trips of small lookups), contend (round trips from 1, 2\n"
	"and 4 threads at once), save (the longest step while a checkpoint is saved below\n"
	"$TMPDIR or /tmp), and limits (the memory alone). --workload, --op and --optimizer may\n"
	"be repeated. The default is fwd and train of W1 with adagrad.\n\n"
	"Examples:\n"
	"  embeng bench\n"
	"  embeng bench --workload W2 --op train --optimizer adam --threads 2\n"
	"  embeng bench --op ring --op limits --json\n"
	"  embeng bench --op partition --costs --svg partition.svg\n\n"
	"A run is one pass over all batches, after one that is not counted. Its time is the\n"
	"mean time of a step. Other programs should not use the processors; a warning is\n"
	"printed if they do.\n\n"
	"Exit status: 0 measured, 2 usage or a file of --input that does not fit, 5 not enough\n"
	"memory.";

enum {
	KEY_WORKLOAD = 0x100,
	KEY_OP,
	KEY_OPTIMIZER,
	KEY_THREADS,
	KEY_RUNS,
	KEY_BATCHES,
	KEY_SCALE,
	KEY_INPUT,
	KEY_SVG,
	KEY_INDEX,
	KEY_WEIGHTS,
	KEY_COSTS,
	KEY_SEED,
	KEY_TABLES,
	KEY_ROWS,
	KEY_DIM,
	KEY_SAMPLES,
	KEY_POOL,
};

static const struct argp_option options[] = {
	{"workload", KEY_WORKLOAD, "NAME", 0, "Run this workload (W1); may be repeated", 0},
	{"op", KEY_OP, "fwd|train|partition|ring|contend|save|limits", 0,
	 "Measure this; may be repeated", 0},
	{"optimizer", KEY_OPTIMIZER, "NAME", 0,
	 "Optimizer of train: sgd, adagrad, adam or rowwise_adagrad (adagrad); may be repeated", 0},
	{"threads", KEY_THREADS, "N", 0, "Cores of the soft device, each on its own processor (1)",
	 0},
	{"runs", KEY_RUNS, "N", 0, "Number of timed runs, 5 to 101 (7)", 0},
	{"batches", KEY_BATCHES, "N", 0, "Number of different batches in a run (4)", 0},
	{"scale", KEY_SCALE, "X", 0, "Multiply rows and samples by X, above 0 and up to 1 (1)", 0},
	{"tables", KEY_TABLES, "N", 0, "Tables, up to 200, instead of the workload's", 0},
	{"rows", KEY_ROWS, "N", 0,
	 "Rows of each table, up to 1000000000, instead of the workload's", 0},
	{"dim", KEY_DIM, "N", 0, "Elements of a row, up to 4096, instead of the workload's", 0},
	{"samples", KEY_SAMPLES, "N", 0,
	 "Samples of a step, up to 1048576, instead of the workload's", 0},
	{"pool", KEY_POOL, "N", 0, "Ids of a sample, up to 4096, instead of the workload's", 0},
	{"input", KEY_INPUT, "DIR", 0, "Take ids and gradients that torch_peer.py --dump wrote", 0},
	{"index", KEY_INDEX, "int32|int64", 0, "Type of ids (int64; for partition int32)", 0},
	{"weights", KEY_WEIGHTS, NULL, 0, "Give ids weights (ids of partition always have them)",
	 0},
	{"costs", KEY_COSTS, NULL, 0, "Measure partition with each of its options, too", 0},
	{"seed", KEY_SEED, "N", 0, "Seed of the ids (20240229)", 0},
	{"svg", KEY_SVG, "FILE", 0, "Draw the time of each stage and the limit to FILE", 0},
	{"device", 'd', "DEVICE", 0,
	 "Measure this device instead of a soft device with --threads cores", 0},
	{0},
};

static const char *workload_name(size_t k)
{
	return k < BENCH_WORKLOADS ? bench_workloads[k].name : NULL;
}

static const char *op_name(size_t k)
{
	return k < bench_op_count ? bench_ops[k] : NULL;
}

static const char *optimizer_name(size_t k)
{
	return k < bench_optimizer_count ? bench_optimizers[k].name : NULL;
}

/* One more of a list of names. */
static error_t add_choice(struct argp_state *state, const char *option, const char *arg,
			  const char *(*name)(size_t k), uint32_t *chosen)
{
	char known[128] = "";

	for (size_t k = 0; name(k); k++) {
		size_t used = strlen(known);

		if (!strcmp(arg, name(k))) {
			*chosen |= 1u << k;
			return 0;
		}
		snprintf(known + used, sizeof(known) - used, "%s%s", k ? ", " : "", name(k));
	}
	argp_error(state, "--%s takes %s, not '%s'", option, known, arg);
	return EINVAL;
}

static error_t read_int_option(struct argp_state *state, const char *option, const char *arg,
			       int least, int most, int *value)
{
	int64_t n;

	if (count_read(arg, strlen(arg), least, most, &n)) {
		argp_error(state, "--%s takes a number from %d to %d, not '%s'", option, least,
			   most, arg);
		return EINVAL;
	}
	*value = (int)n;
	return 0;
}

static error_t read_scale(struct argp_state *state, const char *arg, double *scale)
{
	char *end;
	double x = strtod(arg, &end);

	if (end == arg || *end || !(x > 0 && x <= 1)) {
		argp_error(state, "--scale takes a number above 0 and at most 1, not '%s'", arg);
		return EINVAL;
	}
	*scale = x;
	return 0;
}

static error_t read_index(struct argp_state *state, const char *arg, struct bench_call *call)
{
	if (strcmp(arg, "int32") != 0 && strcmp(arg, "int64") != 0) {
		argp_error(state, "--index takes int32 or int64, not '%s'", arg);
		return EINVAL;
	}
	call->type = strcmp(arg, "int32") ? EMBENG_I64 : EMBENG_I32;
	call->type_given = true;
	return 0;
}

static error_t read_seed(struct argp_state *state, const char *arg, uint64_t *seed)
{
	int64_t n;

	if (count_read(arg, strlen(arg), 0, INT64_MAX, &n)) {
		argp_error(state, "--seed takes a number from 0, not '%s'", arg);
		return EINVAL;
	}
	*seed = (uint64_t)n;
	return 0;
}

static error_t parse_choice(int key, char *arg, struct argp_state *state)
{
	struct bench_call *call = state->input;

	switch (key) {
	case KEY_WORKLOAD:
		return add_choice(state, "workload", arg, workload_name, &call->workloads);
	case KEY_OP:
		return add_choice(state, "op", arg, op_name, &call->ops);
	case KEY_OPTIMIZER:
		return add_choice(state, "optimizer", arg, optimizer_name, &call->optimizers);
	case KEY_INPUT:
		call->input = arg;
		return 0;
	case KEY_SVG:
		call->svg = arg;
		return 0;
	case KEY_WEIGHTS:
		call->weights = true;
		return 0;
	case KEY_COSTS:
		call->costs = true;
		return 0;
	case 'd':
		call->device = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state,
			   "bench takes no argument, given '%s'; a workload goes after "
			   "--workload",
			   arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t read_shape_size(struct argp_state *state, const char *option, const char *arg,
			       int most, int64_t *value)
{
	int n = 0;
	error_t err = read_int_option(state, option, arg, 1, most, &n);

	*value = n;
	return err;
}

static error_t parse_shape(int key, char *arg, struct argp_state *state)
{
	struct bench_shape *shape = &((struct bench_call *)state->input)->shape;

	switch (key) {
	case KEY_TABLES:
		return read_int_option(state, "tables", arg, 1, BENCH_TABLES, &shape->tables);
	case KEY_ROWS:
		return read_shape_size(state, "rows", arg, 1000000000, &shape->rows);
	case KEY_DIM:
		return read_shape_size(state, "dim", arg, 4096, &shape->dim);
	case KEY_SAMPLES:
		return read_shape_size(state, "samples", arg, 1 << 20, &shape->samples);
	case KEY_POOL:
		return read_shape_size(state, "pool", arg, 4096, &shape->pool);
	default:
		return parse_choice(key, arg, state);
	}
}

static error_t parse_bench_option(int key, char *arg, struct argp_state *state)
{
	struct bench_call *call = state->input;

	switch (key) {
	case KEY_THREADS:
		return read_int_option(state, "threads", arg, 1, EMBENG_MAX_CORES, &call->threads);
	case KEY_RUNS:
		return read_int_option(state, "runs", arg, RUNS_LEAST, RUNS_MOST, &call->runs);
	case KEY_BATCHES:
		return read_int_option(state, "batches", arg, 1, BENCH_BATCHES, &call->batches);
	case KEY_SCALE:
		return read_scale(state, arg, &call->scale);
	case KEY_INDEX:
		return read_index(state, arg, call);
	case KEY_SEED:
		return read_seed(state, arg, &call->seed);
	default:
		return parse_shape(key, arg, state);
	}
}

int cmd_bench(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_bench_option, .doc = doc};
	struct output out = {.verb = "bench"};
	struct bench_call call = {
		.runs = 7, .batches = 4, .scale = 1, .type = EMBENG_I64, .seed = 20240229};
	int code = command_parse(&argp, argc, argv, &out, &call);

	if (code)
		return code;
	call.workloads = call.workloads ? call.workloads : 1;
	call.ops = call.ops ? call.ops : 1u << BENCH_FWD | 1u << BENCH_TRAIN;
	call.optimizers = call.optimizers ? call.optimizers : 1u << 1;
	return bench_run(&call, &out);
}
