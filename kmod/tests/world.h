/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tested parts find around them, in place of a device. */
#ifndef EMBENG_TEST_WORLD_H
#define EMBENG_TEST_WORLD_H

#include <kunit/test.h>

#include "../context.h"

#define WORLD_ENTRIES 4u

/**
 * struct test_world - a context with a region table, and a buffer of some pages
 * @device: without a function
 * @pci: nothing but its address is used
 * @ctx: usable
 * @table: of @ctx
 * @generations: of @ctx
 * @bo: buffer
 * @dma: of its pages
 * @told: last command that ended something
 * @dead: the entry's generation when it came
 * @tellings: such commands
 * @lists: segment lists that were not freed
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

/* Of the context that runs. */
struct test_world *test_world_of(struct embeng_context *ctx);

#endif
