/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_SCHEDULE_H
#define EMBENG_SCHEDULE_H

#include "embeng.h"

/* What a schedule may be set to: 0, -EINVAL, -ERANGE. @where starts the sentence. */
int schedule_check(const char *where, const struct embeng_schedule *schedule);

/* The rate of a step, of a schedule that was checked: 0, -ERANGE when it is not finite. */
int schedule_rate(const char *where, const struct embeng_schedule *schedule, uint64_t step,
		  float *rate);

#endif
