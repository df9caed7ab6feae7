/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: the interface between a program and the kernel driver, on /dev/accel/accelN.
 *
 * The interface is unstable until its first release. The commands that go over a queue once
 * it exists are described in embeng_engine.h; the kernel does not interpret them.
 * The file is long because it is one ioctl interface with one version history.
 *
 * DOC: Extension rules
 *
 * - Integers have a fixed width and natural alignment: 64-bit members stand on multiples of
 *   8 bytes, and padding is explicit.
 * - Pads, reserved fields and fields that are only written by the kernel ("out") must be
 *   zero on entry; the call fails with EINVAL otherwise. A program that passes one structure
 *   twice clears these fields in between, also after ETIME.
 * - Fields are only appended. A kernel that does not know a structure's tail requires it to
 *   be zero; a program that does not know a tail gets it zeroed. Zero in an appended field
 *   means the behaviour from before the field existed.
 * - Arrays of structures carry their stride, and queries carry their size. There are no
 *   unions.
 * - Numbers of ioctls, queries and flags are never reordered and never used again.
 * - Each visible change adds a line to the version history and increments EMBENG_ACCEL_MINOR.
 *
 * DOC: Errno contract
 *
 *	ENOTTY		the ioctl is not known
 *	E2BIG		a tail that this kernel does not know is not zero
 *	EOPNOTSUPP	a known field asks for something that this device or kernel lacks
 *	EINVAL		a field's value is wrong, or a pad is not zero
 *	EFAULT		a pointer cannot be read or written
 *	ENOENT		this file has no such handle, region, queue or context
 *	EOVERFLOW	arithmetic on sizes or offsets overflowed
 *	ENOSPC		a table is full, the rest of the device is left for administrators, or
 *			the query's buffer is too small
 *	EBUSY		the object is in use, or the file has a context already
 *	EAGAIN		something that an out-fence depends on was not submitted yet, or a DRAIN
 *			would overtake commands that wait for a fence
 *	EACCES		the rights of this file or process do not allow it
 *	EDQUOT		the context's memory limit would be exceeded, or this user's share of
 *			contexts, queues or memory
 *	ENOMEM		there is no memory, or RLIMIT_MEMLOCK would be exceeded
 *	ETIME		the deadline passed
 *	EBADMSG		the frame of a model blob is broken
 *	EINTR		a signal arrived; repeat the call, since deadlines are absolute
 *	ECANCELED	the work was aborted by a reset
 *	ESHUTDOWN	the context was lost in a reset: close the file
 *	EIO		the device refused what the driver asked of it
 *	ENODEV		the device is gone, or its bus is stopped
 *
 * A call that fails leaves its outputs untouched, except where a field says otherwise.
 *
 * DOC: Version history
 *
 *	0.1	the first version: all that this file has
 *
 * DOC: Access rights
 *
 * A context belongs to an open file description. Every process that has the descriptor, by
 * fork() or by SCM_RIGHTS, may map the context's buffers, make queues and submit. Handles,
 * region keys and queue numbers of other files give ENOENT, whether they exist or not. A
 * child does not inherit mappings across fork(). A call that needs a context also gives
 * ENOENT before CONTEXT_CREATE.
 *
 * DOC: Mappings
 *
 * The ioctls return the offsets for mmap(), and each offset is valid on its own file only.
 * Rings, doorbells, registers and buffers can be mapped with MAP_SHARED only (EINVAL
 * otherwise). The ring of a validated queue refuses PROT_WRITE (EACCES).
 *
 * No mapping raises SIGBUS after the device is gone. Buffers and rings keep their contents,
 * and embeng_ring_header.dead becomes 1. Doorbells and registers are replaced by scratch
 * pages of the file. The ring and the doorbell of a queue that was destroyed are replaced in
 * the same way. While the device is reset or its bus has failed, no program reaches it: doorbells
 * and registers are scratch pages, and doorbells of lost contexts stay so. Each kind of mapping
 * has its own scratch pages: bytes written through one kind
 * are not visible through another.
 *
 * DOC: Recovery
 *
 * The driver looks at the device and its queues at intervals (module parameter hang_ms) and
 * judges them by their progress. A queue that waits for its program, for its turn or for
 * time to pass is left alone, however long that takes. A queue or a device that makes no
 * progress is brought back by the lowest rung of this ladder that helps:
 *
 *	command		The device failed the command, which completes with a status of class
 *			DEVICE. Everything else goes on.
 *	queue		The queue is ended and continues behind the commands it held. The
 *			command at fault completes with HUNG, the other incomplete ones with
 *			ABORTED. Commands that have no room left in the completion ring were
 *			not begun; the device fetches them again.
 *	context		The context is ended on the device and LOST, because the device refuses to
 *			let one of its queues go on, for lack of memory for example, or one of its
 *			regions end. All other contexts go on.
 *	engine		The device is reset and boots. All tables are gone, all contexts LOST.
 *	function	The same reset by PCI function-level reset, for a device that did not
 *			answer.
 *	wedged		The device did not come back. All calls give ENODEV until the driver
 *			is bound anew.
 *
 * Calls on a lost context give ESHUTDOWN, except UNBIND and QUEUE_DESTROY, which succeed
 * because nothing is left for them to do. The context's rings say what became of each
 * command, as far as they have room, before embeng_ring_header.dead becomes 1. One case
 * leaves a gap: the doorbells of a device that is pulled out are lost with it. The driver
 * reads the doorbell of a mapped queue in poll(), in WAIT and five times in each hang_ms.
 * Commands that a program rang for after the last of these reads, and that the device had
 * not fetched, were not executed and get no completion.
 *
 * The driver reports each rung except the first in three ways: as an event (poll() and WAIT),
 * as a KOBJ_CHANGE uevent of the node with EMBENG_RESET (the number of resets so far that
 * lost contexts), EMBENG_RUNG and EMBENG_CAUSE (words), and as a record in
 * &struct embeng_accel_health. A hang also leaves a devcoredump. The machine is told of no more
 * than ten resets of a user's queues in ten seconds, and of no completion that is lost by the word
 * of a mapped ring alone, which its program may have written. A device whose registers
 * read all ones, or whose bus has not recovered for six times hang_ms, counts as gone: the
 * driver makes no reset, calls give ENODEV and poll() gives POLLHUP.
 *
 * DOC: Waiting
 *
 * A program sleeps in WAIT on one queue, in WAIT with EMBENG_ACCEL_ANY_QUEUE, or in poll() on the
 * file. Any number of threads and of processes that share the file may sleep at a time, and none
 * of them takes away what another one waits for. These things end a sleep:
 *
 *	event				WAIT on a queue		ANY_QUEUE	poll()
 *	enough completions		0			0		POLLIN
 *	the queue stops			0, @state says why	0		POLLIN
 *	so does another queue		sleeps on		0		POLLIN
 *	the deadline, or one long ago	ETIME			ETIME		0
 *	a signal, without SA_RESTART	EINTR			EINTR		EINTR
 *	a signal, with SA_RESTART	sleeps on		sleeps on	EINTR
 *	another thread closes the file	sleeps on		sleeps on	sleeps on
 *	the queue is destroyed		ENOENT			0		sleeps on
 *	the context is lost		ESHUTDOWN		ESHUTDOWN	POLLERR
 *	the device is gone		ENODEV			ENODEV		POLLHUP
 *
 * poll() tells a state and not an event: POLLIN stays as long as a queue of the context has
 * completions that its program has not read, or has stopped (&embeng_accel_wait.state) and no WAIT
 * on that queue has returned since. A program has read a completion of a validated queue when WAIT
 * or SUBMIT tell the driver so by @cq_head, and one of a mapped queue when it writes the doorbell's
 * @cq_head. ANY_QUEUE counts events: interrupts of armed queues, queues that stopped, queues that
 * end and resets. Each caller keeps the count that it has seen. WAIT and poll() arm validated
 * queues themselves; a mapped queue is armed only by its program. Deadlines are absolute, so that a
 * call that a signal restarts ends when it was to end. A lost interrupt delays a sleeper by at most
 * one second.
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
 * A validated submit may wait for fences and may give one. Both are named as points of
 * syncobjs. A mapped queue has completions only. The driver supports fences if
 * EMBENG_ACCEL_CAN_SYNCOBJ is set.
 *
 * In-fences: the commands enter the queue at once (they have an @index and count for
 * ENOSPC), but the device is told of them only when all @in_syncs have signalled. The queue
 * keeps its order, so commands submitted behind them wait as well. If an in-fence fails, the
 * commands do not run: they complete with EMBENG_STATUS_ABORTED, and the out-fence carries
 * the in-fence's error. While any command of the context waits for a fence, WAIT does not
 * report a queue as BLOCKED. A DRAIN on another queue is then EAGAIN, because the engine
 * would run it ahead of the waiting commands. The driver does not check that LOOKUP(n) is
 * done before UPDATE(n): the program waits for the LOOKUP's out-fence or for its completion.
 *
 * Out-fences: an out-fence signals when all commands of the submit, and of all submits
 * before it in the queue, have completed. Its error is that of the submit's first failed
 * command, translated by the errno in EMBENG_STATUS_TABLE. The error is ECANCELED when the
 * queue was reset or destroyed or its file was closed, ESHUTDOWN when the context was lost,
 * and ENODEV when the device is gone. A point of a timeline shows no error; a program that
 * wants the error uses a binary syncobj and exports it as a sync_file.
 *
 * No fence may depend on something that a program may choose not to do. A submit can
 * therefore have an out-fence only when everything that it and its queue wait for has been
 * submitted to validated queues, whether or not it is still held back by fences itself:
 *
 *	LOOKUP of step n	UPDATE(n - 1) of all replicas; with pipelining UPDATE(n - 2)
 *				and LOOKUP(n - 1) of all replicas
 *	UPDATE(n)		UPDATE(n) of all replicas; with pipelining EOPNOTSUPP
 *	after n			UPDATE(n) of all replicas; with pipelining also LOOKUP(n + 1),
 *				unless the step is known to be applied, as after a DRAIN
 *	DRAIN			with pipelining: if one replica began the next LOOKUP, that
 *				LOOKUP of all replicas
 *	FENCE			the commands that its points name, and what they wait for
 *
 * A submit whose out-fence does not meet this is refused with EAGAIN. It is refused with
 * EOPNOTSUPP when one of these commands goes by a mapped queue; when the points of a FENCE
 * stand in memory that the driver did not allocate; and, for commands with a step, when the
 * model was not loaded by DRM_IOCTL_EMBENG_MODEL_LOAD. A submit without an out-fence has
 * none of these limits.
 *
 * A fence is not late by the wish of its program: the delays of all NOPs that the context has in
 * flight, those of the submit included, are EMBENG_ACCEL_FENCED_DELAY_MAX microseconds at most
 * when a submit gets an out-fence. It is refused with EOPNOTSUPP when its own NOPs exceed that,
 * and with EAGAIN when others do.
 *
 * The engine may still refuse or abort a submitted command. If a fence then waits for
 * something that only its program could do, the driver resets the fence's queue at once: the
 * queue's commands complete with EMBENG_STATUS_ABORTED and its fences with ECANCELED, even
 * if the program submits the missing command at that moment.
 */

