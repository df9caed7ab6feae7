// SPDX-License-Identifier: MIT
/*
 * Measures partitioned CSR over 64 cores, 4 of them the device's, each table as a stack of its own,
 * and the cost of some options.
 *
 * The results of a call go into arrays that live for one measurement.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../frame/exit.h"
#include "engine.h"
#include "measure.h"
#include "embeng/partition.h"

enum { GRID = 64, CORES = 4 };

/**
 * struct variant - one way to partition
 * @copied: the arrays lie outside the engine's buffers
 * @stacked: all tables in one call, as one stack
 */
struct variant {
	const char *name;
	bool unweighted, silent, mean, copied, stacked;
	struct embeng_partition_options options;
};

/* Row pointers are packed, so that a buffer is as long as its ids and not as a limit. */
#define OPTIONS(...) \
	{.size = sizeof(struct embeng_partition_options), \
	 .sparse_cores = GRID, \
	 .cores_per_device = CORES, \
	 __VA_ARGS__}

static const struct variant plain_variant = {"weights and statistics",
					     .options = OPTIONS(.flavour = EMBENG_PARTITION_TF)};

static const struct variant cost_variants[] = {
	{"without weights", .unweighted = true, .options = OPTIONS(.flavour = EMBENG_PARTITION_TF)},
	{"without weights and statistics", .unweighted = true, .silent = true,
	 .options = OPTIONS(.flavour = EMBENG_PARTITION_TF)},
	{"mean", .mean = true, .options = OPTIONS(.flavour = EMBENG_PARTITION_TF)},
	{"jax", .options = OPTIONS(.flavour = EMBENG_PARTITION_JAX)},
	{"output copied", .copied = true, .options = OPTIONS(.flavour = EMBENG_PARTITION_TF)},
	{"all tables stacked", .stacked = true, .options = OPTIONS(.flavour = EMBENG_PARTITION_TF)},
	{"dropping, jax, limit 300",
	 .options = OPTIONS(.flavour = EMBENG_PARTITION_JAX, .allow_id_dropping = 1,
			    .max_ids_per_partition = 300)},
	{"minibatches, div, limit 200",
	 .options = OPTIONS(.flavour = EMBENG_PARTITION_TF, .minibatching = 1,
			    .max_ids_per_partition = 200)},
	{"minibatches, hash, limit 200",
	 .options = OPTIONS(.flavour = EMBENG_PARTITION_TF, .minibatching = 1,
			    .max_ids_per_partition = 200, .bucket = EMBENG_PARTITION_BUCKET_HASH)},
};

/* Where the results go. */
struct csr {
	struct embeng_partitioned out;
	uint32_t max_ids[GRID], max_unique[GRID];
	uint64_t required[CORES], first[CORES], end[CORES];
	bool copied;
};

static int add_to_batch(struct bench_engine *b, const struct variant *v, int which, int table)
{
	int err = 0;

	embeng_batch_reset(b->batch, EMBENG_INFERENCE);
	for (int t = v->stacked ? 0 : table; !err && t <= table; t++)
		err = bench_engine_add(b, which, t);
	return err;
}

static void *alloc_array(struct bench_engine *b, bool copied, size_t elements)
{
	return copied ? calloc(elements, 4) : embeng_buffer_alloc(b->e, elements * 4);
}

/* As large as any of the calls needs. */
static int find_room(struct bench_engine *b, const struct variant *v, struct csr *csr)
{
	int tables = b->workload->tables, err = 0;

	for (int k = 0; !err && k < b->input.batches * tables; k++) {
		size_t pointers, items;

		err = add_to_batch(b, v, k / tables, k % tables);
		err = err ? err : embeng_partition_room(b->batch, &v->options, &pointers, &items);
		if (err)
			break;
		if (pointers > csr->out.row_pointer_capacity)
			csr->out.row_pointer_capacity = pointers;
		if (items > csr->out.capacity)
			csr->out.capacity = items;
	}
	return err;
}

