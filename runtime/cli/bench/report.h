/* SPDX-License-Identifier: MIT */
/* What was measured, as text, as a document, and drawn. */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include "../frame/output.h"
#include "result.h"

/* Share of the processors from which on figures are not to be trusted. */
#define BENCH_IDLE 0.05

/*
 * A sentence, or NULL: 0 when the processors are not idle, 1 when they are fewer than the threads;
 * @text: its place.
 */
#define BENCH_WARNINGS 2
#define BENCH_WARNING 160
const char *bench_warning(const struct bench_call *call, int which, char text[BENCH_WARNING]);

void bench_print(const struct bench_call *call, const struct bench_results *results);

/* json.c: embeng.bench/1. NULL: no memory. */
struct json_object *bench_document(const struct bench_call *call,
				   const struct bench_results *results, const struct output *out);

/* svg.c: 0, or a negative errno and no file. */
int bench_draw_svg(const char *path, const struct bench_results *results);

/* Ids a second of the middle run, 0 of steps without ids. */
double bench_ids_per_second(const struct bench_result *result);

#endif
