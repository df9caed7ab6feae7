/* SPDX-License-Identifier: MIT */
/* Counts the open descriptors of this process, to find those that a test did not close. */
#ifndef TEST_DESCRIPTORS_H
#define TEST_DESCRIPTORS_H

#include <check.h>
#include <dirent.h>

static inline int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

#endif
