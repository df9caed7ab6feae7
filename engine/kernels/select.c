// SPDX-License-Identifier: MIT
/*
 * Chooses the variant of the kernels that runs on this processor: the best one, or the one that was
 * asked for by name. There is no FP code here, since callers may be outside an FP section.
 *
 * All data is constant; any thread may call.
 */
#include "scratch.h"
#include "variants.h"

#ifdef __x86_64__
#define CPUID_1_ECX_FMA (1u << 12)
#define CPUID_1_ECX_OSXSAVE (1u << 27)
#define CPUID_7_EBX_AVX2 (1u << 5)
#define CPUID_7_EBX_AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW, VL */
#define XCR0_SSE_AVX 0x06u
#define XCR0_AVX512 0xe6u /* and opmask, upper halves, upper sixteen registers */

static void read_cpuid(u32 leaf, u32 subleaf, u32 *eax, u32 *ebx, u32 *ecx)
{
	u32 edx;

	__asm__ volatile("cpuid"
			 : "=a"(*eax), "=b"(*ebx), "=c"(*ecx), "=d"(edx)
			 : "a"(leaf), "c"(subleaf));
}

static u32 read_xcr0(void)
{
	u32 eax, edx;

	__asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
	return eax;
}

/* The processor has the extensions, and the system keeps their registers. */
static bool has_extensions(u32 extensions, u32 registers)
{
	u32 eax, ebx, ecx, leaves;

	read_cpuid(0, 0, &leaves, &ebx, &ecx);
	if (leaves < 7)
		return false;
	read_cpuid(1, 0, &eax, &ebx, &ecx);
	if (!(ecx & CPUID_1_ECX_FMA) || !(ecx & CPUID_1_ECX_OSXSAVE))
		return false;
	if ((read_xcr0() & registers) != registers)
		return false;
	read_cpuid(7, 0, &eax, &ebx, &ecx);
	return (ebx & extensions) == extensions;
}

static bool runs_avx2(void)
{
	return has_extensions(CPUID_7_EBX_AVX2, XCR0_SSE_AVX);
}

static bool runs_avx512(void)
{
	return has_extensions(CPUID_7_EBX_AVX2 | CPUID_7_EBX_AVX512, XCR0_AVX512);
}
#endif

static bool runs_anywhere(void)
{
	return true;
}

/* Best first. */
static const struct variant {
	const struct kernel_ops *ops;
	bool (*runs)(void);
} variants[] = {
#ifdef __x86_64__
	{ &kernel_ops_avx512, runs_avx512 },
	{ &kernel_ops_avx2, runs_avx2 },
#endif
	{ &kernel_ops_portable, runs_anywhere },
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

const char *kernel_variant(u32 index)
{
	return index < VARIANTS ? variants[index].ops->name : NULL;
}

static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

const struct kernel_ops *kernel_select(const char *force)
{
	for (u32 i = 0; i < VARIANTS; i++) {
		if (force && !same_name(force, variants[i].ops->name))
			continue;
		if (variants[i].runs())
			return variants[i].ops;
	}
	return NULL;
}

bool kernel_variant_exists(const char *name)
{
	for (u32 i = 0; i < VARIANTS; i++)
		if (same_name(name, variants[i].ops->name))
			return true;
	return false;
}

u64 kernel_scratch_bytes(u32 dim)
{
	return sizeof(struct kernel_scratch) + 3 * kernel_scratch_stride(dim) * sizeof(float);
}
