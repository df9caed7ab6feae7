/* SPDX-License-Identifier: MIT */
/* Devices behind the kernel driver, in builds that have libdrm and libudev. */
#ifndef EMBENG_ACCEL_H
#define EMBENG_ACCEL_H

#include "device.h"
#include "name.h"

#ifdef EMBENG_HAVE_ACCEL

/* Opens a device behind the driver. -ENOENT when any device would do and there is none. */
int accel_open(const struct name *name, uint32_t replicas, struct device **out);
int accel_attach(int fd, struct device **out);
/* Calls @fn for all devices. For a device that cannot be opened, info.problem says why. */
int accel_list(int (*fn)(void *arg, const struct embeng_device_info *info), void *arg);
/* Asks a device what it is, without a context; @info is filled as far as that went. */
int accel_info(const struct name *name, struct embeng_device_info *info);
int accel_registers_read(const struct name *name, char *page);
int accel_register_write(const struct name *name, uint32_t offset, uint32_t bytes, uint64_t value);
int accel_reset(const struct name *name, enum embeng_reset what);

#else

#include "base/error.h"

/* Words of the sentence that says what is not there. */
#define ACCEL_MISSING \
	"this libembeng was built without devices of the kernel driver; build it with `meson " \
	"setup -Daccel=enabled`"

static inline int accel_missing(const struct name *name)
{
	if (name->kind == NAME_ANY)
		return fail(-ENOTSUP, ACCEL_MISSING);
	return fail(-ENOTSUP, "%s%s: " ACCEL_MISSING ", or open \"soft\"",
		    name->kind == NAME_PCI ? "pci:" : "", name->where);
}

static inline int accel_open(const struct name *name, uint32_t replicas, struct device **out)
{
	(void)replicas;
	(void)out;
	return name->kind == NAME_ANY ? -ENOENT : accel_missing(name);
}

static inline int accel_attach(int fd, struct device **out)
{
	(void)fd;
	(void)out;
	return fail(-ENOTSUP, "embeng_attach: " ACCEL_MISSING);
}

static inline int accel_list(int (*fn)(void *arg, const struct embeng_device_info *info), void *arg)
{
	(void)fn;
	(void)arg;
	return 0;
}

static inline int accel_info(const struct name *name, struct embeng_device_info *info)
{
	(void)info;
	return name->kind == NAME_ANY ? -ENOENT : accel_missing(name);
}

static inline int accel_registers_read(const struct name *name, char *page)
{
	(void)page;
	return accel_missing(name);
}

static inline int accel_register_write(const struct name *name, uint32_t offset, uint32_t bytes,
				       uint64_t value)
{
	(void)offset;
	(void)bytes;
	(void)value;
	return accel_missing(name);
}

static inline int accel_reset(const struct name *name, enum embeng_reset what)
{
	(void)what;
	return accel_missing(name);
}

#endif

#endif
