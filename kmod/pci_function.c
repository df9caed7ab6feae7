// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PCI function as a whole: enabling and mapping it, waiting for its registers, the warm reset,
 * and taking the bus away from it.
 *
 * The mappings belong to the driver's hold of the function (pcim_), so that registers may be read
 * from probe until it lets go. No lock is taken here. Callers hold reset_lock for writing, or are
 * in probe, where they reset or silence the device. Waits end early when the device is gone or
 * reads all ones, and look once more after the limit.
 *
 * embeng_device_silence() and embeng_device_cut_off() are what freeing memory relies on: after
 * them the device does not reach memory, whatever state it is in.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>
#include <linux/module.h>

#include "driver.h"

/* The default has room for slow emulation. */
static uint answer_timeout_ms = 20000;
module_param(answer_timeout_ms, uint, 0600);
MODULE_PARM_DESC(answer_timeout_ms, "milliseconds after which a device that has not answered a reset, or has not booted, has failed (default: 20000)");

#define LOOK_US 1000
/* Waits of the PCI core for pending transactions, of 0.7 seconds each. */
#define PENDING_TRIES 16

/* Read at each look, so that a shorter limit ends a wait that goes on. */
static bool is_too_late(ktime_t began)
{
	return ktime_ms_delta(ktime_get(), began) >= READ_ONCE(answer_timeout_ms);
}

static bool has_register_value(struct embeng_device *ed, enum embeng_register reg, u32 value)
{
	return embeng_gone(ed) || !embeng_present(ed) || embeng_read32(ed, reg) == value;
}

/**
 * embeng_device_wait() - wait until a register holds a value
 * @ed: device
 * @reg: register of 4 bytes
 * @value: value to wait for
 *
 * Return: 0, -ENODEV, or -ETIMEDOUT.
 */
int embeng_device_wait(struct embeng_device *ed, enum embeng_register reg, u32 value)
{
	ktime_t began = ktime_get();
	bool is;

	read_poll_timeout(has_register_value, is, is || is_too_late(began), LOOK_US, 0, false, ed,
			  reg, value);
	if (embeng_gone(ed) || !embeng_present(ed))
		return -ENODEV;
	return embeng_read32(ed, reg) == value ? 0 : -ETIMEDOUT;
}

static bool awaits_image(struct embeng_device *ed)
{
	u32 state = embeng_read32(ed, EMBENG_REG_BOOT_STATE);

	return embeng_gone(ed) || state == EMBENG_BOOT_ROM || state == EMBENG_BOOT_FAILED;
}

/**
 * embeng_device_wait_rom() - wait until the device is ready for an image
 * @ed: device
 *
 * Return: 0, -ENODEV, or -ETIMEDOUT.
 */
int embeng_device_wait_rom(struct embeng_device *ed)
{
	ktime_t began = ktime_get();
	bool is;

	read_poll_timeout(awaits_image, is, is || is_too_late(began), LOOK_US, 0, false, ed);
	if (embeng_gone(ed))
		return -ENODEV;
	return awaits_image(ed) ? 0 : -ETIMEDOUT;
}

/**
 * embeng_device_reset() - make a warm reset, which loses all contexts, queues and tables
 * @ed: device
 *
 * Return: 0 when the device does not access memory any more, -ENODEV, or -ETIMEDOUT.
 */
int embeng_device_reset(struct embeng_device *ed)
{
	u32 sequence = embeng_read32(ed, EMBENG_REG_CONTROL_SEQUENCE) + 1;

	embeng_write32(ed, EMBENG_REG_CONTROL, EMBENG_CONTROL_RESET);
	embeng_write32(ed, EMBENG_REG_CONTROL_SEQUENCE, sequence);
	return embeng_device_wait(ed, EMBENG_REG_CONTROL_DONE, sequence);
}

/**
 * embeng_device_cut_off() - take bus mastering away from the device
 * @ed: device
 *
 * The device reaches no memory after this, whatever it does.
 */
void embeng_device_cut_off(struct embeng_device *ed)
{
	int i;

	pci_clear_master(ed->pci);
	/* A transfer that has begun may be long: a copy of all memory that the device was given. */
	for (i = 0; i < PENDING_TRIES; i++) {
		if (!pci_device_is_present(ed->pci) || pci_wait_for_pending_transaction(ed->pci))
			return;
	}
	drm_warn(&ed->drm, "what the device had begun on the bus does not end\n");
}

