// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's own queue. Contexts and queues are made and ended on the device, and memory keys
 * are invalidated, by commands on this queue, number 0, which no program ever sees.
 *
 * The ring is allocated once when the driver binds, and begun anew before each boot of the device.
 * A request lives on the stack of its caller, which takes it off the list before it returns.
 * Callers hold reset_lock for reading, since a reset ends what is on the ring; at most AT_ONCE of
 * them are in here at a time. admin.lock, which interrupts take too, guards the ring's indices and
 * the list.
 *
 * An interrupt of vector 0 reports completions. Callers look every LOOK_MS as well, so that a lost
 * interrupt delays a command and does not end the device.
 */
#include <linux/completion.h>
#include <linux/dma-mapping.h>

#include "driver.h"
#include "trace.h"

#define ENTRIES 64
/* Half of the ring: a command that hangs still needs room for its completion. */
#define AT_ONCE (ENTRIES / 2)

/* A device that completes nothing at all for so long hangs, however busy it says it is. */
static uint admin_timeout_ms = 20000;
module_param(admin_timeout_ms, uint, 0600);
MODULE_PARM_DESC(admin_timeout_ms, "milliseconds without progress after which an admin command has timed out (default: 20000)");

#define LOOK_MS 100

struct request {
	struct list_head link;
	u64 cookie;
	struct embeng_cqe answer;
	struct completion done;
};

static struct embeng_ring_header *find_admin_header(struct embeng_device *ed)
{
	return ed->admin.ring + ed->admin.layout.header;
}

/**
 * embeng_admin_init() - allocate the memory of the admin ring
 * @ed: device
 *
 * Return: 0 or -ENOMEM.
 */
int embeng_admin_init(struct embeng_device *ed)
{
	struct embeng_admin *admin = &ed->admin;

	spin_lock_init(&admin->lock);
	INIT_LIST_HEAD(&admin->requests);
	sema_init(&admin->slots, AT_ONCE);
	admin->layout = embeng_ring_layout(ENTRIES, ENTRIES, 0);
	admin->ring = dmam_alloc_coherent(&ed->pci->dev, admin->layout.size, &admin->dma,
					  GFP_KERNEL);
	return admin->ring ? 0 : -ENOMEM;
}

static void arm_admin_ring(struct embeng_device *ed)
{
	struct embeng_admin *admin = &ed->admin;
	void __iomem *doorbell = embeng_doorbell(ed, 0);

	embeng_doorbell_write(doorbell, cq_head, admin->cq_head);
	embeng_doorbell_write(doorbell, arm, admin->cq_head);
	embeng_doorbell_write(doorbell, armed, ++admin->armed);
}

/**
 * embeng_admin_start() - tell a device in ROM where the ring is, and begin it anew
 * @ed: device
 */
void embeng_admin_start(struct embeng_device *ed)
{
	struct embeng_admin *admin = &ed->admin;
	unsigned long flags;

	spin_lock_irqsave(&admin->lock, flags);
	memset(admin->ring, 0, admin->layout.size);
	admin->sq_tail = 0;
	admin->cq_head = 0;
	embeng_doorbell_write(embeng_doorbell(ed, 0), sq_tail, 0);
	arm_admin_ring(ed);
	embeng_write64(ed, EMBENG_REG_ADMIN_RING, admin->dma);
	embeng_write32(ed, EMBENG_REG_ADMIN_SQ_ENTRIES, admin->layout.sq_entries);
	embeng_write32(ed, EMBENG_REG_ADMIN_CQ_ENTRIES, admin->layout.cq_entries);
	spin_unlock_irqrestore(&admin->lock, flags);
}

static void answer_request(struct embeng_admin *admin, const struct embeng_cqe *cqe)
{
	struct request *request;

	list_for_each_entry(request, &admin->requests, link) {
		if (request->cookie != cqe->cookie)
			continue;
		request->answer = *cqe;
		list_del_init(&request->link);
		complete(&request->done);
		return;
	}
}

static bool take_admin_completions(struct embeng_device *ed)
{
	struct embeng_admin *admin = &ed->admin;
	const struct embeng_cqe *ring = admin->ring + admin->layout.cq;
	u32 tail = embeng_observe_cq_tail(&find_admin_header(ed)->cq_tail);
	struct embeng_cqe cqe;

	/* A tail further ahead than the ring is long is invalid: take no completion. */
	if (tail == admin->cq_head || tail - admin->cq_head > ENTRIES)
		return false;
	while (admin->cq_head != tail) {
		cqe = ring[admin->cq_head++ & (ENTRIES - 1)];
		answer_request(admin, &cqe);
	}
	return true;
}

