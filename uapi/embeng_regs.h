/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: the interface between the driver and the device.
 *
 * The interface is unstable until the driver has been used with it for some time. The file is
 * long because it is one map of registers, whose offsets are checked against each other.
 *
 * DOC: The function
 *
 * The device is a PCI Express function of class 0x1200. BAR 0 holds the registers below. BAR 2
 * holds the doorbells (&struct embeng_doorbell, one stride for each queue; queue 0 is the admin
 * queue). BAR 4 holds the MSI-X table.
 *
 * Registers are plain memory: no read has an effect, no bit clears itself, and each register
 * has one writer. A side that asks for something adds one to a sequence register of its own.
 * The other side answers by copying that number when it is done. An emulator that polls memory
 * and a chip that decodes writes therefore behave alike.
 *
 * DOC: Boot
 *
 * After a reset BOOT_STATE is ROM once the device answers. The driver writes BOOT_ADDRESS and
 * BOOT_LENGTH, BOOT_SIGNATURE and BOOT_SIGNATURE_LENGTH (both 0 for an unsigned image), and
 * BOOT_RAISE, and then adds one to BOOT_SEQUENCE. The device sets BOOT_STATE to LOADING and
 * checks the whole image (embeng_firmware.h). It then sets BOOT_STATE to RUNNING, or to FAILED
 * with BOOT_ERROR and BOOT_ERROR_OFFSET, and last copies BOOT_SEQUENCE into BOOT_DONE. While
 * the device is RUNNING, HEARTBEAT grows, and FIRMWARE_VERSION and the capabilities are valid.
 *
 * A refused image leaves the device in FAILED, and the driver may try another at once. If the
 * admin ring is at fault, BOOT_ERROR_OFFSET is 0, and BOOT_ERROR is PARAMETER for the ring's
 * sizes or ADDRESS for its memory. BOOT_ERROR_INDEX is valid only with SELF_TEST. A boot of a
 * device that is RUNNING is answered and changes nothing, so the driver resets it first.
 *
 * A device that has keys boots no image without a signature by one of them. It copies image and
 * signature first, so that what it checks is what it runs. BOOT_ERROR_OFFSET counts on behind the
 * image, as in a file, if the signature is at fault. A device without keys does not look at the
 * signature, and sets EMBENG_CAP_SIGNATURE_UNCHECKED.
 *
 * A warm reset is asked for by CONTROL = RESET and adding one to CONTROL_SEQUENCE. Everything
 * except FIRMWARE_MINIMUM and the event log is lost, and BOOT_STATE is ROM again. A
 * function-level reset does the same.
 *
 * DOC: Admin queue
 *
 * The driver writes ADMIN_RING, ADMIN_SQ_ENTRIES and ADMIN_CQ_ENTRIES before the boot. The admin
 * ring has the layout of every other ring (embeng_ring_layout()). Its entries are
 * &struct embeng_admin_cmd, its completions &struct embeng_cqe, its doorbell is stride 0 and its
 * interrupt is vector 0. Completions come in any order, because an INVALIDATE may wait for
 * accesses in flight.
 *
 * Registers and admin queue are served whatever command runs. A command whose context, queue or
 * device is to end stops at its next piece and completes with ABORTED. Only an UPDATE or DRAIN that
 * has begun to change tables is finished first when its queue ends, since half a step would be left
 * in tables that others use; with its context it stops as well.
 *
 * DOC: Life signs
 *
 * HEARTBEAT grows every HEARTBEAT_MS while the device lives, whatever it is doing. With it grows
 * &embeng_ring_header.heartbeat of each queue that the device attends to. PROGRESS grows with each
 * piece of work while a command runs. Whether a queue that stands has a reason to is in
 * &embeng_ring_header.progress; NOPs that others delay are none.
 * ACTIVE_QUEUE is the queue for which it works.
 *
 * When STATUS becomes FAULT, vector 0 fires if the admin queue is armed, for whatever index. On
 * that interrupt a driver therefore looks both at the admin queue and at STATUS.
 *
 * DOC: Region table
 *
 * Each context has one array of &struct embeng_region in host memory, which only the driver
 * writes. To bind a region, the driver fills in all fields except @generation and then publishes
 * @generation (release). To unbind it, the driver sets @generation to 0 and sends INVALIDATE. It
 * frees the memory only after the completion of INVALIDATE; if that does not come, it resets the
 * device before it frees anything. An index whose generation would wrap is not used again.
 */
