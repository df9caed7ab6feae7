// SPDX-License-Identifier: MIT
/*
 * The allocator of a process in which one allocation fails: it stands before glibc's own, in a test
 * program or in a library that is loaded before all others (LD_PRELOAD). There the variable
 * EMBENG_FAIL_NTH says which allocation fails, counted from the start of the process.
 *
 * Counters are atomic; allocations of all threads are counted together.
 */
#include "fail_nth.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* glibc's own, under the names by which whoever replaces malloc() finds them. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

/* Shared libraries must find the functions below. */
#pragma GCC visibility push(default)

static bool counts, has_failed;
static long left, seen;

void fail_nth_begin(long nth)
{
	__atomic_store_n(&seen, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&has_failed, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&left, nth, __ATOMIC_SEQ_CST);
	__atomic_store_n(&counts, true, __ATOMIC_SEQ_CST);
}

long fail_nth_end(bool *hit)
{
	__atomic_store_n(&counts, false, __ATOMIC_SEQ_CST);
	*hit = __atomic_load_n(&has_failed, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&seen, __ATOMIC_SEQ_CST);
}

static bool fails_now(void)
{
	if (!__atomic_load_n(&counts, __ATOMIC_SEQ_CST))
		return false;
	__atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
	if (__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST))
		return false;
	__atomic_store_n(&has_failed, true, __ATOMIC_SEQ_CST);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return fails_now() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails_now() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *at, size_t bytes)
{
	return fails_now() ? NULL : __libc_realloc(at, bytes);
}

void *reallocarray(void *at, size_t count, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(count, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(at, all);
}

void *memalign(size_t align, size_t bytes)
{
	return fails_now() ? NULL : __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return memalign(align, bytes);
}

int posix_memalign(void **at, size_t align, size_t bytes)
{
	void *made = memalign(align, bytes);

	if (!made)
		return ENOMEM;
	*at = made;
	return 0;
}

#ifdef EMBENG_FAIL_NTH_PRELOAD
__attribute__((constructor)) static void begin_by_environment(void)
{
	const char *nth = getenv("EMBENG_FAIL_NTH");

	if (nth)
		fail_nth_begin(strtol(nth, NULL, 10));
}

/* The count goes to a file, since both outputs are the command's. */
__attribute__((destructor)) static void tell_count(void)
{
	const char *path = getenv("EMBENG_FAIL_NTH_COUNT");
	bool hit;
	long count = fail_nth_end(&hit);
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%ld %d\n", count, hit);
	fclose(file);
}
#endif
