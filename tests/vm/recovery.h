/* SPDX-License-Identifier: MIT */
/* A context with work on both kinds of queues, to check how it learns that the device went down. */
#ifndef EMBENG_TESTS_RECOVERY_H
#define EMBENG_TESTS_RECOVERY_H

#include <poll.h>
#include <unistd.h>

#include "accel.h"
#include "uevents.h"

#define PARAMETERS "/sys/module/embeng/parameters/"
#define ADDRESS "0eb0:00:00.0"

static int fd;
static struct ring rings[2]; /* validated, mapped */
static struct embeng_accel_resets before;

static inline void setup(void)
{
	accel_write(PARAMETERS "hang_ms", "1000");
	accel_write(PARAMETERS "admin_timeout_ms", "2000");
	/* A device that does not answer gets so long; one that boots needs a fraction. */
	accel_write(PARAMETERS "answer_timeout_ms", "6000");
	uevents_start();
	fd = accel_open();
	accel_context(fd);
	before = accel_resets(fd);
	for (int i = 0; i < 2; i++)
		rings[i] = accel_ring(fd, EMBENG_QUEUE_TRANSFER, i ? EMBENG_ACCEL_QUEUE_MAPPED : 0);
}

static inline void teardown(void)
{
	close(fd);
	uevents_stop();
	accel_write(PARAMETERS "answer_timeout_ms", "20000");
	accel_write(PARAMETERS "admin_timeout_ms", "20000");
	accel_write(PARAMETERS "hang_ms", "10000");
}

static inline struct embeng_cmd nop(uint64_t cookie, uint32_t delay_us)
{
	return (struct embeng_cmd){.opcode = EMBENG_OP_NOP,
				   .cookie = cookie,
				   .arg = (uint64_t)delay_us << EMBENG_NOP_DELAY_SHIFT};
}

/* Submits to both rings a command that waits in the device, and two that wait behind it. */
static inline void give_work(void)
{
	for (int i = 0; i < 2; i++) {
		accel_give(fd, &rings[i], nop(20, EMBENG_NOP_DELAY_MAX));
		accel_give(fd, &rings[i], nop(21, 0));
		accel_give(fd, &rings[i], nop(22, 0));
		while (embeng_observe_sq_head(&accel_header(&rings[i])->sq_head) != 1)
			usleep(1000);
	}
}

static inline struct embeng_cqe look(const struct ring *ring, uint32_t index)
{
	const struct embeng_queue_layout *layout = &ring->made.layout;

	ck_assert_int_gt((int32_t)(embeng_observe_cq_tail(&accel_header(ring)->cq_tail) - index),
			 0);
	return ((struct embeng_cqe *)(ring->memory + layout->cq))[index];
}

static inline void expect_aborted(const struct ring *ring)
{
	ck_assert_uint_eq(accel_header(ring)->dead, 1);
	ck_assert_uint_eq(accel_header(ring)->cq_tail, 3);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(look(ring, i).cookie, 20 + i);
		ck_assert_uint_eq(look(ring, i).status, EMBENG_STATUS_ABORTED);
	}
}

static inline void await_end(short how)
{
	struct pollfd watched = {.fd = fd, .events = POLLIN};

	do {
		ck_assert_int_eq(poll(&watched, 1, 60000), 1);
	} while (!(watched.revents & how));
}

static inline void expect_lost(uint32_t cause, uint32_t rung)
{
	struct embeng_accel_wait wait = {.queue = EMBENG_ACCEL_ANY_QUEUE};
	struct embeng_accel_resets now = accel_resets(fd);

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &wait), -ESHUTDOWN);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	ck_assert_uint_eq(accel_state(fd).reset_sequence, now.sequence);
	ck_assert_uint_eq(accel_health(fd).cause, cause);
	ck_assert_uint_eq(accel_health(fd).rung, rung);
	ck_assert_uint_eq(now.sequence, before.sequence + 1);
	ck_assert_uint_eq(now.queues, before.queues);
}

static inline void expect_gone(void)
{
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_CAPS};

	REFUSED(ENODEV, fd, DRM_IOCTL_EMBENG_QUERY);
	expect_aborted(&rings[0]);
	expect_aborted(&rings[1]);
	rings[1].doorbell->sq_tail = 77;
}

#endif
