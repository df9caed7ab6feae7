// SPDX-License-Identifier: GPL-2.0-only
/* Attributes of the PCI function; docs/abi/sysfs-driver-embeng describes them. */
#include <linux/cleanup.h>
#include <linux/sysfs.h>

#include "context.h"

#define SHOW(name)                                                                             \
	static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)

static u64 read_live(struct device *dev, enum embeng_register reg)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	return embeng_gone(ed) ? 0 : embeng_read64(ed, reg);
}

SHOW(firmware_version)
{
	struct embeng_device *ed = dev_get_drvdata(dev);
	u64 v = READ_ONCE(ed->firmware_version);

	return sysfs_emit(buf, "%llu.%llu.%llu.%llu\n", v >> 48, v >> 32 & 0xffff, v >> 16 & 0xffff,
			  v & 0xffff);
}
static DEVICE_ATTR_RO(firmware_version);

SHOW(interface_version)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%u.%u\n", ed->caps.interface_major, ed->caps.interface_minor);
}
static DEVICE_ATTR_RO(interface_version);

SHOW(busy_time_ns)
{
	return sysfs_emit(buf, "%llu\n",
			  read_live(dev, EMBENG_REG_TIME_CHECK) +
				  read_live(dev, EMBENG_REG_TIME_LOOKUP) +
				  read_live(dev, EMBENG_REG_TIME_PARTITION) +
				  read_live(dev, EMBENG_REG_TIME_UPDATE));
}
static DEVICE_ATTR_RO(busy_time_ns);

SHOW(table_memory_total)
{
	return sysfs_emit(buf, "%llu\n", read_live(dev, EMBENG_REG_TABLE_MEMORY));
}
static DEVICE_ATTR_RO(table_memory_total);

SHOW(table_memory_used)
{
	return sysfs_emit(buf, "%llu\n", read_live(dev, EMBENG_REG_TABLE_MEMORY_USED));
}
static DEVICE_ATTR_RO(table_memory_used);

static struct attribute *device_attributes[] = {
	&dev_attr_firmware_version.attr,
	&dev_attr_interface_version.attr,
	&dev_attr_busy_time_ns.attr,
	&dev_attr_table_memory_total.attr,
	&dev_attr_table_memory_used.attr,
	NULL
};

static const struct attribute_group device_group = { .attrs = device_attributes };

#define RESETS(name)                                                         \
	SHOW(name)                                                           \
	{                                                                    \
		struct embeng_device *ed = dev_get_drvdata(dev);             \
									     \
		guard(rwsem_read)(&ed->reset_lock);                          \
		return sysfs_emit(buf, "%llu\n", (u64)ed->resets.name);      \
	}                                                                    \
	static DEVICE_ATTR_RO(name)

RESETS(sequence);
RESETS(queues);
RESETS(engines);
RESETS(functions);
RESETS(wedged);

static struct attribute *reset_attributes[] = {
	&dev_attr_sequence.attr,
	&dev_attr_queues.attr,
	&dev_attr_engines.attr,
	&dev_attr_functions.attr,
	&dev_attr_wedged.attr,
	NULL
};

static const struct attribute_group reset_group = { .name = "resets", .attrs = reset_attributes };

#define COUNTER(name, reg)                                                   \
	SHOW(name)                                                           \
	{                                                                    \
		return sysfs_emit(buf, "%llu\n", read_live(dev, reg));       \
	}                                                                    \
	static DEVICE_ATTR_RO(name)

COUNTER(commands, EMBENG_REG_COUNT_COMMANDS);
COUNTER(batches, EMBENG_REG_COUNT_BATCHES);
COUNTER(updates, EMBENG_REG_COUNT_UPDATES);
COUNTER(ids, EMBENG_REG_COUNT_IDS);
COUNTER(unique_rows, EMBENG_REG_COUNT_UNIQUE_ROWS);
COUNTER(bytes_read, EMBENG_REG_COUNT_BYTES_READ);
COUNTER(bytes_written, EMBENG_REG_COUNT_BYTES_WRITTEN);
COUNTER(errors_program, EMBENG_REG_COUNT_ERRORS_PROGRAM);
COUNTER(errors_model, EMBENG_REG_COUNT_ERRORS_MODEL);
COUNTER(errors_device, EMBENG_REG_COUNT_ERRORS_DEVICE);

static struct attribute *counter_attributes[] = {
	&dev_attr_commands.attr,
	&dev_attr_batches.attr,
	&dev_attr_updates.attr,
	&dev_attr_ids.attr,
	&dev_attr_unique_rows.attr,
	&dev_attr_bytes_read.attr,
	&dev_attr_bytes_written.attr,
	&dev_attr_errors_program.attr,
	&dev_attr_errors_model.attr,
	&dev_attr_errors_device.attr,
	NULL
};

static const struct attribute_group counter_group = {
	.name = "counters",
	.attrs = counter_attributes,
};

const struct attribute_group *embeng_sysfs_groups[] = {
	&device_group,
	&reset_group,
	&counter_group,
	NULL
};