static int csr_make(struct bench_engine *b, const struct variant *v, struct csr *csr)
{
	struct embeng_partitioned *out = &csr->out;
	int err;

	*csr = (struct csr){.out.size = sizeof(*out), .copied = v->copied};
	err = find_room(b, v, csr);
	if (err)
		return err;
	out->row_pointers = alloc_array(b, v->copied, out->row_pointer_capacity);
	out->token_ids = alloc_array(b, v->copied, out->capacity);
	out->sample_ids = alloc_array(b, v->copied, out->capacity);
	out->gains = alloc_array(b, v->copied, out->capacity);
	if (!v->silent) {
		out->max_ids = csr->max_ids;
		out->max_unique_ids = csr->max_unique;
		out->required_buffer = csr->required;
		out->core_first = csr->first;
		out->core_end = csr->end;
	}
	return out->row_pointers && out->token_ids && out->sample_ids && out->gains ? 0 : -ENOMEM;
}

/* Arrays in buffers go with the engine. */
static void csr_free(struct csr *csr)
{
	if (!csr->copied)
		return;
	free(csr->out.row_pointers);
	free(csr->out.token_ids);
	free(csr->out.sample_ids);
	free(csr->out.gains);
}

/* All tables of all batches, milliseconds a batch. */
static int run_partition_pass(struct bench_engine *b, const struct variant *v, struct csr *csr,
			      double *ms)
{
	double began = now_ms();
	int last = b->workload->tables - 1, err = 0;

	for (int i = 0; !err && i < b->input.batches; i++) {
		for (int t = v->stacked ? last : 0; !err && t <= last; t++) {
			err = add_to_batch(b, v, i, t);
			err = err ? err : embeng_partition(b->e, b->batch, &v->options, &csr->out);
		}
	}
	*ms = (now_ms() - began) / b->input.batches;
	return err;
}

static int time_partition_passes(struct bench_engine *b, const struct variant *v,
				 struct bench_result *r)
{
	struct csr csr;
	int err = csr_make(b, v, &csr);

	err = err ? err : run_partition_pass(b, v, &csr, &r->run_ms[0]);
	err = err ? err : bench_engine_start(b);
	for (int k = 0; !err && k < r->runs; k++)
		err = run_partition_pass(b, v, &csr, &r->run_ms[k]);
	err = err ? err : bench_engine_count(b, r, r->runs * b->input.batches);
	err = err ? err : bench_engine_finish(b, r);
	if (!err)
		bench_result_finish(r);
	r->partition.sparse_cores = GRID;
	r->partition.cores_per_device = CORES;
	r->partition.minibatches = csr.out.minibatches;
	r->partition.dropped_ids = csr.out.dropped_ids;
	csr_free(&csr);
	return err;
}

/* Tables are not read, so that they need not be large. */
static int measure_variant(const struct bench_job *job, const struct variant *v)
{
	struct bench_workload narrow = *job->workload;
	struct bench_setup setup = {.call = job->call,
				    .workload = &narrow,
				    .input = job->input,
				    .unweighted = v->unweighted,
				    .combiner = v->mean ? EMBENG_MEAN : EMBENG_SUM};
	struct bench_result *r;
	struct bench_engine b;
	int err, code;

	narrow.dim = 1;
	code = bench_job_open(job, &setup, BENCH_PARTITION, &b, &r);
	if (code)
		return code;
	r->workload = *job->workload;
	snprintf(r->detail, sizeof(r->detail), "%s", v->name);
	err = time_partition_passes(&b, v, r);
	code = err ? output_library_failure(job->out, err, NULL) : 0;
	bench_engine_close(&b);
	return code;
}

int bench_partitions(const struct bench_job *job)
{
	size_t count = job->call->costs ? sizeof(cost_variants) / sizeof(cost_variants[0]) : 0;
	int code = measure_variant(job, &plain_variant);

	for (size_t i = 0; !code && i < count; i++)
		code = measure_variant(job, &cost_variants[i]);
	return code;
}
