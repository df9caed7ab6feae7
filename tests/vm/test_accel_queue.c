// SPDX-License-Identifier: MIT
/* Queues: refused arguments when they are made and mapped, and commands through valid ones. */
#include "../unit/support/suite.h"
#include "accel.h"

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
	{"input with few completions",
	 EINVAL,
	 {VALID, .kind = EMBENG_QUEUE_INPUT, .cq_entries = 16}},
	{"inference with one completion",
	 EINVAL,
	 {VALID, .kind = EMBENG_QUEUE_INFERENCE, .cq_entries = 1}},
	{"coalesce beyond the ring", EINVAL, {VALID, .coalesce_count = 33, .coalesce_us = 1}},
	{"coalesce without time", EINVAL, {VALID, .coalesce_count = 2}},
	{"time without coalesce", EINVAL, {VALID, .coalesce_us = 2}},
	{"coalesce time", EINVAL, {VALID, .coalesce_count = 2, .coalesce_us = 1000001}},
	{"coalesce of a mapped queue",
	 EINVAL,
	 {VALID, .flags = MAPPED, .coalesce_count = 2, .coalesce_us = 1}},
	{"number", EINVAL, {VALID, .queue = 1}},
	{"layout", EINVAL, {VALID, .layout.size = 1}},
	{"ring", EINVAL, {VALID, .ring = 1}},
	{"doorbell", EINVAL, {VALID, .doorbell = 1}},
};

START_TEST(test_refused)
{
	struct embeng_accel_queue_create arg = wrong_queues[_i].arg;

	REFUSED_FOR(wrong_queues[_i].what, wrong_queues[_i].error, fd, CREATE);
	ck_assert_uint_eq(accel_state(fd).queues, 0);
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
	uint64_t memory = accel_state(fd).memory;
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_accel_queue_destroy arg = {.queue = ring.made.queue, .reserved = 1};

	ck_assert_uint_eq(accel_state(fd).memory, memory + ring.made.layout.size);
	REFUSED(EINVAL, fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY);
	arg.reserved = 0;
	accel_ring_close(fd, &ring);
	ck_assert_uint_eq(accel_state(fd).memory, memory);
	REFUSED(ENOENT, fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY);
}
END_TEST

#define BOTH (PROT_READ | PROT_WRITE)

START_TEST(test_mapping)
{
	struct ring mapped = accel_ring(fd, EMBENG_QUEUE_INPUT, MAPPED);
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = mapped.made.ring;
	uint64_t bell = mapped.made.doorbell;

	ck_assert_uint_eq(ring.made.doorbell, 0);
	UNMAPPED(EINVAL, fd, at, page, BOTH, MAP_PRIVATE);
	UNMAPPED(EINVAL, fd, at, 16 * page, BOTH, MAP_SHARED);
	UNMAPPED(EINVAL, fd, at + page, page, BOTH, MAP_SHARED);
	UNMAPPED(EINVAL, fd, 0, page, BOTH, MAP_SHARED);
	UNMAPPED(ENOENT, fd, at + (64 << 20), page, BOTH, MAP_SHARED);
	UNMAPPED(EACCES, fd, ring.made.ring, page, BOTH, MAP_SHARED);
	ck_assert_int_eq(mprotect(ring.memory, page, BOTH), -1);
	ck_assert_int_eq(errno, EACCES);
	UNMAPPED(EACCES, fd, bell + (ring.made.queue - mapped.made.queue) * page, page, BOTH,
		 MAP_SHARED);
	UNMAPPED(EINVAL, fd, bell, page, BOTH, MAP_PRIVATE);
	UNMAPPED(EINVAL, fd, bell, 2 * page, BOTH, MAP_SHARED);
}
END_TEST

#define KINDS_OF_MAPPINGS 5

static void look_at(const volatile char *place)
{
	(void)*place;
}

/* A child does not inherit its parent's mappings: it dies when it touches one. */
START_TEST(test_fork_inherits_nothing)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const char *places[KINDS_OF_MAPPINGS] = {
		(char *)ring.doorbell,
		ring.memory,
		accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0).memory,
		accel_map(fd, accel_bo(fd, page).offset, page, PROT_READ),
		accel_map(fd, accel_device(fd).registers, page, PROT_READ),
	};
	pid_t child;
	int status;

	look_at(places[_i]);
	child = fork();
	if (!child) {
		look_at(places[_i]);
		_exit(0);
	}
	waitpid(child, &status, 0);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
	look_at(places[_i]);
}
END_TEST

START_TEST(test_nop)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	struct embeng_cqe cqe;

	for (uint64_t i = 0; i < 40; i++) {
		accel_push(&ring,
			   (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = i, .arg = i % 5});
		cqe = accel_take(fd, &ring);
		ck_assert_uint_eq(cqe.cookie, i);
		ck_assert_uint_eq(cqe.status, i % 5);
		ck_assert_uint_eq(cqe.flags, EMBENG_CQE_DONE);
	}
	accel_ring_close(fd, &ring);
}
END_TEST

static void destroy(const struct ring *ring)
{
	struct embeng_accel_queue_destroy arg = {.queue = ring->made.queue};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY, &arg), 0);
}

/*
 * A destroyed queue's doorbell and ring map different scratch pages: neither shows writes to the
 * other.
 */
START_TEST(test_scratch_pages_are_apart)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	const struct embeng_ring_header *header = accel_header(&ring);

	destroy(&ring);
	memset(ring.doorbell, 0x77, sizeof(*ring.doorbell));
	ck_assert_uint_eq(ring.doorbell->sq_tail, 0x77777777);
	ck_assert_uint_eq(header->dead, 0);
	ck_assert_uint_eq(header->cq_tail, 0);
}
END_TEST

