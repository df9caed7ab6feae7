// SPDX-License-Identifier: MIT
/*
 * Calls of the driver's device node for its tests: opens it, makes contexts, buffers and queues,
 * and submits.
 */
#include "accel.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

bool accel_find(char *path, size_t room)
{
	glob_t found;

	if (glob("/sys/bus/pci/drivers/embeng/*/accel/accel*", 0, NULL, &found))
		return false;
	snprintf(path, room, "/dev/accel/%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	return true;
}

int accel_open_path(char *path, size_t room)
{
	int fd;

	ck_assert_msg(accel_find(path, room), "the driver has no device");
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

int accel_open(void)
{
	char path[64];

	return accel_open_path(path, sizeof(path));
}

int accel_call(int fd, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, request, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static void query(int fd, uint32_t what, void *data, uint32_t size)
{
	struct embeng_accel_query arg = {.what = what, .size = size, .data = (uintptr_t)data};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	ck_assert_uint_eq(arg.size, size);
}

struct embeng_accel_context_state accel_state(int fd)
{
	struct embeng_accel_context_state out;

	query(fd, EMBENG_ACCEL_QUERY_CONTEXT, &out, sizeof(out));
	return out;
}

struct embeng_accel_device accel_device(int fd)
{
	struct embeng_accel_device out;

	query(fd, EMBENG_ACCEL_QUERY_DEVICE, &out, sizeof(out));
	return out;
}

void accel_context(int fd)
{
	struct embeng_accel_context_create arg = {0};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &arg), 0);
}

struct embeng_accel_bo_create accel_bo(int fd, uint64_t size)
{
	struct embeng_accel_bo_create arg = {.size = size};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_BO_CREATE, &arg), 0);
	return arg;
}

struct embeng_mem accel_bind(int fd, uint32_t handle, uint32_t rights)
{
	struct embeng_accel_bind arg = {.handle = handle, .rights = rights};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_BIND, &arg), 0);
	return (struct embeng_mem){.index = arg.index, .generation = arg.generation};
}

void *accel_map(int fd, uint64_t offset, uint64_t size, int protection)
{
	void *at = mmap(NULL, size, protection, MAP_SHARED, fd, (off_t)offset);

	ck_assert_msg(at != MAP_FAILED, "mmap at %#llx: %s", (unsigned long long)offset,
		      strerror(errno));
	return at;
}

int64_t accel_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

struct embeng_accel_queue_create accel_queue(uint32_t kind, uint32_t flags)
{
	return (struct embeng_accel_queue_create){
		.kind = kind, .flags = flags, .sq_entries = 16, .cq_entries = 32};
}

struct ring accel_ring_of(int fd, struct embeng_accel_queue_create made)
{
	struct ring ring = {.made = made};
	bool mapped = made.flags & EMBENG_ACCEL_QUEUE_MAPPED;

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, &ring.made), 0);
	ring.memory = accel_map(fd, ring.made.ring, ring.made.layout.size,
				mapped ? PROT_READ | PROT_WRITE : PROT_READ);
	if (mapped)
		ring.doorbell = accel_map(fd, ring.made.doorbell, sizeof(*ring.doorbell),
					  PROT_READ | PROT_WRITE);
	return ring;
}

struct ring accel_ring(int fd, uint32_t kind, uint32_t flags)
{
	return accel_ring_of(fd, accel_queue(kind, flags));
}

void accel_ring_close(int fd, struct ring *ring)
{
	struct embeng_accel_queue_destroy arg = {.queue = ring->made.queue};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY, &arg), 0);
	munmap(ring->memory, ring->made.layout.size);
	if (ring->doorbell)
		munmap(ring->doorbell, sizeof(*ring->doorbell));
}

struct embeng_ring_header *accel_header(const struct ring *ring)
{
	return (struct embeng_ring_header *)(ring->memory + ring->made.layout.header);
}

void accel_push(struct ring *ring, struct embeng_cmd cmd)
{
	const struct embeng_queue_layout *layout = &ring->made.layout;
	uint32_t slot = ring->sq_tail++ & (layout->sq_entries - 1);

	memcpy(ring->memory + layout->sq + slot * sizeof(cmd), &cmd, sizeof(cmd));
	embeng_doorbell_tail(&ring->doorbell->sq_tail, ring->sq_tail);
}

int accel_wait(int fd, const struct ring *ring, uint32_t count)
{
	struct embeng_accel_wait arg = {.queue = ring->made.queue,
					.cq_head = ring->cq_head,
					.count = count,
					.deadline_ns = accel_now() + 10 * SECOND};

	if (ring->doorbell) {
		EMBENG_STORE_RELEASE(&ring->doorbell->arm, ring->cq_head + count - 1);
		EMBENG_STORE_RELEASE(&ring->doorbell->armed, ring->doorbell->armed + 1);
	}
	return accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg);
}

struct embeng_cqe accel_take(int fd, struct ring *ring)
{
	const struct embeng_queue_layout *layout = &ring->made.layout;
	struct embeng_cqe cqe;
	uint32_t slot;

	ck_assert_int_eq(accel_wait(fd, ring, 1), 0);
	ck_assert_uint_ne(embeng_observe_cq_tail(&accel_header(ring)->cq_tail), ring->cq_head);
	slot = ring->cq_head++ & (layout->cq_entries - 1);
	memcpy(&cqe, ring->memory + layout->cq + slot * sizeof(cqe), sizeof(cqe));
	if (ring->doorbell)
		embeng_doorbell_cq_head(&ring->doorbell->cq_head, ring->cq_head);
	return cqe;
}

void accel_give(int fd, struct ring *ring, struct embeng_cmd cmd)
{
	struct embeng_accel_submit arg = {.queue = ring->made.queue,
					  .count = 1,
					  .stride = sizeof(cmd),
					  .commands = (uintptr_t)&cmd,
					  .cq_head = ring->cq_head};

	if (ring->doorbell) {
		accel_push(ring, cmd);
		return;
	}
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_SUBMIT, &arg), 0);
	ring->sq_tail++;
}

struct embeng_accel_resets accel_resets(int fd)
{
	struct embeng_accel_resets out;

	query(fd, EMBENG_ACCEL_QUERY_RESETS, &out, sizeof(out));
	return out;
}

struct embeng_accel_health accel_health(int fd)
{
	struct embeng_accel_health out;

	query(fd, EMBENG_ACCEL_QUERY_HEALTH, &out, sizeof(out));
	return out;
}

struct embeng_accel_readings accel_readings(int fd)
{
	struct embeng_accel_readings out;

	query(fd, EMBENG_ACCEL_QUERY_READINGS, &out, sizeof(out));
	return out;
}

/* Counts grow and contexts are lost one by one before the end of a reset. */
void accel_await_reset(uint64_t sequence)
{
	int fd = accel_open();

	while (accel_resets(fd).sequence == sequence || accel_readings(fd).resetting)
		usleep(10000);
	close(fd);
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

uint64_t accel_number(const char *path)
{
	unsigned long long value;
	FILE *file = fopen(path, "re");

	ck_assert_msg(file, "%s: %s", path, strerror(errno));
	ck_assert_msg(fscanf(file, "%llu", &value) == 1, "%s has no number", path);
	fclose(file);
	return value;
}

void accel_write(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	ck_assert_msg(file >= 0, "%s: %s", path, strerror(errno));
	ck_assert_msg(write(file, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path,
		      strerror(errno));
	close(file);
}
