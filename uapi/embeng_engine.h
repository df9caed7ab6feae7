/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: the interface between a program and the embedding engine.
 *
 * The bytes are the same for hardware, for the emulator and for the soft device. The
 * interface is unstable until the driver has been used with it for some time.
 * The file is long because each side implements all of it, and programs include it whole.
 *
 * DOC: Rules of this header
 *
 * - Numbers are little-endian integers of fixed width, naturally aligned, and padding is
 *   explicit. Every field named reserved must be zero. The engine refuses anything else with
 *   EMBENG_STATUS_RESERVED, so that the field can get a meaning later.
 * - Floats are passed as their bit patterns in __u32, because the kernel has no floats.
 * - Structures grow at their end. Arrays of structures carry their stride.
 * - Opcodes, statuses and record types are never renumbered and never used again.
 *
 * DOC: Memory is named by key
 *
 * A program names memory by &struct embeng_mem: a key (index and generation in its context's
 * region table), an offset and a length, both in bytes. Only the kernel, or the host part of
 * the soft device, writes the region table. The engine checks generation, rights and bounds
 * for every command. A command fails with EMBENG_STATUS_KEY if its key belongs to another
 * context, is stale or was guessed.
 *
 * DOC: Shared memory is hostile
 *
 * The engine reads each command, each descriptor and each ring index of its peer only once,
 * into a copy, and then checks and uses only this copy. Row offsets and ids are copied while
 * they are checked. Floats are read in place. A program that writes into a buffer while the engine
 * reads it gets wrong numbers in its own output and disturbs nothing else.
 *
 * DOC: Queues
 *
 * A queue has four parts, each written by one side only:
 *
 *   &struct embeng_ring_header	written by the device
 *   submission ring			&struct embeng_cmd, written by the program
 *   completion ring			&struct embeng_cqe, written by the device
 *   &struct embeng_doorbell		a page of its own, written by the program
 *
 * Rings have a power of two of entries. Indices are free-running __u32, and the entry of an
 * index is at index & (entries - 1).
 *
 * The kind of a queue fixes which commands it takes; others fail with
 * EMBENG_STATUS_QUEUE_KIND:
 *
 *   INPUT      LOOKUP for training, of one replica
 *   INFERENCE  LOOKUP for inference, of one replica
 *   GRADIENT   UPDATE, of one replica
 *   TRANSFER   MODEL_*, ROWS_*, STAGE, SNAPSHOT*, STATE_*, STATS, PARTITION, DRAIN, FREEZE,
 *	       UNIQUE, POOL, SUM; no replica
 *
 * NOP and FENCE are allowed on all four. The commands of one queue complete in order, and a
 * command that waits for a step holds up only its own queue. There is one exception to the
 * order: a command that fails its checks completes at once, ahead of older commands that
 * wait. An INFERENCE queue needs a completion ring of at least 2 entries. A new queue begins
 * at the indices that its doorbell holds at that moment, and its header then shows them.
 *
 * A submission tail that is further ahead of the head than the ring has entries is an error
 * (EMBENG_STATUS_RING_INDEX), and so is a completion head beyond the completion tail. The
 * queue then stops in state ERROR and takes no command until it is reset. A full completion
 * ring stops the queue in state CQ_FULL: no completion is dropped, and the queue continues
 * when the completion head moves.
 *
 * DOC: Hangs and resets
 *
 * The ring header lets the driver tell progress from standstill. While the device attends to
 * a queue, the queue's @heartbeat follows the device's heartbeat, also while the queue has to
 * wait. @done follows @sq_head. @sent equals @cq_tail unless a completion was lost on its way.
 *
 * A queue that hangs is reset. Its command at fault completes with HUNG; &embeng_cqe.element
 * is then the command's index, @value the nanoseconds without progress, and @limit the rung
 * of the recovery ladder (embeng_accel.h). All other incomplete commands complete with
 * ABORTED. If the whole device had to be reset, the program finds these completions in its
 * rings before @dead becomes 1, as far as the rings have room and still hold the commands.
 *
 * DOC: Steps
 *
 * Training steps count from 1 at MODEL_LOAD and grow by one. The LOOKUP of training step n
 * sees the tables after update n - 1 of all replicas. With pipelining it sees them after
 * update n - 2, exactly: update n - 1 is held back until LOOKUP(n) of every replica has read
 * the tables. A DRAIN applies it sooner. The engine then keeps the rows that the update
 * changes, and LOOKUP(n) reads these, so that where a program drains changes no result. All
 * other commands see the tables with the update. A write in between (ROWS_WRITE, ROWS_FILL,
 * STATE_WRITE or the COMMIT of a STAGE) ends this: LOOKUP(n) then sees the tables as they are.
 * The kept rows take memory, of an optimizer with EMBENG_TABLE_NON_LAZY as much as
 * the table's parameters; a DRAIN that finds none fails with NO_MEMORY and applies nothing.
 *
 * A table without an optimizer, or frozen by FREEZE, takes part in training like any other
 * table, but no UPDATE changes its rows or slots: no optimizer, decay or clip runs on it, with
 * EMBENG_TABLE_NON_LAZY neither. Gradients of its features need not be given, and are not read.
 * Steps that it is frozen for are no steps of its optimizer (STATE_READ). A model needs one
 * table with a feature and an optimizer to train (EMBENG_STATUS_TRAINING).
 *
 * A LOOKUP is checked and copied before it waits for any step. It first posts ACCEPTED, after
 * which the program may reuse its id arrays, or an error; after ACCEPTED it posts DONE. A
 * refused LOOKUP changes nothing, so the same step may be submitted again. At most
 * &embeng_caps.step_depth steps may be ahead of the last applied update; the engine leaves a
 * LOOKUP beyond that in the ring until its step comes into reach. An UPDATE of a step that is
 * unknown, was given before or whose LOOKUP has not completed fails at once with
 * EMBENG_STATUS_STEP_ORDER.
 *
 * Two flags serve programs that do not look up and update in turn. A LOOKUP for training with
 * EMBENG_CMD_IDS_ONLY takes the ids of its step's UPDATE and writes no activations. It reads no
 * table, so it waits for no update, only for the LOOKUPs of its replica before it. An UPDATE with
 * EMBENG_CMD_DISCARD takes the place of one with gradients: the ids that the replica gave for the
 * step touch no row. The step counts if another replica gave gradients. If all replicas discard
 * it, no table changes, with EMBENG_TABLE_NON_LAZY neither, and it is no step of the optimizers.
 *
 * &embeng_cmd.after is exact: the command sees all tables as they are directly after that
 * step's update. A command whose step has passed fails with EMBENG_STATUS_STEP_PASSED.
 *
 * A command that changes rows at once (ROWS_WRITE without EMBENG_CMD_STAGED, ROWS_FILL, the COMMIT
 * of a STAGE), and STATS without EMBENG_STATS_NOW, runs after each LOOKUP of its context that was
 * accepted before it and waits for no update. So the order in which a program gives them decides
 * which rows a LOOKUP reads, and what is counted.
 *
 * embeng_steps.h has these rules as functions.
 *
 * DOC: Adding tables
 *
 * MODEL_LOAD with EMBENG_CMD_EXTENDS adds tables and features to the loaded model. Its blob has the
 * tables and features of the loaded model first, in records of the same bytes, and the new ones
 * behind them. The ENGINE record may differ from the loaded one in its counts alone, which may
 * grow. A difference fails with EMBENG_STATUS_BLOB_VALUE, and &embeng_cqe.element is its place in
 * the blob.
 *
 * Rows, slots and statistics of the loaded tables stay as they are, and training goes on with the
 * step that comes next. New tables begin as after any MODEL_LOAD, with no step of their optimizer
 * behind them, as if they had been frozen until then. From now on the hash is that of the new blob,
 * and every LOOKUP and UPDATE is for all features. A snapshot ends. With pipelining, what LOOKUP(n)
 * does not see of update n - 1 stays unseen: writes to the rows of tables that were added in
 * between do not end that.
 *
 * The command runs between two steps: it fails with EMBENG_STATUS_MODEL_BUSY where a step has a
 * LOOKUP and no applied update (a DRAIN applies one that is held back), or where another command
 * that uses the model is under way on another queue; and with EMBENG_STATUS_STAGE while there are
 * staged copies. Commands that come while it runs wait. When it fails, the model is as it was.
 *
 * DOC: Blocked on the program
 *
 * When no queue of a context can go on before the program submits more, the engine writes a
 * report into the header of every queue of the context. The report says what the queue waits
 * for, from which replica, and up to which tail the engine has looked. This is a state of the
 * queue and not a hang. If the reports of all queues have the same epoch, and the tails in
 * them equal the program's own, then the program's wait cannot end by itself
 * (&struct embeng_queue_report).
 *
 * A new report interrupts each armed queue that it calls BLOCKED, CQ_FULL or ERROR, whatever
 * index the queue is armed for. A program that wants to sleep therefore arms, looks at
 * cq_tail and at the reports, and then sleeps.
 */
#ifndef _EMBENG_ENGINE_H_
#define _EMBENG_ENGINE_H_

#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. A device with another major version cannot be used. */
#define EMBENG_INTERFACE_MAJOR 0
#define EMBENG_INTERFACE_MINOR 1

/**
 * EMBENG_STATUS_TABLE - every completion status
 *
 * X(name, value, class, errno name, exit code of the embeng command, sentence).
 * The class says whose fault it is: NONE, PROGRAM (the caller), MODEL (the model or its
 * tables), DEVICE (a fault of the device) or LINK (the device is gone). Documentation, the
 * command and the tests are generated from this table.
 */