#define EMBENG_ACCEL_FENCED_DELAY_MAX 2000000u /* microseconds */

/* -- queries ------------------------------------------------------------- */

enum embeng_accel_query_what {
	EMBENG_ACCEL_QUERY_DEVICE = 0,	/* struct embeng_accel_device */
	EMBENG_ACCEL_QUERY_CAPS = 1,	/* struct embeng_caps, as the device's registers say */
	EMBENG_ACCEL_QUERY_CONTEXT = 2, /* struct embeng_accel_context_state, of this file */
	EMBENG_ACCEL_QUERY_RESETS = 3,	/* struct embeng_accel_resets, of the device */
	/* a __u64 for each register from COUNT_COMMANDS on, over all boots since the bind */
	EMBENG_ACCEL_QUERY_COUNTERS = 4,
	EMBENG_ACCEL_QUERY_HEALTH = 5,	/* struct embeng_accel_health, of this file */
	EMBENG_ACCEL_QUERY_READINGS = 6, /* struct embeng_accel_readings */
};

/**
 * struct embeng_accel_query - ask for a structure about the device or the context
 * @what: in: enum embeng_accel_query_what
 * @size: in: size of the buffer at @data in bytes; out: size of the answer in bytes. If the
 *	buffer is too small, the call fails with ENOSPC and @size is written all the same
 * @data: in: pointer to the buffer, or 0 to ask for the size only
 *
 * Every process that can open the node may ask. CONTEXT and HEALTH describe this file only.
 * The others describe the device: they sum up all contexts and name none of them. No query waits
 * for the device: while it is being reset or its bus has failed, the answer is the last one that is
 * known, and READINGS says how old it is.
 */
