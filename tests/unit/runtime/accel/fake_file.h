/* SPDX-License-Identifier: MIT */
/* The internals of the fake driver: open files, their buffers and queues. */
#ifndef EMBENG_TESTS_FAKE_FILE_H
#define EMBENG_TESTS_FAKE_FILE_H

#include <check.h>
#include <errno.h>
#include <string.h>

#include "runtime/src/device/device.h"
#include "fake_driver.h"

#define FAKE_DESCRIPTORS 1024
#define FAKE_QUEUES 64u
#define FAKE_HELD 64u

struct fake_queue {
	struct device_queue queue;
	uint32_t sq_tail, kind;
	bool used, mapped;
	uint64_t held[FAKE_HELD]; /* cookies that wait for fake_finish() */
	uint32_t held_count;
};

struct fake_file {
	struct device *soft;
	int references;
	bool context;
	struct fake_queue queues[FAKE_QUEUES];
	struct region blobs[16]; /* models that were loaded */
	uint32_t blob_count;
};

/* fake_driver.c: an open file by index; NULL behind the last one. */
struct fake_file *fake_file(uint32_t index);

/* fake_memory.c */
int fake_memory(struct fake_file *f, unsigned long request, void *arg);
void fake_memory_end(struct fake_file *f);
void *fake_map(int fd, uint64_t offset, uint64_t length, bool writable);
void fake_unmap(void *data, uint64_t length);

/* fake_fence.c: every fence has signalled. */
int fake_fences(unsigned long request, void *arg);

/* fake_queue.c */
int fake_queues(struct fake_file *f, unsigned long request, void *arg);
int fake_wait(struct fake_file *f, struct embeng_accel_wait *wait);

#endif
