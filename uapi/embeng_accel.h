/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: what a program and the kernel driver say to each other, on /dev/accel/accelN.
 *
 * Unstable until its first release. What goes over the rings, once a queue is there, is in
 * embeng_engine.h and is none of the kernel's business.
 * One file, though long: it is one ioctl interface with one version history.
 *
 * DOC: Extension rules
 *
 * - Fixed-width integers, naturally aligned, 64-bit members on 8 bytes, explicit padding.
 * - Pads, reserved fields and fields that are out alone must be zero on entry: -EINVAL. Who
 *   gives the same structure twice clears them in between, after ETIME, too.
 * - Fields are only appended; a kernel that does not know a tail wants it zero, a program
 *   that does not know one gets it zeroed. Zero means what was before the field was there.
 * - Arrays of structures carry their stride, queries their size. No unions.
 * - Ioctl numbers, query and flag values are never reordered or used again.
 * - Each visible change adds a line to the version history and to DRIVER_MINOR.
 *
 * DOC: Errno contract
 *
 *	ENOTTY		the ioctl is not known
 *	E2BIG		a tail that this kernel does not know is not zero
 *	EOPNOTSUPP	a known field asks for something that this device or kernel lacks
 *	EINVAL		a field's value is wrong, or a pad is not zero
 *	EFAULT		a pointer cannot be read or written
 *	ENOENT		no such handle, region or queue of this file
 *	EOVERFLOW	arithmetic on sizes or offsets
 *	ENOSPC		a table is full, or the query's buffer is too small
 *	EBUSY		in use; or, of a context, made already
 *	EAGAIN		a fence's predecessor was not submitted yet, or a DRAIN would pass by
 *			commands that wait for a fence
 *	EACCES		not with this file's rights
 *	EDQUOT		the context's memory limit
 *	ENOMEM		no memory, or beyond RLIMIT_MEMLOCK
 *	ETIME		the deadline passed
 *	EBADMSG		the frame of a model blob is broken
 *	EINTR		a signal; give the call again, deadlines are absolute
 *	ECANCELED	aborted by a reset
 *	ESHUTDOWN	the context was lost in a reset: close the file
 *	EIO		the device refused what the driver asked of it
 *	ENODEV		the device is gone, or its bus is stopped
 * Outputs are untouched on failure, but where a field says otherwise.
 *
 * DOC: Version history
 *
 *	0.1	everything here
 *
 * DOC: Who may do what
 *
 * A context belongs to an open file description: whoever has the descriptor, by fork() or
 * SCM_RIGHTS, may map its buffers, make queues and submit. Handles, region keys and queue
 * numbers of other files are ENOENT, existing or not. Mappings are not inherited by fork.
 * What comes before CONTEXT_CREATE and needs a context is ENOENT too.
 *
 * DOC: Mappings
 *
 * mmap() offsets are returned by the ioctls and mean something on this file alone. Rings,
 * doorbells, registers and buffers take MAP_SHARED only (EINVAL); a ring that is not the
 * program's to write refuses PROT_WRITE (EACCES). After the device is gone nothing raises
 * SIGBUS: buffers and rings stay as they were, with embeng_ring_header.dead 1, doorbells and
 * registers become scratch pages of the file, as does all of a queue that was destroyed. What
 * one kind of mapping writes there the others do not see.
 *
 * DOC: Recovery
 *
 * The driver looks at the device and at its queues (module parameter hang_ms) and goes by
 * their progress: what waits for its program, its turn or time is left alone, however long
 * it takes. What stands still is brought back by the lowest rung that does:
 *
 *	command		the device failed it: a status of class DEVICE, all else goes on
 *	queue		one queue is ended and goes on behind what it held: the command at fault
 *			completes with HUNG, those not complete with ABORTED. What finds no room
 *			in its completion ring was not begun, and is taken up again
 *	engine		the device is reset and boots: tables are gone, contexts LOST
 *	function	the same, by FLR, where it did not answer
 *	wedged		where it does not come back: ENODEV, until the driver is bound anew
 *
 * A lost context's calls are ESHUTDOWN, but for UNBIND and QUEUE_DESTROY, which have nothing
 * left to do. Its rings say of each command what became of it, as
 * far as they have room, before embeng_ring_header.dead is 1. A doorbell goes with a device
 * that is pulled out: what a mapped queue was rung for since the driver looked at it last (in
 * poll(), in WAIT, and five times in hang_ms), and the device had not taken, was not done and
 * has no completion. Each rung but the first is an
 * event (poll() and WAIT), a KOBJ_CHANGE uevent of the node with EMBENG_RESET (resets that
 * lost contexts so far), EMBENG_RUNG and EMBENG_CAUSE in words, and a record
 * (&struct embeng_accel_health). A hang also leaves a devcoredump. A device whose registers
 * read all ones is gone, and so is one whose bus did not recover for six times hang_ms: ENODEV
 * and POLLHUP, no reset.
 *
 * DOC: Polling
 *
 * poll() on the file: POLLIN while an event of this context was not taken by WAIT: an armed
 * queue interrupted, a queue stopped. POLLERR once the context is lost, POLLHUP once the
 * device is gone. poll() arms validated queues, a mapped one is armed by its program alone. An
 * interrupt that is lost costs who sleeps, here or in WAIT, a second.
 */