#ifndef _EMBENG_REGS_H_
#define _EMBENG_REGS_H_

#include <linux/types.h>

#include "embeng_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMBENG_DEVICE_MAGIC 0x474e424du /* "MBNG" */

/* No registry assigned these ids. They are the emulator's. */
#define EMBENG_PCI_VENDOR 0x0eb0
#define EMBENG_PCI_CLASS 0x120000

/**
 * EMBENG_PCI_DEVICE_TABLE - every generation of the device, by its PCI device id
 *
 * X(name, id, words). The driver binds to these ids, and the library finds them.
 * docs/first-light.md says what a new generation needs beside its line here.
 */
#define EMBENG_PCI_DEVICE_TABLE(X) X(EMULATED, 0x0001, "the engine that embeng_emu emulates")

enum embeng_pci_device {
#define EMBENG_PCI_DEVICE_ENUM(name, id, words) EMBENG_PCI_DEVICE_##name = id,
	EMBENG_PCI_DEVICE_TABLE(EMBENG_PCI_DEVICE_ENUM)
#undef EMBENG_PCI_DEVICE_ENUM
};

#define EMBENG_BAR_REGISTERS 0
#define EMBENG_BAR_DOORBELLS 2
#define EMBENG_BAR_MSIX 4

#define EMBENG_REGISTERS_SIZE 4096u

/**
 * EMBENG_REGISTER_TABLE - every register
 *
 * X(name, offset, bytes, writer, reset value, words). The writer is DEVICE or DRIVER; the other
 * side only reads. A register of 8 bytes is read as a whole or with its low word first. After
 * boot the capability registers hold the values of &struct embeng_caps.
 */