#define EMBENG_STATUS_TABLE(X)                                                                     \
	X(OK, 0, NONE, 0, 0, "no error")                                                           \
	X(OPCODE, 1, PROGRAM, ENOTSUP, 3,                                                          \
	  "the device does not know the opcode; firmware and program must match in version")       \
	X(QUEUE_KIND, 2, PROGRAM, EINVAL, 2,                                                       \
	  "this kind of queue does not take the command; submit it to another queue")              \
	X(RESERVED, 3, PROGRAM, EINVAL, 2, "a reserved field or flag is not zero; set it to zero") \
	X(KEY, 4, PROGRAM, EACCES, 4,                                                              \
	  "no region of this context has the memory key; bind the memory before using it")         \
	X(RIGHTS, 5, PROGRAM, EACCES, 4,                                                           \
	  "the region was bound without the right to read or to write that is needed")             \
	X(BOUNDS, 6, PROGRAM, ERANGE, 2, "the access goes beyond the end of the region")           \
	X(ALIGNMENT, 7, PROGRAM, EINVAL, 2,                                                        \
	  "the offset is not aligned to the element width, or a core's items not to 8")            \
	X(LENGTH, 8, PROGRAM, EINVAL, 2,                                                           \
	  "the length of the memory is not the length that the command needs")                     \
	X(STRIDE, 9, PROGRAM, EINVAL, 2,                                                           \
	  "the stride is smaller than the structure, or no multiple of 8")                         \
	X(WIDTH, 10, PROGRAM, EINVAL, 2, "the width of the elements is neither 4 nor 8 bytes")     \
	X(COUNT, 11, PROGRAM, ERANGE, 2, "a count is outside its limits")                          \
	X(FORM, 12, PROGRAM, EINVAL, 2,                                                            \
	  "the input has a form that is unknown or not allowed here")                              \
	X(FEATURE, 13, PROGRAM, EINVAL, 2,                                                         \
	  "the features are not those of the model in the model's order")                          \
	X(OFFSETS, 14, PROGRAM, EINVAL, 2,                                                         \
	  "the row offsets do not rise from 0 to the number of ids")                               \
	X(ID, 15, PROGRAM, ERANGE, 2,                                                              \
	  "the id is outside its table; correct it, or give the table an out_of_range policy")     \
	X(WEIGHT, 16, PROGRAM, ERANGE, 2,                                                          \
	  "the weight is not finite; correct it, or give the model the policy that allows it")     \
	X(STEP_ORDER, 17, PROGRAM, EPROTO, 2,                                                      \
	  "the step is not the next one of this replica; give steps in order, each once")          \
	X(STEP_PASSED, 18, PROGRAM, EPROTO, 2,                                                     \
	  "the tables are already beyond the step that the command asks for")                      \
	X(RATE, 19, PROGRAM, EINVAL, 2,                                                            \
	  "the dynamic rates are not those of the model, or differ between the replicas")          \
	X(NO_MODEL, 20, PROGRAM, EINVAL, 2, "no model is loaded; load one first")                  \
	X(MODEL_BUSY, 21, PROGRAM, EBUSY, 5,                                                       \
	  "a model is loaded already or still in use; unload it first")                            \
	X(MODEL_HASH, 22, PROGRAM, EINVAL, 2,                                                      \
	  "the batch was made for another model than the loaded one")                              \
	X(BLOB_FRAME, 23, MODEL, EBADMSG, 11,                                                      \
	  "the model blob is malformed: a length, count or order in it is wrong")                  \
	X(BLOB_CRC, 24, MODEL, EBADMSG, 11,                                                        \
	  "the checksum of the model blob does not match its contents")                            \
	X(BLOB_RECORD, 25, MODEL, ENOTSUP, 3,                                                      \
	  "the model has a mandatory record that the device does not know")                        \
	X(BLOB_VALUE, 26, MODEL, ERANGE, 2, "a value in the model is outside its limits")          \
	X(TABLE, 27, PROGRAM, ENOENT, 2, "the model has no such table")                            \
	X(SLOT, 28, PROGRAM, ENOENT, 2, "the table has no such slot")                              \
	X(ROW, 29, PROGRAM, ERANGE, 2, "the row is outside its table")                             \
	X(NO_SPACE, 30, MODEL, ENOSPC, 5, "the model does not fit into the table memory")          \
	X(NO_MEMORY, 31, DEVICE, ENOMEM, 7,                                                        \
	  "the host has no memory left for the engine; free some, or use smaller batches")         \
	X(RING_INDEX, 32, PROGRAM, EINVAL, 2, "a ring index is outside the ring")                  \
	X(FENCE, 33, PROGRAM, EINVAL, 2,                                                           \
	  "the command cannot wait for the queue that the fence names")                            \
	X(TRAINING, 34, PROGRAM, EINVAL, 2,                                                        \
	  "there is no optimizer to train with: give a table of the batch one")                    \
	X(ABORTED, 35, DEVICE, ECANCELED, 7,                                                       \
	  "the command was aborted: its queue was reset or ended, or its fence failed")            \
	X(LOST, 36, DEVICE, ESHUTDOWN, 7,                                                          \
	  "the context was lost in a reset; open the device again and restore a checkpoint")       \
	X(INTERNAL, 37, DEVICE, EIO, 7,                                                            \
	  "the engine failed because of an error in its memory or in a transfer")                  \
	X(GONE, 38, LINK, ENODEV, 6, "the device is gone; close the handle")                       \
	X(STAGE, 39, PROGRAM, EINVAL, 2,                                                           \
	  "the table or slot has no staged copy to use, or has one already")                       \
	X(HUNG, 40, DEVICE, EIO, 7, "the command made no progress and was given up")               \
	X(GRID, 41, PROGRAM, EINVAL, 2,                                                            \
	  "a number is no multiple of the number of cores that share it")                          \
	X(LIMIT, 42, PROGRAM, ERANGE, 2,                                                           \
	  "a partition has more ids than its limit; raise it, or allow minibatches or dropping")   \
	X(BUFFER, 43, PROGRAM, ERANGE, 2, "the partitions do not fit into the buffer")             \
	X(SAMPLE, 44, PROGRAM, ERANGE, 2, "the sample is not one of this core's samples")          \
	X(GRADIENT, 45, PROGRAM, ERANGE, 2,                                                        \
	  "the gradient is not finite; correct it, or give the model another policy for those")    \
	X(NUMBER, 46, PROGRAM, ERANGE, 2,                                                          \
	  "the number is not one that can be here; correct it")                                    \
	X(SNAPSHOT, 47, PROGRAM, EINVAL, 2,                                                        \
	  "the snapshot ended, was replaced, or outgrew the memory; begin another")

enum embeng_status {
#define EMBENG_STATUS_ENUM(name, value, cls, err, exit_code, text) EMBENG_STATUS_##name = value,
	EMBENG_STATUS_TABLE(EMBENG_STATUS_ENUM)
#undef EMBENG_STATUS_ENUM
};

/**
 * EMBENG_FIELD_TABLE - every field of a command or descriptor that can be at fault
 *
 * X(name, value, words). The value is that of &embeng_cqe.field.
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
	X(RATES, 16, "rates")                        \
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
	X(BOUNDS, 37, "bounds of a core")            \
	X(MULTIPLIER, 38, "multiplier")               \
	X(COMMAND_BYTES, 39, "bytes that the command moves") \
	X(TABLE_COUNT, 40, "table count")              \
	X(HOSTS, 41, "hosts")

enum embeng_field {
#define EMBENG_FIELD_ENUM(name, value, words) EMBENG_FIELD_##name = value,
	EMBENG_FIELD_TABLE(EMBENG_FIELD_ENUM)
#undef EMBENG_FIELD_ENUM
};

/**
 * struct embeng_mem - a part of the context's memory, named by key
 * @index: entry of the context's region table
 * @generation: generation of that entry, never 0; the access fails if they differ
 * @offset: bytes from the start of the region
 * @length: bytes
 *
 * Optional memory that is not given has 0 in all four fields.
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

#define EMBENG_CMD_STAGED (1u << 0)   /* ROWS_WRITE writes into the staged copy */
#define EMBENG_CMD_IDS_ONLY (1u << 1) /* LOOKUP for training: ids of an UPDATE, no activations */
#define EMBENG_CMD_DISCARD (1u << 2)  /* UPDATE: the replica has no gradients for the step */
#define EMBENG_CMD_EXTENDS (1u << 3)  /* MODEL_LOAD: the blob adds tables to the loaded model */

/**
 * EMBENG_OPCODE_TABLE - every command
 *
 * X(name, value, kinds of queue, flags, words). The kinds are a mask of
 * 1 << enum embeng_queue_kind; the flags are the EMBENG_CMD_* that the command may carry.
 */
#define EMBENG_OPCODE_TABLE(X)                                  \
	X(NOP, 0, 0x1e, 0, "NOP")                               \
	X(FENCE, 1, 0x1e, 0, "FENCE")                           \
	X(LOOKUP, 2, 0x06, EMBENG_CMD_IDS_ONLY, "LOOKUP")       \
	X(UPDATE, 3, 0x08, EMBENG_CMD_DISCARD, "UPDATE")        \
	X(DRAIN, 4, 0x10, 0, "DRAIN")                           \
	X(MODEL_LOAD, 5, 0x10, EMBENG_CMD_EXTENDS, "MODEL_LOAD") \
	X(MODEL_UNLOAD, 6, 0x10, 0, "MODEL_UNLOAD")             \
	X(ROWS_WRITE, 7, 0x10, EMBENG_CMD_STAGED, "ROWS_WRITE") \
	X(ROWS_READ, 8, 0x10, 0, "ROWS_READ")                   \
	X(ROWS_FILL, 9, 0x10, 0, "ROWS_FILL")                   \
	X(STATS, 10, 0x10, 0, "STATS")                          \
	X(STATE_READ, 11, 0x10, 0, "STATE_READ")                \
	X(STATE_WRITE, 12, 0x10, 0, "STATE_WRITE")              \
	X(PARTITION, 13, 0x10, 0, "PARTITION")                  \
	X(STAGE, 14, 0x10, 0, "STAGE")                          \
	X(FREEZE, 15, 0x10, 0, "FREEZE")                        \
	X(SNAPSHOT, 16, 0x10, 0, "SNAPSHOT")                    \
	X(SNAPSHOT_READ, 17, 0x10, 0, "SNAPSHOT_READ")          \
	X(SNAPSHOT_END, 18, 0x10, 0, "SNAPSHOT_END")            \
	X(UNIQUE, 19, 0x10, 0, "UNIQUE")                        \
	X(POOL, 20, 0x10, 0, "POOL")                            \
	X(SUM, 21, 0x10, 0, "SUM")

enum embeng_opcode {
#define EMBENG_OPCODE_ENUM(name, value, kinds, flags, words) EMBENG_OP_##name = value,
	EMBENG_OPCODE_TABLE(EMBENG_OPCODE_ENUM)
#undef EMBENG_OPCODE_ENUM
};

enum embeng_queue_kind {
	EMBENG_QUEUE_ADMIN = 0, /* used by the driver only; see embeng_regs.h */
	EMBENG_QUEUE_INPUT = 1,
	EMBENG_QUEUE_INFERENCE = 2,
	EMBENG_QUEUE_GRADIENT = 3,
	EMBENG_QUEUE_TRANSFER = 4,
};

