// SPDX-License-Identifier: GPL-2.0-only
/*
 * The WAIT ioctl and poll(): sleeping until completions or events are there. A sleeper arms the
 * interrupt, looks again, and sleeps for a second at most, so that a lost interrupt costs a second
 * and not the whole wait.
 *
 * A sleeper holds a reference to its queue, and is inside `users`, so that the driver does not let
 * go of the device under it; embeng_reset_give_up() wakes all of them. No lock is held while it
 * sleeps. The locks that a wait begins with (reset_lock for reading, queue->lock or map_lock
 * inside it) are let go of before.
 */
#include <linux/cleanup.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>

#include "context.h"

/* The longest sleep without a look, which is the delay that a lost interrupt causes. */
#define NAP_NS NSEC_PER_SEC
#define SLACK_NS (50 * NSEC_PER_USEC)
/* A report that changes under so many reads is its program's doing, and says nothing. */
#define REPORT_READS 4

struct sleep {
	struct embeng_context *ctx;
	struct embeng_queue *q; /* NULL: any event */
	struct embeng_accel_wait *arg;
	u32 tail;
	u32 state;
	u32 epoch; /* the report that @state comes from has it, or an earlier report */
};

/**
 * embeng_queue_state() - the state of a queue, from the device's report
 * @q: queue
 *
 * A report is about the tails that it names. If the queue has moved on since, it is running.
 * Return: enum embeng_queue_state.
 */
u32 embeng_queue_state(const struct embeng_queue *q)
{
	const struct embeng_queue_report *report = &embeng_queue_header(q)->report;
	u32 epoch, state, tail, head, reads = 0;

	do {
		epoch = embeng_report_read_begin(&report->epoch);
		state = READ_ONCE(report->state);
		tail = READ_ONCE(report->tail);
		head = READ_ONCE(report->cq_head);
		if (epoch & 1 || reads++ == REPORT_READS)
			return EMBENG_QUEUE_RUNNING;
	} while (embeng_report_read_retry(&report->epoch, epoch));
	/* The doorbell is not read during a reset, behind which the context is lost. */
	if (READ_ONCE(q->context->device->resetting))
		return EMBENG_QUEUE_RUNNING;
	if (state == EMBENG_QUEUE_BLOCKED && tail != embeng_doorbell_tail_of(q))
		return EMBENG_QUEUE_RUNNING;
	/* Commands that wait for a fence will run without the program doing anything. */
	if (state == EMBENG_QUEUE_BLOCKED && atomic_read(&q->context->held))
		return EMBENG_QUEUE_RUNNING;
	if (state == EMBENG_QUEUE_CQ_FULL && head != embeng_doorbell_head_of(q))
		return EMBENG_QUEUE_RUNNING;
	return state;
}

static int look_at_completions(struct sleep *s)
{
	const struct embeng_accel_wait *arg = s->arg;
	u32 unread;

	if (READ_ONCE(s->q->destroyed))
		return -ENOENT;
	s->epoch = READ_ONCE(embeng_queue_header(s->q)->report.epoch);
	s->state = embeng_queue_state(s->q);
	s->tail = embeng_observe_cq_tail(&embeng_queue_header(s->q)->cq_tail);
	unread = s->tail - arg->cq_head;
	if (unread > s->q->layout.cq_entries)
		return -EINVAL;
	if (unread >= arg->count || s->state != EMBENG_QUEUE_RUNNING)
		return 0;
	if (arg->least && unread >= arg->least && ktime_get_ns() >= (u64)arg->least_ns)
		return 0;
	return -EAGAIN;
}

/* Return: 0, -EAGAIN when there is nothing yet, or a negative errno for the program. */
static int look_for_event(struct sleep *s)
{
	int ret = embeng_context_usable(s->ctx);

	if (ret)
		return ret;
	if (s->q)
		return look_at_completions(s);
	return (u64)atomic64_read(&s->ctx->events) == s->arg->events ? -EAGAIN : 0;
}

static void arm_sleeper(struct sleep *s)
{
	if (s->q)
		embeng_queue_irq_arm(s->q, s->arg->cq_head + (s->arg->least ?: s->arg->count) - 1);
	else
		embeng_queue_irq_arm_all(s->ctx);
}

/* The latest time for the next look. */
static u64 find_next_look(const struct sleep *s, u64 now)
{
	u64 until = min((u64)s->arg->deadline_ns, now + NAP_NS);

	if (s->arg->least && (u64)s->arg->least_ns > now)
		until = min(until, (u64)s->arg->least_ns);
	return until;
}

/* The task's state is set before the look, so that a wake-up after it is not missed. */
static int sleep_once(struct sleep *s)
{
	ktime_t until;
	u64 now;
	int ret;

	set_current_state(TASK_INTERRUPTIBLE);
	ret = look_for_event(s);
	if (ret != -EAGAIN)
		return ret;
	if (signal_pending(current))
		return -ERESTARTSYS;
	now = ktime_get_ns();
	if (now >= (u64)s->arg->deadline_ns)
		return -ETIME;
	until = ns_to_ktime(find_next_look(s, now));
	schedule_hrtimeout_range(&until, SLACK_NS, HRTIMER_MODE_ABS);
	return -EAGAIN;
}

