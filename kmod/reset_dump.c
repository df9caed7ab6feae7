// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dump of a hang, kept as a devcoredump to be read later: text, about one device at one
 * moment. It has registers, contexts with the tables of their models, queues, and the last commands
 * and completions of validated queues; what stands in the ring of a mapped queue is its program's
 * word. Commands name memory by key, and say which row or id was at fault; the contents of that
 * memory, be it ids, weights, gradients or rows, are never in it.
 *
 * It is written under reset_lock, held by the rung that is about to be taken, with contexts_lock
 * and map_lock inside. The text is made twice, to learn its length and to fill it; from then on it
 * belongs to the devcoredump core, which frees it when somebody writes to it or after five
 * minutes.
 */
#include <linux/cleanup.h>
#include <linux/devcoredump.h>
#include <linux/ktime.h>
#include <linux/vmalloc.h>

#include <drm/drm_print.h>

#include "context.h"

/* Entries of each ring that are printed, on either side of its head. */
#define LAST 8u

static const char *const causes[] = {
#define CAUSE(name, value, word, text) \
	[value] = word,
	EMBENG_ACCEL_CAUSE_TABLE(CAUSE)
#undef CAUSE
};

static const char *const rungs[] = {
	[EMBENG_ACCEL_RESET_NONE] = "none",
	[EMBENG_ACCEL_RESET_QUEUE] = "queue",
	[EMBENG_ACCEL_RESET_ENGINE] = "engine",
	[EMBENG_ACCEL_RESET_FUNCTION] = "function",
	[EMBENG_ACCEL_RESET_WEDGED] = "wedged",
	[EMBENG_ACCEL_RESET_CONTEXT] = "context",
};

/**
 * embeng_cause_word() - the word for a cause, for people and scripts
 * @cause: enum embeng_accel_cause
 */
const char *embeng_cause_word(u32 cause)
{
	return cause < ARRAY_SIZE(causes) ? causes[cause] : "unknown";
}

/**
 * embeng_rung_word() - the word for a rung, for people and scripts
 * @rung: enum embeng_accel_rung
 */
const char *embeng_rung_word(u32 rung)
{
	return rung < ARRAY_SIZE(rungs) ? rungs[rung] : "unknown";
}

static void print_registers(struct embeng_device *ed, struct drm_printer *p)
{
	u32 i;

	for (i = 0; i < EMBENG_REGISTERS; i++)
		drm_printf(p, "register %s %#llx\n", embeng_registers[i].name,
			   embeng_register_read(ed, &embeng_registers[i]));
}

static void print_command(const struct embeng_queue *q, u32 index, struct drm_printer *p)
{
	const struct embeng_cmd *ring = q->ring + q->layout.sq;
	struct embeng_cmd cmd = ring[index & (q->layout.sq_entries - 1)];

	drm_printf(p, "    command %u opcode %u flags %#x cookie %#llx step %llu after %llu", index,
		   cmd.opcode, cmd.flags, cmd.cookie, cmd.step, cmd.after);
	drm_printf(p, " key %u:%u offset %llu length %llu arg %#llx%s\n", cmd.desc.index,
		   cmd.desc.generation, cmd.desc.offset, cmd.desc.length, cmd.arg,
		   q->at_fault && index == q->fault_index ? " at fault" : "");
}

static void print_completion(const struct embeng_queue *q, u32 index, struct drm_printer *p)
{
	const struct embeng_cqe *ring = q->ring + q->layout.cq;
	struct embeng_cqe cqe = ring[index & (q->layout.cq_entries - 1)];

	drm_printf(p, "    completion %u cookie %#llx status %u flags %u field %u", index,
		   cqe.cookie, cqe.status, cqe.flags, cqe.field);
	drm_printf(p, " feature %u element %llu step %llu timestamp %llu\n", cqe.feature,
		   cqe.element, cqe.step, cqe.timestamp);
}

static void print_rings(const struct embeng_queue *q, u32 head, u32 cq_tail, struct drm_printer *p)
{
	u32 waiting = min(q->last_tail - head, LAST), before = min(head - q->sq_begin, LAST);
	u32 i;

	for (i = head - before; i != head + waiting; i++) {
		print_command(q, i, p);
		if (q->at_fault && i == q->fault_index)
			embeng_dump_descriptor(q->context, embeng_queue_slot(q, i), p);
	}
	for (i = cq_tail - min(cq_tail - q->cq_begin, LAST); i != cq_tail; i++)
		print_completion(q, i, p);
}

