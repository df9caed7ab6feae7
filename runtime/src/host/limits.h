/* SPDX-License-Identifier: MIT */
/*
 * The part of the machine that this process may use. A container, a job of a cluster and a shell's
 * ulimit each give a process less than the machine has; nothing in the library asks for the
 * machine's size in another way.
 */
#ifndef EMBENG_LIMITS_H
#define EMBENG_LIMITS_H

#include <stdint.h>

/**
 * struct host_limits - memory and processors of this process
 * @memory: bytes that the process may have in all: the least of the machine's memory, the limits of
 *	its control groups and of those above them, RLIMIT_AS and RLIMIT_DATA, and the commit
 *	limit of a system that promises no more than it has
 * @available: bytes of these that it can still take without swapping or being killed
 * @available_by: file or limit that @available comes from; "" for the machine's memory
 * @cores: processors that it may keep busy: those of its affinity, or fewer where a control group
 *	has a quota of processor time; a part of one counts as one
 * @quota: thousandths of a processor that the least quota gives; UINT64_MAX: there is none
 * @allowed: processors of its affinity
 * @most: bytes more than the process has now at which the kernel ends it or refuses it memory,
 *	whatever else is free: by the least limit of a control group, with the machine's swap, of
 *	RLIMIT_AS and RLIMIT_DATA, and the commit limit; UINT64_MAX: there is none
 * @most_by: file or limit that says so
 */
struct host_limits {
	uint64_t memory;
	uint64_t available;
	char available_by[256];
	uint32_t cores;
	uint32_t allowed;
	uint64_t quota;
	uint64_t most;
	char most_by[256];
};

/**
 * host_limits_read() - read what this process may use now
 * @root: folder that stands for /, so that tests can show another machine; "" for this one
 * @out: the limits; a source that is not there or says nothing limits nothing
 *
 * Reads /proc/meminfo, /proc/sys/vm/overcommit_memory, /proc/self/{cgroup,limits,mountinfo,status}
 * and the files of control groups of both versions. The affinity comes from the kernel, whatever
 * @root is. May be called by any thread.
 *
 * Return: 0, or -ENOMEM, -EMFILE or -ENFILE where something that is there could not be read; @out
 * then has what could.
 */
int host_limits_read(const char *root, struct host_limits *out);

/* Reads a file of the machine as text, to be freed; NULL with errno set if it cannot be read. */
typedef char *(*host_read_fn)(void *arg, const char *path);

/**
 * host_limits_read_by() - read what a process of a machine may use, by a function of the caller
 * @read: reads files of /proc/self and of control groups; called with @arg
 * @allowed: processors of the process's affinity, at least 1
 *
 * This is for the files of another machine, which may have been made to harm who reads them.
 *
 * Return: as host_limits_read().
 */
int host_limits_read_by(host_read_fn read, void *arg, uint32_t allowed, struct host_limits *out);

#endif
