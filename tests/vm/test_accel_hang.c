// SPDX-License-Identifier: MIT
/* Queues that hang, and queues that only seem to, each mapped and validated. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"
#include "fault_file.h"
#include "uevents.h"

#define HANG_MS "/sys/module/embeng/parameters/hang_ms"
#define LONG_US 4000000u /* several times what a hang takes to be found */

static int fd;
static struct ring ring;
static struct embeng_accel_resets before;

static void setup(void)
{
	accel_write(HANG_MS, "1000");
	uevents_start();
	fd = accel_open();
	accel_context(fd);
	before = accel_resets(fd);
}

static void teardown(void)
{
	close(fd);
	uevents_stop();
	accel_write(HANG_MS, "10000");
}

static void open_ring(int mapped)
{
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, mapped ? EMBENG_ACCEL_QUEUE_MAPPED : 0);
}

static struct embeng_cmd nop(uint64_t cookie)
{
	return (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = cookie};
}

static void arm_for_queue(const char *fault)
{
	fault_arm(fault, 0);
	fault_file_set(fault, "target", ring.made.queue);
	fault_file_set(fault, "count", 1);
}

static void expect(uint64_t cookie, uint16_t status)
{
	struct embeng_cqe cqe = accel_take(fd, &ring);

	ck_assert_uint_eq(cqe.cookie, cookie);
	ck_assert_uint_eq(cqe.status, status);
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_DONE);
	if (status != EMBENG_STATUS_HUNG)
		return;
	ck_assert_uint_eq(cqe.element, accel_health(fd).index);
	ck_assert_uint_eq(cqe.limit, EMBENG_ACCEL_RESET_QUEUE);
}

/* Expects @count resets of a queue since the test began, and none of the higher rungs. */
static void expect_queue_resets(uint64_t count)
{
	struct embeng_accel_resets now = accel_resets(fd);

	ck_assert_uint_eq(now.queues, before.queues + count);
	ck_assert_uint_eq(now.engines, before.engines);
	ck_assert_uint_eq(now.functions, before.functions);
	ck_assert_uint_eq(now.sequence, before.sequence);
	ck_assert_uint_eq(now.wedged, 0);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_ALIVE);
}

static void expect_record(uint32_t cause, uint32_t index, uint64_t cookie)
{
	struct embeng_accel_health health = accel_health(fd);

	ck_assert_uint_eq(health.count, 1);
	ck_assert_uint_eq(health.cause, cause);
	ck_assert_uint_eq(health.rung, EMBENG_ACCEL_RESET_QUEUE);
	ck_assert_uint_eq(health.queue, ring.made.queue);
	ck_assert_uint_eq(health.index, index);
	ck_assert_uint_eq(health.opcode, EMBENG_OP_NOP);
	ck_assert_uint_eq(health.cookie, cookie);
	ck_assert_uint_ne(health.time_ns, 0);
}

/* Somebody else's work, in a context of its own, all the while. */
struct other {
	int fd, stop;
	struct ring ring;
	uint64_t done;
};

static void *work(void *arg)
{
	struct other *o = arg;

	while (!__atomic_load_n(&o->stop, __ATOMIC_ACQUIRE)) {
		accel_push(&o->ring, nop(o->done));
		ck_assert_uint_eq(accel_take(o->fd, &o->ring).cookie, o->done++);
	}
	return NULL;
}

