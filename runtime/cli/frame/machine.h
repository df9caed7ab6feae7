/* SPDX-License-Identifier: MIT */
/* Memory and processors of the machine. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of memory; and what of them could be had without swapping. */
uint64_t machine_memory(void);
uint64_t machine_memory_available(void);

#define MACHINE_CPUS 1024

/* The processors that this process may use, in order: how many, 0 when that is not known. */
int machine_cpus(int cpus[MACHINE_CPUS]);

/*
 * The calling thread, and threads that it starts, stay on these. False: the system refuses.
 */
bool machine_pin(const int *cpus, int count);

/**
 * machine_busy() - how busy the processors are with what others do
 * @ms: how long to watch, asleep
 *
 * Return: share from 0 to 1 of the time of all processors, -1 when it is not known.
 */
double machine_busy(int ms);

#endif
