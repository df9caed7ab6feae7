// SPDX-License-Identifier: GPL-2.0-only
/* The recovery ladder: engine, function, given up. Contexts are told that they are lost. */
#include <linux/capability.h>
#include <linux/cleanup.h>

#include "context.h"
#include "trace.h"

/* Under reset_lock, written: nobody else talks to the device. */
static void lose(struct embeng_device *ed, struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;

	if (!READ_ONCE(ctx->on_device) || ctx->lost)
		return;
	ctx->reset_sequence = ed->resets.sequence;
	WRITE_ONCE(ctx->lost, true);
	guard(mutex)(&ctx->map_lock);
	xa_for_each(&ctx->queues, number, q)
		embeng_queue_bury(q, embeng_gone(ed) ? -ENODEV : -ESHUTDOWN);
}

static void lose_all(struct embeng_device *ed)
{
	struct embeng_context *ctx;

	ed->resets.sequence++;
	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		lose(ed, ctx);
		embeng_context_event(ctx);
	}
}

static void tell_user_space(struct embeng_device *ed)
{
	char text[48];
	char *environment[2] = { text };

	snprintf(text, sizeof(text), "EMBENG_RESET=%llu%s", ed->resets.sequence,
		 ed->resets.wedged ? " wedged" : "");
	kobject_uevent_env(&ed->drm.accel->kdev->kobj, KOBJ_CHANGE, environment);
}

static int reset_engine(struct embeng_device *ed)
{
	ed->resets.engines++;
	trace_embeng_reset("engine", ed->resets.sequence);
	return embeng_device_reset(ed) ?: embeng_boot(ed);
}

static int reset_function(struct embeng_device *ed)
{
	int ret;

	ed->resets.functions++;
	trace_embeng_reset("function", ed->resets.sequence);
	pci_save_state(ed->pci);
	ret = pcie_flr(ed->pci);
	pci_restore_state(ed->pci);
	return ret ?: embeng_boot(ed);
}

static void wedge(struct embeng_device *ed)
{
	drm_err(&ed->drm, "the device does not come back, bind the driver anew\n");
	pci_clear_master(ed->pci);
	ed->resets.wedged = 1;
	WRITE_ONCE(ed->gone, true);
}

/**
 * embeng_reset_before() - all that the device posts from here on is the reset's doing
 * @ed: device, under reset_lock, written
 */
void embeng_reset_before(struct embeng_device *ed)
{
	/* Pairs with READ_ONCE() where completions are taken, also in interrupts. */
	WRITE_ONCE(ed->resetting, true);
}

/**
 * embeng_reset_after() - the device was reset, and has no contexts any more
 * @ed: device, under reset_lock, written
 * @booted: 0, or why it did not come back
 */
void embeng_reset_after(struct embeng_device *ed, int booted)
{
	if (booted)
		wedge(ed);
	lose_all(ed);
	WRITE_ONCE(ed->resetting, false);
	tell_user_space(ed);
}

/**
 * embeng_reset() - take rungs until the device runs again
 * @ed: device; not under reset_lock
 * @rung: EMBENG_ACCEL_RESET_ENGINE or _FUNCTION, to begin with
 * @seen: &embeng_accel_resets.sequence when the trouble was met; who comes after another
 *	does not reset again
 *
 * Afterwards the device reaches no memory that any context gave it.
 */
void embeng_reset(struct embeng_device *ed, enum embeng_accel_rung rung, u64 seen)
{
	int ret = -EIO;

	guard(rwsem_write)(&ed->reset_lock);
	if (embeng_gone(ed) || ed->resets.sequence != seen)
		return;
	drm_warn(&ed->drm, "reset, all contexts are lost\n");
	embeng_reset_before(ed);
	if (rung == EMBENG_ACCEL_RESET_ENGINE)
		ret = reset_engine(ed);
	if (ret)
		ret = reset_function(ed);
	embeng_reset_after(ed, ret);
}

/**
 * embeng_reset_give_up() - the driver lets go of the device
 * @ed: device, perhaps pulled out already
 *
 * Who sleeps is woken, who maps a ring finds that it is dead.
 */
void embeng_reset_give_up(struct embeng_device *ed)
{
	guard(rwsem_write)(&ed->reset_lock);
	embeng_reset_before(ed);
	if (!embeng_gone(ed))
		embeng_device_silence(ed);
	WRITE_ONCE(ed->gone, true);
	lose_all(ed);
}

/**
 * embeng_reset_queue() - the ladder's lowest rung, counted
 * @ctx: context
 * @number: of its queue
 *
 * Return: 0 or a negative errno of the contract.
 */
int embeng_reset_queue(struct embeng_context *ctx, u32 number)
{
	int ret = embeng_queue_reset(ctx, number);

	if (ret)
		return ret;
	guard(rwsem_write)(&ctx->device->reset_lock);
	ctx->device->resets.queues++;
	return 0;
}

static int reset_device(struct embeng_device *ed, enum embeng_accel_rung rung)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EACCES;
	embeng_reset(ed, rung, READ_ONCE(ed->resets.sequence));
	return embeng_gone(ed) ? -ENODEV : 0;
}

/**
 * embeng_reset_ioctl() - DRM_IOCTL_EMBENG_RESET
 * @drm: device
 * @data: &struct embeng_accel_reset
 * @file: whose queue
 *
 * Return: 0 or a negative errno of the contract.
 */
int embeng_reset_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct embeng_accel_reset *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);

	switch (arg->rung) {
	case EMBENG_ACCEL_RESET_QUEUE:
		return embeng_reset_queue(ctx, arg->queue);
	case EMBENG_ACCEL_RESET_ENGINE:
	case EMBENG_ACCEL_RESET_FUNCTION:
		return arg->queue ? -EINVAL : reset_device(ctx->device, arg->rung);
	}
	return -EINVAL;
}
