// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for the BARs of emulated devices. It must be memory that the processor can read and write
 * and that is not System RAM, because the kernel neither reserves nor remaps System RAM for a
 * driver. It is either a range that the boot parameter memmap= keeps free, or a part of the memory
 * BAR of another PCI function that nothing else uses (the donor).
 *
 * The memory is found when the module is loaded and given back when it is unloaded; the donor is
 * held and stays enabled in between. Each device carves a window out of it, and the kernel's
 * resource tree keeps windows apart with its own lock. Devices are made and removed under
 * `creation` (device.c).
 */
#include <linux/io.h>

#include "emu.h"

#define VGA_TEXT_HALF SZ_8M

struct donor {
	unsigned int vendor;
	unsigned int device;
	unsigned int bar;
	u64 offset;
};

/* QEMU's shared memory, and the half of its standard VGA's memory that text does not use. */
static const struct donor known_donors[] = {
	{ 0x1af4, 0x1110, 2, 0 },
	{ 0x1234, 0x1111, 0, VGA_TEXT_HALF },
};

static struct resource backing = { .name = EMU_NAME, .flags = IORESOURCE_MEM };
static struct resource *room = &backing; /* windows are requested from it */
static struct pci_dev *donor_dev;

/* If the kernel has reserved the same range itself, windows are requested from its resource. */
static int insert_backing(void)
{
	int ret = insert_resource(&iomem_resource, &backing);
	struct resource *child = ret ? NULL : backing.child;

	if (child && child->start == backing.start && child->end == backing.end)
		room = child;
	return ret;
}

static int open_memmap(const char *text)
{
	char *rest;
	u64 size = memparse(text, &rest), start;
	int ret;

	if ((*rest != '@' && *rest != '$') || !size) {
		pr_err(EMU_NAME ": memmap=%s is not SIZE@ADDRESS\n", text);
		return -EINVAL;
	}
	start = memparse(rest + 1, &rest);
	if (*rest || !PAGE_ALIGNED(start | size) || start + size <= start) {
		pr_err(EMU_NAME ": memmap=%s is not a range of whole pages\n", text);
		return -EINVAL;
	}
	if (region_intersects(start, size, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) !=
	    REGION_DISJOINT) {
		pr_err(EMU_NAME ": memmap=%s is in use as RAM: boot with memmap=%lluK$0x%llx\n",
		       text, size >> 10, start);
		return -EBUSY;
	}
	backing.start = start;
	backing.end = start + size - 1;
	ret = insert_backing();
	if (ret)
		pr_err(EMU_NAME ": memmap=%s overlaps a resource of something else (%pe)\n", text,
		       ERR_PTR(ret));
	return ret;
}

static int borrow_donor_bar(struct pci_dev *dev, const struct donor *d)
{
	int ret;

	if (d->bar >= PCI_STD_NUM_BARS || !(pci_resource_flags(dev, d->bar) & IORESOURCE_MEM) ||
	    pci_resource_len(dev, d->bar) <= d->offset || !PAGE_ALIGNED(d->offset))
		return -EINVAL;
	if (dev->driver)
		return -EBUSY;
	ret = pci_enable_device_mem(dev);
	if (ret)
		return ret;
	backing.start = pci_resource_start(dev, d->bar) + d->offset;
	backing.end = pci_resource_end(dev, d->bar);
	ret = request_resource(&dev->resource[d->bar], &backing);
	if (ret)
		pci_disable_device(dev);
	return ret;
}

static int open_donor(const struct donor *d)
{
	struct pci_dev *dev = pci_get_device(d->vendor, d->device, NULL);
	int ret;

	if (!dev)
		return -ENODEV;
	ret = borrow_donor_bar(dev, d);
	if (ret) {
		pci_dev_put(dev);
		return ret;
	}
	donor_dev = dev;
	return 0;
}

static int open_named_donor(const char *text)
{
	struct donor d = {};
	int ret, end = 0;

	if (sscanf(text, "%x:%x:%u%n:%lli%n", &d.vendor, &d.device, &d.bar, &end, &d.offset,
		   &end) < 3 || text[end]) {
		pr_err(EMU_NAME ": donor=%s is not VENDOR:DEVICE:BAR[:OFFSET]\n", text);
		return -EINVAL;
	}
	ret = open_donor(&d);
	if (ret)
		pr_err(EMU_NAME ": donor=%s cannot give its memory (%pe)\n", text, ERR_PTR(ret));
	return ret;
}

/**
 * emu_backing_open() - find the memory that devices are carved from
 * @memmap: SIZE@ADDRESS, or NULL
 * @donor: VENDOR:DEVICE:BAR[:OFFSET], or NULL
 *
 * With neither, the known donors are tried. Return: 0 or a negative errno.
 */
int emu_backing_open(const char *memmap, const char *donor)
{
	unsigned int i;

	if (memmap)
		return open_memmap(memmap);
	if (donor)
		return open_named_donor(donor);
	for (i = 0; i < ARRAY_SIZE(known_donors); i++)
		if (!open_donor(&known_donors[i]))
			return 0;
	pr_err(EMU_NAME ": no memory for BARs: boot with memmap=16M$ADDRESS and give memmap=16M@ADDRESS, or give donor=VENDOR:DEVICE:BAR[:OFFSET] of a PCI function with unused memory\n");
	return -ENODEV;
}

void emu_backing_close(void)
{
	if (!donor_dev) {
		remove_resource(&backing);
		return;
	}
	release_resource(&backing);
	pci_disable_device(donor_dev);
	pci_dev_put(donor_dev);
}

/* Searched by hand, since allocate_resource() keeps clear of what memmap= reserved. */
static int carve_window(struct resource *window, u64 bytes, u64 align)
{
	u64 start;

	for (start = ALIGN(backing.start, align); start + bytes - 1 <= backing.end;
	     start += align) {
		window->start = start;
		window->end = start + bytes - 1;
		if (!request_resource(room, window))
			return 0;
	}
	return -ENOSPC;
}

/*
 * The window is mapped write-through, and so cached: looking at idle registers and doorbells
 * costs no bus access. A driver that asks for an uncached mapping gets this mapping, too.
 */
int emu_window_claim(struct emu *emu)
{
	u64 bytes = emu_window_bytes(emu);
	int ret;

	emu->window.name = dev_name(emu_dev(emu));
	emu->window.flags = IORESOURCE_MEM | IORESOURCE_MEM_64;
	ret = carve_window(&emu->window, bytes, emu_doorbell_bytes(emu));
	if (ret)
		return dev_err_probe(emu_dev(emu), ret, "no room for %llu bytes of BARs in %pR\n",
				     bytes, &backing);
	emu->memory = memremap(emu->window.start, bytes, MEMREMAP_WT);
	if (!emu->memory) {
		release_resource(&emu->window);
		return dev_err_probe(emu_dev(emu), -ENOMEM, "cannot map %pR\n", &emu->window);
	}
	memset(emu->memory, 0, bytes);
	return 0;
}

void emu_window_release(struct emu *emu)
{
	memunmap(emu->memory);
	release_resource(&emu->window);
}
