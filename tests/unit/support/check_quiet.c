/* SPDX-License-Identifier: MIT */
/*
 * Check writes a line to a file for each assertion that holds, to say in a crash where the test
 * came last. Tests that assert on each of some million values spend most of their time so; here
 * only the first time that a place is reached is told, as the linker's --wrap makes it.
 */
#include <stdatomic.h>
#include <stdint.h>

#define PLACES 4096u /* those of one test are far fewer; two that share a bit count as one */

void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line)
{
	static _Atomic uint32_t reached[PLACES / 32];
	uint32_t place = ((uint32_t)((uintptr_t)file >> 3) + (uint32_t)line) % PLACES;
	uint32_t bit = 1u << place % 32;

	if (atomic_load_explicit(&reached[place / 32], memory_order_relaxed) & bit)
		return;
	atomic_fetch_or_explicit(&reached[place / 32], bit, memory_order_relaxed);
	__real__mark_point(file, line);
}
