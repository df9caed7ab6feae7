// SPDX-License-Identifier: MIT
/*
 * Plays the kernel driver inside the process: open, close and ioctls of a device node, on the
 * engine of a soft device. This file has the files and their ioctls; fake_memory.c, fake_queue.c
 * and fake_fence.c have the objects behind them.
 */
#include <unistd.h>

#include "runtime/src/device/soft/soft.h"
#include "fake_file.h"

#define FILES 8u

struct fake_driver fake;
static struct fake_file files[FILES];
static struct fake_file *descriptors[FAKE_DESCRIPTORS];

struct fake_file *fake_file(uint32_t index)
{
	for (uint32_t i = 0; i < FILES; i++)
		if (files[i].references && !index--)
			return &files[i];
	return NULL;
}

static struct fake_file *new_file(void)
{
	const struct name name = {.kind = NAME_SOFT, .cores = 2, .memory = 64 << 20};
	const struct device_log nowhere = {0};

	for (uint32_t i = 0; i < FILES; i++) {
		if (files[i].references)
			continue;
		memset(&files[i], 0, sizeof(files[i]));
		ck_assert_int_eq(soft_open(&name, 4, &nowhere, &files[i].soft), 0);
		files[i].references = 1;
		fake.files++;
		return &files[i];
	}
	ck_abort_msg("too many files");
	return NULL;
}

static int new_descriptor(struct fake_file *file)
{
	int fd = dup(file->soft->ops->fd(file->soft));

	ck_assert(fd >= 0 && fd < FAKE_DESCRIPTORS);
	descriptors[fd] = file;
	return fd;
}

static int fake_open(const char *node)
{
	if (fake.open_error)
		return fake.open_error;
	if (!strcmp(node, "/sys/bus/pci/devices/" FAKE_ADDRESS "/resource0"))
		return dup(STDERR_FILENO);
	ck_assert_str_eq(node, FAKE_NODE);
	return new_descriptor(new_file());
}

static int fake_dup(int fd)
{
	if (fd < 0 || fd >= FAKE_DESCRIPTORS || !descriptors[fd])
		return -EBADF;
	descriptors[fd]->references++;
	return new_descriptor(descriptors[fd]);
}

static void end_file(struct fake_file *file)
{
	fake_memory_end(file);
	for (uint32_t i = 0; i < file->blob_count; i++)
		file->soft->ops->region_free(file->soft, &file->blobs[i]);
	file->soft->ops->close(file->soft);
	fake.files--;
}

static void fake_close(int fd)
{
	struct fake_file *file = descriptors[fd];

	descriptors[fd] = NULL;
	close(fd);
	if (file && !--file->references)
		end_file(file);
}

static int version(struct drm_version *v)
{
	v->version_major = EMBENG_ACCEL_MAJOR;
	v->version_minor = fake.version;
	ck_assert_uint_gt(v->name_len, strlen(fake.name));
	memcpy(v->name, fake.name, strlen(fake.name));
	return 0;
}

static void fill_caps(struct fake_file *f, struct embeng_caps *caps)
{
	const struct embeng_device_info *info = &f->soft->info;

	*caps = (struct embeng_caps){
		.interface_major = fake.interface_major,
		.interface_minor = info->interface_minor,
		.features = info->features,
		.cores = info->cores,
		.queues = f->soft->queues,
		.regions = 2048,
		.table_memory = info->table_memory,
		.dim = info->dim,
		.tables = info->tables,
		.replicas = info->replicas,
		.step_depth = info->step_depth,
	};
}

static int query(struct fake_file *f, struct embeng_accel_query *q)
{
	struct embeng_accel_context_state state = {
		.status = fake.context_lost || fake.lost == -ESHUTDOWN ? EMBENG_ACCEL_CONTEXT_LOST
								       : f->context};
	struct embeng_caps caps;
	uint64_t counters[15] = {[11] = 5}; /* TIME_LOOKUP; none behind TIME_RING */
	const void *answer = counters;
	uint32_t size = sizeof(counters);

	if (q->what == EMBENG_ACCEL_QUERY_DEVICE) {
		answer = &fake.device;
		size = sizeof(fake.device);
	} else if (q->what == EMBENG_ACCEL_QUERY_CAPS) {
		fill_caps(f, &caps);
		answer = &caps;
		size = sizeof(caps);
	} else if (q->what == EMBENG_ACCEL_QUERY_CONTEXT) {
		answer = &state;
		size = sizeof(state);
	}
	if (q->size < size)
		return -ENOSPC;
	memcpy((void *)(uintptr_t)q->data, answer, size);
	return 0;
}

