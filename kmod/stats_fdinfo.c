// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory, engine time and work of a file, for tools that read /proc/PID/fdinfo (drm-usage-stats).
 *
 * The device counts for a queue in the ring's header. A program may write there in a mapped ring
 * and so lie about itself; the sums shown never fall all the same. The part of queues that have
 * ended is kept in the context. Reading tries ctx->lock and does not wait for it, since a call of
 * the program's may hold it for long; then the sums of the last reading are shown.
 */
#include "context.h"

/* The device counts in the ring's header, of which the grave has a copy when the ring is gone. */
static void add_queue_usage(const struct embeng_queue *q, u64 sums[EMBENG_USAGES])
{
	const void *ring = q->ring ?: q->grave;
	const struct embeng_ring_header *header = ring + q->layout.header;
	u32 i;

	sums[EMBENG_USAGE_BUSY_NS] += READ_ONCE(header->busy_ns);
	sums[EMBENG_USAGE_COMMANDS] += READ_ONCE(header->commands);
	sums[EMBENG_USAGE_IDS] += READ_ONCE(header->ids);
	sums[EMBENG_USAGE_ROWS] += READ_ONCE(header->rows);
	for (i = 0; i < EMBENG_WAITS; i++)
		sums[EMBENG_USAGE_WAITS + i] += READ_ONCE(header->waits[i]);
}

/**
 * embeng_usage_end() - keep the counts of a queue that is about to go
 * @q: queue, under the context's lock
 */
void embeng_usage_end(struct embeng_queue *q)
{
	add_queue_usage(q, q->context->usage_ended);
}

/*
 * The sums never fall, although a program may write anything into a mapped ring. While a call of
 * the program's holds the lock, the last sums are returned.
 */
static void sum_usage(struct embeng_context *ctx, u64 sums[EMBENG_USAGES])
{
	struct embeng_queue *q;
	unsigned long number;
	bool locked = mutex_trylock(&ctx->lock);
	u32 i;

	memset(sums, 0, EMBENG_USAGES * sizeof(*sums));
	if (locked) {
		memcpy(sums, ctx->usage_ended, sizeof(ctx->usage_ended));
		xa_for_each(&ctx->queues, number, q)
			add_queue_usage(q, sums);
	}
	for (i = 0; i < EMBENG_USAGES; i++) {
		sums[i] = max(sums[i], READ_ONCE(ctx->usage[i]));
		if (locked)
			WRITE_ONCE(ctx->usage[i], sums[i]);
	}
	if (locked)
		mutex_unlock(&ctx->lock);
}

/**
 * embeng_usage_show() - print memory, engine time and work of an open file
 * @p: printer of the fdinfo file
 * @file: open file
 */
void embeng_usage_show(struct drm_printer *p, struct drm_file *file)
{
	static const char *const waits[EMBENG_WAITS] = { "lookup", "update", "queue", "space" };
	struct embeng_context *ctx = to_embeng_context(file);
	u64 limit_khz = embeng_reading_of(ctx->device, EMBENG_REG_CLOCK_LIMIT);
	u64 sums[EMBENG_USAGES];
	u32 i;

	sum_usage(ctx, sums);
	drm_show_memory_stats(p, file);
	drm_printf(p, "drm-engine-compute:\t%llu ns\n", sums[EMBENG_USAGE_BUSY_NS]);
	if (limit_khz)
		drm_printf(p, "drm-maxfreq-compute:\t%llu Hz\n", limit_khz * 1000);
	if (READ_ONCE(ctx->made))
		drm_printf(p, "embeng-context:\t%u\n", ctx->number);
	drm_printf(p, "embeng-queues:\t%u\n", READ_ONCE(ctx->queue_count));
	drm_printf(p, "embeng-commands:\t%llu\n", sums[EMBENG_USAGE_COMMANDS]);
	drm_printf(p, "embeng-ids:\t%llu\n", sums[EMBENG_USAGE_IDS]);
	drm_printf(p, "embeng-rows:\t%llu\n", sums[EMBENG_USAGE_ROWS]);
	for (i = 0; i < EMBENG_WAITS; i++)
		drm_printf(p, "embeng-waits-%s:\t%llu\n", waits[i],
			   sums[EMBENG_USAGE_WAITS + i]);
}
