// SPDX-License-Identifier: MIT
/*
 * The system calls of this folder: open, ioctl (by libdrm), mmap. They are behind a table of
 * functions, so that tests run the code above without a driver.
 *
 * Nothing is kept; any thread may call.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "accel.h"

static int open_node(const char *node)
{
	int fd = open(node, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int duplicate_node(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 ? -errno : copy;
}

static void close_node(int fd)
{
	close(fd);
}

/* drmIoctl() would ask again for ever where the driver says that others must come first. */
static int submit_to_node(int fd, void *arg)
{
	int ret;

	do
		ret = ioctl(fd, DRM_IOCTL_EMBENG_SUBMIT, arg);
	while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

static int control_node(int fd, unsigned long request, void *arg)
{
	if (request == DRM_IOCTL_EMBENG_SUBMIT)
		return submit_to_node(fd, arg);
	return drmIoctl(fd, request, arg) ? -errno : 0;
}

static void *map_node(int fd, uint64_t offset, uint64_t length, bool writable)
{
	void *data = mmap(NULL, length, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
			  fd, (off_t)offset);

	return data == MAP_FAILED ? NULL : data;
}

static void unmap_node(void *data, uint64_t length)
{
	munmap(data, length);
}

static const struct accel_system real = {
	.open = open_node,
	.dup = duplicate_node,
	.close = close_node,
	.ioctl = control_node,
	.map = map_node,
	.unmap = unmap_node,
	.each = accel_find,
	.describe = accel_words,
	.refusal = accel_refusal,
};

const struct accel_system *accel_system = &real;
