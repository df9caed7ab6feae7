// SPDX-License-Identifier: MIT
/*
 * Checks of what this process may use: locked memory, memory and processors. The limits are found by
 * runtime/src/host/limits.c, which sizes the soft device as well.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/host/limits.h"
#include "checks.h"

#define MIB ((uint64_t)1 << 20)
/* A batch of 16,384 samples with 50 ids each and their rows is about as large. */
#define MEMLOCK_LEAST (64 * MIB)
#define MEMORY_LEAST (256 * MIB)
#define CAP_IPC_LOCK_BIT 14

/* -- the process ----------------------------------------------------------- */

/* Reads the number behind @name at the start of a line of /proc/self/status. */
static bool read_status_number(const struct machine *m, const char *name, int base, uint64_t *value)
{
	char *text = tree_text(m->tree, "/proc/self/status", TREE_TEXT);
	bool found = false;

	for (const char *line = text; line && !found; line = strchr(line, '\n')) {
		line += *line == '\n';
		found = !strncmp(line, name, strlen(name));
		if (found)
			*value = strtoull(line + strlen(name), NULL, base);
	}
	free(text);
	return found;
}

/* Reads the soft limit of locked memory in bytes; UINT64_MAX for none. */
static bool read_memlock(const struct machine *m, uint64_t *bytes)
{
	static const char name[] = "Max locked memory";
	char *text = tree_text(m->tree, "/proc/self/limits", TREE_TEXT), word[32];
	const char *line = text ? strstr(text, name) : NULL;
	bool found = line && sscanf(line + strlen(name), "%31s", word) == 1;

	if (found)
		*bytes = !strcmp(word, "unlimited") ? UINT64_MAX : strtoull(word, NULL, 10);
	free(text);
	return found;
}

void check_memlock(const struct machine *m, const struct function *device, struct finding *f)
{
	uint64_t bytes, rights = 0;

	(void)device;
	if (!read_memlock(m, &bytes)) {
		found_nothing(f, "the kernel does not tell the limit");
		return;
	}
	read_status_number(m, "CapEff:", 16, &rights);
	if (bytes == UINT64_MAX) {
		found_ok(f, "locked memory is not limited");
	} else if (rights >> CAP_IPC_LOCK_BIT & 1 && !has_user_namespace(m)) {
		found_ok(f,
			 "the limit of %" PRIu64 " MiB does not bind this process (CAP_IPC_LOCK)",
			 bytes / MIB);
	} else if (bytes >= MEMLOCK_LEAST) {
		found_ok(f, "%" PRIu64 " MiB of memory may be locked", bytes / MIB);
	} else {
		found_warning(f, "%" PRIu64 " KiB of memory may be locked", bytes / 1024);
		found_fix(f, "`ulimit -l unlimited` where the hard limit allows it; else put "
			     "`@render - memlock unlimited` into "
			     "/etc/security/limits.d/embeng.conf and log in again, set "
			     "LimitMEMLOCK=infinity in the service's unit, or start the container "
			     "with `docker run --ulimit memlock=-1`");
	}
}

/* -- control groups --------------------------------------------------------- */

static char *read_tree_text(void *arg, const char *path)
{
	return tree_text(arg, path, TREE_TEXT);
}

/* Processors that the kernel lets this process run on, from a mask such as "ff,ffffffff". */
static uint32_t count_allowed(const struct machine *m)
{
	char *text = tree_text(m->tree, "/proc/self/status", TREE_TEXT);
	const char *mask = text ? strstr(text, "\nCpus_allowed:") : NULL;
	uint32_t count = 0;

	for (mask = mask ? mask + 14 : ""; *mask && *mask != '\n'; mask++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = strchr(digits, *mask);

		count += digit ? (uint32_t)__builtin_popcount((unsigned int)(digit - digits)) : 0;
	}
	free(text);
	return count;
}

static bool read_limits(const struct machine *m, struct host_limits *limits)
{
	uint32_t allowed = count_allowed(m);

	return allowed && !host_limits_read_by(read_tree_text, m->tree, allowed, limits);
}

/* @by: see struct host_limits */
static void explain_memory_limit(const char *by, struct finding *f)
{
	if (!*by)
		found_fix(f, "End what else runs on the machine, or give it more memory");
	else if (!strncmp(by, "ulimit", 6))
		found_fix(f,
			  "`%.9s unlimited` where the hard limit allows it, or LimitAS= and "
			  "LimitDATA= in the service's unit",
			  by);
	else if (*by != '/')
		found_fix(f, "Give the machine more swap, or `sysctl vm.overcommit_memory=0` as "
			     "root");
	else
		found_fix(f, "Give the container or the unit more memory (`docker run --memory`, "
			     "MemoryMax=, MemoryHigh=), or end what else runs in it");
}

void check_memory_limit(const struct machine *m, const struct function *device, struct finding *f)
{
	struct host_limits limits;

	(void)device;
	if (!read_limits(m, &limits)) {
		found_nothing(f, "the kernel does not tell the limits of this process");
		return;
	}
	if (limits.available >= MEMORY_LEAST) {
		found_ok(f, "%" PRIu64 " MiB of %" PRIu64 " MiB can still be taken",
			 limits.available / MIB, limits.memory / MIB);
		return;
	}
	found_warning(f,
		      "%" PRIu64 " MiB of %" PRIu64 " MiB can still be taken; the limit is %.200s",
		      limits.available / MIB, limits.memory / MIB,
		      *limits.available_by ? limits.available_by : "the machine's memory");
	explain_memory_limit(limits.available_by, f);
}

void check_processor_quota(const struct machine *m, const struct function *device,
			   struct finding *f)
{
	struct host_limits limits;

	(void)device;
	if (!read_limits(m, &limits)) {
		found_nothing(f, "the kernel does not tell the limits of this process");
		return;
	}
	if (limits.quota / 1000 >= limits.allowed) {
		found_ok(f, "no quota on its %u processors", limits.allowed);
		return;
	}
	/* A part of a processor counts as one, unless all of them would be busy then. */
	if (limits.cores < limits.allowed)
		found_warning(f, "a quota of processor time keeps %u of %u processors busy",
			      limits.cores, limits.allowed);
	else
		found_warning(f,
			      "a quota of processor time is that of %" PRIu64 ".%02" PRIu64
			      " processors, and there are %u",
			      limits.quota / 1000, limits.quota % 1000 / 10, limits.allowed);
	found_fix(f, "Raise the quota (`docker run --cpus`, CPUQuota=, a pod's limits.cpu)");
}
