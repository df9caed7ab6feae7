// SPDX-License-Identifier: GPL-2.0-only
/* What a test wants to see of a device, under embeng_emu/DEVICE in debugfs. */
#include <linux/debugfs.h>

#include "emu.h"

static struct dentry *root;

static int mapped_pages(void *data, u64 *value)
{
	*value = emu_iommu_pages(data);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(mapped_pages_fops, mapped_pages, NULL, "%llu\n");

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

void emu_debugfs_add(struct emu *emu)
{
	char name[12];

	snprintf(name, sizeof(name), "%u", emu->number);
	emu->debugfs = debugfs_create_dir(name, root);
	emu_faults_init(&emu->faults, emu->debugfs);
	emu_bus_error_init(emu);
	make_speed(&emu->speed, debugfs_create_dir("speed", emu->debugfs));
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
