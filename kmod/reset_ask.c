// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resets of the device that calls of programs ask for, because the device gave them no answer or an
 * administrator wants one. A reset takes as long as a dead device lets it, and is not given up half
 * way, so a work makes it. Its caller waits, but only until it is killed.
 *
 * It is a file of its own because it is the border between callers that may be killed and the
 * ladder in reset.c, which may not. Two requests at a time are made one: the sequence number tells
 * the second that another reset has dealt with its trouble. recovery.lock is held for a few words.
 * The work runs on the device's own workqueue, inside nothing else, and takes reset_lock.
 */
#include <linux/cleanup.h>

#include "driver.h"

static void serve_requests(struct work_struct *work)
{
	struct embeng_device *ed = container_of(work, struct embeng_device, recovery.work);
	struct embeng_recovery *r = &ed->recovery;
	enum embeng_accel_rung rung;
	struct embeng_hang hang;
	u64 ticket, seen;

	scoped_guard(spinlock, &r->lock) {
		ticket = r->asked;
		rung = r->rung;
		seen = r->seen;
		hang = r->hang;
	}
	embeng_reset(ed, rung, seen, &hang);
	scoped_guard(spinlock, &r->lock)
		r->served = ticket;
	wake_up_all(&r->wait);
}

static u64 enter_request(struct embeng_recovery *r, enum embeng_accel_rung rung, u64 seen,
			 const struct embeng_hang *hang)
{
	u64 ticket;

	scoped_guard(spinlock, &r->lock) {
		/* The higher rung does for both of two requests that wait. */
		r->rung = r->asked == r->served ? rung : max(r->rung, rung);
		r->seen = seen;
		r->hang = *hang;
		ticket = ++r->asked;
	}
	return ticket;
}

static bool is_request_served(struct embeng_recovery *r, u64 ticket)
{
	bool served;

	scoped_guard(spinlock, &r->lock)
		served = r->served >= ticket;
	return served;
}

/**
 * embeng_reset_ask() - have a work take rungs until the device runs again, and wait for it
 * @ed: device; not under reset_lock
 * @rung: as in embeng_reset()
 * @seen: as in embeng_reset()
 * @hang: as in embeng_reset()
 *
 * Return: 0 once it was done, or -EINTR when the caller was killed; it is done all the same then.
 */
int embeng_reset_ask(struct embeng_device *ed, enum embeng_accel_rung rung, u64 seen,
		     const struct embeng_hang *hang)
{
	struct embeng_recovery *r = &ed->recovery;
	u64 ticket;

	/* A work is not killed, and need not wait for another one. */
	if (current->flags & PF_KTHREAD) {
		embeng_reset(ed, rung, seen, hang);
		return 0;
	}
	ticket = enter_request(r, rung, seen, hang);

	queue_work(ed->work, &r->work);
	return wait_event_killable(r->wait, is_request_served(r, ticket)) ? -EINTR : 0;
}

/**
 * embeng_recovery_init() - set up the work of a new device
 * @ed: device
 */
void embeng_recovery_init(struct embeng_device *ed)
{
	spin_lock_init(&ed->recovery.lock);
	init_waitqueue_head(&ed->recovery.wait);
	INIT_WORK(&ed->recovery.work, serve_requests);
}

/**
 * embeng_recovery_stop() - end the work for good
 * @ed: device that is given up; nobody is inside `users` any more
 */
void embeng_recovery_stop(struct embeng_device *ed)
{
	disable_work_sync(&ed->recovery.work);
}
