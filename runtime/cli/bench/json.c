// SPDX-License-Identifier: MIT
/*
 * Writes the results of a benchmark as a JSON document (embeng.bench/1) with every number that a
 * ratio is made of. The text for people is in report.c.
 */
#include <string.h>

#include "embeng.h"
#include "../../src/host/processor.h"
#include "report.h"

static void add_bool(struct json_object *to, const char *key, bool value)
{
	json_object_object_add(to, key, json_object_new_boolean(value));
}

static void add_spread(struct json_object *to, const char *key, struct spread s, double unit)
{
	struct json_object *o = json_object_new_object();

	json_add_float(o, "min", s.min / unit);
	json_add_float(o, "median", s.median / unit);
	json_add_float(o, "max", s.max / unit);
	json_object_object_add(to, key, o);
}

static struct json_object *document_limits(const struct bench_limits *l)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "row_bytes", l->row_bytes);
	json_add_number(o, "table_bytes", l->table_bytes);
	json_add_number(o, "threads", (uint64_t)l->threads);
	json_add_text(o, "vectors", l->vectors);
	json_add_text(o, "gather_cache", memory_fetch_name(l->gather_fetch));
	json_add_number(o, "gather_ahead", l->gather_ahead);
	json_add_text(o, "rmw_cache", memory_fetch_name(l->rmw_fetch));
	json_add_number(o, "rmw_ahead", l->rmw_ahead);
	add_spread(o, "gather_rows_per_s", l->gather, 1);
	add_spread(o, "rmw_rows_per_s", l->rmw, 1);
	add_spread(o, "stream_bytes_per_s", l->stream, 1);
	if (l->paired) {
		add_spread(o, "cache_line_us", l->cache_line_us, 1);
		add_spread(o, "futex_us", l->futex_us, 1);
	}
	return o;
}

static struct json_object *document_stages(const struct bench_result *r)
{
	struct json_object *o = json_object_new_object();

	for (int s = 0; s < BENCH_STAGES; s++)
		json_add_float(o, bench_stage_names[s], r->stage_ms[s]);
	return o;
}

static struct json_object *document_shape(const struct bench_workload *w)
{
	struct json_object *o = json_object_new_object(), *rows = json_object_new_array();

	for (int t = 0; t < w->tables; t++)
		json_object_array_add(rows, json_object_new_int64(w->rows[t]));
	json_object_object_add(o, "rows", rows);
	json_add_number(o, "dim", (uint64_t)w->dim);
	json_add_number(o, "samples", (uint64_t)w->samples);
	json_add_number(o, "ids_per_sample", (uint64_t)w->pool);
	add_bool(o, "pooled", w->pooled);
	return o;
}

static struct json_object *document_memory(const struct bench_result *r)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "table_bytes", r->held.table_bytes);
	json_add_number(o, "buffer_bytes", r->held.buffer_bytes);
	json_add_number(o, "engine_bytes", r->held.engine_bytes);
	json_add_number(o, "planned_bytes", r->planned_bytes);
	return o;
}

/* @quiet_ms: a step without a save */
static void add_saves(struct json_object *o, const struct bench_saves *saves, int runs,
		      double quiet_ms)
{
	double values[RUNS_MOST];

	memcpy(values, saves->beside_ms, sizeof(values));
	add_spread(o, "median_step_ms", spread_of(values, runs), 1);
	memcpy(values, saves->longest_ms, sizeof(values));
	add_spread(o, "longest_step_ms", spread_of(values, runs), 1);
	add_spread(o, "longest_step_ratio", spread_of(values, runs), quiet_ms);
	memcpy(values, saves->run_ms, sizeof(values));
	add_spread(o, "save_ms", spread_of(values, runs), 1);
	json_add_number(o, "bytes", saves->bytes);
	json_add_number(o, "rows", saves->rows);
}

static struct json_object *document_saves(const struct bench_result *r)
{
	struct json_object *o = json_object_new_object(), *delta = json_object_new_object();
	double quiet = r->save.quiet_ms.median;

	add_spread(o, "quiet_step_ms", r->save.quiet_ms, 1);
	json_add_number(o, "files", r->save.files);
	add_saves(o, &r->save.full, r->runs, quiet);
	add_saves(delta, &r->save.delta, r->runs, quiet);
	json_add_number(delta, "deltas", (uint64_t)r->save.delta.deltas);
	json_object_object_add(o, "delta", delta);
	return o;
}