struct embeng_accel_query {
	__u32 what;
	__u32 size;
	__u64 data;
};

#define EMBENG_ACCEL_CAN_MAP_QUEUES (1u << 0) /* mapped submission is allowed */
#define EMBENG_ACCEL_CAN_USERPTR (1u << 1)
#define EMBENG_ACCEL_CAN_SYNCOBJ (1u << 2)
/* it did not come back from a reset: only QUERY_DEVICE and the registers answer */
#define EMBENG_ACCEL_WEDGED (1u << 3)

/**
 * struct embeng_accel_device - the device as the driver sees it
 * @flags: out: EMBENG_ACCEL_CAN_*, EMBENG_ACCEL_WEDGED
 * @boot_state: out: enum embeng_boot_state
 * @boot_error: out: enum embeng_boot_error
 * @doorbell_stride: out: bytes from one queue's doorbell to the next in BAR 2
 * @boot_error_offset: out: offset in the firmware image of the byte at fault
 * @firmware_version: out: major << 48 | minor << 32 | patch << 16 | build
 * @pci_domain: out: domain of the PCI address
 * @pci_bus: out: bus of the PCI address
 * @pci_device: out: device of the PCI address
 * @pci_function: out: function of the PCI address
 * @registers: out: mmap() offset of the read-only register page, or 0 if this file may not
 *	map it (that needs CAP_SYS_RAWIO)
 * @boot_error_index: out: index of the self-test that failed, from 0; valid if @boot_error
 *	is EMBENG_BOOT_ERROR_SELF_TEST
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
	EMBENG_ACCEL_CONTEXT_LOST = 2, /* lost in a reset: its tables are gone */
	EMBENG_ACCEL_CONTEXT_IN_RESET = 3, /* the device is being reset; ask again */
};

