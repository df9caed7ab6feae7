// SPDX-License-Identifier: MIT
/*
 * Sleeps until something on the device completes, and makes a descriptor readable for programs that
 * poll. The driver's file is readable while completions are unread. That alone is not what a poller
 * of the library wants to know: another thread may have read the completion that it waits for, so
 * that the session signals an eventfd; and completions of a validated queue count as unread until
 * the next submit, so that the file is watched for what is new (EPOLLET).
 *
 * The descriptors live from accel_event_open() to accel_event_close(). accel_event_wait() is called
 * without the session's lock; the count of events is atomic.
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "accel.h"
#include "base/clock.h"
#include "base/error.h"

static int watch_fd(struct accel *a, int fd, uint32_t how)
{
	struct epoll_event event = {.events = EPOLLIN | how};

	return epoll_ctl(a->poll, EPOLL_CTL_ADD, fd, &event);
}

int accel_event_open(struct accel *a)
{
	a->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->poll = epoll_create1(EPOLL_CLOEXEC);
	if (a->ready < 0 || a->poll < 0 || watch_fd(a, a->ready, 0) || watch_fd(a, a->fd, EPOLLET))
		return fail(-errno, "%s: no descriptor to wait with: %s", a->node, strerror(errno));
	return 0;
}

void accel_event_close(struct accel *a)
{
	if (a->poll >= 0)
		close(a->poll);
	if (a->ready >= 0)
		close(a->ready);
}

/* Until an event beyond @seen, or @deadline_ns. */
static void wait_for_event(struct accel *a, uint64_t seen, int64_t deadline_ns)
{
	struct embeng_accel_wait wait = {
		.queue = EMBENG_ACCEL_ANY_QUEUE, .deadline_ns = deadline_ns, .events = seen};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_WAIT, &wait);

	if (ret && ret != -ETIME) {
		const struct timespec nap = {.tv_nsec = deadline_ns ? 1000000 : 0};

		accel_failed(a, ret, "waiting");
		nanosleep(&nap, NULL);
		return;
	}
	__atomic_store_n(&a->events, wait.events, __ATOMIC_RELAXED);
}

uint32_t accel_event_read(struct device *d)
{
	return (uint32_t)__atomic_load_n(&accel_of(d)->events, __ATOMIC_RELAXED);
}

void accel_event_wait(struct device *d, uint32_t seen, uint64_t timeout_ns)
{
	struct accel *a = accel_of(d);
	uint64_t events = __atomic_load_n(&a->events, __ATOMIC_RELAXED);

	if ((uint32_t)events == seen)
		wait_for_event(a, events, (int64_t)(now_ns() + timeout_ns));
}

/* A thread that sleeps in the kernel is not woken: it looks again soon enough (session/wait.c). */
void accel_event_signal(struct device *d)
{
	struct accel *a = accel_of(d);
	const uint64_t one = 1;

	/* A full counter is readable already, which is all that a poller asks. */
	if (__atomic_load_n(&a->polled, __ATOMIC_RELAXED) && write(a->ready, &one, sizeof(one)) < 0)
		return;
}

int accel_fd(struct device *d)
{
	struct accel *a = accel_of(d);

	__atomic_store_n(&a->polled, true, __ATOMIC_RELAXED);
	return a->poll;
}

void accel_fd_clear(struct device *d)
{
	struct accel *a = accel_of(d);
	struct epoll_event was[2];
	uint64_t count;

	/* This arms validated queues, too. A later event makes the descriptor readable again. */
	wait_for_event(a, __atomic_load_n(&a->events, __ATOMIC_RELAXED), 0);
	epoll_wait(a->poll, was, 2, 0);
	/* Nothing to read is the common case, not a failure. */
	if (read(a->ready, &count, sizeof(count)) < 0)
		return;
}
