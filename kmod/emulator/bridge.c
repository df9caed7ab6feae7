// SPDX-License-Identifier: GPL-2.0-only
/*
 * A host bridge and a PCI domain of its own for each emulated function, so that the kernel finds
 * it as it finds hardware, and a driver binds to it.
 *
 * The private data of the bridge lives as long as the bridge. Users of the PCI device may keep
 * that after the emulator's device is gone; its pointer to the device is NULL from then on, and
 * config accesses answer that there is no function. The PCI core's rescan lock is held while the
 * function appears and disappears. A notifier of the PCI bus sets each function up as it appears,
 * also after a rescan; it is registered for as long as the module is loaded.
 */
#include "emu.h"

/*
 * Lives as long as the bridge, which users of the PCI device may keep after the
 * emulator's device is gone; @emu is NULL from then on.
 */
struct emu_root {
	struct pci_sysdata sysdata;
	struct emu *emu;
};

static struct resource bus_numbers = { .name = EMU_NAME, .flags = IORESOURCE_BUS };

struct emu *emu_of_bus(const struct pci_bus *bus)
{
	return READ_ONCE(container_of(bus->sysdata, struct emu_root, sysdata)->emu);
}

static int find_free_domain(void)
{
	int domain = EMU_DOMAIN_FIRST;

	while (pci_find_bus(domain, 0))
		domain++;
	return domain;
}

static struct pci_host_bridge *make_bridge(struct emu *emu)
{
	struct pci_host_bridge *bridge = pci_alloc_host_bridge(sizeof(struct emu_root));
	struct emu_root *root;

	if (!bridge)
		return NULL;
	root = pci_host_bridge_priv(bridge);
	root->emu = emu;
	root->sysdata.domain = find_free_domain();
	root->sysdata.node = NUMA_NO_NODE;
	bridge->dev.parent = emu_dev(emu);
	bridge->sysdata = &root->sysdata;
	bridge->ops = &emu_pci_ops;
	dev_set_msi_domain(&bridge->dev, emu->msix.domain);
	pci_add_resource(&bridge->windows, &emu->window);
	pci_add_resource(&bridge->windows, &bus_numbers);
	return bridge;
}

/**
 * emu_bridge_add() - make the PCI function appear
 * @emu: the device
 *
 * The device must answer already, because a driver that is loaded binds at once.
 */
int emu_bridge_add(struct emu *emu)
{
	struct pci_host_bridge *bridge = make_bridge(emu);
	int ret;

	if (!bridge)
		return -ENOMEM;
	emu->bridge = bridge;
	pci_lock_rescan_remove();
	ret = pci_scan_root_bus_bridge(bridge);
	if (!ret)
		pci_bus_add_devices(bridge->bus);
	pci_unlock_rescan_remove();
	if (ret)
		pci_free_host_bridge(bridge);
	return ret;
}

void emu_bridge_remove(struct emu *emu)
{
	struct emu_root *root = pci_host_bridge_priv(emu->bridge);
	struct pci_bus *bus = emu->bridge->bus;

	pci_lock_rescan_remove();
	pci_stop_root_bus(bus);
	pci_remove_root_bus(bus);
	pci_unlock_rescan_remove();
	WRITE_ONCE(root->emu, NULL);
	pci_free_host_bridge(emu->bridge);
}

/*
 * Claims the BARs where config space has them, before the kernel tries to place them: by itself it
 * would keep clear of reserved memory.
 */
static void claim_bars(struct pci_dev *dev)
{
	struct resource *bar;

	pci_dev_for_each_resource(dev, bar) {
		if (bar->flags && pci_claim_resource(dev, bar - dev->resource))
			pci_err(dev, "cannot claim %pR\n", bar);
	}
}

/* Called each time that the function appears or goes, also by a rescan. */
static int handle_bus_event(struct notifier_block *block, unsigned long action, void *data)
{
	struct pci_dev *dev = to_pci_dev(data);

	if (dev->bus->ops != &emu_pci_ops)
		return NOTIFY_DONE;
	switch (action) {
	case BUS_NOTIFY_ADD_DEVICE:
		claim_bars(dev);
		emu_iommu_attach(emu_of_bus(dev->bus), &dev->dev);
		break;
	case BUS_NOTIFY_REMOVED_DEVICE:
		emu_iommu_detach(&dev->dev);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block block = { .notifier_call = handle_bus_event };

int emu_bridge_init(void)
{
	return bus_register_notifier(&pci_bus_type, &block);
}

void emu_bridge_exit(void)
{
	bus_unregister_notifier(&pci_bus_type, &block);
}