#define EMBENG_REGISTER_TABLE(X)                                                              \
	X(MAGIC, 0x000, 4, DEVICE, EMBENG_DEVICE_MAGIC, "says that this is an embeng device") \
	X(INTERFACE, 0x004, 4, DEVICE, 0x1, "interface major << 16 | minor")                  \
	X(FEATURES, 0x008, 4, DEVICE, 0, "capability bits")                                   \
	X(CORES, 0x00c, 4, DEVICE, 0, "engine cores")                                         \
	X(QUEUES, 0x010, 4, DEVICE, 0, "queues with the admin queue")                         \
	X(VECTORS, 0x014, 4, DEVICE, 0, "interrupt vectors")                                  \
	X(CONTEXTS, 0x018, 4, DEVICE, 0, "most contexts at one time")                         \
	X(REGIONS, 0x01c, 4, DEVICE, 0, "most entries of a region table")                     \
	X(TABLE_MEMORY, 0x020, 8, DEVICE, 0, "bytes for tables and slots")                    \
	X(DIM, 0x028, 4, DEVICE, 0, "most columns of a table")                                \
	X(TABLES, 0x02c, 4, DEVICE, 0, "most tables of a model")                              \
	X(MODEL_FEATURES, 0x030, 4, DEVICE, 0, "most features of a model")                    \
	X(REPLICAS, 0x034, 4, DEVICE, 0, "most replicas of a model")                          \
	X(STEP_DEPTH, 0x038, 4, DEVICE, 0, "training steps ahead")                            \
	X(ROW_DTYPES, 0x03c, 4, DEVICE, 0, "mask of row data types, bit 0 f32")               \
	X(IDS, 0x040, 8, DEVICE, 0, "most ids of one feature of one batch")                   \
	X(SAMPLES, 0x048, 8, DEVICE, 0, "most samples of one feature of one batch")           \
	X(COMBINERS, 0x050, 4, DEVICE, 0, "mask of combiners")                                \
	X(OPTIMIZERS, 0x054, 4, DEVICE, 0, "mask of optimizers")                              \
	X(DOORBELL_STRIDE, 0x058, 4, DEVICE, 4096, "bytes from one doorbell to the next")     \
	X(COMMAND_BYTES, 0x060, 8, DEVICE, 0, "most bytes that one command moves, 0: no limit") \
	X(BOOT_STATE, 0x080, 4, DEVICE, 0, "enum embeng_boot_state")                          \
	X(BOOT_DONE, 0x084, 4, DEVICE, 0, "BOOT_SEQUENCE that was answered")                  \
	X(BOOT_ERROR, 0x088, 4, DEVICE, 0, "enum embeng_boot_error")                          \
	X(HEARTBEAT, 0x08c, 4, DEVICE, 0, "grows while the device lives")                     \
	X(BOOT_ERROR_OFFSET, 0x090, 8, DEVICE, 0, "byte of the image at fault")               \
	X(FIRMWARE_VERSION, 0x098, 8, DEVICE, 0, "version of the running image")              \
	X(FIRMWARE_MINIMUM, 0x0a0, 8, DEVICE, 0, "lowest version that the device boots")      \
	X(CONTROL_DONE, 0x0a8, 4, DEVICE, 0, "CONTROL_SEQUENCE that was answered")            \
	X(STATUS, 0x0ac, 4, DEVICE, 0, "enum embeng_device_status")                           \
	X(BOOT_ERROR_INDEX, 0x0b0, 4, DEVICE, 0, "self-test that failed, from 0")             \
	X(ACTIVE_QUEUE, 0x0b4, 4, DEVICE, 0, "queue whose command runs, or 0")                \
	X(PROGRESS, 0x0b8, 8, DEVICE, 0, "grows with pieces of commands")   \
	X(HEARTBEAT_MS, 0x0c0, 4, DEVICE, 0, "period of HEARTBEAT in milliseconds")           \
	X(TEMPERATURE, 0x0c4, 4, DEVICE, 0, "engine temperature, in millidegrees Celsius")       \
	X(TEMPERATURE_LIMIT, 0x0c8, 4, DEVICE, 0, "critical TEMPERATURE, or 0 if not measured") \
	X(POWER, 0x0cc, 4, DEVICE, 0, "power that the device takes, in microwatts")           \
	X(CLOCK, 0x0d0, 4, DEVICE, 0, "clock of the engine, in kilohertz")                    \
	X(CLOCK_LIMIT, 0x0d4, 4, DEVICE, 0, "highest CLOCK, or 0 if clocks are not known")    \
	X(BOOT_ADDRESS, 0x100, 8, DRIVER, 0, "DMA address of the image")                      \
	X(BOOT_LENGTH, 0x108, 8, DRIVER, 0, "bytes of the image")                             \
	X(BOOT_SEQUENCE, 0x110, 4, DRIVER, 0, "adding one boots the image")                   \
	X(CONTROL, 0x114, 4, DRIVER, 0, "enum embeng_control")                                \
	X(CONTROL_SEQUENCE, 0x118, 4, DRIVER, 0, "adding one does what CONTROL says")         \
	X(ADMIN_SQ_ENTRIES, 0x11c, 4, DRIVER, 0, "admin commands, a power of two")            \
	X(ADMIN_RING, 0x120, 8, DRIVER, 0, "DMA address of the admin ring memory")            \
	X(ADMIN_CQ_ENTRIES, 0x128, 4, DRIVER, 0, "admin completions, a power of two")         \
	X(BOOT_SIGNATURE_LENGTH, 0x12c, 4, DRIVER, 0, "bytes of the signature, 0: none")      \
	X(BOOT_SIGNATURE, 0x130, 8, DRIVER, 0, "DMA address of the signature's head")         \
	X(BOOT_RAISE, 0x138, 8, DRIVER, 0, "the image may raise FIRMWARE_MINIMUM up to this") \
	X(COUNT_COMMANDS, 0x180, 8, DEVICE, 0, "commands completed")                          \
	X(COUNT_BATCHES, 0x188, 8, DEVICE, 0, "lookups completed")                            \
	X(COUNT_UPDATES, 0x190, 8, DEVICE, 0, "steps applied")                                \
	X(COUNT_IDS, 0x198, 8, DEVICE, 0, "ids looked up")                                    \
	X(COUNT_UNIQUE_ROWS, 0x1a0, 8, DEVICE, 0, "distinct rows updated")                    \
	X(COUNT_BYTES_READ, 0x1a8, 8, DEVICE, 0, "bytes read from host memory")               \
	X(COUNT_BYTES_WRITTEN, 0x1b0, 8, DEVICE, 0, "bytes written to host memory")           \
	X(COUNT_ERRORS_PROGRAM, 0x1b8, 8, DEVICE, 0, "commands failed by the program's fault") \
	X(COUNT_ERRORS_MODEL, 0x1c0, 8, DEVICE, 0, "commands failed by the model's fault")    \
	X(COUNT_ERRORS_DEVICE, 0x1c8, 8, DEVICE, 0, "commands failed: device fault, not ABORTED") \
	X(TIME_CHECK, 0x1d0, 8, DEVICE, 0, "ns spent checking and copying batches")           \
	X(TIME_LOOKUP, 0x1d8, 8, DEVICE, 0, "ns spent on lookups")                            \
	X(TIME_PARTITION, 0x1e0, 8, DEVICE, 0, "ns spent sorting ids by row")                 \
	X(TIME_UPDATE, 0x1e8, 8, DEVICE, 0, "ns spent on updates")                            \
	X(TIME_RING, 0x1f0, 8, DEVICE, 0, "ns spent fetching and completing commands")        \
	X(TABLE_MEMORY_USED, 0x1f8, 8, DEVICE, 0, "bytes of TABLE_MEMORY in use")             \
	X(MODEL_MEMORY, 0x200, 8, DEVICE, 0, "bytes that models hold beside TABLE_MEMORY")    \
	X(COUNT_ECC_CORRECTABLE, 0x208, 8, DEVICE, 0, "table memory errors corrected")        \
	X(COUNT_ECC_UNCORRECTABLE, 0x210, 8, DEVICE, 0, "table memory errors that lost data") \
	X(COUNT_WAITS, 0x218, 8, DEVICE, 0, "times that a queue began to wait")                \
	X(COUNT_WAITS_LOOKUP, 0x220, 8, DEVICE, 0, "COUNT_WAITS for a LOOKUP")                \
	X(COUNT_WAITS_UPDATE, 0x228, 8, DEVICE, 0, "COUNT_WAITS for an UPDATE")               \
	X(COUNT_WAITS_QUEUE, 0x230, 8, DEVICE, 0, "COUNT_WAITS for another queue")            \
	X(COUNT_WAITS_SPACE, 0x238, 8, DEVICE, 0, "COUNT_WAITS for room for completions")