/**
 * struct embeng_accel_context_state - the state of this file's context
 * @status: out: enum embeng_accel_context_status
 * @regions: out: number of regions that are bound
 * @queues: out: number of queues
 * @reserved: out: 0
 * @memory: out: bytes charged to the context for buffers, pinned pages and rings
 * @memory_limit: out: most bytes that may be charged to it
 * @events: out: event count of the context, as in &embeng_accel_wait.events
 * @reset_sequence: out: value of &embeng_accel_resets.sequence when the context was lost
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
 * struct embeng_accel_resets - how often each rung of the recovery ladder was taken
 * @sequence: out: resets that lost contexts
 * @commands: out: commands that the device failed: their status was of class DEVICE, but
 *	not ABORTED
 * @queues: out: resets of a queue
 * @engines: out: warm resets of the engine
 * @functions: out: function-level resets
 * @wedged: out: 1 if the device was given up: every call gives ENODEV until the driver is
 *	bound anew
 * @contexts: out: contexts that were ended alone; @sequence does not count them
 *
 * All counts start at the bind of the driver.
 */
struct embeng_accel_resets {
	__u64 sequence;
	__u64 commands;
	__u64 queues;
	__u64 engines;
	__u64 functions;
	__u32 wedged;
	__u32 contexts;
};

