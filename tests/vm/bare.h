/* SPDX-License-Identifier: MIT */
/*
 * The emulated function without its driver: BARs through sysfs, DMA memory from one huge page,
 * whose physical address is the DMA address.
 */
#ifndef EMBENG_TESTS_BARE_H
#define EMBENG_TESTS_BARE_H

#include <stdbool.h>
#include <stdint.h>

#include "embeng_regs.h"

#define BARE_MEMORY (2u << 20)
#define BARE_ENTRIES 16u /* entries of each ring of a queue */
#define BARE_QUEUES 3u
#define BARE_DATA 65536u

struct bare_queue {
	uint8_t *ring;
	struct embeng_doorbell *doorbell;
	uint32_t sq_tail, cq_head;
};

struct bare {
	char name[32]; /* PCI address */
	volatile uint8_t *registers, *doorbells, *msix;
	uint8_t *memory;		       /* BARE_MEMORY bytes, contiguous */
	uint64_t address;		       /* address of @memory for the device */
	uint64_t used;			       /* bytes of @memory given out */
	struct bare_queue queues[BARE_QUEUES]; /* the admin queue first */
	struct embeng_region *regions;	       /* one entry */
	uint8_t *data;			       /* BARE_DATA bytes behind it */
};

/* Opens the first embeng function and enables it with bus mastering. Without one the test fails. */
struct bare *bare_open(void);
void bare_close(struct bare *b);

uint32_t bare_read32(struct bare *b, uint32_t reg);
uint64_t bare_read64(struct bare *b, uint32_t reg);
void bare_write32(struct bare *b, uint32_t reg, uint32_t value);
void bare_write64(struct bare *b, uint32_t reg, uint64_t value);

/* Zeroed DMA memory, page-aligned. */
void *bare_alloc(struct bare *b, uint64_t bytes);
uint64_t bare_address(const struct bare *b, const void *p);

/* Boots the built-in image from @address. Returns BOOT_STATE. */
uint32_t bare_boot_from(struct bare *b, uint64_t address, uint64_t length);
uint32_t bare_boot(struct bare *b);

/* Waits for a register to have a value; fails the test after a generous time. */
void bare_await(struct bare *b, uint32_t reg, uint32_t value);

/* Submits 64 bytes. */
void bare_submit(struct bare_queue *q, const void *cmd);
/* Takes a completion if there is one. */
bool bare_reap(struct bare_queue *q, struct embeng_cqe *cqe);
/* Submits and waits for the completion; fails the test after a generous time. */
struct embeng_cqe bare_call(struct bare_queue *q, const void *cmd);
struct embeng_cqe bare_admin(struct bare *b, struct embeng_admin_cmd cmd);

/* A context with one region, key (0, 1), and queues 1, TRANSFER, and 2, INFERENCE. */
void bare_context(struct bare *b);

/* Config space, @size bytes at @where. */
uint32_t bare_config_read(struct bare *b, unsigned where, unsigned size);
void bare_config_write(struct bare *b, unsigned where, unsigned size, uint32_t value);

/* Writes a file of the function in sysfs, 0 or -errno. */
int bare_sysfs(struct bare *b, const char *file, const char *text);

#endif