/*
 * Indices pass 2^32, also with commands of the ring on either side of it, and in a reset; and they
 * may begin far from 0.
 */
#define FIRST_INDICES 16

START_TEST(test_indices_begin_anew)
{
	struct embeng_accel_queue_create made = accel_queue(EMBENG_QUEUE_TRANSFER, _i % 2 * MAPPED);
	struct embeng_accel_reset reset = {.rung = EMBENG_ACCEL_RESET_QUEUE};
	uint32_t back = (uint32_t)_i / 2, cookie = 0;
	uint32_t first = made.first = back < FIRST_INDICES - 1 ? -back : 1u << 31;
	struct ring ring = accel_ring_of(fd, made);

	ring.sq_tail = ring.cq_head = first;
	reset.queue = ring.made.queue;
	for (uint32_t round = 0; round < 6; round++) {
		for (uint32_t i = 0; i < 7; i++)
			accel_give(
				fd, &ring,
				(struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = cookie + i});
		for (uint32_t i = 0; i < 7; i++, cookie++) {
			struct embeng_cqe cqe = accel_take(fd, &ring);

			ck_assert_uint_eq(cqe.cookie, cookie);
			ck_assert_uint_eq(cqe.index, first + cookie);
			ck_assert_uint_eq(cqe.status, EMBENG_STATUS_OK);
		}
		ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &reset), 0);
	}
	accel_ring_close(fd, &ring);
}
END_TEST

/* The mapping of a queue that is no more shows a page of zeros, and harms nobody. */
START_TEST(test_destroyed_is_scratch)
{
	struct ring ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED), next;

	accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = 7});
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 7);
	destroy(&ring);
	ck_assert_uint_eq(accel_header(&ring)->cq_tail, 0);
	ring.doorbell->sq_tail = 12345;
	next = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	ck_assert_uint_eq(next.doorbell->sq_tail, 0);
	accel_push(&next, (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = 8});
	ck_assert_uint_eq(accel_take(fd, &next).cookie, 8);
}
END_TEST

static const struct embeng_accel_queue_create next_queues[] = {
	{.kind = EMBENG_QUEUE_TRANSFER, .sq_entries = 1, .cq_entries = 1, .flags = MAPPED},
	{.kind = EMBENG_QUEUE_TRANSFER, .sq_entries = 1, .cq_entries = 1},
};

/* A number is given out again: what was mapped by it shows nothing of the queue that has it. */
START_TEST(test_number_taken_anew)
{
	struct ring ring = accel_ring_of(
		fd, (struct embeng_accel_queue_create){.kind = EMBENG_QUEUE_TRANSFER,
						       .sq_entries = 4096,
						       .cq_entries = 8192,
						       .flags = MAPPED});
	struct ring next;

	destroy(&ring);
	next = accel_ring_of(fd, next_queues[_i]);
	ck_assert_uint_eq(next.made.queue, ring.made.queue);
	ck_assert_uint_lt(next.made.layout.size, ring.made.layout.size);
	for (uint64_t i = 0; i < ring.made.layout.size / 8; i++)
		ck_assert_uint_eq(((uint64_t *)ring.memory)[i], 0);
	memset(ring.memory, 0x77, ring.made.layout.size);
	memset(ring.doorbell, 0x77, sizeof(*ring.doorbell));
	for (uint64_t i = 0; i < next.made.layout.size; i++)
		ck_assert_int_ne(next.memory[i], 0x77);
	accel_give(fd, &next, (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = 9});
	ck_assert_int_eq(accel_wait(fd, &next, 1), 0);
	munmap(ring.memory, ring.made.layout.size);
	munmap(ring.doorbell, sizeof(*ring.doorbell));
}
END_TEST

/* Parts of a mapping can be unmapped one by one. */
START_TEST(test_mapping_in_parts)
{
	struct ring ring = accel_ring_of(
		fd, (struct embeng_accel_queue_create){.kind = EMBENG_QUEUE_TRANSFER,
						       .sq_entries = 4096,
						       .cq_entries = 8192,
						       .flags = MAPPED});
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *last = ring.memory + (ring.made.layout.size - 1) / page * page;

	ck_assert_int_eq(munmap(ring.memory + page, page), 0);
	ck_assert_int_eq(munmap(ring.memory, page), 0);
	*last = 0x77;
	destroy(&ring);
	ck_assert_int_eq(*last, 0);
	ck_assert_int_eq(munmap(last, page), 0);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_refused, 0, sizeof(wrong_queues) / sizeof(wrong_queues[0]));
	tcase_add_test(tc, test_one_way_for_training);
	tcase_add_test(tc, test_priority_needs_rights);
	tcase_add_test(tc, test_device_has_so_many);
	tcase_add_test(tc, test_destroy);
	tcase_add_test(tc, test_mapping);
	tcase_add_loop_test(tc, test_fork_inherits_nothing, 0, KINDS_OF_MAPPINGS);
	tcase_add_test(tc, test_nop);
	tcase_add_loop_test(tc, test_indices_begin_anew, 0, 2 * FIRST_INDICES);
	tcase_add_test(tc, test_destroyed_is_scratch);
	tcase_add_test(tc, test_scratch_pages_are_apart);
	tcase_add_loop_test(tc, test_number_taken_anew, 0,
			    sizeof(next_queues) / sizeof(*next_queues));
	tcase_add_test(tc, test_mapping_in_parts);
}

int main(void)
{
	return suite_main("queue", add);
}