static void start_other(struct other *o, pthread_t *thread)
{
	*o = (struct other){.fd = accel_open()};
	accel_context(o->fd);
	o->ring = accel_ring(o->fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	ck_assert_int_eq(pthread_create(thread, NULL, work, o), 0);
}

static void stop_other(struct other *o, pthread_t thread)
{
	uint64_t done = o->done;

	while (__atomic_load_n(&o->done, __ATOMIC_RELAXED) == done)
		usleep(1000);
	__atomic_store_n(&o->stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(accel_state(o->fd).status, EMBENG_ACCEL_CONTEXT_ALIVE);
	ck_assert_uint_eq(accel_health(o->fd).count, 0);
	close(o->fd);
}

static void expect_dump(const char *cause)
{
	const char *dump = devcoredump_take();
	char line[64];

	devcoredump_expect(dump, "embeng devcoredump 1\n");
	snprintf(line, sizeof(line), "cause %s\n", cause);
	devcoredump_expect(dump, line);
	devcoredump_expect(dump, "register MAGIC 0x474e424d\n");
	snprintf(line, sizeof(line), "  queue %u kind 4 ", ring.made.queue);
	devcoredump_expect(dump, line);
	if (ring.doorbell) { /* its ring is its program's word */
		ck_assert_ptr_null(strstr(dump, "cookie"));
		return;
	}
	devcoredump_expect(
		dump, "cookie 0xa step 0 after 0 key 0:0 offset 0 length 0 arg 0x0 at fault\n");
}

/* The device takes nothing from the queue, and works for others meanwhile. */
START_TEST(test_stalled)
{
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	struct other other;
	pthread_t thread;

	open_ring(_i);
	start_other(&other, &thread);
	arm_for_queue("stall_queue");
	for (uint64_t cookie = 10; cookie < 13; cookie++)
		accel_give(fd, &ring, nop(cookie));
	ck_assert_int_eq(poll(&watched, 1, 60000), 1);
	uevents_expect_rung("queue", "stalled");
	expect(10, EMBENG_STATUS_HUNG);
	expect(11, EMBENG_STATUS_ABORTED);
	expect(12, EMBENG_STATUS_ABORTED);
	expect_record(EMBENG_ACCEL_CAUSE_STALLED, 0, 10);
	ck_assert_uint_ge(accel_health(fd).still_ns, 1000000000u);
	expect_queue_resets(1);
	ck_assert_uint_eq(accel_resets(fd).commands, before.commands + 1);
	expect_dump("stalled");
	accel_give(fd, &ring, nop(13));
	expect(13, EMBENG_STATUS_OK);
	stop_other(&other, thread);
}
END_TEST

/* A command that the engine took before the queue stalled is ended by the engine, as HUNG. */
START_TEST(test_stalled_behind_what_was_taken)
{
	struct embeng_cmd later = nop(9);

	later.arg = (uint64_t)EMBENG_NOP_DELAY_MAX << EMBENG_NOP_DELAY_SHIFT;
	open_ring(_i);
	accel_give(fd, &ring, later);
	while (embeng_observe_sq_head(&accel_header(&ring)->sq_head) != 1)
		usleep(1000);
	arm_for_queue("stall_queue");
	accel_give(fd, &ring, nop(10));
	expect(9, EMBENG_STATUS_HUNG);
	expect(10, EMBENG_STATUS_ABORTED);
	expect_record(EMBENG_ACCEL_CAUSE_STALLED, 0, 9);
	expect_queue_resets(1);
}
END_TEST

/* Work goes on after a completion was lost; the command whose it was is told apart. */
START_TEST(test_lost_completion)
{
	open_ring(_i);
	for (uint64_t cookie = 1; cookie < 4; cookie++) {
		accel_give(fd, &ring, nop(cookie));
		expect(cookie, EMBENG_STATUS_OK);
	}
	accel_write(HANG_MS, "0"); /* until all is as it is to be found */
	sleep(1);
	arm_for_queue("drop_completion");
	for (uint64_t cookie = 10; cookie < 13; cookie++)
		accel_give(fd, &ring, nop(cookie));
	expect(11, EMBENG_STATUS_OK);
	expect(12, EMBENG_STATUS_OK);
	accel_write(HANG_MS, "1000");
	expect(10, EMBENG_STATUS_HUNG);
	if (!_i)
		uevents_expect_rung("queue", "lost-completion");
	expect_record(EMBENG_ACCEL_CAUSE_LOST_COMPLETION, 3, 10);
	expect_queue_resets(1);
	if (!_i)
		expect_dump("lost-completion");
	else
		devcoredump_expect_none();
	accel_give(fd, &ring, nop(13));
	expect(13, EMBENG_STATUS_OK);
}
END_TEST

/* Late is not lost: the command was done, and when the queue is ended says so. */
START_TEST(test_late_completion)
{
	open_ring(_i);
	fault_file_set("delay_completion", "value", 3600000000000ull);
	arm_for_queue("delay_completion");
	accel_give(fd, &ring, nop(10));
	expect(10, EMBENG_STATUS_OK);
	uevents_expect_rung("queue", "standstill");
	expect_queue_resets(1);
	fault_file_set("delay_completion", "value", 1000000000);
}
END_TEST

START_TEST(test_delay_is_no_hang)
{
	struct embeng_cmd later = nop(9);

	later.arg = (uint64_t)LONG_US << EMBENG_NOP_DELAY_SHIFT;
	open_ring(_i);
	accel_give(fd, &ring, later);
	expect(9, EMBENG_STATUS_OK);
	expect_queue_resets(0);
}
END_TEST

/* A FENCE on what its program has not submitted yet. */
START_TEST(test_blocked_is_no_hang)
{
	struct embeng_accel_bo_create bo = accel_bo(fd, 4096);
	struct embeng_fence_point *point = accel_map(fd, bo.offset, 4096, 3);
	struct embeng_cmd fence = {.opcode = EMBENG_OP_FENCE, .cookie = 4};
	struct ring other;

	open_ring(_i);
	other = accel_ring(fd, EMBENG_QUEUE_TRANSFER, _i ? EMBENG_ACCEL_QUEUE_MAPPED : 0);
	point->queue = other.made.queue;
	fence.desc = accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);
	fence.desc.length = sizeof(*point);
	accel_give(fd, &ring, fence);
	usleep(LONG_US);
	ck_assert_uint_eq(accel_header(&ring)->report.state, EMBENG_QUEUE_BLOCKED);
	expect_queue_resets(0);
	accel_give(fd, &other, nop(5));
	while (!embeng_observe_cq_tail(&accel_header(&ring)->cq_tail))
		usleep(1000);
	expect(4, EMBENG_STATUS_OK);
}
END_TEST

/* Gives commands until the ring of completions is full, and more wait behind them. Return: how many. */
static uint32_t fill_ring(void)
{
	uint32_t pushed = 0;

	open_ring(1);
	while (accel_header(&ring)->report.state != EMBENG_QUEUE_CQ_FULL) {
		if (ring.sq_tail - embeng_observe_sq_head(&accel_header(&ring)->sq_head) < 16)
			accel_push(&ring, nop(pushed++));
	}
	ck_assert_uint_gt(pushed, 32);
	return pushed;
}

START_TEST(test_full_is_no_hang)
{
	uint32_t pushed = fill_ring();

	usleep(LONG_US);
	expect_queue_resets(0);
	for (uint32_t i = 0; i < pushed; i++)
		expect(i, EMBENG_STATUS_OK);
}
END_TEST

/*
 * A reset completes what has room in the ring. Completions that its program has not read stay, and
 * the commands for which there is no room are done when it has.
 */
START_TEST(test_reset_of_a_full_queue)
{
	uint32_t pushed = fill_ring();
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_QUEUE,
					 .queue = ring.made.queue};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	expect_queue_resets(1);
	for (uint32_t i = 0; i < pushed; i++)
		expect(i, EMBENG_STATUS_OK);
}
END_TEST

