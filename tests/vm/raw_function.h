/* SPDX-License-Identifier: MIT */
/*
 * The emulated function without its driver: BARs through sysfs, DMA memory from one huge page,
 * whose physical address is the DMA address.
 */
#ifndef EMBENG_TESTS_RAW_FUNCTION_H
#define EMBENG_TESTS_RAW_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "embeng_regs.h"

#define RAW_MEMORY (2u << 20)
#define RAW_ENTRIES 16u /* entries of each ring of a queue */
#define RAW_QUEUES 3u
#define RAW_DATA 65536u

struct raw_queue {
	uint8_t *ring;
	struct embeng_doorbell *doorbell;
	uint32_t sq_tail, cq_head;
};

struct raw_function {
	char name[32]; /* PCI address */
	volatile uint8_t *registers, *doorbells, *msix;
	uint8_t *memory;		     /* RAW_MEMORY bytes, contiguous */
	uint64_t address;		     /* address of @memory for the device */
	uint64_t used;			     /* bytes of @memory given out */
	struct raw_queue queues[RAW_QUEUES]; /* the admin queue first */
	struct embeng_region *regions;	     /* one entry */
	uint8_t *data;			     /* RAW_DATA bytes behind it */
};

/* Opens the first embeng function and enables it with bus mastering. Without one the test fails. */
struct raw_function *raw_open(void);
void raw_close(struct raw_function *b);

uint32_t raw_read32(struct raw_function *b, uint32_t reg);
uint64_t raw_read64(struct raw_function *b, uint32_t reg);
void raw_write32(struct raw_function *b, uint32_t reg, uint32_t value);
void raw_write64(struct raw_function *b, uint32_t reg, uint64_t value);

/* Zeroed DMA memory, page-aligned. */
void *raw_alloc(struct raw_function *b, uint64_t bytes);
uint64_t raw_address(const struct raw_function *b, const void *p);

/* Boots the built-in image from @address. Returns BOOT_STATE. */
uint32_t raw_boot_from(struct raw_function *b, uint64_t address, uint64_t length);
uint32_t raw_boot(struct raw_function *b);

/* Waits for a register to have a value; fails the test after a generous time. */
void raw_await(struct raw_function *b, uint32_t reg, uint32_t value);

/* Submits 64 bytes. */
void raw_submit(struct raw_queue *q, const void *cmd);
/* Takes a completion if there is one. */
bool raw_reap(struct raw_queue *q, struct embeng_cqe *cqe);
/* Submits and waits for the completion; fails the test after a generous time. */
struct embeng_cqe raw_call(struct raw_queue *q, const void *cmd);
struct embeng_cqe raw_admin(struct raw_function *b, struct embeng_admin_cmd cmd);

/* A context with one region, key (0, 1), and queues 1, TRANSFER, and 2, INFERENCE. */
void raw_context(struct raw_function *b);

/* Config space, @size bytes at @where. */
uint32_t raw_config_read(struct raw_function *b, unsigned where, unsigned size);
void raw_config_write(struct raw_function *b, unsigned where, unsigned size, uint32_t value);

/* Writes a file of the function in sysfs, 0 or -errno. */
int raw_sysfs(struct raw_function *b, const char *file, const char *text);

#endif