static void add_op_members(struct json_object *o, const struct bench_result *r)
{
	if (r->op == BENCH_CONTEND)
		json_add_number(o, "producers", (uint64_t)r->commands);
	if (bench_op_is_small(r->op)) {
		json_add_text(o, "command", r->detail);
		json_add_number(o, "commands_per_step", (uint64_t)r->commands);
		json_add_number(o, "in_flight", (uint64_t)r->in_flight);
		json_add_text(o, "wait", r->waiting ? "waiting" : "polled");
		add_spread(o, "us_per_command", r->step_ms, 1e-3 * r->commands);
		json_add_float(o, "engine_us_per_command", r->direct_us);
	}
	if (r->op == BENCH_SAVE)
		json_object_object_add(o, "save", document_saves(r));
	if (r->op == BENCH_PARTITION) {
		json_add_text(o, "partition", r->detail);
		json_add_number(o, "sparse_cores", r->partition.sparse_cores);
		json_add_number(o, "cores_per_device", r->partition.cores_per_device);
		json_add_number(o, "minibatches", r->partition.minibatches);
		json_add_number(o, "dropped_ids", r->partition.dropped_ids);
	}
	if (r->limit_ms > 0) {
		json_add_float(o, "limit_ms", r->limit_ms);
		json_add_float(o, "of_limit", r->limit_ms / r->step_ms.median);
	}
}

static void add_numbers(struct json_object *o, const struct bench_result *r)
{
	struct json_object *runs = json_object_new_array();

	for (int k = 0; k < r->runs; k++)
		json_object_array_add(runs, json_float(r->run_ms[k]));
	add_spread(o, "step_ms", r->step_ms, 1);
	json_object_object_add(o, "run_ms", runs);
	json_add_number(o, "ids_per_step", r->ids_per_step);
	if (!bench_op_is_small(r->op))
		json_add_float(o, "unique_per_step", r->unique_per_step);
	if (r->ids_per_step)
		json_add_float(o, "ids_per_s", bench_ids_per_second(r));
	json_add_number(o, "row_bytes", (uint64_t)r->workload.dim * sizeof(float));
	json_add_number(o, "slots", r->slots);
	json_object_object_add(o, "stage_ms", document_stages(r));
	json_add_float(o, "copied_bytes_per_step", r->copied_bytes);
	json_object_object_add(o, "memory", document_memory(r));
}

static struct json_object *document_result(const struct bench_call *call,
					   const struct bench_result *r)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "workload", r->workload.name);
	json_add_text(o, "op", bench_ops[r->op]);
	json_add_text(o, "optimizer", r->optimizer);
	json_add_number(o, "threads", (uint64_t)r->threads);
	json_add_float(o, "scale", call->scale);
	json_add_text(o, "device", r->device.name);
	json_add_text(o, "variant", r->device.variant);
	json_add_text(o, "fetch", r->device.fetch);
	json_add_text(o, "input", r->input);
	json_add_text(o, "id_type", r->type == EMBENG_I32 ? "int32" : "int64");
	add_bool(o, "weights", r->weights);
	json_add_number(o, "runs", (uint64_t)r->runs);
	json_add_number(o, "batches", (uint64_t)r->batches);
	json_object_object_add(o, "shape", document_shape(&r->workload));
	add_numbers(o, r);
	add_op_members(o, r);
	json_object_object_add(o, "limits", document_limits(&r->limits));
	return o;
}

static struct json_object *document_machine(const struct bench_call *call)
{
	struct json_object *o = json_object_new_object();
	char processor[PROCESSOR_BRAND];

	processor_brand(processor);
	json_add_text(o, "processor", processor);
	json_add_number(o, "cpus", (uint64_t)call->cpu_count);
	json_add_number(o, "memory_bytes", machine_memory());
	json_add_float(o, "busy", call->busy);
	return o;
}

struct json_object *bench_document(const struct bench_call *call,
				   const struct bench_results *results, const struct output *out)
{
	struct json_object *document = json_document(out), *list = json_object_new_array();
	struct json_object *limits = json_object_new_array();
	struct json_object *warnings = json_object_new_array();
	char warning[BENCH_WARNING];

	for (int k = 0; k < BENCH_WARNINGS; k++)
		if (bench_warning(call, k, warning))
			json_object_array_add(warnings, json_object_new_string(warning));
	for (size_t k = 0; k < results->limit_count; k++)
		json_object_array_add(limits, document_limits(&results->limits[k]));
	for (size_t k = 0; k < results->count; k++)
		json_object_array_add(list, document_result(call, &results->items[k]));
	json_add_text(document, "version", embeng_version());
	json_object_object_add(document, "machine", document_machine(call));
	json_object_object_add(document, "warnings", warnings);
	json_object_object_add(document, "limits", limits);
	json_object_object_add(document, "results", list);
	return document;
}
