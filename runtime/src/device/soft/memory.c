// SPDX-License-Identifier: MIT
/*
 * Keeps the list of memory that the soft device may reach, as an IOMMU would: any other address is
 * no DMA address for it.
 *
 * The list belongs to the struct soft. s->grants.lock guards it, since the engine's threads ask for
 * it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "soft.h"

void *soft_map(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int soft_grant(struct soft *s, const void *data, uint64_t length)
{
	struct grants *g = &s->grants;
	int ret = 0;

	pthread_mutex_lock(&g->lock);
	if (g->count == g->capacity) {
		size_t wanted = g->capacity ? 2 * g->capacity : 32;
		struct grant *larger = realloc(g->list, wanted * sizeof(*larger));

		if (larger) {
			g->list = larger;
			g->capacity = wanted;
		} else {
			ret = fail(-ENOMEM, "no memory to keep track of the device's memory");
		}
	}
	if (!ret)
		g->list[g->count++] = (struct grant){(uintptr_t)data, length};
	pthread_mutex_unlock(&g->lock);
	return ret;
}

void soft_revoke(struct soft *s, uint64_t address)
{
	struct grants *g = &s->grants;

	pthread_mutex_lock(&g->lock);
	for (size_t i = 0; i < g->count; i++) {
		if (g->list[i].address == address) {
			g->list[i] = g->list[--g->count];
			break;
		}
	}
	pthread_mutex_unlock(&g->lock);
}

bool soft_dma_ok(void *arg, u64 address, u64 length)
{
	struct soft *s = arg;
	struct grants *g = &s->grants;
	bool ok = false;

	pthread_mutex_lock(&g->lock);
	for (size_t i = 0; !ok && i < g->count; i++) {
		const struct grant *grant = &g->list[i];

		ok = address >= grant->address && address - grant->address <= grant->length &&
		     length <= grant->length - (address - grant->address);
	}
	pthread_mutex_unlock(&g->lock);
	return ok;
}
