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

int device_open(const char *name, uint32_t replicas, const struct device_log *log,
		struct device **out)
{
	struct name parsed;
	int ret = name_parse(name, &parsed);

	if (ret)
		return ret;
	if (parsed.kind == NAME_SOFT)
		return soft_open(&parsed, replicas, log, out);
	ret = accel_open(&parsed, replicas, out);
	if (parsed.kind == NAME_ANY && ret == -ENOENT)
		return soft_open(&parsed, replicas, log, out);
	return ret;
}

int device_attach(int fd, struct device **out)
{
	return accel_attach(fd, out);
}

int embeng_device_list(int (*fn)(void *arg, const struct embeng_device_info *info), void *arg)
{
	const struct name soft = {.kind = NAME_SOFT};
	const struct device_log nowhere = {0};
	struct embeng_device_info info;
	struct device *device;
	int ret;

	if (!fn)
		return fail(-EINVAL, "embeng_device_list: no function given");
	ret = accel_list(fn, arg);
	ret = ret ? ret : soft_open(&soft, 1, &nowhere, &device);
	if (ret)
		return ret;
	info = device->info;
	device->ops->close(device);
	return fn(arg, &info);
}
