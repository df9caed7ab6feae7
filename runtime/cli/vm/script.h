/* SPDX-License-Identifier: MIT */
/* Runs the script that boots the machine, and reads what it prints. */
#ifndef CLI_VM_SCRIPT_H
#define CLI_VM_SCRIPT_H

#include <stdio.h>

#include "tap_read.h"

/* Exit statuses of `embeng vm` beside those of the command. */
enum vm_status {
	VM_TIME_LIMIT = 124,
	VM_NO_MACHINE = 125,
};

/**
 * struct vm_run - one run of the script
 * @copy: where its output is copied to as it comes
 * @tap: reads the output
 * @status: its exit status, 128 and the signal's number if one ended it
 * @seconds: how long it ran
 */
struct vm_run {
	FILE *copy;
	struct tap tap;
	int status;
	double seconds;
};

/**
 * script_run() - run a program to its end
 * @argv: its path and arguments, ended by NULL
 * @run: its @copy is the caller's, all else is filled in; tap_free() its @tap
 *
 * SIGINT and SIGTERM are passed on to the program, and raised again once it has ended.
 *
 * Return: 0 or a negative errno.
 */
int script_run(char **argv, struct vm_run *run);

#endif