/**
 * struct embeng_cmd - a command, 64 bytes, written by the program
 * @opcode: enum embeng_opcode
 * @flags: EMBENG_CMD_* that EMBENG_OPCODE_TABLE allows the opcode, otherwise 0
 * @reserved0: 0
 * @cookie: any number; it is copied into every completion of this command
 * @step: for a LOOKUP for training and for UPDATE, the training step, from 1. For DRAIN, the
 *	last step whose update is to be applied if it is complete. Otherwise 0
 * @after: for a LOOKUP for inference, ROWS_*, STAGE, SNAPSHOT, STATS, STATE_*, FREEZE
 *	and MODEL_UNLOAD, the step after whose update the command runs; 0 means before any update.
 *	Otherwise, and for STATS with EMBENG_STATS_NOW, 0
 * @desc: descriptor or other memory of the command. LOOKUP: &struct embeng_lookup. UPDATE:
 *	&struct embeng_update, with EMBENG_CMD_DISCARD not given. MODEL_LOAD: the model blob. ROWS_*
 *	and SNAPSHOT_READ: &struct embeng_rows.
 *	PARTITION: &struct embeng_partition. UNIQUE, POOL and SUM: &struct embeng_row_exchange.
 *	FENCE: an array of &struct embeng_fence_point.
 *	STATS: room for &struct embeng_stats. STATE_* and SNAPSHOT: one __u64, the step count of
 *	the optimizers, which STATE_WRITE takes up to EMBENG_STEP_COUNT_MAX, or with STATE_* that
 *	of one table, which is at most as large. Writing the first makes those of all tables equal
 *	to it. The engine needs write access for STATS, STATE_READ and SNAPSHOT and read access
 *	for all others
 * @arg: argument of the command, otherwise 0. NOP: bits 0..15 are the status to complete with
 *	(which counts as the program's fault), bits 32..63 a delay in microseconds, up to
 *	EMBENG_NOP_DELAY_MAX. STATS: bits
 *	0..31 are the table index, and one of the other bits may be set, EMBENG_STATS_CLEAR or
 *	EMBENG_STATS_NOW.
 *	STAGE: bits 0..31 are the table index, bits 32..47 the slot (as in &embeng_rows.slot),
 *	and bits 48..63 enum embeng_stage; table and slot are 0 except for BEGIN. STATE_*: 0 for
 *	the whole model, or 1 plus the index of a table. FREEZE: bits 0..31 are the table index,
 *	and bits 32..63 enum embeng_freeze. SNAPSHOT_READ and
 *	SNAPSHOT_END: bits 0..31 are the number of the snapshot. SNAPSHOT_END: bits 32..63 are the
 *	number of tables that leave it, the first ones of the model
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

/* STATE_WRITE refuses more, so that no sequence of updates can overflow the 64-bit count. */
#define EMBENG_STEP_COUNT_MAX (1ull << 62)

/* The counts are cleared after they are read. */
#define EMBENG_STATS_CLEAR (1ull << 32)
/*
 * The command runs at whatever step the model is: as soon as its turn comes, as if
 * &embeng_cmd.after were the last step whose update is in the tables. It is for those who look at a
 * model without knowing its steps, so nothing that they cannot know makes it fail. Its value is the
 * number of tables of the model, or 0 without a model, and a table that is not there has counts of
 * 0.
 *
 * It changes nothing. Steps that were looked up and whose update has not come are counted by STATS
 * without this flag, but not by this one, since their replicas may still discard them. For the same
 * reason it does not clear: with EMBENG_STATS_CLEAR it is refused. A device without
 * EMBENG_CAP_STATS_NOW refuses the flag with RESERVED.
 */
#define EMBENG_STATS_NOW (1ull << 33)
#define EMBENG_STAGE_SLOT_SHIFT 32
#define EMBENG_STAGE_ACTION_SHIFT 48
#define EMBENG_FREEZE_ACTION_SHIFT 32
#define EMBENG_SNAPSHOT_TABLES_SHIFT 32
#define EMBENG_NOP_DELAY_SHIFT 32
#define EMBENG_NOP_DELAY_MAX 10000000u /* microseconds; above it NOP fails with COUNT */

/* Flags of a completion. Exactly one of the two is set. */
#define EMBENG_CQE_ACCEPTED (1u << 0) /* only of a LOOKUP: its ids may be reused, DONE follows */
#define EMBENG_CQE_DONE (1u << 1)     /* the command's last completion */

/* Value of &embeng_cqe.feature when no single feature or table is at fault. */
#define EMBENG_NO_INDEX 0xffffffffu

/**
 * struct embeng_cqe - a completion, 64 bytes, written by the device
 * @cookie: cookie of the command
 * @status: enum embeng_status
 * @flags: EMBENG_CQE_ACCEPTED or EMBENG_CQE_DONE
 * @field: enum embeng_field of the field at fault
 * @feature: index of the feature at fault (LOOKUP, UPDATE, PARTITION, UNIQUE, POOL, SUM) or of the
 *	table at fault (other commands, and where @field of the last three is TABLE, ROWS or
 *	RESULT), or EMBENG_NO_INDEX. For a LOOKUP whose @field is EMBENG_FIELD_CORES or a
 *	later one up to EMBENG_FIELD_BOUNDS, it is the index of a stack
 * @index: free-running index of the command in its queue; it identifies the command whatever
 *	its cookie is
 * @element: index of the element at fault in its array; for a model blob, the byte offset
 * @value: value at fault; an id is sign-extended to 64 bits. With NO_SPACE, the bytes needed.
 *	With GRADIENT and NUMBER, f32 bits
 *	On success: UPDATE the number of distinct rows that it changed, ROWS_* and
 *	SNAPSHOT_READ of rows, STATS of bytes, or with EMBENG_STATS_NOW of the model's tables,
 *	PARTITION, POOL and SUM of ids, UNIQUE of distinct rows; SNAPSHOT the number by which
 *	others name the snapshot; FREEZE 1 if the table was frozen before or has no optimizer
 * @limit: bound that @value broke. With NO_SPACE, the bytes available. With GRADIENT, the replica
 *	that gave the gradient. With NUMBER, f32 bits
 * @timestamp: device time in nanoseconds, monotonic
 * @step: &embeng_cmd.step or &embeng_cmd.after of the command
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
	EMBENG_QUEUE_BLOCKED = 1, /* waits for its program; the report says for what */
	EMBENG_QUEUE_CQ_FULL = 2, /* waits for cq_head to move */
	EMBENG_QUEUE_ERROR = 3,   /* a ring index was wrong; the queue needs a reset */
};

enum embeng_wait {
	EMBENG_WAIT_NOTHING = 0,
	EMBENG_WAIT_LOOKUP = 1,	/* waits for the LOOKUP of @step by @replica */
	EMBENG_WAIT_UPDATE = 2,	/* waits for the UPDATE of @step by @replica */
	EMBENG_WAIT_QUEUE = 3,	/* a FENCE waits for the queue whose number is @replica */
	EMBENG_WAIT_SPACE = 4,	/* waits for cq_head of this queue to move */
};

#define EMBENG_WAITS 4 /* kinds of waits, without NOTHING */

/**
 * struct embeng_queue_report - the reason why a queue stands still, written by the device
 * @epoch: number of the report: even, and larger for each new one; odd while the report is
 *	being written
 * @state: enum embeng_queue_state
 * @wait: enum embeng_wait, what the queue waits for
 * @replica: replica whose command is missing, or a queue number (see enum embeng_wait)
 * @step: step whose command is missing
 * @tail: submission tail that the device had seen when it wrote the report
 * @cq_head: completion head that the device had seen when it wrote the report
 *
 * The device reports all queues of a context together, with the same epoch, when none of them
 * can go on. Programs read a report with embeng_report_read_begin() and
 * embeng_report_read_retry().
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
 * struct embeng_ring_header - the device's part of a queue, 256 bytes
 * @sq_head: free-running index; the commands below it have been copied and their slots are
 *	free
 * @heartbeat: value of EMBENG_REG_HEARTBEAT when the device last attended to this queue. It
 *	is updated at least as often as that register grows; a queue whose heartbeat stands
 *	still while the register moves hangs
 * @cq_tail: free-running index; the completions below it are in the ring
 * @sent: completions that the device sent, counted like @cq_tail and published after it. A
 *	value above @cq_tail means that a completion was lost
 * @done: free-running index; the commands below it are complete and have posted all their
 *	completions
 * @progress: grows with the heartbeat while the device knows of something to do for the queue and
 *	why that takes time: a piece of a command was done since the heartbeat before, for this
 *	queue or for another one that has the turn, or a NOP of this queue waits. In a queue whose
 *	commands are not done and whose @progress stands still, nothing will be
 * @busy_ns: nanoseconds that the device has worked for this queue
 * @ids: ids that lookups of this queue have looked up
 * @rows: distinct rows that updates of this queue have updated
 * @commands: commands of this queue that have completed
 * @waits: times that the queue began to wait, by enum embeng_wait without NOTHING
 * @dead: 0, or 1 once the device is gone or the context is lost (ENODEV): nothing in the
 *	queue will move again. It stays readable after a hot-unplug
 * @report: reason why the queue stands still
 *
 * Only the device writes here; after a reset the driver writes in its place. Words that
 * change together share a line of 64 bytes. @heartbeat, @sent, @done, @progress and @busy_ns are
 * valid if &embeng_queue_layout.features has EMBENG_RING_HEALTH; @ids, @rows, @commands and @waits,
 * if it has EMBENG_RING_COUNTS.
 */
struct embeng_ring_header {
	__u32 sq_head;
	__u32 heartbeat;
	__u32 reserved0[14];
	__u32 cq_tail;
	__u32 sent;
	__u32 done;
	__u32 progress;
	__u64 busy_ns;
	__u64 ids;
	__u64 rows;
	__u64 commands;
	__u32 waits[EMBENG_WAITS];
	__u32 dead;
	__u32 reserved2[15];
	struct embeng_queue_report report;
};

