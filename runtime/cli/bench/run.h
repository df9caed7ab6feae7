/* SPDX-License-Identifier: MIT */
/* All that a call asks for, one after another. */
#ifndef CLI_BENCH_RUN_H
#define CLI_BENCH_RUN_H

#include "../frame/output.h"
#include "call.h"

/* Measures and reports. Return: an exit code; a failure is reported. */
int bench_run(struct bench_call *call, const struct output *out);

#endif
