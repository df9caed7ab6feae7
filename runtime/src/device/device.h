/* SPDX-License-Identifier: MIT */
/*
 * A device as the session sees it: regions, queues, registers, and a way to
 * wait. One table of operations for each way to reach an engine.
 */
#ifndef EMBENG_DEVICE_H
#define EMBENG_DEVICE_H

#include <stdbool.h>

#include "embeng.h"
#include "wire.h"

struct device;
struct name;
struct region;

/* The callback for log lines of the device. It is called from any thread. */
struct device_log {
	void (*fn)(void *arg, enum embeng_log_level level, const char *text);
	void *arg;
};

/* A queue that is mapped into the process. */
struct device_queue {
	struct embeng_queue_layout layout;
	char *ring;
	struct embeng_doorbell *doorbell;
	uint32_t number;
	struct device *validator; /* takes the commands; NULL for a mapped queue */
};

/* Fences that a command of a validated queue waits for and signals, as sync_file descriptors. */
struct device_fences {
	const int *in; /* [in_count] */
	size_t in_count;
	bool wants_out;
	int out; /* set when @wants_out; close-on-exec, and the caller closes it */
};

/* The argument of a MODEL_LOAD: its flags, EMBENG_CMD_EXTENDS or none, and the blob. */
struct model_blob {
	uint16_t flags;
	void *bytes;
	size_t length;
};

struct queue_config {
	enum embeng_queue_kind kind;
	uint32_t replica;
	uint32_t sq_entries, cq_entries;
};

/**
 * struct device_ops - operations of a kind of device
 * @close: power the device off or let go of it; it is not used afterwards
 * @region_alloc: allocate @bytes of zeroed memory that the device may read and write
 * @region_register: make @bytes at @p, which are the caller's, a region; NULL where the device reaches
 *	no memory but its own
 * @region_free: free a region, or end it if it is the caller's memory; returns when the device no longer accesses it. On failure
 *	the memory stays where it is
 * @region_export: return a dma-buf descriptor of a region
 * @region_import: make the memory of a dma-buf a region, as @region_alloc does
 * @queue_create: make a queue and map it
 * @queue_destroy: end a queue; commands that wait in it are aborted
 * @queue_submit: validated queues: submit a command, with fences or NULL. Returns without a
 *	sentence -EAGAIN when the ring is full, -EBUSY when the command can have no fence before
 *	other commands were submitted
 * @fence_signalled: validated queues: return a sync_file that has signalled, close-on-exec
 * @queue_load: validated queues: submit a MODEL_LOAD with the blob itself
 * @run: do the device's work on this thread, where the device is in this
 *	process. Returns true when something moved
 * @kick: wake the device, because a doorbell was written
 * @give: like @kick, but small work is done on this thread, as by @run
 * @lost: return 0, or -ENODEV or -ESHUTDOWN with a sentence if nothing will move any more.
 *	@dead: a ring of the device is marked dead
 * @settle: wait until no reset is under way, so that @lost knows its outcome; may be NULL
 * @event_read: return the number of events so far
 * @event_wait: sleep while the number of events is @seen, at most @timeout_ns
 * @event_signal: wake the sleepers, because the program's own state changed
 * @fd: return a descriptor that becomes readable after interrupts
 * @fd_clear: make that descriptor unreadable
 * @describe: fill info.description, which takes longer than opening; may be NULL
 * @share: return a descriptor of the context, for device_attach()
 * @room: return how many bytes of memory can really be taken for tables now, which may be less
 *	than the device promised when it was opened; may be NULL where the device has its own
 * @most: return the bytes that tables can have at most now, beyond which the host ends or refuses the
 *	process, and set @by to what says so; UINT64_MAX if there is no such limit; may be NULL where the device has its own memory
 * @prepare: have so many bytes at hand for old rows of a snapshot, so that no step waits for them; 0:
 *	give them back; may be NULL
 * @table_rows: set @rows to where the engine has row 0 of a table or slot, numbered as in
 *	&struct embeng_rows; @map: 1: they are to stay there, until -1 ends that. Return 0, or
 *	without a sentence -EAGAIN while a command runs, -EINVAL for a -1 without a 1; NULL where the device has its own memory
 * @read_register: read a register of embeng_regs.h; 0 if the device does not provide it
 *
 * A device that cannot be shared has no @region_export, @region_import and @share; one
 * without validated queues no @queue_submit, @fence_signalled and @queue_load.
 */
struct device_ops {
	void (*close)(struct device *d);
	int (*region_alloc)(struct device *d, uint64_t bytes, struct region *out);
	int (*region_register)(struct device *d, void *p, uint64_t bytes, struct region *out);
	int (*region_free)(struct device *d, struct region *region);
	int (*region_export)(struct device *d, const struct region *region);
	int (*region_import)(struct device *d, int dmabuf, struct region *out);
	int (*queue_create)(struct device *d, const struct queue_config *config,
			    struct device_queue *out);
	void (*queue_destroy)(struct device *d, const struct device_queue *queue);
	int (*queue_submit)(struct device *d, uint32_t queue, const struct embeng_cmd *cmd,
			    uint32_t cq_head, struct device_fences *fences);
	int (*fence_signalled)(struct device *d);
	int (*queue_load)(struct device *d, uint32_t queue, const struct model_blob *blob,
			  uint64_t cookie);
	bool (*run)(struct device *d, bool all);
	void (*kick)(struct device *d);
	void (*give)(struct device *d);
	int (*lost)(struct device *d, bool dead);
	void (*settle)(struct device *d);
	uint32_t (*event_read)(struct device *d);
	void (*event_wait)(struct device *d, uint32_t seen, uint64_t timeout_ns);
	void (*event_signal)(struct device *d);
	int (*fd)(struct device *d);
	void (*fd_clear)(struct device *d);
	void (*describe)(struct device *d);
	int (*share)(struct device *d);
	uint64_t (*room)(struct device *d);
	uint64_t (*most)(struct device *d, char by[256]);
	void (*prepare)(struct device *d, uint64_t bytes);
	int (*table_rows)(struct device *d, uint32_t table, uint32_t slot, int map, void **rows);
	uint64_t (*read_register)(struct device *d, enum embeng_register reg);
};

struct device {
	const struct device_ops *ops;
	struct embeng_device_info info;
	uint32_t queues;       /* queues of the device, with the admin queue */
	uint64_t region_bytes; /* bytes that region_grow() has allocated; atomic */
};

/*
 * device_open() - open the device that a name means
 * @replicas: number of replicas that queues are needed for
 */
int device_open(const struct name *name, uint32_t replicas, const struct device_log *log,
		struct device **out);

/* Attaches to the context of a descriptor from device_ops.share, which the caller keeps. */
int device_attach(int fd, struct device **out);

#endif
