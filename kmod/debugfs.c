// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files below /sys/kernel/debug/accel/ADDRESS for debugging the driver or the device: the
 * event log, all registers, and the contexts with their queues. docs/abi/debugfs-driver-embeng
 * describes them; nothing of it is an interface for programs, which is why it is not in sysfs.c.
 *
 * The DRM core makes the files at registration and removes them at unplug. No reader waits for the
 * device. A reader of the contexts holds readings.lock, so that no reset begins meanwhile,
 * contexts_lock, so that no context goes away, and each context's map_lock in turn, so that its
 * queues stay; other numbers are read as they are.
 */
#include <linux/cleanup.h>

#include <linux/math64.h>

#include <drm/drm_debugfs.h>

#include "context.h"

static struct embeng_device *find_shown_device(struct seq_file *m)
{
	const struct drm_debugfs_entry *entry = m->private;

	return to_embeng(entry->dev);
}

static void show_age(struct seq_file *m, struct embeng_device *ed)
{
	u64 age = embeng_readings_age(ed);

	if (age)
		seq_printf(m, "# the device cannot be read now, this was %llu ms ago\n",
			   div_u64(age, NSEC_PER_MSEC));
}

static int show_registers(struct seq_file *m, void *data)
{
	struct embeng_device *ed = find_shown_device(m);
	u32 i;

	guard(mutex)(&ed->readings.lock);
	show_age(m, ed);
	for (i = 0; i < EMBENG_REGISTERS; i++)
		seq_printf(m, "%03x %-20s %#llx\n", embeng_registers[i].offset,
			   embeng_registers[i].name, embeng_reading(ed, i));
	return 0;
}

static void show_queue(struct seq_file *m, const struct embeng_queue *q)
{
	const struct embeng_ring_header *header = embeng_queue_header(q);
	bool live = embeng_readable(q->context->device) && !READ_ONCE(q->context->lost);

	seq_printf(m, "  queue %u kind %u %s", q->number, q->kind,
		   q->mapped ? "mapped" : "validated");
	seq_printf(m, " sq_tail %u sq_head %u cq_head %u cq_tail %u",
		   live ? embeng_doorbell_tail_of(q) : q->last_tail, header->sq_head,
		   live ? embeng_doorbell_head_of(q) : q->last_head, header->cq_tail);
	seq_printf(m, " report %u state %u wait %u replica %u step %llu\n", header->report.epoch,
		   header->report.state, header->report.wait, header->report.replica,
		   header->report.step);
}

static void show_context(struct seq_file *m, struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;

	seq_printf(m, "context %u%s program %s regions %u memory %llu of %llu events %lld\n",
		   ctx->number, READ_ONCE(ctx->lost) ? " lost" : "", embeng_program_text(ctx).text,
		   READ_ONCE(ctx->region_count),
		   READ_ONCE(ctx->memory), READ_ONCE(ctx->memory_limit),
		   atomic64_read(&ctx->events));
	guard(mutex)(&ctx->map_lock);
	xa_for_each(&ctx->queues, number, q) {
		if (!q->destroyed && q->ring)
			show_queue(m, q);
	}
}

static int show_contexts(struct seq_file *m, void *data)
{
	struct embeng_device *ed = find_shown_device(m);
	struct embeng_context *ctx;

	guard(mutex)(&ed->readings.lock);
	show_age(m, ed);
	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		if (READ_ONCE(ctx->made))
			show_context(m, ctx);
	}
	return 0;
}

static int show_events(struct seq_file *m, void *data)
{
	struct embeng_device *ed = find_shown_device(m);

	guard(mutex)(&ed->readings.lock);
	show_age(m, ed);
	if (embeng_readable(ed))
		embeng_events_show(ed, m);
	return 0;
}

static const struct drm_debugfs_info files[] = {
	{ "events", show_events },
	{ "registers", show_registers },
	{ "contexts", show_contexts },
};

/**
 * embeng_debugfs_init() - add the files to debugfs
 * @ed: device, before it is registered
 */
void embeng_debugfs_init(struct embeng_device *ed)
{
	drm_debugfs_add_files(&ed->drm, files, ARRAY_SIZE(files));
}
