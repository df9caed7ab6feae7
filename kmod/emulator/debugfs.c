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

void emu_debugfs_add(struct emu *emu)
{
	char name[12];

	snprintf(name, sizeof(name), "%u", emu->number);
	emu->debugfs = debugfs_create_dir(name, root);
	emu_faults_init(&emu->faults, emu->debugfs);
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
