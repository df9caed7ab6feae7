/* SPDX-License-Identifier: MIT */
/* The kernel's account of a descriptor of a DRM device: /proc/PID/fdinfo/FD. */
#ifndef CLI_TOP_FDINFO_H
#define CLI_TOP_FDINFO_H

#include <stdbool.h>
#include <stdint.h>

/*
 * X(name, key in the file, key in JSON, words): each number of a context. Keys that begin with
 * "embeng-" are our driver's own.
 */
#define FDINFO_TABLE(X) \
	X(BUSY_NS, "drm-engine-compute", "busy_ns", "time worked for it") \
	X(MEMORY, "drm-total-memory", "memory", "memory of its buffers") \
	X(RESIDENT, "drm-resident-memory", "resident_memory", "memory in use") \
	X(NUMBER, "embeng-context", "context", "number on the device") \
	X(QUEUES, "embeng-queues", "queues", "queues") \
	X(COMMANDS, "embeng-commands", "commands", "commands completed") \
	X(IDS, "embeng-ids", "ids", "ids looked up") \
	X(ROWS, "embeng-rows", "unique_rows", "distinct rows updated") \
	X(WAITS_LOOKUP, "embeng-waits-lookup", "waits_lookup", "waits for a lookup") \
	X(WAITS_UPDATE, "embeng-waits-update", "waits_update", "waits for an update") \
	X(WAITS_QUEUE, "embeng-waits-queue", "waits_queue", "waits for another queue") \
	X(WAITS_SPACE, "embeng-waits-space", "waits_space", "waits for room for completions")

enum fdinfo_number {
#define FDINFO_ENUM(name, key, json, words) FDINFO_##name,
	FDINFO_TABLE(FDINFO_ENUM)
#undef FDINFO_ENUM
		FDINFO_NUMBERS
};

#define FDINFO_BIT(number) (1u << FDINFO_##number)

/**
 * struct fdinfo - a descriptor
 * @driver: name of the driver, "" if the file has none
 * @address: PCI address of the device, "" if the file has none
 * @client: number of the open file: descriptors with the same one share a context
 * @has_client: the file has that number
 * @known: FDINFO_BIT() of each number that the file has
 */
struct fdinfo {
	char driver[32];
	char address[24];
	uint64_t client;
	bool has_client;
	uint32_t known;
	uint64_t numbers[FDINFO_NUMBERS];
};

/*
 * Reads the text of such a file. Lines with other keys, without a value or with one that is not
 * understood are left out. If a key is there twice, the last one counts.
 */
void fdinfo_read(const char *text, struct fdinfo *out);

#endif
