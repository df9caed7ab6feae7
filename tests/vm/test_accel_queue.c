// SPDX-License-Identifier: MIT
/* Queues: what is refused when they are made, mapped and waited for, and that they carry. */
#include "../unit/suite.h"
#include "accel.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAPPED EMBENG_ACCEL_QUEUE_MAPPED
#define CREATE DRM_IOCTL_EMBENG_QUEUE_CREATE

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

/* Each is valid but for what comes last. */
#pragma GCC diagnostic ignored "-Woverride-init"

static const struct {
	const char *what;
	int error;
	struct embeng_accel_queue_create arg;
} wrong_queues[] = {
#define VALID .kind = EMBENG_QUEUE_TRANSFER, .sq_entries = 16, .cq_entries = 32
	{"kind admin", EINVAL, {VALID, .kind = EMBENG_QUEUE_ADMIN}},
	{"kind beyond", EINVAL, {VALID, .kind = EMBENG_QUEUE_TRANSFER + 1}},
	{"flag", EINVAL, {VALID, .flags = 2}},
	{"replica of transfer", EINVAL, {VALID, .replica = 1}},
	{"replica beyond", EINVAL, {VALID, .kind = EMBENG_QUEUE_GRADIENT, .replica = 64}},
	{"priority", EINVAL, {VALID, .priority = 4}},
	{"no entries", EINVAL, {VALID, .sq_entries = 0}},
	{"entries no power of two", EINVAL, {VALID, .sq_entries = 12}},
	{"too many entries", EINVAL, {VALID, .sq_entries = 8192, .cq_entries = 8192}},
	{"no completions", EINVAL, {VALID, .cq_entries = 0}},
	{"completions no power of two", EINVAL, {VALID, .cq_entries = 24}},
	{"too many completions", EINVAL, {VALID, .cq_entries = 16384}},
	{"input with few completions", EINVAL,
	 {VALID, .kind = EMBENG_QUEUE_INPUT, .cq_entries = 16}},
	{"inference with one completion", EINVAL,
	 {VALID, .kind = EMBENG_QUEUE_INFERENCE, .cq_entries = 1}},
	{"coalesce beyond the ring", EINVAL, {VALID, .coalesce_count = 33, .coalesce_us = 1}},
	{"coalesce without time", EINVAL, {VALID, .coalesce_count = 2}},
	{"time without coalesce", EINVAL, {VALID, .coalesce_us = 2}},
	{"coalesce time", EINVAL, {VALID, .coalesce_count = 2, .coalesce_us = 1000001}},
	{"coalesce of a mapped queue", EINVAL,
	 {VALID, .flags = MAPPED, .coalesce_count = 2, .coalesce_us = 1}},
	{"number", EINVAL, {VALID, .queue = 1}},
	{"reserved", EINVAL, {VALID, .reserved = 1}},
	{"layout", EINVAL, {VALID, .layout.size = 1}},
	{"ring", EINVAL, {VALID, .ring = 1}},
	{"doorbell", EINVAL, {VALID, .doorbell = 1}},
};

START_TEST(test_refused)
{
	struct embeng_accel_queue_create arg = wrong_queues[_i].arg;

	ck_assert_msg(accel_call(fd, CREATE, &arg) == -wrong_queues[_i].error, "%s",
		      wrong_queues[_i].what);
	ck_assert_mem_eq(&arg, &wrong_queues[_i].arg, sizeof(arg));
}
END_TEST

START_TEST(test_needs_context)
{
	struct embeng_accel_queue_create arg = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	int other = accel_open();

	REFUSED(ENOENT, other, CREATE);
	close(other);
}
END_TEST

START_TEST(test_one_way_for_training)
{
	struct embeng_accel_queue_create arg = accel_queue(EMBENG_QUEUE_INPUT, MAPPED);

	ck_assert_int_eq(accel_call(fd, CREATE, &arg), 0);
	arg = accel_queue(EMBENG_QUEUE_GRADIENT, 0);
	REFUSED(EINVAL, fd, CREATE);
	arg = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	ck_assert_int_eq(accel_call(fd, CREATE, &arg), 0);
}
END_TEST

START_TEST(test_priority_needs_rights)
{
	struct embeng_accel_queue_create arg = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	pid_t child = fork();
	int status;

	if (!child) {
		arg.priority = 2;
		if (setuid(65534))
			_exit(2);
		_exit(accel_call(fd, CREATE, &arg) == -EACCES ? 0 : 1);
	}
	waitpid(child, &status, 0);
	ck_assert_int_eq(status, 0);
	arg.priority = 2;
	ck_assert_int_eq(accel_call(fd, CREATE, &arg), 0);
}
END_TEST

