/* SPDX-License-Identifier: MIT */
/*
 * The state that the threads of a fuzzing process share: open files with the names of objects that
 * they were given, and memory of every kind at addresses that they may give to the kernel.
 */
#ifndef EMBENG_TESTS_HOSTILE_WORLD_H
#define EMBENG_TESTS_HOSTILE_WORLD_H

#include <stdatomic.h>

#include "../../fuzz/fuzz.h"
#include "../accel.h"

#define WORLD_FILES 4u
#define WORLD_HELD 16u
#define WORLD_THREADS 4u

/* Memory that is mapped anew all the time. Nothing else is within 4 GiB of it. */
#define WORLD_BASE 0x200000000000ull
#define WORLD_SLOTS 16u
#define WORLD_GAP 1u /* slots that keep what begins in the last one off the actors' areas */
#define WORLD_SLOT (1u << 20)

struct held {
	_Atomic uint64_t values[WORLD_HELD];
	_Atomic uint32_t count;
};

enum thing {
	THING_HANDLE,
	THING_KEY, /* index | generation << 32 */
	THING_QUEUE,
	THING_OFFSET, /* for mmap() */
	THING_SYNCOBJ,
	THING_COUNT
};

struct file {
	_Atomic int fd;
	struct held things[THING_COUNT];
};

/**
 * struct noted - the current call of a thread, for the process that watches it
 * @since: time in ns at which the call began, 0: there is none
 * @request: number of the ioctl
 * @calls: number of calls so far
 * @failed: number of calls that the kernel refused
 */
struct noted {
	_Atomic int64_t since;
	_Atomic uint64_t request;
	_Atomic uint64_t calls;
	_Atomic uint64_t failed;
};

/* Shared with the process that judges. */
struct verdict {
	struct noted threads[WORLD_THREADS];
	_Atomic bool said;
	char words[240];
};

/**
 * struct actor - a thread that acts
 * @verdict: shared with the process that judges
 * @noted: note of this thread's current call
 * @area: WORLD_SLOT bytes that it alone uses
 */
struct actor {
	struct verdict *verdict;
	struct noted *noted;
	uint8_t *area;
};

extern struct file world_files[WORLD_FILES];
extern struct held world_primes; /* descriptors of dma-bufs */
extern _Thread_local struct actor actor;

/* Reserves the memory and finds the device node. To be called before any thread starts. */
void world_begin(void);
/* Opens the node once more. Return: a descriptor, or a negative number. */
int world_open(void);

/* Ends the process, with words for the judge. */
__attribute__((format(printf, 1, 2), noreturn)) void world_die(const char *format, ...);

/* Sets a signal handler: an access to missing memory ends a world_touch(), or else the process. */
void world_signals(void);

void held_add(struct held *h, uint64_t value);
/* Returns a name that is held in most cases, else any number. */
uint64_t held_any(struct held *h, struct fuzz *f);

struct file *world_file(struct fuzz *f);
uint8_t *world_slot(struct fuzz *f);

/* An address, mostly of a slot; else one that the kernel must not believe. */
uint64_t world_address(struct fuzz *f);

/* Reads or writes memory that may be missing. */
void world_touch(struct fuzz *f, uint32_t *at);

/*
 * Makes an ioctl, with number and argument changed as @f says. Checks that a failure has an errno
 * that embeng_accel.h documents and leaves the argument alone. Return: 0 or -errno, with the
 * kernel's answer in @arg; -EFAULT when that went elsewhere.
 */
int world_call(struct fuzz *f, struct file *file, unsigned long request, void *arg, size_t size);

#define CALL(f, file, name, arg) world_call(f, file, DRM_IOCTL_##name, arg, sizeof(*(arg)))

#endif
