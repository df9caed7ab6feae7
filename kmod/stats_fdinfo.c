// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory and engine time of a file, for tools that read /proc/PID/fdinfo (drm-usage-stats).
 *
 * The device counts the time of a queue in the ring's header. A program may write there in a
 * mapped ring and so lie about itself; the sum shown never falls all the same. The part of queues
 * that have ended is kept in the context. Reading tries ctx->lock and does not wait for it, since
 * a call of the program's may hold it for long; then the sum of the last reading is shown.
 */
#include "context.h"

/* The device counts in the ring's header, of which the grave has a copy when the ring is gone. */
static u64 read_queue_busy(const struct embeng_queue *q)
{
	const void *ring = q->ring ?: q->grave;
	const struct embeng_ring_header *header = ring + q->layout.header;

	return READ_ONCE(header->busy_ns);
}

/**
 * embeng_usage_end() - keep the engine time of a queue that is about to go
 * @q: queue, under the context's lock
 */
void embeng_usage_end(struct embeng_queue *q)
{
	q->context->busy_ended_ns += read_queue_busy(q);
}

/*
 * The sum never falls, although a program may write anything into a mapped ring. While a call of
 * the program's holds the lock, the last sum is returned.
 */
static u64 sum_busy_time(struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;
	u64 sum;

	if (!mutex_trylock(&ctx->lock))
		return READ_ONCE(ctx->busy_ns);
	sum = ctx->busy_ended_ns;
	xa_for_each(&ctx->queues, number, q)
		sum += read_queue_busy(q);
	sum = max(sum, ctx->busy_ns);
	WRITE_ONCE(ctx->busy_ns, sum);
	mutex_unlock(&ctx->lock);
	return sum;
}

/**
 * embeng_usage_show() - print memory and engine time of an open file
 * @p: printer of the fdinfo file
 * @file: open file
 */
void embeng_usage_show(struct drm_printer *p, struct drm_file *file)
{
	drm_show_memory_stats(p, file);
	drm_printf(p, "drm-engine-compute:\t%llu ns\n", sum_busy_time(to_embeng_context(file)));
}