#ifndef _EMBENG_ACCEL_H_
#define _EMBENG_ACCEL_H_

#ifdef __KERNEL__
#include <drm/drm.h>
#else
#include "drm.h" /* libdrm-dev */
#endif

#include "embeng_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMBENG_ACCEL_MAJOR 0
#define EMBENG_ACCEL_MINOR 1

/*
 * DOC: Fences
 *
 * A validated submit takes fences and gives one, by points of syncobjs; a mapped queue has
 * completions only. EMBENG_ACCEL_CAN_SYNCOBJ says that there are any.
 *
 * In: the commands are in the queue at once (@index, ENOSPC), and the device is told of them
 * when all @in_syncs signalled. Their queue keeps its order: what is submitted behind them
 * waits, too. A submit whose in-fence failed is not run: its commands complete with
 * EMBENG_STATUS_ABORTED, and its out-fence says what the in-fence said. While anything waits
 * like this, WAIT does not call a queue BLOCKED, and a DRAIN on another queue, which the
 * engine would run ahead of it, is EAGAIN. Whether UPDATE(n) finds LOOKUP(n) done is the
 * program's to see to: it waits for what the LOOKUP's out-fence signals, or for its
 * completion.
 *
 * Out: signals when all commands of the submit, and of those before it in the queue, have
 * completed. Its error is that of the first command that failed, as the status' errno in
 * EMBENG_STATUS_TABLE; ECANCELED when the queue was reset, destroyed or its file closed,
 * ESHUTDOWN when the context was lost, ENODEV when the device is gone. A point of a timeline
 * shows no error: who wants to see one exports a binary syncobj as sync_file.
 *
 * No fence depends on what a program may choose not to do. So a submit has one only when all
 * that it and its queue wait for was submitted to validated queues (held by fences or not):
 *
 *	LOOKUP of step n	all replicas' UPDATE(n - 1); with pipelining UPDATE(n - 2) and
 *				LOOKUP(n - 1)
 *	UPDATE(n)		all replicas' UPDATE(n); EOPNOTSUPP with pipelining
 *	after n			all replicas' UPDATE(n); with pipelining LOOKUP(n + 1), too,
 *				unless the step is known to be applied, as after a DRAIN
 *	DRAIN			with pipelining, the LOOKUP that some replica began, of all
 *	FENCE			the commands that its points name, and what they wait for
 *
 * Else EAGAIN. EOPNOTSUPP when one of them goes by a mapped queue, when the points of a FENCE
 * stand in memory that the driver did not make, and when the driver did not load the model
 * (DRM_IOCTL_EMBENG_MODEL_LOAD), for commands with a step. A submit without an out-fence has
 * none of these limits.
 *
 * What was submitted may still be refused by the engine, or aborted. When that leaves a fence
 * with a wait that only its program could end, the driver resets the fence's queue at once:
 * its commands complete with EMBENG_STATUS_ABORTED, its fences with ECANCELED, also when the
 * program gives the missing command just then.
 */

/* -- queries ------------------------------------------------------------- */

enum embeng_accel_query_what {
	EMBENG_ACCEL_QUERY_DEVICE = 0,	/* struct embeng_accel_device */
	EMBENG_ACCEL_QUERY_CAPS = 1,	/* struct embeng_caps, as the device's registers say */
	EMBENG_ACCEL_QUERY_CONTEXT = 2, /* struct embeng_accel_context_state, of this file */
	EMBENG_ACCEL_QUERY_RESETS = 3,	/* struct embeng_accel_resets, of the device */
	/* __u64 per register from COUNT_COMMANDS on, in order, over all boots since the bind */
	EMBENG_ACCEL_QUERY_COUNTERS = 4,
	EMBENG_ACCEL_QUERY_HEALTH = 5,	/* struct embeng_accel_health, of this file */
};

