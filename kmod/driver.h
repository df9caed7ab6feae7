/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * embeng: the driver's own structures, and which lock guards what.
 *
 * DOC: Locks, outermost first
 *
 *	device->users		SRCU, read: the driver does not let go of the device
 *	device->contexts_mutex	no context goes away
 *	context->lock		regions and queues of one context are made and ended
 *	device->reset_lock	read: talks to a booted device. write: resets it
 *	device->contexts_lock	list of contexts
 *	queue->lock		one submitter at a time
 *	device->bo_lock		list of buffers
 *	context->map_lock	what a fault may put into a mapping
 *	vector->lock, admin.lock	in interrupts, one or the other
 *	context->ledger_lock	ledger of steps; inside vector->lock
 *
 * DOC: Memory and the device
 *
 * Memory that the device may reach is freed only after the device said that it is done with it
 * (embeng_context_end_command()), was reset, or lost the bus.
 */
#ifndef EMBENG_DRIVER_H
#define EMBENG_DRIVER_H

#include <linux/completion.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/semaphore.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <drm/drm_device.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_print.h>

#include "../uapi/embeng_accel.h"
#include "../uapi/embeng_barrier.h"
#include "fw_boot.h"
#include "stats_counters.h"

#define EMBENG_NAME "embeng"
#define EMBENG_FIRMWARE "embeng/embeng.fw"
#define EMBENG_QUEUES_MAX 1024 /* mmap() has offsets for so many */

struct embeng_device;

/**
 * struct embeng_admin - the driver's own queue
 * @ring: its memory, @layout says where what is
 * @dma: of @ring
 * @layout: of @ring
 * @slots: as many commands at once
 * @lock: guards what follows
 * @requests: waiting for their completion
 * @cookie: of the newest request, never used twice
 * @sq_tail: free-running
 * @cq_head: free-running
 * @armed: &embeng_doorbell.armed
 */
struct embeng_admin {
	void *ring;
	dma_addr_t dma;
	struct embeng_queue_layout layout;
	struct semaphore slots;
	spinlock_t lock; /* guards what follows */
	struct list_head requests;
	u64 cookie;
	u32 sq_tail;
	u32 cq_head;
	u32 armed;
};

/**
 * struct embeng_vector - an interrupt
 * @device: whose
 * @index: MSI-X vector; 0 serves the admin queue too
 * @irq: the kernel's number, asked once: pci_irq_vector() sleeps
 * @lock: guards @queues
 * @queues: &embeng_queue.vector_link
 */
struct embeng_vector {
	struct embeng_device *device;
	u32 index;
	int irq;
	spinlock_t lock; /* guards @queues and their arms */
	struct list_head queues;
};

/**
 * struct embeng_device_watch - what the watchdog saw of the device last
 * @work: the next look
 * @fault: the device has told of one
 * @last: look that counted, jiffies
 * @heartbeat: register
 * @progress: sum of registers that move with work
 * @silent: looks since the heartbeat moved
 * @still: looks since anything was worked on
 * @away: looks since the bus was last well
 * @since_ns: when either was last seen to move, CLOCK_MONOTONIC
 */
struct embeng_device_watch {
	struct delayed_work work;
	struct work_struct fault;
	unsigned long last;
	u32 heartbeat;
	u64 progress;
	u32 silent;
	u32 still;
	u32 away;
	u64 since_ns;
};

/**
 * struct embeng_device - a PCI function
 * @drm: embedded
 * @pci: parent
 * @registers: BAR 0
 * @doorbells: BAR 2
 * @doorbell_stride: bytes
 * @image: firmware image, kept to boot again after a reset; replaced under reset_lock
 * @upload: where the kernel takes another one
 * @fresh: image that is being uploaded
 * @upload_canceled: nothing of @fresh is to be booted
 * @caps: of the booted device
 * @boot_error: of the last boot
 * @refused: the newest image that was, under reset_lock
 * @firmware_version: 0 unless booted
 * @admin: the driver's own queue
 * @vectors: interrupts
 * @vector_count: of @vectors
 * @can_pin: the device sees pages of programs as they are
 * @reset_lock: see above
 * @bo_lock: guards @bos
 * @bos: buffers that the device may be given
 * @contexts_mutex: no context goes away
 * @contexts_lock: guards @contexts
 * @contexts: of open files
 * @numbers: contexts that the device knows
 * @queues: by number
 * @resets: counters, under @reset_lock
 * @faults: commands that the driver saw fail, and the device did not; under @reset_lock
 * @counters: of the device; under @reset_lock
 * @pci_state: config space as the driver set it up
 * @watch: looks for standstill
 * @offline: not to be talked to until the bus says so; under @reset_lock
 * @users: calls that the driver waits for before it lets go
 * @work: where contexts watch their fences
 * @resetting: until the contexts were told
 * @gone: unplugged, or given up: the device is not talked to any more
 */
