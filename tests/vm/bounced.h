/* SPDX-License-Identifier: MIT */
/* Finds out, without the driver, whether this machine bounces memory for the device. */
#ifndef EMBENG_TESTS_BOUNCED_H
#define EMBENG_TESTS_BOUNCED_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Where the kernel bounces, the device would see copies that nobody keeps equal. */
static inline bool bounced(void)
{
	char text[4096] = "";
	FILE *file = fopen("/proc/cmdline", "r");

	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	fclose(file);
	return strstr(text, "swiotlb=force") != NULL;
}

#endif
