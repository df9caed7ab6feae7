// SPDX-License-Identifier: MIT
/* Makes the stacks of a LOOKUP: few cores, and items most of which stand where they may. */
#include "batches.h"

#define CORES 4u
#define DEVICE_CORES 2u
#define MINIBATCHES 2u
#define STRIDE 8u
#define ALIGN 8u
#define PARTITIONS (DEVICE_CORES * MINIBATCHES * CORES)
#define ITEMS (PARTITIONS * ALIGN)

/* One stack being made, its arrays as the device reads them. */
struct making {
	struct session *s;
	struct fuzz *f;
	struct embeng_lookup_stack *stack;
	struct embeng_lookup_member *members;
	s32 pointers[DEVICE_CORES * MINIBATCHES * STRIDE];
	s32 tokens[ITEMS], samples[ITEMS];
	u32 gains[ITEMS];
	u64 bounds[2 * DEVICE_CORES];
	u64 at;
};

static u64 aligned(u64 at)
{
	return (at + ALIGN - 1) / ALIGN * ALIGN;
}

static u64 rows_of(const struct making *m, u32 member)
{
	u32 feature = m->members[member].feature;

	if (feature >= m->s->model.engine.feature_count)
		return 1;
	return m->s->model.tables[m->s->model.features[feature].table].rows;
}

static void put_item(struct making *m)
{
	const struct embeng_lookup_stack *g = m->stack;
	u32 member = fuzz_below(m->f, g->member_count), first = 0, each;

	for (u32 k = 0; k < member; k++)
		first += (u32)m->members[k].sample_count / g->device_cores;
	each = (u32)m->members[member].sample_count / g->device_cores;
	if (!each || m->at == ITEMS)
		return;
	m->samples[m->at] = (s32)fuzz_near(m->f, first + fuzz_below(m->f, each));
	m->tokens[m->at] = (s32)fuzz_near(
		m->f, m->members[member].column_offset / g->cores +
			      fuzz_below(m->f, 256) % (rows_of(m, member) / g->cores + 1));
	m->gains[m->at++] = (u32)fuzz_near(m->f, 0x3f000000);
}

static void put_core(struct making *m, u32 core)
{
	const struct embeng_lookup_stack *g = m->stack;
	u64 first = m->at = aligned(m->at);

	for (u32 b = 0; b < g->minibatches; b++) {
		for (u32 p = 0; p < g->row_stride; p++) {
			m->at = aligned(m->at);
			for (u32 n = p < g->cores ? fuzz_below(m->f, 3) : 0; n; n--)
				put_item(m);
			m->pointers[(core * g->minibatches + b) * g->row_stride + p] =
				(s32)(m->at - (g->flags & EMBENG_STACK_OWN_PARTS ? first : 0));
		}
	}
	m->bounds[core] = first;
	m->bounds[g->device_cores + core] = m->at;
}

/* Those of the features that are to be in this stack; now and then samples of nobody. */
static void put_members(struct making *m, const struct embeng_lookup_feature *features, u32 which,
			u64 taken)
{
	struct embeng_lookup_stack *g = m->stack;

	for (u32 i = 0; i < m->s->model.engine.feature_count; i++) {
		struct embeng_lookup_member *to = &m->members[g->member_count];

		if (features[i].form != EMBENG_FORM_PARTITIONED || (taken >> i & 1) != which)
			continue;
		to->feature = i;
		to->sample_count = features[i].sample_count;
		to->rotation = fuzz_below(m->f, g->cores);
		to->column_offset = (u64)g->cores * fuzz_below(m->f, 4);
		g->member_count++;
	}
	if (g->member_count && fuzz_rarely(m->f, 4))
		m->members[g->member_count++] = (struct embeng_lookup_member){
			.feature = EMBENG_NO_INDEX, .sample_count = 2 * g->device_cores};
}

static void choose_grid(struct making *m, const struct embeng_lookup_feature *features)
{
	struct embeng_lookup_stack *g = m->stack;

	*g = (struct embeng_lookup_stack){
		.cores = 1u << fuzz_below(m->f, 3),
		.minibatches = 1 + fuzz_below(m->f, MINIBATCHES),
		.flags = fuzz_rarely(m->f, 2) ? EMBENG_STACK_OWN_PARTS : 0,
	};
	g->row_stride = fuzz_rarely(m->f, 2) ? g->cores : STRIDE;
	g->device_cores = g->cores > 1 ? 1 + fuzz_below(m->f, DEVICE_CORES) : 1;
	for (u32 i = 0; i < m->s->model.engine.feature_count; i++) {
		if (features[i].sample_count % 2)
			g->device_cores = 1;
	}
}

static void put_arrays(struct making *m)
{
	struct embeng_lookup_stack *g = m->stack;
	u64 pointers = (u64)g->device_cores * g->minibatches * g->row_stride;

	fuzz_edit(m->f, m->pointers, pointers * 4, 1);
	fuzz_edit(m->f, m->bounds, g->device_cores * 16, 1);
	g->item_count = m->at;
	g->row_pointers = session_put(m->s, m->f, m->pointers, pointers * 4);
	g->tokens = session_put(m->s, m->f, m->tokens, m->at * 4);
	g->samples = session_put(m->s, m->f, m->samples, m->at * 4);
	g->gains = session_put(m->s, m->f, m->gains, m->at * 4);
	g->bounds = session_put(m->s, m->f, m->bounds, g->device_cores * 16);
}

/* One number of a stack or of a member; all of them are words, or begin with one that counts. */
static void spoil(struct fuzz *f, struct session_stacks *out)
{
	bool member = fuzz_rarely(f, 2);
	u32 words[8], k = fuzz_below(f, 8);
	void *record = member ? (void *)&out->members[fuzz_below(f, out->member_count)]
			      : (void *)&out->stacks[fuzz_below(f, out->stack_count)];

	memcpy(words, record, sizeof(words));
	words[k] = fuzz_rarely(f, 2) ? fuzz_below(f, 9) : (u32)fuzz_near(f, words[k] + 1ull);
	memcpy(record, words, sizeof(words));
}

void session_stacks(struct session *s, struct fuzz *f, const struct embeng_lookup_feature *features,
		    struct session_stacks *out)
{
	u64 taken = fuzz_take(f, 1);

	for (u32 which = 0; which < 2; which++) {
		struct making m = {.s = s,
				   .f = f,
				   .stack = &out->stacks[out->stack_count],
				   .members = &out->members[out->member_count]};

		choose_grid(&m, features);
		put_members(&m, features, which, taken);
		if (!m.stack->member_count)
			continue;
		for (u32 core = 0; core < m.stack->device_cores; core++)
			put_core(&m, core);
		put_arrays(&m);
		out->stack_count++;
		out->member_count += m.stack->member_count;
	}
	if (out->stack_count && fuzz_rarely(f, 2))
		spoil(f, out);
}