static int sleep_until_event(struct sleep *s)
{
	DECLARE_WAITQUEUE(entry, current);
	int ret;

	add_wait_queue(&s->ctx->wait, &entry);
	do {
		arm_sleeper(s);
		ret = sleep_once(s);
		__set_current_state(TASK_RUNNING);
	} while (ret == -EAGAIN);
	remove_wait_queue(&s->ctx->wait, &entry);
	return ret;
}

static void answer_wait(struct sleep *s)
{
	struct embeng_accel_wait *arg = s->arg;

	arg->events = atomic64_read(&s->ctx->events);
	arg->cq_tail = s->tail;
	arg->state = s->state;
	if (s->q)
		WRITE_ONCE(s->q->answered_epoch, s->epoch);
}

static int check_wait(const struct embeng_accel_wait *arg, const struct embeng_queue *q)
{
	if (arg->deadline_ns < 0 || arg->least_ns < 0 || arg->cq_tail || arg->state)
		return -EINVAL;
	if (!arg->least != !arg->least_ns)
		return -EINVAL;
	if (!q)
		return arg->cq_head || arg->count || arg->least ? -EINVAL : 0;
	if (!arg->count || arg->count > q->layout.cq_entries || arg->least > arg->count)
		return -EINVAL;
	return arg->events ? -EINVAL : 0;
}

/* Tells the device which completions the program has read, so that it may reuse their slots. */
static int consume_completions(struct embeng_queue *q, u32 head)
{
	guard(mutex)(&q->lock);
	return q->destroyed ? -ENOENT : embeng_ring_consume(q, head);
}

/* Copies the program's tail, which only the doorbell has, and only while the device is there. */
static int look_at_doorbell(struct embeng_queue *q)
{
	guard(mutex)(&q->context->map_lock);
	if (xa_load(&q->context->queues, q->number) != q)
		return -ENOENT;
	embeng_hang_note(q);
	return 0;
}

static int begin_wait(struct embeng_queue *q, u32 head)
{
	int ret;

	CLASS(embeng_talk, ed)(q->context->device);
	if (!ed)
		return -EINTR;
	ret = embeng_context_usable(q->context);
	if (ret)
		return ret;
	return q->mapped ? look_at_doorbell(q) : consume_completions(q, head);
}

static int run_wait(struct embeng_context *ctx, struct embeng_queue *q,
		    struct embeng_accel_wait *arg)
{
	struct sleep s = { .ctx = ctx, .q = q, .arg = arg };
	int ret = check_wait(arg, q);

	if (!ret && q)
		ret = begin_wait(q, arg->cq_head);
	if (ret)
		return ret;
	ret = sleep_until_event(&s);
	if (!ret || ret == -ETIME)
		answer_wait(&s);
	return ret;
}

/**
 * embeng_wait_ioctl() - DRM_IOCTL_EMBENG_WAIT
 * @drm: device
 * @data: &struct embeng_accel_wait
 * @file: open file with the context
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_wait *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);
	struct embeng_queue *q;
	int ret;

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	if (arg->queue == EMBENG_ACCEL_ANY_QUEUE)
		return run_wait(ctx, NULL, arg);
	q = embeng_queue_get(ctx, arg->queue);
	if (!q)
		return -ENOENT;
	ret = run_wait(ctx, q, arg);
	embeng_queue_put(q);
	return ret;
}

/*
 * True if a queue has completions that its program has not read, or has stopped and no WAIT on it
 * has said so. A sleeper of one queue therefore takes nothing from that of another.
 */
static bool is_queue_readable(const struct embeng_queue *q)
{
	const struct embeng_ring_header *header = embeng_queue_header(q);
	u32 head = q->mapped ? q->last_head : READ_ONCE(q->cq_head);

	if (embeng_observe_cq_tail(&header->cq_tail) != head)
		return true;
	return READ_ONCE(header->report.epoch) != READ_ONCE(q->answered_epoch) &&
	       embeng_queue_state(q) != EMBENG_QUEUE_RUNNING;
}

static bool is_any_queue_readable(struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;

	guard(mutex)(&ctx->map_lock);
	xa_for_each(&ctx->queues, number, q) {
		if (q->ring && !q->destroyed && is_queue_readable(q))
			return true;
	}
	return false;
}

static __poll_t read_poll_state(struct embeng_context *ctx)
{
	__poll_t ret = 0;
	int index;

	if (embeng_gone(ctx->device) || !drm_dev_enter(&ctx->device->drm, &index))
		return EPOLLHUP | EPOLLERR;
	embeng_queue_irq_arm_all(ctx);
	if (READ_ONCE(ctx->lost))
		ret |= EPOLLERR;
	if (is_any_queue_readable(ctx))
		ret |= EPOLLIN | EPOLLRDNORM;
	drm_dev_exit(index);
	return ret;
}

/**
 * embeng_wait_poll() - poll() on the device node
 * @file: open file
 * @table: table of the poll() call
 *
 * Return: the events that are ready, as embeng_accel.h documents.
 */
__poll_t embeng_wait_poll(struct file *file, struct poll_table_struct *table)
{
	struct drm_file *drm_file = file->private_data;
	struct embeng_context *ctx = to_embeng_context(drm_file);

	poll_wait(file, &ctx->wait, table);
	embeng_watch_on(ctx);
	return read_poll_state(ctx);
}