/**
 * struct embeng_doorbell - the program's part of a queue, 192 bytes
 * @sq_tail: free-running index; the commands below it are in the ring. Writing it rings the
 *	doorbell
 * @cq_head: free-running index; the program has read the completions below it
 * @arm: free-running index; the device interrupts when cq_tail moves past it. The device
 *	reads @arm after @armed
 * @armed: a number that the program changes each time it arms; an arming is good for one
 *	interrupt
 *
 * Only the program writes here. A doorbell takes one stride of BAR 2 (embeng_regs.h), so that
 * it can be mapped into one process alone. It is plain memory: reading it has no effect.
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
 * struct embeng_queue_layout - where the parts of a queue's ring memory are
 * @features: EMBENG_RING_*
 * @sq_entries: entries of the submission ring, a power of two
 * @cq_entries: entries of the completion ring, a power of two; at least twice @sq_entries on
 *	an INPUT queue
 * @reserved: 0
 * @header: byte offset of &struct embeng_ring_header
 * @sq: byte offset of the submission ring
 * @cq: byte offset of the completion ring
 * @size: bytes of the whole ring memory
 *
 * The layout is returned when a queue is made. A program uses these offsets and assumes no
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
#define EMBENG_RING_HEALTH (1u << 2)  /* heartbeat, sent, done, progress and busy_ns are written */
#define EMBENG_RING_COUNTS (1u << 3)  /* ids, rows, commands and waits are written */

#define EMBENG_SQ_ENTRIES_MAX 4096u

/* -- LOOKUP -------------------------------------------------------------- */

enum embeng_form {
	EMBENG_FORM_CSR = 0,   /* row offsets, ids, optional weights */
	EMBENG_FORM_DENSE = 1, /* one id for each sample, no offsets, no weights */
	EMBENG_FORM_POOLED = 2, /* CSR, pooled even if the feature is a sequence */
	EMBENG_FORM_COO = 3,	/* only for PARTITION: the sample of each id, in ascending order */
	EMBENG_FORM_PARTITIONED = 4, /* only for LOOKUP: ids are in a &struct embeng_lookup_stack */
	EMBENG_FORM_ROWS = 5, /* LOOKUP alone: DENSE, each activation in the bits of its row */
};

/*
 * A LOOKUP of form ROWS gathers rows, of all features into one block if their activations lie
 * there. It is one of form DENSE, with the same rules of steps, in all but one thing: the numbers
 * of a row keep their bits, where DENSE adds them to +0, so that a -0 stays one. Rows of a
 * quantized table are what any LOOKUP of it reads. A device without EMBENG_CAP_EXCHANGE refuses the
 * form with FORM.
 */

/**
 * struct embeng_lookup - head of the descriptor of a LOOKUP
 * @feature_count: number of features; must be the model's
 * @feature_stride: bytes from one &struct embeng_lookup_feature to the next; they follow this
 *	head
 * @model_hash: &embeng_blob_header.hash of the loaded model
 * @stack_count: stacks of partitioned CSR, at most @member_count; 0 if the device lacks
 *	EMBENG_CAP_PARTITIONED
 * @stack_stride: bytes from one &struct embeng_lookup_stack to the next; they follow the
 *	features. 0 without stacks
 * @member_count: members of all stacks together, up to EMBENG_LOOKUP_MEMBERS_MAX; 0 without
 *	stacks
 * @member_stride: bytes from one &struct embeng_lookup_member to the next; they follow the
 *	stacks. 0 without stacks
 *
 * The descriptor ends with the last of these structures. Strides are multiples of 8.
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
 * struct embeng_lookup_feature - input and output of one feature in a LOOKUP
 * @feature: index of the feature; all features are given, in model order
 * @form: enum embeng_form
 * @id_width: bytes of an id, 4 or 8, signed; 0 for PARTITIONED
 * @offset_width: bytes of a row offset, 4 or 8, signed; 0 for DENSE, ROWS and PARTITIONED
 * @reserved: 0
 * @sample_count: number of samples, S
 * @id_count: number of ids, N; equal to S for DENSE and ROWS, 0 for PARTITIONED
 * @offsets: row offsets [S + 1], which begin with 0, never fall and end with N
 * @ids: ids [N]
 * @weights: weights [N] f32; not given means that each weight is 1; with combiner MAX none
 * @activations: output [S][dim] f32, or [S][max_sequence_length][dim] for a sequence feature
 *	in CSR form. The engine needs write access and writes every element. Not given with
 *	EMBENG_CMD_IDS_ONLY
 * @activation_stride: bytes from the activations of one sample to those of the next, a multiple of
 *	4 and at least a row's; 0: they follow each other. Several features may so write into one
 *	block. @activations then ends with the last sample's row. 0 for a sequence feature in CSR
 *	form
 *
 * The offset of an array in its region is a multiple of the element width, and its length is
 * exactly count x width. A PARTITIONED feature has no array except @activations.
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
	__u64 activation_stride;
};

/*
 * The row pointers of a core count from the core's first item, as in JAX without MINIBATCHING.
 * Without this flag they count from the first item of the arrays.
 */
#define EMBENG_STACK_OWN_PARTS (1u << 0)

/**
 * struct embeng_lookup_stack - the samples of some features as partitioned CSR
 * @member_count: members of this stack, from 1. The members of all stacks are in one array, in
 *	the order of the stacks
 * @cores: cores of the grid, that is of all devices together
 * @device_cores: cores of the device that has these samples; it divides @cores
 * @minibatches: minibatches of each core, 1 to EMBENG_PARTITION_BUCKETS
 * @row_stride: row pointers of a minibatch, at least @cores
 * @flags: EMBENG_STACK_*
 * @item_count: items in each of @tokens, @samples and @gains
 * @row_pointers: [@device_cores][@minibatches][@row_stride] s32, the index at which each
 *	partition ends. Within a core they never fall, and they end inside the core's part. The
 *	engine ignores entries from @cores on
 * @tokens: [@item_count] s32, the row of the item on the core that holds it
 * @samples: [@item_count] s32, the sample of the item on its core
 * @gains: [@item_count] f32, the factor of the item's row
 * @bounds: [2][@device_cores] u64: first the index of each core's first item, a multiple of 8;
 *	then one past each core's last item. Cores are in order, and none begins before the one
 *	before it ends
 * @reserved: 0
 *
 * This is the format that a PARTITION writes and that TensorFlow and JAX share.
 * &struct embeng_partition explains grid, partition, token and the rows of a core. @bounds is
 * the last array behind &struct embeng_partition_result. A partition begins at the first
 * multiple of 8 from the end of the one before it. The engine reads nothing outside the
 * partitions, so padding and gaps may hold anything.
 *
 * The activation of a sample is the sum of gain * row over its items, in their order. The
 * combiner of the table, which is not MAX, plays no part: the gains have it. Sequence features are
 * pooled. In the update, each row receives the sum of gain * gradient; the step keeps what it
 * needs for that. Tokens must name rows of the member's table, whatever the table's policy for
 * ids out of range. Each item counts as one id in limits and statistics.
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
 * struct embeng_lookup_member - the samples and rows of one feature in a stack
 * @feature: index of a feature of form PARTITIONED, each of which occurs exactly once in all
 *	stacks; or EMBENG_NO_INDEX for samples of no feature here, whose items are skipped
 * @rotation: rotation of the feature's table, below the stack's @cores
 * @column_offset: first column of the table in the stack: a multiple of @cores, and at most
 *	2^31 - 1 times @cores
 * @sample_count: samples of the feature, a multiple of the stack's @device_cores
 * @reserved: 0
 *
 * The fields mean the same as in &struct embeng_partition_feature. Members are in the order in
 * which their samples follow each other on a core.
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
 * struct embeng_update - head of the descriptor of an UPDATE
 * @feature_count: number of features; must be the model's
 * @feature_stride: bytes from one &struct embeng_update_feature to the next; they follow this
 *	head
 * @rate_count: number of dynamic rates and hyperparameters; must be the model's
 * @flags: EMBENG_UPDATE_MULTIPLIER or 0
 * @model_hash: &embeng_blob_header.hash of the loaded model
 * @rates: values [@rate_count] f32 of the RATEs; not given if @rate_count is 0. They are finite,
 *	but a limit of a clip may be infinite, and each is within the range of the number of the
 *	table that it stands for. The replicas of one step must give the same bits
 * @multiplier: with EMBENG_UPDATE_MULTIPLIER, f32 bits of a finite factor: the summed gradient of
 *	each row is multiplied by it before it is clipped, by 0 too. Otherwise 0
 * @reserved1: 0
 *
 * Gradients that are not finite follow the model's policy (&embeng_record_engine.flags). By default
 * the step fails with EMBENG_STATUS_GRADIENT before any row is touched. The UPDATE that failed was
 * then not given, and may be given again.
 */
struct embeng_update {
	__u32 feature_count;
	__u32 feature_stride;
	__u32 rate_count;
	__u32 flags;
	__u64 model_hash;
	struct embeng_mem rates;
	__u32 multiplier;
	__u32 reserved1[3];
};

/* @multiplier is given; without this flag gradients are taken as they are. */
#define EMBENG_UPDATE_MULTIPLIER (1u << 0)

/*
 * The program has seen that all these gradients are finite, so the engine need not look. It looks
 * all the same where the model's policy is not to refuse them.
 */
#define EMBENG_UPDATE_CHECKED (1u << 0)
/*
 * The gradients are sums that somebody made of a row's gradients in one replica, for a table that
 * is spread over several hosts. Each is a run of its own: it is taken with its bits, the sign of a
 * zero too, where a gradient would be added to +0. So the row is updated as if the replica had
 * given the gradients themselves. A device without EMBENG_CAP_SUMS refuses the flag with RESERVED.
 *
 * The feature's LOOKUP was of form DENSE or ROWS, and its ids are the rows that the sums are of;
 * its table has not BY_FREQUENCY, whose counts sums do not have. Anything else fails with FORM. A
 * table without ACCUMULATE gets one sum for each occurrence, in their order, and applies each by
 * itself. Statistics count each sum as one id. The policy for gradients that are not finite sees
 * sums alone, so whoever makes them looks at the gradients; with CHECKED the engine then refuses no
 * sum.
 */
#define EMBENG_UPDATE_SUMS (1u << 1)

/**
 * struct embeng_update_feature - gradients of one feature in an UPDATE
 * @feature: index of the feature; all features are given, in model order
 * @flags: EMBENG_UPDATE_CHECKED, EMBENG_UPDATE_SUMS or 0
 * @gradients: f32 array of the same shape as the activations of the step's LOOKUP. If it is
 *	not given, all gradients are zero; the optimizer still runs on the rows of the batch
 */
struct embeng_update_feature {
	__u32 feature;
	__u32 flags;
	struct embeng_mem gradients;
};

/* -- ROWS_* -------------------------------------------------------------- */

enum embeng_fill {
	EMBENG_FILL_CONSTANT = 0,	  /* the number a */
	EMBENG_FILL_UNIFORM = 1,	  /* uniform in [a, b) */
	EMBENG_FILL_TRUNCATED_NORMAL = 2, /* mean a, deviation b, cut off at two deviations */
};

