/* SPDX-License-Identifier: MIT */
/* A file with one of everything, and calls that are valid there. */
#ifndef EMBENG_TESTS_HOSTILE_SCENE_H
#define EMBENG_TESTS_HOSTILE_SCENE_H

#include "../accel.h"

#define SCENE_BYTES 16384u

union scene_arg {
	struct embeng_accel_query query;
	struct embeng_accel_bo_create bo_create;
	struct embeng_accel_bo_info bo_info;
	struct embeng_accel_userptr userptr;
	struct embeng_accel_context_create context_create;
	struct embeng_accel_bind bind;
	struct embeng_accel_unbind unbind;
	struct embeng_accel_queue_create queue_create;
	struct embeng_accel_queue_destroy queue_destroy;
	struct embeng_accel_submit submit;
	struct embeng_accel_wait wait;
	struct embeng_accel_model_load model_load;
	struct embeng_accel_reset reset;
	struct drm_gem_close gem_close;
	struct drm_prime_handle prime;
};

/**
 * struct scene - the objects that a call works on
 * @fd: file with a context; for CONTEXT_CREATE without one
 * @other: another file
 * @bo: buffer that is bound once, as @key
 * @key: key of @bo
 * @prime: @bo as a dma-buf
 * @ring: validated queue with one unread completion
 * @mapped: mapped queue
 * @page: memory of this process
 * @cmd: a NOP command
 * @sync: a syncobj's point
 * @blob: a model's header
 * @answer: memory for the answer to a query
 * @made: mapping or descriptor that the call returned, released with the scene
 * @request: ioctl to call; 0: @run is called instead
 * @run: makes a call that is no ioctl; returns 0 or -errno
 * @expected: result when nothing fails: 0, or -errno if the device cannot do it
 * @arg: argument of the ioctl
 */
struct scene {
	int fd, other;
	struct embeng_accel_bo_create bo;
	struct embeng_mem key;
	int prime;
	struct ring ring, mapped;
	void *page;
	struct embeng_cmd cmd;
	struct embeng_accel_sync sync;
	struct embeng_blob_header blob;
	uint64_t answer[32];
	void *made;
	unsigned long request;
	int (*run)(struct scene *s);
	int expected;
	union scene_arg arg;
};

/* An ioctl, whose argument @set makes, or @run. */
struct scene_call {
	const char *name;
	void (*set)(struct scene *s);
	int (*run)(struct scene *s);
};

extern const struct scene_call scene_calls[];
extern const int scene_call_count;

void scene_open(struct scene *s, const struct scene_call *call);
int scene_run(struct scene *s);
void scene_close(struct scene *s);

#endif
