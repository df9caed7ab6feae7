/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_SCHEDULE_H
#define EMBENG_SCHEDULE_H

#include "embeng.h"

/* Checks the settings of a schedule: 0, -EINVAL, -ERANGE. @where starts the sentence. */
int schedule_check(const char *where, const struct embeng_schedule *schedule);

/* Computes the rate of a step by a checked schedule: 0, or -ERANGE when it is not finite. */
int schedule_rate(const char *where, const struct embeng_schedule *schedule, uint64_t step,
		  float *rate);

#endif