/* Value of &embeng_rows.slot for the parameters. Slot k of the optimizer has the value k + 1. */
#define EMBENG_SLOT_PARAMETERS 0u

/**
 * struct embeng_rows - descriptor of ROWS_WRITE, ROWS_READ, ROWS_FILL and SNAPSHOT_READ
 * @table: index of the table
 * @slot: EMBENG_SLOT_PARAMETERS, or 1 + the index of an optimizer slot
 * @first: first row of the range; 0 with a list of ids
 * @count: number of rows; 0 is allowed and does nothing
 * @ids: list [@count] of __u64 row numbers in place of the range; not given for a range
 * @data: rows [@count][width] f32, read by ROWS_WRITE and written by ROWS_READ and
 *	SNAPSHOT_READ; not given for ROWS_FILL. The width is embeng_slot_width()
 * @fill: enum embeng_fill for ROWS_FILL, otherwise 0
 * @a: f32 bits, first number of the distribution
 * @b: f32 bits, second number of the distribution
 * @reserved: 0
 * @seed: for ROWS_FILL, key of the counter-based generator (Philox4x32-10, whose counter is
 *	made of row, column and slot), so that a row gets the same numbers for any number of
 *	cores. Row and column are those of the whole table where the table is a part of one
 *	(&struct embeng_record_shard)
 *
 * If a row occurs twice in a ROWS_WRITE, the later one counts. If any row is outside the
 * table, nothing is written. Neither is it if a number is not finite (unless the model has
 * EMBENG_ENGINE_GRADIENTS_ALLOW), or if a slot cannot have it (EMBENG_OPTIMIZER_TABLE): the
 * command fails with EMBENG_STATUS_NUMBER, and the element counts from the first one of @data. The
 * numbers of a ROWS_FILL follow the same rule.
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
 * STAGE replaces tables and slots all at once. Each gets a staged copy, which ROWS_WRITE with
 * EMBENG_CMD_STAGED fills and no other command sees; then one COMMIT puts all staged copies in
 * place. A failure before the COMMIT leaves the tables as they were.
 */
enum embeng_stage {
	/*
	 * Makes a staged copy of one table or slot, all zero. Fails with NO_SPACE if the table
	 * memory does not hold it beside everything else.
	 */
	EMBENG_STAGE_BEGIN = 0,
	EMBENG_STAGE_COMMIT = 1, /* puts staged copies in place of the originals, ends a snapshot */
	EMBENG_STAGE_DROP = 2,	 /* frees all staged copies */
};

/* -- FREEZE -------------------------------------------------------------- */

/*
 * FREEZE has updates leave a table alone, from the step behind &embeng_cmd.after on, or change it
 * again ("DOC: Steps"). A model is loaded with no table frozen. A table without an optimizer is
 * frozen for good: OFF fails with TRAINING.
 */
enum embeng_freeze {
	EMBENG_FREEZE_OFF = 0,
	EMBENG_FREEZE_ON = 1,
	EMBENG_FREEZE_ASK = 2, /* changes nothing */
};

/* -- SNAPSHOT ------------------------------------------------------------ */

/*
 * A snapshot lets a program read all tables and slots as they were after one step while later steps
 * are applied. SNAPSHOT begins one, tells its number and the optimizer's step count, and takes no
 * longer for large tables than for small ones. SNAPSHOT_READ reads rows of it, as ROWS_READ does,
 * whatever step the model is at by then. SNAPSHOT_END takes the first tables of the model out of
 * it; with all of them the snapshot ends.
 *
 * A row that changes while its table is in a snapshot is first copied, with its slots, once. The
 * copies and 4 bytes for each row take table memory. A command that changes rows never fails for
 * want of it: the snapshot ends then, and its reads fail with EMBENG_STATUS_SNAPSHOT. A model has
 * one snapshot at a time: SNAPSHOT ends the one before, and so does a STAGE that puts staged
 * copies in place.
 */

/* -- STATS --------------------------------------------------------------- */

#define EMBENG_STATS_HOT 32
#define EMBENG_STATS_CORES 64

/**
 * struct embeng_hot_row - a row that occurs often
 * @row: row of the table
 * @count: occurrences counted. It never exceeds the true number and falls short of it by at
 *	most &embeng_stats.hot_error
 */
struct embeng_hot_row {
	__u64 row;
	__u64 count;
};

/**
 * struct embeng_stats - counts of one table since they were last cleared, written by STATS
 * @table: index of the table
 * @core_count: number of entries of @core_ids that are used
 * @ids: ids that training batches asked for. Dropped ids are counted, ids beyond the length of
 *	a sequence are not
 * @unique_ids: distinct rows of each step, summed over the steps
 * @dropped_ids: ids out of range that the table's policy dropped
 * @clamped_ids: ids out of range that the table's policy clamped
 * @zeroed_ids: ids out of range that the table's policy read as zeros
 * @steps: number of steps counted
 * @updated_rows: rows that updates wrote because a batch touched them
 * @untouched_rows: rows that a non-lazy optimizer updated with a gradient of 0
 * @nonfinite_activations: activations with a number that is not finite, one for each sample or
 *	position of a sequence. Lookups of inference are counted, too
 * @nonfinite_rows: rows that had a number that is not finite, in themselves or in a slot, after an
 *	update of them; a row is counted again at each such update
 * @nonfinite_gradient_rows: rows of a step that a gradient reached which is not finite, summed over
 *	the steps: dropped ones or, with EMBENG_ENGINE_GRADIENTS_ALLOW, updated ones
 * @hot_count: number of entries of @hot that are used
 * @hot_error: bound on how far the counts in @hot may fall short
 * @hot: rows that occur most often, the most frequent first; rows with equal counts are in
 *	ascending order
 * @core_ids: number of ids by the core that holds their row
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
	__u64 nonfinite_activations;
	__u64 nonfinite_rows;
	__u64 nonfinite_gradient_rows;
	__u64 hot_count;
	__u64 hot_error;
	struct embeng_hot_row hot[EMBENG_STATS_HOT];
	__u64 core_ids[EMBENG_STATS_CORES];
};

/* -- PARTITION ----------------------------------------------------------- */

/*
 * A PARTITION brings the samples of one device into the form of partitioned CSR. It needs no
 * model. For each core of the device, for each minibatch and for each core of the grid there is
 * one partition: the ids whose rows are held by that core of the grid.
 *
 * All columns of the grid are one stack of tables. Id i of a table is column
 * (i + rotation) % cores + i / cores * cores + column_offset of the stack. A column is in
 * partition column % cores, with the token column / cores. Sample s of a feature with n samples
 * belongs to core s / (n / device_cores) of the device. There it is row
 * s % (n / device_cores), counted behind the rows of the features before it.
 *
 * The items of a partition are sorted by bucket (with minibatches), then token, then row. Equal
 * ids of one row become one item whose gain is the sum of their gains, added in the order given.
 * The gain of an id is its weight times the combiner's scale for the sample, which is made of
 * all weights of the sample; it is 0 if there is no such scale.
 *
 * Each partition begins at a multiple of 8 items, and its row pointer is the index at which it
 * ends. The items from there to the next multiple of 8 are padding. Row pointers of a minibatch
 * beyond the last core hold the index at which the next minibatch begins. Nothing is written
 * behind the last item of a core and its padding.
 */
enum embeng_flavour {
	/* Padding is 2^31 - 1 and, for gains, 2^31. The cores stand one behind the other. */
	EMBENG_FLAVOUR_TF = 0,
	/*
	 * Padding is 2^31 - 1 and, for gains, NaN. The number of cores is a power of two. Without
	 * MINIBATCHING each core has its own part of the buffer, and row pointers count from there.
	 */
	EMBENG_FLAVOUR_JAX = 1,
};

enum embeng_bucket {
	EMBENG_BUCKET_DIV = 0,	/* column / (columns / 64, rounded up), at most 63 */
	EMBENG_BUCKET_MOD = 1,	/* column % 64 */
	EMBENG_BUCKET_HASH = 2, /* low bits of HighwayHash64 of the column's four bytes */
};

#define EMBENG_PARTITION_BUCKETS 64

#define EMBENG_PARTITION_MINIBATCHING (1u << 0) /* split into minibatches beyond the limits */
#define EMBENG_PARTITION_DROPPING (1u << 1)	/* leave out and count what still does not fit */

#define EMBENG_PARTITION_CORES_MAX 65536u
#define EMBENG_PARTITION_DEVICE_CORES_MAX 64u
#define EMBENG_PARTITION_FEATURES_MAX 4096u

