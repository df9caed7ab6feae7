/* SPDX-License-Identifier: GPL-2.0-only */
/* Interrupt vectors: irq.c. */
#ifndef EMBENG_IRQ_H
#define EMBENG_IRQ_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct embeng_device;

/**
 * struct embeng_vector - an interrupt vector
 * @device: device that it belongs to
 * @index: number of the MSI-X vector; 0 serves the admin queue too
 * @irq: the kernel's interrupt number, looked up once because pci_irq_vector() sleeps
 * @lock: guards @queues, and the members of those queues that are marked "under vector->lock"
 * @queues: queues that it serves, by &embeng_queue.vector_link
 */
struct embeng_vector {
	struct embeng_device *device;
	u32 index;
	int irq;
	spinlock_t lock; /* guards @queues and their armed state */
	struct list_head queues;
};

/* irq.c */
int embeng_irq_init(struct embeng_device *ed);

#endif