START_TEST(test_device_has_so_many)
{
	struct embeng_accel_queue_create arg;
	uint32_t made = 0;
	int ret;

	do {
		arg = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
		ret = accel_call(fd, CREATE, &arg);
		made += !ret;
	} while (!ret);
	ck_assert_int_eq(ret, -ENOSPC);
	ck_assert_uint_gt(made, 1);
}
END_TEST

START_TEST(test_destroy)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_accel_queue_destroy arg = {.queue = ring.made.queue, .reserved = 1};
	int other = accel_open();

	REFUSED(EINVAL, fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY);
	arg.reserved = 0;
	accel_context(other);
	REFUSED(ENOENT, other, DRM_IOCTL_EMBENG_QUEUE_DESTROY);
	close(other);
	accel_ring_close(fd, &ring);
	REFUSED(ENOENT, fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY);
}
END_TEST

static int map_error(int file, uint64_t offset, uint64_t size, int protection, int flags)
{
	void *at = mmap(NULL, size, protection, flags, file, (off_t)offset);

	return at == MAP_FAILED ? errno : 0;
}

START_TEST(test_mapping)
{
	struct ring mapped = accel_ring(fd, EMBENG_QUEUE_INPUT, MAPPED);
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = mapped.made.ring;
	int both = PROT_READ | PROT_WRITE, other = accel_open();

	ck_assert_uint_eq(ring.made.doorbell, 0);
	ck_assert_int_eq(map_error(fd, at, page, both, MAP_PRIVATE), EINVAL);
	ck_assert_int_eq(map_error(fd, at, 16 * page, both, MAP_SHARED), EINVAL);
	ck_assert_int_eq(map_error(fd, at + page, page, both, MAP_SHARED), EINVAL);
	ck_assert_int_eq(map_error(fd, 0, page, both, MAP_SHARED), EINVAL);
	ck_assert_int_eq(map_error(fd, at + (64 << 20), page, both, MAP_SHARED), ENOENT);
	ck_assert_int_eq(map_error(other, at, page, both, MAP_SHARED), ENOENT);
	ck_assert_int_eq(map_error(other, mapped.made.doorbell, page, both, MAP_SHARED), ENOENT);
	ck_assert_int_eq(map_error(fd, ring.made.ring, page, both, MAP_SHARED), EACCES);
	ck_assert_int_eq(mprotect(ring.memory, page, both), -1);
	ck_assert_int_eq(errno, EACCES);
	ck_assert_int_eq(map_error(fd, mapped.made.doorbell + (ring.made.queue -
							       mapped.made.queue) * page,
				   page, both, MAP_SHARED), EACCES);
	ck_assert_int_eq(map_error(fd, mapped.made.doorbell, 2 * page, both, MAP_SHARED), EINVAL);
	close(other);
}
END_TEST

/* What a child gets of a parent's mapping: nothing, so a touch kills it. */
START_TEST(test_fork_inherits_nothing)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	pid_t child = fork();
	int status;

	if (!child) {
		ring.doorbell->sq_tail = 1;
		_exit(0);
	}
	waitpid(child, &status, 0);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
}
END_TEST

START_TEST(test_nop)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_cqe cqe;

	for (uint64_t i = 0; i < 40; i++) {
		accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = i,
						      .arg = i % 5});
		cqe = accel_take(fd, &ring);
		ck_assert_uint_eq(cqe.cookie, i);
		ck_assert_uint_eq(cqe.status, i % 5);
		ck_assert_uint_eq(cqe.flags, EMBENG_CQE_DONE);
	}
	accel_ring_close(fd, &ring);
}
END_TEST

/* The mapping of a queue that is no more shows a page of zeros, and harms nobody. */
START_TEST(test_destroyed_is_scratch)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_queue_destroy arg = {.queue = ring.made.queue};
	struct ring next;

	accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = 7});
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 7);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY, &arg), 0);
	ck_assert_uint_eq(accel_header(&ring)->cq_tail, 0);
	ring.doorbell->sq_tail = 12345;
	next = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	ck_assert_uint_eq(next.doorbell->sq_tail, 0);
	accel_push(&next, (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = 8});
	ck_assert_uint_eq(accel_take(fd, &next).cookie, 8);
}
END_TEST

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
	{"any queue with least", EINVAL,
	 {.queue = EMBENG_ACCEL_ANY_QUEUE, .least = 1, .least_ns = 1}},
};

