/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * embeng: names and accessors that every file needs, and which lock guards what. The structures are
 * in device.h, admin.h, irq.h, reset.h and fw_boot.h, which this header includes.
 *
 * DOC: Locks, outermost first
 *
 *	device->users		SRCU, read: the driver does not let go of the device
 *	context->lock		regions and queues of one context are made and ended
 *	device->reset_lock	read: talk to a booted device. write: reset it
 *	device->readings.lock	what monitoring reads; also taken without reset_lock
 *	device->contexts_lock	list of contexts
 *	queue->lock		one submitter at a time
 *	device->bo_lock		list of buffers
 *	context->map_lock	choice of the page that a fault puts into a mapping
 *	vector->lock, admin.lock	taken in interrupts, never both
 *	context->ledger_lock	ledger of steps; inside vector->lock
 *	device->shares.lock	what each user has; nothing is taken inside it
 *
 * DOC: Memory and the device
 *
 * Memory that the device may reach is freed only after the device has confirmed that it is done
 * with it (embeng_context_end_command()), was reset, or has lost the bus.
 */
#ifndef EMBENG_DRIVER_H
#define EMBENG_DRIVER_H

#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/pci.h>

#include <drm/drm_device.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_print.h>

#include "../uapi/embeng_accel.h"
#include "../uapi/embeng_barrier.h"
#include "device.h"

#define EMBENG_NAME "embeng"
#define EMBENG_FIRMWARE "embeng/embeng.fw"
#define EMBENG_RECOVERY "embeng/recovery.fw" /* booted when the other is not */
#define EMBENG_QUEUES_MAX 1024 /* mmap() has offsets for this many */

static inline u32 embeng_read32(const struct embeng_device *ed, enum embeng_register reg)
{
	return readl(ed->registers + reg);
}

static inline u64 embeng_read64(const struct embeng_device *ed, enum embeng_register reg)
{
	return lo_hi_readq(ed->registers + reg);
}

static inline void embeng_write32(struct embeng_device *ed, enum embeng_register reg, u32 value)
{
	writel(value, ed->registers + reg);
}

static inline void embeng_write64(struct embeng_device *ed, enum embeng_register reg, u64 value)
{
	lo_hi_writeq(value, ed->registers + reg);
}

/* For sizes that a program chooses: charged to the program, and refused without a warning. */
#define EMBENG_GFP_WISH (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/* regs.c: the registers as a table */
struct embeng_register_entry {
	const char *name;
	u32 offset;
	u32 bytes;
};

extern const struct embeng_register_entry embeng_registers[EMBENG_REGISTERS];
u64 embeng_register_read(const struct embeng_device *ed, const struct embeng_register_entry *entry);

/* pci_function.c: the function as a whole */
int embeng_device_map(struct embeng_device *ed);
int embeng_device_wait(struct embeng_device *ed, enum embeng_register reg, u32 value);
int embeng_device_wait_rom(struct embeng_device *ed);
int embeng_device_reset(struct embeng_device *ed);
void embeng_device_cut_off(struct embeng_device *ed);
void embeng_device_silence(struct embeng_device *ed);

/* A read from a function that is not there returns all ones. */
static inline bool embeng_present(const struct embeng_device *ed)
{
	return embeng_read32(ed, EMBENG_REG_MAGIC) != U32_MAX;
}

/* bo_import.c */
int embeng_import_init(struct embeng_device *ed);

/* pci_error.c, pci_pm.c, sysfs.c, debugfs.c */
extern const struct pci_error_handlers embeng_error_handlers;
extern const struct dev_pm_ops embeng_pm_ops;
extern const struct attribute_group *embeng_sysfs_groups[];
void embeng_debugfs_init(struct embeng_device *ed);

/* stats_events.c */
void embeng_events_show(struct embeng_device *ed, struct seq_file *m);

/* stats_hwmon.c */
#if IS_REACHABLE(CONFIG_HWMON)
int embeng_hwmon_init(struct embeng_device *ed);
#else
static inline int embeng_hwmon_init(struct embeng_device *ed)
{
	return 0;
}
#endif

/* query.c */
int embeng_query_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/*
 * The device publishes cq_tail before `sent`: a completion that was sent but is not visible is
 * lost.
 */
static inline bool embeng_ring_lost(const struct embeng_ring_header *header)
{
	/* Pairs with the device's release store to `sent`, which follows the one to cq_tail. */
	u32 sent = smp_load_acquire(&header->sent);

	return (s32)(sent - embeng_observe_cq_tail(&header->cq_tail)) > 0;
}

static inline void __iomem *embeng_doorbell(const struct embeng_device *ed, u32 queue)
{
	return ed->doorbells + (size_t)queue * ed->doorbell_stride;
}

#define embeng_doorbell_write(doorbell, word, value) \
	writel(value, (doorbell) + offsetof(struct embeng_doorbell, word))

#endif
