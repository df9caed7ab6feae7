// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watchdog: tells a hang from work, and resets the part that hangs. It judges progress over
 * several looks in a row, never the time that a command takes:
 *
 *	registers all ones		gone
 *	STATUS says fault		engine
 *	no longer RUNNING		function: something else has reset it
 *	heartbeat stands		engine; it moves however long a command is
 *	a completion was lost		queue, at once
 *	a queue stands, and
 *	  the device does not attend	queue
 *	  or knows no reason for it	queue
 *	a queue waits for its program	none
 *	the bus does not recover	gone
 *
 * It is one work for each device and looks only while there are contexts, since nobody else could
 * miss anything. It holds reset_lock for reading while it looks, and when it begins to act neither
 * that nor a context's lock, but a reference to the context. An interrupt reports a device
 * fault as well, and a second work acts on that at once.
 */
#include <linux/cleanup.h>
#include <linux/ktime.h>
#include <linux/module.h>

#include "context.h"

static uint hang_ms = 10000;
module_param(hang_ms, uint, 0600);
MODULE_PARM_DESC(hang_ms, "milliseconds without progress after which a queue or the device counts as hung; 0 turns the watchdog off (default: 10000)");

/* Looks in a row without movement that make a hang. A pause of the system counts as one look. */
#define LOOKS 5
/* The longest period between heartbeats that is believed; no firmware may have a longer one. */
#define BEAT_MS_MAX 20000u
/* While hang_ms is 0, this is how often the parameter is read again. */
#define ASLEEP_MS 5000

/* A bus that recovers at all is back after this many looks. */
#define AWAY_LOOKS (6 * LOOKS)

/*
 * The verdict on the device. A queue that hangs is noted in its context instead, and each context
 * is acted on, so that a program that has a queue hang on every look does not keep the queues of
 * others from being brought back.
 */
struct verdict {
	struct embeng_hang hang; /* cause NONE: all is well */
	u32 rung;
};

static void look_at_registers(struct embeng_device *ed)
{
	struct embeng_device_watch *w = &ed->watch;
	u32 heartbeat = embeng_read32(ed, EMBENG_REG_HEARTBEAT);

	w->silent = heartbeat == w->heartbeat ? w->silent + 1 : 0;
	if (!w->silent)
		w->since_ns = ktime_get_ns();
	w->heartbeat = heartbeat;
}

static struct embeng_hang describe_hang(u32 cause, u64 since_ns)
{
	return (struct embeng_hang){ cause, since_ns ? ktime_get_ns() - since_ns : 0, 0 };
}

static void set_verdict(struct verdict *v, u32 cause, u32 rung, u64 since_ns)
{
	v->hang = describe_hang(cause, since_ns);
	v->rung = rung;
}

static bool has_device_fault(const struct embeng_device *ed)
{
	return embeng_read32(ed, EMBENG_REG_STATUS) == EMBENG_DEVICE_FAULT;
}

static void look_at_device(struct embeng_device *ed, struct verdict *v)
{
	if (!embeng_present(ed)) {
		set_verdict(v, EMBENG_ACCEL_CAUSE_GONE, EMBENG_ACCEL_RESET_NONE, 0);
		return;
	}
	look_at_registers(ed);
	if (has_device_fault(ed))
		set_verdict(v, EMBENG_ACCEL_CAUSE_FAULT, EMBENG_ACCEL_RESET_ENGINE, 0);
	else if (embeng_read32(ed, EMBENG_REG_BOOT_STATE) != EMBENG_BOOT_RUNNING)
		set_verdict(v, EMBENG_ACCEL_CAUSE_STATE, EMBENG_ACCEL_RESET_FUNCTION, 0);
	else if (ed->watch.silent >= LOOKS)
		set_verdict(v, EMBENG_ACCEL_CAUSE_HEARTBEAT, EMBENG_ACCEL_RESET_ENGINE,
			    ed->watch.since_ns);
	else
		embeng_readings_look(ed);
}

/* The core does not report a recovery that failed, and nobody must wait for ever. */
static void look_at_bus(struct embeng_device *ed, struct verdict *v)
{
	if (++ed->watch.away >= AWAY_LOOKS)
		set_verdict(v, EMBENG_ACCEL_CAUSE_BUS, EMBENG_ACCEL_RESET_NONE, 0);
}

