/* SPDX-License-Identifier: MIT */
/* The plan by which a soft device fetches rows ahead: whose it is, and how it is told. */
#ifndef EMBENG_FETCH_H
#define EMBENG_FETCH_H

#include "device/name.h"
#include "embeng.h"
#include "host/tune_file.h"

/**
 * fetch_choose() - the plan for a soft device
 * @name: prefetch= or EMBENG_PREFETCH, where given, is the plan for models of all sizes
 * @variant: name of the kernel variant that runs
 * @plan: filled
 * @info: its fetch, fetch_source and tune_problem are filled
 *
 * Without either the plan comes from the first tune file that is of this processor and @variant:
 * the one that EMBENG_TUNE names, or else the user's and then the system's. Else
 * fetch_plan_fill() makes it from the processor's caches. A file that cannot be used never fails;
 * @info says what is wrong with the first such file. Nothing is measured.
 */
void fetch_choose(const struct name *name, const char *variant, struct fetch_plan *plan,
		  struct embeng_device_info *info);

/**
 * fetch_read_tune() - read a tune file
 * @path: links are followed
 * @why: filled on failure
 *
 * Return: 0, -EBADMSG, -ENOMEM, or what opening or reading it failed with.
 */
int fetch_read_tune(const char *path, struct tune *out, char why[TUNE_WHY]);

#endif
