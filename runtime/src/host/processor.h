/* SPDX-License-Identifier: MIT */
/* The processor that this process runs on: its name and its caches. */
#ifndef EMBENG_PROCESSOR_H
#define EMBENG_PROCESSOR_H

#include "../../../engine/kernels/fetch_plan.h"

#define PROCESSOR_BRAND 64
#define PROCESSOR_NAME 256

/* "AMD EPYC 9554", or "" where the system does not tell. */
void processor_brand(char brand[PROCESSOR_BRAND]);

/*
 * A text that two processors share only if they are of the same model and have the same caches:
 * "AMD EPYC 9554, family 25 model 17 stepping 1, caches 32 KiB 1024 KiB 32768 KiB".
 */
void processor_name(char name[PROCESSOR_NAME]);

/* Vendor and caches of the first processor; what the system does not tell is 0. */
void processor_machine(struct fetch_machine *out);

/*
 * Does the same for a folder of sysfs with caches in it, such as
 * "/sys/devices/system/cpu/cpu0/cache"; @out keeps its sizes where the folder does not tell.
 */
void processor_caches(const char *folder, struct fetch_machine *out);

#endif
