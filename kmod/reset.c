// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recovery ladder above a single queue: the engine is reset, then the function, and then the
 * device is given up. Each rung is taken only when the one below did not help, since each loses
 * more. Contexts are told that they are lost, because their tables are.
 *
 * All of it happens under reset_lock held for writing: nobody else talks to the device, and
 * afterwards it reaches no memory that any context gave it. Two callers that saw the same trouble
 * reset once; a sequence number, taken when the trouble was seen, tells the second that it came
 * too late. Inside reset_lock, contexts_lock and map_lock are taken to visit contexts and queues;
 * no ctx->lock is, since its holders wait for reset_lock.
 */
#include <linux/capability.h>
#include <linux/cleanup.h>

#include "context.h"
#include "trace.h"

/**
 * embeng_reset_lose() - tell a context that it is lost
 * @ed: device; reset_lock is held for writing
 * @ctx: context, whose memory the device does not reach any more
 * @rung: rung that was taken
 * @hang: why it was taken
 */
void embeng_reset_lose(struct embeng_device *ed, struct embeng_context *ctx, u32 rung,
		       const struct embeng_hang *hang)
{
	struct embeng_queue *q, *culprit = NULL;
	unsigned long number;

	if (!READ_ONCE(ctx->on_device) || ctx->lost)
		return;
	ctx->reset_sequence = ed->resets.sequence;
	guard(mutex)(&ctx->map_lock);
	xa_for_each(&ctx->queues, number, q) {
		if (q->at_fault)
			culprit = q;
	}
	embeng_hang_record(ctx, rung, hang, culprit);
	/* Pairs with answer_context(): a program that finds its context lost asks why. */
	smp_store_release(&ctx->lost, true);
	if (culprit && rung != EMBENG_ACCEL_RESET_CONTEXT)
		drm_warn(&ed->drm, "queue %u of context %u of %s ran meanwhile\n",
			 culprit->number, ctx->number, embeng_program_text(ctx).text);
	xa_for_each(&ctx->queues, number, q) {
		if (q->ring)
			embeng_hang_settle(q, rung);
		embeng_queue_bury(q, embeng_gone(ed) ? -ENODEV : -ESHUTDOWN);
	}
}

static void lose_all_contexts(struct embeng_device *ed, u32 rung, const struct embeng_hang *hang)
{
	struct embeng_context *ctx;

	ed->resets.sequence++;
	ed->watch.silent = 0;
	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		embeng_reset_lose(ed, ctx, rung, hang);
		embeng_context_event(ctx);
	}
}

/**
 * embeng_reset_tell() - send a uevent about a rung that was taken
 * @ed: device
 * @rung: enum embeng_accel_rung
 * @hang: why it was taken
 */
void embeng_reset_tell(struct embeng_device *ed, enum embeng_accel_rung rung,
		       const struct embeng_hang *hang)
{
	char sequence[40], step[40], cause[40];
	char *environment[] = { sequence, step, cause, NULL };

	snprintf(sequence, sizeof(sequence), "EMBENG_RESET=%llu", READ_ONCE(ed->resets.sequence));
	snprintf(step, sizeof(step), "EMBENG_RUNG=%s", embeng_rung_word(rung));
	snprintf(cause, sizeof(cause), "EMBENG_CAUSE=%s", embeng_cause_word(hang->cause));
	kobject_uevent_env(&ed->drm.accel->kdev->kobj, KOBJ_CHANGE, environment);
}

/* A device that answers no command, or whose heartbeat stands, is stuck in the command it runs. */
static bool is_engine_stuck(const struct embeng_hang *hang)
{
	return hang->cause == EMBENG_ACCEL_CAUSE_NO_ANSWER ||
	       hang->cause == EMBENG_ACCEL_CAUSE_HEARTBEAT;
}

static void note_queue_before_reset(struct embeng_queue *q, u32 active,
				    const struct embeng_hang *hang)
{
	embeng_hang_note(q);
	if (!q->at_fault && active && q->number == active)
		embeng_hang_blame(q, hang);
}

/**
 * embeng_reset_before() - save everything that a reset clears and that is needed after it
 * @ed: device; reset_lock is held for writing
 * @hang: why it is to be reset
 */
void embeng_reset_before(struct embeng_device *ed, const struct embeng_hang *hang)
{
	struct embeng_context *ctx;
	struct embeng_queue *q;
	unsigned long number;
	u32 active;

	embeng_readings_stop(ed);
	embeng_queue_irq_hold_off(ed);
	/* Nobody rings after this, so that the tails that are noted below are the last. */
	embeng_mmap_hold_off(ed);
	if (embeng_gone(ed) || !embeng_present(ed))
		return;
	active = is_engine_stuck(hang) ? embeng_read32(ed, EMBENG_REG_ACTIVE_QUEUE) : 0;
	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		guard(mutex)(&ctx->map_lock);
		xa_for_each(&ctx->queues, number, q) {
			/* If something else has reset the device, doorbells are cleared already. */
			if (!ctx->lost && hang->cause != EMBENG_ACCEL_CAUSE_STATE)
				note_queue_before_reset(q, active, hang);
		}
	}
}

