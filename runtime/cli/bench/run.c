// SPDX-License-Identifier: MIT
/*
 * Runs all that a call of `embeng bench` asks for, one after another, and reports it. It decides
 * which device, threads and limits the measurements get.
 *
 * Inputs and results live for one call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../device/device.h"
#include "../frame/exit.h"
#include "../frame/transfer.h"
#include "measure.h"
#include "report.h"
#include "run.h"

/* How long others are watched. */
#define WATCH_MS 300

static bool wants_op(const struct bench_call *call, enum bench_op op)
{
	return call->ops >> op & 1;
}

static uint64_t count_workload_bytes(const struct bench_workload *w)
{
	uint64_t rows = 0;

	for (int t = 0; t < w->tables; t++)
		rows += (uint64_t)w->rows[t];
	return rows * (uint64_t)w->dim * sizeof(float);
}

/* Before an engine is open, so that the two are never in memory at once. */
static int measure_limits(struct bench_job *job)
{
	const struct bench_call *call = job->call;
	struct bench_limits *l = &job->results->limits[job->results->limit_count];
	uint64_t available = machine_memory_available();
	char needed[BYTES_TEXT], there[BYTES_TEXT];
	int err;

	*l = (struct bench_limits){.row_bytes = (size_t)job->workload->dim * sizeof(float),
				   .table_bytes = count_workload_bytes(job->workload),
				   .threads = call->threads};
	if (l->table_bytes > available)
		return output_fail(job->out, CLI_BUSY, ENOSPC,
				   "--scale 0.1 makes the workload a tenth as large",
				   "%s needs %s of memory, %s are available", job->workload->name,
				   bytes_text(l->table_bytes, needed),
				   bytes_text(available, there));
	err = bench_limits_measure(l, call->cpus, call->cpu_count, call->runs, call->scale);
	if (err)
		return output_fail(job->out, exit_of_errno(err), err, NULL,
				   "the limits of the memory cannot be measured: %s",
				   strerror(-err));
	job->results->limit_count++;
	job->limits = l;
	return 0;
}

static int measure_steps(const struct bench_job *job)
{
	const struct bench_call *call = job->call;
	int code = wants_op(call, BENCH_FWD) ? bench_lookups(job) : 0;

	for (size_t k = 0; !code && k < bench_optimizer_count; k++)
		if (wants_op(call, BENCH_TRAIN) && call->optimizers >> k & 1)
			code = bench_training(job, &bench_optimizers[k]);
	for (size_t k = 0; !code && k < bench_optimizer_count; k++)
		if (wants_op(call, BENCH_SAVE) && call->optimizers >> k & 1)
			code = bench_saves(job, &bench_optimizers[k]);
	if (!code && wants_op(call, BENCH_RING))
		code = bench_rings(job);
	if (!code && wants_op(call, BENCH_CONTEND))
		code = bench_contention(job);
	return code;
}

