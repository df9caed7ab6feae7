/* SPDX-License-Identifier: MIT */
/*
 * Takes a stack of partitioned CSR apart into the batches of its features. Items are checked as
 * they are read and kept in the order in which they stand, and are counted by sample. Then each is
 * put where the items of its sample are.
 *
 * The arrays are mapped for one call of stacks_take(). The program may change them meanwhile, so
 * each number is read once. Called without engine->lock, which mapping and releasing take inside.
 */
#include "grid.h"
#include "../f32.h"
#include "stacks.h"

#define MEMBER_SHIFT 48u /* in stack_item.place: tokens and cores make rows of 47 bits */
#define ROW_MASK ((1ull << MEMBER_SHIFT) - 1)

enum { POINTERS, TOKENS, SAMPLES, GAINS, BOUNDS, ARRAYS };

struct taking {
	const struct stack *stack;
	struct fault *fault;
	const volatile s32 *pointers, *tokens, *samples;
	const volatile u32 *gains;
	const u64 *bounds;
	struct stack_item *items;
	u64 count;
	u32 core, partition;
	u32 last; /* member that had the item before */
	u64 left; /* steps until the next piece_over() */
	struct command *command;
};

static u16 refuse_item(const struct taking *t, u16 status, u32 field, u64 element, u64 value,
		       u64 limit)
{
	return fault_set(t->fault, status, field, t->stack->index, element, value, limit);
}

static u16 report_no_item_memory(struct command *command, const struct stack *stack, u64 items)
{
	return fault_set(&command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_STACKS,
			 stack->index, 0, items, 0);
}

/* The member of a sample that some member has. */
static u32 member_of(struct taking *t, u32 sample)
{
	const struct stack_member *m = &t->stack->members[t->last];
	u32 low = 0, high = t->stack->given->member_count;

	if (sample - m->first < m->samples)
		return t->last;
	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (t->stack->members[middle].first <= sample)
			low = middle;
		else
			high = middle;
	}
	t->last = low;
	return low;
}

/* Rows of this partition differ by the cores of the grid; the first of a table is its residue. */
static u64 residue_of(const struct taking *t, const struct stack_member *m)
{
	u32 cores = t->stack->given->cores, rotation = m->given.rotation;

	return t->partition >= rotation ? t->partition - rotation : t->partition + cores - rotation;
}

static u16 refuse_token(const struct taking *t, const struct stack_member *m, u64 at, s32 token)
{
	u64 cores = t->stack->given->cores, residue = residue_of(t, m);
	u64 tokens = m->rows > residue ? (m->rows - residue + cores - 1) / cores : 0;

	return refuse_item(t, EMBENG_STATUS_ID, EMBENG_FIELD_TOKENS, at, (u64)(s64)token,
			   m->token + tokens);
}

static u16 keep_item(struct taking *t, u32 member, u32 sample, u64 row, u32 gain)
{
	struct stack_member *m = &t->stack->members[member];
	u32 of_feature = t->core * m->samples + (sample - m->first);

	if (m->count == m->limit)
		return fault_set(t->fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, m->given.feature,
				 0, m->count + 1, m->limit);
	m->count++;
	((u64 *)m->f->bag.data)[of_feature + 1ull]++;
	t->items[t->count++] = (struct stack_item){
		.place = (u64)member << MEMBER_SHIFT | row,
		.sample = of_feature,
		.gain = gain,
	};
	return 0;
}

/* Each number is read once; what is checked is what is used. */
static u16 take_item(struct taking *t, u64 at)
{
	s32 sample = t->samples[at], token = t->tokens[at];
	u32 gain = t->gains[at], member;
	const struct stack_member *m;
	u64 row;

	if ((u32)sample >= t->stack->samples)
		return refuse_item(t, EMBENG_STATUS_SAMPLE, EMBENG_FIELD_SAMPLE_IDS, at,
				   (u64)(s64)sample, t->stack->samples);
	member = member_of(t, (u32)sample);
	m = &t->stack->members[member];
	if (!m->f)
		return 0;
	if (token < 0 || (u32)token < m->token)
		return refuse_token(t, m, at, token);
	row = (u64)((u32)token - m->token) * t->stack->given->cores + residue_of(t, m);
	if (row >= m->rows)
		return refuse_token(t, m, at, token);
	if (m->finite && !f32_finite(gain))
		return refuse_item(t, EMBENG_STATUS_WEIGHT, EMBENG_FIELD_GAINS, at, gain,
				   F32_INFINITY);
	return keep_item(t, member, (u32)sample, row, gain);
}

