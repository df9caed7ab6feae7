// SPDX-License-Identifier: MIT
/*
 * Duplicates a descriptor of another process: pidfd_open(2), pidfd_getfd(2).
 *
 * Since the sample the process may have ended, its number may be another process', and its
 * descriptor may be closed or lead elsewhere. So the duplicate is looked at before it is used: it has
 * to be a node of an accelerator, and the kernel has to say that it is the open file of the sample.
 *
 * The duplicate belongs to the caller. It keeps the context alive, which therefore ends only when it
 * is closed, too. Nothing is kept here.
 */
#define _GNU_SOURCE
#include "borrow.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "processes.h"

#define ACCEL_MAJOR 261 /* all nodes below /dev/accel have it */

static void say_not_borrowed(struct finding *f, int error)
{
	switch (error) {
	case ENOSYS:
		finding_fail(f, "this kernel, or what confines this process, has no "
				"pidfd_getfd(2), which came with Linux 5.6");
		return;
	case EPERM:
	case EACCES:
		finding_fail(f, "asking another program's context needs the right to trace that "
				"program: run this as root, or as its user where "
				"kernel.yama.ptrace_scope is 0");
		return;
	case ESRCH:
		finding_fail(f, "the process has ended");
		return;
	case EBADF:
		finding_fail(f, "the process has closed the device");
		return;
	default:
		finding_fail(f, "the descriptor of the process cannot be duplicated: %s",
			     strerror(error));
	}
}

static int duplicate_descriptor(uint32_t pid, uint32_t fd, struct finding *f)
{
	int process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), copy;

	if (process < 0) {
		say_not_borrowed(f, errno);
		return -1;
	}
	copy = (int)syscall(SYS_pidfd_getfd, process, (int)fd, 0);
	if (copy < 0)
		say_not_borrowed(f, errno);
	close(process);
	return copy;
}

/* Only a file of the driver of accelerators is asked by its number; any other one is left alone. */
static bool is_context_file(struct tree *tree, int fd, const struct fdinfo *expected)
{
	struct fdinfo info;
	struct stat stat;

	if (fstat(fd, &stat) || !S_ISCHR(stat.st_mode) || major(stat.st_rdev) != ACCEL_MAJOR)
		return false;
	return processes_fdinfo(tree, (uint32_t)getpid(), (uint32_t)fd, &info) && info.has_client &&
	       expected->has_client && info.client == expected->client &&
	       !strcmp(info.address, expected->address);
}

int borrow_descriptor(struct tree *tree, const struct sample_context *context, struct finding *f)
{
	int fd;

	if (!context->info.has_client) {
		finding_fail(f, "the driver is an older one, which does not say to which context "
				"a descriptor leads");
		return -1;
	}
	fd = duplicate_descriptor(context->pid, context->fd, f);
	if (fd < 0 || is_context_file(tree, fd, &context->info))
		return fd;
	close(fd);
	finding_fail(f, "the descriptor of the process leads elsewhere by now");
	return -1;
}