enum embeng_register {
#define EMBENG_REGISTER_ENUM(name, offset, bytes, writer, reset, words) EMBENG_REG_##name = offset,
	EMBENG_REGISTER_TABLE(EMBENG_REGISTER_ENUM)
#undef EMBENG_REGISTER_ENUM
};

/* All registers from COUNT_COMMANDS on have 8 bytes: EMBENG_ACCEL_QUERY_COUNTERS returns them. */

/*
 * The registers are followed by 8 bytes for each core: the nanoseconds that it was busy since the
 * last boot. Core 0 also fetches commands and does all work that is not spread over cores.
 */
#define EMBENG_CORES_MAX 64u
#define EMBENG_CORE_BUSY(core) (0x400u + 8u * (core))

/* The cores are followed by &struct embeng_event_log, which resets do not clear. */
#define EMBENG_EVENT_LOG 0x800u
#define EMBENG_EVENT_MAGIC 0x474c4245u /* "EBLG" */
#define EMBENG_EVENTS 63u
#define EMBENG_EVENT_NO_QUEUE 0xffffu

/**
 * EMBENG_EVENT_TABLE - every kind of event in the log
 *
 * X(name, value, words). The words say what &embeng_event.detail and &embeng_event.value mean;
 * a field that they do not mention is 0.
 */
#define EMBENG_EVENT_TABLE(X)                                                               \
	X(POWER_ON, 1, "the engine came up")                                                \
	X(BOOT, 2, "firmware runs; value: its version")                                     \
	X(BOOT_REFUSED, 3, "firmware refused; detail: enum embeng_boot_error, value: byte") \
	X(RESET, 4, "warm reset")                                                           \
	X(ECC_CORRECTABLE, 5, "table memory error, corrected; value: how many by now")      \
	X(ECC_UNCORRECTABLE, 6, "table memory error, tables lost; value: how many by now")  \
	X(QUEUE_STOPPED, 7, "wrong index; detail: submission tail, value: completion head") \
	X(COMMAND_FAILED, 8, "device fault; detail: enum embeng_status, value: index")      \
	X(CONTEXT_MADE, 9, "context; value: entries of its region table")                   \
	X(CONTEXT_ENDED, 10, "context ended")                                               \
	X(MODEL_LOADED, 11, "model loaded; value: TABLE_MEMORY_USED")                       \
	X(MODEL_UNLOADED, 12, "model unloaded; value: TABLE_MEMORY_USED")

