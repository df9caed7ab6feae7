// SPDX-License-Identifier: MIT
/*
 * The ids a second of a result, and the warnings where figures are not to be trusted. All forms of a
 * report have them.
 */
#include <stdio.h>

#include "report.h"

double bench_ids_per_second(const struct bench_result *result)
{
	return (double)result->ids_per_step / result->step_ms.median * 1e3;
}

static const char *not_idle(const struct bench_call *call, char text[BENCH_WARNING])
{
	if (call->busy >= 0 && call->busy < BENCH_IDLE)
		return NULL;
	if (call->busy < 0)
		snprintf(text, BENCH_WARNING,
			 "nothing tells whether the processors are idle: the "
			 "figures may be those of a busy machine");
	else
		snprintf(text, BENCH_WARNING,
			 "the processors were %.0f %% busy with something "
			 "else: do not trust the figures",
			 call->busy * 100);
	return text;
}

static const char *too_few(const struct bench_call *call, char text[BENCH_WARNING])
{
	if (call->threads <= call->cpu_count)
		return NULL;
	snprintf(text, BENCH_WARNING,
		 "%d threads share %d processor%s: the figures include waiting for a processor",
		 call->threads, call->cpu_count, call->cpu_count == 1 ? "" : "s");
	return text;
}

const char *bench_warning(const struct bench_call *call, int which, char text[BENCH_WARNING])
{
	return which ? too_few(call, text) : not_idle(call, text);
}
