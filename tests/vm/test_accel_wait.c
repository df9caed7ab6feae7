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

/* Each invalid wait is refused, on a mapped queue and on a validated one. */
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

	ck_assert_int_eq(poll(&watched, 1, 0), 0);
	ring.doorbell->arm = 0;
	EMBENG_STORE_RELEASE(&ring.doorbell->armed, 1);
	accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP,
					      .arg = 50000ull << EMBENG_NOP_DELAY_SHIFT});
	ck_assert_int_eq(poll(&watched, 1, 10000), 1);
	ck_assert_int_eq(watched.revents, POLLIN);
	arg.deadline_ns = accel_now() + 10 * SECOND;
	ck_assert_int_eq(accel_call(fd, WAIT, &arg), 0);
	ck_assert_int_eq(poll(&watched, 1, 0), 1);
	accel_take(fd, &ring);
	ck_assert_int_eq(poll(&watched, 1, 0), 0);
}
END_TEST

/* poll() has no deadline to look again by: the driver looks for it. */
START_TEST(test_poll_outlives_a_lost_interrupt)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct pollfd watched = {.fd = fd, .events = POLLIN};

	ck_assert_int_eq(poll(&watched, 1, 0), 0);
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

/* A program can move the head of its completion ring forward only. */
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

static const struct {
	bool any; /* ANY_QUEUE in place of a queue */
	int flags;
} signals[] = {
	{false, 0},
	{true, 0},
	{false, SA_RESTART},
	{true, SA_RESTART},
};

/* A WAIT on any queue that has nothing to tell yet. */
static struct embeng_accel_wait all_events_seen(void)
{
	struct embeng_accel_wait wait = {.queue = EMBENG_ACCEL_ANY_QUEUE};

	while (!accel_call(fd, WAIT, &wait))
		wait.cq_tail = wait.state = 0;
	return (struct embeng_accel_wait){.queue = EMBENG_ACCEL_ANY_QUEUE, .events = wait.events};
}

/* A signal ends a WAIT, or with SA_RESTART lets it sleep on until its deadline. */
START_TEST(test_signals)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	bool restarts = signals[_i].flags == SA_RESTART;
	struct sleeper s = sleeper_on(ring.made.queue), given;
	struct sigaction action = {.sa_handler = note, .sa_flags = signals[_i].flags};
	pthread_t thread;

	if (signals[_i].any)
		s.arg = all_events_seen();
	s.arg.deadline_ns = accel_now() + (restarts ? SECOND : 100 * SECOND);
	given = s;
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, sleep_long, &s), 0);
	usleep(50000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	ck_assert_int_eq(s.error, restarts ? -ETIME : -EINTR);
	if (restarts)
		ck_assert_int_ge(accel_now(), given.arg.deadline_ns);
	else
		ck_assert_mem_eq(&s.arg, &given.arg, sizeof(s.arg));
}
END_TEST

static void *poll_long(void *arg)
{
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	int *result = arg;

	*result = poll(&watched, 1, 60000) < 0 ? -errno : watched.revents;
	return NULL;
}

/* poll() is never restarted. */
START_TEST(test_signals_end_poll)
{
	struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
	pthread_t thread;
	int result = 0;

	accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, poll_long, &result), 0);
	usleep(50000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result, -EINTR);
}
END_TEST

static void tell_what_was_read(const struct ring *ring)
{
	struct embeng_accel_wait wait = {
		.queue = ring->made.queue, .cq_head = ring->cq_head, .count = 1};

	ck_assert_int_eq(accel_call(fd, WAIT, &wait), -ETIME);
}

/* Waits for any event again and again, and so takes whatever can be taken. */
static int greedy_stop;

static void *wait_greedily(void *arg)
{
	struct embeng_accel_wait wait = {.queue = EMBENG_ACCEL_ANY_QUEUE};

	(void)arg;
	while (!__atomic_load_n(&greedy_stop, __ATOMIC_ACQUIRE)) {
		wait.deadline_ns = accel_now() + SECOND / 10;
		wait.cq_tail = wait.state = 0;
		accel_call(fd, WAIT, &wait);
	}
	return NULL;
}

