/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The emulator: one &struct emu is one virtual PCI function with an engine
 * behind it, on a host bridge and in a PCI domain of its own.
 *
 * Its BARs are ordinary memory that both sides map, so no access traps: the
 * service thread looks at the registers and doorbells (serve.c). Config space
 * goes through pci_ops and is answered at once (config.c).
 */
#ifndef EMBENG_EMU_H
#define EMBENG_EMU_H

#include <linux/cleanup.h>
#include <linux/ioport.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/msi.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/xarray.h>

#include "../../engine/engine.h"
#include "fault.h"

#define EMU_NAME "embeng_emu"
#define EMU_VECTORS_MAX 32
#define EMU_QUEUES_MAX 1024
#define EMU_CORES_MAX EMBENG_CORES_MAX
#define EMU_RECORD_MAX (64ull << 30)
#define EMU_DOMAIN_FIRST 0x0eb0
#define EMU_MSIX_PENDING_OFFSET 0x800 /* in the BAR of the vector table */

struct emu;

/*
 * guard(emu_lock): guard(raw_spinlock_irqsave), but for sparse, which does not see that a guard
 * lets go at the end of its scope: to it the lock is never taken.
 */
DEFINE_LOCK_GUARD_1(emu_lock, raw_spinlock_t,
		    ({ raw_spin_lock_irqsave(_T->lock, _T->flags); __release(_T->lock); }),
		    ({ __acquire(_T->lock); raw_spin_unlock_irqrestore(_T->lock, _T->flags); }),
		    unsigned long flags)

/**
 * struct emu_options - size and properties of a device
 * @device: PCI device id
 * @cores: engine cores, 1 to EMU_CORES_MAX
 * @queues: queues with the admin queue, 2 to EMU_QUEUES_MAX
 * @vectors: interrupt vectors, 1 to EMU_VECTORS_MAX
 * @memory: bytes for tables and slots
 * @d3_keeps: the engine keeps its state in D3hot (No_Soft_Reset)
 * @iommu: an IOMMU stands in front of the function
 * @record: bytes that a recording may have, 0: there is none
 */
struct emu_options {
	u16 device;
	u32 cores;
	u32 queues;
	u32 vectors;
	u64 memory;
	bool d3_keeps;
	bool iommu;
	u64 record;
};

/**
 * struct emu_record - a recording of what the device is given and does
 * @chunks: its memory; NULL: nothing is recorded
 * @length: bytes of it that can be read
 * @ended: nothing more is recorded
 */
struct emu_record {
	void **chunks;
	u64 length;
	bool ended;
};

/**
 * struct emu_config - config space
 * @lock: guards the bytes; raw, since the PCI core may hold a raw lock of its own
 * @value: bytes that a read returns
 * @writable: bits of @value that a write changes
 */
struct emu_config {
	raw_spinlock_t lock;
	u8 value[PCI_CFG_SPACE_EXP_SIZE];
	u8 writable[PCI_CFG_SPACE_EXP_SIZE];
};

/**
 * struct emu_vector - one MSI-X vector
 * @work: runs the handler in hard interrupt context
 * @msix: the function's interrupts, to which the vector belongs
 * @index: number of the vector
 * @repeats: set by a fault: how many times the interrupt comes again by itself
 */
struct emu_vector {
	struct irq_work work;
	struct emu_msix *msix;
	u32 index;
	u32 repeats;
};

/**
 * struct emu_msix - the interrupts of a function
 * @lock: orders raising a vector with unmasking it
 * @domain: interrupt domain that the driver's interrupts are allocated from
 * @virq: the kernel's interrupt for each number in a message's data, 0: none
 * @table: the vector table in BAR 4
 * @pending: the pending bits in BAR 4
 * @vectors: state of each vector
 */
struct emu_msix {
	raw_spinlock_t lock;
	struct irq_domain *domain;
	u32 virq[EMU_VECTORS_MAX];
	u32 *table;
	u32 *pending;
	struct emu_vector vectors[EMU_VECTORS_MAX];
};

/**
 * struct emu - a device
 * @link: entry in the list of devices of the module's parameters
 * @number: number of the device, from 0
 * @options: size and properties
 * @platform: parent of the host bridge
 * @bridge: the host bridge
 * @window: bus addresses of the BARs, carved out of the backing memory
 * @memory: @window as the emulator maps it
 * @config: config space
 * @msix: interrupts
 * @engine: the engine behind the BARs; only the service thread uses it
 * @firmware_minimum: lowest firmware version that the engine accepts, kept over power cycles
 * @thread: service thread, which looks at registers and doorbells
 * @pages: with an IOMMU: counts of mappings and of the device's views, by page frame
 * @unmapped_in_use: pages that were unmapped while the device had a view of them
 * @reset_wanted: the service thread is to power-cycle the engine
 * @on_bus: the engine runs, and may be accessing memory
 * @absent: config space answers all ones until the reset is over
 * @faults: settings of each fault, by enum port_fault and enum emu_fault
 * @debugfs: the device's folder in debugfs
 * @record: recording of what it is given and does
 * @speed: speed that the device is modelled with; all 0: it runs as fast as it can
 * @thermal: thermal model of the device
 * @dead: set by a fault: the engine does nothing until the function is reset
 * @gone: set by a fault: the function answers all ones and its engine is off
 * @bus_error: how the last recovery from a bus error ended, 0: there was none
 * @back_ns: set by a fault: time at which the link is up again, 0: it is not down
 */
