// SPDX-License-Identifier: MIT
/*
 * Makes a file of the device with one of each object, and has a valid argument for every ioctl on
 * it.
 */
#include "scene.h"
#include "../bounced.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CALL(name) (s->request = DRM_IOCTL_##name)

static char node[64];

static uint32_t submit_nop(struct scene *s)
{
	struct embeng_accel_submit arg = {.queue = s->ring.made.queue,
					  .count = 1,
					  .stride = sizeof(s->cmd),
					  .commands = (uintptr_t)&s->cmd};

	ck_assert_int_eq(accel_call(s->fd, DRM_IOCTL_EMBENG_SUBMIT, &arg), 0);
	return arg.index;
}

static int share(int fd, uint32_t handle)
{
	struct drm_prime_handle arg = {.handle = handle, .flags = DRM_CLOEXEC | DRM_RDWR};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &arg), 0);
	return arg.fd;
}

static void furnish(struct scene *s)
{
	accel_context(s->fd);
	s->bo = accel_bo(s->fd, SCENE_BYTES);
	s->key = accel_bind(s->fd, s->bo.handle, EMBENG_REGION_DEVICE_READ);
	s->prime = share(s->fd, s->bo.handle);
	s->ring = accel_ring(s->fd, EMBENG_QUEUE_TRANSFER, 0);
	s->mapped = accel_ring(s->fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	submit_nop(s);
	ck_assert_int_eq(accel_wait(s->fd, &s->ring, 1), 0);
}

static void set_query(struct scene *s, uint32_t what)
{
	CALL(EMBENG_QUERY);
	s->arg.query = (struct embeng_accel_query){
		.what = what, .size = sizeof(s->answer), .data = (uintptr_t)s->answer};
}

static void set_query_device(struct scene *s)
{
	set_query(s, EMBENG_ACCEL_QUERY_DEVICE);
}

static void set_query_caps(struct scene *s)
{
	set_query(s, EMBENG_ACCEL_QUERY_CAPS);
}

static void set_query_context(struct scene *s)
{
	set_query(s, EMBENG_ACCEL_QUERY_CONTEXT);
}

static void set_query_resets(struct scene *s)
{
	set_query(s, EMBENG_ACCEL_QUERY_RESETS);
}

static void set_query_counters(struct scene *s)
{
	set_query(s, EMBENG_ACCEL_QUERY_COUNTERS);
}

static void set_bo_create(struct scene *s)
{
	CALL(EMBENG_BO_CREATE);
	s->arg.bo_create = (struct embeng_accel_bo_create){.size = SCENE_BYTES};
}

static void set_bo_info(struct scene *s)
{
	CALL(EMBENG_BO_INFO);
	s->arg.bo_info = (struct embeng_accel_bo_info){.handle = s->bo.handle};
}

static void set_userptr(struct scene *s)
{
	CALL(EMBENG_USERPTR);
	s->arg.userptr = (struct embeng_accel_userptr){.address = (uintptr_t)s->page,
						       .size = SCENE_BYTES};
	if (bounced())
		s->expected = -EOPNOTSUPP;
}

static void set_context_create(struct scene *s)
{
	CALL(EMBENG_CONTEXT_CREATE);
}

static void set_bind(struct scene *s)
{
	CALL(EMBENG_BIND);
	s->arg.bind = (struct embeng_accel_bind){.handle = s->bo.handle,
						 .rights = EMBENG_REGION_DEVICE_READ |
							   EMBENG_REGION_DEVICE_WRITE};
}

static void set_unbind(struct scene *s)
{
	CALL(EMBENG_UNBIND);
	s->arg.unbind = (struct embeng_accel_unbind){.index = s->key.index,
						     .generation = s->key.generation};
}

static void set_queue_validated(struct scene *s)
{
	CALL(EMBENG_QUEUE_CREATE);
	s->arg.queue_create = accel_queue(EMBENG_QUEUE_INPUT, 0);
}

static void set_queue_mapped(struct scene *s)
{
	CALL(EMBENG_QUEUE_CREATE);
	s->arg.queue_create = accel_queue(EMBENG_QUEUE_INPUT, EMBENG_ACCEL_QUEUE_MAPPED);
}

static void set_queue_destroy(struct scene *s)
{
	CALL(EMBENG_QUEUE_DESTROY);
	s->arg.queue_destroy = (struct embeng_accel_queue_destroy){.queue = s->ring.made.queue};
}

static void set_submit(struct scene *s)
{
	CALL(EMBENG_SUBMIT);
	s->arg.submit = (struct embeng_accel_submit){.queue = s->ring.made.queue,
						     .count = 1,
						     .stride = sizeof(s->cmd),
						     .commands = (uintptr_t)&s->cmd};
}

/* After a fence that has signalled, and with one of its own. */
static void set_submit_fenced(struct scene *s)
{
	struct drm_syncobj_create arg = {.flags = DRM_SYNCOBJ_CREATE_SIGNALED};

	ck_assert_int_eq(accel_call(s->fd, DRM_IOCTL_SYNCOBJ_CREATE, &arg), 0);
	s->sync = (struct embeng_accel_sync){.handle = arg.handle};
	set_submit(s);
	s->arg.submit.in_count = s->arg.submit.out_count = 1;
	s->arg.submit.in_syncs = s->arg.submit.out_syncs = (uintptr_t)&s->sync;
}

static void set_wait(struct scene *s)
{
	CALL(EMBENG_WAIT);
	s->arg.wait = (struct embeng_accel_wait){
		.queue = s->ring.made.queue, .count = 1, .deadline_ns = accel_now() + 60 * SECOND};
}

static void set_wait_any(struct scene *s)
{
	CALL(EMBENG_WAIT);
	s->arg.wait = (struct embeng_accel_wait){.queue = EMBENG_ACCEL_ANY_QUEUE,
						 .deadline_ns = accel_now() + 60 * SECOND};
}

static void set_model_load(struct scene *s)
{
	CALL(EMBENG_MODEL_LOAD);
	s->blob = (struct embeng_blob_header){.magic = EMBENG_BLOB_MAGIC,
					      .version = EMBENG_BLOB_VERSION,
					      .length = sizeof(s->blob)};
	s->arg.model_load = (struct embeng_accel_model_load){.queue = s->ring.made.queue,
							     .blob = (uintptr_t)&s->blob,
							     .length = sizeof(s->blob)};
}

static void set_reset_queue(struct scene *s)
{
	CALL(EMBENG_RESET);
	s->arg.reset = (struct embeng_accel_reset){.rung = EMBENG_ACCEL_RESET_QUEUE,
						   .queue = s->ring.made.queue};
}

static void set_reset_engine(struct scene *s)
{
	CALL(EMBENG_RESET);
	s->arg.reset = (struct embeng_accel_reset){.rung = EMBENG_ACCEL_RESET_ENGINE};
}

static void set_reset_function(struct scene *s)
{
	CALL(EMBENG_RESET);
	s->arg.reset = (struct embeng_accel_reset){.rung = EMBENG_ACCEL_RESET_FUNCTION};
}

static void set_gem_close(struct scene *s)
{
	CALL(GEM_CLOSE);
	s->arg.gem_close = (struct drm_gem_close){.handle = accel_bo(s->fd, 4096).handle};
}

static void set_export(struct scene *s)
{
	CALL(PRIME_HANDLE_TO_FD);
	s->arg.prime = (struct drm_prime_handle){.handle = accel_bo(s->fd, 4096).handle,
						 .flags = DRM_CLOEXEC};
}

static void set_import(struct scene *s)
{
	CALL(PRIME_FD_TO_HANDLE);
	s->arg.prime = (struct drm_prime_handle){.fd = s->prime};
}

static int run_open(struct scene *s)
{
	int fd = open(node, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(s->other);
	s->other = fd;
	return 0;
}

/* Closed all the same, whatever fails. */
static int run_close(struct scene *s)
{
	int fd = s->fd;

	s->fd = -1;
	return fd < 0 || !close(fd) ? 0 : -errno;
}

static int map(struct scene *s, uint64_t offset, int protection)
{
	void *at = mmap(NULL, 4096, protection, MAP_SHARED, s->fd, (off_t)offset);

	if (at == MAP_FAILED)
		return -errno;
	__atomic_load_n((uint32_t *)at, __ATOMIC_RELAXED);
	if (s->made)
		munmap(s->made, 4096);
	s->made = at;
	return 0;
}

static int run_map_bo(struct scene *s)
{
	return map(s, s->bo.offset, PROT_READ | PROT_WRITE);
}

static int run_map_ring(struct scene *s)
{
	return map(s, s->ring.made.ring, PROT_READ);
}

static int run_map_doorbell(struct scene *s)
{
	return map(s, s->mapped.made.doorbell, PROT_READ | PROT_WRITE);
}

static int run_unmap(struct scene *s)
{
	void *at = s->mapped.memory;

	s->mapped.memory = NULL;
	return !at || !munmap(at, s->mapped.made.layout.size) ? 0 : -errno;
}

static int run_poll(struct scene *s)
{
	struct pollfd entry = {s->fd, POLLIN, 0};

	return poll(&entry, 1, 60000) < 0 ? -errno : entry.revents != POLLIN;
}

static int run_fdinfo(struct scene *s)
{
	char path[64], text[512];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", s->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = read(fd, text, sizeof(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

const struct scene_call scene_calls[] = {
	{"open", NULL, run_open},
	{"close", NULL, run_close},
	{"QUERY_DEVICE", set_query_device, NULL},
	{"QUERY_CAPS", set_query_caps, NULL},
	{"QUERY_CONTEXT", set_query_context, NULL},
	{"QUERY_RESETS", set_query_resets, NULL},
	{"QUERY_COUNTERS", set_query_counters, NULL},
	{"BO_CREATE", set_bo_create, NULL},
	{"BO_INFO", set_bo_info, NULL},
	{"USERPTR", set_userptr, NULL},
	{"CONTEXT_CREATE", set_context_create, NULL},
	{"BIND", set_bind, NULL},
	{"UNBIND", set_unbind, NULL},
	{"QUEUE_CREATE validated", set_queue_validated, NULL},
	{"QUEUE_CREATE mapped", set_queue_mapped, NULL},
	{"QUEUE_DESTROY", set_queue_destroy, NULL},
	{"SUBMIT", set_submit, NULL},
	{"SUBMIT with fences", set_submit_fenced, NULL},
	{"WAIT", set_wait, NULL},
	{"WAIT any", set_wait_any, NULL},
	{"MODEL_LOAD", set_model_load, NULL},
	{"RESET queue", set_reset_queue, NULL},
	{"RESET engine", set_reset_engine, NULL},
	{"RESET function", set_reset_function, NULL},
	{"GEM_CLOSE", set_gem_close, NULL},
	{"PRIME_HANDLE_TO_FD", set_export, NULL},
	{"PRIME_FD_TO_HANDLE", set_import, NULL},
	{"mmap of a buffer", NULL, run_map_bo},
	{"mmap of a ring", NULL, run_map_ring},
	{"mmap of a doorbell", NULL, run_map_doorbell},
	{"munmap", NULL, run_unmap},
	{"poll", NULL, run_poll},
	{"fdinfo", NULL, run_fdinfo},
};

const int scene_call_count = sizeof(scene_calls) / sizeof(scene_calls[0]);

void scene_open(struct scene *s, const struct scene_call *call)
{
	memset(s, 0, sizeof(*s));
	s->prime = -1;
	s->fd = accel_open_path(node, sizeof(node));
	s->other = accel_open();
	s->page = mmap(NULL, SCENE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ck_assert_ptr_ne(s->page, MAP_FAILED);
	if (call->set != set_context_create)
		furnish(s);
	s->run = call->run;
	if (call->set)
		call->set(s);
}

int scene_run(struct scene *s)
{
	if (s->run)
		return s->run(s);
	return ioctl(s->fd, s->request, &s->arg) < 0 ? -errno : 0;
}

static void unmap(const struct ring *ring)
{
	if (ring->memory)
		munmap(ring->memory, ring->made.layout.size);
	if (ring->doorbell)
		munmap(ring->doorbell, sizeof(*ring->doorbell));
}

void scene_close(struct scene *s)
{
	unmap(&s->ring);
	unmap(&s->mapped);
	if (s->made)
		munmap(s->made, 4096);
	munmap(s->page, SCENE_BYTES);
	if (s->request == DRM_IOCTL_PRIME_HANDLE_TO_FD && s->arg.prime.fd > 0)
		close(s->arg.prime.fd);
	if (s->prime >= 0)
		close(s->prime);
	if (s->fd >= 0)
		close(s->fd);
	close(s->other);
}