static bool note_queue_movement(struct embeng_queue *q)
{
	const struct embeng_ring_header *header = embeng_queue_header(q);
	struct embeng_queue_watch now = q->watch, *w = &q->watch;

	now.sq_head = READ_ONCE(header->sq_head);
	now.cq_tail = READ_ONCE(header->cq_tail);
	now.done = READ_ONCE(header->done);
	now.epoch = READ_ONCE(header->report.epoch);
	now.progress = READ_ONCE(header->progress);
	now.heartbeat = READ_ONCE(header->heartbeat);
	w->unattended = now.heartbeat == w->heartbeat ? w->unattended + 1 : 0;
	now.unattended = w->unattended;
	if (now.sq_head == w->sq_head && now.cq_tail == w->cq_tail && now.done == w->done &&
	    now.epoch == w->epoch && now.progress == w->progress) {
		w->heartbeat = now.heartbeat;
		return false;
	}
	*w = now;
	return true;
}

/* True if a queue has nothing to do, or its program has to do something first. */
static bool may_queue_stand(const struct embeng_queue *q)
{
	return q->last_tail == READ_ONCE(embeng_queue_header(q)->done) ||
	       embeng_queue_state(q) != EMBENG_QUEUE_RUNNING;
}

/* Return: why a queue hangs, or NONE. Under map_lock, while the context is not lost. */
static u32 judge_queue(struct embeng_queue *q)
{
	struct embeng_queue_watch *w = &q->watch;

	embeng_hang_note(q);
	if (embeng_ring_lost(embeng_queue_header(q)))
		return EMBENG_ACCEL_CAUSE_LOST_COMPLETION;
	if (note_queue_movement(q) || may_queue_stand(q)) {
		w->stood = 0;
		w->since_ns = ktime_get_ns();
		return EMBENG_ACCEL_CAUSE_NONE;
	}
	if (++w->stood < LOOKS)
		return EMBENG_ACCEL_CAUSE_NONE;
	if (w->unattended)
		return w->unattended >= LOOKS && !q->context->device->watch.silent ?
			       EMBENG_ACCEL_CAUSE_STALLED :
			       EMBENG_ACCEL_CAUSE_NONE;
	/* While the device knows why the queue takes time, its progress moves. */
	return EMBENG_ACCEL_CAUSE_STANDSTILL;
}

static void look_at_queues(struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;
	u32 cause;

	ctx->hang.cause = EMBENG_ACCEL_CAUSE_NONE;
	guard(mutex)(&ctx->map_lock);
	xa_for_each(&ctx->queues, number, q) {
		if (q->destroyed)
			continue;
		cause = judge_queue(q);
		if (!cause || ctx->hang.cause)
			continue;
		ctx->hang = describe_hang(cause, q->watch.since_ns);
		/* By the time of the reset another queue may have the number. */
		ctx->hang.timeline = q->timeline;
		ctx->hung_queue = q->number;
	}
}

/* Return: true if there are contexts to look after. */
static bool look_for_hangs(struct embeng_device *ed, struct verdict *v, u64 *seen)
{
	struct embeng_context *ctx;
	bool any = false;

	guard(rwsem_read)(&ed->reset_lock);
	*seen = ed->resets.sequence;
	if (embeng_gone(ed))
		return false;
	if (ed->offline) {
		look_at_bus(ed, v);
		return true;
	}
	ed->watch.away = 0;
	look_at_device(ed, v);
	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		if (!READ_ONCE(ctx->on_device) || ctx->lost)
			continue;
		any = true;
		/* While the device itself is down, queues that stand say nothing. */
		if (!v->hang.cause)
			look_at_queues(ctx);
	}
	return any;
}

/* Return: another context with a hung queue on each call, with a reference, or NULL. */
static struct embeng_context *take_hung_context(struct embeng_device *ed, struct embeng_hang *hang)
{
	struct embeng_context *ctx;

	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		*hang = ctx->hang;
		ctx->hang.cause = EMBENG_ACCEL_CAUSE_NONE;
		if (!hang->cause)
			continue;
		kref_get(&ctx->ref);
		return ctx;
	}
	return NULL;
}

