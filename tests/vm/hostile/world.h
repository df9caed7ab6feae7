/* SPDX-License-Identifier: MIT */
/*
 * What the threads of a fuzzing process share: open files with the names of things that they
 * were given, and memory of every kind at addresses that they may give to the kernel.
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
 * struct noted - what a thread is doing, for who watches it from another process
 * @since: ns, 0: nothing
 * @request: ioctl
 * @calls: all until now
 * @failed: those that the kernel refused
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
 * struct actor - one thread
 * @verdict: shared
 * @noted: its own
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

/* Reserves the memory and finds the device node; before any thread starts. */
void world_begin(void);
/* The node once more; negative when that fails. */
int world_open(void);

/* Ends the process, with words for the judge. */
__attribute__((format(printf, 1, 2), noreturn)) void world_die(const char *format, ...);

/* A signal handler's: memory that is not there ends a world_touch(), else the process. */
void world_signals(void);

void held_add(struct held *h, uint64_t value);
/* Mostly one that is held, else any number. */
uint64_t held_any(struct held *h, struct fuzz *f);

struct file *world_file(struct fuzz *f);
uint8_t *world_slot(struct fuzz *f);

/* An address, mostly of a slot; else one that the kernel must not believe. */
uint64_t world_address(struct fuzz *f);

/* Reads or writes where perhaps nothing is. */
void world_touch(struct fuzz *f, uint32_t *at);

/*
 * An ioctl, its argument and number changed as @f says. Checks that a failure has an errno of
 * the contract and leaves the argument alone. 0 or -errno; @arg has what the kernel wrote
 * (-EFAULT when that went elsewhere).
 */
int world_call(struct fuzz *f, struct file *file, unsigned long request, void *arg, size_t size);

#define CALL(f, file, name, arg) world_call(f, file, DRM_IOCTL_##name, arg, sizeof(*(arg)))

#endif