/* Runs the part of a job that has one kind of input. */
static int with_input(struct bench_job *job, enum embeng_id_type type, bool weights,
		      int (*measure)(const struct bench_job *job))
{
	const struct bench_source source = {.folder = job->call->input,
					    .type = type,
					    .batches = job->call->batches,
					    .weights = weights,
					    .seed = job->call->seed};
	struct bench_input *input = malloc(sizeof(*input));
	int code;

	if (!input)
		return output_fail(job->out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	code = bench_input_make(input, job->workload, &source, job->out);
	if (!code) {
		job->input = input;
		job->unique = bench_unique(input, job->workload);
		code = measure(job);
		bench_input_free(input);
	}
	free(input);
	return code;
}

/* SparseCores take 32-bit ids with weights. */
static int run_workload(struct bench_job *job)
{
	const struct bench_call *call = job->call;
	int code = measure_limits(job);

	if (!code && call->ops & (1u << BENCH_FWD | 1u << BENCH_TRAIN | 1u << BENCH_RING |
				  1u << BENCH_CONTEND | 1u << BENCH_SAVE))
		code = with_input(job, call->type, call->weights, measure_steps);
	if (!code && wants_op(call, BENCH_PARTITION))
		code = with_input(job, call->type_given ? call->type : EMBENG_I32, true,
				  bench_partitions);
	return code;
}

static int run_workloads(struct bench_call *call, struct bench_results *results,
			 const struct output *out)
{
	int code = 0;

	for (size_t k = 0; !code && k < BENCH_WORKLOADS; k++) {
		const struct bench_workload scaled = bench_workload_scaled(&bench_workloads[k],
									   call->scale);
		const struct bench_workload w = bench_workload_shaped(&scaled, &call->shape);
		struct bench_job job = {
			.call = call, .workload = &w, .results = results, .out = out};

		if (call->workloads >> k & 1)
			code = run_workload(&job);
	}
	return code;
}

static int report_results(const struct bench_call *call, const struct bench_results *results,
			  const struct output *out)
{
	int err = call->svg ? bench_draw_svg(call->svg, results) : 0;

	if (err)
		return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", call->svg,
				   strerror(-err));
	if (out->json)
		return json_emit(bench_document(call, results, out));
	bench_print(call, results);
	return CLI_OK;
}

/* Without a device named, a soft one of so many threads is opened. */
static int take_threads(struct bench_call *call, const struct embeng_device_info *info,
			const struct output *out)
{
	bool soft = !strcmp(info->kind, "soft");

	if (!call->device) {
		call->threads = call->threads ? call->threads : 1;
		call->cores = (uint32_t)call->threads;
		return 0;
	}
	call->cores = info->cores;
	call->step_depth = info->step_depth;
	if (soft && call->threads && (uint32_t)call->threads != info->cores)
		return output_fail(out, CLI_USAGE, EINVAL,
				   "Leave --threads out, or name the cores: -d soft:cores=N",
				   "--threads %d, but the device %s has %u cores", call->threads,
				   info->name, info->cores);
	if (!call->threads)
		call->threads = soft ? (int)info->cores : 1;
	return 0;
}

/* A soft device whose cores nobody named has as many as there are threads asked for. */
static const char *with_cores(struct bench_call *call, const char *device)
{
	const char *options = device + strlen("soft"), *before = ":";
	int length;

	if (!call->threads || strncmp(device, "soft", strlen("soft")) ||
	    (*options && *options != ':') || strstr(options, "cores="))
		return device;
	if (*options)
		before = options[1] ? "," : "";
	length = snprintf(call->named, sizeof(call->named), "%s%scores=%d", device, before,
			  call->threads);
	return length < (int)sizeof(call->named) ? call->named : device;
}

/* A device that is named has its cores itself: the limits and the plan are to be of as many. */
static int take_device(struct bench_call *call, const struct output *out)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	const char *given = call->device, *named = device_choose(given);
	int err = 0;

	if (named) {
		call->device = with_cores(call, named);
		/* If the name is from the environment, the library says so in its errors. */
		err = embeng_device_info(call->device == named ? given : call->device, &info);
	}
	if (err)
		return output_library_failure(out, err, device_hint);
	return take_threads(call, &info, out);
}

int bench_run(struct bench_call *call, const struct output *out)
{
	struct bench_results results = {0};
	int code = take_device(call, out);

	if (code)
		return code;
	call->cpu_count = machine_cpus(call->cpus);
	if (!call->cpu_count)
		return output_fail(out, CLI_DEVICE, EIO, NULL,
				   "the system does not tell which processors may be used");
	call->busy = machine_busy(WATCH_MS);
	machine_pin(call->cpus, 1);
	code = run_workloads(call, &results, out);
	machine_pin(call->cpus, call->cpu_count);
	if (!code)
		code = report_results(call, &results, out);
	free(results.items);
	return code;
}