/**
 * struct embeng_accel_readings - how old the answers are that come from the device
 * @age_ns: out: nanoseconds since the device was last read, if it cannot be read now; 0 if it can
 * @resetting: out: 1 while the device is being reset
 * @reserved: out: 0
 */
struct embeng_accel_readings {
	__u64 age_ns;
	__u32 resetting;
	__u32 reserved;
};

enum embeng_accel_rung {
	EMBENG_ACCEL_RESET_NONE = 0,
	EMBENG_ACCEL_RESET_QUEUE = 1,	 /* one queue of this file */
	EMBENG_ACCEL_RESET_ENGINE = 2,	 /* needs CAP_SYS_ADMIN; every context is lost */
	EMBENG_ACCEL_RESET_FUNCTION = 3, /* as ENGINE, but by function-level reset */
	EMBENG_ACCEL_RESET_WEDGED = 4,	 /* reported only: DRM_IOCTL_EMBENG_RESET refuses it */
	EMBENG_ACCEL_RESET_CONTEXT = 5,	 /* reported only: one context is lost, all others go on */
};

/**
 * EMBENG_ACCEL_CAUSE_TABLE - every reason for taking a rung
 *
 * X(name, value, word in the uevent, sentence).
 */
#define EMBENG_ACCEL_CAUSE_TABLE(X)                                                               \
	X(NONE, 0, "none", "nothing went wrong")                                                  \
	X(REQUEST, 1, "request", "a reset was asked for")                                         \
	X(STALLED, 2, "stalled", "the device stopped looking at a queue")                         \
	X(STANDSTILL, 3, "standstill", "the device had work and made no progress")                \
	X(LOST_COMPLETION, 4, "lost-completion", "a completion was lost on its way")              \
	X(NO_ANSWER, 5, "no-answer", "the device did not answer a command of the driver")         \
	X(HEARTBEAT, 6, "heartbeat", "the device's heartbeat stopped")                            \
	X(FAULT, 7, "fault", "the device reported a fault, such as lost data in its tables")      \
	X(STATE, 8, "state", "something other than the driver reset the device")                  \
	X(BUS, 9, "bus", "the bus reported an error")                                             \
	X(GONE, 10, "gone", "the device is gone")                                                 \
	X(POWER, 11, "power", "the device was busy or lost its power while the system slept")     \
	X(FENCE, 12, "fence", "a fence could not signal any more")                                \
	X(REFUSED, 13, "refused", "the device refused what the driver asked of it")

enum embeng_accel_cause {
#define EMBENG_ACCEL_CAUSE_ENUM(name, value, word, text) EMBENG_ACCEL_CAUSE_##name = value,
	EMBENG_ACCEL_CAUSE_TABLE(EMBENG_ACCEL_CAUSE_ENUM)
#undef EMBENG_ACCEL_CAUSE_ENUM
};

