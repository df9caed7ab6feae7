/* SPDX-License-Identifier: MIT */
/* Exit codes of the command. They never change, because scripts depend on them. */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

enum cli_exit {
	CLI_OK = 0,
	CLI_CHECK = 1,	     /* a check failed: a vector, or a baseline was not beaten */
	CLI_USAGE = 2,	     /* the command line or a file that it names is wrong */
	CLI_UNSUPPORTED = 3, /* this build or the device does not support it */
	CLI_PERMISSION = 4,
	CLI_BUSY = 5,
	CLI_NO_DEVICE = 6,
	CLI_DEVICE = 7, /* the device or the host failed */
	CLI_TIMEOUT = 8,
	CLI_NO_DRIVER = 9,
	CLI_FIRMWARE = 10,
	CLI_CORRUPT = 11,
};

/*
 * Exit code of an errno, negative or positive; the table of statuses decides if it has the errno.
 */
int exit_of_errno(int err);

/* Name of an errno, "ERANGE" for ERANGE or -ERANGE; "EIO" for an unknown number. */
const char *errno_name(int err);

/* The errno with this name, ERANGE for "ERANGE"; 0 for an unknown name. */
int errno_by_name(const char *name);

#endif