/**
 * struct embeng_accel_query - sized query
 * @what: in: enum embeng_accel_query_what
 * @size: in: bytes behind @data; out: bytes there are. ENOSPC, with @size, when too small
 * @data: in: pointer, or 0 to learn the size alone
 *
 * Who has the node may ask. CONTEXT and HEALTH speak of this file alone, the others of the
 * device: what all contexts did to it together, never which.
 */
struct embeng_accel_query {
	__u32 what;
	__u32 size;
	__u64 data;
};

#define EMBENG_ACCEL_CAN_MAP_QUEUES (1u << 0) /* mapped submission is not forbidden */
#define EMBENG_ACCEL_CAN_USERPTR (1u << 1)
#define EMBENG_ACCEL_CAN_SYNCOBJ (1u << 2)

/**
 * struct embeng_accel_device - the device as the driver sees it
 * @flags: out: EMBENG_ACCEL_CAN_*
 * @boot_state: out: enum embeng_boot_state
 * @boot_error: out: enum embeng_boot_error
 * @doorbell_stride: out: bytes
 * @boot_error_offset: out: byte of the image at fault
 * @firmware_version: out: major << 48 | minor << 32 | patch << 16 | build
 * @pci_domain: out: PCI address
 * @pci_bus: out: PCI address
 * @pci_device: out: PCI address
 * @pci_function: out: PCI address
 * @registers: out: mmap offset of the read-only register page; 0: not allowed to this file
 *	(needs CAP_SYS_RAWIO)
 * @boot_error_index: out: self-test that failed, from 0, with EMBENG_BOOT_ERROR_SELF_TEST
 * @reserved: out: 0
 */
struct embeng_accel_device {
	__u32 flags;
	__u32 boot_state;
	__u32 boot_error;
	__u32 doorbell_stride;
	__u64 boot_error_offset;
	__u64 firmware_version;
	__u32 pci_domain;
	__u32 pci_bus;
	__u32 pci_device;
	__u32 pci_function;
	__u64 registers;
	__u32 boot_error_index;
	__u32 reserved;
};

enum embeng_accel_context_status {
	EMBENG_ACCEL_CONTEXT_NONE = 0, /* not made yet */
	EMBENG_ACCEL_CONTEXT_ALIVE = 1,
	EMBENG_ACCEL_CONTEXT_LOST = 2, /* in a reset: tables are gone */
};

/**
 * struct embeng_accel_context_state - what this file's context holds
 * @status: out: enum embeng_accel_context_status
 * @regions: out: bound
 * @queues: out: made
 * @reserved: out: 0
 * @memory: out: bytes charged to the context: buffers, pinned pages, rings
 * @memory_limit: out: most bytes
 * @events: out: as &embeng_accel_wait.events
 * @reset_sequence: out: &embeng_accel_resets.sequence when it was lost
 */
struct embeng_accel_context_state {
	__u32 status;
	__u32 regions;
	__u32 queues;
	__u32 reserved;
	__u64 memory;
	__u64 memory_limit;
	__u64 events;
	__u64 reset_sequence;
};

/**
 * struct embeng_accel_resets - how often each rung of the ladder was taken
 * @sequence: out: resets that lost contexts
 * @commands: out: that the device failed: statuses of class DEVICE but ABORTED
 * @queues: out: reset
 * @engines: out: warm resets
 * @functions: out: function-level resets
 * @wedged: out: 1: given up, everything is ENODEV until the driver binds anew
 * @reserved: out: 0
 */
struct embeng_accel_resets {
	__u64 sequence;
	__u64 commands;
	__u64 queues;
	__u64 engines;
	__u64 functions;
	__u32 wedged;
	__u32 reserved;
};

enum embeng_accel_rung {
	EMBENG_ACCEL_RESET_NONE = 0,
	EMBENG_ACCEL_RESET_QUEUE = 1,	 /* one queue of this file */
	EMBENG_ACCEL_RESET_ENGINE = 2,	 /* CAP_SYS_ADMIN: every context is lost */
	EMBENG_ACCEL_RESET_FUNCTION = 3, /* CAP_SYS_ADMIN: the same, by FLR */
	EMBENG_ACCEL_RESET_WEDGED = 4,	 /* not to be asked for */
};

