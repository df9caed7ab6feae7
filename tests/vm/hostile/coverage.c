// SPDX-License-Identifier: MIT
/*
 * Records which places of the driver were reached (KCOV), and keeps the inputs that reached new
 * ones.
 */
#include "coverage.h"

#include <fcntl.h>
#include <linux/kcov.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE "/sys/kernel/debug/kcov"
#define WORDS (1u << 16)

static _Thread_local unsigned long *trace;

bool coverage_there(void)
{
	return !access(DEVICE, R_OK | W_OK);
}

void coverage_begin(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	void *at;

	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, (unsigned long)WORDS))
		return;
	at = mmap(NULL, WORDS * sizeof(*trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		return;
	trace = at;
	trace[0] = 0;
}

static bool reach(struct coverage *c, unsigned long place)
{
	uint64_t bit = 1ull << place % 64;
	uint32_t word = (uint32_t)(place % COVERAGE_SPAN / 64);

	if (c->places[word] & bit || atomic_fetch_or(&c->places[word], bit) & bit)
		return false;
	c->reached++;
	return true;
}

void coverage_add(struct coverage *c, const uint8_t *input)
{
	unsigned long count;
	bool any = false;

	if (!trace)
		return;
	count = __atomic_load_n(&trace[0], __ATOMIC_RELAXED);
	for (unsigned long i = 1; i <= count; i++)
		any |= reach(c, trace[i]);
	if (any)
		memcpy(c->inputs[c->count++ % INPUTS], input, INPUT_BYTES);
	__atomic_store_n(&trace[0], 0, __ATOMIC_RELAXED);
}