START_TEST(test_wait_refused)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = wrong_waits[_i].arg, before;

	if (!arg.queue)
		arg.queue = ring.made.queue;
	before = arg;
	ck_assert_msg(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg) == -wrong_waits[_i].error, "%s",
		      wrong_waits[_i].what);
	ck_assert_mem_eq(&arg, &before, sizeof(arg));
}
END_TEST

START_TEST(test_wait_late)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = {.queue = ring.made.queue, .count = 2,
					.deadline_ns = accel_now() + SECOND / 20};

	accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP});
	ck_assert_int_eq(accel_wait(fd, &ring, 1), 0);
	REFUSED(ETIME, fd, DRM_IOCTL_EMBENG_WAIT);
	ck_assert_int_ge(accel_now(), arg.deadline_ns);
	ck_assert_uint_eq(arg.cq_tail, 1);
	ck_assert_uint_eq(arg.state, EMBENG_QUEUE_RUNNING);
	arg = (struct embeng_accel_wait){.queue = ring.made.queue, .count = 2, .least = 1,
					 .least_ns = 1, .deadline_ns = accel_now() + 10 * SECOND};
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg), 0);
	ck_assert_uint_eq(arg.cq_tail, 1);
}
END_TEST

/* Completions that nobody takes stop the queue, which ends a wait for more. */
START_TEST(test_full)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = {.queue = ring.made.queue, .cq_head = 0xffffffff,
					.count = 32, .deadline_ns = accel_now() + 10 * SECOND};

	for (int i = 0; i < 48; i++) {
		while (ring.sq_tail - accel_header(&ring)->sq_head == 16)
			if (accel_header(&ring)->report.state == EMBENG_QUEUE_CQ_FULL)
				break;
		if (ring.sq_tail - accel_header(&ring)->sq_head == 16)
			break;
		accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP});
	}
	arg.cq_head = 0;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg), 0);
	ck_assert_uint_eq(arg.cq_tail, 32);
	accel_take(fd, &ring);
	ck_assert_int_eq(accel_wait(fd, &ring, 32), 0);
}
END_TEST

START_TEST(test_error_ends_waiting)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = {.queue = ring.made.queue, .count = 1,
					.deadline_ns = accel_now() + 10 * SECOND};

	embeng_doorbell_tail(&ring.doorbell->sq_tail, 1000);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg), 0);
	ck_assert_uint_eq(arg.state, EMBENG_QUEUE_ERROR);
}
END_TEST

START_TEST(test_events_and_poll)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_accel_wait arg = {.queue = EMBENG_ACCEL_ANY_QUEUE};
	struct pollfd watched = {.fd = fd, .events = POLLIN};

	accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg);
	while (poll(&watched, 1, 0))
		accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg);
	arg.cq_tail = arg.state = 0;
	ring.doorbell->arm = 0;
	EMBENG_STORE_RELEASE(&ring.doorbell->armed, 1);
	accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP,
					      .arg = 50000ull << EMBENG_NOP_DELAY_SHIFT});
	ck_assert_int_eq(poll(&watched, 1, 10000), 1);
	ck_assert_int_eq(watched.revents, POLLIN);
	arg.deadline_ns = accel_now() + 10 * SECOND;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg), 0);
	ck_assert_int_eq(poll(&watched, 1, 0), 0);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_refused, 0, sizeof(wrong_queues) / sizeof(wrong_queues[0]));
	tcase_add_test(tc, test_needs_context);
	tcase_add_test(tc, test_one_way_for_training);
	tcase_add_test(tc, test_priority_needs_rights);
	tcase_add_test(tc, test_device_has_so_many);
	tcase_add_test(tc, test_destroy);
	tcase_add_test(tc, test_mapping);
	tcase_add_test(tc, test_fork_inherits_nothing);
	tcase_add_test(tc, test_nop);
	tcase_add_test(tc, test_destroyed_is_scratch);
	tcase_add_loop_test(tc, test_wait_refused, 0, sizeof(wrong_waits) / sizeof(wrong_waits[0]));
	tcase_add_test(tc, test_wait_late);
	tcase_add_test(tc, test_full);
	tcase_add_test(tc, test_error_ends_waiting);
	tcase_add_test(tc, test_events_and_poll);
}

int main(void)
{
	return suite_main("queue", add);
}
