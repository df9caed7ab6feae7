// SPDX-License-Identifier: MIT
/*
 * Counts the forks on the way to this process. A handle notes the count when it is opened, so that
 * a child that inherited it is told that it cannot use it.
 *
 * The count is atomic, and the handler is installed once for the life of the process.
 */
#include "fork.h"

#include <pthread.h>

static uint32_t generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	__atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

uint32_t fork_generation(void)
{
	pthread_once(&once, watch_forks);
	return __atomic_load_n(&generation, __ATOMIC_RELAXED);
}