/**
 * EMBENG_ACCEL_CAUSE_TABLE - X(name, value, word of the uevent, sentence)
 */
#define EMBENG_ACCEL_CAUSE_TABLE(X)                                                        \
	X(NONE, 0, "none", "nothing went wrong")                                           \
	X(REQUEST, 1, "request", "somebody asked for it")                                  \
	X(STALLED, 2, "stalled", "the device did not attend to the queue")                 \
	X(STANDSTILL, 3, "standstill", "there was work, and the device did none")          \
	X(LOST_COMPLETION, 4, "lost-completion", "a completion was lost on its way")       \
	X(NO_ANSWER, 5, "no-answer", "the device did not answer the driver")               \
	X(HEARTBEAT, 6, "heartbeat", "the device's heartbeat stopped")                     \
	X(FAULT, 7, "fault", "the device reported a fault: its tables lost data, or worse") \
	X(STATE, 8, "state", "the device was reset by something else")                     \
	X(BUS, 9, "bus", "the bus reported an error")                                      \
	X(GONE, 10, "gone", "the device is gone")                                          \
	X(POWER, 11, "power", "the system slept, and the device was busy or lost its power") \
	X(FENCE, 12, "fence", "a fence could not signal any more")

enum embeng_accel_cause {
#define EMBENG_ACCEL_CAUSE_ENUM(name, value, word, text) EMBENG_ACCEL_CAUSE_##name = value,
	EMBENG_ACCEL_CAUSE_TABLE(EMBENG_ACCEL_CAUSE_ENUM)
#undef EMBENG_ACCEL_CAUSE_ENUM
};

/**
 * struct embeng_accel_health - the last rung that was taken for this context
 * @count: out: rungs so far: resets of queues, and the one that lost it; 0: all else is 0
 * @cause: out: enum embeng_accel_cause
 * @rung: out: enum embeng_accel_rung
 * @queue: out: of the command at fault; 0: it was none of this context's
 * @index: out: of the command, free-running
 * @opcode: out: enum embeng_opcode of the command
 * @reserved: out: 0
 * @cookie: out: of the command
 * @step: out: of the command, or its after
 * @still_ns: out: nanoseconds without progress when the rung was taken
 * @time_ns: out: nanoseconds, CLOCK_MONOTONIC, when it was
 */
struct embeng_accel_health {
	__u64 count;
	__u32 cause;
	__u32 rung;
	__u32 queue;
	__u32 index;
	__u32 opcode;
	__u32 reserved;
	__u64 cookie;
	__u64 step;
	__u64 still_ns;
	__u64 time_ns;
};

/* -- buffer objects ------------------------------------------------------ */

/**
 * struct embeng_accel_bo_create - zeroed, shareable memory that the device can reach
 * @size: in: bytes, from 1; rounded up to pages
 * @flags: in: 0
 * @handle: out: GEM handle of this file
 * @offset: out: for mmap()
 *
 * Freed by DRM_IOCTL_GEM_CLOSE once unbound and unmapped. DRM_IOCTL_PRIME_* shares it.
 * The device sees it as it is: no call is needed between writing and submitting.
 * Charged to the context's limit when it is bound.
 */
struct embeng_accel_bo_create {
	__u64 size;
	__u32 flags;
	__u32 handle;
	__u64 offset;
};

/**
 * struct embeng_accel_bo_info - about a handle, also an imported one
 * @handle: in: GEM handle of this file
 * @reserved: in: 0
 * @size: out: bytes
 * @offset: out: for mmap(); 0 when it cannot be mapped here (userptr)
 */
struct embeng_accel_bo_info {
	__u32 handle;
	__u32 reserved;
	__u64 size;
	__u64 offset;
};

#define EMBENG_ACCEL_USERPTR_READ_ONLY (1u << 0) /* the device will only read */

/**
 * struct embeng_accel_userptr - a handle for memory that the program has already
 * @address: in: page-aligned
 * @size: in: bytes, a multiple of the page size
 * @flags: in: EMBENG_ACCEL_USERPTR_*
 * @handle: out: GEM handle of this file
 *
 * Pages are pinned long-term and charged to RLIMIT_MEMLOCK. Neither mapped here nor
 * exported. EOPNOTSUPP without EMBENG_ACCEL_CAN_USERPTR: the kernel would put copies between
 * this memory and the device (swiotlb), which nobody could keep equal. Imports are the same.
 */
