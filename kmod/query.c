// SPDX-License-Identifier: GPL-2.0-only
/*
 * The QUERY ioctl: device, capabilities, context, resets, health and counters, each a structure
 * that may grow. The program says how much room it has and is told how much there is.
 *
 * Each answer is made on the stack and copied from there, so that nothing is held while the copy
 * may fault. All answers but DEVICE, whose words are read one by one, are made under reset_lock
 * held for reading, so that none is half old, half new; the context's lock is taken before it
 * where the answer is about the context.
 */
#include <linux/cleanup.h>
#include <linux/uaccess.h>

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
	u64 counters[EMBENG_REGISTERS];
};

static u32 answer_device(struct embeng_device *ed, struct embeng_accel_device *out)
{
	*out = (struct embeng_accel_device){
		.flags = EMBENG_ACCEL_CAN_SYNCOBJ |
			 (ed->can_pin ? EMBENG_ACCEL_CAN_USERPTR : 0) |
			 (embeng_queue_may_map(ed) ? EMBENG_ACCEL_CAN_MAP_QUEUES : 0),
		.boot_state = embeng_read32(ed, EMBENG_REG_BOOT_STATE),
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
	return sizeof(*out);
}

/* A program that finds a dead ring during a reset asks here, and learns how the reset ended. */
static int answer_context(struct embeng_context *ctx, struct embeng_accel_context_state *out,
			  u32 *size)
{
	guard(mutex)(&ctx->lock);
	guard(rwsem_read)(&ctx->device->reset_lock);
	if (embeng_gone(ctx->device))
		return -ENODEV;
	*out = (struct embeng_accel_context_state){
		.status = ctx->lost ? EMBENG_ACCEL_CONTEXT_LOST :
			  ctx->made ? EMBENG_ACCEL_CONTEXT_ALIVE :
				      EMBENG_ACCEL_CONTEXT_NONE,
		.regions = ctx->region_count,
		.queues = ctx->queue_count,
		.memory = ctx->memory,
		.memory_limit = ctx->memory_limit,
		.events = atomic64_read(&ctx->events),
		.reset_sequence = ctx->reset_sequence,
	};
	*size = sizeof(*out);
	return 0;
}

static u32 answer_resets(struct embeng_device *ed, struct embeng_accel_resets *out)
{
	guard(rwsem_read)(&ed->reset_lock);
	*out = ed->resets;
	out->commands = ed->faults + embeng_counter(ed, EMBENG_REG_COUNT_ERRORS_DEVICE);
	return sizeof(*out);
}

static u32 answer_health(struct embeng_context *ctx, struct embeng_accel_health *out)
{
	guard(mutex)(&ctx->lock);
	guard(rwsem_read)(&ctx->device->reset_lock);
	*out = ctx->health;
	return sizeof(*out);
}

static u32 answer_caps(struct embeng_device *ed, struct embeng_caps *out)
{
	guard(rwsem_read)(&ed->reset_lock);
	*out = ed->caps;
	return sizeof(*out);
}

static u32 answer_counters(struct embeng_device *ed, u64 *out)
{
	u32 i, count = 0;

	guard(rwsem_read)(&ed->reset_lock);
	for (i = 0; i < EMBENG_REGISTERS; i++) {
		if (is_counter_register(embeng_registers[i].offset))
			out[count++] = embeng_counter(ed, embeng_registers[i].offset);
	}
	return count * sizeof(*out);
}

static int make_answer(struct embeng_context *ctx, u32 what, union answer *out, u32 *size)
{
	struct embeng_device *ed = ctx->device;

	CLASS(embeng_use, use)(ed);
	if (!use.device)
		return -ENODEV;
	switch (what) {
	case EMBENG_ACCEL_QUERY_DEVICE:
		*size = answer_device(ed, &out->device);
		return 0;
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
