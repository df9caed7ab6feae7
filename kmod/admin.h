/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's own queue: admin.c. */
#ifndef EMBENG_ADMIN_H
#define EMBENG_ADMIN_H

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>

#include "../uapi/embeng_engine.h"
#include "../uapi/embeng_regs.h"

struct embeng_device;

/* Half of the ring's entries: a command that hangs still needs room for its completion. */
#define EMBENG_ADMIN_AT_ONCE 32

/**
 * struct embeng_admin_request - a command on its way
 * @link: entry in &embeng_admin.requests until it is answered
 * @cookie: cookie of the command
 * @left: its caller was killed; the request is free once the device has answered
 * @answer: the completion
 * @done: completed with the answer
 */
struct embeng_admin_request {
	struct list_head link;
	u64 cookie;
	bool left;
	struct embeng_cqe answer;
	struct completion done;
};

/**
 * struct embeng_admin - the driver's own queue
 * @ring: memory of both rings; @layout says where each part of it is
 * @dma: address of @ring for the device
 * @layout: where the parts of @ring are
 * @slots: counts the entries of @pool that are free
 * @lock: guards the members that follow
 * @pool: memory of requests
 * @used: a bit for each request of @pool that is in use
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
	struct embeng_admin_request pool[EMBENG_ADMIN_AT_ONCE];
	DECLARE_BITMAP(used, EMBENG_ADMIN_AT_ONCE);
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
