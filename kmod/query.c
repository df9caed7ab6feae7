// SPDX-License-Identifier: GPL-2.0-only
/*
 * The QUERY ioctl: device, capabilities, context, resets, health and counters, each a structure
 * that may grow. The program says how much room it has and is told how much there is.
 *
 * Each answer is made on the stack and copied from there, so that nothing is held while the copy
 * may fault. Values of the device are read under readings.lock, and those of the context word by
 * word, so that no answer waits for a reset, nor for another call of the context's.
 */
#include <linux/cleanup.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>

#include "context.h"

static bool is_counter_register(u32 offset)
{
	return offset >= EMBENG_REG_COUNT_COMMANDS;
}

/* Room for any answer, on the stack. */
union answer {
	struct embeng_accel_device device;
	struct embeng_caps caps;
	struct embeng_accel_context_state context;
	struct embeng_accel_resets resets;
	struct embeng_accel_health health;
	struct embeng_accel_readings readings;
	u64 counters[EMBENG_REGISTERS];
};

/* A device that was given up is still described: why it did not boot is what people ask then. */
static int answer_device(struct embeng_device *ed, struct embeng_accel_device *out, u32 *size)
{
	bool wedged = READ_ONCE(ed->resets.wedged);

	if (embeng_gone(ed) && !wedged)
		return -ENODEV;
	*out = (struct embeng_accel_device){
		.flags = EMBENG_ACCEL_CAN_SYNCOBJ | (wedged ? EMBENG_ACCEL_WEDGED : 0) |
			 (ed->can_pin ? EMBENG_ACCEL_CAN_USERPTR : 0) |
			 (embeng_queue_may_map(ed) ? EMBENG_ACCEL_CAN_MAP_QUEUES : 0),
		/* A device that refused its firmware was reset after that. */
		.boot_state = wedged && ed->boot_error.error ?
			      EMBENG_BOOT_FAILED : embeng_reading_of(ed, EMBENG_REG_BOOT_STATE),
		.boot_error = ed->boot_error.error,
		.doorbell_stride = ed->doorbell_stride,
		.boot_error_offset = ed->boot_error.offset,
		.firmware_version = ed->firmware_version,
		.pci_domain = pci_domain_nr(ed->pci->bus),
		.pci_bus = ed->pci->bus->number,
		.pci_device = PCI_SLOT(ed->pci->devfn),
		.pci_function = PCI_FUNC(ed->pci->devfn),
		.registers = embeng_mmap_registers_offset(),
		.boot_error_index = ed->boot_error.index,
	};
	*size = sizeof(*out);
	return 0;
}

/*
 * A program that finds a dead ring during a reset asks here, until it learns that it is lost and
 * since when.
 */
static int answer_context(struct embeng_context *ctx, struct embeng_accel_context_state *out,
			  u32 *size)
{
	/* Pairs with embeng_reset_after(): once a reset has ended, its losses are seen. */
	bool resetting = smp_load_acquire(&ctx->device->resetting);
	/* Pairs with the release in embeng_reset_lose(): the rest of the loss is there as well. */
	bool lost = smp_load_acquire(&ctx->lost);

	if (embeng_gone(ctx->device))
		return -ENODEV;
	*out = (struct embeng_accel_context_state){
		.status = lost ? EMBENG_ACCEL_CONTEXT_LOST :
			  resetting ? EMBENG_ACCEL_CONTEXT_IN_RESET :
			  READ_ONCE(ctx->made) ? EMBENG_ACCEL_CONTEXT_ALIVE :
			  EMBENG_ACCEL_CONTEXT_NONE,
		.regions = READ_ONCE(ctx->region_count),
		.queues = READ_ONCE(ctx->queue_count),
		.memory = READ_ONCE(ctx->memory),
		.memory_limit = READ_ONCE(ctx->memory_limit),
		.events = atomic64_read(&ctx->events),
		.reset_sequence = ctx->reset_sequence,
	};
	*size = sizeof(*out);
	return 0;
}

static u32 answer_resets(struct embeng_device *ed, struct embeng_accel_resets *out)
{
	guard(mutex)(&ed->readings.lock);
	*out = ed->resets;
	out->commands = ed->faults + embeng_counter(ed, EMBENG_REG_COUNT_ERRORS_DEVICE);
	return sizeof(*out);
}

static u32 answer_health(struct embeng_context *ctx, struct embeng_accel_health *out)
{
	scoped_guard(spinlock, &ctx->health_lock) {
		*out = ctx->health;
	}
	return sizeof(*out);
}

static u32 answer_caps(struct embeng_device *ed, struct embeng_caps *out)
{
	guard(mutex)(&ed->readings.lock);
	*out = ed->caps;
	return sizeof(*out);
}

static u32 answer_counters(struct embeng_device *ed, u64 *out)
{
	u32 i, count = 0;

	guard(mutex)(&ed->readings.lock);
	for (i = 0; i < EMBENG_REGISTERS; i++) {
		if (is_counter_register(embeng_registers[i].offset))
			out[count++] = embeng_counter(ed, embeng_registers[i].offset);
	}
	return count * sizeof(*out);
}

static u32 answer_readings(struct embeng_device *ed, struct embeng_accel_readings *out)
{
	guard(mutex)(&ed->readings.lock);
	*out = (struct embeng_accel_readings){
		.age_ns = embeng_readings_age(ed),
		.resetting = READ_ONCE(ed->resetting),
	};
	return sizeof(*out);
}

/* A wedged device is in use by nobody, but bound. */
static int describe_device(struct embeng_device *ed, union answer *out, u32 *size)
{
	int index, ret;

	if (!drm_dev_enter(&ed->drm, &index))
		return -ENODEV;
	ret = answer_device(ed, &out->device, size);
	drm_dev_exit(index);
	return ret;
}

static int make_answer(struct embeng_context *ctx, u32 what, union answer *out, u32 *size)
{
	struct embeng_device *ed = ctx->device;

	if (what == EMBENG_ACCEL_QUERY_DEVICE)
		return describe_device(ed, out, size);
	CLASS(embeng_use, use)(ed);
	if (!use.device)
		return -ENODEV;
	switch (what) {
	case EMBENG_ACCEL_QUERY_CAPS:
		*size = answer_caps(ed, &out->caps);
		return 0;
	case EMBENG_ACCEL_QUERY_CONTEXT:
		return answer_context(ctx, &out->context, size);
	case EMBENG_ACCEL_QUERY_RESETS:
		*size = answer_resets(ed, &out->resets);
		return 0;
	case EMBENG_ACCEL_QUERY_HEALTH:
		*size = answer_health(ctx, &out->health);
		return 0;
	case EMBENG_ACCEL_QUERY_COUNTERS:
		*size = answer_counters(ed, out->counters);
		return 0;
	case EMBENG_ACCEL_QUERY_READINGS:
		*size = answer_readings(ed, &out->readings);
		return 0;
	}
	return -EOPNOTSUPP;
}

/**
 * embeng_query_ioctl() - DRM_IOCTL_EMBENG_QUERY
 * @drm: device
 * @data: &struct embeng_accel_query
 * @file: open file that asks
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_query_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_query *query = data;
	union answer answer;
	u32 size, room = query->size;
	int ret = make_answer(to_embeng_context(file), query->what, &answer, &size);

	if (ret)
		return ret;
	query->size = size;
	if (!query->data)
		return 0;
	if (room < size)
		return -ENOSPC;
	if (copy_to_user(u64_to_user_ptr(query->data), &answer, size)) {
		query->size = room;
		return -EFAULT;
	}
	return 0;
}