static u16 take_partition(struct taking *t, u64 at, u64 end)
{
	u16 status = 0;

	for (; !status && at < end && !piece_step(t->command, &t->left); at++)
		status = take_item(t, at);
	return status;
}

static u16 take_core(struct taking *t)
{
	const struct embeng_lookup_stack *g = t->stack->given;
	u64 first = t->bounds[t->core], most = t->bounds[g->device_cores + t->core], end = first;
	u64 origin = g->flags & EMBENG_STACK_OWN_PARTS ? first : 0;
	u16 status = 0;

	for (u32 m = 0; !status && m < g->minibatches; m++) {
		u64 row = ((u64)t->core * g->minibatches + m) * g->row_stride;

		for (t->partition = 0; !status && t->partition < g->cores; t->partition++) {
			if (piece_step(t->command, &t->left) || command_is_cut(t->command))
				return 0;
			s32 pointer = t->pointers[row + t->partition];
			u64 at = pcsr_aligned(end), to = origin + (u64)pointer;
			bool falls = pointer < 0 || to < end;

			if (falls || to > most)
				return refuse_item(t, EMBENG_STATUS_BUFFER,
						   EMBENG_FIELD_ROW_POINTERS, row + t->partition,
						   (u64)(s64)pointer,
						   (falls ? end : most) - origin);
			status = take_partition(t, at, to);
			end = to;
		}
	}
	return status;
}

static u16 check_core_bounds(struct taking *t, u64 *items)
{
	const struct embeng_lookup_stack *g = t->stack->given;
	u64 end = 0;

	*items = 0;
	for (u32 c = 0; c < g->device_cores; c++) {
		u64 first = t->bounds[c], last = t->bounds[g->device_cores + c];

		if (first % PCSR_ALIGN)
			return refuse_item(t, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_BOUNDS, c,
					   first, PCSR_ALIGN);
		if (last < first || last > g->item_count)
			return refuse_item(t, EMBENG_STATUS_BUFFER, EMBENG_FIELD_BOUNDS,
					   g->device_cores + c, last,
					   last < first ? first : g->item_count);
		if (first == last)
			continue;
		if (first < end)
			return refuse_item(t, EMBENG_STATUS_BUFFER, EMBENG_FIELD_BOUNDS, c, first,
					   end);
		*items += last - first;
		end = last;
	}
	return 0;
}

static struct batch_size size_of_member(const struct stack_member *m, u64 ids, bool training)
{
	return (struct batch_size){
		.samples = m->f->outputs,
		.ids = ids,
		.weighted = true,
		.narrow = m->f->narrow,
		.training = training,
	};
}

/* A feature's bags are there, and empty. Adds what it may have to @most. */
static int begin_feature(struct command *command, const struct stack_member *m, u64 *most,
			 bool training)
{
	struct model *model = command->context->model;
	struct batch_size size;
	struct batch_feature *f = m->f;

	if (!f)
		return 0;
	*most += m->limit;
	f->dropped = f->clamped = f->zeroed = 0;
	f->weighted = true;
	f->scaled = f->identity = false;
	size = size_of_member(m, 0, training);
	if (batch_fit(model, f, &size))
		return -1;
	for (u64 at = 0, end; at <= f->outputs; at = end) {
		end = piece_end(at, f->outputs + 1);
		memset((u64 *)f->bag.data + at, 0, (end - at) * sizeof(u64));
		if (piece_over(command))
			return -1;
	}
	return 0;
}

/* Counts become where the rows of each sample begin. */
static int reserve_feature(struct command *command, const struct stack_member *m, bool training)
{
	struct model *model = command->context->model;
	u64 left = PIECE_ROWS;
	struct batch_size size;
	u64 *bag;

	if (!m->f)
		return 0;
	size = size_of_member(m, m->count, training);
	if (batch_fit(model, m->f, &size))
		return -1;
	bag = m->f->bag.data;
	for (u64 s = 0; s < m->f->outputs; s++) {
		bag[s + 1] += bag[s];
		if (piece_step(command, &left))
			return -1;
	}
	m->f->occurrences = m->f->asked = m->count;
	return 0;
}