/* One look finds a lost completion, and a context that is made starts the work that looks. */
START_TEST(test_looks_can_be_turned_off)
{
	accel_write(HANG_MS, "0");
	sleep(1);
	open_ring(1);
	arm_for_queue("drop_completion");
	accel_give(fd, &ring, nop(10));
	accel_give(fd, &ring, nop(11));
	expect(11, EMBENG_STATUS_OK);
	for (int i = 0; i < 5; i++) {
		accel_works();
		usleep(200000);
	}
	expect_queue_resets(0);
	accel_write(HANG_MS, "1000");
	expect(10, EMBENG_STATUS_HUNG);
	expect_queue_resets(1);
}
END_TEST

/* A program that writes nonsense where the device writes hurts itself alone. */
START_TEST(test_nonsense_in_the_header)
{
	struct embeng_ring_header *header;
	struct other other;
	pthread_t thread;

	open_ring(1);
	header = accel_header(&ring);
	start_other(&other, &thread);
	for (uint32_t i = 0; i < 40; i++) {
		header->sent = i * 0x9e3779b9u;
		header->done = i * 0x85ebca6bu;
		header->sq_head = i * 0xc2b2ae35u;
		header->cq_tail = i * 0x27d4eb2fu;
		embeng_doorbell_tail(&ring.doorbell->sq_tail, i * 0x165667b1u);
		usleep(100000);
	}
	stop_other(&other, thread);
	ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence);
}
END_TEST

/* Says all the time that a completion was lost. */
struct liar {
	int fd, stop;
	struct ring ring;
};

static void *lie(void *arg)
{
	struct liar *l = arg;
	struct embeng_ring_header *header = accel_header(&l->ring);

	while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
		header->sent = embeng_observe_cq_tail(&header->cq_tail) + 1;
		usleep(100);
	}
	return NULL;
}

/* Nor does it keep the driver from what hangs of others. */
START_TEST(test_nonsense_hides_no_hang)
{
	struct liar liar = {.fd = fd};
	pthread_t thread;

	liar.ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	fd = accel_open();
	accel_context(fd);
	open_ring(_i);
	ck_assert_int_eq(pthread_create(&thread, NULL, lie, &liar), 0);
	arm_for_queue("stall_queue");
	accel_give(fd, &ring, nop(10));
	expect(10, EMBENG_STATUS_HUNG);
	expect_record(EMBENG_ACCEL_CAUSE_STALLED, 0, 10);
	__atomic_store_n(&liar.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(accel_health(liar.fd).cause, EMBENG_ACCEL_CAUSE_LOST_COMPLETION);
	ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence);
	close(liar.fd);
}
END_TEST

