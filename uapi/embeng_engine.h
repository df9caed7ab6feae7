/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: what a program and the embedding engine say to each other.
 *
 * The same bytes hold for hardware, for the emulator and for the soft device.
 * Unstable until the driver has lived on it.
 * One file, though long: either side implements all of it, and programs include it whole.
 *
 * DOC: Rules of this header
 *
 * - Little-endian, fixed-width integers, naturally aligned, explicit padding.
 *   Every field named reserved must be zero; the engine refuses anything else
 *   with EMBENG_STATUS_RESERVED, so that the field can get a meaning later.
 * - Floats cross as their bit patterns in __u32 (the kernel has no floats).
 * - Structures grow at the end. Arrays of structures carry their stride.
 * - Opcodes, statuses and record types are never renumbered or reused.
 *
 * DOC: Memory is named by key
 *
 * A program names memory as &struct embeng_mem: a key (index and generation in
 * its context's region table), an offset and a length, in bytes. Only the
 * kernel (or the soft device's host part) writes that table. The engine checks
 * generation, rights and bounds at every command; a key of another context, a
 * stale one or a guessed one fails that command with EMBENG_STATUS_KEY.
 *
 * DOC: Shared memory is hostile
 *
 * The engine copies a command, its descriptor and every peer-written index
 * once, and checks and uses the copy. Row offsets and ids are copied while
 * they are checked. Floats are read in place. Who writes into a buffer that
 * the engine reads gets wrong numbers in its own output, nothing else.
 *
 * DOC: Queues
 *
 * A queue is &struct embeng_ring_header (device-written), a submission ring of
 * &struct embeng_cmd (program-written), a completion ring of &struct embeng_cqe
 * (device-written), and &struct embeng_doorbell (program-written, a page of its
 * own). Data flows one way in each. Entry counts are powers of two; indices are
 * free-running __u32, an entry stands at index & (entries - 1).
 *
 * Kind fixes what a queue takes (else EMBENG_STATUS_QUEUE_KIND):
 *   INPUT      LOOKUP for training, one replica
 *   INFERENCE  LOOKUP for inference, one replica
 *   GRADIENT   UPDATE, one replica
 *   TRANSFER   MODEL_*, ROWS_*, STAGE, STATE_*, STATS, PARTITION, DRAIN, no replica
 * NOP and FENCE go on all of them. Commands of one queue complete in order; a
 * wait for a step blocks only its own queue. What is refused when it is checked
 * completes at once, ahead of older commands that wait. INFERENCE needs a
 * completion ring of at least 2 entries. A queue begins at the indices that its
 * doorbell holds when it is made; the header then shows them.
 *
 * Overflow: a submission tail more than the entry count ahead of the head is
 * EMBENG_STATUS_RING_INDEX, as is a completion head beyond the tail: the queue
 * stops with state ERROR and takes nothing until it is reset. A full completion
 * ring stops the queue with state CQ_FULL; nothing is dropped, and it goes on
 * when the completion head moves.
 *
 * DOC: What became of a queue
 *
 * The header tells progress from standstill, for whoever watches: @heartbeat moves
 * with the device's while the device attends to the queue, also while the queue has
 * to wait; @done follows @sq_head; @sent equals @cq_tail, unless a completion was lost
 * on its way. A queue that hangs is reset: the command at fault completes with HUNG,
 * &embeng_cqe.element its index, @value the nanoseconds without progress, @limit the
 * rung of the ladder (embeng_accel.h), all others that were not complete with ABORTED.
 * When the device had to be reset, a program finds the same in its rings, as far as
 * they have room and still hold the commands, before @dead becomes 1.
 *
 * DOC: Steps
 *
 * Training steps count from 1 at MODEL_LOAD, by one. LOOKUP(n) of training sees
 * the tables after update n - 1 of all replicas; with pipelining after n - 2,
 * exactly: update n - 1 is held until LOOKUP(n) of every replica has read the
 * tables, or until a DRAIN. A LOOKUP is checked and copied before any step wait
 * and posts ACCEPTED (its ids may be reused) or its error, then DONE. A refused
 * one consumes nothing: the same step may be given again. Up to
 * &embeng_caps.step_depth steps may be ahead of the last applied update; a
 * LOOKUP beyond that waits unfetched. An UPDATE for an unknown, repeated or not
 * completed step is EMBENG_STATUS_STEP_ORDER at once.
 *
 * &embeng_cmd.after is exact: the command sees all tables as they are after
 * that step's update. Waiting for a step that passed is STEP_PASSED.
 *
 * DOC: Blocked on the program
 *
 * When nothing of a context can go on before its program submits more, the
 * engine writes a report into every queue of it: what the queue waits for, from
 * which replica, and up to which tail it has looked. That is a state, not a
 * hang. A program whose tails all equal the reported ones, in one epoch, knows
 * that its wait cannot end by itself (&struct embeng_queue_report). Each new report
 * interrupts the armed queues that it calls BLOCKED, CQ_FULL or ERROR, whatever the
 * index they are armed for: a sleeper arms, looks at cq_tail and the reports, sleeps.
 */
#ifndef _EMBENG_ENGINE_H_
#define _EMBENG_ENGINE_H_

#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: a device with another major is not usable. */
#define EMBENG_INTERFACE_MAJOR 0
#define EMBENG_INTERFACE_MINOR 1

/**
 * EMBENG_STATUS_TABLE - every status, once
 *
 * X(name, value, class, errno name, exit code of the command, sentence).
 * Classes: NONE, PROGRAM (the caller's fault), MODEL (the model's or the
 * tables'), DEVICE (a fault of the device), LINK (the device is gone).
 * Documentation, the command and the tests are made from this table.
 */
#define EMBENG_STATUS_TABLE(X)                                                                     \
	X(OK, 0, NONE, 0, 0, "done")                                                               \
	X(OPCODE, 1, PROGRAM, ENOTSUP, 3, "the opcode is not known to this device")                \
	X(QUEUE_KIND, 2, PROGRAM, EINVAL, 2, "the command does not belong on this kind of queue")  \
	X(RESERVED, 3, PROGRAM, EINVAL, 2, "a reserved field or flag is not zero")                 \
	X(KEY, 4, PROGRAM, EACCES, 4, "the key names no region of this context")                   \
	X(RIGHTS, 5, PROGRAM, EACCES, 4, "the region does not allow this access")                  \
	X(BOUNDS, 6, PROGRAM, ERANGE, 2, "the access reaches beyond the region")                   \
	X(ALIGNMENT, 7, PROGRAM, EINVAL, 2, "the offset is not a multiple of the element width")   \
	X(LENGTH, 8, PROGRAM, EINVAL, 2, "the length does not fit the count and width")            \
	X(STRIDE, 9, PROGRAM, EINVAL, 2, "the stride is smaller than the structure")               \
	X(WIDTH, 10, PROGRAM, EINVAL, 2, "the element width is neither 4 nor 8")                   \
	X(COUNT, 11, PROGRAM, ERANGE, 2, "a count is beyond its limit")                            \
	X(FORM, 12, PROGRAM, EINVAL, 2, "the form of the input is not known or does not fit")      \
	X(FEATURE, 13, PROGRAM, EINVAL, 2, "the features do not stand in model order")             \
	X(OFFSETS, 14, PROGRAM, EINVAL, 2, "the row offsets do not run from 0 up to the id count") \
	X(ID, 15, PROGRAM, ERANGE, 2, "the id is outside its table")                               \
	X(WEIGHT, 16, PROGRAM, ERANGE, 2, "the weight is not finite")                              \
	X(STEP_ORDER, 17, PROGRAM, EPROTO, 2, "the step is unknown, repeated or not completed")    \
	X(STEP_PASSED, 18, PROGRAM, EPROTO, 2, "the tables have passed the step asked for")        \
	X(RATE, 19, PROGRAM, EINVAL, 2, "the learning rates do not fit the model or the replicas") \
	X(NO_MODEL, 20, PROGRAM, EINVAL, 2, "no model is loaded")                                  \
	X(MODEL_BUSY, 21, PROGRAM, EBUSY, 5, "a model is loaded already, or still in use")         \
	X(MODEL_HASH, 22, PROGRAM, EINVAL, 2, "the batch was made for another model")              \
	X(BLOB_FRAME, 23, MODEL, EBADMSG, 11, "the model blob's frame is broken")                  \
	X(BLOB_CRC, 24, MODEL, EBADMSG, 11, "the model blob's checksum does not match")            \
	X(BLOB_RECORD, 25, MODEL, ENOTSUP, 3, "a mandatory record is not known to this device")    \
	X(BLOB_VALUE, 26, MODEL, ERANGE, 2, "a value of the model is outside its limits")          \
	X(TABLE, 27, PROGRAM, ENOENT, 2, "there is no such table")                                 \
	X(SLOT, 28, PROGRAM, ENOENT, 2, "the table has no such slot")                              \
	X(ROW, 29, PROGRAM, ERANGE, 2, "the row is outside its table")                             \
	X(NO_SPACE, 30, MODEL, ENOSPC, 5, "the table memory does not hold the model")              \
	X(NO_MEMORY, 31, DEVICE, ENOMEM, 7, "the host has no memory left for the engine")          \
	X(RING_INDEX, 32, PROGRAM, EINVAL, 2, "a ring index ran outside the ring")                 \
	X(FENCE, 33, PROGRAM, EINVAL, 2, "the fence names a queue that it cannot wait for")        \
	X(TRAINING, 34, PROGRAM, EINVAL, 2, "a table of this batch has no optimizer")              \
	X(ABORTED, 35, DEVICE, ECANCELED, 7, "aborted by a reset or an unbinding")                 \
	X(LOST, 36, DEVICE, ESHUTDOWN, 7, "the context was lost in a reset")                       \
	X(INTERNAL, 37, DEVICE, EIO, 7, "the engine failed")                                       \
	X(GONE, 38, LINK, ENODEV, 6, "the device is gone")                                         \
	X(STAGE, 39, PROGRAM, EINVAL, 2, "the table or slot has no staged copy, or has one")       \
	X(HUNG, 40, DEVICE, EIO, 7, "the command made no progress and was given up")              \
	X(GRID, 41, PROGRAM, EINVAL, 2, "the grid of cores does not fit the columns or samples")   \
	X(LIMIT, 42, PROGRAM, ERANGE, 2, "a partition has more ids than its limit allows")         \
	X(BUFFER, 43, PROGRAM, ERANGE, 2, "the buffer does not hold the partitions")               \
	X(SAMPLE, 44, PROGRAM, ERANGE, 2, "the sample is outside those of its core")

enum embeng_status {
#define EMBENG_STATUS_ENUM(name, value, cls, err, exit_code, text) EMBENG_STATUS_##name = value,
	EMBENG_STATUS_TABLE(EMBENG_STATUS_ENUM)
#undef EMBENG_STATUS_ENUM
};

/**
 * EMBENG_FIELD_TABLE - which field of a command or descriptor was at fault
 *
 * X(name, value, words). Stands in &embeng_cqe.field.
 */
#define EMBENG_FIELD_TABLE(X)                        \
	X(NONE, 0, "")                               \
	X(OPCODE, 1, "opcode")                       \
	X(FLAGS, 2, "flags")                         \
	X(STEP, 3, "step")                           \
	X(AFTER, 4, "after")                         \
	X(DESC, 5, "descriptor")                     \
	X(ARG, 6, "argument")                        \
	X(FEATURE_COUNT, 7, "feature count")         \
	X(FEATURE_STRIDE, 8, "feature stride")       \
	X(FEATURE_INDEX, 9, "feature index")         \
	X(SAMPLES, 10, "sample count")               \
	X(IDS, 11, "ids")                            \
	X(ROW_OFFSETS, 12, "row offsets")            \
	X(WEIGHTS, 13, "weights")                    \
	X(ACTIVATIONS, 14, "activations")            \
	X(GRADIENTS, 15, "gradients")                \
	X(RATES, 16, "learning rates")               \
	X(TABLE, 17, "table")                        \
	X(SLOT, 18, "slot")                          \
	X(ROWS, 19, "rows")                          \
	X(DATA, 20, "data")                          \
	X(BLOB, 21, "model blob")                    \
	X(RESERVED, 22, "reserved")                  \
	X(MODEL_HASH, 23, "model hash")              \
	X(FILL, 24, "fill")                          \
	X(CORES, 25, "cores")                        \
	X(COLUMNS, 26, "columns")                    \
	X(MAX_IDS, 27, "ids of a partition")         \
	X(MAX_UNIQUE_IDS, 28, "unique ids of a partition") \
	X(BUFFER, 29, "buffer")                      \
	X(ROW_POINTERS, 30, "row pointers")          \
	X(TOKENS, 31, "token ids")                   \
	X(SAMPLE_IDS, 32, "sample ids")              \
	X(GAINS, 33, "gains")                        \
	X(RESULT, 34, "result")                      \
	X(STACKS, 35, "stacks")                      \
	X(MEMBERS, 36, "members of a stack")         \
	X(BOUNDS, 37, "bounds of a core")

enum embeng_field {
#define EMBENG_FIELD_ENUM(name, value, words) EMBENG_FIELD_##name = value,
	EMBENG_FIELD_TABLE(EMBENG_FIELD_ENUM)
#undef EMBENG_FIELD_ENUM
};

/**
 * struct embeng_mem - a piece of the context's memory
 * @index: place in the region table
 * @generation: must equal the entry's, never 0
 * @offset: bytes from the start of the region
 * @length: bytes; 0 with all other fields 0 means "not given"
 */
struct embeng_mem {
	__u32 index;
	__u32 generation;
	__u64 offset;
	__u64 length;
};

#define EMBENG_REGION_DEVICE_READ (1u << 0)
#define EMBENG_REGION_DEVICE_WRITE (1u << 1)

/* -- commands ------------------------------------------------------------ */

/**
 * EMBENG_OPCODE_TABLE - X(name, value, kinds of queue, words)
 *
 * The kinds are a mask of 1 << enum embeng_queue_kind.
 */
#define EMBENG_OPCODE_TABLE(X)                                  \
	X(NOP, 0, 0x1e, "NOP")                                  \
	X(FENCE, 1, 0x1e, "FENCE")                              \
	X(LOOKUP, 2, 0x06, "LOOKUP")                            \
	X(UPDATE, 3, 0x08, "UPDATE")                            \
	X(DRAIN, 4, 0x10, "DRAIN")                              \
	X(MODEL_LOAD, 5, 0x10, "MODEL_LOAD")                    \
	X(MODEL_UNLOAD, 6, 0x10, "MODEL_UNLOAD")                \
	X(ROWS_WRITE, 7, 0x10, "ROWS_WRITE")                    \
	X(ROWS_READ, 8, 0x10, "ROWS_READ")                      \
	X(ROWS_FILL, 9, 0x10, "ROWS_FILL")                      \
	X(STATS, 10, 0x10, "STATS")                             \
	X(STATE_READ, 11, 0x10, "STATE_READ")                   \
	X(STATE_WRITE, 12, 0x10, "STATE_WRITE")                 \
	X(PARTITION, 13, 0x10, "PARTITION")                     \
	X(STAGE, 14, 0x10, "STAGE")

enum embeng_opcode {
#define EMBENG_OPCODE_ENUM(name, value, kinds, words) EMBENG_OP_##name = value,
	EMBENG_OPCODE_TABLE(EMBENG_OPCODE_ENUM)
#undef EMBENG_OPCODE_ENUM
};

enum embeng_queue_kind {
	EMBENG_QUEUE_ADMIN = 0, /* the driver's own; embeng_regs.h */
	EMBENG_QUEUE_INPUT = 1,
	EMBENG_QUEUE_INFERENCE = 2,
	EMBENG_QUEUE_GRADIENT = 3,
	EMBENG_QUEUE_TRANSFER = 4,
};

/**
 * struct embeng_cmd - one submission, 64 bytes
 * @opcode: enum embeng_opcode
 * @flags: EMBENG_CMD_STAGED on ROWS_WRITE, else 0
 * @reserved0: 0
 * @cookie: comes back in every completion of this command
 * @step: LOOKUP for training, UPDATE: the step, from 1. DRAIN: apply complete
 *	updates up to this one. Else 0
 * @after: LOOKUP for inference, ROWS_*, STAGE, STATS, STATE_*, MODEL_UNLOAD: run on the
 *	tables as they are after this step's update (0: before any). Else 0
 * @desc: LOOKUP &struct embeng_lookup; UPDATE &struct embeng_update; MODEL_LOAD
 *	the blob; ROWS_* &struct embeng_rows; PARTITION &struct embeng_partition; STATS
 *	where &struct embeng_stats goes; STATE_* one __u64, the optimizer's step count,
 *	written up to EMBENG_STEP_COUNT_MAX; FENCE an array of &struct embeng_fence_point.
 *	Read access, but for STATS and STATE_READ, which need write access
 * @arg: NOP: status to complete with in bits 0..15, counted as a program's fault; delay
 *	in microseconds in bits 32..63. STATS: table index in bits 0..31, bit 32 clears after the
 *	read. STAGE: table index in bits 0..31, slot in bits 32..47 (as
 *	&embeng_rows.slot), enum embeng_stage in bits 48..63; both indices 0 but
 *	for BEGIN. Else 0
 */
struct embeng_cmd {
	__u16 opcode;
	__u16 flags;
	__u32 reserved0;
	__u64 cookie;
	__u64 step;
	__u64 after;
	struct embeng_mem desc;
	__u64 arg;
};

/* No run of updates gets from here to where a count of 64 bits begins again. */
#define EMBENG_STEP_COUNT_MAX (1ull << 62)

#define EMBENG_CMD_STAGED (1u << 0) /* ROWS_WRITE goes to the staged copy */

#define EMBENG_STATS_CLEAR (1ull << 32)
#define EMBENG_STAGE_SLOT_SHIFT 32
#define EMBENG_STAGE_ACTION_SHIFT 48
#define EMBENG_NOP_DELAY_SHIFT 32

/* Completion flags: exactly one of the two is set. */
#define EMBENG_CQE_ACCEPTED (1u << 0) /* LOOKUP only: ids may be reused, DONE follows */
#define EMBENG_CQE_DONE (1u << 1)     /* the command's last completion */

/* &embeng_cqe.feature when the fault is not one feature's (or table's). */
#define EMBENG_NO_INDEX 0xffffffffu

/**
 * struct embeng_cqe - one completion, 64 bytes
 * @cookie: the command's
 * @status: enum embeng_status
 * @flags: EMBENG_CQE_ACCEPTED or EMBENG_CQE_DONE
 * @field: enum embeng_field at fault
 * @feature: feature index (LOOKUP, UPDATE) or table index (others) at fault, or
 *	EMBENG_NO_INDEX. Of a LOOKUP, with @field from EMBENG_FIELD_CORES on, a stack's index
 * @index: the command's free-running index: which one it was, whatever its cookie
 * @element: index of the element at fault in its array; byte offset in a blob
 * @value: the offending value (an id as a sign-extended 64-bit number); NO_SPACE:
 *	bytes needed. On success: UPDATE distinct rows, ROWS_* rows, STATS bytes, PARTITION ids
 * @limit: the bound that @value broke; NO_SPACE: bytes there are
 * @timestamp: device time in ns, monotonic
 * @step: the command's step or after
 */
struct embeng_cqe {
	__u64 cookie;
	__u16 status;
	__u16 flags;
	__u32 field;
	__u32 feature;
	__u32 index;
	__u64 element;
	__u64 value;
	__u64 limit;
	__u64 timestamp;
	__u64 step;
};

/* -- rings --------------------------------------------------------------- */

enum embeng_queue_state {
	EMBENG_QUEUE_RUNNING = 0,
	EMBENG_QUEUE_BLOCKED = 1, /* on the program, see the report */
	EMBENG_QUEUE_CQ_FULL = 2, /* waits for cq_head to move */
	EMBENG_QUEUE_ERROR = 3,   /* a ring index was wrong; reset the queue */
};

enum embeng_wait {
	EMBENG_WAIT_NOTHING = 0,
	EMBENG_WAIT_LOOKUP = 1,	/* the LOOKUP of @step by @replica */
	EMBENG_WAIT_UPDATE = 2,	/* the UPDATE of @step by @replica */
	EMBENG_WAIT_QUEUE = 3,	/* a FENCE: queue number @replica */
	EMBENG_WAIT_SPACE = 4,	/* cq_head of this queue */
};

/**
 * struct embeng_queue_report - why a queue stands still, device-written
 * @epoch: number of the report, even, grows; odd while being written
 * @state: enum embeng_queue_state
 * @wait: enum embeng_wait
 * @replica: whose part is missing
 * @step: of which step
 * @tail: submission tail that the device had seen when it wrote this
 * @cq_head: completion head that it had seen
 *
 * All queues of a context are reported together, with the same epoch, when none
 * of them can go on. Read it with embeng_report_read_begin()/_retry().
 */
struct embeng_queue_report {
	__u32 epoch;
	__u32 state;
	__u32 wait;
	__u32 replica;
	__u64 step;
	__u32 tail;
	__u32 cq_head;
	__u32 reserved[8];
};

/**
 * struct embeng_ring_header - the device's side of a queue, 256 bytes
 * @sq_head: commands below it have been copied, their slots are free
 * @heartbeat: EMBENG_REG_HEARTBEAT when the device last attended to this queue, at
 *	least as often as that register grows. Wherever it stands still while the
 *	register moves, the queue hangs
 * @cq_tail: completions below it are there
 * @sent: completions that the device gave out, counted as @cq_tail is and published
 *	after it: more than @cq_tail means that one was lost
 * @done: commands below it are complete, with all that they had to post
 * @busy_ns: that the device worked for the queue; with EMBENG_RING_HEALTH
 * @dead: 0; 1 once the device is gone or the context lost: nothing will move
 *	any more, ENODEV. Stays readable after a hot-unplug
 * @report: why the queue stands still
 *
 * Only the device writes here, and after a reset the driver in its stead. Each line of
 * 64 bytes holds what moves together. @heartbeat, @sent and @done are there with
 * EMBENG_RING_HEALTH.
 */
struct embeng_ring_header {
	__u32 sq_head;
	__u32 heartbeat;
	__u32 reserved0[14];
	__u32 cq_tail;
	__u32 sent;
	__u32 done;
	__u32 reserved1;
	__u64 busy_ns;
	__u32 reserved3[10];
	__u32 dead;
	__u32 reserved2[15];
	struct embeng_queue_report report;
};

/**
 * struct embeng_doorbell - the program's side of a queue, 192 bytes
 * @sq_tail: commands below it are there; writing it rings
 * @cq_head: completions below it have been read
 * @arm: interrupt when cq_tail moves past this free-running index; read with
 *	@armed
 * @armed: a number that the program changes each time it arms
 *
 * One stride of BAR 2 (embeng_regs.h), so that it can be mapped into one
 * process. Only the program writes here. Plain memory: a reader has no effect.
 */
struct embeng_doorbell {
	__u32 sq_tail;
	__u32 reserved0[15];
	__u32 cq_head;
	__u32 reserved1[15];
	__u32 arm;
	__u32 armed;
	__u32 reserved2[14];
};

/**
 * struct embeng_queue_layout - where the parts of a queue's ring memory stand
 * @features: EMBENG_RING_*
 * @sq_entries: power of two
 * @cq_entries: power of two, at least twice @sq_entries on an INPUT queue
 * @header: byte offset of &struct embeng_ring_header
 * @sq: byte offset of the submission ring
 * @cq: byte offset of the completion ring
 * @size: bytes in all
 *
 * Returned when a queue is made. A program goes by the offsets, never by a
 * layout of its own.
 */
struct embeng_queue_layout {
	__u32 features;
	__u32 sq_entries;
	__u32 cq_entries;
	__u32 reserved;
	__u64 header;
	__u64 sq;
	__u64 cq;
	__u64 size;
};

#define EMBENG_RING_MAPPED (1u << 0)  /* the program writes the rings itself */
#define EMBENG_RING_REPORTS (1u << 1) /* &struct embeng_queue_report is written */
#define EMBENG_RING_HEALTH (1u << 2)  /* heartbeat, sent and done are written */

#define EMBENG_SQ_ENTRIES_MAX 4096u

/* -- LOOKUP -------------------------------------------------------------- */

enum embeng_form {
	EMBENG_FORM_CSR = 0,   /* row offsets, ids, optional weights */
	EMBENG_FORM_DENSE = 1, /* one id per sample, no offsets, no weights */
	EMBENG_FORM_POOLED = 2, /* CSR, pooled even where the feature is a sequence */
	EMBENG_FORM_COO = 3,	/* PARTITION alone: the sample of each id, never falling */
	EMBENG_FORM_PARTITIONED = 4, /* LOOKUP alone: in a &struct embeng_lookup_stack */
};

/**
 * struct embeng_lookup - descriptor of a LOOKUP
 * @feature_count: must be the model's
 * @feature_stride: bytes from one &struct embeng_lookup_feature to the next,
 *	which follow this header
 * @model_hash: &embeng_blob_header.hash of the loaded model
 * @stack_count: stacks of partitioned CSR, at most @member_count; 0 without
 *	EMBENG_CAP_PARTITIONED
 * @stack_stride: bytes from one &struct embeng_lookup_stack to the next, which follow the
 *	features; 0 without stacks
 * @member_count: of all stacks, up to EMBENG_LOOKUP_MEMBERS_MAX; 0 without stacks
 * @member_stride: bytes from one &struct embeng_lookup_member to the next, which follow the
 *	stacks; 0 without stacks
 *
 * The descriptor ends with the last of them. Strides are multiples of 8.
 */
struct embeng_lookup {
	__u32 feature_count;
	__u32 feature_stride;
	__u64 model_hash;
	__u32 stack_count;
	__u32 stack_stride;
	__u32 member_count;
	__u32 member_stride;
};

#define EMBENG_LOOKUP_MEMBERS_MAX 65536u

/**
 * struct embeng_lookup_feature - one feature's input and where its output goes
 * @feature: index; features stand in model order, all of them
 * @form: enum embeng_form
 * @id_width: 4 or 8 bytes, signed; 0 for PARTITIONED
 * @offset_width: 4 or 8 bytes, signed; 0 for DENSE and PARTITIONED
 * @reserved: 0
 * @sample_count: samples, S
 * @id_count: ids, N; equal to S for DENSE, 0 for PARTITIONED
 * @offsets: [S + 1], from 0 to N, never falling
 * @ids: [N]
 * @weights: [N] f32, or not given: 1
 * @activations: [S][dim] f32; [S][max_sequence_length][dim] for a sequence
 *	feature in CSR form; needs write access. Every element is written
 *
 * Offsets are multiples of the element width, lengths exactly count x width. PARTITIONED has no
 * arrays but @activations.
 */
struct embeng_lookup_feature {
	__u32 feature;
	__u8 form;
	__u8 id_width;
	__u8 offset_width;
	__u8 reserved;
	__u64 sample_count;
	__u64 id_count;
	struct embeng_mem offsets;
	struct embeng_mem ids;
	struct embeng_mem weights;
	struct embeng_mem activations;
	__u64 reserved1;
};

/*
 * Row pointers of a core count from its first item, as JAX has it without MINIBATCHING, else
 * from the first of all.
 */
#define EMBENG_STACK_OWN_PARTS (1u << 0)

/**
 * struct embeng_lookup_stack - the samples of some features as partitioned CSR
 * @member_count: its members, from 1; those of the stacks before it stand before them
 * @cores: of the grid, all devices together
 * @device_cores: of the device whose samples these are; divides @cores
 * @minibatches: of each core, 1 to EMBENG_PARTITION_BUCKETS
 * @row_stride: row pointers of a minibatch, at least @cores
 * @flags: EMBENG_STACK_*
 * @item_count: of each of the three arrays of items
 * @row_pointers: [@device_cores][@minibatches][@row_stride] s32: where each partition ends. They
 *	never fall, and end in the core's part; those from @cores on are not looked at
 * @tokens: s32
 * @samples: s32
 * @gains: f32
 * @bounds: [2][@device_cores] u64: the first item of each core, a multiple of 8; and one past
 *	its last. Cores stand in order, none begins before the one before it ends
 * @reserved: 0
 *
 * What a PARTITION wrote, and what TensorFlow and JAX lay out alike: &struct embeng_partition
 * says what a grid, a partition, a token and a row of a core are. @bounds are the last of what
 * follows &struct embeng_partition_result. A partition begins at the multiple of 8 from the end
 * of the one before it on; nothing else is read, padding and gaps may hold anything.
 *
 * A sample of a member is the sum of gain * row over its items, in their order, whatever the
 * combiner of the table, which made the gains. Sequences are pooled. Gradients reach each row as
 * the sum of gain * gradient, in one update: the step keeps what it needs. Tokens must be rows of
 * the member's table, whatever its policy. An item counts as an id in limits and statistics.
 */
struct embeng_lookup_stack {
	__u32 member_count;
	__u32 cores;
	__u32 device_cores;
	__u32 minibatches;
	__u32 row_stride;
	__u32 flags;
	__u64 item_count;
	struct embeng_mem row_pointers;
	struct embeng_mem tokens;
	struct embeng_mem samples;
	struct embeng_mem gains;
	struct embeng_mem bounds;
	__u64 reserved[2];
};

/**
 * struct embeng_lookup_member - whose samples and rows are where in a stack
 * @feature: index, of form PARTITIONED, each once in all stacks; or EMBENG_NO_INDEX: nobody's,
 *	items of these samples are passed over
 * @rotation: of its table, below the stack's cores
 * @column_offset: of its table in the stack, a multiple of the cores, at most 2^31 - 1 times them
 * @sample_count: that of the feature, a multiple of the device's cores
 * @reserved: 0
 *
 * As &struct embeng_partition_feature has it, in the order in which samples stand on a core.
 */
struct embeng_lookup_member {
	__u32 feature;
	__u32 rotation;
	__u64 column_offset;
	__u64 sample_count;
	__u64 reserved;
};

/* -- UPDATE -------------------------------------------------------------- */

/**
 * struct embeng_update - descriptor of an UPDATE
 * @feature_count: must be the model's
 * @feature_stride: as in &struct embeng_lookup
 * @rate_count: must be the model's number of dynamic learning rates
 * @reserved: 0
 * @model_hash: as in &struct embeng_lookup
 * @rates: [rate_count] f32; not given when there are none. Replicas of one step
 *	must give the same bits
 * @multiplier: f32 bits; a row's summed gradient is multiplied by it before it is
 *	clipped; 0 bits mean 1.0
 * @reserved1: 0
 */
struct embeng_update {
	__u32 feature_count;
	__u32 feature_stride;
	__u32 rate_count;
	__u32 reserved;
	__u64 model_hash;
	struct embeng_mem rates;
	__u32 multiplier;
	__u32 reserved1[3];
};

/**
 * struct embeng_update_feature - one feature's gradients
 * @feature: index, in model order
 * @reserved: 0
 * @gradients: as the activations of the step's LOOKUP; not given: zeros, and the
 *	rows are touched all the same
 */
struct embeng_update_feature {
	__u32 feature;
	__u32 reserved;
	struct embeng_mem gradients;
};

/* -- ROWS_* -------------------------------------------------------------- */

enum embeng_fill {
	EMBENG_FILL_CONSTANT = 0,	  /* a */
	EMBENG_FILL_UNIFORM = 1,	  /* [a, b) */
	EMBENG_FILL_TRUNCATED_NORMAL = 2, /* mean a, deviation b, within two */
};

/* &embeng_rows.slot: the parameters; slot k of the optimizer is k + 1. */
#define EMBENG_SLOT_PARAMETERS 0u

/**
 * struct embeng_rows - descriptor of ROWS_WRITE, ROWS_READ and ROWS_FILL
 * @table: table index
 * @slot: EMBENG_SLOT_PARAMETERS or 1 + slot
 * @first: first row of the range; 0 with an id list
 * @count: rows; 0 is allowed and does nothing
 * @ids: [count] __u64 row numbers instead of the range, or not given
 * @data: [count][dim] f32; read by ROWS_WRITE, written by ROWS_READ; not given
 *	for ROWS_FILL
 * @fill: enum embeng_fill, ROWS_FILL only
 * @a: f32 bits
 * @b: f32 bits
 * @reserved: 0
 * @seed: ROWS_FILL: key of the counter-based generator (Philox4x32-10, counter
 *	from row, column and slot): row r is the same for any core count
 *
 * A ROWS_WRITE with a row twice ends with the later one. Nothing is written
 * when any row is outside the table.
 */
struct embeng_rows {
	__u32 table;
	__u32 slot;
	__u64 first;
	__u64 count;
	struct embeng_mem ids;
	struct embeng_mem data;
	__u32 fill;
	__u32 a;
	__u32 b;
	__u32 reserved;
	__u64 seed;
};

/* -- STAGE --------------------------------------------------------------- */

/*
 * Tables and slots can be replaced as one: each gets a staged copy, which ROWS_WRITE
 * with EMBENG_CMD_STAGED fills and nothing else sees, then all of them are swapped in
 * at once. A failure before that leaves the tables as they were.
 */
enum embeng_stage {
	/* a staged copy of one table or slot, all zero; NO_SPACE when the table memory does not
	 * hold it beside the rest
	 */
	EMBENG_STAGE_BEGIN = 0,
	EMBENG_STAGE_COMMIT = 1, /* all staged copies become the tables' own */
	EMBENG_STAGE_DROP = 2,	 /* all staged copies are given back */
};

/* -- STATS --------------------------------------------------------------- */

#define EMBENG_STATS_HOT 32
#define EMBENG_STATS_CORES 64

/**
 * struct embeng_hot_row - one entry of the hottest rows
 * @row: row
 * @count: occurrences seen; at most the true count, and short of it by no more
 *	than &embeng_stats.hot_error
 */
struct embeng_hot_row {
	__u64 row;
	__u64 count;
};

/**
 * struct embeng_stats - counts of one table since the last clearing read
 * @table: index
 * @core_count: entries of @core_ids that are used
 * @ids: ids that training batches asked for, dropped ones too, those beyond a
 *	sequence's length not
 * @unique_ids: distinct rows per step, summed over steps
 * @dropped_ids: dropped by policy
 * @clamped_ids: clamped by policy
 * @zeroed_ids: read as zeros by policy
 * @steps: steps counted
 * @updated_rows: rows that updates wrote because a batch touched them
 * @untouched_rows: rows that a non-lazy optimizer ran over with a gradient of 0
 * @hot_count: entries of @hot that are used
 * @hot_error: bound on how much a count of @hot may be short
 * @hot: hottest rows, most frequent first; ties by row
 * @core_ids: ids by the core that holds the row
 */
struct embeng_stats {
	__u32 table;
	__u32 core_count;
	__u64 ids;
	__u64 unique_ids;
	__u64 dropped_ids;
	__u64 clamped_ids;
	__u64 zeroed_ids;
	__u64 steps;
	__u64 updated_rows;
	__u64 untouched_rows;
	__u64 hot_count;
	__u64 hot_error;
	struct embeng_hot_row hot[EMBENG_STATS_HOT];
	__u64 core_ids[EMBENG_STATS_CORES];
};

/* -- PARTITION ----------------------------------------------------------- */

/*
 * The samples of one device as partitioned CSR: for each core of the device, for each
 * minibatch, for each core of the grid (a partition) the ids whose rows that core holds.
 * Needs no model. All columns of the grid are one stack of tables: id i of a table is column
 * (i + rotation) % cores + i / cores * cores + column_offset, in partition column % cores as
 * token column / cores. Sample s of a feature with n samples belongs to core s / (n /
 * device_cores) of the device and is there row s % (n / device_cores), behind the rows of
 * the features before it.
 *
 * Ids of a partition stand by bucket (in minibatches), token, row. Equal ids of a row become
 * one, their gains added in the order given; a gain is the weight times the combiner's scale
 * of the sample, from all its weights, 0 where there is none.
 *
 * Each partition begins at a multiple of 8 items; its row pointer is where it ends. The rest
 * up to the next multiple is padded, the row pointers of a minibatch are filled with where
 * the next one begins. What lies behind a core's last item is not written.
 */
enum embeng_flavour {
	/* Pads 2^31 - 1 and 2^31; one core behind the other. */
	EMBENG_FLAVOUR_TF = 0,
	/*
	 * Pads 2^31 - 1 and NaN; a power of two cores. Without MINIBATCHING each core has its
	 * own part of the buffer, and row pointers count from there.
	 */
	EMBENG_FLAVOUR_JAX = 1,
};

enum embeng_bucket {
	EMBENG_BUCKET_DIV = 0,	/* column / (columns / 64, rounded up), at most 63 */
	EMBENG_BUCKET_MOD = 1,	/* column % 64 */
	EMBENG_BUCKET_HASH = 2, /* low bits of HighwayHash64 of the column's four bytes */
};

#define EMBENG_PARTITION_BUCKETS 64

#define EMBENG_PARTITION_MINIBATCHING (1u << 0) /* beyond the limits: minibatches */
#define EMBENG_PARTITION_DROPPING (1u << 1)	/* what still does not fit is left out, counted */

#define EMBENG_PARTITION_CORES_MAX 65536u
#define EMBENG_PARTITION_DEVICE_CORES_MAX 64u
#define EMBENG_PARTITION_FEATURES_MAX 4096u

/**
 * struct embeng_partition - descriptor of a PARTITION
 * @flavour: enum embeng_flavour
 * @bucket: enum embeng_bucket
 * @flags: EMBENG_PARTITION_*
 * @feature_count: features of the stack, in order
 * @feature_stride: bytes from one &struct embeng_partition_feature to the next, which
 *	follow this header
 * @cores: of the grid, all devices together
 * @device_cores: of this device; divides @cores
 * @reserved: 0
 * @columns: rows of the stack, a multiple of @cores, at most 2^31
 * @max_ids: most ids of a partition, 0: as many as there are
 * @max_unique_ids: most columns of a partition, so
 * @buffer: items that the device's buffer has, 0: enough. TF: a multiple of 8. JAX: rounded up
 *	to 8 for each core; at most, and with 0 just, what @max_ids (rounded up to 8) for each
 *	core, partition and, with MINIBATCHING, bucket makes
 * @row_pointers: out [device_cores][minibatches][@cores rounded up to 8] s32, from where the
 *	device's buffer begins or, see JAX, the core's part of it
 * @tokens: out s32
 * @samples: out s32, as many
 * @gains: out f32, as many
 * @result: out &struct embeng_partition_result and what follows it
 * @splits: the flavour's mask of where buckets are parted at any rate, for the sake of other
 *	devices and stacks; below 2^63. 0 without MINIBATCHING
 *
 * The four arrays may be longer than what is written. A failure writes none.
 */
struct embeng_partition {
	__u8 flavour;
	__u8 bucket;
	__u16 flags;
	__u32 feature_count;
	__u32 feature_stride;
	__u32 cores;
	__u32 device_cores;
	__u32 reserved;
	__u64 columns;
	__u64 max_ids;
	__u64 max_unique_ids;
	__u64 buffer;
	struct embeng_mem row_pointers;
	struct embeng_mem tokens;
	struct embeng_mem samples;
	struct embeng_mem gains;
	struct embeng_mem result;
	__u64 splits;
};

/**
 * struct embeng_partition_feature - one feature's samples
 * @form: CSR, DENSE or COO of enum embeng_form
 * @id_width: 4 or 8 bytes, signed
 * @offset_width: 4 or 8 bytes, signed; 0 for DENSE
 * @combiner: enum embeng_combiner
 * @rotation: below the grid's cores
 * @rows: of the table; ids are below
 * @column_offset: of the table in the stack, a multiple of the grid's cores
 * @sample_count: of this device, a multiple of its cores
 * @id_count: as in &struct embeng_lookup_feature
 * @offsets: CSR [sample_count + 1], from 0 to id_count, never falling; COO [id_count],
 *	samples, never falling
 * @ids: [id_count]
 * @weights: [id_count] f32, or not given: 1; none for DENSE
 */
struct embeng_partition_feature {
	__u8 form;
	__u8 id_width;
	__u8 offset_width;
	__u8 combiner;
	__u32 rotation;
	__u64 rows;
	__u64 column_offset;
	__u64 sample_count;
	__u64 id_count;
	struct embeng_mem offsets;
	struct embeng_mem ids;
	struct embeng_mem weights;
};

/**
 * struct embeng_partition_result - what a PARTITION found
 * @dropped_ids: left out. JAX counts each id that the limits leave out, TF equal ids of a
 *	sample once; so do both for what the buffer leaves out
 * @splits: mask of where buckets are parted into minibatches. TF: bit 0 in the middle, bits 1
 *	and 2 in the middles of the halves, and so on. JAX: bits 0 to 31 between the pairs of
 *	buckets, 32 to 47 between those, up to bit 62 in the middle
 * @row_pointers: entries written
 * @items: one past the last item written
 * @buffer: items that the buffer has, as given or as the limits ask for
 * @minibatches: of each core
 * @row_stride: row pointers of a minibatch
 *
 * Behind it stand, before dropping, __u32 [cores] most ids of each partition, the maximum
 * over the device's cores, and so the most columns; then __u64 [device_cores] items that a
 * core needs, each partition rounded up to 8; the first item of each core; and one past its
 * last.
 */
struct embeng_partition_result {
	__u64 dropped_ids;
	__u64 splits;
	__u64 row_pointers;
	__u64 items;
	__u64 buffer;
	__u32 minibatches;
	__u32 row_stride;
};

/* -- FENCE --------------------------------------------------------------- */

/**
 * struct embeng_fence_point - one queue of a FENCE
 * @queue: device queue number, of the same context
 * @index: the fence completes when this free-running command index of that
 *	queue, and all before it, have completed. Must be below that queue's
 *	tail as the engine has seen it, or it waits for it
 */
struct embeng_fence_point {
	__u32 queue;
	__u32 index;
};

#define EMBENG_FENCE_POINTS_MAX 64

/* -- model blob ---------------------------------------------------------- */

#define EMBENG_BLOB_MAGIC 0x4d424d45u /* "EMBM" */
#define EMBENG_BLOB_VERSION 1u

/**
 * struct embeng_blob_header - start of a model blob
 * @magic: EMBENG_BLOB_MAGIC
 * @version: EMBENG_BLOB_VERSION
 * @length: bytes of the whole blob, this header too; a multiple of 8
 * @record_count: records that follow
 * @crc32c: CRC-32C of the whole blob with this field 0
 * @hash: identifies the model: FNV-1a 64 of all mandatory records
 *
 * The records fill the blob to its end. The whole blob is checked before any of
 * it acts.
 */
struct embeng_blob_header {
	__u32 magic;
	__u32 version;
	__u64 length;
	__u32 record_count;
	__u32 crc32c;
	__u64 hash;
};

enum embeng_record_type {
	EMBENG_RECORD_ENGINE = 1,  /* once, first */
	EMBENG_RECORD_TABLE = 2,   /* in table order */
	EMBENG_RECORD_FEATURE = 3, /* in feature order, after the tables */
	EMBENG_RECORD_RATE = 4,	   /* a dynamic learning rate, in tag order; reserved payload */
	EMBENG_RECORD_PROGRAM = 5, /* an optimizer program; refused until they exist */
	EMBENG_RECORD_NAME = 6,	   /* optional: &struct embeng_record_name */
	EMBENG_RECORD_QUANTIZATION = 7, /* of a table, after all tables, in table order */
};

#define EMBENG_RECORD_MANDATORY (1u << 0)

/**
 * struct embeng_record - head of every record
 * @type: enum embeng_record_type
 * @flags: EMBENG_RECORD_MANDATORY: a device that does not know the type refuses
 *	the blob; without it, it skips the record
 * @length: bytes of the whole record, this head too; a multiple of 8
 */
struct embeng_record {
	__u16 type;
	__u16 flags;
	__u32 length;
};

#define EMBENG_ENGINE_PIPELINING (1u << 0)

/**
 * struct embeng_record_engine - options of the whole model
 * @head: type ENGINE
 * @replicas: 1 .. caps.replicas
 * @flags: EMBENG_ENGINE_*
 * @table_count: TABLE records
 * @feature_count: FEATURE records
 * @rate_count: RATE records
 * @step_depth: steps ahead that this model wants, 0 for the device's
 */
struct embeng_record_engine {
	struct embeng_record head;
	__u32 replicas;
	__u32 flags;
	__u32 table_count;
	__u32 feature_count;
	__u32 rate_count;
	__u32 step_depth;
};

enum embeng_combiner {
	EMBENG_COMBINER_SUM = 0,
	EMBENG_COMBINER_MEAN = 1,
	EMBENG_COMBINER_SQRTN = 2,
};

enum embeng_out_of_range {
	EMBENG_OUT_OF_RANGE_ERROR = 0,
	EMBENG_OUT_OF_RANGE_CLAMP = 1,
	EMBENG_OUT_OF_RANGE_DROP = 2,
	EMBENG_OUT_OF_RANGE_ZERO = 3,
};

/**
 * EMBENG_OPTIMIZER_TABLE - X(name, value), without NONE
 *
 * Hyperparameters in the order of &embeng_record_table.hyperparameter, all finite,
 * switches as 0.0 or 1.0, and slots in the order of @slot_start:
 *   SGD               -; -
 *   ADAGRAD           -; accumulators
 *   ADAGRAD_MOMENTUM  momentum, use_nesterov, exponent (> 0), beta2 (0..1),
 *                     epsilon (> 0); accumulators, momenta
 *   FTRL              learning_rate_power (<= 0), l1_regularization_strength (>= 0),
 *                     l2_regularization_strength (>= 0), beta (>= 0),
 *                     multiply_linear_by_learning_rate; accumulators, linears
 *   ADAM              beta_1 (0 up to below 1), beta_2 (so), epsilon (> 0),
 *                     sum_inside_sqrt (without meaning under bias_correction),
 *                     bias_correction; momenta, velocities
 *   MOMENTUM          momentum, use_nesterov; momenta
 *   LION              beta1 (0 up to below 1), beta2 (so); momenta
 *   RMS_PROP          rho (0..1), momentum, epsilon (> 0); ms, mom
 *   CENTERED_RMS_PROP as RMS_PROP; ms, mom, mg
 *   ADADELTA          rho (0..1), epsilon (> 0); accumulators, updates
 *   PROXIMAL_ADAGRAD  l1 (>= 0), l2 (>= 0); accumulators
 *   ASSIGN            -; -
 *   LAPROP            b1 (0 up to below 1), b2 (so), eps (> 0); mu, nu
 *   PROXIMAL_YOGI     l1 (>= 0), l2 (>= 0), beta1 (0 up to below 1), beta2 (so),
 *                     epsilon (> 0); v, m
 *   BOUNDED_ADAGRAD   update_accumulator_first, max_var_update (>= 0),
 *                     max_accumulator (>= 0); accumulators
 *   ONLINE_YOGI       l1 (>= 0), l2 (>= 0), beta2 (0 up to below 1); vs, linears
 *   FREQUENCY_ESTIMATOR  tau (0..1), max_delta (> 0), outlier_threshold (>= 0),
 *                     weight_exponent (no part of the update); last_hit_step. Its table
 *                     has one column, and its rate is the step
 *   FREQUENCY_AWARE_ADAGRAD  l1_regularization_strength (>= 0),
 *                     l2_regularization_strength (>= 0), max_lr_multiplier (> 0),
 *                     probability_exponent, accumulator_decay (0..1),
 *                     initial_accumulator_value (> 0); accumulators, counters
 *   MDL_ADAGRAD_LIGHT l2 (>= 0), lr_power (<= 0), min_servable_mdl_benefit,
 *                     mdl_mix_in_margin (>= 0), mdl_benefit_rampup_coeff (>= 0),
 *                     mdl_min_weight (0..1), benefit_revisit_scale (0..1),
 *                     max_event_benefit (>= 0), max_total_benefit (>= 0),
 *                     mdl_hard_limit (>= 0), hard_limit_min_benefit, mdl_regularize;
 *                     accumulators, weights, benefits
 * The others of the 16 are 0. The step of bias_correction, LAPROP and
 * FREQUENCY_AWARE_ADAGRAD is the optimizer's step count (STATE_READ) + 1; the last may
 * have another.
 */
#define EMBENG_OPTIMIZER_TABLE(X)              \
	X(SGD, 1)                              \
	X(ADAGRAD, 2)                          \
	X(ADAGRAD_MOMENTUM, 3)                 \
	X(FTRL, 4)                             \
	X(ADAM, 5)                             \
	X(MOMENTUM, 6)                         \
	X(LION, 7)                             \
	X(RMS_PROP, 8)                         \
	X(CENTERED_RMS_PROP, 9)                \
	X(ADADELTA, 10)                        \
	X(PROXIMAL_ADAGRAD, 11)                \
	X(ASSIGN, 12)                          \
	X(LAPROP, 13)                          \
	X(PROXIMAL_YOGI, 14)                   \
	X(BOUNDED_ADAGRAD, 15)                 \
	X(ONLINE_YOGI, 16)                     \
	X(FREQUENCY_ESTIMATOR, 17)             \
	X(FREQUENCY_AWARE_ADAGRAD, 18)         \
	X(MDL_ADAGRAD_LIGHT, 19)

enum embeng_optimizer_kind {
	EMBENG_OPTIMIZER_NONE = 0, /* inference only, no slots */
#define EMBENG_OPTIMIZER_ENUM(name, value) EMBENG_OPTIMIZER_##name = value,
	EMBENG_OPTIMIZER_TABLE(EMBENG_OPTIMIZER_ENUM)
#undef EMBENG_OPTIMIZER_ENUM
};

#define EMBENG_TABLE_ACCUMULATE (1u << 0)    /* sum per row, then one application */
#define EMBENG_TABLE_DECAY_BY_RATE (1u << 1) /* decay is multiplied by the rate */
#define EMBENG_TABLE_RATE_DYNAMIC (1u << 2)  /* @rate is an index, else f32 bits */
/* ADAM and LION, with ACCUMULATE: every step runs over all rows, untouched ones with gradient 0 */
#define EMBENG_TABLE_NON_LAZY (1u << 3)
/* FREQUENCY_AWARE_ADAGRAD: the step is the value of the RATE @step_rate, 0 being 1 */
#define EMBENG_TABLE_STEP_DYNAMIC (1u << 4)

#define EMBENG_SLOTS_MAX 7
#define EMBENG_HYPERPARAMETERS_MAX 16

/**
 * struct embeng_record_table - one table
 * @head: type TABLE
 * @rows: vocabulary size, from 1
 * @dim: columns, 1 .. caps.dim
 * @flags: EMBENG_TABLE_*
 * @combiner: enum embeng_combiner
 * @out_of_range: enum embeng_out_of_range
 * @optimizer: enum embeng_optimizer_kind
 * @slot_count: must be the optimizer's
 * @rate: learning rate, f32 bits or an index of RATE
 * @weight_decay: f32 bits, 0 for none
 * @clip_gradient_min: f32 bits, -inf for none
 * @clip_gradient_max: f32 bits, +inf for none
 * @clip_weight_min: f32 bits
 * @clip_weight_max: f32 bits
 * @slot_start: f32 bits each slot is filled with at MODEL_LOAD; parameters start
 *	at 0
 * @hyperparameter: f32 bits, in the order of the optimizer's description
 * @step_rate: index of RATE with EMBENG_TABLE_STEP_DYNAMIC, else 0
 * @reserved: 0
 */
struct embeng_record_table {
	struct embeng_record head;
	__u64 rows;
	__u32 dim;
	__u32 flags;
	__u8 combiner;
	__u8 out_of_range;
	__u8 optimizer;
	__u8 slot_count;
	__u32 rate;
	__u32 weight_decay;
	__u32 clip_gradient_min;
	__u32 clip_gradient_max;
	__u32 clip_weight_min;
	__u32 clip_weight_max;
	__u32 slot_start[EMBENG_SLOTS_MAX];
	__u32 hyperparameter[EMBENG_HYPERPARAMETERS_MAX];
	__u32 step_rate;
	__u32 reserved;
};

/**
 * struct embeng_record_quantization - simulated quantization of what lookups read of a table
 * @head: type QUANTIZATION; with caps.features & EMBENG_CAP_QUANTIZATION, else an
 *	unknown record
 * @table: index of the table; a later record has a higher one
 * @num_buckets: levels, from 2
 * @lower: f32 bits, finite
 * @upper: f32 bits, finite, above @lower
 *
 * A lookup of either kind reads, instead of each element x of a row, in f32 and without
 * contraction: q = (upper - lower) / (num_buckets - 1), c = x clipped to [lower, upper],
 * y = lower + q * floor((c - lower) / q + 0.5). NaN stays NaN. That is before weights and
 * combiner. Stored rows and gradients are not quantized, and neither are the zeros of ids
 * that read none and of missing positions. A q that is 0 or not finite gives numbers
 * without meaning. Source: QuantizationConfig of the TPU embedding API.
 */
struct embeng_record_quantization {
	struct embeng_record head;
	__u32 table;
	__u32 num_buckets;
	__u32 lower;
	__u32 upper;
};

#define EMBENG_FEATURE_FINITE_WEIGHTS (1u << 0) /* refuse weights that are not finite */

/**
 * struct embeng_record_feature - one feature
 * @head: type FEATURE
 * @table: index of its table
 * @flags: EMBENG_FEATURE_*
 * @max_sequence_length: 0 pools each sample; else position j of a sample is the
 *	row of its j-th id, ids beyond are ignored, missing ones are zeros
 * @reserved: 0
 * @max_samples: samples a batch may have; 0: the device's limit
 * @max_ids: ids a batch may have; 0: the device's limit. The private copies of
 *	ids are reserved at MODEL_LOAD from these; with 0 they grow to the
 *	largest batch seen
 */
struct embeng_record_feature {
	struct embeng_record head;
	__u32 table;
	__u32 flags;
	__u32 max_sequence_length;
	__u32 reserved;
	__u64 max_samples;
	__u64 max_ids;
};

/**
 * struct embeng_record_name - what people call a table, feature or rate
 * @head: type NAME, not mandatory
 * @of: enum embeng_record_type of what is named
 * @index: which one
 * @name: UTF-8, ended by a zero byte, padded to a multiple of 8
 */
struct embeng_record_name {
	struct embeng_record head;
	__u32 of;
	__u32 index;
	char name[64];
};

/* -- capabilities -------------------------------------------------------- */

#define EMBENG_CAP_MAPPED_QUEUES (1u << 0)
#define EMBENG_CAP_VALIDATED_QUEUES (1u << 1)
#define EMBENG_CAP_PIPELINING (1u << 2)
#define EMBENG_CAP_PROGRAMS (1u << 3)
#define EMBENG_CAP_STATISTICS (1u << 4)
#define EMBENG_CAP_MINIBATCHING (1u << 5)
#define EMBENG_CAP_SIGNATURE_UNCHECKED (1u << 6)
#define EMBENG_CAP_QUANTIZATION (1u << 7)
#define EMBENG_CAP_PARTITIONED (1u << 8) /* LOOKUP takes partitioned CSR */

/**
 * struct embeng_caps - what a device can do
 * @interface_major: EMBENG_INTERFACE_MAJOR
 * @interface_minor: EMBENG_INTERFACE_MINOR
 * @features: EMBENG_CAP_*
 * @cores: engine cores; rows are spread over them, results never depend on it
 * @queues: queues, the admin queue too
 * @vectors: interrupt vectors
 * @contexts: contexts at once
 * @regions: entries of a context's region table
 * @table_memory: bytes for tables and slots
 * @dim: largest dim
 * @tables: tables of a model
 * @model_features: features of a model
 * @replicas: replicas of a model
 * @step_depth: training steps that may be ahead of the last applied update
 * @ids: ids of one feature of one batch
 * @samples: samples of one feature of one batch
 * @row_dtypes: mask, bit 0 f32
 * @combiners: mask of 1 << enum embeng_combiner
 * @optimizers: mask of 1 << enum embeng_optimizer_kind
 * @reserved: 0
 */
struct embeng_caps {
	__u32 interface_major;
	__u32 interface_minor;
	__u32 features;
	__u32 cores;
	__u32 queues;
	__u32 vectors;
	__u32 contexts;
	__u32 regions;
	__u64 table_memory;
	__u32 dim;
	__u32 tables;
	__u32 model_features;
	__u32 replicas;
	__u32 step_depth;
	__u32 row_dtypes;
	__u64 ids;
	__u64 samples;
	__u32 combiners;
	__u32 optimizers;
	__u32 reserved[8];
};

#ifdef __cplusplus
}
#define EMBENG_ASSERT(cond) static_assert(cond, #cond)
#else
#define EMBENG_ASSERT(cond) _Static_assert(cond, #cond)
#endif

#define EMBENG_ASSERT_AT(type, member, at) \
	EMBENG_ASSERT(__builtin_offsetof(struct type, member) == (at))

EMBENG_ASSERT(sizeof(struct embeng_mem) == 24);
EMBENG_ASSERT(sizeof(struct embeng_cmd) == 64);
EMBENG_ASSERT_AT(embeng_cmd, cookie, 8);
EMBENG_ASSERT_AT(embeng_cmd, step, 16);
EMBENG_ASSERT_AT(embeng_cmd, after, 24);
EMBENG_ASSERT_AT(embeng_cmd, desc, 32);
EMBENG_ASSERT_AT(embeng_cmd, arg, 56);
EMBENG_ASSERT(sizeof(struct embeng_cqe) == 64);
EMBENG_ASSERT_AT(embeng_cqe, status, 8);
EMBENG_ASSERT_AT(embeng_cqe, field, 12);
EMBENG_ASSERT_AT(embeng_cqe, feature, 16);
EMBENG_ASSERT_AT(embeng_cqe, index, 20);
EMBENG_ASSERT_AT(embeng_cqe, element, 24);
EMBENG_ASSERT_AT(embeng_cqe, timestamp, 48);
EMBENG_ASSERT_AT(embeng_cqe, step, 56);
EMBENG_ASSERT(sizeof(struct embeng_queue_report) == 64);
EMBENG_ASSERT_AT(embeng_queue_report, step, 16);
EMBENG_ASSERT(sizeof(struct embeng_ring_header) == 256);
EMBENG_ASSERT_AT(embeng_ring_header, heartbeat, 4);
EMBENG_ASSERT_AT(embeng_ring_header, cq_tail, 64);
EMBENG_ASSERT_AT(embeng_ring_header, done, 72);
EMBENG_ASSERT_AT(embeng_ring_header, busy_ns, 80);
EMBENG_ASSERT_AT(embeng_ring_header, dead, 128);
EMBENG_ASSERT_AT(embeng_ring_header, report, 192);
EMBENG_ASSERT(sizeof(struct embeng_doorbell) == 192);
EMBENG_ASSERT_AT(embeng_doorbell, cq_head, 64);
EMBENG_ASSERT_AT(embeng_doorbell, arm, 128);
EMBENG_ASSERT(sizeof(struct embeng_queue_layout) == 48);
EMBENG_ASSERT_AT(embeng_queue_layout, header, 16);
EMBENG_ASSERT(sizeof(struct embeng_lookup) == 32);
EMBENG_ASSERT_AT(embeng_lookup, model_hash, 8);
EMBENG_ASSERT_AT(embeng_lookup, stack_count, 16);
EMBENG_ASSERT(sizeof(struct embeng_lookup_feature) == 128);
EMBENG_ASSERT_AT(embeng_lookup_feature, sample_count, 8);
EMBENG_ASSERT_AT(embeng_lookup_feature, offsets, 24);
EMBENG_ASSERT_AT(embeng_lookup_feature, ids, 48);
EMBENG_ASSERT_AT(embeng_lookup_feature, weights, 72);
EMBENG_ASSERT_AT(embeng_lookup_feature, activations, 96);
EMBENG_ASSERT(sizeof(struct embeng_lookup_stack) == 168);
EMBENG_ASSERT_AT(embeng_lookup_stack, item_count, 24);
EMBENG_ASSERT_AT(embeng_lookup_stack, row_pointers, 32);
EMBENG_ASSERT_AT(embeng_lookup_stack, bounds, 128);
EMBENG_ASSERT(sizeof(struct embeng_lookup_member) == 32);
EMBENG_ASSERT_AT(embeng_lookup_member, column_offset, 8);
EMBENG_ASSERT(sizeof(struct embeng_update) == 64);
EMBENG_ASSERT_AT(embeng_update, model_hash, 16);
EMBENG_ASSERT_AT(embeng_update, rates, 24);
EMBENG_ASSERT_AT(embeng_update, multiplier, 48);
EMBENG_ASSERT(sizeof(struct embeng_update_feature) == 32);
EMBENG_ASSERT_AT(embeng_update_feature, gradients, 8);
EMBENG_ASSERT(sizeof(struct embeng_rows) == 96);
EMBENG_ASSERT_AT(embeng_rows, ids, 24);
EMBENG_ASSERT_AT(embeng_rows, data, 48);
EMBENG_ASSERT_AT(embeng_rows, fill, 72);
EMBENG_ASSERT_AT(embeng_rows, seed, 88);
EMBENG_ASSERT(sizeof(struct embeng_partition) == 184);
EMBENG_ASSERT_AT(embeng_partition, columns, 24);
EMBENG_ASSERT_AT(embeng_partition, row_pointers, 56);
EMBENG_ASSERT_AT(embeng_partition, result, 152);
EMBENG_ASSERT(sizeof(struct embeng_partition_feature) == 112);
EMBENG_ASSERT_AT(embeng_partition_feature, rows, 8);
EMBENG_ASSERT_AT(embeng_partition_feature, offsets, 40);
EMBENG_ASSERT(sizeof(struct embeng_partition_result) == 48);
EMBENG_ASSERT(sizeof(struct embeng_hot_row) == 16);
EMBENG_ASSERT(sizeof(struct embeng_stats) == 88 + 16 * EMBENG_STATS_HOT + 8 * EMBENG_STATS_CORES);
EMBENG_ASSERT_AT(embeng_stats, ids, 8);
EMBENG_ASSERT_AT(embeng_stats, hot, 88);
EMBENG_ASSERT(sizeof(struct embeng_fence_point) == 8);
EMBENG_ASSERT(sizeof(struct embeng_blob_header) == 32);
EMBENG_ASSERT_AT(embeng_blob_header, length, 8);
EMBENG_ASSERT_AT(embeng_blob_header, hash, 24);
EMBENG_ASSERT(sizeof(struct embeng_record) == 8);
EMBENG_ASSERT(sizeof(struct embeng_record_engine) == 32);
EMBENG_ASSERT(sizeof(struct embeng_record_table) == 152);
EMBENG_ASSERT_AT(embeng_record_table, rows, 8);
EMBENG_ASSERT_AT(embeng_record_table, combiner, 24);
EMBENG_ASSERT_AT(embeng_record_table, rate, 28);
EMBENG_ASSERT_AT(embeng_record_table, slot_start, 52);
EMBENG_ASSERT_AT(embeng_record_table, hyperparameter, 80);
EMBENG_ASSERT(sizeof(struct embeng_record_feature) == 40);
EMBENG_ASSERT_AT(embeng_record_feature, max_samples, 24);
EMBENG_ASSERT(sizeof(struct embeng_record_quantization) == 24);
EMBENG_ASSERT(sizeof(struct embeng_record_name) == 80);
EMBENG_ASSERT(sizeof(struct embeng_caps) == 120);
EMBENG_ASSERT_AT(embeng_caps, table_memory, 32);
EMBENG_ASSERT_AT(embeng_caps, ids, 64);

#endif
