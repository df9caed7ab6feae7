/* SPDX-License-Identifier: MIT */
/*
 * Checks how a LOOKUP describes its stacks of partitioned CSR, before any of their arrays is looked
 * at: the grid of cores, the members of each stack and their places. The arrays themselves are read
 * in stacks_take.c.
 *
 * The copies of the descriptions are kept in memory that belongs to the batch (for training, to one
 * batch of the replica). Called without engine->lock while the command is accepted.
 */
#include "grid.h"
#include "stacks.h"

#define TOKENS_MAX 0x7fffffffu

void stacks_free(struct stacks *stacks)
{
	port_free(stacks->stacks.data);
	port_free(stacks->members.data);
	port_free(stacks->bounds.data);
	port_free(stacks->items.data);
}

static u16 refuse_stacks(struct fault *fault, u16 status, u32 field, u64 value, u64 limit)
{
	return fault_set(fault, status, field, EMBENG_NO_INDEX, 0, value, limit);
}

static u16 check_none(const struct embeng_lookup *h, struct fault *fault)
{
	u32 given = h->stack_count | h->stack_stride | h->member_count | h->member_stride;

	if (!given)
		return 0;
	return fault_set(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, EMBENG_NO_INDEX,
			 offsetof(struct embeng_lookup, stack_count), given, 0);
}

u16 stacks_check_header(const struct engine *engine, const struct embeng_lookup *h, u64 *bytes,
			struct fault *fault)
{
	if (!h->stack_count || !(engine->caps.features & EMBENG_CAP_PARTITIONED))
		return check_none(h, fault);
	if (h->member_count > EMBENG_LOOKUP_MEMBERS_MAX)
		return refuse_stacks(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS,
				     h->member_count, EMBENG_LOOKUP_MEMBERS_MAX);
	if (h->stack_count > h->member_count)
		return refuse_stacks(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_STACKS,
				     h->stack_count, h->member_count);
	if (h->stack_stride < sizeof(struct embeng_lookup_stack) || h->stack_stride % 8)
		return refuse_stacks(fault, EMBENG_STATUS_STRIDE, EMBENG_FIELD_STACKS,
				     h->stack_stride, sizeof(struct embeng_lookup_stack));
	if (h->member_stride < sizeof(struct embeng_lookup_member) || h->member_stride % 8)
		return refuse_stacks(fault, EMBENG_STATUS_STRIDE, EMBENG_FIELD_MEMBERS,
				     h->member_stride, sizeof(struct embeng_lookup_member));
	*bytes += (u64)h->stack_count * h->stack_stride + (u64)h->member_count * h->member_stride;
	return 0;
}

u16 stacks_copy(struct model *model, struct stacks *stacks, const u8 *from, struct fault *fault)
{
	const struct embeng_lookup *h = &stacks->header;
	struct embeng_lookup_stack *stack;
	struct stack_member *member;

	if (!h->stack_count)
		return 0;
	if (grow(model, &stacks->stacks.data, &stacks->stacks.bytes,
		 h->stack_count * sizeof(*stack)) ||
	    grow(model, &stacks->members.data, &stacks->members.bytes,
		 h->member_count * sizeof(*member)))
		return refuse_stacks(fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_STACKS,
				     h->member_count, 0);
	stack = stacks->stacks.data;
	for (u32 i = 0; i < h->stack_count; i++, from += h->stack_stride)
		memcpy(&stack[i], from, sizeof(*stack));
	member = stacks->members.data;
	for (u32 i = 0; i < h->member_count; i++, from += h->member_stride)
		memcpy(&member[i].given, from, sizeof(member->given));
	return 0;
}

u16 stacks_check_feature(const struct embeng_lookup_feature *g, u32 index, struct fault *fault)
{
	const struct {
		const struct embeng_mem *mem;
		u32 field;
	} none[] = {
		{ &g->offsets, EMBENG_FIELD_ROW_OFFSETS },
		{ &g->ids, EMBENG_FIELD_IDS },
		{ &g->weights, EMBENG_FIELD_WEIGHTS },
	};

	if (g->id_width)
		return fault_set(fault, EMBENG_STATUS_WIDTH, EMBENG_FIELD_IDS, index, 0,
				 g->id_width, 0);
	if (g->offset_width)
		return fault_set(fault, EMBENG_STATUS_WIDTH, EMBENG_FIELD_ROW_OFFSETS, index, 0,
				 g->offset_width, 0);
	if (g->id_count)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, index, 0,
				 g->id_count, 0);
	for (u32 i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		if (mem_given(none[i].mem))
			return fault_set(fault, EMBENG_STATUS_FORM, none[i].field, index, 0, 0, 0);
	}
	return 0;
}