struct embeng_accel_userptr {
	__u64 address;
	__u64 size;
	__u32 flags;
	__u32 handle;
};

/* -- context and regions ------------------------------------------------- */

/**
 * struct embeng_accel_context_create - make this file's context
 * @regions: in: entries of its region table, 0: 1024
 * @flags: in: 0
 * @memory_limit: in: bytes, 0: the driver's default
 *
 * EBUSY when there is one. It ends with the file.
 */
struct embeng_accel_context_create {
	__u32 regions;
	__u32 flags;
	__u64 memory_limit;
};

/**
 * struct embeng_accel_bind - let the device reach a buffer
 * @handle: in: GEM handle of this file
 * @rights: in: EMBENG_REGION_DEVICE_READ, EMBENG_REGION_DEVICE_WRITE
 * @offset: in: bytes into the buffer, page-aligned
 * @length: in: bytes, from 1; 0: to the end
 * @index: out: &embeng_mem.index
 * @generation: out: &embeng_mem.generation
 *
 * ENOSPC: no entry of the table is free, or the memory is in more than EMBENG_SEGMENTS_MAX
 * pieces as the device sees it.
 */
struct embeng_accel_bind {
	__u32 handle;
	__u32 rights;
	__u64 offset;
	__u64 length;
	__u32 index;
	__u32 generation;
};

/**
 * struct embeng_accel_unbind - end a key
 * @index: in: as BIND gave it
 * @generation: in: as BIND gave it
 *
 * Returns once the device touches the memory no more under this key.
 */
struct embeng_accel_unbind {
	__u32 index;
	__u32 generation;
};

/* -- queues -------------------------------------------------------------- */

#define EMBENG_ACCEL_QUEUE_MAPPED (1u << 0) /* the program writes rings and doorbell */

/**
 * struct embeng_accel_queue_create - make a queue
 * @kind: in: enum embeng_queue_kind, not ADMIN
 * @flags: in: EMBENG_ACCEL_QUEUE_MAPPED, else validated. All of a context's INPUT and
 *	GRADIENT queues have the same (EINVAL)
 * @replica: in: of INPUT, INFERENCE and GRADIENT queues
 * @priority: in: 0 (low) to 3; above 1 needs CAP_SYS_NICE (EACCES)
 * @sq_entries: in: power of two up to EMBENG_SQ_ENTRIES_MAX
 * @cq_entries: in: power of two up to twice EMBENG_SQ_ENTRIES_MAX; at least twice @sq_entries on
 *	INPUT, at least 2 on INFERENCE
 * @coalesce_count: in: validated: completions per event that poll() and ANY_QUEUE wait
 *	for, up to @cq_entries, 0: each. 0 for MAPPED, whose program sets embeng_doorbell.arm
 * @coalesce_us: in: and at the latest so many microseconds after arming, 1 to 1000000;
 *	0 exactly when @coalesce_count is 0 or 1
 * @queue: out: number, also in &embeng_fence_point
 * @reserved: in: 0
 * @layout: out: of the ring memory
 * @ring: out: mmap offset of @layout.size bytes; writable for MAPPED, else read-only
 * @doorbell: out: mmap offset of a page with &struct embeng_doorbell; 0 unless MAPPED
 */
struct embeng_accel_queue_create {
	__u32 kind;
	__u32 flags;
	__u32 replica;
	__u32 priority;
	__u32 sq_entries;
	__u32 cq_entries;
	__u32 coalesce_count;
	__u32 coalesce_us;
	__u32 queue;
	__u32 reserved;
	struct embeng_queue_layout layout;
	__u64 ring;
	__u64 doorbell;
};

/**
 * struct embeng_accel_queue_destroy - end a queue; what waits on it is ABORTED
 * @queue: in: number
 * @reserved: in: 0
 */
struct embeng_accel_queue_destroy {
	__u32 queue;
	__u32 reserved;
};

/**
 * struct embeng_accel_sync - a point of a syncobj
 * @handle: in: syncobj of this file (ENOENT)
 * @reserved: in: 0
 * @point: in: timeline point, 0: a binary syncobj
 */
struct embeng_accel_sync {
	__u32 handle;
	__u32 reserved;
	__u64 point;
};

#define EMBENG_ACCEL_SYNCS_MAX 64

