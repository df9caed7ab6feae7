/* SPDX-License-Identifier: MIT */
/* The processes that have a device open, and what the kernel says of their descriptors. */
#ifndef CLI_TOP_PROCESSES_H
#define CLI_TOP_PROCESSES_H

#include "sample.h"

/**
 * struct known_process - a process at the last search
 * @fds: its descriptors of nodes of accelerators
 * @hidden: this process may not see them
 */
struct known_process {
	uint32_t pid;
	char program[32];
	uint32_t *fds;
	size_t count;
	bool hidden;
};

/* Processes in the order of their numbers; zeroed: none is known yet. */
struct processes {
	struct known_process *list;
	size_t count;
};

/**
 * processes_read() - add the contexts of all processes to a sample
 * @search: look at the descriptors of all processes, not only at those of new ones
 *
 * Return: 0 or -ENOMEM. A machine without procfs has no processes.
 */
int processes_read(struct processes *known, struct tree *tree, bool search, struct sample *sample);

/* Reads what the kernel says of a descriptor. Return: false if it is none of our driver's. */
bool processes_fdinfo(struct tree *tree, uint32_t pid, uint32_t fd, struct fdinfo *out);

void processes_forget(struct processes *known);

#endif
