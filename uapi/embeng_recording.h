/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: a recording of what a device was given and what it did, from power on to power off.
 *
 * DOC: What a recording is for
 *
 * A recording lets somebody else run the same commands with the same operands on another device, in
 * the same order and with the same faults, and compare every result. The soft device and the
 * emulator write it; `embeng replay` and `embeng decode` read it.
 *
 * DOC: Form
 *
 * A recording is a sequence of entries. Each entry is a &struct embeng_recording_entry, what the
 * type says, and bytes of 0 up to a multiple of 8. Numbers are little-endian. The first entry is
 * POWER_ON, which has the version of the form; the last one is POWER_OFF. A file that was cut can
 * be read up to the cut, since each entry has its length, its number and a checksum.
 *
 * DOC: Order
 *
 * Entries stand in the order in which the device did things, under one lock. COMMAND stands where
 * the device has accepted or refused a command, RUN where it began to work on it, and DONE where it
 * posted its last completion. REGION and MEMORY come before the first COMMAND or RUN that uses that
 * memory. A FAULT of a command stands between its RUN and its DONE, one of a completion directly
 * behind the COMMAND or DONE that posted it, and one of a boot before its BOOT.
 *
 * Two commands of a context never run at the same time. The numbers that a command makes depend on
 * the RUN before it in its context and on nothing else that has a time.
 *
 * The form is unstable until the driver has been used for some time.
 */
#ifndef _EMBENG_RECORDING_H_
#define _EMBENG_RECORDING_H_

#include "embeng_regs.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMBENG_RECORDING_MAGIC 0x43524245u /* "EBRC" in the file */
#define EMBENG_RECORDING_VERSION 1u

/**
 * EMBENG_RECORDING_TABLE - every type of an entry
 *
 * X(name, value, words)
 */
#define EMBENG_RECORDING_TABLE(X) \
	X(POWER_ON, 1, "power on") \
	X(POWER_OFF, 2, "power off") \
	X(BOOT, 3, "boot") \
	X(BOOTED, 4, "end of a boot") \
	X(RESET, 5, "reset") \
	X(ADMIN, 6, "admin command") \
	X(REGION, 7, "region") \
	X(MEMORY, 8, "memory") \
	X(COMMAND, 9, "command") \
	X(RUN, 10, "begin of work") \
	X(FAULT, 11, "fault") \
	X(DONE, 12, "completion")

enum embeng_recording_type {
#define EMBENG_RECORDING_ENUM(name, value, words) EMBENG_RECORDING_##name = value,
	EMBENG_RECORDING_TABLE(EMBENG_RECORDING_ENUM)
#undef EMBENG_RECORDING_ENUM
};

/**
 * struct embeng_recording_entry - the head of every entry
 * @magic: EMBENG_RECORDING_MAGIC
 * @type: enum embeng_recording_type
 * @reserved: 0
 * @length: bytes of the entry with this head, a multiple of 8
 * @time_ns: the device's clock; no result depends on it
 * @number: entries before this one
 * @crc: CRC-32C of the entry, with 0 in this field
 */
struct embeng_recording_entry {
	__u32 magic;
	__u16 type;
	__u16 reserved;
	__u64 length;
	__u64 time_ns;
	__u32 number;
	__u32 crc;
};

/**
 * struct embeng_recording_power_on - POWER_ON: the device as its host made it
 * @version: EMBENG_RECORDING_VERSION
 * @cores: engine cores
 * @queues: most queues, with the admin queue
 * @vectors: interrupt vectors
 * @table_memory: bytes for tables and slots
 * @firmware_minimum: lowest firmware version that it boots
 * @variant: kernel variant in use, ended by a zero byte
 */
struct embeng_recording_power_on {
	__u32 version;
	__u32 cores;
	__u32 queues;
	__u32 vectors;
	__u64 table_memory;
	__u64 firmware_minimum;
	char variant[16];
};

/**
 * struct embeng_recording_boot - BOOT, and behind it the firmware image
 * @raise: EMBENG_REG_BOOT_RAISE
 * @length: bytes of the image that follow; 0: there was none that could be read
 */
struct embeng_recording_boot {
	__u64 raise;
	__u64 length;
};

/**
 * struct embeng_recording_booted - BOOTED
 * @error: enum embeng_boot_error
 * @reserved: 0
 */
struct embeng_recording_booted {
	__u32 error;
	__u32 reserved;
};

/**
 * struct embeng_recording_admin - ADMIN
 * @command: the command; its @address means nothing elsewhere
 * @status: enum embeng_status with which it was begun
 * @reserved: 0
 */
struct embeng_recording_admin {
	struct embeng_admin_cmd command;
	__u32 status;
	__u32 reserved;
};

/**
 * struct embeng_recording_region - REGION: a region is mapped, in place of what had its index
 * @context: number of the context
 * @index: entry of the context's region table
 * @generation: generation of that entry
 * @rights: EMBENG_REGION_DEVICE_*
 * @length: bytes
 */
