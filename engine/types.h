/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_TYPES_H
#define EMBENG_ENGINE_TYPES_H

#include <linux/types.h>

/*
 * Where constants of the caller decide what is compiled. Sanitizers, and builds that are not
 * optimized, call instead (meson.build): there a copy for each caller takes minutes to compile.
 */
#ifdef ENGINE_CALLS
#define INLINE static inline
#else
#define INLINE static inline __attribute__((always_inline))
#endif

#ifndef __KERNEL__
#include <stdbool.h>
#include <stddef.h>

/* The uapi's own types, so that a u64 * and a __u64 * are one type as in the kernel. */
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define U64_MAX (~(u64)0)
#define U32_MAX (~(u32)0)
#endif

#endif
