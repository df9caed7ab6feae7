// SPDX-License-Identifier: MIT
/* Waiting: what is refused, what ends it, events and poll(). */
#include "../unit/support/suite.h"
#include "accel.h"
#include "fault_file.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MAPPED EMBENG_ACCEL_QUEUE_MAPPED
#define WAIT DRM_IOCTL_EMBENG_WAIT

static int fd;

static void setup(void)
{
	fd = accel_open();
	accel_context(fd);
}

static void teardown(void)
{
	close(fd);
}

static const struct {
	const char *what;
	int error;
	struct embeng_accel_wait arg;
} wrong_waits[] = {
	{"no count", EINVAL, {.count = 0, .deadline_ns = 1}},
	{"count beyond the ring", EINVAL, {.count = 33}},
	{"head beyond the tail", EINVAL, {.count = 1, .cq_head = 1}},
	{"least above count", EINVAL, {.count = 1, .least = 2, .least_ns = 1}},
	{"least without time", EINVAL, {.count = 2, .least = 1}},
	{"time without least", EINVAL, {.count = 2, .least_ns = 1}},
	{"negative deadline", EINVAL, {.count = 1, .deadline_ns = -1}},
	{"negative least time", EINVAL, {.count = 2, .least = 1, .least_ns = -1}},
	{"events", EINVAL, {.count = 1, .events = 1}},
	{"tail", EINVAL, {.count = 1, .cq_tail = 1}},
	{"state", EINVAL, {.count = 1, .state = 1}},
	{"no such queue", ENOENT, {.count = 1, .queue = 1000}},
	{"any queue with count", EINVAL, {.queue = EMBENG_ACCEL_ANY_QUEUE, .count = 1}},
	{"any queue with head", EINVAL, {.queue = EMBENG_ACCEL_ANY_QUEUE, .cq_head = 1}},
	{"any queue with least",
	 EINVAL,
	 {.queue = EMBENG_ACCEL_ANY_QUEUE, .least = 1, .least_ns = 1}},
};

/* Of a queue of either way. */
START_TEST(test_refused)
{
	static const size_t waits = sizeof(wrong_waits) / sizeof(wrong_waits[0]);
	size_t i = (size_t)_i % waits;
	uint32_t flags = (size_t)_i < waits ? MAPPED : 0;
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, flags);
	struct embeng_accel_wait arg = wrong_waits[i].arg;

	if (!arg.queue)
		arg.queue = ring.made.queue;
	REFUSED_FOR(wrong_waits[i].what, wrong_waits[i].error, fd, WAIT);
}
END_TEST

START_TEST(test_wait_late)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = {
		.queue = ring.made.queue, .count = 2, .deadline_ns = accel_now() + SECOND / 20};

	accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP});
	ck_assert_int_eq(accel_wait(fd, &ring, 1), 0);
	ck_assert_int_eq(accel_call(fd, WAIT, &arg), -ETIME);
	ck_assert_int_ge(accel_now(), arg.deadline_ns);
	ck_assert_uint_eq(arg.cq_tail, 1);
	ck_assert_uint_eq(arg.state, EMBENG_QUEUE_RUNNING);
	arg = (struct embeng_accel_wait){.queue = ring.made.queue,
					 .count = 2,
					 .least = 1,
					 .least_ns = 1,
					 .deadline_ns = accel_now() + 10 * SECOND};
	ck_assert_int_eq(accel_call(fd, WAIT, &arg), 0);
	ck_assert_uint_eq(arg.cq_tail, 1);
}
END_TEST

/* Completions that nobody takes stop the queue, which ends a wait for more. */
START_TEST(test_full)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = {.queue = ring.made.queue,
					.cq_head = 0xffffffff,
					.count = 32,
					.deadline_ns = accel_now() + 10 * SECOND};

	for (int i = 0; i < 48; i++) {
		while (ring.sq_tail - accel_header(&ring)->sq_head == 16)
			if (accel_header(&ring)->report.state == EMBENG_QUEUE_CQ_FULL)
				break;
		if (ring.sq_tail - accel_header(&ring)->sq_head == 16)
			break;
		accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP});
	}
	arg.cq_head = 0;
	ck_assert_int_eq(accel_call(fd, WAIT, &arg), 0);
	ck_assert_uint_eq(arg.cq_tail, 32);
	accel_take(fd, &ring);
	ck_assert_int_eq(accel_wait(fd, &ring, 32), 0);
}
END_TEST

START_TEST(test_error_ends_waiting)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = {
		.queue = ring.made.queue, .count = 1, .deadline_ns = accel_now() + 10 * SECOND};

	embeng_doorbell_tail(&ring.doorbell->sq_tail, 1000);
	ck_assert_int_eq(accel_call(fd, WAIT, &arg), 0);
	ck_assert_uint_eq(arg.state, EMBENG_QUEUE_ERROR);
}
END_TEST