static int dispatch(struct fake_file *f, unsigned long request, void *arg)
{
	int ret;

	switch (request) {
	case DRM_IOCTL_VERSION:
		return version(arg);
	case DRM_IOCTL_EMBENG_QUERY:
		return query(f, arg);
	case DRM_IOCTL_EMBENG_CONTEXT_CREATE:
		f->context = true;
		return 0;
	case DRM_IOCTL_EMBENG_RESET:
		fake.rung = ((struct embeng_accel_reset *)arg)->rung;
		return 0;
	case DRM_IOCTL_EMBENG_WAIT:
		return fake_wait(f, arg);
	}
	ret = fake_memory(f, request, arg);
	ret = ret == -ENOTTY ? fake_fences(request, arg) : ret;
	return ret == -ENOTTY ? fake_queues(f, request, arg) : ret;
}

/* True if a lost context still allows the call, because it only ends or asks something. */
static bool ends_things(unsigned long request, const void *arg)
{
	const struct embeng_accel_query *q = arg;

	return request == DRM_IOCTL_GEM_CLOSE ||
	       (request == DRM_IOCTL_EMBENG_QUERY && q->what == EMBENG_ACCEL_QUERY_CONTEXT &&
		fake.lost == -ESHUTDOWN);
}

static int fake_ioctl(int fd, unsigned long request, void *arg)
{
	struct fake_file *f = descriptors[fd];

	ck_assert_ptr_nonnull(f);
	if (fake.before)
		fake.before(request, arg);
	if (fake.lost && !ends_things(request, arg))
		return fake.lost;
	if (request == fake.fails)
		return fake.error;
	return dispatch(f, request, arg);
}

/* Resource files are no files of the driver. */
static void *map_either(int fd, uint64_t offset, uint64_t length, bool writable)
{
	if (descriptors[fd])
		return fake_map(fd, offset, length, writable);
	errno = EINVAL;
	return fake.no_write && writable
		       ? NULL
		       : fake_map(fd, (uintptr_t)fake.registers, length, writable);
}

static int fake_each(bool orphans, accel_each_fn fn, void *arg)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < fake.function_count; i++)
		if (orphans == !fake.functions[i].node[0])
			ret = fn(arg, &fake.functions[i]);
	return ret;
}

static void fake_describe(const char *address, char *text, size_t size)
{
	ck_assert_uint_eq(strlen(address), *address ? strlen("pci:" FAKE_ADDRESS) : 0);
	strncpy(text, "Embeng model engine", size);
}

static int fake_refusal(const char *address, char *text, size_t size)
{
	ck_assert_uint_eq(strlen(address), strlen(FAKE_ADDRESS));
	*text = 0;
	if (fake.refusal)
		strncat(text, fake.refusal, size - 1);
	return fake.refusal ? 0 : -ENOENT;
}

void fake_install(void)
{
	static const struct accel_system system = {
		.open = fake_open,
		.dup = fake_dup,
		.close = fake_close,
		.ioctl = fake_ioctl,
		.map = map_either,
		.unmap = fake_unmap,
		.each = fake_each,
		.describe = fake_describe,
		.refusal = fake_refusal,
	};

	fake = (struct fake_driver){
		.functions = {{.node = FAKE_NODE, .address = FAKE_ADDRESS, .driver = "embeng"}},
		.function_count = 1,
		.name = "embeng",
		.version = EMBENG_ACCEL_MINOR,
		.device = {.flags = EMBENG_ACCEL_CAN_MAP_QUEUES,
			   .boot_state = EMBENG_BOOT_RUNNING,
			   .firmware_version = 1ull << 48 | 2ull << 32,
			   .pci_bus = 0xa,
			   .pci_device = 1,
			   .pci_function = 2},
		.interface_major = EMBENG_INTERFACE_MAJOR,
	};
	accel_system = &system;
}

void fake_close_descriptor(int fd)
{
	fake_close(fd);
}

void fake_lose_context(void)
{
	fake.context_lost = true;
}

void fake_lose(int error)
{
	fake.lost = error;
	for (uint32_t i = 0; i < FILES; i++) {
		for (uint32_t q = 0; files[i].references && q < FAKE_QUEUES; q++) {
			struct fake_queue *queue = &files[i].queues[q];

			if (queue->used)
				((struct embeng_ring_header *)queue->queue.ring)->dead = 1;
		}
	}
}
