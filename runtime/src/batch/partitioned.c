// SPDX-License-Identifier: MIT
/*
 * Partitioned CSR as inputs of a batch. The arrays are copied as they are; the engine takes them
 * apart and checks their contents when the batch is enqueued.
 *
 * The copies belong to the batch until it is reset, freed or given other stacks. One thread uses a
 * batch at a time; no lock is taken.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "partitioned.h"
#include "sparsecore/partition.h"
#include "embeng/preprocess.h"

#define WHAT "embeng_batch_partitioned"

/* One stack of a call. */
struct part {
	const struct embeng_batch *b;
	const struct embeng_stacking *s;
	const struct embeng_stack *stack;
	const struct embeng_partitioned *from;
	bool from_first;
};

void partitioned_free(struct partitioned *p)
{
	for (size_t i = 0; p && i < p->count; i++) {
		free(p->stacks[i].name);
		free(p->stacks[i].members);
		free(p->stacks[i].memory);
	}
	free(p);
}

static int check_arrays(const struct part *part)
{
	const struct embeng_stacking *s = part->s;
	const struct embeng_partitioned *from = part->from;
	uint64_t pointers = (uint64_t)s->cores_per_device * from->minibatches;

	if (from->size < sizeof(*from) || !from->row_pointers || !from->token_ids ||
	    !from->sample_ids || !from->gains || !from->core_first || !from->core_end)
		return fail(-EINVAL, WHAT ": stack %s: an array is missing", part->stack->name);
	if (from->row_stride < s->sparse_cores || from->row_stride > UINT32_MAX ||
	    !from->minibatches || from->minibatches > EMBENG_PARTITION_BUCKETS ||
	    __builtin_mul_overflow(pointers, from->row_stride, &pointers) ||
	    from->row_pointer_count != pointers || pointers > from->row_pointer_capacity)
		return fail(-EINVAL,
			    WHAT ": stack %s: %zu row pointers, %u minibatches of %zu; the grid "
				 "has %u cores, %u of a device",
			    part->stack->name, from->row_pointer_count, from->minibatches,
			    from->row_stride, s->sparse_cores, s->cores_per_device);
	return 0;
}

/* Where the last of the cores ends: no more is copied. */
static int check_item_bounds(const struct part *part, uint64_t *items)
{
	const struct embeng_partitioned *from = part->from;

	*items = 0;
	for (uint32_t c = 0; c < part->s->cores_per_device; c++) {
		uint64_t first = from->core_first[c], end = from->core_end[c];

		if (first > end || end > from->capacity)
			return fail(-ERANGE,
				    WHAT ": stack %s, core %u: its items are %" PRIu64 " to "
					 "%" PRIu64 "; the arrays have %zu",
				    part->stack->name, c, first, end, from->capacity);
		*items = end > *items ? end : *items;
	}
	return 0;
}

/* Members stand in the order of their samples, so that nothing need say where. */
static int check_member_order(const struct part *part)
{
	const struct embeng_stacking *s = part->s;
	int64_t offset = 0;

	for (size_t k = 0; k < part->stack->feature_count; k++) {
		const struct embeng_sample_place *place = &s->features[part->stack->features[k]];

		if (place->samples % s->cores_per_device)
			return fail(-EINVAL,
				    WHAT ": stack %s: samples of its features are no multiple "
					 "of %u cores_per_device",
				    part->stack->name, s->cores_per_device);
		if (place->offset != offset)
			return fail(-EINVAL,
				    WHAT ": stack %s: samples of feature %d stand at "
					 "%" PRId64 ", those before it end at %" PRId64,
				    part->stack->name, part->stack->features[k], place->offset,
				    offset);
		offset += place->samples;
	}
	return 0;
}

static void copy_part(void *to, size_t *at, const void *from, uint64_t bytes)
{
	memcpy((char *)to + *at, from, bytes);
	*at += bytes;
}

/* The widest array first, so that all are aligned. */
static int copy_arrays(const struct part *part, struct stack_input *to, uint64_t items)
{
	const struct embeng_partitioned *from = part->from;
	uint64_t cores = part->s->cores_per_device, pointers = from->row_pointer_count;
	size_t at = 0;

	to->memory = items > SIZE_MAX / 64 || pointers > SIZE_MAX / 64
			     ? NULL
			     : malloc(16 * cores + 4 * pointers + 12 * items);
	if (!to->memory)
		return fail(-ENOMEM, WHAT ": no memory for %" PRIu64 " items", items);
	to->bounds = to->memory;
	to->row_pointers = (int32_t *)(to->bounds + 2 * cores);
	to->tokens = to->row_pointers + pointers;
	to->samples = to->tokens + items;
	to->gains = (float *)(to->samples + items);
	copy_part(to->memory, &at, from->core_first, 8 * cores);
	copy_part(to->memory, &at, from->core_end, 8 * cores);
	copy_part(to->memory, &at, from->row_pointers, 4 * pointers);
	copy_part(to->memory, &at, from->token_ids, 4 * items);
	copy_part(to->memory, &at, from->sample_ids, 4 * items);
	copy_part(to->memory, &at, from->gains, 4 * items);
	to->pointer_count = pointers;
	return 0;
}

