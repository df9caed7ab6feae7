// SPDX-License-Identifier: MIT
/*
 * Tells about the machine: what of its memory and processors this process may use, and how busy they
 * are. It reads /proc and asks the scheduler.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "../../src/host/limits.h"
#include "machine.h"

uint64_t machine_memory(void)
{
	struct host_limits limits;

	host_limits_read("", &limits);
	return limits.memory;
}

uint64_t machine_memory_available(void)
{
	struct host_limits limits;

	host_limits_read("", &limits);
	return limits.available;
}

int machine_cpus(int cpus[MACHINE_CPUS])
{
	struct host_limits limits;
	cpu_set_t set;
	int count = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	host_limits_read("", &limits);
	for (int cpu = 0; cpu < CPU_SETSIZE && count < MACHINE_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[count++] = cpu;
	return count < (int)limits.cores ? count : (int)limits.cores;
}

bool machine_pin(const int *cpus, int count)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < count; i++)
		CPU_SET(cpus[i], &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* Clock ticks of all processors: at work for somebody, and all. */
static bool read_ticks(unsigned long long *busy, unsigned long long *all)
{
	/* user nice system idle iowait irq softirq steal; guests are in user and nice */
	unsigned long long t[8] = {0};
	FILE *f = fopen("/proc/stat", "re");
	int got = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2],
			     &t[3], &t[4], &t[5], &t[6], &t[7])
		    : 0;

	if (f)
		fclose(f);
	*all = 0;
	for (int i = 0; i < 8; i++)
		*all += t[i];
	*busy = *all - t[3] - t[4];
	return got == 8;
}

double machine_busy(int ms)
{
	const struct timespec nap = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
	unsigned long long busy[2], all[2];

	if (!read_ticks(&busy[0], &all[0]))
		return -1;
	nanosleep(&nap, NULL);
	if (!read_ticks(&busy[1], &all[1]) || all[1] <= all[0])
		return -1;
	return (double)(busy[1] - busy[0]) / (double)(all[1] - all[0]);
}
