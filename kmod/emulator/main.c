// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: its parameters, the devices that they ask for, and the order in which the parts that
 * all devices share are set up and taken down.
 *
 * Devices of the parameters are made when the module is loaded and removed when it is unloaded;
 * only those two touch the list of them, so that it needs no lock. Devices of configfs come and go
 * in between, and none is left when the module can be unloaded, since each of their folders holds
 * it.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include "../compat/v6.12_oldest.h"
#include "emu.h"

static unsigned int devices = 1;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "number of devices to make (default: 1)");

static ushort device = EMBENG_PCI_DEVICE_EMULATED;
module_param(device, ushort, 0444);
MODULE_PARM_DESC(device, "PCI device id of each function (default: 1)");

static unsigned int cores = 2;
module_param(cores, uint, 0444);
MODULE_PARM_DESC(cores, "number of engine cores of each device, 1 to 64 (default: 2)");

static unsigned int queues = 64;
module_param(queues, uint, 0444);
MODULE_PARM_DESC(queues, "number of queues of each device, 2 to 1024 (default: 64)");

static unsigned int vectors = 8;
module_param(vectors, uint, 0444);
MODULE_PARM_DESC(vectors, "number of interrupt vectors of each device, 1 to 32 (default: 8)");

static char *memory = "256M";
module_param(memory, charp, 0444);
MODULE_PARM_DESC(memory, "memory for tables and slots of each device, in bytes or with K, M or G (default: 256M)");

static bool d3_keeps;
module_param(d3_keeps, bool, 0444);
MODULE_PARM_DESC(d3_keeps, "keep the device's state in D3hot (default: no)");

static bool iommu;
module_param(iommu, bool, 0444);
MODULE_PARM_DESC(iommu, "put an IOMMU in front of each function (default: no)");

static char *record = "0";
module_param(record, charp, 0444);
MODULE_PARM_DESC(record, "memory for a recording of each device, in bytes or with K, M or G (default: 0, none)");

static char *memmap;
module_param(memmap, charp, 0444);
MODULE_PARM_DESC(memmap, "memory for the BARs as SIZE@ADDRESS, which the boot parameter memmap= must keep free");

static char *donor;
module_param(donor, charp, 0444);
MODULE_PARM_DESC(donor, "PCI function that lends its memory for the BARs, as VENDOR:DEVICE:BAR[:OFFSET]");

static LIST_HEAD(emus);

static int read_parameters(struct emu_options *options)
{
	char *rest, *record_rest;

	*options = (struct emu_options){
		.device = device,
		.cores = cores,
		.queues = queues,
		.vectors = vectors,
		.memory = memparse(memory, &rest),
		.d3_keeps = d3_keeps,
		.iommu = iommu,
		.record = memparse(record, &record_rest),
	};
	if (*rest) {
		pr_err(EMU_NAME ": memory=%s is not a number of bytes\n", memory);
		return -EINVAL;
	}
	if (*record_rest) {
		pr_err(EMU_NAME ": record=%s is not a number of bytes\n", record);
		return -EINVAL;
	}
	return emu_options_check(options);
}

static void destroy_all_devices(void)
{
	struct emu *emu, *next;

	list_for_each_entry_safe(emu, next, &emus, link) {
		list_del(&emu->link);
		emu_destroy(emu);
	}
}

static int create_all_devices(const struct emu_options *options)
{
	unsigned int i;

	for (i = 0; i < devices; i++) {
		struct emu *emu = emu_create(options);

		if (IS_ERR(emu)) {
			destroy_all_devices();
			return PTR_ERR(emu);
		}
		list_add_tail(&emu->link, &emus);
	}
	return 0;
}

static int __init emu_init(void)
{
	struct emu_options options;
	int ret = read_parameters(&options);

	if (ret)
		return ret;
	if (memmap && donor) {
		pr_err(EMU_NAME ": donor=%s and memmap=%s exclude each other\n", donor, memmap);
		return -EINVAL;
	}
	ret = emu_keys_init();
	if (ret)
		return ret;
	ret = emu_backing_open(memmap, donor);
	if (ret)
		goto exit_keys;
	ret = emu_bridge_init();
	if (ret)
		goto close_backing;
	emu_debugfs_init();
	ret = create_all_devices(&options);
	if (ret)
		goto exit_debugfs;
	ret = emu_configfs_init(&options);
	if (ret)
		goto destroy_devices;
	return 0;
destroy_devices:
	destroy_all_devices();
exit_debugfs:
	emu_debugfs_exit();
	emu_bridge_exit();
close_backing:
	emu_backing_close();
exit_keys:
	emu_keys_exit();
	return ret;
}
module_init(emu_init);

static void __exit emu_exit(void)
{
	emu_configfs_exit();
	destroy_all_devices();
	emu_debugfs_exit();
	emu_bridge_exit();
	emu_backing_close();
	emu_keys_exit();
}
module_exit(emu_exit);

MODULE_DESCRIPTION("Emulator of an embedding engine, as a PCI function");
MODULE_LICENSE("GPL");
