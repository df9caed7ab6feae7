// SPDX-License-Identifier: MIT
/*
 * Counts the forks on the way to this process. A handle notes the count when it is opened, so that
 * a child that inherited it is told that it cannot use it.
 *
 * The count is on a page that the kernel wipes in a child (MADV_WIPEONFORK), however the child was
 * made: handlers of pthread_atfork() do not run in one of _Fork() or clone(). They are what is left
 * where the kernel does not know such pages. The page is made once for the life of the process, and
 * the count on it is atomic.
 */
#define _GNU_SOURCE
#include "fork.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

/* Never less than a count that this process, or one that it was forked from, was told. */
static uint32_t last = 1;
static uint32_t *page; /* NULL: @last is the count */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
	__atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, bytes, MADV_WIPEONFORK)) {
		if (p != MAP_FAILED)
			munmap(p, bytes);
		pthread_atfork(NULL, NULL, count_fork);
		return;
	}
	page = p;
	*page = last;
}

uint32_t fork_generation(void)
{
	uint32_t count, none = 0;

	pthread_once(&once, watch_forks);
	if (!page)
		return __atomic_load_n(&last, __ATOMIC_RELAXED);
	count = __atomic_load_n(page, __ATOMIC_ACQUIRE);
	if (count)
		return count;
	/*
	 * Nobody has asked in this process yet. If two threads ask at once, one of them sets the
	 * count. @last is never behind a count that somebody was told: a fork can come at any time,
	 * and its child must go on from there.
	 */
	count = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(page, &none, count, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE)
		       ? count
		       : none;
}