/**
 * struct embeng_accel_health - the last rung that was taken for this context
 * @count: out: rungs taken so far: resets of its queues, and the reset that lost it. All
 *	other fields are 0 while this is 0
 * @cause: out: enum embeng_accel_cause
 * @rung: out: enum embeng_accel_rung
 * @queue: out: number of the queue of the command at fault; 0 if the fault was not caused by
 *	a command of this context
 * @index: out: free-running index of the command at fault
 * @opcode: out: enum embeng_opcode of the command at fault
 * @reserved: out: 0
 * @cookie: out: cookie of the command at fault
 * @step: out: &embeng_cmd.step of the command at fault or, where that is 0,
 *	&embeng_cmd.after
 * @still_ns: out: nanoseconds without progress when the rung was taken
 * @time_ns: out: time at which the rung was taken, in nanoseconds of CLOCK_MONOTONIC
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
 * struct embeng_accel_bo_create - make a buffer: zeroed, shareable memory for the device
 * @size: in: bytes, from 1; the kernel rounds up to whole pages
 * @flags: in: 0
 * @handle: out: GEM handle of this file
 * @offset: out: offset for mmap()
 *
 * DRM_IOCTL_GEM_CLOSE closes the handle; the memory is freed once it is neither bound nor
 * mapped. DRM_IOCTL_PRIME_* shares the buffer with other drivers. The memory is coherent:
 * no call is needed between writing to it and submitting. A buffer is charged to the context of
 * the file that makes it, once, until nobody has it any more, whether it is bound or not.
 */
struct embeng_accel_bo_create {
	__u64 size;
	__u32 flags;
	__u32 handle;
	__u64 offset;
};

/**
 * struct embeng_accel_bo_info - describe a buffer, also an imported one
 * @handle: in: GEM handle of this file
 * @reserved: in: 0
 * @size: out: bytes
 * @offset: out: offset for mmap(), or 0 if the buffer cannot be mapped here (userptr)
 */
struct embeng_accel_bo_info {
	__u32 handle;
	__u32 reserved;
	__u64 size;
	__u64 offset;
};

#define EMBENG_ACCEL_USERPTR_READ_ONLY (1u << 0) /* the device only reads this memory */

/**
 * struct embeng_accel_userptr - make a buffer of memory that the program already has
 * @address: in: start of the memory, page-aligned
 * @size: in: bytes, a multiple of the page size
 * @flags: in: EMBENG_ACCEL_USERPTR_*
 * @handle: out: GEM handle of this file
 *
 * The pages are pinned long-term, and charged to the context and to the RLIMIT_MEMLOCK of the
 * user, with all that processes of this user have locked by the kernel. Such a buffer can be
 * neither mapped through the node nor exported. The call gives EOPNOTSUPP if
 * EMBENG_ACCEL_CAN_USERPTR is not set: then the kernel would put bounce buffers (swiotlb)
 * between this memory and the device, and nothing would keep the two equal. Imported
 * buffers have this limit, too.
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
 * @regions: in: entries of the context's region table; 0 means 1024
 * @flags: in: 0
 * @memory_limit: in: most bytes that may be charged to the context; 0 means the driver's
 *	default (module parameter memory_limit_mib)
 *
 * The call gives EBUSY if the file has a context already, and EDQUOT if its buffers take more than
 * @memory_limit already. The context ends with the file.
 */
struct embeng_accel_context_create {
	__u32 regions;
	__u32 flags;
	__u64 memory_limit;
};

/**
 * struct embeng_accel_bind - make a region: let the device reach a part of a buffer
 * @handle: in: GEM handle of this file
 * @rights: in: EMBENG_REGION_DEVICE_READ, EMBENG_REGION_DEVICE_WRITE, or both
 * @offset: in: start of the part in the buffer, in bytes, page-aligned
 * @length: in: bytes, from 1; 0 means up to the end of the buffer
 * @index: out: first half of the region's key, for &embeng_mem.index
 * @generation: out: second half of the region's key, for &embeng_mem.generation
 *
 * A buffer that another context or driver made is charged to this context, too, from its first
 * region to the end of the last. The call gives ENOSPC if no entry of the region table is free, or
 * if the memory is in more than EMBENG_SEGMENTS_MAX pieces as seen from the device.
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
 * struct embeng_accel_unbind - end a region: its key is no longer valid
 * @index: in: index that BIND returned
 * @generation: in: generation that BIND returned
 *
 * The call returns once the device no longer accesses the memory under this key.
 */
