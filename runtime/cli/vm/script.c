// SPDX-License-Identifier: MIT
/*
 * A child process whose output is read while it runs. A signal to this process alone is passed on,
 * so that no machine is left behind; the child gets one, too, if this process is killed.
 *
 * The pipe and the child live as long as script_run(). One thread does it all.
 */
#define _GNU_SOURCE /* pipe2(), with O_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../frame/interrupt.h"

#include "script.h"

/* A signal that comes just before poll() is noticed after this time. */
#define LOOK_MS 500

static double clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Makes the child the script: it gets a signal when its parent ends, and prints to the pipe. */
static _Noreturn void become_script(char **argv, int output, pid_t parent)
{
	static const char words[] = "embeng vm: the script that boots the machine does not start\n";

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(output, STDOUT_FILENO /* not O_CLOEXEC */) >= 0)
		execv(argv[0], argv);
	(void)!write(STDERR_FILENO, words, sizeof(words) - 1);
	_exit(VM_NO_MACHINE);
}

static int start_script(char **argv, pid_t *child, int *output)
{
	pid_t parent = getpid();
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	*child = fork();
	if (!*child)
		become_script(argv, ends[1], parent);
	err = errno;
	close(ends[1]);
	if (*child < 0) {
		close(ends[0]);
		return -err;
	}
	*output = ends[0];
	return 0;
}

/* Return: bytes, 0 at the end, or a negative errno; -EINTR when there is a signal to look at. */
static ssize_t poll_output(int output, char *bytes, size_t room)
{
	struct pollfd wait = {.fd = output, .events = POLLIN};
	int ready = poll(&wait, 1, LOOK_MS);
	ssize_t got;

	if (ready <= 0)
		return ready < 0 ? -errno : -EINTR;
	got = read(output, bytes, room);
	return got < 0 ? -errno : got;
}

/* Reads to the end, also when memory for the tests has run out, so that the child is not stuck. */
static int read_output(struct vm_run *run, int output, pid_t child, double began)
{
	char bytes[4096];
	bool told = false;
	int rc = 0;

	for (;;) {
		ssize_t got = poll_output(output, bytes, sizeof(bytes));

		if (interrupted() && !told) {
			kill(child, SIGTERM);
			told = true;
		}
		if (got == -EINTR)
			continue;
		if (got <= 0)
			return got ? (int)got : rc;
		fwrite(bytes, 1, (size_t)got, run->copy);
		fflush(run->copy);
		if (!rc)
			rc = tap_take(&run->tap, bytes, (size_t)got, clock_now() - began);
	}
}

int script_run(char **argv, struct vm_run *run)
{
	double began = clock_now();
	int output = -1, status, rc;
	pid_t child = -1;

	memset(&run->tap, 0, sizeof(run->tap));
	interrupt_catch();
	rc = start_script(argv, &child, &output);
	if (rc) {
		interrupt_release();
		return rc;
	}
	rc = read_output(run, output, child, began);
	close(output);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	run->seconds = clock_now() - began;
	if (!rc)
		rc = tap_end(&run->tap, run->seconds);
	interrupt_release();
	return rc;
}
