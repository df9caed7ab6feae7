/* SPDX-License-Identifier: MIT */
/* Threads of the library, which take none of the program's signals. */
#ifndef EMBENG_THREAD_H
#define EMBENG_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that runs @run(@arg). Debuggers and top(1) show its name, of at most 15 bytes. Signals
 * that someone sends go to the program's own threads. Signals that a thread causes itself, such as SIGSEGV,
 * are not blocked in it, so that the program's handler for them runs. Returns 0 or a negative errno, and
 * says nothing. Any thread may call.
 */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

#endif
