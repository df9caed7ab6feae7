// SPDX-License-Identifier: MIT
/*
 * Threads that submit work without end, through a mapped ring or by ioctls, until their context is
 * lost; and checks of a context that was.
 */
#include "flood.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u

const char *accel_read_file(const char *path)
{
	static char text[16384];
	size_t length = 0;
	ssize_t more;
	int file = open(path, O_RDONLY);

	do {
		more = read(file, text + length, sizeof(text) - 1 - length);
		ck_assert_msg(more >= 0, "%s: %s", path, strerror(errno));
		length += (size_t)more;
	} while (more);
	close(file);
	text[length] = 0;
	return text;
}

void *flood(void *arg)
{
	struct flood *f = arg;
	struct embeng_ring_header *header = accel_header(&f->ring);

	while (!__atomic_load_n(&f->stop, __ATOMIC_ACQUIRE)) {
		struct embeng_cmd cmd = {.opcode = EMBENG_OP_MODEL_LOAD};

		cmd.desc.index = __atomic_load_n(&f->key.index, __ATOMIC_RELAXED);
		cmd.desc.generation = __atomic_load_n(&f->key.generation, __ATOMIC_RELAXED);
		cmd.desc.length = FLOOD_BYTES;
		f->ring.cq_head = embeng_observe_cq_tail(&header->cq_tail);
		embeng_doorbell_cq_head(&f->ring.doorbell->cq_head, f->ring.cq_head);
		if (__atomic_load_n(&header->dead, __ATOMIC_RELAXED))
			break;
		if (f->ring.sq_tail - embeng_observe_sq_head(&header->sq_head) >= 16)
			continue;
		accel_push(&f->ring, cmd);
		__atomic_fetch_add(&f->pushed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

void flood_stop(struct flood *f)
{
	__atomic_store_n(&f->stop, 1, __ATOMIC_RELEASE);
}

struct flood flood_of(int fd)
{
	return (struct flood){
		.ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED)};
}

struct calls calls_of(int fd)
{
	return (struct calls){.fd = fd, .ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0)};
}

void *flood_calls(void *arg)
{
	struct calls *c = arg;
	struct embeng_cmd cmds[8] = {{.opcode = EMBENG_OP_NOP}};

	do {
		struct embeng_accel_submit submit = {
			.queue = c->ring.made.queue,
			.count = 8,
			.stride = sizeof(cmds[0]),
			.commands = (uintptr_t)cmds,
			.cq_head = embeng_observe_cq_tail(&accel_header(&c->ring)->cq_tail)};

		c->error = accel_call(c->fd, DRM_IOCTL_EMBENG_SUBMIT, &submit);
		c->pushed += !c->error;
	} while (!c->error || c->error == -ENOSPC);
	return NULL;
}

void accel_check_lost(int fd, struct ring *ring)
{
	struct embeng_accel_wait wait = {
		.queue = ring->made.queue, .count = 1, .deadline_ns = accel_now() + 10 * SECOND};
	struct embeng_accel_bo_create bo = accel_bo(fd, PAGE);
	struct embeng_accel_bind bind = {.handle = bo.handle, .rights = 1};
	struct embeng_accel_queue_create create = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_accel_context_create context = {0};
	struct embeng_accel_reset reset = {.rung = EMBENG_ACCEL_RESET_QUEUE,
					   .queue = ring->made.queue};
	struct pollfd watched = {.fd = fd, .events = POLLIN};

	ck_assert_uint_eq(accel_header(ring)->dead, 1);
	LOST(wait, DRM_IOCTL_EMBENG_WAIT);
	LOST(bind, DRM_IOCTL_EMBENG_BIND);
	LOST(create, DRM_IOCTL_EMBENG_QUEUE_CREATE);
	LOST(context, DRM_IOCTL_EMBENG_CONTEXT_CREATE);
	LOST(reset, DRM_IOCTL_EMBENG_RESET);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	ck_assert_uint_eq(accel_state(fd).reset_sequence, accel_resets(fd).sequence);
	ck_assert_int_eq(poll(&watched, 1, 0), 1);
	ck_assert(watched.revents & POLLERR);
	if (ring->doorbell)
		ring->doorbell->sq_tail = 3;
}