struct embeng_accel_unbind {
	__u32 index;
	__u32 generation;
};

/* -- queues -------------------------------------------------------------- */

#define EMBENG_ACCEL_QUEUE_MAPPED (1u << 0) /* the program writes rings and doorbell */

/**
 * struct embeng_accel_queue_create - make a queue
 * @kind: in: enum embeng_queue_kind, except ADMIN
 * @flags: in: EMBENG_ACCEL_QUEUE_MAPPED makes a mapped queue, 0 a validated one. All INPUT
 *	and GRADIENT queues of a context must agree in this (EINVAL)
 * @replica: in: replica that the queue serves, for INPUT, INFERENCE and GRADIENT queues
 * @priority: in: 0 (low) to 3 (high); above 1 needs CAP_SYS_NICE (EACCES)
 * @sq_entries: in: entries of the submission ring, a power of two up to
 *	EMBENG_SQ_ENTRIES_MAX
 * @cq_entries: in: entries of the completion ring, a power of two up to twice
 *	EMBENG_SQ_ENTRIES_MAX. It is at least twice @sq_entries for INPUT and at least 2 for
 *	INFERENCE
 * @coalesce_count: in: for validated queues: number of completions per event that poll() and
 *	WAIT on ANY_QUEUE report, up to @cq_entries; 0 means an event for each completion. It
 *	is 0 for mapped queues, whose program sets embeng_doorbell.arm itself
 * @coalesce_us: in: longest delay of such an event after arming, in microseconds, 1 to
 *	1000000. It is 0 if and only if @coalesce_count is 0 or 1
 * @queue: out: number of the queue, also used in &embeng_fence_point
 * @first: in: free-running index at which both rings begin, usually 0. An index near 2^32 shows
 *	early that a program counts on when indices begin anew
 * @layout: out: layout of the ring memory
 * @ring: out: mmap() offset of the ring memory, which has @layout.size bytes; it can be
 *	mapped writable for mapped queues and read-only for validated ones
 * @doorbell: out: mmap() offset of the page with &struct embeng_doorbell; 0 for validated
 *	queues
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
	__u32 first;
	struct embeng_queue_layout layout;
	__u64 ring;
	__u64 doorbell;
};

/**
 * struct embeng_accel_queue_destroy - end a queue
 * @queue: in: number of the queue
 * @reserved: in: 0
 *
 * Commands of the queue that are not complete end with ABORTED, and their fences signal with
 * ECANCELED.
 */
struct embeng_accel_queue_destroy {
	__u32 queue;
	__u32 reserved;
};

/**
 * struct embeng_accel_sync - a point of a syncobj
 * @handle: in: handle of a syncobj of this file (ENOENT)
 * @reserved: in: 0
 * @point: in: point of a timeline syncobj; 0 for a binary syncobj
 */
struct embeng_accel_sync {
	__u32 handle;
	__u32 reserved;
	__u64 point;
};

#define EMBENG_ACCEL_SYNCS_MAX 64

