// SPDX-License-Identifier: MIT
/*
 * Prints the results of a benchmark as text. The same results as a document are in json.c, and as a
 * drawing in svg.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../src/host/processor.h"
#include "../frame/transfer.h"
#include "report.h"

static void print_head(const struct bench_call *call)
{
	char processor[PROCESSOR_BRAND], memory[BYTES_TEXT], warning[BENCH_WARNING];

	processor_brand(processor);
	printf("%s, %d of its processors, %s of memory; %d runs", processor, call->cpu_count,
	       bytes_text(machine_memory(), memory), call->runs);
	if (call->scale != 1)
		printf("; scale %g: other workloads than those of scale 1", call->scale);
	putchar('\n');
	for (int k = 0; k < BENCH_WARNINGS; k++)
		if (bench_warning(call, k, warning))
			printf("warning: %s\n", warning);
}

static void print_rate(const char *what, struct spread s, double unit)
{
	printf("  %-18s %9.2f  (%.2f to %.2f)\n", what, s.median / unit, s.min / unit,
	       s.max / unit);
}

static void print_limits(const struct bench_limits *l)
{
	char bytes[BYTES_TEXT];

	printf("limits: rows of %zu bytes from %s, %d thread%s, %s\n", l->row_bytes,
	       bytes_text(l->table_bytes, bytes), l->threads, l->threads == 1 ? "" : "s",
	       l->vectors);
	print_rate("gather, M rows/s", l->gather, 1e6);
	print_rate("change, M rows/s", l->rmw, 1e6);
	print_rate("stream, GB/s", l->stream, 1e9);
	if (!l->paired)
		return;
	print_rate("cache line, us", l->cache_line_us, 1);
	print_rate("futex, us", l->futex_us, 1);
}

static void print_stages(const struct bench_result *r)
{
	const char *separator = "  ";
	double all = 0;

	for (int s = 0; s < BENCH_STAGES; s++)
		all += r->stage_ms[s];
	for (int s = 0; s < BENCH_STAGES; s++) {
		if (r->stage_ms[s] < all / 1000)
			continue;
		printf("%s%s %.1f %%", separator, bench_stage_names[s], r->stage_ms[s] / all * 100);
		separator = ", ";
	}
	putchar('\n');
}

static void print_ring(const struct bench_result *r)
{
	double us = r->step_ms.median * 1e3 / r->commands;

	printf("%-11s %-9s %-15s %3d  %9.2f %9.2f %9.2f us  %7.2f us a command, the engine %.2f\n",
	       r->workload.name, r->op == BENCH_CONTEND ? bench_ops[r->op] : r->detail,
	       r->waiting ? "waiting" : "polled", r->commands, r->step_ms.min * 1e3,
	       r->step_ms.median * 1e3, r->step_ms.max * 1e3, us, r->direct_us);
}

/* @what ends in what the save wrote. */
static void print_kind(const char *what, const struct bench_saves *saves,
		       const struct bench_result *r)
{
	double saved[RUNS_MOST], beside[RUNS_MOST], longest[RUNS_MOST];
	double quiet = r->save.quiet_ms.median;
	struct spread steps;

	memcpy(saved, saves->run_ms, sizeof(saved));
	memcpy(beside, saves->beside_ms, sizeof(beside));
	memcpy(longest, saves->longest_ms, sizeof(longest));
	steps = spread_of(longest, r->runs);
	printf("  %s: %.3f ms; the longest step meanwhile %.2f times one without (%.2f to %.2f), "
	       "the median one %.3f ms\n",
	       what, spread_of(saved, r->runs).median, steps.median / quiet, steps.min / quiet,
	       steps.max / quiet, spread_of(beside, r->runs).median);
}

/* The line above has the longest step beside each full save. */
static void print_saves(const struct bench_result *r)
{
	const struct bench_saves *full = &r->save.full, *delta = &r->save.delta;
	char bytes[BYTES_TEXT], what[160];

	printf("  longest steps while saving; without a save a step takes %.3f ms (%.3f to %.3f)\n",
	       r->save.quiet_ms.median, r->save.quiet_ms.min, r->save.quiet_ms.max);
	snprintf(what, sizeof(what), "a full save, %s in %" PRIu64 " file%s, each synced once",
		 bytes_text(full->bytes, bytes), r->save.files, r->save.files == 1 ? "" : "s");
	print_kind(what, full, r);
	snprintf(what, sizeof(what), "%s of what these steps changed, %s, %" PRIu64 " rows",
		 delta->deltas == r->runs ? "a delta"
		 : delta->deltas	  ? "a delta or, where that is smaller, a full save"
					  : "a full save, as a delta would be larger,",
		 bytes_text(delta->bytes, bytes), delta->rows);
	print_kind(what, delta, r);
}

static void print_result(const struct bench_result *r)
{
	if (bench_op_is_small(r->op)) {
		print_ring(r);
		return;
	}
	printf("%-11s %-9s %-15s %3d  %9.3f %9.3f %9.3f ms  %7.1f M ids/s", r->workload.name,
	       bench_ops[r->op], r->optimizer ? r->optimizer : "-", r->threads, r->step_ms.min,
	       r->step_ms.median, r->step_ms.max, bench_ids_per_second(r) / 1e6);
	if (r->limit_ms > 0)
		printf("  %5.1f %% of the limit, %.3f ms", r->limit_ms / r->step_ms.median * 100,
		       r->limit_ms);
	putchar('\n');
	if (r->op == BENCH_PARTITION)
		printf("  %s: minibatches %" PRIu32 ", dropped %" PRIu64 "\n", r->detail,
		       r->partition.minibatches, r->partition.dropped_ids);
	else if (r->op == BENCH_SAVE)
		print_saves(r);
	else
		print_stages(r);
}

void bench_print(const struct bench_call *call, const struct bench_results *results)
{
	print_head(call);
	for (size_t k = 0; k < results->limit_count; k++)
		print_limits(&results->limits[k]);
	if (results->count)
		printf("%s, kernels: %s\n%-11s %-9s %-15s %3s  %9s %9s %9s\n",
		       results->items[0].device.name, results->items[0].device.variant, "WORKLOAD",
		       "OP", "OPTIMIZER", "THR", "MIN", "MEDIAN", "MAX");
	for (size_t k = 0; k < results->count; k++)
		print_result(&results->items[k]);
}