/**
 * struct embeng_accel_submit - hand commands to a validated queue
 * @queue: in: number
 * @flags: in: 0
 * @count: in: commands, from 1 to the queue's entries
 * @stride: in: bytes from one command to the next, 64 to 4096
 * @commands: in: pointer to &struct embeng_cmd
 * @in_syncs: in: pointer to [@in_count] &struct embeng_accel_sync that must signal first;
 *	0 exactly when @in_count is. EINVAL when nothing was submitted to signal one
 * @out_syncs: in: pointer to [@out_count], signalled when all the commands completed;
 *	0 exactly when @out_count is
 * @in_count: in: up to EMBENG_ACCEL_SYNCS_MAX
 * @out_count: in: up to EMBENG_ACCEL_SYNCS_MAX
 * @cq_head: in: completions below it have been read
 * @index: out: free-running index of the first command
 *
 * All commands are checked before any is submitted: opcode (EOPNOTSUPP), kind of queue,
 * flags and reserved fields (EINVAL), and that the key of @desc is one (ENOENT). The engine
 * checks all else. ENOSPC: no room for all of them, or for their completions beside those
 * that have not been read. EINVAL for a mapped queue. See "Fences".
 */
struct embeng_accel_submit {
	__u32 queue;
	__u32 flags;
	__u32 count;
	__u32 stride;
	__u64 commands;
	__u64 in_syncs;
	__u64 out_syncs;
	__u32 in_count;
	__u32 out_count;
	__u32 cq_head;
	__u32 index;
};

#define EMBENG_ACCEL_ANY_QUEUE 0xffffffffu

/**
 * struct embeng_accel_wait - sleep until completions are there
 * @queue: in: number, or EMBENG_ACCEL_ANY_QUEUE: any event of the context
 * @cq_head: in: completions below it have been read; with ANY_QUEUE 0
 * @count: in: return once so many are unread, from 1; with ANY_QUEUE 0
 * @least: in: with @least_ns: so many are enough from then on; 0: not used
 * @deadline_ns: in: nanoseconds, absolute, CLOCK_MONOTONIC; 0: do not wait
 * @least_ns: in: nanoseconds, absolute, CLOCK_MONOTONIC
 * @events: in: with ANY_QUEUE, the last value seen, else 0; out: the context's event
 *	count. With ANY_QUEUE the call returns at once when it differs
 * @cq_tail: out: the queue's completion tail
 * @state: out: enum embeng_queue_state
 *
 * Arms validated queues and looks again before it sleeps; a program arms its mapped ones
 * before the call. Gives the slots below @cq_head of a validated queue back to the device.
 * On a single queue it also returns, with fewer, when @state is not RUNNING: nothing more
 * comes before the program does something; who wants to sleep on goes by ANY_QUEUE. ETIME
 * also writes the outputs. ENOENT when the queue is destroyed meanwhile.
 */
struct embeng_accel_wait {
	__u32 queue;
	__u32 cq_head;
	__u32 count;
	__u32 least;
	__s64 deadline_ns;
	__s64 least_ns;
	__u64 events;
	__u32 cq_tail;
	__u32 state;
};

/**
 * struct embeng_accel_model_load - load a model
 * @queue: in: a TRANSFER queue of this file, validated
 * @reserved: in: 0
 * @blob: in: pointer to the model blob
 * @length: in: bytes, up to 64 MiB
 * @cookie: in: of the completion
 * @index: out: free-running index of the MODEL_LOAD
 * @reserved1: in: 0
 *
 * Copies the blob and checks magic, version and length (EBADMSG); the engine checks the
 * rest. The copy takes a region and counts as memory of the context until the next call. On
 * a mapped queue MODEL_LOAD is a command like others (this call: EINVAL).
 */
struct embeng_accel_model_load {
	__u32 queue;
	__u32 reserved;
	__u64 blob;
	__u64 length;
	__u64 cookie;
	__u32 index;
	__u32 reserved1;
};

/**
 * struct embeng_accel_reset - take a rung of the recovery ladder
 * @rung: in: enum embeng_accel_rung
 * @queue: in: for QUEUE, else 0
 *
 * QUEUE: what is not complete is ABORTED, and the queue goes on behind it. Completions that
 * were not read stay where they are, and every command completes that finds room to.
 */
struct embeng_accel_reset {
	__u32 rung;
	__u32 queue;
};

/* -- numbers ------------------------------------------------------------- */