/**
 * struct embeng_accel_submit - hand commands to a validated queue
 * @queue: in: number of the queue
 * @flags: in: 0
 * @count: in: number of commands, from 1 to the queue's @sq_entries
 * @stride: in: bytes from one command to the next, 64 to 4096
 * @commands: in: pointer to [@count] &struct embeng_cmd
 * @in_syncs: in: pointer to [@in_count] &struct embeng_accel_sync that must signal before
 *	the commands run; 0 if and only if @in_count is 0. The call gives EINVAL if nothing
 *	was submitted that will signal one of them
 * @out_syncs: in: pointer to [@out_count] &struct embeng_accel_sync that signal when all the
 *	commands have completed; 0 if and only if @out_count is 0
 * @in_count: in: up to EMBENG_ACCEL_SYNCS_MAX
 * @out_count: in: up to EMBENG_ACCEL_SYNCS_MAX
 * @cq_head: in: free-running index; the program has read all completions below it
 * @index: out: free-running index of the first command
 *
 * All commands are checked before any of them is submitted: the opcode (EOPNOTSUPP), the
 * kind of queue, flags and reserved fields (EINVAL), and that the key in @desc exists
 * (ENOENT). The engine checks everything else. The call gives ENOSPC if the submission ring
 * has no room for all the commands, or the completion ring has no room for their completions
 * beside the unread ones. It gives EINVAL for a mapped queue. The limits of out-fences are
 * described under "Fences" above.
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
 * struct embeng_accel_wait - sleep until a queue has completions or the context has an event
 * @queue: in: number of the queue, or EMBENG_ACCEL_ANY_QUEUE to wait for any event of the
 *	context
 * @cq_head: in: free-running index; the program has read all completions below it. It is 0
 *	with ANY_QUEUE
 * @count: in: return once this many completions are unread, from 1 to the queue's
 *	@cq_entries; 0 with ANY_QUEUE
 * @least: in: return after @least_ns with only this many completions, up to @count; 0 if
 *	@least_ns is 0
 * @deadline_ns: in: return at this time with ETIME, in absolute nanoseconds of
 *	CLOCK_MONOTONIC; 0 means not to sleep
 * @least_ns: in: time from which @least is enough, in absolute nanoseconds of
 *	CLOCK_MONOTONIC; 0 if @least is 0
 * @events: in: with ANY_QUEUE, the event count that the program saw last, otherwise 0; out:
 *	the context's event count. With ANY_QUEUE the call returns as soon as the two differ
 * @cq_tail: out: completion tail of the queue
 * @state: out: enum embeng_queue_state of the queue
 *
 * The call arms validated queues and looks again before it sleeps; a program arms its mapped
 * queues before the call. On a validated queue the completion slots below @cq_head are
 * returned to the device.
 *
 * With a single queue the call also returns, with fewer completions, when @state is not
 * RUNNING: no more will come before the program acts. A program that wants to sleep anyway
 * waits with ANY_QUEUE. The outputs are also written when the call gives ETIME. The call
 * gives ENOENT if the queue is destroyed meanwhile.
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
 * @queue: in: number of a validated TRANSFER queue of this file
 * @flags: in: 0, or EMBENG_CMD_EXTENDS (embeng_engine.h) to add tables to the loaded model
 * @blob: in: pointer to the model blob
 * @length: in: size of the blob in bytes, up to 64 MiB
 * @cookie: in: cookie for the completion of the MODEL_LOAD command
 * @index: out: free-running index of the MODEL_LOAD command
 * @reserved1: in: 0
 *
 * The driver copies the blob, checks its magic, version and length (EBADMSG), and submits a
 * MODEL_LOAD; the engine checks the rest. The copy takes an entry of the region table and is
 * charged to the context until the next call. On a mapped queue this call gives EINVAL: the
 * program submits MODEL_LOAD there like any other command.
 */
struct embeng_accel_model_load {
	__u32 queue;
	__u32 flags;
	__u64 blob;
	__u64 length;
	__u64 cookie;
	__u32 index;
	__u32 reserved1;
};

/**
 * struct embeng_accel_reset - take a rung of the recovery ladder
 * @rung: in: enum embeng_accel_rung
 * @queue: in: number of the queue with RESET_QUEUE, otherwise 0
 *
 * RESET_QUEUE ends all incomplete commands of the queue with ABORTED, and the queue
 * continues behind them. Unread completions stay where they are, and every aborted command
 * gets its completion as far as the completion ring has room.
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
EMBENG_ASSERT(sizeof(struct embeng_accel_readings) == 16);
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
