/* SPDX-License-Identifier: MIT */
/* A process that stops as if its machine did. */
#ifndef EMBENG_TESTS_MPI_STOP_H
#define EMBENG_TESTS_MPI_STOP_H

#include <signal.h>
#include <unistd.h>

/* Stops this process. A child ends it later, since some launchers leave stopped processes behind. */
static inline void stop_process(void)
{
	const pid_t self = getpid();

	if (!fork()) {
		setsid();
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		sleep(10);
		if (getppid() == self)
			kill(self, SIGKILL);
		_exit(0);
	}
	raise(SIGSTOP);
}

#endif
