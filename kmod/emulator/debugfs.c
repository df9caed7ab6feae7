// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files in debugfs under embeng_emu/DEVICE: state of a device that tests look at, and how it is
 * modelled (folders speed and thermal). docs/abi/debugfs-driver-embeng_emu describes them. The two
 * functions of engine/port.h that ask for the model are here, since they read the same words.
 *
 * The folder is made before the device's function and goes after it. The words are read and
 * written without a lock: each setting is used as it is at that moment, and bounds are applied
 * where it is used.
 */
#include <linux/debugfs.h>

#include "emu.h"

static struct dentry *root;

static int read_mapped_pages(void *data, u64 *value)
{
	*value = emu_iommu_pages(data);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(mapped_pages_fops, read_mapped_pages, NULL, "%llu\n");

bool port_speed(void *host, struct port_speed *speed)
{
	struct emu *emu = host;

	*speed = (struct port_speed){
		.fixed_ns = READ_ONCE(emu->speed.fixed_ns),
		.ns_per_kib = READ_ONCE(emu->speed.ns_per_kib),
		.ns_per_row = READ_ONCE(emu->speed.ns_per_row),
		.virtual_time = READ_ONCE(emu->speed.virtual_time),
	};
	return speed->fixed_ns || speed->ns_per_kib || speed->ns_per_row || speed->virtual_time;
}

static void make_speed(struct port_speed *speed, struct dentry *folder)
{
	debugfs_create_u64("fixed_ns", 0600, folder, &speed->fixed_ns);
	debugfs_create_u64("ns_per_kib", 0600, folder, &speed->ns_per_kib);
	debugfs_create_u64("ns_per_row", 0600, folder, &speed->ns_per_row);
	debugfs_create_bool("virtual_time", 0600, folder, &speed->virtual_time);
}

/* Settings may change while they are read: each is read once, and bounds apply to the copy. */
bool port_thermal(void *host, struct port_thermal *thermal)
{
	struct emu *emu = host;
	u32 idle_uw = READ_ONCE(emu->thermal.idle_uw);
	u32 full_khz = READ_ONCE(emu->thermal.full_khz);

	*thermal = (struct port_thermal){
		.ambient_mc = READ_ONCE(emu->thermal.ambient_mc),
		.limit_mc = READ_ONCE(emu->thermal.limit_mc) ?: 1,
		.mk_per_w = READ_ONCE(emu->thermal.mk_per_w),
		.time_ms = READ_ONCE(emu->thermal.time_ms) ?: 1,
		.idle_uw = idle_uw,
		.full_uw = max(idle_uw, READ_ONCE(emu->thermal.full_uw)),
		.idle_khz = min(full_khz, READ_ONCE(emu->thermal.idle_khz)),
		.full_khz = full_khz,
	};
	return true;
}

/*
 * The defaults model a card whose cooler holds it at 37 degrees idle and 72 at work, and whose
 * clock goes from 300 MHz to 1 GHz.
 */
static void make_thermal(struct port_thermal *thermal, struct dentry *folder)
{
	*thermal = (struct port_thermal){
		.ambient_mc = 30000,
		.limit_mc = 95000,
		.mk_per_w = 1200,
		.time_ms = 8000,
		.idle_uw = 6000000,
		.full_uw = 35000000,
		.idle_khz = 300000,
		.full_khz = 1000000,
	};
	debugfs_create_u32("ambient_mc", 0600, folder, &thermal->ambient_mc);
	debugfs_create_u32("limit_mc", 0600, folder, &thermal->limit_mc);
	debugfs_create_u32("mk_per_w", 0600, folder, &thermal->mk_per_w);
	debugfs_create_u32("time_ms", 0600, folder, &thermal->time_ms);
	debugfs_create_u32("idle_uw", 0600, folder, &thermal->idle_uw);
	debugfs_create_u32("full_uw", 0600, folder, &thermal->full_uw);
	debugfs_create_u32("idle_khz", 0600, folder, &thermal->idle_khz);
	debugfs_create_u32("full_khz", 0600, folder, &thermal->full_khz);
}

void emu_debugfs_add(struct emu *emu)
{
	char name[12];

	snprintf(name, sizeof(name), "%u", emu->number);
	emu->debugfs = debugfs_create_dir(name, root);
	emu_faults_init(emu);
	emu_record_add(emu);
	make_speed(&emu->speed, debugfs_create_dir("speed", emu->debugfs));
	make_thermal(&emu->thermal, debugfs_create_dir("thermal", emu->debugfs));
	debugfs_create_file_unsafe("mapped_pages", 0400, emu->debugfs, emu, &mapped_pages_fops);
	debugfs_create_u64("unmapped_in_use", 0400, emu->debugfs, &emu->unmapped_in_use);
}

void emu_debugfs_remove(struct emu *emu)
{
	debugfs_remove(emu->debugfs);
}

void emu_debugfs_init(void)
{
	root = debugfs_create_dir(EMU_NAME, NULL);
}

void emu_debugfs_exit(void)
{
	debugfs_remove(root);
}