/**
 * struct embeng_partition - head of the descriptor of a PARTITION
 * @flavour: enum embeng_flavour
 * @bucket: enum embeng_bucket
 * @flags: EMBENG_PARTITION_*
 * @feature_count: number of features of the stack; they are in the stack's order
 * @feature_stride: bytes from one &struct embeng_partition_feature to the next; they follow
 *	this head
 * @cores: cores of the grid, that is of all devices together
 * @device_cores: cores of this device; it divides @cores
 * @reserved: 0
 * @columns: columns of the grid, that is rows of the whole stack: a multiple of @cores, at most
 *	2^31
 * @max_ids: most ids of a partition; 0 means no limit
 * @max_unique_ids: most distinct columns of a partition; 0 means no limit
 * @buffer: items that the device's buffer holds; 0 means as many as are needed. TF: a multiple
 *	of 8. JAX: it is rounded up to 8 for each core. With @max_ids it is at most
 *	@max_ids (rounded up to 8) times @device_cores times @cores, and with MINIBATCHING times
 *	EMBENG_PARTITION_BUCKETS; 0 then means exactly that many
 * @row_pointers: output [@device_cores][minibatches][@cores rounded up to 8] s32, counted from
 *	the start of the device's buffer or of the core's part of it (see EMBENG_FLAVOUR_JAX)
 * @tokens: output array of s32
 * @samples: output array of s32, of the same length as @tokens
 * @gains: output array of f32, of the same length as @tokens
 * @result: output &struct embeng_partition_result with the arrays that follow it
 * @splits: mask of places at which buckets are split in any case, because other devices or
 *	stacks split there; in the flavour's order of bits (see
 *	&embeng_partition_result.splits), below 2^63. It is 0 without MINIBATCHING
 *
 * The first four output arrays may be longer than what is written. A PARTITION that fails
 * writes none of them.
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
 * struct embeng_partition_feature - samples of one feature in a PARTITION
 * @form: CSR, DENSE or COO of enum embeng_form
 * @id_width: bytes of an id, 4 or 8, signed
 * @offset_width: bytes of a row offset or sample number, 4 or 8, signed; 0 for DENSE
 * @combiner: enum embeng_combiner, not MAX
 * @rotation: rotation of the table, below the grid's @cores
 * @rows: rows of the table; all ids are below it
 * @column_offset: first column of the table in the stack, a multiple of the grid's @cores
 * @sample_count: samples of this device, a multiple of its cores
 * @id_count: number of ids; equal to @sample_count for DENSE
 * @offsets: CSR: row offsets [@sample_count + 1], which begin with 0, never fall and end with
 *	@id_count. COO: the sample of each id [@id_count], never falling
 * @ids: ids [@id_count]
 * @weights: weights [@id_count] f32; not given means that each weight is 1. DENSE takes none
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
 * struct embeng_partition_result - head of the results of a PARTITION
 * @dropped_ids: number of ids left out. For ids that exceed @max_ids or @max_unique_ids, JAX
 *	counts each id, and TF counts equal ids of a sample once. For ids that the buffer does
 *	not hold, both count equal ids of a sample once
 * @splits: mask of the places at which buckets are split into minibatches. TF: bit 0 is in the
 *	middle, bits 1 and 2 are in the middles of the halves, and so on. JAX: bits 0 to 31 are
 *	between the two buckets of each pair, bits 32 to 47 between pairs, and so on up to bit
 *	62 in the middle
 * @row_pointers: number of row pointers written
 * @items: one past the index of the last item written
 * @buffer: items that the buffer holds, as given or as the limits ask for
 * @minibatches: minibatches of each core
 * @row_stride: row pointers of each minibatch
 *
 * These arrays follow the structure:
 *   __u32 [cores]		ids of each partition, the most of any core of the device
 *   __u32 [cores]		distinct columns of each partition, the most of any core
 *   __u64 [device_cores]	items that each core needs, each partition rounded up to 8
 *   __u64 [device_cores]	index of each core's first item
 *   __u64 [device_cores]	one past the index of each core's last item
 * The first three arrays count all ids and columns, also those that were dropped later.
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

/* -- UNIQUE, POOL, SUM --------------------------------------------------- */

/*
 * Three commands for tables whose rows are spread over hosts. They need no model and take no step,
 * so a host runs them for batches of any model beside what it does with its own.
 *
 *   UNIQUE  tells which rows a batch reads, each of them once, those of each host together, and
 *	     where in this list the row of each id is
 *   POOL    makes the activations of the batch out of the rows, once the hosts have sent them
 *   SUM     adds the gradients of the activations up, for each row of the list
 *
 * The host of a row reads it by a LOOKUP of form ROWS, and takes the sums of a replica in an UPDATE
 * with EMBENG_UPDATE_SUMS. Activations, rows and slots then have the bits that they have where the
 * whole table is on one host.
 *
 * All three have a descriptor of the same form: a head, then tables, then features. Features of one
 * table have their ids, and so their occurrences, in the order in which they are given. A device
 * without EMBENG_CAP_EXCHANGE refuses the commands with OPCODE.
 *
 * UNIQUE reads ids, row offsets and the sizes of the tables. The list of a table has its rows by
 * host and, of one host, by their number there. An id has no row, and its place is -1, where the
 * policy for ids out of range leaves it out or reads zeros, or where it stands beyond the length of
 * a sequence. So the list has exactly the rows that a LOOKUP of the batch would read, an UPDATE of
 * it change.
 *
 * POOL and SUM read places, row offsets and weights: their ids are places in the list of the table,
 * and their rows are the rows of the list. A place of -1 is out of range; with the policy ZERO it
 * stands for a row of zeros, with DROP for none, as in a LOOKUP of the table. For a table of policy
 * DROP the policy here is DROP, for all others it may be ZERO.
 *
 * POOL writes activations with the bits of a LOOKUP. The rows are as they came: nothing is
 * quantized.
 *
 * SUM writes the sum of each row's gradients in one replica: occurrences in the order of feature,
 * sample and position, in runs of 256, added from left to right. A row of the list that no id names
 * gets zeros. With the combiner MAX it reads the rows, too. It fails with GRADIENT if a gradient is
 * not finite, unless EMBENG_EXCHANGE_NON_FINITE is given; then nothing is written.
 *
 * Nothing that these commands fail with has any effect, but what they write may be written in part.
 * With a status of ID, OFFSETS, WEIGHT or GRADIENT the completion says which feature and element.
 */

/* Weights, and the gradients of a SUM, may be infinite or NaN. */
#define EMBENG_EXCHANGE_NON_FINITE (1u << 0)

/* The host that has a row, by the rules of embeng/shard.h. */
enum embeng_placement {
	EMBENG_PLACEMENT_DIV = 0, /* successive rows; the first hosts have one more */
	EMBENG_PLACEMENT_MOD = 1, /* row r is number r / hosts of host r % hosts */
};

#define EMBENG_EXCHANGE_TABLES_MAX 4096u
#define EMBENG_EXCHANGE_FEATURES_MAX 4096u
#define EMBENG_EXCHANGE_HOSTS_MAX 65536u

/**
 * struct embeng_row_exchange - head of the descriptor of UNIQUE, POOL and SUM
 * @table_count: number of tables, from 1
 * @table_stride: bytes from one &struct embeng_exchange_table to the next; they follow this head
 * @feature_count: number of features, from 1
 * @feature_stride: bytes from one &struct embeng_exchange_feature to the next; they follow the
 *	tables
 * @flags: EMBENG_EXCHANGE_*; 0 for UNIQUE
 * @hosts: UNIQUE: hosts over which the rows are spread, from 1. Otherwise 0
 * @placement: UNIQUE: enum embeng_placement. Otherwise 0
 * @reserved: 0
 *
 * The descriptor ends with the last feature. Strides are multiples of 8.
 */
struct embeng_row_exchange {
	__u32 table_count;
	__u32 table_stride;
	__u32 feature_count;
	__u32 feature_stride;
	__u32 flags;
	__u32 hosts;
	__u32 placement;
	__u32 reserved;
};

/**
 * struct embeng_exchange_table - one table in an exchange of rows
 * @row_count: UNIQUE: rows of the whole table, from 1. POOL and SUM: rows of the list
 * @dim: columns, 1 to &embeng_caps.dim; 0 for UNIQUE
 * @combiner: enum embeng_combiner; 0 for UNIQUE
 * @out_of_range: enum embeng_out_of_range; POOL and SUM do not take CLAMP
 * @reserved: 0
 * @rows: UNIQUE: output, room for as many __u64 as there are distinct rows: the number that each
 *	has at its host. Fails with COUNT and the field ROWS if the room is too small. POOL, and SUM
 *	with the combiner MAX: rows [@row_count][@dim] f32. Otherwise not given
 * @result: UNIQUE: output, __u64 [hosts], how many rows of the list are each host's. SUM: output,
 *	sums [@row_count][@dim] f32. Not given for POOL
 */
struct embeng_exchange_table {
	__u64 row_count;
	__u32 dim;
	__u8 combiner;
	__u8 out_of_range;
	__u16 reserved;
	struct embeng_mem rows;
	struct embeng_mem result;
};

/**
 * struct embeng_exchange_feature - one feature in an exchange of rows
 * @table: index of its table in this descriptor
 * @max_sequence_length: as in &struct embeng_record_feature
 * @form: enum embeng_form: CSR, DENSE or POOLED
 * @id_width: bytes of an id or place, 4 or 8, signed
 * @offset_width: bytes of a row offset, 4 or 8, signed; 0 for DENSE
 * @reserved: 0
 * @reserved1: 0
 * @sample_count: number of samples, S
 * @id_count: number of ids, N; equal to S for DENSE
 * @offsets: row offsets [S + 1], as in a LOOKUP
 * @ids: UNIQUE: ids [N]. POOL and SUM: places [N]
 * @weights: POOL and SUM: weights [N] f32; not given means that each weight is 1. Not given for
 *	UNIQUE
 * @data: UNIQUE: output, places [N] s32. POOL: output, activations f32, as in a LOOKUP. SUM:
 *	gradients f32 of the same shape; if they are not given, all are zero
 */
struct embeng_exchange_feature {
	__u32 table;
	__u32 max_sequence_length;
	__u8 form;
	__u8 id_width;
	__u8 offset_width;
	__u8 reserved;
	__u32 reserved1;
	__u64 sample_count;
	__u64 id_count;
	struct embeng_mem offsets;
	struct embeng_mem ids;
	struct embeng_mem weights;
	struct embeng_mem data;
};

/* -- FENCE --------------------------------------------------------------- */

/**
 * struct embeng_fence_point - a point in a queue that a FENCE waits for
 * @queue: device queue number of a queue of the same context
 * @index: free-running index of a command of that queue. The FENCE completes when this command
 *	and all before it have completed. If the engine has not yet seen the command in the
 *	queue, the FENCE also waits for it to be submitted
 */
struct embeng_fence_point {
	__u32 queue;
	__u32 index;
};

#define EMBENG_FENCE_POINTS_MAX 64

/* -- model blob ---------------------------------------------------------- */

#define EMBENG_BLOB_MAGIC 0x4d424d45u /* "EMBM" */
#define EMBENG_BLOB_VERSION 1u
#define EMBENG_BLOB_LENGTH_MAX (16u << 20) /* MODEL_LOAD takes no longer one */

/**
 * struct embeng_blob_header - head of a model blob
 * @magic: EMBENG_BLOB_MAGIC
 * @version: EMBENG_BLOB_VERSION
 * @length: bytes of the whole blob with this head, a multiple of 8
 * @record_count: number of records that follow
 * @crc32c: CRC-32C of the whole blob, taken with 0 in this field
 * @hash: FNV-1a 64 of all mandatory records; it identifies the model
 *
 * The records fill the blob to its end. The engine checks the whole blob before it acts on any
 * of it.
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
	EMBENG_RECORD_ENGINE = 1,  /* occurs once, as the first record */
	EMBENG_RECORD_TABLE = 2,   /* in table order */
	EMBENG_RECORD_FEATURE = 3, /* in feature order, after the tables */
	EMBENG_RECORD_RATE = 4,	   /* a number that each UPDATE gives, in tag order; payload 0 */
	EMBENG_RECORD_PROGRAM = 5, /* an optimizer program; no device takes one yet */
	EMBENG_RECORD_NAME = 6,	   /* optional: &struct embeng_record_name */
	EMBENG_RECORD_QUANTIZATION = 7, /* belongs to a table; after all tables, in table order */
	EMBENG_RECORD_SHARD = 8,	/* likewise; the two may be mixed */
};

