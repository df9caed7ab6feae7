// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of the PCI function: versions, counters, resets and memory, a file each.
 * docs/abi/sysfs-driver-embeng describes them, and the test `abi` compares the two.
 *
 * The driver core makes the files after probe and removes them before remove, waiting for readers;
 * so the device structure exists whenever a reader runs. Values of the device are read under
 * readings.lock, and no reader waits for a reset: readings_age_ms says how old they are then.
 * Memory of a device that is gone reads 0.
 */
#include <linux/cleanup.h>
#include <linux/sysfs.h>

#include "context.h"

/* An attribute that is a number: @at is its register, or its offset among the resets. */
struct number {
	struct device_attribute attribute;
	u32 at;
};

#define NUMBER(_name, _show, _at)                                                      \
	static struct number number_##_name = { __ATTR(_name, 0444, _show, NULL), _at }

static u32 find_number_offset(struct device_attribute *attribute)
{
	return container_of(attribute, struct number, attribute)->at;
}

static ssize_t register_show(struct device *dev, struct device_attribute *attribute, char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	u32 reg = find_number_offset(attribute);

	return sysfs_emit(buf, "%llu\n", embeng_gone(ed) ? 0 : embeng_reading_of(ed, reg));
}

/* Registers have kilohertz, and the kernel's own files of clocks hertz. */
static ssize_t clock_show(struct device *dev, struct device_attribute *attribute, char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);
	u64 khz = embeng_gone(ed) ? 0 : embeng_reading_of(ed, find_number_offset(attribute));

	return sysfs_emit(buf, "%llu\n", khz * 1000);
}

static ssize_t counter_show(struct device *dev, struct device_attribute *attribute, char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	guard(mutex)(&ed->readings.lock);
	return sysfs_emit(buf, "%llu\n", embeng_counter(ed, find_number_offset(attribute)));
}

static ssize_t resets_show(struct device *dev, struct device_attribute *attribute, char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	guard(mutex)(&ed->readings.lock);
	return sysfs_emit(buf, "%llu\n",
			  READ_ONCE(*(u64 *)((u8 *)&ed->resets + find_number_offset(attribute))));
}

static ssize_t commands_show(struct device *dev, struct device_attribute *attribute, char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	guard(mutex)(&ed->readings.lock);
	return sysfs_emit(buf, "%llu\n",
			  ed->faults + embeng_counter(ed, EMBENG_REG_COUNT_ERRORS_DEVICE));
}
static DEVICE_ATTR_RO(commands);

static ssize_t wedged_show(struct device *dev, struct device_attribute *attribute, char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%u\n", READ_ONCE(ed->resets.wedged));
}
static DEVICE_ATTR_RO(wedged);

static ssize_t contexts_show(struct device *dev, struct device_attribute *attribute, char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%u\n", READ_ONCE(ed->resets.contexts));
}
static DEVICE_ATTR_RO(contexts);

static ssize_t firmware_version_show(struct device *dev, struct device_attribute *attribute,
				     char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n",
			  embeng_version_text(READ_ONCE(ed->firmware_version)).text);
}
static DEVICE_ATTR_RO(firmware_version);

static ssize_t firmware_minimum_show(struct device *dev, struct device_attribute *attribute,
				     char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);
	u64 minimum = embeng_reading_of(ed, EMBENG_REG_FIRMWARE_MINIMUM);

	return sysfs_emit(buf, "%s\n", embeng_version_text(minimum).text);
}
static DEVICE_ATTR_RO(firmware_minimum);

static ssize_t firmware_image_show(struct device *dev, struct device_attribute *attribute,
				   char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	guard(mutex)(&ed->readings.lock);
	return sysfs_emit(buf, "%s\n", ed->running->name);
}
static DEVICE_ATTR_RO(firmware_image);

static ssize_t firmware_signature_show(struct device *dev, struct device_attribute *attribute,
				       char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	guard(mutex)(&ed->readings.lock);
	return sysfs_emit(buf, "%s\n", embeng_trust_text(ed->running).text);
}
static DEVICE_ATTR_RO(firmware_signature);

static ssize_t firmware_refused_show(struct device *dev, struct device_attribute *attribute,
				     char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);
	const struct embeng_refusal *refused = &ed->refused;

	guard(mutex)(&ed->readings.lock);
	if (!refused->error)
		return sysfs_emit(buf, "none\n");
	return sysfs_emit(buf, "%s\n", embeng_refusal_text(refused).text);
}
static DEVICE_ATTR_RO(firmware_refused);

static ssize_t interface_version_show(struct device *dev, struct device_attribute *attribute,
				      char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%u.%u\n", ed->caps.interface_major, ed->caps.interface_minor);
}
static DEVICE_ATTR_RO(interface_version);

static ssize_t busy_time_ns_show(struct device *dev, struct device_attribute *attribute, char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	guard(mutex)(&ed->readings.lock);
	return sysfs_emit(buf, "%llu\n",
			  embeng_counter(ed, EMBENG_REG_TIME_CHECK) +
				  embeng_counter(ed, EMBENG_REG_TIME_LOOKUP) +
				  embeng_counter(ed, EMBENG_REG_TIME_PARTITION) +
				  embeng_counter(ed, EMBENG_REG_TIME_UPDATE));
}
static DEVICE_ATTR_RO(busy_time_ns);

static ssize_t cores_busy_ns_show(struct device *dev, struct device_attribute *attribute,
				  char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);
	u32 core, cores = min(ed->caps.cores, EMBENG_CORES_MAX);
	int length = 0;

	guard(mutex)(&ed->readings.lock);
	for (core = 0; core < cores; core++)
		length += sysfs_emit_at(buf, length, "%s%llu", core ? " " : "",
					embeng_counter(ed, EMBENG_CORE_BUSY(core)));
	return length + sysfs_emit_at(buf, length, "\n");
}
static DEVICE_ATTR_RO(cores_busy_ns);

