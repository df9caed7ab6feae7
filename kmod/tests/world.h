/* SPDX-License-Identifier: GPL-2.0-only */
/* The surroundings of the tested parts: a context and a buffer, without a device. */
#ifndef EMBENG_TEST_WORLD_H
#define EMBENG_TEST_WORLD_H

#include <kunit/test.h>

#include "../context.h"

#define WORLD_ENTRIES 4u

/**
 * struct test_world - a context with a region table, and a buffer of some pages
 * @device: device without a PCI function
 * @pci: PCI device of which only the address is used
 * @ctx: context in which new work may begin
 * @table: region table of @ctx
 * @generations: generations of @ctx
 * @bo: buffer
 * @dma: DMA addresses of the buffer's pages
 * @told: last admin command that made the device let go of memory
 * @dead: generation of the table entry when @told came
 * @tellings: number of such commands
 * @lists: number of segment lists that were not freed
 */
struct test_world {
	struct embeng_device device;
	struct pci_dev pci;
	struct embeng_context ctx;
	struct embeng_region table[WORLD_ENTRIES];
	u32 generations[WORLD_ENTRIES];
	struct embeng_bo bo;
	dma_addr_t dma[8];
	struct embeng_admin_cmd told;
	u32 dead;
	u32 tellings;
	int lists;
};

int test_world_init(struct kunit *test);
void test_world_exit(struct kunit *test);

/* Returns the surroundings of a context. */
struct test_world *test_world_of(struct embeng_context *ctx);

#endif
