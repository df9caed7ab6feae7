// SPDX-License-Identifier: MIT
/*
 * Loops over memory, compiled once for each width of vectors that a processor may have, and the
 * choice among them. A cache line of floats is one value, and the compiler makes as many vectors of
 * it as the processor needs.
 */
#include "memory.h"

/* A cache line of floats: as many vectors as the processor makes of it. */
typedef float line_t __attribute__((vector_size(64), may_alias));

#define NAME(function) function##_plain
#define TARGET
#define VECTORS "plain"
#include "memory_body.h"
#undef NAME
#undef TARGET
#undef VECTORS

#ifdef __x86_64__
#define NAME(function) function##_avx2
#define TARGET __attribute__((target("avx2")))
#define VECTORS "avx2"
#include "memory_body.h"
#undef NAME
#undef TARGET
#undef VECTORS

#define NAME(function) function##_avx512
#define TARGET __attribute__((target("avx512f")))
#define VECTORS "avx512"
#include "memory_body.h"
#endif

const struct memory_loops *memory_loops(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f"))
		return &loops_avx512;
	if (__builtin_cpu_supports("avx2"))
		return &loops_avx2;
#endif
	return &loops_plain;
}

const char *memory_fetch_name(enum memory_fetch fetch)
{
	static const char *const names[] = {[MEMORY_SECOND] = "second",
					    [MEMORY_FIRST] = "first",
					    [MEMORY_TOUCH] = "touch",
					    [MEMORY_BURSTS] = "burst"};

	return names[fetch];
}
