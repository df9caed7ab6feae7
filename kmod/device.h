/* SPDX-License-Identifier: GPL-2.0-only */
/* The structure of a device, and the check that it may still be used. */
#ifndef EMBENG_DEVICE_H
#define EMBENG_DEVICE_H

#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <drm/drm_device.h>

#include "admin.h"
#include "fw_boot.h"
#include "irq.h"
#include "reset.h"
#include "stats_counters.h"
#include "user.h"

/**
 * struct embeng_device - a PCI function that the driver is bound to
 * @drm: the DRM device, embedded, whose life is this structure's
 * @pci: the function, parent of @drm
 * @registers: BAR 0
 * @doorbells: BAR 2
 * @doorbell_stride: bytes from one doorbell to the next
 * @image: firmware image, kept to boot again after a reset; replaced under @reset_lock
 * @fallback: recovery image, booted when @image is missing or refused; may be missing itself
 * @running: the one of the two that runs, or ran last; written as @caps
 * @installed: version of the image that was found by name when the driver was bound, 0: none
 * @upload: the kernel's interface for uploading another image
 * @fresh: image that is being uploaded
 * @upload_canceled: the upload was canceled, and @fresh is not to be booted
 * @caps: capabilities of the booted device; written under @reset_lock and @readings.lock
 * @boot_error: how the last boot ended; written as @caps
 * @refused: reason for which the last refused image was refused; written as @caps
 * @firmware_version: version that runs, 0 unless booted
 * @admin: the driver's own queue
 * @vectors: interrupt vectors
 * @vector_count: number of @vectors
 * @can_pin: the device reaches the pages of programs directly, without a bounce buffer
 * @reset_lock: held for reading while talking to the device, for writing during a reset
 * @bo_lock: guards @bos
 * @bos: buffers that the device can reach
 * @contexts_lock: guards @contexts
 * @contexts: contexts that were opened and have not ended; each may be used with a reference
 * @numbers: contexts that the device knows, by number
 * @queues: queues of all contexts, by number
 * @resets: counters of resets, under @reset_lock
 * @faults: commands that hung, which the device itself did not count; under @reset_lock
 * @dump_of_claim: the last dump was about a mapped queue; under @reset_lock
 * @counters: counters of the device over all its boots; under @readings.lock
 * @readings: registers for those who monitor the device
 * @pci_state: config space as the driver set it up
 * @watch: state of the watchdog
 * @recovery: resets that calls of programs have asked for
 * @offline: the bus has failed, and the device is not talked to until the PCI core says that the
 *	bus is back; under @reset_lock
 * @users: calls that the driver waits for before it lets go of the device
 * @late: contexts whose end the close of their files did not wait for
 * @shares: users of the device, and what they have of it
 * @work: workqueue on which contexts watch their fences
 * @resetting: a reset has begun, and contexts were not told yet; set under @readings.lock
 * @gone: unplugged or given up: the device is not talked to any more
 */
struct embeng_device {
	struct drm_device drm;
	struct pci_dev *pci;
	void __iomem *registers;
	void __iomem *doorbells;
	u32 doorbell_stride;
	struct embeng_image image;
	struct embeng_image fallback;
	const struct embeng_image *running;
	u64 installed;
	struct fw_upload *upload;
	struct embeng_image fresh;
	bool upload_canceled;
	struct embeng_caps caps;
	struct embeng_refusal boot_error;
	struct embeng_refusal refused;
	u64 firmware_version;
	struct embeng_admin admin;
	struct embeng_vector *vectors;
	u32 vector_count;
	bool can_pin;
	struct rw_semaphore reset_lock;
	struct mutex bo_lock; /* guards @bos */
	struct list_head bos;
	struct mutex contexts_lock; /* guards @contexts */
	struct list_head contexts;
	struct xarray numbers;
	struct xarray queues;
	struct embeng_accel_resets resets;
	u64 faults;
	bool dump_of_claim;
	struct embeng_counters counters;
	struct embeng_readings readings;
	struct pci_saved_state *pci_state;
	struct embeng_device_watch watch;
	struct embeng_recovery recovery;
	bool offline;
	struct srcu_struct users;
	atomic_t late;
	struct embeng_users shares;
	struct workqueue_struct *work;
	bool resetting;
	bool gone;
};

static inline struct embeng_device *to_embeng(struct drm_device *drm)
{
	return container_of(drm, struct embeng_device, drm);
}

static inline bool embeng_gone(const struct embeng_device *ed)
{
	/* Pairs with WRITE_ONCE() where it is set; no order with other words is relied on. */
	return READ_ONCE(ed->gone);
}

/*
 * No memory of a program is touched in between: a page that never comes would keep the driver
 * from letting go.
 */

/**
 * embeng_dev_enter() - keep the driver from letting go of the device
 * @ed: device
 * @index: set to the value that embeng_dev_exit() needs
 *
 * Return: false when the device is gone already; embeng_dev_exit() must not be called then.
 */
static inline bool embeng_dev_enter(struct embeng_device *ed, int *index)
{
	*index = srcu_read_lock(&ed->users);
	/* Sparse does not see the end of a guard(), and is told of no lock. */
	__release(&ed->users);
	if (!embeng_gone(ed))
		return true;
	__acquire(&ed->users);
	srcu_read_unlock(&ed->users, *index);
	return false;
}

static inline void embeng_dev_exit(struct embeng_device *ed, int index)
{
	__acquire(&ed->users);
	srcu_read_unlock(&ed->users, index);
}

/**
 * struct embeng_use - a call that keeps the driver from letting go of the device
 * @device: the device, or NULL if it is gone
 * @index: for embeng_dev_exit()
 */
struct embeng_use {
	struct embeng_device *device;
	int index;
};

static inline struct embeng_use embeng_use_begin(struct embeng_device *ed)
{
	struct embeng_use use = {};

	if (embeng_dev_enter(ed, &use.index))
		use.device = ed;
	return use;
}

static inline void embeng_use_end(struct embeng_use use)
{
	if (use.device)
		embeng_dev_exit(use.device, use.index);
}

static inline struct embeng_device *embeng_talk_begin(struct embeng_device *ed)
{
	return down_read_killable(&ed->reset_lock) ? NULL : ed;
}

static inline void embeng_talk_end(struct embeng_device *ed)
{
	if (ed)
		up_read(&ed->reset_lock);
}

/* CLASS(embeng_talk, talk)(ed): reset_lock for reading, or NULL in a task that was killed */
DEFINE_CLASS(embeng_talk, struct embeng_device *, embeng_talk_end(_T), embeng_talk_begin(ed),
	     struct embeng_device *ed)

/* CLASS(embeng_use, use)(ed): until the end of the scope, if use.device is not NULL */
DEFINE_CLASS(embeng_use, struct embeng_use, embeng_use_end(_T), embeng_use_begin(ed),
	     struct embeng_device *ed)

#endif
