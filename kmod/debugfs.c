// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files below /sys/kernel/debug/accel/ADDRESS for debugging the driver or the device: the
 * event log, all registers, and the contexts with their queues. docs/abi/debugfs-driver-embeng
 * describes them; nothing of it is an interface for programs, which is why it is not in sysfs.c.
 *
 * The DRM core makes the files at registration and removes them at unplug. A reader of the
 * contexts holds contexts_mutex, so that none goes away, and each context's lock in turn, so that
 * its queues stay.
 */
#include <linux/cleanup.h>

#include <drm/drm_debugfs.h>

#include "context.h"

static struct embeng_device *find_shown_device(struct seq_file *m)
{
	const struct drm_debugfs_entry *entry = m->private;

	return to_embeng(entry->dev);
}

static int show_registers(struct seq_file *m, void *data)
{
	struct embeng_device *ed = find_shown_device(m);
	const struct embeng_register_entry *entry = embeng_registers;
	const struct embeng_register_entry *end = entry + EMBENG_REGISTERS;

	for (; entry < end; entry++)
		seq_printf(m, "%03x %-20s %#llx\n", entry->offset, entry->name,
			   embeng_register_read(ed, entry));
	return 0;
}

static void show_queue(struct seq_file *m, const struct embeng_queue *q)
{
	const struct embeng_ring_header *header = embeng_queue_header(q);

	seq_printf(m, "  queue %u kind %u %s", q->number, q->kind,
		   q->mapped ? "mapped" : "validated");
	seq_printf(m, " sq_tail %u sq_head %u cq_head %u cq_tail %u", embeng_doorbell_tail_of(q),
		   header->sq_head, embeng_doorbell_head_of(q), header->cq_tail);
	seq_printf(m, " report %u state %u wait %u replica %u step %llu\n", header->report.epoch,
		   header->report.state, header->report.wait, header->report.replica,
		   header->report.step);
}

static int show_contexts(struct seq_file *m, void *data)
{
	struct embeng_device *ed = find_shown_device(m);
	struct embeng_context *ctx;
	struct embeng_queue *q;
	unsigned long number;

	guard(mutex)(&ed->contexts_mutex);
	list_for_each_entry(ctx, &ed->contexts, link) {
		if (!ctx->made)
			continue;
		guard(mutex)(&ctx->lock);
		seq_printf(m, "context %u%s regions %u memory %llu of %llu events %lld\n",
			   ctx->number, ctx->lost ? " lost" : "", ctx->region_count, ctx->memory,
			   ctx->memory_limit, atomic64_read(&ctx->events));
		xa_for_each(&ctx->queues, number, q)
			show_queue(m, q);
	}
	return 0;
}

static int show_events(struct seq_file *m, void *data)
{
	embeng_events_show(find_shown_device(m), m);
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
