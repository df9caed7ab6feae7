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
struct region;

/* Where sentences of the device go; called from any thread. */
struct device_log {
	void (*fn)(void *arg, enum embeng_log_level level, const char *text);
	void *arg;
};

/* A queue as mapped into the process. */
struct device_queue {
	struct embeng_queue_layout layout;
	char *ring;
	struct embeng_doorbell *doorbell;
	uint32_t number;
	struct device *validator; /* NULL: mapped; else @ring is read-only, commands go there */
};

/* What a command of a validated queue waits for and signals: descriptors of sync_files. */
struct device_fences {
	const int *in; /* [in_count] */
	size_t in_count;
	bool wants_out;
	int out; /* out: the caller's, close-on-exec, when @wants_out */
};

struct queue_config {
	enum embeng_queue_kind kind;
	uint32_t replica;
	uint32_t sq_entries, cq_entries;
};

/**
 * struct device_ops - what every kind of device can do
 * @close: power off or let go; nothing of it is used afterwards
 * @region_alloc: zeroed memory of @bytes that the device reaches with both rights
 * @region_free: take it back; returns when the device no longer touches it. On failure
 *	the memory stays where it is
 * @region_export: dma-buf descriptor of a region
 * @region_import: memory of a dma-buf, as @region_alloc
 * @queue_create: make a queue and map it
 * @queue_destroy: end it; what waits in it is aborted
 * @queue_submit: validated queues: hand a command over, with fences or NULL. Without a sentence
 *	-EAGAIN when the ring is full, -EBUSY when it can have no fence before others were handed
 *	over
 * @fence_signalled: validated queues: a sync_file that signalled, close-on-exec
 * @queue_load: validated queues: MODEL_LOAD, with the blob itself
 * @run: do the device's work on this thread where the device is in this
 *	process. True when something moved
 * @kick: a doorbell was written
 * @give: the same, and small work is done on this thread, as by @run
 * @lost: 0, or why nothing will move any more: -ENODEV, -ESHUTDOWN with a sentence.
 *	@dead: a ring of it says so
 * @settle: return when no reset is under way, so that @lost knows of it; may be missing
 * @event_read: number of events so far
 * @event_wait: sleep while the number is @seen, at most @timeout_ns
 * @event_signal: wake the sleepers: the program's own state changed
 * @fd: descriptor that is readable after interrupts
 * @fd_clear: make it unreadable
 * @describe: fill info.description, which takes longer than opening; may be missing
 * @share: a descriptor of the context, for device_attach()
 * @read_register: any register of embeng_regs.h; 0 for what the device does not tell
 *
 * A device that cannot be shared has no @region_export, @region_import and @share; one
 * without validated queues no @queue_submit, @fence_signalled and @queue_load.
 */
struct device_ops {
	void (*close)(struct device *d);
	int (*region_alloc)(struct device *d, uint64_t bytes, struct region *out);
	int (*region_free)(struct device *d, struct region *region);
	int (*region_export)(struct device *d, const struct region *region);
	int (*region_import)(struct device *d, int dmabuf, struct region *out);
	int (*queue_create)(struct device *d, const struct queue_config *config,
			    struct device_queue *out);
	void (*queue_destroy)(struct device *d, const struct device_queue *queue);
	int (*queue_submit)(struct device *d, uint32_t queue, const struct embeng_cmd *cmd,
			    uint32_t cq_head, struct device_fences *fences);
	int (*fence_signalled)(struct device *d);
	int (*queue_load)(struct device *d, uint32_t queue, const void *blob, uint64_t length,
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
	uint64_t (*read_register)(struct device *d, enum embeng_register reg);
};

struct device {
	const struct device_ops *ops;
	struct embeng_device_info info;
	uint32_t queues; /* the device's, the admin queue too */
	uint64_t region_bytes; /* of region_grow(); atomic */
};

/*
 * device_open() - open by name
 * @name: see embeng_open()
 * @replicas: queues are wanted for so many
 */
int device_open(const char *name, uint32_t replicas, const struct device_log *log,
		struct device **out);

/* The context behind a descriptor of device_ops.share, which stays the caller's. */
int device_attach(int fd, struct device **out);

#endif
