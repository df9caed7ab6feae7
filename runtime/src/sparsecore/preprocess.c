// SPDX-License-Identifier: MIT
/*
 * embeng_preprocess(): partitions a batch stack by stack, and has all stacks agree on their
 * minibatches where the flavour wants that.
 *
 * The result belongs to the caller until embeng_preprocessed_free(). Locks are taken by
 * stack_partition() for each stack.
 */
#include <stdlib.h>

#include "base/check.h"
#include "partition.h"
#include "embeng/preprocess.h"

#define WHAT "embeng_preprocess"

/* One call under way. */
struct preprocessing {
	const struct embeng_batch *b;
	const struct embeng_stacking *stacking;
	struct embeng_preprocess_options options;
	struct embeng_preprocessed *out;
};

static void stack_release(struct embeng_partitioned *p)
{
	free(p->row_pointers);
	free(p->token_ids);
	free(p->sample_ids);
	free(p->gains);
	free(p->max_ids);
	free(p->max_unique_ids);
	free(p->required_buffer);
	free(p->core_first);
	free(p->core_end);
	*p = (struct embeng_partitioned){.size = sizeof(*p)};
}

void embeng_preprocessed_free(struct embeng_preprocessed *preprocessed)
{
	if (!preprocessed)
		return;
	for (size_t i = 0; i < preprocessed->stack_count; i++)
		stack_release(&preprocessed->stacks[i]);
	free(preprocessed->stacks);
	free(preprocessed);
}

/* Zeroed, so that what lies between the cores' parts is the same each time. */
static int reserve_outputs(const struct stack *stack, struct embeng_partitioned *p)
{
	size_t cores = stack->o->sparse_cores, each = stack->o->cores_per_device;
	uint64_t pointers, items;

	stack_room(stack, &pointers, &items);
	p->row_pointers = calloc(pointers + 1, sizeof(*p->row_pointers));
	p->token_ids = calloc(items + 1, sizeof(*p->token_ids));
	p->sample_ids = calloc(items + 1, sizeof(*p->sample_ids));
	p->gains = calloc(items + 1, sizeof(*p->gains));
	p->max_ids = calloc(cores, sizeof(*p->max_ids));
	p->max_unique_ids = calloc(cores, sizeof(*p->max_unique_ids));
	p->required_buffer = calloc(each, sizeof(*p->required_buffer));
	p->core_first = calloc(each, sizeof(*p->core_first));
	p->core_end = calloc(each, sizeof(*p->core_end));
	if (!p->row_pointers || !p->token_ids || !p->sample_ids || !p->gains || !p->max_ids ||
	    !p->max_unique_ids || !p->required_buffer || !p->core_first || !p->core_end)
		return fail(-ENOMEM, WHAT ": no memory for %llu items", (unsigned long long)items);
	p->row_pointer_capacity = pointers;
	p->capacity = items;
	return 0;
}

static int options_of(const struct preprocessing *p, size_t index, uint64_t splits,
		      struct embeng_partition_options *o)
{
	const struct embeng_preprocess_options *given = &p->options;
	const struct embeng_stack_limits none = {0};
	const struct embeng_stack_limits *limits = given->limits ? &given->limits[index] : &none;

	*o = (struct embeng_partition_options){
		.size = sizeof(*o),
		.flavour = p->stacking->flavour,
		.sparse_cores = p->stacking->sparse_cores,
		.cores_per_device = p->stacking->cores_per_device,
		.device = given->device,
		.max_ids_per_partition = limits->max_ids_per_partition,
		.max_unique_ids_per_partition = limits->max_unique_ids_per_partition,
		.minibatching = given->minibatching,
		.allow_id_dropping = given->allow_id_dropping,
		.bucket = given->bucket,
		.buffer_size = limits->buffer_size,
		.splits = splits,
	};
	if (o->buffer_size || !given->max_ids_per_sample || o->flavour != EMBENG_PARTITION_TF)
		return 0;
	if (__builtin_mul_overflow(given->max_ids_per_sample,
				   (uint64_t)p->stacking->stacks[index].samples, &o->buffer_size))
		return fail(-ERANGE,
			    "stack %s: max_ids_per_sample %llu makes a buffer of more items "
			    "than 64 bits count",
			    p->stacking->stacks[index].name,
			    (unsigned long long)given->max_ids_per_sample);
	return 0;
}

/* Partitions the input of one stack. An earlier result for the stack is freed. */
static int partition_one(struct preprocessing *p, size_t index, uint64_t splits)
{
	struct embeng_partitioned *out = &p->out->stacks[index];
	struct embeng_partition_options o;
	struct stack stack;
	int ret = options_of(p, index, splits, &o);

	stack_release(out);
	if (ret || !p->stacking->stacks[index].feature_count)
		return ret;
	ret = stack_take(p->b, &o, p->stacking, index, &stack);
	if (ret)
		return ret;
	ret = reserve_outputs(&stack, out);
	ret = ret ? ret : stack_partition(&stack, out);
	stack_free(&stack);
	return ret;
}

/* JAX: a boundary of one stack is one of all. */
static int agree_on_splits(struct preprocessing *p)
{
	uint64_t splits = 0;
	int ret = 0;

	for (size_t i = 0; i < p->out->stack_count; i++)
		splits |= p->out->stacks[i].splits;
	for (size_t i = 0; !ret && i < p->out->stack_count; i++) {
		if (p->out->stacks[i].splits != splits)
			ret = partition_one(p, i, splits);
	}
	return ret;
}

static int partition_all(struct preprocessing *p)
{
	int ret = 0;

	p->out->stacks = calloc(p->stacking->stack_count + 1, sizeof(*p->out->stacks));
	if (!p->out->stacks)
		return fail(-ENOMEM, WHAT ": no memory for %zu stacks", p->stacking->stack_count);
	p->out->stack_count = p->stacking->stack_count;
	p->out->from_first = p->stacking->flavour == EMBENG_PARTITION_JAX &&
			     !p->options.minibatching;
	for (size_t i = 0; !ret && i < p->out->stack_count; i++)
		ret = partition_one(p, i, p->options.splits ? p->options.splits[i] : 0);
	if (!ret && p->stacking->flavour == EMBENG_PARTITION_JAX)
		ret = agree_on_splits(p);
	return ret;
}

int embeng_preprocess(struct embeng *e, const struct embeng_batch *b,
		      const struct embeng_stacking *stacking,
		      const struct embeng_preprocess_options *options,
		      struct embeng_preprocessed **out)
{
	struct preprocessing p = {.b = b, .stacking = stacking};
	int ret = partition_check_batch(WHAT, e, b);

	ret = ret ? ret : check_stacking(WHAT, e, stacking);
	if (!ret && !out)
		ret = fail(-EINVAL, WHAT ": no place for what comes out");
	if (!ret && options)
		ret = config_take(&p.options, options, sizeof(p.options),
				  "embeng_preprocess_options");
	if (ret)
		return ret;
	p.out = calloc(1, sizeof(*p.out));
	ret = p.out ? partition_all(&p) : fail(-ENOMEM, WHAT ": no memory");
	if (ret)
		embeng_preprocessed_free(p.out);
	else
		*out = p.out;
	return ret;
}