#define DRM_EMBENG_QUERY 0x00
#define DRM_EMBENG_BO_CREATE 0x01
#define DRM_EMBENG_BO_INFO 0x02
#define DRM_EMBENG_USERPTR 0x03
#define DRM_EMBENG_CONTEXT_CREATE 0x04
#define DRM_EMBENG_BIND 0x05
#define DRM_EMBENG_UNBIND 0x06
#define DRM_EMBENG_QUEUE_CREATE 0x07
#define DRM_EMBENG_QUEUE_DESTROY 0x08
#define DRM_EMBENG_SUBMIT 0x09
#define DRM_EMBENG_WAIT 0x0a
#define DRM_EMBENG_MODEL_LOAD 0x0b
#define DRM_EMBENG_RESET 0x0c

#define DRM_IOCTL_EMBENG_QUERY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_QUERY, struct embeng_accel_query)
#define DRM_IOCTL_EMBENG_BO_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_BO_CREATE, struct embeng_accel_bo_create)
#define DRM_IOCTL_EMBENG_BO_INFO \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_BO_INFO, struct embeng_accel_bo_info)
#define DRM_IOCTL_EMBENG_USERPTR \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_USERPTR, struct embeng_accel_userptr)
#define DRM_IOCTL_EMBENG_CONTEXT_CREATE \
	DRM_IOW(DRM_COMMAND_BASE + DRM_EMBENG_CONTEXT_CREATE, struct embeng_accel_context_create)
#define DRM_IOCTL_EMBENG_BIND \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_BIND, struct embeng_accel_bind)
#define DRM_IOCTL_EMBENG_UNBIND \
	DRM_IOW(DRM_COMMAND_BASE + DRM_EMBENG_UNBIND, struct embeng_accel_unbind)
#define DRM_IOCTL_EMBENG_QUEUE_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_QUEUE_CREATE, struct embeng_accel_queue_create)
#define DRM_IOCTL_EMBENG_QUEUE_DESTROY \
	DRM_IOW(DRM_COMMAND_BASE + DRM_EMBENG_QUEUE_DESTROY, struct embeng_accel_queue_destroy)
#define DRM_IOCTL_EMBENG_SUBMIT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_SUBMIT, struct embeng_accel_submit)
#define DRM_IOCTL_EMBENG_WAIT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_WAIT, struct embeng_accel_wait)
#define DRM_IOCTL_EMBENG_MODEL_LOAD \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_MODEL_LOAD, struct embeng_accel_model_load)
#define DRM_IOCTL_EMBENG_RESET \
	DRM_IOW(DRM_COMMAND_BASE + DRM_EMBENG_RESET, struct embeng_accel_reset)

#ifdef __cplusplus
}
#endif

EMBENG_ASSERT(sizeof(struct embeng_accel_query) == 16);
EMBENG_ASSERT(sizeof(struct embeng_accel_device) == 64);
EMBENG_ASSERT(sizeof(struct embeng_accel_context_state) == 48);
EMBENG_ASSERT(sizeof(struct embeng_accel_resets) == 48);
EMBENG_ASSERT(sizeof(struct embeng_accel_health) == 64);
EMBENG_ASSERT(sizeof(struct embeng_accel_bo_create) == 24);
EMBENG_ASSERT(sizeof(struct embeng_accel_bo_info) == 24);
EMBENG_ASSERT(sizeof(struct embeng_accel_userptr) == 24);
EMBENG_ASSERT(sizeof(struct embeng_accel_context_create) == 16);
EMBENG_ASSERT(sizeof(struct embeng_accel_bind) == 32);
EMBENG_ASSERT(sizeof(struct embeng_accel_unbind) == 8);
EMBENG_ASSERT(sizeof(struct embeng_accel_queue_create) == 104);
EMBENG_ASSERT_AT(embeng_accel_queue_create, layout, 40);
EMBENG_ASSERT(sizeof(struct embeng_accel_queue_destroy) == 8);
EMBENG_ASSERT(sizeof(struct embeng_accel_sync) == 16);
EMBENG_ASSERT(sizeof(struct embeng_accel_submit) == 56);
EMBENG_ASSERT(sizeof(struct embeng_accel_wait) == 48);
EMBENG_ASSERT(sizeof(struct embeng_accel_model_load) == 40);
EMBENG_ASSERT(sizeof(struct embeng_accel_reset) == 8);

#endif
