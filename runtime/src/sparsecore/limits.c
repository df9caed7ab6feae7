// SPDX-License-Identifier: MIT
/*
 * Learns the limits of partitions from batches that were preprocessed, and suggests limits with
 * some room to spare.
 *
 * The counts belong to the caller. No lock is needed.
 */
#include <stdbool.h>

#include "base/error.h"
#include "embeng/preprocess.h"

#define ALIGN 8u

static void note_largest(uint64_t *most, uint64_t value)
{
	*most = value > *most ? value : *most;
}

static void note_stack(const struct embeng_stacking *s, const struct embeng_partitioned *p,
		       struct embeng_stack_seen *seen)
{
	for (uint32_t c = 0; c < s->sparse_cores; c++) {
		note_largest(&seen->max_ids, p->max_ids[c]);
		note_largest(&seen->max_unique_ids, p->max_unique_ids[c]);
	}
	for (uint32_t c = 0; c < s->cores_per_device; c++)
		note_largest(&seen->core_buffer, p->required_buffer[c]);
	seen->dropped_ids += p->dropped_ids;
	seen->batches++;
}

int embeng_limits_note(const struct embeng_stacking *stacking,
		       const struct embeng_preprocessed *preprocessed,
		       struct embeng_stack_seen *seen)
{
	if (!stacking || !preprocessed || !seen)
		return fail(-EINVAL, "embeng_limits_note: stacking, preprocessed and seen must be "
				     "given");
	if (stacking->stack_count != preprocessed->stack_count)
		return fail(-EINVAL,
			    "embeng_limits_note: the stacking has %zu stacks, the batch %zu",
			    stacking->stack_count, preprocessed->stack_count);
	for (size_t i = 0; i < stacking->stack_count; i++) {
		if (stacking->stacks[i].feature_count)
			note_stack(stacking, &preprocessed->stacks[i], &seen[i]);
	}
	return 0;
}

/* More than was seen, rounded up; at least 1. False beyond what 32 bits count. */
static bool raise_limit(uint64_t value, uint32_t headroom, uint64_t *raised)
{
	uint64_t percent = 100 + (uint64_t)headroom;

	if (value > INT32_MAX)
		return false;
	/* 2^31 times 2^33 is just what fits. */
	*raised = (value * percent + 99) / 100;
	*raised = *raised ? *raised : 1;
	return *raised <= INT32_MAX - ALIGN;
}

static uint64_t align_items(uint64_t items)
{
	return (items + ALIGN - 1) / ALIGN * ALIGN;
}

static int suggest_limits(const struct embeng_stacking *s, size_t index,
			  const struct embeng_stack_seen *seen, uint32_t headroom,
			  struct embeng_stack_limits *to)
{
	const struct embeng_stack *stack = &s->stacks[index];
	uint64_t items, most;

	if (stack->feature_count && !seen->batches)
		return fail(-EINVAL, "stack %s: no batch was seen; embeng_limits_note() some",
			    stack->name);
	if (!raise_limit(seen->max_ids, headroom, &to->max_ids_per_partition) ||
	    !raise_limit(seen->max_unique_ids, headroom, &to->max_unique_ids_per_partition) ||
	    !raise_limit(seen->core_buffer, headroom, &items))
		return fail(-ERANGE,
			    "stack %s: what was seen and %u percent are more than 32 bits "
			    "count",
			    stack->name, headroom);
	most = align_items(to->max_ids_per_partition) * s->sparse_cores;
	items = align_items(items);
	to->buffer_size = (items < most ? items : most) * s->cores_per_device;
	/* The most that embeng_partition_options takes. */
	if (to->buffer_size > INT32_MAX - 1024)
		return fail(-ERANGE, "stack %s: a buffer of %llu items is more than 32 bits count",
			    stack->name, (unsigned long long)to->buffer_size);
	return 0;
}

int embeng_limits_suggest(const struct embeng_stacking *stacking,
			  const struct embeng_stack_seen *seen, uint32_t headroom,
			  struct embeng_stack_limits *limits)
{
	struct embeng_stack_limits made;
	int ret = 0;

	if (!stacking || !seen || !limits)
		return fail(-EINVAL,
			    "embeng_limits_suggest: stacking, seen and limits must be given");
	for (size_t i = 0; !ret && i < stacking->stack_count; i++)
		ret = suggest_limits(stacking, i, &seen[i], headroom, &made);
	for (size_t i = 0; !ret && i < stacking->stack_count; i++)
		ret = suggest_limits(stacking, i, &seen[i], headroom, &limits[i]);
	return ret;
}
