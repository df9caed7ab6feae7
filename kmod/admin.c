// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's own queue. Contexts and queues are made and ended on the device, and memory keys
 * are invalidated, by commands on this queue, number 0, which no program ever sees.
 *
 * The ring is allocated once when the driver binds, and begun anew before each boot of the device.
 * A request is one of a pool, and belongs to its caller until it returns. A caller that is killed
 * leaves its request behind: it is free again once the device has answered, or was reset, so that
 * no more than half of the ring is ever in use. Callers hold reset_lock for reading, since a reset
 * ends what is on the ring. admin.lock, which interrupts take too, guards the ring's indices, the
 * pool and the list.
 *
 * An interrupt of vector 0 reports completions. Callers look every LOOK_MS as well, so that a lost
 * interrupt delays a command and does not end the device.
 */
#include <linux/cleanup.h>
#include <linux/dma-mapping.h>
#include <linux/sched/signal.h>

#include "driver.h"
#include "trace.h"

#define ENTRIES (2 * EMBENG_ADMIN_AT_ONCE)

/* A device that completes nothing at all for so long hangs, however busy it says it is. */
static uint admin_timeout_ms = 20000;
module_param(admin_timeout_ms, uint, 0600);
MODULE_PARM_DESC(admin_timeout_ms, "milliseconds without progress after which an admin command has timed out (default: 20000)");

#define LOOK_MS 100
/* A device that works and answers nothing has so many times the timeout. */
#define TIMEOUTS_MAX 6

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
	sema_init(&admin->slots, EMBENG_ADMIN_AT_ONCE);
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

/* Under admin.lock. */
static void free_request(struct embeng_admin *admin, struct embeng_admin_request *request)
{
	list_del_init(&request->link);
	__clear_bit(request - admin->pool, admin->used);
	up(&admin->slots);
}

/* Those that nobody waits for. The others time out, or find that the device is gone. */
static void free_left_requests(struct embeng_admin *admin)
{
	struct embeng_admin_request *request, *next;

	list_for_each_entry_safe(request, next, &admin->requests, link) {
		if (request->left)
			free_request(admin, request);
	}
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
	free_left_requests(admin);
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
	struct embeng_admin_request *request;

	list_for_each_entry(request, &admin->requests, link) {
		if (request->cookie != cqe->cookie)
			continue;
		if (request->left) {
			free_request(admin, request);
			return;
		}
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

/* With one of @slots. */
static struct embeng_admin_request *submit_request(struct embeng_device *ed,
						   struct embeng_admin_cmd *cmd)
{
	struct embeng_admin *admin = &ed->admin;
	struct embeng_admin_cmd *ring = admin->ring + admin->layout.sq;
	struct embeng_admin_request *request;
	u32 i;

	scoped_guard(spinlock_irqsave, &admin->lock) {
		i = find_first_zero_bit(admin->used, EMBENG_ADMIN_AT_ONCE);
		__set_bit(i, admin->used);
		request = &admin->pool[i];
		request->left = false;
		request->answer = (struct embeng_cqe){};
		init_completion(&request->done);
		request->cookie = ++admin->cookie;
		cmd->cookie = request->cookie;
		list_add_tail(&request->link, &admin->requests);
		ring[admin->sq_tail++ & (ENTRIES - 1)] = *cmd;
		/* writel() orders the command before the doorbell. */
		embeng_doorbell_write(embeng_doorbell(ed, 0), sq_tail, admin->sq_tail);
	}
	return request;
}

/* Ends a request, or leaves it behind for the device's answer if @left. Return: its answer. */
static struct embeng_cqe end_request(struct embeng_admin *admin,
				     struct embeng_admin_request *request, bool left)
{
	struct embeng_cqe answer;

	scoped_guard(spinlock_irqsave, &admin->lock) {
		answer = request->answer;
		/* If it is on the list no more, its answer has just come. */
		if (left && !list_empty(&request->link))
			request->left = true;
		else
			free_request(admin, request);
	}
	return answer;
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

/* How long the device has made no progress, and how long it has been asked. */
struct patience {
	unsigned long began;
	unsigned long moved;
	u64 before;
};

static struct patience begin_patience(struct embeng_device *ed)
{
	return (struct patience){
		.began = jiffies,
		.moved = jiffies,
		.before = read_admin_progress(ed),
	};
}

/*
 * Polls the ring as well, because an interrupt may get lost. The limit is read at each look, so
 * that a shorter one ends a wait that goes on. Return: 0 to go on waiting.
 */
static int look_at_admin(struct embeng_device *ed, struct patience *p)
{
	unsigned long limit = msecs_to_jiffies(READ_ONCE(admin_timeout_ms));
	u64 now;

	embeng_admin_poll(ed);
	if (embeng_gone(ed) || !embeng_present(ed))
		return -ENODEV;
	if (embeng_ring_lost(find_admin_header(ed)))
		return -ETIMEDOUT;
	if (fatal_signal_pending(current))
		return -EINTR;
	now = read_admin_progress(ed);
	if (now != p->before)
		p->moved = jiffies;
	p->before = now;
	return time_after(jiffies, p->moved + limit) ||
	       time_after(jiffies, p->began + TIMEOUTS_MAX * limit) ? -ETIMEDOUT : 0;
}

static int wait_for_slot(struct embeng_device *ed, struct patience *p)
{
	int ret = 0;

	while (!ret && down_timeout(&ed->admin.slots, msecs_to_jiffies(LOOK_MS)))
		ret = look_at_admin(ed, p);
	return ret;
}

/* A task that was killed does not sleep in wait_for_completion_killable_timeout(). */
static int wait_for_answer(struct embeng_device *ed, struct embeng_admin_request *request,
			   struct patience *p)
{
	int ret = 0;

	while (!ret && wait_for_completion_killable_timeout(&request->done,
							    msecs_to_jiffies(LOOK_MS)) <= 0)
		ret = look_at_admin(ed, p);
	return ret;
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
 * -EINTR when the caller was killed and the device may yet run the command, -ENOENT when it has no
 * such object, or an errno for another error that it reported.
 */
int embeng_admin_run(struct embeng_device *ed, struct embeng_admin_cmd *cmd)
{
	struct embeng_admin_request *request;
	struct embeng_cqe answer;
	struct patience patience;
	int ret;

	if (embeng_gone(ed) || ed->offline)
		return -ENODEV;
	patience = begin_patience(ed);
	ret = wait_for_slot(ed, &patience);
	if (ret)
		return ret;
	request = submit_request(ed, cmd);
	ret = wait_for_answer(ed, request, &patience);
	answer = end_request(&ed->admin, request, ret == -EINTR);
	if (!ret)
		ret = convert_admin_status(&answer);
	trace_embeng_admin(cmd->opcode, cmd->context, cmd->queue, cmd->index, ret);
	if (ret)
		drm_dbg(&ed->drm, "admin command %u: status %u, field %u, value %llu: %d\n",
			cmd->opcode, answer.status, answer.field, answer.value, ret);
	return ret;
}
