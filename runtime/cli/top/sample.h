/* SPDX-License-Identifier: MIT */
/*
 * A sample: what all devices and contexts of a machine say at one moment. Samples hold counts;
 * rates.h makes rates of two of them.
 */
#ifndef CLI_TOP_SAMPLE_H
#define CLI_TOP_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../system/function.h"
#include "fdinfo.h"

/* X(name, key in JSON, file in the folder of the PCI function): counts that only grow. */
#define COUNT_TABLE(X) \
	X(COMMANDS, "commands", "counters/commands") \
	X(BATCHES, "batches", "counters/batches") \
	X(UPDATES, "updates", "counters/updates") \
	X(IDS, "ids", "counters/ids") \
	X(ROWS, "unique_rows", "counters/unique_rows") \
	X(BYTES_READ, "bytes_read", "counters/bytes_read") \
	X(BYTES_WRITTEN, "bytes_written", "counters/bytes_written") \
	X(WAITS, "waits", "counters/waits") \
	X(WAITS_LOOKUP, "waits_lookup", "counters/waits_lookup") \
	X(WAITS_UPDATE, "waits_update", "counters/waits_update") \
	X(WAITS_QUEUE, "waits_queue", "counters/waits_queue") \
	X(WAITS_SPACE, "waits_space", "counters/waits_space") \
	X(ERRORS_PROGRAM, "errors_program", "counters/errors_program") \
	X(ERRORS_MODEL, "errors_model", "counters/errors_model") \
	X(ERRORS_DEVICE, "errors_device", "counters/errors_device") \
	X(ECC_CORRECTABLE, "ecc_correctable", "counters/ecc_correctable") \
	X(ECC_UNCORRECTABLE, "ecc_uncorrectable", "counters/ecc_uncorrectable") \
	X(RESETS_QUEUE, "resets_queue", "resets/queues") \
	X(RESETS_CONTEXT, "resets_context", "resets/contexts") \
	X(RESETS_ENGINE, "resets_engine", "resets/engines") \
	X(RESETS_FUNCTION, "resets_function", "resets/functions")

enum count {
#define COUNT_ENUM(name, key, file) COUNT_##name,
	COUNT_TABLE(COUNT_ENUM)
#undef COUNT_ENUM
		COUNTS
};

/* X(name, key in JSON): what a device has or is at the moment. */
#define GAUGE_TABLE(X) \
	X(MEMORY_TOTAL, "table_memory_total") \
	X(MEMORY_USED, "table_memory_used") \
	X(TEMPERATURE, "temperature_mc") \
	X(TEMPERATURE_LIMIT, "temperature_limit_mc") \
	X(POWER, "power_uw") \
	X(CLOCK, "clock_hz") \
	X(CLOCK_LIMIT, "clock_limit_hz") \
	X(AGE, "readings_age_ms") \
	X(WEDGED, "wedged")

enum gauge {
#define GAUGE_ENUM(name, key) GAUGE_##name,
	GAUGE_TABLE(GAUGE_ENUM)
#undef GAUGE_ENUM
		GAUGES
};

#define SAMPLE_CORES 64

/**
 * struct sample_device - a device at the moment of a sample
 * @address, @node: its PCI address, and the name of its node or ""
 * @driver: driver that it is bound to, or ""
 * @link: speed and width of its link, or ""
 * @firmware: version of the running firmware, or ""
 * @known: a bit for each of @counts that could be read
 * @gauged: a bit for each of @gauges that could be read
 * @cores: number of entries of @core_ns, the nanoseconds that each core has worked
 */
struct sample_device {
	char address[24], node[32], driver[64];
	char link[48], firmware[32];
	uint32_t known, gauged;
	uint64_t counts[COUNTS];
	int64_t gauges[GAUGES];
	uint32_t cores;
	uint64_t core_ns[SAMPLE_CORES];
};

/**
 * struct sample_context - an open file of a device, with what the device does for it
 * @info: the kernel's account of it
 * @pid: process that has it; of several the one with the lowest number
 * @fd: a descriptor of that process which leads to it
 * @program: name of that process
 * @processes, @descriptors: number of processes and of descriptors that have it
 */
struct sample_context {
	struct fdinfo info;
	uint32_t pid, fd;
	char program[32];
	uint32_t processes, descriptors;
};

/**
 * struct sample_queue - a queue, as the driver tells administrators
 * @address: device of the queue
 * @context: number of its context on the device
 * @pid: process that made the context
 * @number, @kind: number and enum embeng_queue_kind
 * @mapped: its program writes the ring itself
 * @tail, @head, @done: free-running indices: commands given, commands fetched, completions
 * @state, @wait, @replica, @step: &struct embeng_queue_report
 */
struct sample_queue {
	char address[24];
	uint32_t context, pid;
	uint32_t number, kind;
	bool mapped;
	uint32_t tail, head, done;
	uint32_t state, wait, replica;
	uint64_t step;
};

/**
 * struct sample - all of it
 * @time_ns: when it was taken, CLOCK_MONOTONIC
 * @hidden: processes whose descriptors this process may not see
 * @queues_hidden: the driver tells this process nothing about queues
 */
struct sample {
	uint64_t time_ns;
	struct sample_device *devices;
	size_t device_count;
	struct sample_context *contexts;
	size_t context_count;
	struct sample_queue *queues;
	size_t queue_count;
	uint32_t hidden;
	bool queues_hidden;
};

void sample_free(struct sample *sample);

/* Adds a zeroed entry to a list of a sample. Return: it, or NULL without memory. */
struct sample_device *sample_add_device(struct sample *sample);
struct sample_context *sample_add_context(struct sample *sample);
struct sample_queue *sample_add_queue(struct sample *sample);

/*
 * Notes that descriptor @fd of process @pid, called @program, leads to @info. Descriptors with the
 * same client are one context. Return: 0 or -ENOMEM.
 */
int sample_take_descriptor(struct sample *sample, const struct fdinfo *info, uint32_t pid,
			   uint32_t fd, const char *program);

/* Reads the driver's list of contexts and queues of a device. Return: 0 or -ENOMEM. */
int sample_take_queues(struct sample *sample, const char *address, const char *text);

/* The queue as words: its kind, and what it waits for. */
const char *sample_queue_kind(const struct sample_queue *queue);
const char *sample_queue_wait(const struct sample_queue *queue);

#endif