static ssize_t readings_age_ms_show(struct device *dev, struct device_attribute *attribute,
				    char *buf)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	guard(mutex)(&ed->readings.lock);
	return sysfs_emit(buf, "%llu\n", div_u64(embeng_readings_age(ed), NSEC_PER_MSEC));
}
static DEVICE_ATTR_RO(readings_age_ms);

NUMBER(clock_hz, clock_show, EMBENG_REG_CLOCK);
NUMBER(clock_limit_hz, clock_show, EMBENG_REG_CLOCK_LIMIT);
NUMBER(table_memory_total, register_show, EMBENG_REG_TABLE_MEMORY);
NUMBER(table_memory_used, register_show, EMBENG_REG_TABLE_MEMORY_USED);

static struct attribute *device_attributes[] = {
	&dev_attr_firmware_version.attr,
	&dev_attr_firmware_minimum.attr,
	&dev_attr_firmware_image.attr,
	&dev_attr_firmware_signature.attr,
	&dev_attr_firmware_refused.attr,
	&dev_attr_interface_version.attr,
	&dev_attr_busy_time_ns.attr,
	&dev_attr_cores_busy_ns.attr,
	&dev_attr_readings_age_ms.attr,
	&number_table_memory_total.attribute.attr,
	&number_table_memory_used.attribute.attr,
	NULL
};

NUMBER(sequence, resets_show, offsetof(struct embeng_accel_resets, sequence));
NUMBER(queues, resets_show, offsetof(struct embeng_accel_resets, queues));
NUMBER(engines, resets_show, offsetof(struct embeng_accel_resets, engines));
NUMBER(functions, resets_show, offsetof(struct embeng_accel_resets, functions));

static struct attribute *reset_attributes[] = {
	&number_sequence.attribute.attr,
	&dev_attr_commands.attr,
	&number_queues.attribute.attr,
	&dev_attr_contexts.attr,
	&number_engines.attribute.attr,
	&number_functions.attribute.attr,
	&dev_attr_wedged.attr,
	NULL
};

NUMBER(commands, counter_show, EMBENG_REG_COUNT_COMMANDS);
NUMBER(batches, counter_show, EMBENG_REG_COUNT_BATCHES);
NUMBER(updates, counter_show, EMBENG_REG_COUNT_UPDATES);
NUMBER(ids, counter_show, EMBENG_REG_COUNT_IDS);
NUMBER(unique_rows, counter_show, EMBENG_REG_COUNT_UNIQUE_ROWS);
NUMBER(bytes_read, counter_show, EMBENG_REG_COUNT_BYTES_READ);
NUMBER(bytes_written, counter_show, EMBENG_REG_COUNT_BYTES_WRITTEN);
NUMBER(errors_program, counter_show, EMBENG_REG_COUNT_ERRORS_PROGRAM);
NUMBER(errors_model, counter_show, EMBENG_REG_COUNT_ERRORS_MODEL);
NUMBER(errors_device, counter_show, EMBENG_REG_COUNT_ERRORS_DEVICE);
NUMBER(ecc_correctable, counter_show, EMBENG_REG_COUNT_ECC_CORRECTABLE);
NUMBER(ecc_uncorrectable, counter_show, EMBENG_REG_COUNT_ECC_UNCORRECTABLE);
NUMBER(waits, counter_show, EMBENG_REG_COUNT_WAITS);
NUMBER(waits_lookup, counter_show, EMBENG_REG_COUNT_WAITS_LOOKUP);
NUMBER(waits_update, counter_show, EMBENG_REG_COUNT_WAITS_UPDATE);
NUMBER(waits_queue, counter_show, EMBENG_REG_COUNT_WAITS_QUEUE);
NUMBER(waits_space, counter_show, EMBENG_REG_COUNT_WAITS_SPACE);

static struct attribute *counter_attributes[] = {
	&number_commands.attribute.attr,
	&number_batches.attribute.attr,
	&number_updates.attribute.attr,
	&number_ids.attribute.attr,
	&number_unique_rows.attribute.attr,
	&number_bytes_read.attribute.attr,
	&number_bytes_written.attribute.attr,
	&number_errors_program.attribute.attr,
	&number_errors_model.attribute.attr,
	&number_errors_device.attribute.attr,
	&number_ecc_correctable.attribute.attr,
	&number_ecc_uncorrectable.attribute.attr,
	&number_waits.attribute.attr,
	&number_waits_lookup.attribute.attr,
	&number_waits_update.attribute.attr,
	&number_waits_queue.attribute.attr,
	&number_waits_space.attribute.attr,
	NULL
};

/* A device that does not tell its clock lacks the two files. */
static struct attribute *clock_attributes[] = {
	&number_clock_hz.attribute.attr,
	&number_clock_limit_hz.attribute.attr,
	NULL
};

static umode_t get_clock_mode(struct kobject *kobj, struct attribute *attribute, int number)
{
	struct embeng_device *ed = dev_get_drvdata(kobj_to_dev(kobj));

	return embeng_reading_of(ed, EMBENG_REG_CLOCK_LIMIT) ? attribute->mode : 0;
}

static const struct attribute_group clock_group = {
	.attrs = clock_attributes,
	.is_visible = get_clock_mode,
};

static const struct attribute_group device_group = { .attrs = device_attributes };
static const struct attribute_group reset_group = { .name = "resets", .attrs = reset_attributes };
static const struct attribute_group counter_group = {
	.name = "counters",
	.attrs = counter_attributes,
};

const struct attribute_group *embeng_sysfs_groups[] = {
	&device_group,
	&clock_group,
	&reset_group,
	&counter_group,
	NULL
};