enum embeng_event_kind {
#define EMBENG_EVENT_ENUM(name, value, words) EMBENG_EVENT_##name = value,
	EMBENG_EVENT_TABLE(EMBENG_EVENT_ENUM)
#undef EMBENG_EVENT_ENUM
};

/**
 * struct embeng_event - a record of the event log, 32 bytes, written by the device
 * @number: number of the event, from 1; 0 while the record is being written
 * @kind: enum embeng_event_kind
 * @queue: device queue number, or EMBENG_EVENT_NO_QUEUE
 * @time_ns: device time in nanoseconds, the clock of &embeng_cqe.timestamp
 * @context: number of the context, or 0xffffffff if the event belongs to none
 * @detail: number whose meaning depends on @kind
 * @value: number whose meaning depends on @kind
 */
struct embeng_event {
	__u32 number;
	__u16 kind;
	__u16 queue;
	__u64 time_ns;
	__u32 context;
	__u32 detail;
	__u64 value;
};

/**
 * struct embeng_event_log - log of what happened to the device, written by the device
 * @magic: EMBENG_EVENT_MAGIC once the log is there
 * @record_bytes: bytes from one record to the next
 * @capacity: number of records
 * @next: number of the next event
 * @reserved: 0
 * @events: records; event n is at n % @capacity until event n + @capacity takes its place
 *
 * Warm and function-level resets keep the log, and loss of power clears it. A reader copies a
 * record and then checks that its @number is still the one expected.
 */
struct embeng_event_log {
	__u32 magic;
	__u32 record_bytes;
	__u32 capacity;
	__u32 next;
	__u32 reserved[4];
	struct embeng_event events[EMBENG_EVENTS];
};

enum embeng_boot_state {
	EMBENG_BOOT_RESET = 0, /* the device does not answer yet */
	EMBENG_BOOT_ROM = 1,   /* the device waits for an image */
	EMBENG_BOOT_LOADING = 2,
	EMBENG_BOOT_RUNNING = 3,
	EMBENG_BOOT_FAILED = 4,
};

/**
 * EMBENG_BOOT_ERROR_TABLE - every reason to refuse an image
 *
 * X(name, value, sentence).
 */
#define EMBENG_BOOT_ERROR_TABLE(X)                                                              \
	X(NONE, 0, "no error")                                                                  \
	X(ADDRESS, 1, "the image is not in memory that the driver gave to the device")          \
	X(LENGTH, 2, "the length of the image is not the one in its header, or not allowed")    \
	X(MAGIC, 3, "this is not a firmware image")                                             \
	X(FORMAT, 4, "the image has a format version that the device does not know")            \
	X(INTERFACE, 5, "the image is for another version of the interface")                    \
	X(VERSION, 6, "the image is older than the lowest version that the device boots")       \
	X(SECTION, 7, "a section is outside the image, overlaps another, or leaves a gap")      \
	X(SECTION_TYPE, 8, "the device does not know a section that is mandatory")              \
	X(HASH, 9, "a section does not match its hash")                                         \
	X(PARAMETER, 10, "a boot parameter is missing or outside its limits")                   \
	X(SELF_TEST, 11, "a self-test failed")                                                  \
	X(RESERVED, 12, "a reserved field is not zero")                                         \
	X(MEMORY, 13, "the host has no memory left for the device")                             \
	X(DUPLICATE, 14, "there are two sections of a type that may be there once")             \
	X(CONTENT, 15, "the contents of a section do not fit its type")                         \
	X(SIGNATURE, 16, "the signature is malformed, or of a kind that is not known")          \
	X(SIGNATURE_MISSING, 17, "the image is not signed, and a signature is required")        \
	X(SIGNATURE_KEY, 18, "the image is signed by a key that is not enrolled")               \
	X(SIGNATURE_MISMATCH, 19, "the signature is not of this image")

