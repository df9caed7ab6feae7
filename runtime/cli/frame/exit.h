/* SPDX-License-Identifier: MIT */
/* Exit codes of the command. Frozen: scripts depend on them. */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

enum cli_exit {
	CLI_OK = 0,
	CLI_CHECK = 1,	     /* ran, and a check failed: a vector, a baseline not beaten */
	CLI_USAGE = 2,	     /* the call or a file of it is wrong */
	CLI_UNSUPPORTED = 3, /* not in this build or device */
	CLI_PERMISSION = 4,
	CLI_BUSY = 5,
	CLI_NO_DEVICE = 6,
	CLI_DEVICE = 7, /* the device or the host failed */
	CLI_TIMEOUT = 8,
	CLI_NO_DRIVER = 9,
	CLI_FIRMWARE = 10,
	CLI_CORRUPT = 11,
};

/* Exit code of an errno, negative or positive: the status table's where it has one. */
int exit_of_errno(int err);

/* "ERANGE" of ERANGE or -ERANGE; "EIO" of a number that has no name here. */
const char *errno_name(int err);

/* ERANGE of "ERANGE", or 0. */
int errno_by_name(const char *name);

#endif
