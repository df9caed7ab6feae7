// SPDX-License-Identifier: MIT
/*
 * The linker sends the allocations of the objects it links here, those of shared libraries
 * not: the C library keeps its memory.
 */
#include "failing_alloc.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

static uint32_t left; /* 1: the next one fails */
static size_t most;   /* 0: as large as there is */
static bool failed;

void scarce_begin(uint32_t nth)
{
	failed = false;
	__atomic_store_n(&left, nth, __ATOMIC_SEQ_CST);
}

void scarce_limit(size_t bytes)
{
	__atomic_store_n(&most, bytes, __ATOMIC_SEQ_CST);
}

bool scarce_end(void)
{
	__atomic_store_n(&left, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&most, 0, __ATOMIC_SEQ_CST);
	return failed;
}

static bool is_too_large(size_t count, size_t size)
{
	size_t limit = __atomic_load_n(&most, __ATOMIC_SEQ_CST), bytes;

	return limit && (__builtin_mul_overflow(count, size, &bytes) || bytes > limit);
}

/* Threads of the code under test allocate, too. */
static bool fails(size_t count, size_t size)
{
	uint32_t now = __atomic_load_n(&left, __ATOMIC_SEQ_CST);

	while (now && !__atomic_compare_exchange_n(&left, &now, now - 1, false, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST))
		;
	if (now != 1 && !is_too_large(count, size))
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

#define WRAP(type, name, none, count, size, parameters, arguments) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		return fails(count, size) ? none : __real_##name arguments; \
	}

WRAP(void *, malloc, NULL, 1, n, (size_t n), (n))
WRAP(void *, calloc, NULL, count, n, (size_t count, size_t n), (count, n))
WRAP(void *, realloc, NULL, 1, n, (void *p, size_t n), (p, n))
WRAP(void *, reallocarray, NULL, count, n, (void *p, size_t count, size_t n), (p, count, n))
WRAP(char *, strdup, NULL, 1, 1, (const char *text), (text))
WRAP(char *, strndup, NULL, 1, n, (const char *text, size_t n), (text, n))
WRAP(int, posix_memalign, ENOMEM, 1, n, (void **p, size_t align, size_t n), (p, align, n))
WRAP(void *, mmap, MAP_FAILED, 1, n,
     (void *at, size_t n, int prot, int flags, int fd, off_t offset),
     (at, n, prot, flags, fd, offset))
