// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend and resume of the system. A device that keeps its power goes on where it was. One that
 * lost it is booted again, and its contexts are lost before user space runs again. Neither ever
 * fails, so that a device in trouble does not keep the machine from sleeping.
 *
 * User space is frozen while these run: queues neither come nor go, and what is in flight comes to
 * its end. A context whose commands take longer than two seconds is ended alone. Both hold
 * reset_lock for writing, as each reset does, but where a context is ended under its own lock.
 */
#include <linux/cleanup.h>
#include <linux/iopoll.h>
#include <linux/kref.h>
#include <linux/pm.h>

#include "context.h"

#define STANDSTILL_US (2 * USEC_PER_SEC)
#define LOOK_US 1000

static const struct embeng_hang asleep = { .cause = EMBENG_ACCEL_CAUSE_POWER };

static bool is_queue_still(const struct embeng_queue *q)
{
	const struct embeng_queue_report *report = &embeng_queue_header(q)->report;
	u32 epoch = embeng_report_read_begin(&report->epoch);

	if (!epoch || epoch & 1)
		return false;
	/* A queue in error is not looked at any more, whatever its doorbell says. */
	if (READ_ONCE(report->state) == EMBENG_QUEUE_ERROR)
		return true;
	return READ_ONCE(report->tail) == embeng_doorbell_tail_of(q) &&
	       READ_ONCE(report->cq_head) == embeng_doorbell_head_of(q);
}

static bool is_context_still(struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;

	if (READ_ONCE(ctx->lost))
		return true;
	guard(mutex)(&ctx->map_lock);
	xa_for_each(&ctx->queues, number, q) {
		if (!q->destroyed && !is_queue_still(q))
			return false;
	}
	return true;
}

/* Return: a context that is not still, with a reference, or NULL. */
static struct embeng_context *find_busy_context(struct embeng_device *ed)
{
	struct embeng_context *ctx;

	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		if (READ_ONCE(ctx->on_device) && !is_context_still(ctx)) {
			kref_get(&ctx->ref);
			return ctx;
		}
	}
	return NULL;
}

static bool are_contexts_still(struct embeng_device *ed)
{
	struct embeng_context *ctx = find_busy_context(ed);

	if (ctx)
		embeng_context_put(ctx);
	return !ctx;
}

static bool await_standstill(struct embeng_device *ed)
{
	bool still;

	guard(rwsem_write)(&ed->reset_lock);
	return embeng_gone(ed) || !read_poll_timeout(are_contexts_still, still, still, LOOK_US,
						     STANDSTILL_US, false, ed);
}

/* A program that is at work when the machine sleeps loses its context, and no other does. */
static void end_busy_contexts(struct embeng_device *ed)
{
	struct embeng_context *ctx;
	bool lost = true;

	while (lost) {
		ctx = find_busy_context(ed);
		if (!ctx)
			return;
		scoped_guard(mutex, &ctx->lock) {
			embeng_reset_context(ctx, &asleep);
			lost = READ_ONCE(ctx->lost);
		}
		embeng_context_put(ctx);
	}
}

static void sleep_after_reset(struct embeng_device *ed)
{
	drm_warn(&ed->drm, "busy when the system sleeps\n");
	embeng_reset_before(ed, &asleep);
	embeng_reset_climb(ed, EMBENG_ACCEL_RESET_ENGINE, &asleep);
}

/* User space is frozen: queues neither come nor go, and commands in flight come to their end. */
static int embeng_suspend(struct device *dev)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	if (!await_standstill(ed))
		end_busy_contexts(ed);
	guard(rwsem_write)(&ed->reset_lock);
	if (embeng_gone(ed))
		return 0;
	if (!are_contexts_still(ed))
		sleep_after_reset(ed);
	embeng_readings_look(ed);
	return 0;
}

static bool has_kept_state(struct embeng_device *ed)
{
	return embeng_read32(ed, EMBENG_REG_MAGIC) == EMBENG_DEVICE_MAGIC &&
	       embeng_read32(ed, EMBENG_REG_BOOT_STATE) == EMBENG_BOOT_RUNNING &&
	       embeng_read64(ed, EMBENG_REG_ADMIN_RING) == ed->admin.dma;
}

static int embeng_resume(struct device *dev)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	guard(rwsem_write)(&ed->reset_lock);
	if (!embeng_gone(ed) && !has_kept_state(ed)) {
		drm_info(&ed->drm, "the device lost its state while the system slept\n");
		embeng_reset_found(ed, &asleep);
	}
	return 0;
}

DEFINE_SIMPLE_DEV_PM_OPS(embeng_pm_ops, embeng_suspend, embeng_resume);