static void place_items(struct taking *t)
{
	for (u64 i = 0; i < t->count && !piece_step(t->command, &t->left); i++) {
		const struct stack_item *item = &t->items[i];
		struct batch_feature *f = t->stack->members[item->place >> MEMBER_SHIFT].f;
		u64 k = ((u64 *)f->bag.data)[item->sample]++;

		batch_put_row(f, k, item->place & ROW_MASK);
		((u32 *)f->weights.data)[k] = item->gain;
	}
}

/* Placing moved where each sample begins to where the next one does. */
static void end_feature(struct taking *t, const struct stack_member *m)
{
	u64 *bag;

	if (!m->f)
		return;
	bag = m->f->bag.data;
	for (u64 s = m->f->outputs; s && !piece_step(t->command, &t->left); s--)
		bag[s] = bag[s - 1];
	bag[0] = 0;
}

static u16 make_item_room(struct command *command, struct stacks *stacks, struct taking *t,
			  u64 items, bool training)
{
	struct model *model = command->context->model;
	u64 most = 0;

	for (u32 i = 0; i < t->stack->given->member_count; i++) {
		if (begin_feature(command, &t->stack->members[i], &most, training))
			return report_no_item_memory(command, t->stack, items);
	}
	if (items > most)
		items = most;
	if (items > U64_MAX / sizeof(*t->items) ||
	    grow(model, &stacks->items.data, &stacks->items.bytes, items * sizeof(*t->items)))
		return report_no_item_memory(command, t->stack, items);
	t->items = stacks->items.data;
	return 0;
}

static u16 take_items(struct command *command, struct taking *t, bool training)
{
	const struct stack *stack = t->stack;
	u32 members = stack->given->member_count;
	u16 status = 0;

	for (t->core = 0; !status && t->core < stack->given->device_cores; t->core++)
		status = take_core(t);
	for (u32 i = 0; !status && !command_is_cut(command) && i < members; i++) {
		if (reserve_feature(command, &stack->members[i], training))
			status = report_no_item_memory(command, stack, t->count);
	}
	if (status)
		return status;
	if (!command_is_cut(command))
		place_items(t);
	for (u32 i = 0; !command_is_cut(command) && i < members; i++)
		end_feature(t, &stack->members[i]);
	return command_is_cut(command) ? abort_command(command) : 0;
}

/* The numbers of cores are few: all of them are copied at once. */
static u16 copy_bounds(struct command *command, struct stacks *stacks, struct taking *t,
		       const void *from, u64 *items)
{
	u64 count = 2ull * t->stack->given->device_cores;

	if (grow(command->context->model, &stacks->bounds.data, &stacks->bounds.bytes,
		 count * sizeof(u64)))
		return report_no_item_memory(command, t->stack, count);
	ids_widen(stacks->bounds.data, from, count, sizeof(u64));
	t->bounds = stacks->bounds.data;
	return check_core_bounds(t, items);
}

u16 stacks_take(struct command *command, struct stacks *stacks, struct stack *stack, bool training)
{
	const struct embeng_lookup_stack *g = stack->given;
	const u32 reads = EMBENG_REGION_DEVICE_READ;
	const struct mem_part parts[ARRAYS] = {
		[POINTERS] = { &g->row_pointers, reads, 4, EMBENG_FIELD_ROW_POINTERS },
		[TOKENS] = { &g->tokens, reads, 4, EMBENG_FIELD_TOKENS },
		[SAMPLES] = { &g->samples, reads, 4, EMBENG_FIELD_SAMPLE_IDS },
		[GAINS] = { &g->gains, reads, 4, EMBENG_FIELD_GAINS },
		[BOUNDS] = { &g->bounds, reads, 8, EMBENG_FIELD_BOUNDS },
	};
	struct taking t = {
		.stack = stack, .fault = &command->fault, .left = PIECE_ROWS, .command = command
	};
	struct view views[ARRAYS] = { { 0 } };
	u64 items = 0;
	u16 status = mem_get_all(command, parts, ARRAYS, stack->index, views);

	t.pointers = views[POINTERS].data;
	t.tokens = views[TOKENS].data;
	t.samples = views[SAMPLES].data;
	t.gains = views[GAINS].data;
	if (!status)
		status = copy_bounds(command, stacks, &t, views[BOUNDS].data, &items);
	if (!status)
		status = make_item_room(command, stacks, &t, items, training);
	if (!status)
		status = take_items(command, &t, training);
	region_put_all(command->context, views, ARRAYS);
	return status;
}
