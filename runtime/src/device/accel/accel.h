/* SPDX-License-Identifier: MIT */
/*
 * Devices behind the kernel driver: /dev/accel/accelN. A handle is an open file with its
 * context; its memory are buffer objects, its queues are mapped or validated.
 */
#ifndef EMBENG_ACCEL_DEVICE_H
#define EMBENG_ACCEL_DEVICE_H

#include <pthread.h>

#include "device/accel.h"
#include "device/device.h"
#include "device/region.h"
#include "embeng_accel.h"

#define ACCEL_NODE_BYTES 64
#define ACCEL_ADDRESS_BYTES 32

/**
 * struct accel_function - a PCI function that is an embeng device
 * @node: "/dev/accel/accel0", "" without a driver
 * @address: "0000:01:00.0"
 * @driver: "embeng", "" without one
 */
struct accel_function {
	char node[ACCEL_NODE_BYTES];
	char address[ACCEL_ADDRESS_BYTES];
	char driver[32];
};

typedef int (*accel_each_fn)(void *arg, const struct accel_function *function);

/**
 * struct accel_system - calls to the kernel, which tests replace by their own
 * @open: opens a node; returns a descriptor or a negative errno
 * @dup: returns another descriptor of the same file, or a negative errno
 * @close: closes a descriptor from @open or @dup
 * @ioctl: returns 0 or a negative errno; it is repeated after a signal
 * @map: makes a shared mapping; NULL with errno set on failure
 * @unmap: ends a mapping from @map
 * @each: calls @fn for embeng functions in the order of their nodes, or for those without a driver
 *	when @orphans is set; stops when @fn returns anything but 0, and returns that
 * @describe: returns vendor and device, in words, of the function with an address such as
 *	"pci:0000:01:00.0", or "" if it is not known
 * @refusal: why the driver did not take the function of an address; "" if it was not asked to.
 *	Returns 0, or -ENOENT when the driver is not loaded
 */
struct accel_system {
	int (*open)(const char *node);
	int (*dup)(int fd);
	void (*close)(int fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);
	void *(*map)(int fd, uint64_t offset, uint64_t length, bool writable);
	void (*unmap)(void *data, uint64_t length);
	int (*each)(bool orphans, accel_each_fn fn, void *arg);
	void (*describe)(const char *address, char *text, size_t size);
	int (*refusal)(const char *address, char *text, size_t size);
};

extern const struct accel_system *accel_system;

/* find.c: @each and @describe of the real system. */
int accel_find(bool orphans, accel_each_fn fn, void *arg);
void accel_words(const char *address, char *text, size_t size);

/* driver.c: @refusal of the real system, from the driver's own folder in sysfs. */
int accel_refusal(const char *address, char *text, size_t size);

/*
 * GEM handles that this handle made, to tell them from those of others. The lock is held from an
 * import until its handle is closed, and while a GEM handle of this list is removed and closed.
 */
struct accel_handles {
	pthread_mutex_t lock;
	uint32_t *list;
	size_t count, capacity;
};

struct accel {
	struct device device;
	char node[ACCEL_NODE_BYTES];
	int fd;
	bool mapped; /* queues are mapped; else they are validated */
	bool trying; /* attached to a context, without knowing yet whether its queues are mapped */
	bool shared; /* other processes may have handles of the same file; atomic */
	struct accel_handles handles;
	uint64_t events; /* number of events that WAIT returned last; atomic */
	int lost;	 /* 0, or the negative errno with which the device was lost; atomic */
	bool polled;	 /* the program has asked for @poll; atomic */
	int ready;	 /* eventfd: events that were taken before fd_clear() */
	int poll;	 /* epoll of @fd and @ready */
};

static inline struct accel *accel_of(struct device *d)
{
	return (struct accel *)d;
}

/* A device and its capabilities, as the driver reports them. */
struct accel_facts {
	struct embeng_accel_device device;
	struct embeng_caps caps;
};

/* handle.c: makes a handle that has no file yet. */
struct accel *accel_new(void);
void accel_close(struct device *d);

/*
 * search.c: opens the device that @name means and asks for its facts. On failure
 * a->device.info has everything that was found out until then, and a->fd may be open.
 */
int accel_reach(struct accel *a, const struct name *name, struct accel_facts *facts);
/* search.c: takes the path of the name, or the best that the driver allows; -ENOTSUP. */
int accel_choose_path(struct accel *a, enum name_path path, const struct accel_facts *facts);

/* query.c */
int accel_query(int fd, uint32_t what, void *data, uint32_t size);
/*
 * accel_inquire() - check the driver, the state of the firmware, and the versions
 * @node: name of the node, for sentences
 * @info: filled as far as the checks went, also on failure
 *
 * Return: 0, -ENODEV (another driver), -ENOTSUP (another version), -EHOSTDOWN (no firmware runs).
 */
int accel_inquire(int fd, const char *node, struct embeng_device_info *info,
		  struct accel_facts *facts);
uint64_t accel_read_register(struct device *d, enum embeng_register reg);

/* failure.c: sets the sentence of a failed ioctl, and notes a lost device or context. */
int accel_failed(struct accel *a, int error, const char *what);
int accel_lost(struct device *d, bool dead);
/* Asks the driver whether the context lives: 0, -ENODEV or -ESHUTDOWN. Notes nothing. */
int accel_ended(const struct accel *a);
void accel_settle(struct device *d);

/* memory.c */
int accel_region_alloc(struct device *d, uint64_t bytes, struct region *out);
int accel_region_free(struct device *d, struct region *region);
int accel_region_export(struct device *d, const struct region *region);
int accel_region_import(struct device *d, int dmabuf, struct region *out);

/* queue.c */
int accel_queue_create(struct device *d, const struct queue_config *config,
		       struct device_queue *out);
void accel_queue_destroy(struct device *d, const struct device_queue *queue);
int accel_queue_submit(struct device *d, uint32_t queue, const struct embeng_cmd *cmd,
		       uint32_t cq_head, struct device_fences *fences);
int accel_queue_load(struct device *d, uint32_t queue, const struct model_blob *blob,
		     uint64_t cookie);

/* fence.c: the list of syncobjs of a submit; accel_syncs_free() frees it. */
struct accel_syncs {
	struct embeng_accel_sync *list; /* [in_count], and one more for the out-fence */
	uint32_t count;
};

int accel_syncs_make(struct accel *a, const struct device_fences *fences, struct accel_syncs *out);
void accel_syncs_free(struct accel *a, struct accel_syncs *syncs);
/* Makes a sync_file of a syncobj's fence. Return: it, or a negative errno with a sentence. */
int accel_sync_file(struct accel *a, const struct embeng_accel_sync *sync);
int accel_fence_signalled(struct device *d);

/* event.c */
int accel_event_open(struct accel *a);
void accel_event_close(struct accel *a);
uint32_t accel_event_read(struct device *d);
void accel_event_wait(struct device *d, uint32_t seen, uint64_t timeout_ns);
void accel_event_signal(struct device *d);
int accel_fd(struct device *d);
void accel_fd_clear(struct device *d);

#endif
