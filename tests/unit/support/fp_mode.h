/* SPDX-License-Identifier: MIT */
/* Modes that a caller may have set in its FP unit before it calls the library. */
#ifndef EMBENG_TESTS_FP_MODE_H
#define EMBENG_TESTS_FP_MODE_H

#include <stdint.h>

enum { FP_DEFAULT, FP_FLUSH, FP_UP, FP_DOWN, FP_TOWARD_ZERO, FP_MODES };

static const char *const fp_mode_names[FP_MODES] = {
	"default", "flush to zero", "rounding up", "rounding down", "rounding toward zero",
};

/* Both units of x86-64: the old one also loses precision, in case something used it. */
static inline void fp_mode_set(int mode)
{
#if defined(__x86_64__)
	static const uint32_t mxcsr[] = {0x1f80, 0x9fc0, 0x5f80, 0x3f80, 0x7f80};
	uint16_t x87 = mode == FP_DEFAULT ? 0x037f : 0x007f;

	__builtin_ia32_ldmxcsr(mxcsr[mode]);
	__asm__ volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
	static const uint32_t fpcr[] = {0, 1u << 24, 1u << 22, 2u << 22, 3u << 22};

	__builtin_aarch64_set_fpcr(fpcr[mode]);
#endif
}

#endif
