/* SPDX-License-Identifier: MIT */
/*
 * Counts the allocations of a program; one of its files includes this. Under a sanitizer,
 * which has its own allocator, they are counted by the sanitizer's hooks.
 */
#ifndef EMBENG_TESTS_ALLOCATIONS_H
#define EMBENG_TESTS_ALLOCATIONS_H

#include <stdatomic.h>
#include <stddef.h>

static atomic_size_t allocations_seen;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/* Declared as in <sanitizer/allocator_interface.h>, which gcc does not install. */
extern int __sanitizer_install_malloc_and_free_hooks(
	void (*malloc_hook)(const volatile void *memory, size_t bytes),
	void (*free_hook)(const volatile void *memory));

static void allocations_hook(const volatile void *memory, size_t bytes)
{
	(void)memory;
	(void)bytes;
	atomic_fetch_add(&allocations_seen, 1);
}

static void allocations_free_hook(const volatile void *memory)
{
	(void)memory;
}

static inline void allocations_start(void)
{
	__sanitizer_install_malloc_and_free_hooks(allocations_hook, allocations_free_hook);
}

#else

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

#define COUNTED __attribute__((visibility("default")))

COUNTED void *malloc(size_t bytes)
{
	atomic_fetch_add(&allocations_seen, 1);
	return __libc_malloc(bytes);
}

COUNTED void *calloc(size_t count, size_t bytes)
{
	atomic_fetch_add(&allocations_seen, 1);
	return __libc_calloc(count, bytes);
}

COUNTED void *realloc(void *memory, size_t bytes)
{
	atomic_fetch_add(&allocations_seen, 1);
	return __libc_realloc(memory, bytes);
}

COUNTED void *memalign(size_t alignment, size_t bytes)
{
	atomic_fetch_add(&allocations_seen, 1);
	return __libc_memalign(alignment, bytes);
}

static inline void allocations_start(void)
{
}

#endif

#endif