struct embeng_device {
	struct drm_device drm;
	struct pci_dev *pci;
	void __iomem *registers;
	void __iomem *doorbells;
	u32 doorbell_stride;
	struct embeng_image image;
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
	struct mutex contexts_mutex; /* no context goes away */
	struct mutex contexts_lock; /* guards @contexts */
	struct list_head contexts;
	struct xarray numbers;
	struct xarray queues;
	struct embeng_accel_resets resets;
	u64 faults;
	struct embeng_counters counters;
	struct pci_saved_state *pci_state;
	struct embeng_device_watch watch;
	bool offline;
	struct srcu_struct users;
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
	/* Pairs with WRITE_ONCE() where it is set; nothing hangs on the order. */
	return READ_ONCE(ed->gone);
}

/**
 * embeng_dev_enter() - keep the driver from letting go of the device
 * @ed: device
 * @index: for embeng_dev_exit()
 *
 * Return: false when it is gone already.
 */
static inline bool embeng_dev_enter(struct embeng_device *ed, int *index)
{
	*index = srcu_read_lock(&ed->users);
	if (!embeng_gone(ed))
		return true;
	srcu_read_unlock(&ed->users, *index);
	return false;
}

static inline void embeng_dev_exit(struct embeng_device *ed, int index)
{
	srcu_read_unlock(&ed->users, index);
}

/**
 * struct embeng_hang - why a rung is taken
 * @cause: enum embeng_accel_cause
 * @still_ns: how long nothing had moved
 * @timeline: of the queue that was judged; 0: whichever has the number
 */
struct embeng_hang {
	u32 cause;
	u64 still_ns;
	u64 timeline;
};

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

/* As large as a program wishes: charged to it, and to refuse it is nobody else's news. */
#define EMBENG_GFP_WISH (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/* regs.c: all of them */
struct embeng_register_entry {
	const char *name;
	u32 offset;
	u32 bytes;
};

#define EMBENG_REGISTER_COUNTED(name, offset, bytes, writer, reset, words) + 1
#define EMBENG_REGISTERS (0 EMBENG_REGISTER_TABLE(EMBENG_REGISTER_COUNTED))

extern const struct embeng_register_entry embeng_registers[EMBENG_REGISTERS];
u64 embeng_register_read(const struct embeng_device *ed, const struct embeng_register_entry *entry);

/* pci_function.c: the function as a whole */
int embeng_device_map(struct embeng_device *ed);
int embeng_device_wait(struct embeng_device *ed, enum embeng_register reg, u32 value);
int embeng_device_wait_rom(struct embeng_device *ed);
int embeng_device_reset(struct embeng_device *ed);
void embeng_device_cut_off(struct embeng_device *ed);
void embeng_device_silence(struct embeng_device *ed);

/* All ones is what a bus says of a function that is not there. */
static inline bool embeng_present(const struct embeng_device *ed)
{
	return embeng_read32(ed, EMBENG_REG_MAGIC) != U32_MAX;
}

/* admin.c */
int embeng_admin_init(struct embeng_device *ed);
void embeng_admin_start(struct embeng_device *ed);
void embeng_admin_poll(struct embeng_device *ed);
int embeng_admin_run(struct embeng_device *ed, struct embeng_admin_cmd *cmd);

/* bo_import.c */
int embeng_import_init(struct embeng_device *ed);

/* irq.c */
int embeng_irq_init(struct embeng_device *ed);

/* reset.c */
void embeng_reset(struct embeng_device *ed, enum embeng_accel_rung rung, u64 seen,
		  const struct embeng_hang *hang);
void embeng_reset_before(struct embeng_device *ed, const struct embeng_hang *hang);
void embeng_reset_after(struct embeng_device *ed, int booted, enum embeng_accel_rung rung,
			const struct embeng_hang *hang);
void embeng_reset_gone(struct embeng_device *ed, const char *why);
void embeng_reset_climb(struct embeng_device *ed, enum embeng_accel_rung rung,
			const struct embeng_hang *hang);
int embeng_reset_revive(struct embeng_device *ed);
void embeng_reset_found(struct embeng_device *ed, const struct embeng_hang *hang);
void embeng_reset_give_up(struct embeng_device *ed);
void embeng_reset_tell(struct embeng_device *ed, enum embeng_accel_rung rung,
		       const struct embeng_hang *hang);
int embeng_reset_save(struct embeng_device *ed);
int embeng_reset_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* hang_detect.c */
void embeng_watchdog_init(struct embeng_device *ed);
void embeng_watchdog_start(struct embeng_device *ed);
void embeng_watchdog_stop(struct embeng_device *ed);
void embeng_watchdog_interrupt(struct embeng_device *ed);

/* reset_dump.c */
void embeng_coredump(struct embeng_device *ed, const struct embeng_hang *hang);
const char *embeng_cause_word(u32 cause);
const char *embeng_rung_word(u32 rung);

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

/* Published in the other order: what was sent and is not here is nowhere. */
static inline bool embeng_ring_lost(const struct embeng_ring_header *header)
{
	/* Pairs with the device's release, which comes after that of cq_tail. */
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