static void print_queue(const struct embeng_queue *q, struct drm_printer *p)
{
	struct embeng_ring_header h;

	drm_printf(p, "  queue %u kind %u replica %u priority %u %s entries %u %u\n", q->number,
		   q->kind, q->replica, q->priority, q->mapped ? "mapped" : "validated",
		   q->layout.sq_entries, q->layout.cq_entries);
	/* The program of a mapped queue may write into its ring what others are to read. */
	if (q->mapped) {
		drm_printf(p, "    sq_tail %u cq_head %u\n", q->last_tail, q->last_head);
		return;
	}
	h = *embeng_queue_header(q);
	drm_printf(p, "    sq_tail %u sq_head %u done %u", q->last_tail, h.sq_head, h.done);
	drm_printf(p, " cq_head %u cq_tail %u sent %u heartbeat %u\n", q->last_head, h.cq_tail,
		   h.sent, h.heartbeat);
	drm_printf(p, "    report %u state %u wait %u replica %u step %llu tail %u cq_head %u\n",
		   h.report.epoch, h.report.state, h.report.wait, h.report.replica, h.report.step,
		   h.report.tail, h.report.cq_head);
	print_rings(q, h.sq_head, h.cq_tail, p);
}

static void print_contexts(struct embeng_device *ed, struct drm_printer *p)
{
	struct embeng_context *ctx;
	struct embeng_queue *q;
	unsigned long number;

	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		if (!READ_ONCE(ctx->on_device) || ctx->lost)
			continue;
		drm_printf(p, "context %u program %s regions %u events %lld\n",
			   ctx->number, embeng_program_text(ctx).text, ctx->region_count,
			   atomic64_read(&ctx->events));
		embeng_dump_model(ctx, p);
		guard(mutex)(&ctx->map_lock);
		xa_for_each(&ctx->queues, number, q) {
			if (!q->destroyed)
				print_queue(q, p);
		}
	}
}

static void print_dump(struct embeng_device *ed, const struct embeng_hang *hang,
		       struct drm_printer *p)
{
	drm_printf(p, "embeng devcoredump 1\ndevice %s\ncause %s\nstill_ns %llu\ntime_ns %llu\n",
		   pci_name(ed->pci), embeng_cause_word(hang->cause), hang->still_ns,
		   ktime_get_ns());
	drm_printf(p, "firmware %#llx\nresets %llu queues %llu engines %llu functions %llu\n",
		   ed->firmware_version, ed->resets.sequence, ed->resets.queues,
		   ed->resets.engines, ed->resets.functions);
	print_registers(ed, p);
	print_contexts(ed, p);
}

/**
 * embeng_coredump() - write a dump of the device to /sys/class/devcoredump
 * @ed: device that is present; called under reset_lock
 * @hang: reason for the dump
 * @claim: it is about a mapped queue, whose ring its program may have written
 *
 * A dump is kept until somebody writes to it or five minutes are over; until then later dumps are
 * dropped, but one that is no claim replaces one that is.
 */
void embeng_coredump(struct embeng_device *ed, const struct embeng_hang *hang, bool claim)
{
	struct drm_print_iterator it = { .remain = SSIZE_MAX };
	struct drm_printer p = drm_coredump_printer(&it);
	size_t size;
	void *text;

	if (!IS_ENABLED(CONFIG_DEV_COREDUMP))
		return;
	print_dump(ed, hang, &p);
	/* Numbers may have grown by a digit meanwhile; text that does not fit is left out. */
	size = SSIZE_MAX - it.remain + SZ_4K;
	text = vzalloc(size);
	if (!text)
		return;
	it = (struct drm_print_iterator){ .data = text, .remain = size };
	print_dump(ed, hang, &p);
	if (ed->dump_of_claim && !claim)
		dev_coredump_put(&ed->pci->dev);
	ed->dump_of_claim = claim;
	dev_coredumpv(&ed->pci->dev, text, size - it.remain, GFP_KERNEL);
	drm_info(&ed->drm,
		 "a dump is in /sys/bus/pci/devices/%s/devcoredump/data for 5 minutes, if no earlier one is\n",
		 pci_name(ed->pci));
}