static u16 check_stack_lengths(const struct embeng_lookup_stack *g, u32 index, struct fault *fault)
{
	u64 pointers = (u64)g->device_cores * g->minibatches * g->row_stride;
	const struct {
		const struct embeng_mem *mem;
		u64 count;
		u32 width, field;
	} arrays[] = {
		{ &g->row_pointers, pointers, 4, EMBENG_FIELD_ROW_POINTERS },
		{ &g->tokens, g->item_count, 4, EMBENG_FIELD_TOKENS },
		{ &g->samples, g->item_count, 4, EMBENG_FIELD_SAMPLE_IDS },
		{ &g->gains, g->item_count, 4, EMBENG_FIELD_GAINS },
		{ &g->bounds, 2ull * g->device_cores, 8, EMBENG_FIELD_BOUNDS },
	};
	u16 status = 0;

	for (u32 i = 0; !status && i < sizeof(arrays) / sizeof(arrays[0]); i++)
		status = check_length(arrays[i].mem, arrays[i].count, arrays[i].width,
				      arrays[i].field, index, fault);
	return status;
}

static u16 check_stack(const struct embeng_lookup_stack *g, u32 index, struct fault *fault)
{
	u64 reserved = (g->flags & ~EMBENG_STACK_OWN_PARTS) | g->reserved[0] | g->reserved[1];
	u16 status;

	if (reserved)
		return fault_set(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_STACKS, index, 0,
				 reserved, 0);
	status = pcsr_check_grid(g->cores, g->device_cores, index, fault);
	if (status)
		return status;
	if (!g->minibatches || g->minibatches > EMBENG_PARTITION_BUCKETS)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_ROW_POINTERS, index, 0,
				 g->minibatches, EMBENG_PARTITION_BUCKETS);
	if (g->row_stride < g->cores)
		return fault_set(fault, EMBENG_STATUS_STRIDE, EMBENG_FIELD_ROW_POINTERS, index, 0,
				 g->row_stride, g->cores);
	return check_stack_lengths(g, index, fault);
}

/* A member's fault: @member is its index among all. */
static u16 refuse_member(struct fault *fault, const struct stack *stack, u32 member, u16 status,
			 u32 field, u64 value, u64 limit)
{
	return fault_set(fault, status, field, stack->index, member, value, limit);
}

static u16 check_member_place(const struct stack *stack, const struct embeng_lookup_member *g,
			      u32 number, struct fault *fault)
{
	const struct embeng_lookup_stack *s = stack->given;

	if (g->reserved)
		return refuse_member(fault, stack, number, EMBENG_STATUS_RESERVED,
				     EMBENG_FIELD_MEMBERS, g->reserved, 0);
	if (g->rotation >= s->cores)
		return refuse_member(fault, stack, number, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES,
				     g->rotation, s->cores - 1);
	if (g->column_offset % s->cores)
		return refuse_member(fault, stack, number, EMBENG_STATUS_GRID, EMBENG_FIELD_COLUMNS,
				     g->column_offset, s->cores);
	if (g->column_offset / s->cores > TOKENS_MAX)
		return refuse_member(fault, stack, number, EMBENG_STATUS_COUNT,
				     EMBENG_FIELD_COLUMNS, g->column_offset,
				     (u64)TOKENS_MAX * s->cores);
	if (g->sample_count % s->device_cores)
		return refuse_member(fault, stack, number, EMBENG_STATUS_GRID, EMBENG_FIELD_MEMBERS,
				     g->sample_count, s->device_cores);
	if (g->sample_count / s->device_cores > PCSR_ITEMS_MAX - stack->samples)
		return refuse_member(fault, stack, number, EMBENG_STATUS_COUNT,
				     EMBENG_FIELD_MEMBERS, g->sample_count, PCSR_ITEMS_MAX);
	return 0;
}

