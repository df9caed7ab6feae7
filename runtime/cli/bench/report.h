/* SPDX-License-Identifier: MIT */
/* Prints measurements as text or as a JSON document, and draws them. */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include "../frame/output.h"
#include "result.h"

/* Share of the processors in use by others from which on figures cannot be trusted. */
#define BENCH_IDLE 0.05

/*
 * The k-th warning, or NULL: 0 if the processors are not idle, 1 if they are fewer than the
 * threads. @text is memory for the sentence.
 */
#define BENCH_WARNINGS 2
#define BENCH_WARNING 160
const char *bench_warning(const struct bench_call *call, int which, char text[BENCH_WARNING]);

void bench_print(const struct bench_call *call, const struct bench_results *results);

/* json.c: makes a document of schema embeng.bench/1. Return: NULL without memory. */
struct json_object *bench_document(const struct bench_call *call,
				   const struct bench_results *results, const struct output *out);

/* svg.c: draws the results. Return: 0, or a negative errno, and there is no file then. */
int bench_draw_svg(const char *path, const struct bench_results *results);

/* Ids per second in the median run; 0 for steps without ids. */
double bench_ids_per_second(const struct bench_result *result);

#endif