static int reset_engine(struct embeng_device *ed)
{
	ed->resets.engines++;
	trace_embeng_reset("engine", ed->resets.sequence);
	return embeng_device_reset(ed) ?: embeng_boot(ed);
}

static void free_pci_state(void *state)
{
	kfree(state);
}

/**
 * embeng_reset_save() - save config space as it is now, to be restored after a reset
 * @ed: device that is set up
 *
 * Return: 0 or -ENOMEM.
 */
int embeng_reset_save(struct embeng_device *ed)
{
	pci_save_state(ed->pci);
	ed->pci_state = pci_store_saved_state(ed->pci);
	if (!ed->pci_state)
		return -ENOMEM;
	return devm_add_action_or_reset(&ed->pci->dev, free_pci_state, ed->pci_state);
}

/* Puts config space back as the driver set it up, since a lost link may have changed it. */
static void restore_pci_config(struct embeng_device *ed)
{
	pci_load_saved_state(ed->pci, ed->pci_state);
	pci_restore_state(ed->pci);
}

static int reset_function(struct embeng_device *ed)
{
	int ret;

	ed->resets.functions++;
	trace_embeng_reset("function", ed->resets.sequence);
	ret = pcie_flr(ed->pci);
	restore_pci_config(ed);
	return ret ?: embeng_boot(ed);
}

/**
 * embeng_reset_revive() - boot a device that may be in ROM or still running
 * @ed: device; reset_lock is held for writing
 *
 * A running device is reset before it gets the bus back. If the boot fails, the function is reset
 * and booted once more.
 *
 * Return: 0, or the negative errno of the last attempt.
 */
int embeng_reset_revive(struct embeng_device *ed)
{
	int ret = 0;

	if (embeng_read32(ed, EMBENG_REG_BOOT_STATE) == EMBENG_BOOT_RUNNING)
		ret = embeng_device_reset(ed);
	if (!ret) {
		restore_pci_config(ed);
		ret = embeng_boot(ed);
	}
	return ret && !embeng_gone(ed) && embeng_present(ed) ? reset_function(ed) : ret;
}

/**
 * embeng_reset_look() - let a device that was given up be read, to find out why
 * @ed: device; reset_lock is held for writing, and nothing resets it meanwhile
 */
void embeng_reset_look(struct embeng_device *ed)
{
	embeng_readings_wedge(ed);
	WRITE_ONCE(ed->resetting, false);
	embeng_mmap_show_registers(ed);
}

static void wedge_device(struct embeng_device *ed)
{
	drm_err(&ed->drm,
		"the device does not come back; bind the driver to %s anew, or turn the machine off\n",
		pci_name(ed->pci));
	embeng_readings_wedge(ed);
	embeng_device_cut_off(ed);
	ed->resets.wedged = 1;
	WRITE_ONCE(ed->gone, true);
}

/**
 * embeng_reset_after() - mark all contexts lost after a reset
 * @ed: device; reset_lock is held for writing
 * @booted: 0, or the errno with which the boot failed
 * @rung: rung that was taken
 * @hang: why it was taken
 */
void embeng_reset_after(struct embeng_device *ed, int booted, enum embeng_accel_rung rung,
			const struct embeng_hang *hang)
{
	if (booted) {
		wedge_device(ed);
		rung = EMBENG_ACCEL_RESET_WEDGED;
	} else {
		drm_info(&ed->drm, "it is back after a reset of the %s, firmware %s\n",
			 embeng_rung_word(rung), embeng_version_text(ed->firmware_version).text);
	}
	lose_all_contexts(ed, rung, hang);
	/* Pairs with answer_context(). */
	smp_store_release(&ed->resetting, false);
	embeng_mmap_show_registers(ed);
	embeng_reset_tell(ed, rung, hang);
}

/* Called with reset_lock held for writing. */
static void abandon_device(struct embeng_device *ed, const char *why)
{
	const struct embeng_hang hang = { .cause = EMBENG_ACCEL_CAUSE_GONE };

	drm_warn(&ed->drm, "the device is gone: %s\n", why);
	/* The device may come back in a moment, while memory that it could reach is being freed. */
	embeng_device_cut_off(ed);
	WRITE_ONCE(ed->gone, true);
	WRITE_ONCE(ed->resetting, true);
	embeng_mmap_hold_off(ed);
	lose_all_contexts(ed, EMBENG_ACCEL_RESET_NONE, &hang);
	embeng_reset_tell(ed, EMBENG_ACCEL_RESET_NONE, &hang);
}