/* Checks which feature a member is. */
static u16 check_member_feature(const struct batch *batch, const struct stack *stack,
				const struct embeng_lookup_member *g, u32 number,
				struct fault *fault)
{
	const struct batch_feature *f;

	if (g->feature >= batch->feature_count)
		return refuse_member(fault, stack, number, EMBENG_STATUS_FEATURE,
				     EMBENG_FIELD_MEMBERS, g->feature, batch->feature_count);
	f = &batch->features[g->feature];
	if (f->given.form != EMBENG_FORM_PARTITIONED)
		return refuse_member(fault, stack, number, EMBENG_STATUS_FORM, EMBENG_FIELD_MEMBERS,
				     g->feature, EMBENG_FORM_PARTITIONED);
	if (f->placed)
		return refuse_member(fault, stack, number, EMBENG_STATUS_FEATURE,
				     EMBENG_FIELD_MEMBERS, g->feature, 1);
	if (g->sample_count != f->given.sample_count)
		return refuse_member(fault, stack, number, EMBENG_STATUS_COUNT,
				     EMBENG_FIELD_MEMBERS, g->sample_count, f->given.sample_count);
	return 0;
}

static void know_member(const struct model *model, struct batch *batch, struct stack *stack,
			struct stack_member *m)
{
	const struct embeng_lookup_member *g = &m->given;
	const struct embeng_record_feature *record = &model->blob.features[g->feature];

	m->f = &batch->features[g->feature];
	m->f->placed = true;
	m->rows = model->tables[record->table].record.rows;
	m->limit = record->max_ids ? record->max_ids : model->engine->caps.ids;
	m->finite = model_checks_weights(model, g->feature);
	m->token = (u32)(g->column_offset / stack->given->cores);
	m->count = 0;
}

static u16 take_members(const struct model *model, struct batch *batch, struct stack *stack,
			u32 first, struct fault *fault)
{
	u16 status = 0;

	for (u32 i = 0; !status && i < stack->given->member_count; i++) {
		struct stack_member *m = &stack->members[i];
		bool nobody = m->given.feature == EMBENG_NO_INDEX;

		status = check_member_place(stack, &m->given, first + i, fault);
		if (!status && !nobody)
			status = check_member_feature(batch, stack, &m->given, first + i, fault);
		if (status)
			return status;
		m->f = NULL;
		m->first = stack->samples;
		m->samples = (u32)(m->given.sample_count / stack->given->device_cores);
		stack->samples += m->samples;
		if (!nobody)
			know_member(model, batch, stack, m);
	}
	return status;
}

static u16 accept_stack(struct command *command, struct batch *batch, struct stacks *stacks,
			struct stack *stack, u32 first, bool training)
{
	struct fault *fault = &command->fault;
	u32 left = stacks->header.member_count - first;
	u16 status = check_stack(stack->given, stack->index, fault);

	if (status)
		return status;
	if (!stack->given->member_count || stack->given->member_count > left)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS, stack->index, 0,
				 stack->given->member_count, left);
	status = take_members(command->context->model, batch, stack, first, fault);
	return status ? status : stacks_take(command, stacks, stack, training);
}

static u16 check_all_placed(const struct batch *batch, struct fault *fault)
{
	for (u32 i = 0; i < batch->feature_count; i++) {
		const struct batch_feature *f = &batch->features[i];

		if (f->given.form == EMBENG_FORM_PARTITIONED && !f->placed)
			return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, i, 0,
					 f->given.form, EMBENG_FORM_POOLED);
	}
	return 0;
}

u16 stacks_accept(struct command *command, struct batch *batch, struct stacks *stacks,
		  bool training)
{
	const struct embeng_lookup *header = &stacks->header;
	u32 first = 0;
	u16 status = 0;

	for (u32 i = 0; i < batch->feature_count; i++)
		batch->features[i].placed = false;
	for (u32 i = 0; !status && i < header->stack_count; i++) {
		struct stack stack = {
			.index = i,
			.given = (struct embeng_lookup_stack *)stacks->stacks.data + i,
			.members = (struct stack_member *)stacks->members.data + first,
		};

		status = accept_stack(command, batch, stacks, &stack, first, training);
		first += stack.given->member_count;
	}
	if (!status && first != header->member_count)
		status = refuse_stacks(&command->fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_MEMBERS,
				       header->member_count, first);
	return status ? status : check_all_placed(batch, &command->fault);
}