/**
 * embeng_admin_poll() - take completions and ask for an interrupt at the next one
 * @ed: device
 */
void embeng_admin_poll(struct embeng_device *ed)
{
	unsigned long flags;

	spin_lock_irqsave(&ed->admin.lock, flags);
	while (take_admin_completions(ed)) {
		arm_admin_ring(ed);
		embeng_arm_then_recheck();
	}
	spin_unlock_irqrestore(&ed->admin.lock, flags);
}

static void submit_request(struct embeng_device *ed, struct embeng_admin_cmd *cmd,
			   struct request *request)
{
	struct embeng_admin *admin = &ed->admin;
	struct embeng_admin_cmd *ring = admin->ring + admin->layout.sq;
	unsigned long flags;

	spin_lock_irqsave(&admin->lock, flags);
	request->cookie = ++admin->cookie;
	cmd->cookie = request->cookie;
	list_add_tail(&request->link, &admin->requests);
	ring[admin->sq_tail++ & (ENTRIES - 1)] = *cmd;
	/* writel() orders the command before the doorbell. */
	embeng_doorbell_write(embeng_doorbell(ed, 0), sq_tail, admin->sq_tail);
	spin_unlock_irqrestore(&admin->lock, flags);
}

/*
 * The sum of registers that move while the device works. PROGRESS counts only while a command runs:
 * an engine that waits for time to pass does not keep an admin command from being answered.
 */
static u64 read_admin_progress(struct embeng_device *ed)
{
	return embeng_read64(ed, EMBENG_REG_COUNT_COMMANDS) +
	       (embeng_read32(ed, EMBENG_REG_ACTIVE_QUEUE) ?
			embeng_read64(ed, EMBENG_REG_PROGRESS) : 0) +
	       embeng_read64(ed, EMBENG_REG_COUNT_BYTES_READ) +
	       embeng_read64(ed, EMBENG_REG_COUNT_BYTES_WRITTEN) +
	       READ_ONCE(ed->admin.cq_head);
}

/* Polls the ring as well, because an interrupt may get lost. */
static int wait_for_request(struct embeng_device *ed, struct request *request)
{
	unsigned long patience = msecs_to_jiffies(READ_ONCE(admin_timeout_ms));
	unsigned long moved = jiffies;
	u64 before = read_admin_progress(ed), now;

	while (!wait_for_completion_timeout(&request->done, msecs_to_jiffies(LOOK_MS))) {
		embeng_admin_poll(ed);
		if (embeng_gone(ed) || !embeng_present(ed))
			return -ENODEV;
		if (embeng_ring_lost(find_admin_header(ed)))
			return -ETIMEDOUT;
		now = read_admin_progress(ed);
		if (now != before)
			moved = jiffies;
		else if (time_after(jiffies, moved + patience))
			return -ETIMEDOUT;
		before = now;
	}
	return 0;
}

static int convert_admin_status(const struct embeng_cqe *cqe)
{
	switch (cqe->status) {
	case EMBENG_STATUS_OK:
		return 0;
	case EMBENG_STATUS_NO_MEMORY:
		return -ENOMEM;
	case EMBENG_STATUS_COUNT:
		return -EINVAL;
	case EMBENG_STATUS_KEY:
		return -ENOENT;
	default:
		return -EIO;
	}
}

/**
 * embeng_admin_run() - give the device a command and wait for its answer
 * @ed: device
 * @cmd: command; this function sets its cookie
 *
 * Called with reset_lock held for reading. Return: 0, -ENODEV, -ETIMEDOUT when the device hangs,
 * -ENOENT when it has no such object, or an errno for another error that it reported.
 */
int embeng_admin_run(struct embeng_device *ed, struct embeng_admin_cmd *cmd)
{
	struct request request = {};
	unsigned long flags;
	int ret;

	if (embeng_gone(ed) || ed->offline)
		return -ENODEV;
	init_completion(&request.done);
	down(&ed->admin.slots);
	submit_request(ed, cmd, &request);
	ret = wait_for_request(ed, &request);
	spin_lock_irqsave(&ed->admin.lock, flags);
	list_del_init(&request.link);
	spin_unlock_irqrestore(&ed->admin.lock, flags);
	up(&ed->admin.slots);
	if (!ret)
		ret = convert_admin_status(&request.answer);
	trace_embeng_admin(cmd->opcode, cmd->context, cmd->queue, cmd->index, ret);
	if (ret)
		drm_dbg(&ed->drm, "admin command %u: status %u, field %u, value %llu: %d\n",
			cmd->opcode, request.answer.status, request.answer.field,
			request.answer.value, ret);
	return ret;
}