enum embeng_boot_error {
#define EMBENG_BOOT_ERROR_ENUM(name, value, text) EMBENG_BOOT_ERROR_##name = value,
	EMBENG_BOOT_ERROR_TABLE(EMBENG_BOOT_ERROR_ENUM)
#undef EMBENG_BOOT_ERROR_ENUM
};

enum embeng_control {
	EMBENG_CONTROL_NONE = 0,
	EMBENG_CONTROL_RESET = 1, /* warm reset, back to ROM */
};

enum embeng_device_status {
	EMBENG_DEVICE_OK = 0,
	EMBENG_DEVICE_FAULT = 1, /* the admin ring is broken or tables lost data: needs a reset */
};

/* This is one GiB in pages of 4 KiB of which no two are contiguous. */
#define EMBENG_SEGMENTS_MAX 262144u

/**
 * struct embeng_region - an entry of a context's region table, 64 bytes, written by the driver
 * @generation: generation of the key, or 0 if the entry is free or dead; the driver publishes it
 *	last when it binds
 * @rights: EMBENG_REGION_DEVICE_READ, EMBENG_REGION_DEVICE_WRITE, or both
 * @length: bytes of the region
 * @segments: DMA address of an array [@segment_count] of &struct embeng_segment
 * @segment_count: number of segments, up to EMBENG_SEGMENTS_MAX; their lengths add up to
 *	@length or more
 * @reserved: 0
 */
struct embeng_region {
	__u32 generation;
	__u32 rights;
	__u64 length;
	__u64 segments;
	__u32 segment_count;
	__u32 reserved[9];
};

/**
 * struct embeng_segment - a piece of a region that is contiguous for the device
 * @address: DMA address
 * @length: bytes
 */
struct embeng_segment {
	__u64 address;
	__u64 length;
};

/**
 * embeng_ring_layout() - compute the layout of ring memory; driver and device both use this
 * @sq_entries: entries of the submission ring, a power of two
 * @cq_entries: entries of the completion ring, a power of two
 * @features: EMBENG_RING_*
 *
 * Return: a layout with the header first, then the submission ring, then the completion ring, all
 * aligned to 64 bytes.
 */
static inline struct embeng_queue_layout embeng_ring_layout(__u32 sq_entries, __u32 cq_entries,
							    __u32 features)
{
	struct embeng_queue_layout layout;

	layout.features = features;
	layout.sq_entries = sq_entries;
	layout.cq_entries = cq_entries;
	layout.reserved = 0;
	layout.header = 0;
	layout.sq = sizeof(struct embeng_ring_header);
	layout.cq = layout.sq + (__u64)sq_entries * sizeof(struct embeng_cmd);
	layout.size = layout.cq + (__u64)cq_entries * sizeof(struct embeng_cqe);
	return layout;
}

/*
 * The three commands that end something (CONTEXT_DESTROY, QUEUE_DESTROY, INVALIDATE) complete once
 * the device has let go of it, also when an earlier command has begun to end it. EMBENG_STATUS_KEY
 * says that the device has no such object, which is as good to whoever wants it ended.
 */
enum embeng_admin_opcode {
	EMBENG_ADMIN_NOP = 0,
	EMBENG_ADMIN_CONTEXT_CREATE = 1,  /* takes @context, @address and @count */
	EMBENG_ADMIN_CONTEXT_DESTROY = 2, /* takes @context; completes when nothing is in flight */
	EMBENG_ADMIN_QUEUE_CREATE = 3,	  /* takes @context, @queue and all fields below @count */
	EMBENG_ADMIN_QUEUE_DESTROY = 4,	  /* takes @queue; completes when it touches no memory */
	EMBENG_ADMIN_INVALIDATE = 5,	  /* takes @context and @index */
};

/* Flags of &embeng_admin_cmd.flags. */
#define EMBENG_ADMIN_QUEUE_AT (1u << 0)	  /* QUEUE_CREATE: start at @sq_index and @cq_index */
#define EMBENG_ADMIN_QUEUE_HUNG (1u << 1) /* QUEUE_DESTROY: the queue's oldest command hung */