#define EMBENG_RECORD_MANDATORY (1u << 0)

/**
 * struct embeng_record - head of every record
 * @type: enum embeng_record_type
 * @flags: EMBENG_RECORD_MANDATORY or 0. A device that does not know the type refuses the blob
 *	if the record is mandatory, and skips the record otherwise
 * @length: bytes of the whole record with this head, a multiple of 8
 */
struct embeng_record {
	__u16 type;
	__u16 flags;
	__u32 length;
};

#define EMBENG_ENGINE_PIPELINING (1u << 0)
/*
 * The policy for gradients that are not finite. Without one of these flags an UPDATE that has some
 * is refused. DROP leaves each row as it is that such a gradient reaches in the step, slots too,
 * and counts it. ALLOW takes them as they are and counts their rows; rows and slots may then be
 * written with numbers that are not finite.
 *
 * Weights and gains that are not finite are refused, too, unless the flag is ALLOW: then they are
 * taken as they are, but for features with EMBENG_FEATURE_FINITE_WEIGHTS.
 */
#define EMBENG_ENGINE_GRADIENTS_DROP (1u << 1)
#define EMBENG_ENGINE_GRADIENTS_ALLOW (1u << 2) /* not together with DROP */

/**
 * struct embeng_record_engine - options of the whole model
 * @head: head with type ENGINE
 * @replicas: number of replicas, 1 to &embeng_caps.replicas
 * @flags: EMBENG_ENGINE_*
 * @table_count: number of TABLE records
 * @feature_count: number of FEATURE records
 * @rate_count: number of RATE records
 * @step_depth: training steps that may be ahead of the last applied update; 0 means the
 *	device's &embeng_caps.step_depth
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
	EMBENG_COMBINER_MAX = 3, /* the largest element of each column of a sample's rows */
};

enum embeng_out_of_range {
	EMBENG_OUT_OF_RANGE_ERROR = 0,
	EMBENG_OUT_OF_RANGE_CLAMP = 1,
	EMBENG_OUT_OF_RANGE_DROP = 2,
	EMBENG_OUT_OF_RANGE_ZERO = 3,
};

/**
 * EMBENG_OPTIMIZER_TABLE - every optimizer except NONE
 *
 * X(name, value). The list below gives for each optimizer its hyperparameters, in the order of
 * &embeng_record_table.hyperparameter, and after the semicolon its slots, in the order of
 * &embeng_record_table.slot_start. "-" means that it has none. All hyperparameters are finite;
 * [0, 1] includes 1 and [0, 1) does not. A switch is +0.0 or 1.0.
 *   SGD               -; -
 *   ADAGRAD           epsilon (>= 0); accumulators
 *   ADAGRAD_MOMENTUM  momentum, use_nesterov (switch), exponent (> 0), beta2 ([0, 1]),
 *                     epsilon (> 0); accumulators, momenta
 *   FTRL              learning_rate_power (<= 0), l1_regularization_strength (>= 0),
 *                     l2_regularization_strength (>= 0), beta (>= 0),
 *                     multiply_linear_by_learning_rate (switch); accumulators, linears
 *   ADAM              beta_1 ([0, 1)), beta_2 ([0, 1)), epsilon (> 0), sum_inside_sqrt (switch;
 *                     ignored if bias_correction is 1), bias_correction (switch), epsilon_hat
 *                     (switch; ignored if bias_correction is 0); momenta, velocities
 *   MOMENTUM          momentum, use_nesterov (switch); momenta
 *   LION              beta1 ([0, 1)), beta2 ([0, 1)); momenta
 *   RMS_PROP          rho ([0, 1]), momentum, epsilon (> 0); ms, mom
 *   CENTERED_RMS_PROP rho ([0, 1]), momentum, epsilon (> 0); ms, mom, mg
 *   ADADELTA          rho ([0, 1]), epsilon (> 0); accumulators, updates
 *   PROXIMAL_ADAGRAD  l1 (>= 0), l2 (>= 0); accumulators
 *   ASSIGN            -; -
 *   LAPROP            b1 ([0, 1)), b2 ([0, 1)), eps (> 0); mu, nu
 *   PROXIMAL_YOGI     l1 (>= 0), l2 (>= 0), beta1 ([0, 1)), beta2 ([0, 1)), epsilon (> 0); v, m
 *   BOUNDED_ADAGRAD   update_accumulator_first (switch), max_var_update (>= 0),
 *                     max_accumulator (>= 0); accumulators
 *   ONLINE_YOGI       l1 (>= 0), l2 (>= 0), beta2 ([0, 1)); vs, linears
 *   FREQUENCY_ESTIMATOR  tau ([0, 1]), max_delta (> 0), outlier_threshold (>= 0),
 *                     weight_exponent (not used in the update); last_hit_step. Its table has
 *                     one column, and its learning rate is the step
 *   FREQUENCY_AWARE_ADAGRAD  l1_regularization_strength (>= 0),
 *                     l2_regularization_strength (>= 0), max_lr_multiplier (> 0),
 *                     probability_exponent, accumulator_decay ([0, 1]),
 *                     initial_accumulator_value (> 0); accumulators, counters
 *   MDL_ADAGRAD_LIGHT l2 (>= 0), lr_power (<= 0), min_servable_mdl_benefit,
 *                     mdl_mix_in_margin (>= 0), mdl_benefit_rampup_coeff (>= 0),
 *                     mdl_min_weight ([0, 1]), benefit_revisit_scale ([0, 1]),
 *                     max_event_benefit (>= 0), max_total_benefit (>= 0),
 *                     mdl_hard_limit (>= 0), hard_limit_min_benefit (switch),
 *                     mdl_regularize (switch); accumulators, weights, benefits
 *   ROWWISE_ADAGRAD   epsilon (> 0), mean_gradient (switch); accumulators (one number a row)
 *   PARTIAL_ROWWISE_ADAM  beta_1 ([0, 1)), beta_2 ([0, 1)), epsilon (> 0); momenta, velocities
 *                     (one number a row)
 * The rest of the 16 hyperparameters is 0. ADAM with bias_correction, LAPROP, PARTIAL_ROWWISE_ADAM
 * and FREQUENCY_AWARE_ADAGRAD compute with a step: it is the table's step count (STATE_READ)
 * plus 1, or for FREQUENCY_AWARE_ADAGRAD with EMBENG_TABLE_STEP_DYNAMIC the number given there.
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
	X(MDL_ADAGRAD_LIGHT, 19)               \
	X(ROWWISE_ADAGRAD, 20)                 \
	X(PARTIAL_ROWWISE_ADAM, 21)

enum embeng_optimizer_kind {
	EMBENG_OPTIMIZER_NONE = 0, /* no update changes the table, and it has no slots */
#define EMBENG_OPTIMIZER_ENUM(name, value) EMBENG_OPTIMIZER_##name = value,
	EMBENG_OPTIMIZER_TABLE(EMBENG_OPTIMIZER_ENUM)
#undef EMBENG_OPTIMIZER_ENUM
};

/**
 * embeng_slot_width() - tell how many numbers a slot has for each row
 * @optimizer: enum embeng_optimizer_kind
 * @slot: as in &embeng_rows.slot
 * @dim: columns of the table
 *
 * Return: 1 for a slot that has one number a row at EMBENG_OPTIMIZER_TABLE, else @dim.
 */
static inline __u32 embeng_slot_width(__u32 optimizer, __u32 slot, __u32 dim)
{
	if (optimizer == EMBENG_OPTIMIZER_ROWWISE_ADAGRAD && slot == 1)
		return 1;
	if (optimizer == EMBENG_OPTIMIZER_PARTIAL_ROWWISE_ADAM && slot == 2)
		return 1;
	return dim;
}

#define EMBENG_TABLE_ACCUMULATE (1u << 0)    /* sum the gradients of a row, then apply once */
#define EMBENG_TABLE_DECAY_BY_RATE (1u << 1) /* multiply weight decay by the learning rate */
#define EMBENG_TABLE_RATE_DYNAMIC (1u << 2)  /* @rate is an index of a RATE, not f32 bits */
/*
 * Every step also updates the rows that no batch touched, with gradient 0. Only for ADAM and
 * LION, and only together with ACCUMULATE.
 */
#define EMBENG_TABLE_NON_LAZY (1u << 3)
/*
 * The optimizer computes with the value of the RATE @step_rate as its step, where 0 stands for
 * 1. Only for FREQUENCY_AWARE_ADAGRAD.
 */
#define EMBENG_TABLE_STEP_DYNAMIC (1u << 4)
/*
 * Weight decay is L2 regularization: @weight_decay times the row is added to the gradient, after
 * its clip, in place of being taken from the row. Not for ASSIGN and FREQUENCY_ESTIMATOR, and not
 * together with DECAY_BY_RATE.
 */
#define EMBENG_TABLE_DECAY_GRADIENT (1u << 5)
/*
 * The sum of a row's gradients is divided by the number of its occurrences in the step, in all
 * features and replicas, before anything else is done with it. Only together with ACCUMULATE.
 */
#define EMBENG_TABLE_BY_FREQUENCY (1u << 6)
/*
 * Numbers that each UPDATE gives anew. With its flag, a number of the record is the index of a
 * RATE, as @rate is with RATE_DYNAMIC, and the step computes as if the value were here. A value
 * that this record could not have is refused with EMBENG_STATUS_NUMBER. Only with an optimizer, and
 * HYPERPARAMETER_DYNAMIC(i) only if it has the hyperparameter i.
 */
#define EMBENG_TABLE_WEIGHT_DECAY_DYNAMIC (1u << 7)
#define EMBENG_TABLE_CLIP_GRADIENT_MIN_DYNAMIC (1u << 8)
#define EMBENG_TABLE_CLIP_GRADIENT_MAX_DYNAMIC (1u << 9)
#define EMBENG_TABLE_CLIP_WEIGHT_MIN_DYNAMIC (1u << 10)
#define EMBENG_TABLE_CLIP_WEIGHT_MAX_DYNAMIC (1u << 11)
#define EMBENG_TABLE_MAX_NORM_DYNAMIC (1u << 12)
#define EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(i) (1u << (16 + (i)))

#define EMBENG_SLOTS_MAX 7
#define EMBENG_HYPERPARAMETERS_MAX 16
/* Numbers of a table that can be RATEs: rate, step, the six above and the hyperparameters. */
#define EMBENG_TABLE_RATES_MAX (8u + EMBENG_HYPERPARAMETERS_MAX)