static int make_member(const struct part *part, int f, struct embeng_lookup_member *to)
{
	const struct embeng_stacking *s = part->s;
	const struct embeng_table_layout *l = &s->tables[part->b->e->model->features[f].table];

	if (l->row_offset < 0 || l->row_offset > INT32_MAX || l->rotation < 0)
		return fail(-ERANGE,
			    WHAT ": table %s: its rows begin at %" PRId64 " of each core; "
				 "tokens have 31 bits",
			    l->table, l->row_offset);
	*to = (struct embeng_lookup_member){
		.feature = (uint32_t)f,
		.rotation = (uint32_t)(l->rotation % s->sparse_cores),
		.column_offset = (uint64_t)l->row_offset * s->sparse_cores,
		.sample_count = (uint64_t)s->features[f].samples,
	};
	return 0;
}

static int make_members(const struct part *part, struct stack_input *to)
{
	size_t count = part->stack->feature_count;
	int ret = 0;

	to->name = strdup(part->stack->name);
	to->members = calloc(count, sizeof(*to->members));
	if (!to->name || !to->members)
		return fail(-ENOMEM, WHAT ": no memory for %zu features", count);
	for (size_t k = 0; !ret && k < count; k++)
		ret = make_member(part, part->stack->features[k], &to->members[k]);
	return ret;
}

static int take_stack_input(const struct part *part, struct stack_input *to)
{
	uint64_t items;
	int ret = check_arrays(part);

	ret = ret ? ret : check_item_bounds(part, &items);
	ret = ret ? ret : check_member_order(part);
	ret = ret ? ret : make_members(part, to);
	ret = ret ? ret : copy_arrays(part, to, items);
	if (ret)
		return ret;
	to->given = (struct embeng_lookup_stack){
		.member_count = (uint32_t)part->stack->feature_count,
		.cores = part->s->sparse_cores,
		.device_cores = part->s->cores_per_device,
		.minibatches = part->from->minibatches,
		.row_stride = (uint32_t)part->from->row_stride,
		.flags = part->from_first ? EMBENG_STACK_OWN_PARTS : 0,
		.item_count = items,
	};
	return 0;
}

/* As the engine's model has it; it may leave open what the stacking's had built. */
static void give_shape(const struct feature *f, struct input *in)
{
	struct embeng_shape shape = shape_known(f);

	if (!shape.rank || shape_product(shape.dims, shape.rank, false) != (int64_t)in->samples)
		shape = (struct embeng_shape){.rank = 1, .dims = {(int64_t)in->samples}};
	in->rank = shape.rank;
	memcpy(in->shape, shape.dims, sizeof(shape.dims));
}

static void give_stack(struct embeng_batch *b, const struct stack_input *s)
{
	for (uint32_t k = 0; k < s->given.member_count; k++) {
		const struct feature *feature;
		int code;
		struct input *in = input_begin(b, (int)s->members[k].feature, &feature, &code);

		if (!in)
			continue;
		in->form = INPUT_PARTITIONED;
		in->pooled = true;
		in->type = EMBENG_I64;
		in->samples = s->members[k].sample_count;
		give_shape(feature, in);
	}
}

static int check_partitioned(struct embeng_batch *b, const struct embeng_stacking *stacking,
			     const struct embeng_preprocessed *preprocessed)
{
	int ret;

	if (!b)
		return fail(-EINVAL, WHAT ": no batch");
	ret = session_check_alone(b->e, WHAT);
	ret = ret ? ret : check_stacking(WHAT, b->e, stacking);
	ret = ret ? ret : batch_grow(b, true);
	if (ret)
		return ret;
	if (!preprocessed || preprocessed->stack_count != stacking->stack_count)
		return fail(-EINVAL, WHAT ": not as many stacks as the stacking has");
	if (!(b->e->device->info.features & EMBENG_CAP_PARTITIONED))
		return fail(-ENOTSUP,
			    WHAT ": the device does not take partitioned CSR; its firmware "
				 "may be an older one");
	return 0;
}

static int take_all(const struct part *call, const struct embeng_preprocessed *preprocessed,
		    struct partitioned *to)
{
	struct part part = *call;
	int ret = 0;

	for (size_t i = 0; !ret && i < part.s->stack_count; i++) {
		part.stack = &part.s->stacks[i];
		part.from = &preprocessed->stacks[i];
		if (part.stack->feature_count)
			ret = take_stack_input(&part, &to->stacks[to->count++]);
	}
	return ret;
}

int embeng_batch_partitioned(struct embeng_batch *b, const struct embeng_stacking *stacking,
			     const struct embeng_preprocessed *preprocessed)
{
	struct part part = {.b = b, .s = stacking};
	struct partitioned *p;
	int ret = check_partitioned(b, stacking, preprocessed);

	if (ret)
		return ret;
	p = calloc(1, sizeof(*p) + stacking->stack_count * sizeof(p->stacks[0]));
	if (!p)
		return fail(-ENOMEM, WHAT ": no memory for %zu stacks", stacking->stack_count);
	part.from_first = preprocessed->from_first;
	ret = take_all(&part, preprocessed, p);
	if (ret) {
		partitioned_free(p);
		return ret;
	}
	for (uint32_t f = 0; f < b->count; f++) {
		if (is_partitioned(b, f))
			b->inputs[f].form = INPUT_NONE; /* its stack is freed below */
	}
	partitioned_free(b->partitioned);
	b->partitioned = p;
	for (size_t i = 0; i < p->count; i++)
		give_stack(b, &p->stacks[i]);
	return 0;
}
