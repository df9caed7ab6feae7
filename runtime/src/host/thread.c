// SPDX-License-Identifier: MIT
/*
 * Starts the threads of the library: those of the engine in software, and those of a group of hosts. It is
 * a file of its own so that all of them have one rule for signals.
 *
 * It has no state. The caller owns the thread and joins it.
 */
#define _GNU_SOURCE
#include "thread.h"

#include <signal.h>

/*
 * A signal that a thread causes while it is blocked ends the process at once, past every handler: no crash
 * report is written, and no sanitizer says where it was.
 */
static const int own_signals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg)
{
	sigset_t blocked, before;
	int ret;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(own_signals) / sizeof(own_signals[0]); i++)
		sigdelset(&blocked, own_signals[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	ret = -pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_setname_np(*thread, name);
	return ret;
}
