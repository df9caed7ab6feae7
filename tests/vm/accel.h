/* SPDX-License-Identifier: MIT */
/* The driver's device node, for its tests. */
#ifndef EMBENG_TESTS_ACCEL_H
#define EMBENG_TESTS_ACCEL_H

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "embeng_accel.h"
#include "embeng_barrier.h"

#define SECOND 1000000000ll

/* A ring as mapped into the process. @doorbell is NULL for a validated queue. */
struct ring {
	struct embeng_accel_queue_create made;
	char *memory;
	struct embeng_doorbell *doorbell;
	uint32_t sq_tail, cq_head;
};

/* Finds the name of the driver's first accel node. Return: false when there is none. */
bool accel_find(char *path, size_t room);
/* Opens the first accel node of the driver; fails the test when there is none. */
int accel_open(void);
/* accel_open() that also returns the name of the node. */
int accel_open_path(char *path, size_t room);

/* Makes an ioctl. Return: 0 or -errno. */
int accel_call(int fd, unsigned long request, void *arg);

/* Checks that a call is refused and leaves its argument as it was. */
#define REFUSED_WITH(given, what, error, fd, request) \
	do { \
		__typeof__(given) before = given; \
		int got = accel_call(fd, request, &(given)); \
		ck_assert_msg(got == -(error), "%s: %d, not %d", what, got, -(error)); \
		ck_assert_msg(!memcmp(&(given), &before, sizeof(before)), "%s: changed", what); \
	} while (0)
/* REFUSED_WITH() for the variable arg. */
#define REFUSED_FOR(what, error, fd, request) REFUSED_WITH(arg, what, error, fd, request)
#define REFUSED(error, fd, request) REFUSED_FOR(#request, error, fd, request)

/* Checks that mmap() is refused. */
#define UNMAPPED(error, fd, offset, size, protection, flags) \
	do { \
		ck_assert_ptr_eq(mmap(NULL, size, protection, flags, fd, (off_t)(offset)), \
				 MAP_FAILED); \
		ck_assert_int_eq(errno, error); \
	} while (0)

struct embeng_accel_context_state accel_state(int fd);
struct embeng_accel_device accel_device(int fd);

void accel_context(int fd);
struct embeng_accel_bo_create accel_bo(int fd, uint64_t size);
struct embeng_mem accel_bind(int fd, uint32_t handle, uint32_t rights);
void *accel_map(int fd, uint64_t offset, uint64_t size, int protection);
int64_t accel_now(void);

/* A valid request for a queue, to be changed and made. */
struct embeng_accel_queue_create accel_queue(uint32_t kind, uint32_t flags);
struct ring accel_ring_of(int fd, struct embeng_accel_queue_create made);
struct ring accel_ring(int fd, uint32_t kind, uint32_t flags);
void accel_ring_close(int fd, struct ring *ring);
struct embeng_ring_header *accel_header(const struct ring *ring);

/* Mapped queues: commands in, the doorbell, the oldest unread completion when it is there. */
void accel_push(struct ring *ring, struct embeng_cmd cmd);
struct embeng_cqe accel_take(int fd, struct ring *ring);

/* Submits a command to a queue of either kind. */
void accel_give(int fd, struct ring *ring, struct embeng_cmd cmd);

/* Query the driver's resets, and the health of this file's context. */
struct embeng_accel_resets accel_resets(int fd);
struct embeng_accel_health accel_health(int fd);

/* Queries the last readings, and whether the device is being reset. */
struct embeng_accel_readings accel_readings(int fd);

/* Waits until the device has been reset since @sequence of its resets, and no reset goes on. */
void accel_await_reset(uint64_t sequence);

/* Checks that a new context takes a command and completes it. */
void accel_works(void);

/* Reads the number that a file begins with, or fails the test. */
uint64_t accel_number(const char *path);

/* Writes @text, all of it, or fails the test. */
void accel_write(const char *path, const char *text);

/* WAIT until @count completions are unread, 10 s. */
int accel_wait(int fd, const struct ring *ring, uint32_t count);

#endif
