/* SPDX-License-Identifier: MIT */
/* Runs all measurements of a call, one after another. */
#ifndef CLI_BENCH_RUN_H
#define CLI_BENCH_RUN_H

#include "../frame/output.h"
#include "call.h"

/* Measures and reports. Return: an exit code; failures were reported. */
int bench_run(struct bench_call *call, const struct output *out);

#endif