/**
 * struct embeng_record_table - a table of the model
 * @head: head with type TABLE
 * @rows: number of rows (size of the vocabulary), from 1
 * @dim: number of columns, 1 to &embeng_caps.dim
 * @flags: EMBENG_TABLE_*
 * @combiner: enum embeng_combiner
 * @out_of_range: enum embeng_out_of_range, the policy for ids outside the table
 * @optimizer: enum embeng_optimizer_kind
 * @slot_count: number of slots; must be the optimizer's
 * @rate: learning rate: f32 bits or, with EMBENG_TABLE_RATE_DYNAMIC, the index of a RATE
 * @weight_decay: f32 bits; 0 means no decay
 * @clip_gradient_min: f32 bits; -inf means no lower bound
 * @clip_gradient_max: f32 bits; +inf means no upper bound
 * @clip_weight_min: f32 bits; -inf means no lower bound
 * @clip_weight_max: f32 bits; +inf means no upper bound
 * @slot_start: f32 bits of the number that fills each slot at MODEL_LOAD; the parameters start
 *	at 0
 * @hyperparameter: f32 bits, in the order given at EMBENG_OPTIMIZER_TABLE
 * @step_rate: index of a RATE with EMBENG_TABLE_STEP_DYNAMIC, otherwise 0
 * @max_norm: f32 bits, from 0; a row that an update leaves longer than this, by the square root of
 *	the sum of its squares, is multiplied so that it has this length; 0 means no limit
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
	__u32 max_norm;
};

/**
 * struct embeng_record_quantization - simulated quantization of a table's rows in lookups
 * @head: head with type QUANTIZATION. A device without EMBENG_CAP_QUANTIZATION treats the
 *	record as unknown
 * @table: index of the table; each record names a higher one than the record before
 * @num_buckets: number of levels, from 2
 * @lower: f32 bits, finite
 * @upper: f32 bits, finite, above @lower
 *
 * LOOKUPs for training and for inference read y instead of each element x of a row. They compute
 * it in f32 and without contraction: q = (upper - lower) / (num_buckets - 1), c = x clipped to
 * [lower, upper], y = lower + q * floor((c - lower) / q + 0.5). NaN stays NaN. This happens
 * before weights and combiner are applied. Stored rows and gradients are not quantized, and
 * neither are the zeros that stand for ids without a row and for missing positions. The results
 * have no meaning if q is 0 or not finite. The source of the rule is QuantizationConfig of the
 * TPU embedding API.
 */
struct embeng_record_quantization {
	struct embeng_record head;
	__u32 table;
	__u32 num_buckets;
	__u32 lower;
	__u32 upper;
};

/**
 * struct embeng_record_shard - the place of a table in a larger one, of which it is a part
 * @head: head with type SHARD. A device without EMBENG_CAP_SHARDS treats the record as unknown
 * @table: index of the table; each record names a higher one than the record before
 * @first_column: column of the whole table that the table's first column is, at most @whole_dim
 *	less the table's dim
 * @whole_rows: rows of the whole table, from the table's rows to 2^63 - 1
 * @first_row: row of the whole table that row 0 is, at most @whole_rows less the table's rows
 * @row_step: rows of the whole table from one row to the next, from 1. The last row must be in the
 *	whole table; where the table has one row, the step means nothing
 * @whole_dim: columns of the whole table, from the table's dim. It may be above &embeng_caps.dim
 * @reserved: 0
 *
 * ROWS_FILL gives an element the number that it would have in the whole table: the generator's
 * counter is made of row @first_row + i * @row_step and column @first_column + j, where i and j are
 * the element's row and column here. So parts of a table on several devices are filled as if they
 * were one, with the same seed, slot and distribution. A slot that has one number a row at
 * EMBENG_OPTIMIZER_TABLE has this one in each part: its column is 0.
 *
 * Everything else is as without the record. Commands, statistics and faults count the rows of the
 * part from 0. The optimizer of a part has only its columns: what it computes from a whole row
 * (@max_norm of the TABLE, slots of one number, DROP of gradients that are not finite) differs from
 * what the whole table would have.
 */
struct embeng_record_shard {
	struct embeng_record head;
	__u32 table;
	__u32 first_column;
	__u64 whole_rows;
	__u64 first_row;
	__u64 row_step;
	__u32 whole_dim;
	__u32 reserved;
};

#define EMBENG_FEATURE_FINITE_WEIGHTS (1u << 0) /* with GRADIENTS_ALLOW, too */

/**
 * struct embeng_record_feature - a feature of the model
 * @head: head with type FEATURE
 * @table: index of the feature's table
 * @flags: EMBENG_FEATURE_*
 * @max_sequence_length: 0 for a pooled feature. Otherwise the feature is a sequence: position j
 *	of a sample is the row of its j-th id, ids beyond this length are ignored, and missing
 *	ids are zeros
 * @reserved: 0
 * @max_samples: most samples of a batch; 0 means the device's limit
 * @max_ids: most ids of a batch; 0 means the device's limit. The engine reserves memory for
 *	its private copies of ids at MODEL_LOAD from @max_samples and @max_ids; where they are
 *	0, the memory grows to the largest batch seen
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
 * struct embeng_record_name - name of a table, feature or rate, for people
 * @head: head with type NAME, not mandatory
 * @of: enum embeng_record_type of the record that is named
 * @index: index of that record among those of its type
 * @name: UTF-8, ended by a zero byte, padded to a multiple of 8 bytes
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
#define EMBENG_CAP_SIGNATURE_UNCHECKED (1u << 6) /* nobody has checked who signed the firmware */
#define EMBENG_CAP_QUANTIZATION (1u << 7)
#define EMBENG_CAP_PARTITIONED (1u << 8) /* LOOKUP takes partitioned CSR */
#define EMBENG_CAP_SUMS (1u << 9)	 /* UPDATE takes sums of a row's gradients */
#define EMBENG_CAP_STATS_NOW (1u << 10) /* STATS at whatever step the model is */
#define EMBENG_CAP_EXCHANGE (1u << 11)	 /* UNIQUE, POOL, SUM, and LOOKUP of form ROWS */
#define EMBENG_CAP_SHARDS (1u << 12)	 /* a model may have parts of larger tables */

/**
 * EMBENG_CAP_TABLE - every capability, in words
 *
 * X(name, key, words). The source of a firmware image switches a capability on by its key; one
 * with an empty key does not depend on the image.
 */
#define EMBENG_CAP_TABLE(X)                                    \
	X(MAPPED_QUEUES, "mapped_queues", "mapped queues")     \
	X(VALIDATED_QUEUES, "", "validated queues")            \
	X(PIPELINING, "pipelining", "pipelining")              \
	X(PROGRAMS, "programs", "optimizer programs")          \
	X(STATISTICS, "statistics", "statistics")              \
	X(MINIBATCHING, "minibatching", "minibatching")        \
	X(QUANTIZATION, "quantization", "quantization")        \
	X(PARTITIONED, "partitioned", "partitioned CSR")       \
	X(SUMS, "sums", "sums of gradients")                   \
	X(STATS_NOW, "stats_now", "statistics at any step")    \
	X(EXCHANGE, "exchange", "exchange of rows")            \
	X(SHARDS, "shards", "parts of tables")                 \
	X(SIGNATURE_UNCHECKED, "", "firmware signature unchecked")

/**
 * struct embeng_caps - capabilities of a device
 * @interface_major: EMBENG_INTERFACE_MAJOR that the device speaks
 * @interface_minor: EMBENG_INTERFACE_MINOR that the device speaks
 * @features: EMBENG_CAP_*
 * @cores: engine cores. Rows are spread over them, and results do not depend on their number
 * @queues: queues with the admin queue
 * @vectors: interrupt vectors
 * @contexts: most contexts at one time
 * @regions: most entries of a context's region table
 * @table_memory: bytes for tables and slots
 * @dim: most columns of a table
 * @tables: most tables of a model
 * @model_features: most features of a model
 * @replicas: most replicas of a model
 * @step_depth: training steps that may be ahead of the last applied update
 * @row_dtypes: mask of data types of rows; bit 0 is f32
 * @ids: most ids of one feature in one batch
 * @samples: most samples of one feature in one batch
 * @combiners: mask of 1 << enum embeng_combiner
 * @optimizers: mask of 1 << enum embeng_optimizer_kind
 * @command_bytes: most bytes that one command may move, 0: no limit. A LOOKUP moves each row that
 *	it reads and each row that it writes; a PARTITION moves 64 for each id. A command above it
 *	completes with COUNT and the field COMMAND_BYTES, and the feature that was too much
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
	__u64 command_bytes;
	__u32 reserved[6];
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
EMBENG_ASSERT(sizeof(struct embeng_row_exchange) == 32);
EMBENG_ASSERT(sizeof(struct embeng_exchange_table) == 64);
EMBENG_ASSERT_AT(embeng_exchange_table, rows, 16);
EMBENG_ASSERT(sizeof(struct embeng_exchange_feature) == 128);
EMBENG_ASSERT_AT(embeng_exchange_feature, sample_count, 16);
EMBENG_ASSERT_AT(embeng_exchange_feature, offsets, 32);
EMBENG_ASSERT_AT(embeng_exchange_feature, data, 104);
EMBENG_ASSERT(sizeof(struct embeng_hot_row) == 16);
EMBENG_ASSERT(sizeof(struct embeng_stats) == 112 + 16 * EMBENG_STATS_HOT + 8 * EMBENG_STATS_CORES);
EMBENG_ASSERT_AT(embeng_stats, ids, 8);
EMBENG_ASSERT_AT(embeng_stats, hot, 112);
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
EMBENG_ASSERT_AT(embeng_record_quantization, table, 8);
EMBENG_ASSERT(sizeof(struct embeng_record_shard) == 48);
EMBENG_ASSERT_AT(embeng_record_shard, table, 8);
EMBENG_ASSERT_AT(embeng_record_shard, first_column, 12);
EMBENG_ASSERT_AT(embeng_record_shard, whole_rows, 16);
EMBENG_ASSERT_AT(embeng_record_shard, whole_dim, 40);
EMBENG_ASSERT(sizeof(struct embeng_record_name) == 80);
EMBENG_ASSERT(sizeof(struct embeng_caps) == 120);
EMBENG_ASSERT_AT(embeng_caps, table_memory, 32);
EMBENG_ASSERT_AT(embeng_caps, ids, 64);
EMBENG_ASSERT_AT(embeng_caps, command_bytes, 88);

#endif
