// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices made at run time: mkdir embeng_emu/NAME in configfs, write the device's settings,
 * and write 1 to power. Writing 0, or rmdir, removes the device.
 *
 * A folder is an emu_item, which lives until configfs releases it; the device in it is on only
 * while `emu` is set. it->lock guards the settings and the device, so that no setting changes
 * under a device that is being made; `creation` of device.c is taken inside it. The module's own
 * parameters are the defaults of a new folder.
 */
#include <linux/cleanup.h>
#include <linux/configfs.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "emu.h"

/**
 * struct emu_item - a folder in configfs
 * @group: the folder's configfs group
 * @lock: guards the members that follow
 * @options: settings as written so far
 * @emu: the device; NULL while it is off
 */
struct emu_item {
	struct config_group group;
	struct mutex lock; /* guards the members that follow */
	struct emu_options options;
	struct emu *emu;
};

static struct emu_options defaults;

static struct emu_item *to_item(struct config_item *item)
{
	return container_of(to_config_group(item), struct emu_item, group);
}

/* Stores options with one changed member, if the device is off and the options are in bounds. */
static ssize_t store_options(struct emu_item *it, const struct emu_options *changed, size_t length)
{
	int ret = it->emu ? -EBUSY : emu_options_check(changed);

	if (ret)
		return ret;
	it->options = *changed;
	return length;
}

#define STORE(word, type, parse)                                                              \
	static ssize_t emu_##word##_store(struct config_item *item, const char *page,         \
					  size_t length)                                      \
	{                                                                                     \
		struct emu_item *it = to_item(item);                                          \
		struct emu_options changed;                                                   \
		type value;                                                                   \
		int ret = parse(page, &value);                                                \
											      \
		if (ret)                                                                      \
			return ret;                                                           \
		guard(mutex)(&it->lock);                                                      \
		changed = it->options;                                                        \
		changed.word = value;                                                         \
		return store_options(it, &changed, length);                                   \
	}

#define SHOW(word, format)                                                                    \
	static ssize_t emu_##word##_show(struct config_item *item, char *page)                \
	{                                                                                     \
		return sysfs_emit(page, format "\n", to_item(item)->options.word);            \
	}

static int parse_u32(const char *text, u32 *value)
{
	return kstrtou32(text, 0, value);
}

static int parse_u16(const char *text, u16 *value)
{
	return kstrtou16(text, 0, value);
}

static int parse_bytes(const char *text, u64 *value)
{
	char *rest;

	*value = memparse(text, &rest);
	return *skip_spaces(rest) ? -EINVAL : 0;
}

SHOW(device, "%#x")
STORE(device, u16, parse_u16)
CONFIGFS_ATTR(emu_, device);
SHOW(cores, "%u")
STORE(cores, u32, parse_u32)
CONFIGFS_ATTR(emu_, cores);
SHOW(queues, "%u")
STORE(queues, u32, parse_u32)
CONFIGFS_ATTR(emu_, queues);
SHOW(vectors, "%u")
STORE(vectors, u32, parse_u32)
CONFIGFS_ATTR(emu_, vectors);
SHOW(memory, "%llu")
STORE(memory, u64, parse_bytes)
CONFIGFS_ATTR(emu_, memory);
SHOW(d3_keeps, "%d")
STORE(d3_keeps, bool, kstrtobool)
CONFIGFS_ATTR(emu_, d3_keeps);
SHOW(iommu, "%d")
STORE(iommu, bool, kstrtobool)
CONFIGFS_ATTR(emu_, iommu);
SHOW(record, "%llu")
STORE(record, u64, parse_bytes)
CONFIGFS_ATTR(emu_, record);

static ssize_t emu_power_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!to_item(item)->emu);
}

static void power_off_item(struct emu_item *it)
{
	if (it->emu)
		emu_destroy(it->emu);
	it->emu = NULL;
}

static ssize_t emu_power_store(struct config_item *item, const char *page, size_t length)
{
	struct emu_item *it = to_item(item);
	struct emu *emu;
	bool on;
	int ret = kstrtobool(page, &on);

	if (ret)
		return ret;
	guard(mutex)(&it->lock);
	if (!on) {
		power_off_item(it);
		return length;
	}
	if (it->emu)
		return -EBUSY;
	emu = emu_create(&it->options);
	if (IS_ERR(emu))
		return PTR_ERR(emu);
	it->emu = emu;
	return length;
}
CONFIGFS_ATTR(emu_, power);

/* Shows the address of the function, whose bus and slot are always 0. */
static ssize_t emu_function_show(struct config_item *item, char *page)
{
	struct emu_item *it = to_item(item);

	guard(mutex)(&it->lock);
	if (!it->emu)
		return -ENODEV;
	return sysfs_emit(page, "%04x:00:00.0\n", pci_domain_nr(it->emu->bridge->bus));
}
CONFIGFS_ATTR_RO(emu_, function);

static struct configfs_attribute *attributes[] = {
	&emu_attr_device,
	&emu_attr_cores,
	&emu_attr_queues,
	&emu_attr_vectors,
	&emu_attr_memory,
	&emu_attr_d3_keeps,
	&emu_attr_iommu,
	&emu_attr_record,
	&emu_attr_power,
	&emu_attr_function,
	NULL,
};

static void release_item(struct config_item *item)
{
	struct emu_item *it = to_item(item);

	power_off_item(it);
	mutex_destroy(&it->lock);
	kfree(it);
}

static struct configfs_item_operations item_ops = { .release = release_item };

static const struct config_item_type item_type = {
	.ct_item_ops = &item_ops,
	.ct_attrs = attributes,
	.ct_owner = THIS_MODULE,
};

static struct config_group *make_item_group(struct config_group *group, const char *name)
{
	struct emu_item *it = kzalloc(sizeof(*it), GFP_KERNEL);

	if (!it)
		return ERR_PTR(-ENOMEM);
	mutex_init(&it->lock);
	it->options = defaults;
	config_group_init_type_name(&it->group, name, &item_type);
	return &it->group;
}

static struct configfs_group_operations group_ops = { .make_group = make_item_group };

static const struct config_item_type root_type = {
	.ct_group_ops = &group_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = EMU_NAME,
			.ci_type = &root_type,
		},
	},
};

/**
 * emu_configfs_init() - offer the making of devices at run time
 * @options: defaults for a new folder: the module's parameters
 */
int emu_configfs_init(const struct emu_options *options)
{
	defaults = *options;
	config_group_init(&subsystem.su_group);
	mutex_init(&subsystem.su_mutex);
	return configfs_register_subsystem(&subsystem);
}

void emu_configfs_exit(void)
{
	configfs_unregister_subsystem(&subsystem);
}