struct emu {
	struct list_head link;
	u32 number;
	struct emu_options options;
	struct platform_device *platform;
	struct pci_host_bridge *bridge;
	struct resource window;
	void *memory;
	struct emu_config config;
	struct emu_msix msix;
	struct engine *engine;
	u64 firmware_minimum;
	struct task_struct *thread;
	struct xarray pages;
	u64 unmapped_in_use;
	bool reset_wanted;
	bool on_bus;
	bool absent;
	struct emu_fault_setting faults[EMU_FAULTS];
	struct dentry *debugfs;
	struct emu_record record;
	struct port_speed speed;
	struct port_thermal thermal;
	bool dead;
	bool gone;
	pci_ers_result_t bus_error;
	u64 back_ns;
};

static inline struct device *emu_dev(struct emu *emu)
{
	return &emu->platform->dev;
}

/* BARs lie in the window with the largest first, so that each is aligned. */
static inline u64 emu_doorbell_bytes(const struct emu *emu)
{
	return roundup_pow_of_two((u64)emu->options.queues * PAGE_SIZE);
}

static inline u64 emu_window_bytes(const struct emu *emu)
{
	return emu_doorbell_bytes(emu) + EMBENG_REGISTERS_SIZE + PAGE_SIZE;
}

static inline u64 emu_bar_offset(const struct emu *emu, unsigned int bar)
{
	switch (bar) {
	case EMBENG_BAR_DOORBELLS:
		return 0;
	case EMBENG_BAR_REGISTERS:
		return emu_doorbell_bytes(emu);
	default:
		return emu_doorbell_bytes(emu) + EMBENG_REGISTERS_SIZE;
	}
}

static inline void *emu_bar(struct emu *emu, unsigned int bar)
{
	return emu->memory + emu_bar_offset(emu, bar);
}

/* backing.c: memory that is no System RAM and that two sides can map */
int emu_backing_open(const char *memmap, const char *donor);
void emu_backing_close(void);
int emu_window_claim(struct emu *emu);
void emu_window_release(struct emu *emu);

/* config.c */
extern struct pci_ops emu_pci_ops;
void emu_config_init(struct emu *emu);
void emu_config_reset(struct emu *emu);
u32 emu_config_get(const struct emu *emu, unsigned int where, unsigned int size);
bool emu_config_bus_master(const struct emu *emu);
bool emu_config_asleep(const struct emu *emu);
bool emu_config_msix_masked(const struct emu *emu);
bool emu_config_msix_enabled(const struct emu *emu);

/* bridge.c */
struct emu *emu_of_bus(const struct pci_bus *bus);
int emu_bridge_add(struct emu *emu);
void emu_bridge_remove(struct emu *emu);
int emu_bridge_init(void);
void emu_bridge_exit(void);

/* msix.c */
int emu_msix_init(struct emu *emu);
void emu_msix_exit(struct emu *emu);
void emu_msix_raise(struct emu *emu, u32 vector, u32 repeats);
void emu_msix_replay(struct emu *emu);
void emu_msix_reset(struct emu *emu);

/* iommu.c */
void emu_iommu_attach(struct emu *emu, struct device *dev);
void emu_iommu_detach(struct device *dev);
bool emu_iommu_translate(struct emu *emu, u64 *address, u64 length);
int emu_iommu_hold(struct emu *emu, phys_addr_t start, size_t size);
void emu_iommu_let_go(struct emu *emu, phys_addr_t start, size_t size);
u64 emu_iommu_pages(struct emu *emu);

/* debugfs.c */
void emu_debugfs_init(void);
void emu_debugfs_exit(void);
void emu_debugfs_add(struct emu *emu);
void emu_debugfs_remove(struct emu *emu);

/* record.c */
extern const struct engine_recorder emu_recorder;
int emu_record_init(struct emu *emu);
void emu_record_add(struct emu *emu);  /* its file, when the device's folder is there */
void emu_record_exit(struct emu *emu); /* after the engine */

/* keys.c */
int emu_keys_init(void);
void emu_keys_exit(void);

/* bus_error.c */
void emu_bus_error_add(struct emu *emu);
void emu_bus_error_remove(struct emu *emu);

/* configfs.c */
int emu_configfs_init(const struct emu_options *options);
void emu_configfs_exit(void);

/* serve.c */
int emu_serve_start(struct emu *emu);
void emu_serve_stop(struct emu *emu);
void emu_serve_reset(struct emu *emu, bool absent);
void emu_serve_booting(struct emu *emu);

/* device.c */
int emu_options_check(const struct emu_options *options);
struct emu *emu_create(const struct emu_options *options);
void emu_destroy(struct emu *emu);

#endif