static void reset_hung_queues(struct embeng_device *ed)
{
	struct embeng_context *ctx;
	struct embeng_hang hang;

	while ((ctx = take_hung_context(ed, &hang))) {
		embeng_queue_reset(ctx, ctx->hung_queue, &hang);
		embeng_context_put(ctx);
	}
}

static void act_on_verdict(struct embeng_device *ed, const struct verdict *v, u64 seen)
{
	/* Trouble from a broken bus is left to embeng_error_handlers, until they fail. */
	if (v->hang.cause == EMBENG_ACCEL_CAUSE_BUS)
		embeng_reset_gone(ed, "its bus does not recover");
	else if (pci_channel_offline(ed->pci))
		return;
	else if (v->hang.cause == EMBENG_ACCEL_CAUSE_GONE)
		embeng_reset_gone(ed, "its registers read all ones");
	else if (v->hang.cause)
		embeng_reset(ed, v->rung, seen, &v->hang);
	else
		reset_hung_queues(ed);
}

static unsigned long compute_look_period(struct embeng_device *ed, uint ms)
{
	/* A heartbeat cannot be judged more often than it comes. */
	u32 beat_ms = READ_ONCE(ed->offline) ? 0 : embeng_read32(ed, EMBENG_REG_HEARTBEAT_MS);

	/* A device that is not there, or is broken, reads as a period that is too long. */
	if (beat_ms > BEAT_MS_MAX)
		beat_ms = 0;
	return msecs_to_jiffies(max(ms / LOOKS, beat_ms)) + 1;
}

/* A new context starts this work at once; looks must not follow each other faster for that. */
static void run_watchdog(struct work_struct *work)
{
	struct embeng_device *ed = container_of(work, struct embeng_device, watch.work.work);
	struct verdict v = {};
	uint ms = READ_ONCE(hang_ms);
	bool any = true;
	u64 seen;

	if (ms && time_after_eq(jiffies, ed->watch.last + compute_look_period(ed, ms))) {
		ed->watch.last = jiffies;
		any = look_for_hangs(ed, &v, &seen);
		act_on_verdict(ed, &v, seen);
	}
	if (any && !embeng_gone(ed))
		queue_delayed_work(system_freezable_wq, &ed->watch.work,
				   ms ? compute_look_period(ed, ms) : msecs_to_jiffies(ASLEEP_MS));
}

static void reset_after_fault(struct work_struct *work)
{
	const struct embeng_hang hang = { .cause = EMBENG_ACCEL_CAUSE_FAULT };
	struct embeng_device *ed = container_of(work, struct embeng_device, watch.fault);
	u64 seen;

	scoped_guard(rwsem_read, &ed->reset_lock) {
		/* Trouble from a broken bus is left to embeng_error_handlers. */
		if (embeng_gone(ed) || ed->offline || !has_device_fault(ed) ||
		    pci_channel_offline(ed->pci))
			return;
		seen = ed->resets.sequence;
	}
	embeng_reset(ed, EMBENG_ACCEL_RESET_ENGINE, seen, &hang);
}

/**
 * embeng_watchdog_interrupt() - check for a device fault after an interrupt of vector 0
 * @ed: device; any context of execution
 */
void embeng_watchdog_interrupt(struct embeng_device *ed)
{
	if (READ_ONCE(hang_ms) && has_device_fault(ed))
		queue_work(system_freezable_wq, &ed->watch.fault);
}

/**
 * embeng_watchdog_start() - start looking, because there is a context to look after
 * @ed: device
 */
void embeng_watchdog_start(struct embeng_device *ed)
{
	mod_delayed_work(system_freezable_wq, &ed->watch.work, 1);
}

/**
 * embeng_watchdog_stop() - stop the watchdog for good
 * @ed: device that is given up or was never registered; called without locks
 */
void embeng_watchdog_stop(struct embeng_device *ed)
{
	cancel_delayed_work_sync(&ed->watch.work);
	/* An interrupt may be on its way still. */
	disable_work_sync(&ed->watch.fault);
}

/**
 * embeng_watchdog_init() - set up the watchdog of a new device
 * @ed: device
 */
void embeng_watchdog_init(struct embeng_device *ed)
{
	INIT_DELAYED_WORK(&ed->watch.work, run_watchdog);
	INIT_WORK(&ed->watch.fault, reset_after_fault);
	ed->watch.last = jiffies;
}
