/* SPDX-License-Identifier: MIT */
/* Memory and processors of the machine, as far as this process may use them. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that this process may have, and bytes that it can still take, as host/limits.h tells. */
uint64_t machine_memory(void);
uint64_t machine_memory_available(void);

#define MACHINE_CPUS 1024

/*
 * Lists the processors that this process may keep busy: as many of its affinity as a quota of
 * processor time lets run at a time. Return: how many, 0 when that is not known.
 */
int machine_cpus(int cpus[MACHINE_CPUS]);

/*
 * Pins the calling thread, and threads that it starts. Return: false if the system refuses.
 */
bool machine_pin(const int *cpus, int count);

/**
 * machine_busy() - measure how busy other processes keep the processors
 * @ms: milliseconds to watch while sleeping
 *
 * Return: share of the time of all processors, from 0 to 1; -1 when it is not known.
 */
double machine_busy(int ms);

#endif