/* Another user resets queues of its own, or lies about them, all the time. */
static void flood_of_resets(bool lie_about)
{
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_QUEUE};
	struct embeng_ring_header *header;

	ck_assert_int_eq(setuid(1000), 0);
	fd = accel_open();
	accel_context(fd);
	open_ring(1);
	header = accel_header(&ring);
	arg.queue = ring.made.queue;
	while (accel_health(fd).count < (lie_about ? 5 : 300)) {
		if (lie_about)
			header->sent = embeng_observe_cq_tail(&header->cq_tail) + 1;
		else
			ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	}
	_exit(0);
}

/* The program is told of each; the machine of none that it made up, and of few of the others. */
START_TEST(test_flood_of_resets)
{
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_QUEUE};
	int status, told;
	char path[64];
	pid_t child;

	close(accel_open_path(path, sizeof(path)));
	ck_assert_int_eq(chmod(path, 0666), 0);
	open_ring(0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child)
		flood_of_resets(_i);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	told = uevents_count();
	ck_assert_msg(_i ? !told : told > 0 && told < 100, "%d uevents", told);
	devcoredump_expect_none();
	/* Another user's reset is told all the same. */
	arg.queue = ring.made.queue;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	uevents_expect_rung("queue", "request");
}
END_TEST

/* Lies about its queue until it was reset once, and on until the watchdog looks for the next time. */
static void lie_and_leave(uint32_t late_us)
{
	struct embeng_ring_header *header;
	struct timespec end;
	uint64_t end_ns;

	fd = accel_open();
	accel_context(fd);
	open_ring(1);
	header = accel_header(&ring);
	while (!accel_health(fd).count)
		header->sent = embeng_observe_cq_tail(&header->cq_tail) + 1;
	end_ns = accel_health(fd).time_ns + 200000000 + late_us * 1000ull;
	do {
		header->sent = embeng_observe_cq_tail(&header->cq_tail) + 1;
		clock_gettime(CLOCK_MONOTONIC, &end);
	} while ((uint64_t)end.tv_sec * 1000000000 + (uint64_t)end.tv_nsec < end_ns);
	_exit(0);
}

/* Writes a report of its own as fast as it can, so that no two reads of it are the same. */
static void *scribble(void *arg)
{
	struct liar *l = arg;
	struct embeng_queue_report *report = &accel_header(&l->ring)->report;

	while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
		report->state = EMBENG_QUEUE_BLOCKED;
		__atomic_fetch_add(&report->epoch, 2, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The driver reads such a report a few times and goes on: its own calls end, and others work. */
START_TEST(test_report_that_never_holds_still)
{
	struct liar liar = {.fd = fd};
	struct embeng_accel_wait wait = {.count = 1};
	pthread_t thread;

	liar.ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	ck_assert_int_eq(pthread_create(&thread, NULL, scribble, &liar), 0);
	wait.queue = liar.ring.made.queue;
	for (int i = 0; i < 1000; i++) {
		int ret = accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &wait);

		ck_assert_msg(!ret || ret == -ETIME, "%d", ret);
		wait.cq_tail = wait.state = 0;
		wait.events = 0;
	}
	accel_works();
	__atomic_store_n(&liar.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}
END_TEST

/*
 * A program ends while the watchdog is about to reset its queue: the watchdog has judged it, and
 * waits for the lock under which the context is ended. Nobody else notices.
 */
START_TEST(test_program_leaves_as_its_queue_is_reset)
{
	open_ring(1);
	for (uint32_t round = 0; round < 12; round++) {
		pid_t child = fork();

		if (!child)
			lie_and_leave(round * 2500);
		ck_assert_int_gt(child, 0);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
		ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence);
	}
	accel_give(fd, &ring, nop(13));
	expect(13, EMBENG_STATUS_OK);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_ALIVE);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_stalled, 0, 2);
	tcase_add_loop_test(tcase, test_stalled_behind_what_was_taken, 0, 2);
	tcase_add_loop_test(tcase, test_lost_completion, 0, 2);
	tcase_add_loop_test(tcase, test_late_completion, 0, 2);
	tcase_add_loop_test(tcase, test_delay_is_no_hang, 0, 2);
	tcase_add_loop_test(tcase, test_blocked_is_no_hang, 0, 2);
	tcase_add_test(tcase, test_full_is_no_hang);
	tcase_add_test(tcase, test_reset_of_a_full_queue);
	tcase_add_test(tcase, test_looks_can_be_turned_off);
	tcase_add_test(tcase, test_nonsense_in_the_header);
	tcase_add_loop_test(tcase, test_nonsense_hides_no_hang, 0, 2);
	tcase_add_loop_test(tcase, test_flood_of_resets, 0, 2);
	tcase_add_test(tcase, test_report_that_never_holds_still);
	tcase_add_test(tcase, test_program_leaves_as_its_queue_is_reset);
}

int main(void)
{
	return suite_main("hang", add);
}