/**
 * embeng_reset_gone() - give up a device that is not there any more
 * @ed: device; not under reset_lock
 * @why: how the driver knows, for the log
 */
void embeng_reset_gone(struct embeng_device *ed, const char *why)
{
	guard(rwsem_write)(&ed->reset_lock);
	if (embeng_gone(ed))
		return;
	abandon_device(ed, why);
}

/**
 * embeng_reset_climb() - take rungs until the device runs again
 * @ed: device; reset_lock is held for writing; embeng_reset_before() has been called
 * @rung: first rung to take: EMBENG_ACCEL_RESET_ENGINE or _FUNCTION
 * @hang: why the device is reset
 */
void embeng_reset_climb(struct embeng_device *ed, enum embeng_accel_rung rung,
			const struct embeng_hang *hang)
{
	int booted = -EIO;

	if (rung == EMBENG_ACCEL_RESET_ENGINE)
		booted = reset_engine(ed);
	if (booted) {
		rung = EMBENG_ACCEL_RESET_FUNCTION;
		booted = reset_function(ed);
	}
	embeng_reset_after(ed, booted, rung, hang);
}

/**
 * embeng_reset_found() - recover a function that something else has reset, or should have
 * @ed: device; reset_lock is held for writing
 * @hang: why the device is recovered
 */
void embeng_reset_found(struct embeng_device *ed, const struct embeng_hang *hang)
{
	embeng_reset_before(ed, hang);
	ed->resets.functions++;
	embeng_reset_after(ed, embeng_reset_revive(ed), EMBENG_ACCEL_RESET_FUNCTION, hang);
}

/**
 * embeng_reset() - take rungs until the device runs again
 * @ed: device; not under reset_lock
 * @rung: first rung to take: EMBENG_ACCEL_RESET_ENGINE or _FUNCTION
 * @seen: &embeng_accel_resets.sequence when the trouble was seen; if another caller has reset the
 *	device since, it is not reset again
 * @hang: why the device is reset
 *
 * Afterwards the device reaches no memory that any context gave it.
 */
void embeng_reset(struct embeng_device *ed, enum embeng_accel_rung rung, u64 seen,
		  const struct embeng_hang *hang)
{
	guard(rwsem_write)(&ed->reset_lock);
	if (embeng_gone(ed) || ed->offline || ed->resets.sequence != seen)
		return;
	if (!embeng_present(ed)) {
		abandon_device(ed, "its registers cannot be read");
		return;
	}
	drm_warn(&ed->drm, "the %s is reset (%s), all contexts are lost\n",
		 embeng_rung_word(rung), embeng_cause_word(hang->cause));
	embeng_reset_before(ed, hang);
	if (hang->cause != EMBENG_ACCEL_CAUSE_REQUEST)
		embeng_coredump(ed, hang, false);
	embeng_reset_climb(ed, rung, hang);
}

/**
 * embeng_reset_give_up() - silence the device before the driver lets go of it
 * @ed: device, perhaps pulled out already
 *
 * Sleepers are woken, and a program that maps a ring finds that it is dead.
 */
void embeng_reset_give_up(struct embeng_device *ed)
{
	const struct embeng_hang hang = { .cause = EMBENG_ACCEL_CAUSE_GONE };

	guard(rwsem_write)(&ed->reset_lock);
	embeng_reset_before(ed, &hang);
	if (!embeng_gone(ed))
		embeng_device_silence(ed);
	WRITE_ONCE(ed->gone, true);
	lose_all_contexts(ed, EMBENG_ACCEL_RESET_NONE, &hang);
}

static int reset_on_request(struct embeng_device *ed, enum embeng_accel_rung rung,
			    const struct embeng_hang *hang)
{
	u64 seen = READ_ONCE(ed->resets.sequence);

	if (!capable(CAP_SYS_ADMIN))
		return -EACCES;
	if (embeng_reset_ask(ed, rung, seen, hang))
		return -EINTR;
	/* A device whose bus is stopped is only reset once the bus is back. */
	return embeng_gone(ed) || READ_ONCE(ed->resets.sequence) == seen ? -ENODEV : 0;
}

/**
 * embeng_reset_ioctl() - DRM_IOCTL_EMBENG_RESET
 * @drm: device
 * @data: &struct embeng_accel_reset
 * @file: open file with the queue
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_reset_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct embeng_hang hang = { .cause = EMBENG_ACCEL_CAUSE_REQUEST };
	const struct embeng_accel_reset *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	switch (arg->rung) {
	case EMBENG_ACCEL_RESET_QUEUE:
		return embeng_queue_reset(ctx, arg->queue, &hang);
	case EMBENG_ACCEL_RESET_ENGINE:
	case EMBENG_ACCEL_RESET_FUNCTION:
		return arg->queue ? -EINVAL : reset_on_request(ctx->device, arg->rung, &hang);
	}
	return -EINVAL;
}