/**
 * embeng_device_silence() - make sure that the device reaches no memory
 * @ed: device
 *
 * The device is reset, and then loses bus mastering even if it did not answer. A device that was
 * pulled out has lost the bus already.
 */
void embeng_device_silence(struct embeng_device *ed)
{
	if (!pci_device_is_present(ed->pci))
		return;
	if (embeng_read32(ed, EMBENG_REG_MAGIC) != EMBENG_DEVICE_MAGIC || embeng_device_reset(ed))
		drm_warn(&ed->drm, "the device does not answer, its bus access is taken away\n");
	embeng_device_cut_off(ed);
}

static int check_doorbells(struct embeng_device *ed)
{
	ed->doorbell_stride = embeng_read32(ed, EMBENG_REG_DOORBELL_STRIDE);
	if (ed->doorbell_stride < PAGE_SIZE || ed->doorbell_stride % PAGE_SIZE ||
	    ed->doorbell_stride > pci_resource_len(ed->pci, EMBENG_BAR_DOORBELLS))
		return dev_err_probe(&ed->pci->dev, -ENODEV,
				     "doorbells of %u bytes do not fit the pages of this kernel\n",
				     ed->doorbell_stride);
	return 0;
}

static int check_identity(struct embeng_device *ed)
{
	u32 magic = embeng_read32(ed, EMBENG_REG_MAGIC);
	u32 interface = embeng_read32(ed, EMBENG_REG_INTERFACE);

	if (magic != EMBENG_DEVICE_MAGIC)
		return dev_err_probe(&ed->pci->dev, -ENODEV, "no embeng device: magic %#x\n",
				     magic);
	if (interface >> 16 != EMBENG_INTERFACE_MAJOR)
		return dev_err_probe(&ed->pci->dev, -ENODEV,
				     "the device speaks interface %u.%u, this driver %u.x\n",
				     interface >> 16, interface & 0xffff, EMBENG_INTERFACE_MAJOR);
	return check_doorbells(ed);
}

static bool is_embeng_device(struct embeng_device *ed)
{
	return embeng_read32(ed, EMBENG_REG_MAGIC) == EMBENG_DEVICE_MAGIC;
}

static bool await_identity(struct embeng_device *ed)
{
	ktime_t began = ktime_get();
	bool there;

	read_poll_timeout(is_embeng_device, there, there || is_too_late(began), LOOK_US, 0, false,
			  ed);
	return is_embeng_device(ed);
}

/* A device whose firmware died while it booted answers no warm reset. */
static int reset_dead_function(struct embeng_device *ed)
{
	struct pci_dev *pci = ed->pci;

	dev_warn(&pci->dev, "a warm reset has no answer, the function is reset\n");
	pci_save_state(pci);
	if (pcie_reset_flr(pci, PCI_RESET_DO_RESET))
		return -ETIMEDOUT;
	pci_restore_state(pci);
	return await_identity(ed) ? embeng_device_wait_rom(ed) : -ETIMEDOUT;
}

/* A device that was left running is reset; one that comes out of reset needs a moment. */
static int settle_function(struct embeng_device *ed)
{
	if (await_identity(ed) && !awaits_image(ed) && embeng_device_reset(ed) &&
	    reset_dead_function(ed))
		return dev_err_probe(&ed->pci->dev, -ETIMEDOUT, "no reset has an answer\n");
	return check_identity(ed);
}

/**
 * embeng_device_map() - enable the function, map its BARs, and leave the device in ROM
 * @ed: device
 *
 * Return: 0 or a negative errno, which was reported.
 */
int embeng_device_map(struct embeng_device *ed)
{
	struct device *dev = &ed->pci->dev;
	int ret = pcim_enable_device(ed->pci);

	if (ret)
		return dev_err_probe(dev, ret, "cannot enable the function\n");
	ed->registers = pcim_iomap_region(ed->pci, EMBENG_BAR_REGISTERS, EMBENG_NAME);
	if (IS_ERR(ed->registers))
		return dev_err_probe(dev, PTR_ERR(ed->registers), "cannot map the registers\n");
	ed->doorbells = pcim_iomap_region(ed->pci, EMBENG_BAR_DOORBELLS, EMBENG_NAME);
	if (IS_ERR(ed->doorbells))
		return dev_err_probe(dev, PTR_ERR(ed->doorbells), "cannot map the doorbells\n");
	ret = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64));
	if (ret)
		return dev_err_probe(dev, ret, "no 64-bit DMA\n");
	dma_set_max_seg_size(dev, UINT_MAX);
	return settle_function(ed);
}