START_TEST(test_events_and_poll)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = {.queue = EMBENG_ACCEL_ANY_QUEUE};
	struct pollfd watched = {.fd = fd, .events = POLLIN};

	accel_call(fd, WAIT, &arg);
	while (poll(&watched, 1, 0))
		accel_call(fd, WAIT, &arg);
	arg.cq_tail = arg.state = 0;
	ring.doorbell->arm = 0;
	EMBENG_STORE_RELEASE(&ring.doorbell->armed, 1);
	accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP,
					      .arg = 50000ull << EMBENG_NOP_DELAY_SHIFT});
	ck_assert_int_eq(poll(&watched, 1, 10000), 1);
	ck_assert_int_eq(watched.revents, POLLIN);
	arg.deadline_ns = accel_now() + 10 * SECOND;
	ck_assert_int_eq(accel_call(fd, WAIT, &arg), 0);
	ck_assert_int_eq(poll(&watched, 1, 0), 0);
}
END_TEST

/* poll() has no deadline to look again by: the driver looks for it. */
START_TEST(test_poll_outlives_a_lost_interrupt)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	struct embeng_accel_wait arg = {.queue = EMBENG_ACCEL_ANY_QUEUE};

	accel_call(fd, WAIT, &arg);
	while (poll(&watched, 1, 0))
		accel_call(fd, WAIT, &arg);
	fault_arm("lose_interrupt", 1);
	accel_give(fd, &ring,
		   (struct embeng_cmd){.opcode = EMBENG_OP_NOP,
				       .arg = 300000ull << EMBENG_NOP_DELAY_SHIFT});
	ck_assert_int_eq(poll(&watched, 1, 20000), 1);
	ck_assert_int_eq(watched.revents, POLLIN);
	ck_assert_uint_eq(fault_get("lose_interrupt", "hits"), 1);
	fault_arm("lose_interrupt", 0);
}
END_TEST

static void give_nops(struct ring *ring, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		accel_give(fd, ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP});
	while (embeng_observe_cq_tail(&accel_header(ring)->cq_tail) != ring->sq_tail)
		usleep(1000);
}

/* An event for each eight completions, or after a second; poll() arms. */
START_TEST(test_events_are_coalesced)
{
	struct embeng_accel_queue_create made = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	int64_t begun;
	struct ring ring;
	uint64_t before, events;

	made.coalesce_count = 8;
	made.coalesce_us = 1000000;
	ring = accel_ring_of(fd, made);
	begun = accel_now();
	poll(&watched, 1, 0);
	before = accel_state(fd).events;
	give_nops(&ring, 7);
	events = accel_state(fd).events;
	ck_assert(events == before || accel_now() - begun >= SECOND);
	give_nops(&ring, 1);
	while (accel_state(fd).events == before)
		usleep(1000);
}
END_TEST

/* What was given back once cannot be taken again. */
START_TEST(test_head_goes_forward)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_cmd cmds[2] = {{.opcode = EMBENG_OP_NOP}, {.opcode = EMBENG_OP_NOP}};
	struct embeng_accel_submit give = {.queue = ring.made.queue,
					   .count = 2,
					   .stride = sizeof(*cmds),
					   .commands = (uintptr_t)cmds};
	struct embeng_accel_wait arg = {.queue = ring.made.queue, .cq_head = 1, .count = 1};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_SUBMIT, &give), 0);
	ck_assert_int_eq(accel_wait(fd, &ring, 2), 0);
	ck_assert_int_eq(accel_call(fd, WAIT, &arg), 0);
	arg = (struct embeng_accel_wait){.queue = ring.made.queue, .count = 1};
	REFUSED(EINVAL, fd, WAIT);
}
END_TEST

struct sleeper {
	struct embeng_accel_wait arg;
	int error;
};

static void *sleep_long(void *arg)
{
	struct sleeper *s = arg;

	s->error = ioctl(fd, WAIT, &s->arg) ? -errno : 0;
	return NULL;
}

static struct sleeper sleeper_on(uint32_t queue)
{
	return (struct sleeper){
		.arg = {.queue = queue, .count = 1, .deadline_ns = accel_now() + 100 * SECOND}};
}

START_TEST(test_destroyed_meanwhile)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, _i ? MAPPED : 0);
	struct sleeper s = sleeper_on(ring.made.queue), given = s;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, sleep_long, &s), 0);
	usleep(50000);
	accel_ring_close(fd, &ring);
	pthread_join(thread, NULL);
	ck_assert_int_eq(s.error, -ENOENT);
	ck_assert_mem_eq(&s.arg, &given.arg, sizeof(s.arg));
}
END_TEST

static void note(int number)
{
	(void)number;
}

START_TEST(test_a_signal_ends_it)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct sleeper s = sleeper_on(ring.made.queue), given = s;
	struct sigaction action = {.sa_handler = note};
	pthread_t thread;

	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, sleep_long, &s), 0);
	usleep(50000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	ck_assert_int_eq(s.error, -EINTR);
	ck_assert_mem_eq(&s.arg, &given.arg, sizeof(s.arg));
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_refused, 0, 2 * sizeof(wrong_waits) / sizeof(wrong_waits[0]));
	tcase_add_test(tc, test_wait_late);
	tcase_add_test(tc, test_full);
	tcase_add_test(tc, test_error_ends_waiting);
	tcase_add_test(tc, test_events_and_poll);
	tcase_add_test(tc, test_poll_outlives_a_lost_interrupt);
	tcase_add_test(tc, test_events_are_coalesced);
	tcase_add_test(tc, test_head_goes_forward);
	tcase_add_loop_test(tc, test_destroyed_meanwhile, 0, 2);
	tcase_add_test(tc, test_a_signal_ends_it);
}

int main(void)
{
	return suite_main("wait", add);
}
