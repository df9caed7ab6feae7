// SPDX-License-Identifier: MIT
/*
 * Opens the device that a name means, behind the driver or in this process, and lists all devices.
 * It is the only file that knows both kinds; all others use struct device_ops.
 *
 * A device belongs to the caller, who closes it by its operations. No lock is needed.
 */
#include "device.h"

#include "accel.h"
#include "base/error.h"
#include "device/soft/soft.h"
#include "name.h"

int device_open(const struct name *name, uint32_t replicas, const struct device_log *log,
		struct device **out)
{
	int ret;

	if (name->kind == NAME_SOFT)
		return soft_open(name, replicas, log, out);
	ret = accel_open(name, replicas, out);
	if (name->kind == NAME_ANY && ret == -ENOENT)
		return soft_open(name, replicas, log, out);
	return ret;
}

int device_attach(int fd, struct device **out)
{
	return accel_attach(fd, out);
}

static int inquire_soft(const struct name *name, struct embeng_device_info *info)
{
	const struct device_log nowhere = {0};
	struct device *device;
	int ret = soft_open(name, 1, &nowhere, &device);

	if (ret)
		return ret;
	if (device->ops->describe)
		device->ops->describe(device);
	*info = device->info;
	device->ops->close(device);
	return 0;
}

int embeng_device_info(const char *name, struct embeng_device_info *info)
{
	struct name parsed;
	int ret;

	if (!info || info->size < sizeof(*info))
		return fail(-EINVAL, "embeng_device_info: info must be given, with its size");
	*info = (struct embeng_device_info){.size = sizeof(*info)};
	ret = name_parse(name, &parsed);
	if (ret || parsed.kind == NAME_SOFT)
		return ret ? ret : inquire_soft(&parsed, info);
	ret = accel_info(&parsed, info);
	return parsed.kind == NAME_ANY && ret == -ENOENT ? inquire_soft(&parsed, info) : ret;
}

int embeng_device_list(int (*fn)(void *arg, const struct embeng_device_info *info), void *arg)
{
	const struct name soft = {.kind = NAME_SOFT};
	struct embeng_device_info info;
	int ret;

	if (!fn)
		return fail(-EINVAL, "embeng_device_list: no function given");
	ret = accel_list(fn, arg);
	ret = ret ? ret : inquire_soft(&soft, &info);
	return ret ? ret : fn(arg, &info);
}