/* poll() finds a completion, whoever else waits on the file, and for as long as it is unread. */
START_TEST(test_nobody_takes_it_from_poll)
{
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	const struct embeng_cmd nop = {.opcode = EMBENG_OP_NOP,
				       .arg = 20000ull << EMBENG_NOP_DELAY_SHIFT};
	pthread_t thread;

	accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_greedily, NULL), 0);
	for (int round = 0; round < 20; round++) {
		int64_t begun = accel_now();

		accel_give(fd, &ring, nop);
		ck_assert_int_eq(poll(&watched, 1, 20000), 1);
		ck_assert_int_eq(watched.revents, POLLIN);
		ck_assert_int_lt(accel_now() - begun, 10 * SECOND);
		usleep(10000);
		ck_assert_int_eq(poll(&watched, 1, 0), 1);
		ck_assert_uint_eq(accel_take(fd, &ring).status, EMBENG_STATUS_OK);
		tell_what_was_read(&ring);
		ck_assert_int_eq(poll(&watched, 1, 0), 0);
	}
	__atomic_store_n(&greedy_stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}
END_TEST

/* A queue that has stopped is readable until a WAIT on that queue, and on no other, has said so. */
START_TEST(test_poll_tells_that_a_queue_stopped)
{
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	struct ring other = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait any = {.queue = EMBENG_ACCEL_ANY_QUEUE};
	struct embeng_accel_wait wait = {.queue = other.made.queue, .count = 1};

	ck_assert_int_eq(poll(&watched, 1, 0), 0);
	embeng_doorbell_tail(&ring.doorbell->sq_tail, 1000);
	ck_assert_int_eq(poll(&watched, 1, 20000), 1);
	accel_call(fd, WAIT, &any);
	ck_assert_int_eq(accel_call(fd, WAIT, &wait), -ETIME);
	ck_assert_int_eq(poll(&watched, 1, 0), 1);
	wait = (struct embeng_accel_wait){.queue = ring.made.queue, .count = 1};
	ck_assert_int_eq(accel_call(fd, WAIT, &wait), 0);
	ck_assert_uint_eq(wait.state, EMBENG_QUEUE_ERROR);
	ck_assert_int_eq(poll(&watched, 1, 0), 0);
}
END_TEST

/* Nothing was completed, and yet who waits for any event learns that a queue has stopped. */
START_TEST(test_a_stop_is_an_event)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait any = {.queue = EMBENG_ACCEL_ANY_QUEUE};

	while (!accel_call(fd, WAIT, &any))
		any.cq_tail = any.state = 0;
	any.cq_tail = any.state = 0;
	any.deadline_ns = accel_now() + 20 * SECOND;
	embeng_doorbell_tail(&ring.doorbell->sq_tail, 1000);
	while (accel_header(&ring)->report.state != EMBENG_QUEUE_ERROR)
		usleep(1000);
	ck_assert_int_eq(accel_call(fd, WAIT, &any), 0);
	ck_assert_uint_eq(embeng_observe_cq_tail(&accel_header(&ring)->cq_tail), 0);
}
END_TEST

/* A call that sleeps holds the file: nothing ends when another thread closes its descriptor. */
START_TEST(test_closing_ends_no_sleep)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct sleeper s = sleeper_on(ring.made.queue);
	pthread_t thread;

	s.arg.deadline_ns = accel_now() + SECOND;
	ck_assert_int_eq(pthread_create(&thread, NULL, sleep_long, &s), 0);
	usleep(50000);
	close(fd);
	pthread_join(thread, NULL);
	ck_assert_int_eq(s.error, -ETIME);
	setup();
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
	tcase_add_loop_test(tc, test_signals, 0, sizeof(signals) / sizeof(signals[0]));
	tcase_add_test(tc, test_signals_end_poll);
	tcase_add_test(tc, test_nobody_takes_it_from_poll);
	tcase_add_test(tc, test_poll_tells_that_a_queue_stopped);
	tcase_add_test(tc, test_a_stop_is_an_event);
	tcase_add_test(tc, test_closing_ends_no_sleep);
}

int main(void)
{
	return suite_main("wait", add);
}
