// SPDX-License-Identifier: MIT
#include "flood.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u

void accel_write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	ck_assert_msg(file >= 0, "%s: %s", path, strerror(errno));
	ck_assert_msg(write(file, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path,
		      strerror(errno));
	close(file);
}

void accel_works(void)
{
	int fd = accel_open();
	struct ring ring;

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	accel_push(&ring, (struct embeng_cmd){.cookie = 41});
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 41);
	close(fd);
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

struct flood flood_of(int fd)
{
	return (struct flood){
		.ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED)};
}

void accel_check_lost(int fd, struct ring *ring)
{
	struct embeng_accel_wait wait = {.queue = ring->made.queue, .count = 1,
					 .deadline_ns = accel_now() + 10 * SECOND};
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
	ck_assert_uint_ne(accel_state(fd).reset_sequence, 0);
	ck_assert_int_eq(poll(&watched, 1, 0), 1);
	ck_assert(watched.revents & POLLERR);
	ring->doorbell->sq_tail = 3;
}