/**
 * struct embeng_admin_cmd - an admin command, 64 bytes, written by the driver
 * @opcode: enum embeng_admin_opcode
 * @kind: QUEUE_CREATE: enum embeng_queue_kind, except ADMIN
 * @priority: QUEUE_CREATE: 0 (low) to 3 (high)
 * @flags: EMBENG_ADMIN_QUEUE_AT, EMBENG_ADMIN_QUEUE_HUNG, or 0
 * @replica: QUEUE_CREATE: replica that the queue serves, for INPUT, INFERENCE and GRADIENT queues
 * @cookie: any number; it is copied into the completion
 * @context: number of the context, chosen by the driver, below &embeng_caps.contexts
 * @queue: device queue number, 1 to &embeng_caps.queues - 1
 * @index: INVALIDATE: entry of the region table
 * @count: CONTEXT_CREATE: number of entries of the region table
 * @address: CONTEXT_CREATE: DMA address of the region table. QUEUE_CREATE: DMA address of the ring
 *	memory, whose size embeng_ring_layout() gives
 * @sq_entries: QUEUE_CREATE: entries of the submission ring
 * @cq_entries: QUEUE_CREATE: entries of the completion ring
 * @vector: QUEUE_CREATE: interrupt vector
 * @sq_index: with EMBENG_ADMIN_QUEUE_AT, free-running index of the first command to take. Without
 *	it, the queue starts at the two indices that its doorbell holds
 * @cq_index: with EMBENG_ADMIN_QUEUE_AT, free-running index of the first completion to write; the
 *	completions already in the ring are kept. With EMBENG_ADMIN_QUEUE_HUNG, milliseconds
 *	without progress
 * @reserved: 0
 *
 * QUEUE_DESTROY ends the commands that the device has taken and not completed with ABORTED. With
 * EMBENG_ADMIN_QUEUE_HUNG the oldest of them ends with HUNG instead. Commands that the device has
 * not taken stay in the ring untouched.
 */
struct embeng_admin_cmd {
	__u8 opcode;
	__u8 kind;
	__u8 priority;
	__u8 flags;
	__u32 replica;
	__u64 cookie;
	__u32 context;
	__u32 queue;
	__u32 index;
	__u32 count;
	__u64 address;
	__u32 sq_entries;
	__u32 cq_entries;
	__u32 vector;
	__u32 sq_index;
	__u32 cq_index;
	__u32 reserved;
};

#ifdef __cplusplus
}
#define EMBENG_REGS_ASSERT(cond) static_assert(cond, #cond)
#else
#define EMBENG_REGS_ASSERT(cond) _Static_assert(cond, #cond)
#endif

#define EMBENG_REGISTER_ASSERT(name, offset, bytes, writer, reset, words)     \
	EMBENG_REGS_ASSERT(((bytes) == 4 || (bytes) == 8) &&                  \
			   (offset) % (bytes) == 0 &&                         \
			   (offset) + (bytes) <= EMBENG_CORE_BUSY(0) &&       \
			   ((bytes) == 8 || (offset) < EMBENG_REG_COUNT_COMMANDS));
EMBENG_REGISTER_TABLE(EMBENG_REGISTER_ASSERT)
#undef EMBENG_REGISTER_ASSERT

EMBENG_REGS_ASSERT(sizeof(struct embeng_event) == 32);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_event, time_ns) == 8);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_event, value) == 24);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_event_log, events) == 32);
EMBENG_REGS_ASSERT(EMBENG_EVENT_LOG + sizeof(struct embeng_event_log) <= EMBENG_REGISTERS_SIZE);
EMBENG_REGS_ASSERT(EMBENG_CORE_BUSY(EMBENG_CORES_MAX) <= EMBENG_EVENT_LOG);
EMBENG_REGS_ASSERT(sizeof(struct embeng_region) == 64);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_region, length) == 8);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_region, segments) == 16);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_region, segment_count) == 24);
EMBENG_REGS_ASSERT(sizeof(struct embeng_segment) == 16);
EMBENG_REGS_ASSERT(sizeof(struct embeng_admin_cmd) == 64);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_admin_cmd, cookie) == 8);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_admin_cmd, context) == 16);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_admin_cmd, address) == 32);
EMBENG_REGS_ASSERT(__builtin_offsetof(struct embeng_admin_cmd, vector) == 48);

#endif
