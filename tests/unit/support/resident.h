/* SPDX-License-Identifier: MIT */
#ifndef TEST_RESIDENT_H
#define TEST_RESIDENT_H

#include <check.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* Bytes of memory that this process has touched. */
static inline uint64_t resident(void)
{
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%lu %lu", &size, &pages), 2);
	fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Threads that this process has. */
static inline int count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = -2; /* . and .. */

	ck_assert_ptr_nonnull(tasks);
	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count;
}

#endif
