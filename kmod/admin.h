/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's own queue: admin.c. */
#ifndef EMBENG_ADMIN_H
#define EMBENG_ADMIN_H

#include <linux/list.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>

#include "../uapi/embeng_engine.h"
#include "../uapi/embeng_regs.h"

struct embeng_device;

/**
 * struct embeng_admin - the driver's own queue
 * @ring: memory of both rings; @layout says where each part of it is
 * @dma: address of @ring for the device
 * @layout: where the parts of @ring are
 * @slots: counts the callers that may have a command on the ring at the same time
 * @lock: guards the members that follow
 * @requests: commands that wait for their completion
 * @cookie: cookie of the newest request; none is used twice
 * @sq_tail: tail of the submission ring, free-running
 * @cq_head: head of the completion ring, free-running
 * @armed: last value written to &embeng_doorbell.armed
 */
struct embeng_admin {
	void *ring;
	dma_addr_t dma;
	struct embeng_queue_layout layout;
	struct semaphore slots;
	spinlock_t lock; /* guards the members that follow */
	struct list_head requests;
	u64 cookie;
	u32 sq_tail;
	u32 cq_head;
	u32 armed;
};

/* admin.c */
int embeng_admin_init(struct embeng_device *ed);
void embeng_admin_start(struct embeng_device *ed);
void embeng_admin_poll(struct embeng_device *ed);
int embeng_admin_run(struct embeng_device *ed, struct embeng_admin_cmd *cmd);

#endif