struct embeng_recording_region {
	__u32 context;
	__u32 index;
	__u32 generation;
	__u32 rights;
	__u64 length;
};

/**
 * struct embeng_recording_memory - MEMORY, and behind it @where.length bytes
 * @context: number of the context
 * @queue: number of the queue whose command reads it
 * @where: the part of a region that has these bytes
 */
struct embeng_recording_memory {
	__u32 context;
	__u32 queue;
	struct embeng_mem where;
};

/**
 * struct embeng_recording_command - COMMAND
 * @context: number of the context
 * @queue: number of the queue
 * @index: free-running index of the command in its queue
 * @status: enum embeng_status of the checks: not 0 if it was refused, and DONE follows
 * @command: the command
 */
struct embeng_recording_command {
	__u32 context;
	__u32 queue;
	__u32 index;
	__u32 status;
	struct embeng_cmd command;
};

/**
 * struct embeng_recording_run - RUN
 * @context: number of the context
 * @queue: number of the queue
 * @index: free-running index of the command in its queue
 * @opcode: enum embeng_opcode
 */
struct embeng_recording_run {
	__u32 context;
	__u32 queue;
	__u32 index;
	__u32 opcode;
};

/**
 * EMBENG_RECORDING_FAULT_TABLE - every fault
 *
 * X(name, value, target, words)
 */
#define EMBENG_RECORDING_FAULT_TABLE(X) \
	X(DROP_COMPLETION, 0, "queue", "a completion was not written") \
	X(DELAY_COMPLETION, 1, "queue", "a completion was seen later") \
	X(CORRUPT_COMPLETION, 2, "queue", "the cookie of a completion was inverted") \
	X(STALL_QUEUE, 3, "queue", "a queue took no more commands") \
	X(REFUSE_REGION, 4, "context", "a region was not mapped") \
	X(DMA_ERROR, 5, "queue", "a command ended with the status INTERNAL") \
	X(ECC_CORRECTABLE, 6, "queue", "a command met a memory error that was corrected") \
	X(ECC_UNCORRECTABLE, 7, "queue", "a command lost data") \
	X(FIRMWARE_REFUSES, 8, "device", "a boot failed") \
	X(HEARTBEAT_STOPS, 9, "device", "the heartbeat stood still")

/**
 * struct embeng_recording_fault - FAULT
 * @fault: value of EMBENG_RECORDING_FAULT_TABLE
 * @target: queue or context, 0 for the device
 * @value: nanoseconds of a delay, enum embeng_boot_error of a boot, otherwise not 0
 */
struct embeng_recording_fault {
	__u32 fault;
	__u32 target;
	__u64 value;
};

/**
 * struct embeng_recording_done - DONE, and behind it @outputs times &struct embeng_recording_output
 * @context: number of the context
 * @queue: number of the queue
 * @index: free-running index of the command in its queue
 * @status: as in &struct embeng_cqe
 * @field: as in &struct embeng_cqe
 * @feature: as in &struct embeng_cqe
 * @element: as in &struct embeng_cqe
 * @value: as in &struct embeng_cqe
 * @limit: as in &struct embeng_cqe
 * @outputs: parts of memory that the command could write, 0 unless @status is 0
 * @reserved: 0
 */
struct embeng_recording_done {
	__u32 context;
	__u32 queue;
	__u32 index;
	__u32 status;
	__u32 field;
	__u32 feature;
	__u64 element;
	__u64 value;
	__u64 limit;
	__u32 outputs;
	__u32 reserved;
};

/**
 * struct embeng_recording_output - a part of memory as a command left it
 * @where: the part
 * @crc: CRC-32C of its bytes
 * @reserved: 0
 */
struct embeng_recording_output {
	struct embeng_mem where;
	__u32 crc;
	__u32 reserved;
};

#ifdef __cplusplus
}
#endif

EMBENG_ASSERT(sizeof(struct embeng_recording_entry) == 32);
EMBENG_ASSERT(sizeof(struct embeng_recording_power_on) == 48);
EMBENG_ASSERT(sizeof(struct embeng_recording_boot) == 16);
EMBENG_ASSERT(sizeof(struct embeng_recording_booted) == 8);
EMBENG_ASSERT(sizeof(struct embeng_recording_admin) == 72);
EMBENG_ASSERT(sizeof(struct embeng_recording_region) == 24);
EMBENG_ASSERT(sizeof(struct embeng_recording_memory) == 32);
EMBENG_ASSERT(sizeof(struct embeng_recording_command) == 80);
EMBENG_ASSERT(sizeof(struct embeng_recording_run) == 16);
EMBENG_ASSERT(sizeof(struct embeng_recording_fault) == 16);
EMBENG_ASSERT(sizeof(struct embeng_recording_done) == 56);
EMBENG_ASSERT(sizeof(struct embeng_recording_output) == 32);

#endif
