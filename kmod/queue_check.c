// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of a request for a queue, against the contract, the device's capabilities and what the
 * context has already. A program learns here what is wrong before anything is allocated.
 *
 * It is a file of its own because it decides from plain values, which KUnit tests without a
 * device. embeng_queue_check() needs no lock; the two functions that look at a context are called
 * under its lock, and embeng_queue_trains() takes ledger_lock for the one word that it sets in the
 * ledger.
 */
#include <linux/capability.h>
#include <linux/log2.h>

#include <linux/cleanup.h>

#include "context.h"

#define PRIORITY_MAX 3u
/* A higher priority would overtake the programs of others, and needs CAP_SYS_NICE. */
#define PRIORITY_NICE 1u
#define COALESCE_US_MAX USEC_PER_SEC

static int check_queue_entries(const struct embeng_accel_queue_create *arg)
{
	u64 least = embeng_completions_least(arg->kind, arg->sq_entries);

	if (!is_power_of_2(arg->sq_entries) || arg->sq_entries > EMBENG_SQ_ENTRIES_MAX)
		return -EINVAL;
	if (!is_power_of_2(arg->cq_entries) || arg->cq_entries < least ||
	    arg->cq_entries > 2 * EMBENG_SQ_ENTRIES_MAX)
		return -EINVAL;
	return 0;
}

static int check_queue_coalescing(const struct embeng_accel_queue_create *arg)
{
	bool mapped = arg->flags & EMBENG_ACCEL_QUEUE_MAPPED;

	if (arg->coalesce_count > arg->cq_entries || arg->coalesce_us > COALESCE_US_MAX)
		return -EINVAL;
	if (mapped && (arg->coalesce_count || arg->coalesce_us))
		return -EINVAL;
	return (arg->coalesce_count > 1) != (arg->coalesce_us > 0) ? -EINVAL : 0;
}

static int check_queue_kind(const struct embeng_device *ed,
			    const struct embeng_accel_queue_create *arg)
{
	if (arg->kind < EMBENG_QUEUE_INPUT || arg->kind > EMBENG_QUEUE_TRANSFER)
		return -EINVAL;
	if (arg->replica >= (arg->kind == EMBENG_QUEUE_TRANSFER ? 1 : ed->caps.replicas))
		return -EINVAL;
	if (arg->flags & ~EMBENG_ACCEL_QUEUE_MAPPED || arg->priority > PRIORITY_MAX)
		return -EINVAL;
	if (arg->flags & EMBENG_ACCEL_QUEUE_MAPPED && !embeng_queue_may_map(ed))
		return -EOPNOTSUPP;
	if (arg->priority > PRIORITY_NICE && !capable(CAP_SYS_NICE))
		return -EACCES;
	return 0;
}

/**
 * embeng_queue_check() - check a request for a queue
 * @ed: device
 * @arg: request
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_queue_check(const struct embeng_device *ed,
		       const struct embeng_accel_queue_create *arg)
{
	int ret = check_queue_kind(ed, arg);

	if (!ret)
		ret = check_queue_entries(arg);
	if (!ret)
		ret = check_queue_coalescing(arg);
	if (!ret && (arg->queue || arg->ring || arg->doorbell ||
		     memchr_inv(&arg->layout, 0, sizeof(arg->layout))))
		ret = -EINVAL;
	return ret;
}

static bool carries_steps(u32 kind)
{
	return kind == EMBENG_QUEUE_INPUT || kind == EMBENG_QUEUE_GRADIENT;
}

/**
 * embeng_queue_check_context() - check that a context may have the queue
 * @ctx: context, under its lock
 * @arg: request, checked by embeng_queue_check()
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_queue_check_context(const struct embeng_context *ctx,
			       const struct embeng_accel_queue_create *arg)
{
	int ret = embeng_context_usable(ctx);

	if (ret)
		return ret;
	if (carries_steps(arg->kind) && ctx->training && ctx->training != arg->flags + 1)
		return -EINVAL;
	return 0;
}

/**
 * embeng_queue_trains() - note that all further queues with steps must have this queue's flags
 * @ctx: context, under its lock
 * @arg: request that the queue was made for
 */
void embeng_queue_trains(struct embeng_context *ctx, const struct embeng_accel_queue_create *arg)
{
	if (!carries_steps(arg->kind))
		return;
	ctx->training = arg->flags + 1;
	scoped_guard(spinlock_irqsave, &ctx->ledger_lock)
		ctx->ledger.mapped = arg->flags & EMBENG_ACCEL_QUEUE_MAPPED;
}
