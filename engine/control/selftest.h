/* SPDX-License-Identifier: MIT */
/* The self-tests of a firmware image: uapi/embeng_firmware.h says what they are. */
#ifndef EMBENG_ENGINE_SELFTEST_H
#define EMBENG_ENGINE_SELFTEST_H

#include "../../uapi/embeng_firmware.h"
#include "../types.h"

struct kernel_ops;

/**
 * selftest_check() - check vectors, without running them
 * @tests: content of the section
 * @length: its bytes
 * @count: out, how many vectors there are
 * @offset: out on failure, the byte of the section that is at fault
 *
 * Return: enum embeng_boot_error.
 */
u32 selftest_check(const u8 *tests, u64 length, u32 *count, u64 *offset);

/**
 * selftest_one() - run a vector on one variant
 * @vector: checked
 * @kernels: the variant
 *
 * Return: NONE, SELF_TEST when a result is another, or MEMORY.
 */
u32 selftest_one(const u8 *vector, const struct kernel_ops *kernels);

/**
 * struct selftest_failure - the vector that failed
 * @index: the vector's number, from 0
 * @offset: bytes from the first vector to it
 * @variant: name of the kernel variant
 */
struct selftest_failure {
	u32 index;
	u64 offset;
	const char *variant;
};

/**
 * selftest_run() - run vectors on every variant that this processor has
 * @tests: checked
 * @length: their bytes
 * @failure: out on failure
 *
 * Return: as selftest_one(), of the first that failed.
 */
u32 selftest_run(const u8 *tests, u64 length, struct selftest_failure *failure);

#endif
