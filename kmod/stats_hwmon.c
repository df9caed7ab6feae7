// SPDX-License-Identifier: GPL-2.0-only
/*
 * Temperature and power of the device as a hwmon device, where the device has sensors. It is
 * compiled only where the kernel has CONFIG_HWMON.
 *
 * The hwmon device belongs to the driver's hold of the function and goes with it. During a reset a
 * reader gets the last value that is known (stats_readings.c).
 */
#include <linux/hwmon.h>

#include "driver.h"

static int read_sensor(struct embeng_device *ed, enum embeng_register reg, long *value)
{
	if (embeng_gone(ed))
		return -ENODEV;
	*value = (s32)embeng_reading_of(ed, reg);
	return 0;
}

static int read_sensor_attribute(struct device *dev, enum hwmon_sensor_types type, u32 attr,
				 int channel, long *value)
{
	struct embeng_device *ed = dev_get_drvdata(dev);

	if (type == hwmon_power && attr == hwmon_power_input)
		return read_sensor(ed, EMBENG_REG_POWER, value);
	if (type == hwmon_temp && attr == hwmon_temp_input)
		return read_sensor(ed, EMBENG_REG_TEMPERATURE, value);
	if (type == hwmon_temp && attr == hwmon_temp_crit)
		return read_sensor(ed, EMBENG_REG_TEMPERATURE_LIMIT, value);
	return -EOPNOTSUPP;
}

static int read_sensor_label(struct device *dev, enum hwmon_sensor_types type, u32 attr,
			     int channel, const char **text)
{
	*text = type == hwmon_temp ? "engine" : "device";
	return 0;
}

static umode_t get_sensor_mode(const void *data, enum hwmon_sensor_types type, u32 attr,
			       int channel)
{
	return 0444;
}

static const struct hwmon_ops ops = {
	.is_visible = get_sensor_mode,
	.read = read_sensor_attribute,
	.read_string = read_sensor_label,
};

static const struct hwmon_channel_info *const channels[] = {
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT | HWMON_T_CRIT | HWMON_T_LABEL),
	HWMON_CHANNEL_INFO(power, HWMON_P_INPUT | HWMON_P_LABEL),
	NULL
};

static const struct hwmon_chip_info chip = {
	.ops = &ops,
	.info = channels,
};

/**
 * embeng_hwmon_init() - register the sensors, if the device has any
 * @ed: booted device
 *
 * Return: 0 or a negative errno, which was reported.
 */
int embeng_hwmon_init(struct embeng_device *ed)
{
	struct device *dev = &ed->pci->dev, *hwmon;

	if (!embeng_read32(ed, EMBENG_REG_TEMPERATURE_LIMIT))
		return 0;
	hwmon = devm_hwmon_device_register_with_info(dev, EMBENG_NAME, ed, &chip, NULL);
	if (IS_ERR(hwmon))
		return dev_err_probe(dev, PTR_ERR(hwmon), "cannot show the sensors\n");
	return 0;
}
