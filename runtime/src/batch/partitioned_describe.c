// SPDX-License-Identifier: MIT
/*
 * Writes the stacks of a partitioned batch as the engine reads them, and walks through their items.
 *
 * The arrays belong to the batch. They are only read, so no lock is needed.
 */
#include <string.h>

#include "partitioned.h"

#define ALIGN 8u

bool is_partitioned(const struct embeng_batch *b, uint32_t feature)
{
	return b->inputs[feature].form == INPUT_PARTITIONED;
}

const struct stack_input *next_stack(const struct embeng_batch *b, size_t *at)
{
	for (; b->partitioned && *at < b->partitioned->count; ++*at) {
		const struct stack_input *s = &b->partitioned->stacks[*at];

		for (uint32_t k = 0; k < s->given.member_count; k++) {
			if (is_partitioned(b, s->members[k].feature)) {
				++*at;
				return s;
			}
		}
	}
	return NULL;
}

static struct array array_of(const void *data, uint64_t count, uint64_t width)
{
	return (struct array){.data = count ? data : NULL, .count = count, .width = width};
}

struct stack_counts stacks_list(const struct embeng_batch *b, struct array *arrays)
{
	struct stack_counts counts = {0};
	const struct stack_input *s;

	for (size_t i = 0; (s = next_stack(b, &i)); arrays += STACK_ARRAYS) {
		uint64_t items = s->given.item_count;

		arrays[STACK_POINTERS] = array_of(s->row_pointers, s->pointer_count, 4);
		arrays[STACK_TOKENS] = array_of(s->tokens, items, 4);
		arrays[STACK_SAMPLES] = array_of(s->samples, items, 4);
		arrays[STACK_GAINS] = array_of(s->gains, items, 4);
		arrays[STACK_BOUNDS] = array_of(s->bounds, 2ull * s->given.device_cores, 8);
		counts.stacks++;
		counts.members += s->given.member_count;
	}
	return counts;
}

uint64_t stacks_bytes(const struct stack_counts *counts)
{
	return counts->stacks * sizeof(struct embeng_lookup_stack) +
	       counts->members * sizeof(struct embeng_lookup_member);
}

/* Features that were given another input since are nobody's here. */
static char *write_members(const struct embeng_batch *b, const struct stack_input *s, char *to)
{
	for (uint32_t k = 0; k < s->given.member_count; k++, to += sizeof(s->members[k])) {
		struct embeng_lookup_member m = s->members[k];

		if (!is_partitioned(b, m.feature))
			m.feature = EMBENG_NO_INDEX;
		memcpy(to, &m, sizeof(m));
	}
	return to;
}

void stacks_write(const struct embeng_batch *b, const struct array *arrays, char *to)
{
	const struct stack_input *s;

	for (size_t i = 0; (s = next_stack(b, &i)); arrays += STACK_ARRAYS) {
		struct embeng_lookup_stack given = s->given;

		given.row_pointers = arrays[STACK_POINTERS].mem;
		given.tokens = arrays[STACK_TOKENS].mem;
		given.samples = arrays[STACK_SAMPLES].mem;
		given.gains = arrays[STACK_GAINS].mem;
		given.bounds = arrays[STACK_BOUNDS].mem;
		memcpy(to, &given, sizeof(given));
		to += sizeof(given);
	}
	for (size_t i = 0; (s = next_stack(b, &i));)
		to = write_members(b, s, to);
}

static bool walk_core(const struct stack_input *s, struct stack_place *place,
		      bool (*fn)(void *arg, const struct stack_place *place), void *arg)
{
	const struct embeng_lookup_stack *g = &s->given;
	uint64_t first = s->bounds[place->core], most = s->bounds[g->device_cores + place->core];
	uint64_t origin = g->flags & EMBENG_STACK_OWN_PARTS ? first : 0, end = first;

	for (place->minibatch = 0; place->minibatch < g->minibatches; place->minibatch++) {
		const int32_t *pointers = s->row_pointers +
					  ((uint64_t)place->core * g->minibatches +
					   place->minibatch) *
						  g->row_stride;

		for (place->partition = 0; place->partition < g->cores; place->partition++) {
			int32_t pointer = pointers[place->partition];

			if (pointer < 0 || origin + (uint64_t)pointer < end ||
			    origin + (uint64_t)pointer > most)
				return false;
			place->at = (end + ALIGN - 1) / ALIGN * ALIGN;
			place->end = end = origin + (uint64_t)pointer;
			if (place->at < place->end && fn(arg, place))
				return true;
		}
	}
	return false;
}

bool partitioned_walk(const struct stack_input *s,
		      bool (*fn)(void *arg, const struct stack_place *place), void *arg)
{
	const uint64_t *first = s->bounds, *last = s->bounds + s->given.device_cores;
	struct stack_place place = {0};
	uint64_t end = 0;

	for (; place.core < s->given.device_cores; place.core++) {
		if (first[place.core] == last[place.core])
			continue;
		/* The engine refuses it; no item may come twice. */
		if (first[place.core] < end)
			return false;
		end = last[place.core];
		if (walk_core(s, &place, fn, arg))
			return true;
	}
	return false;
}

const struct embeng_lookup_member *partitioned_member(const struct stack_input *s, int32_t sample,
						      uint64_t *first)
{
	uint64_t begin = 0, samples;

	for (uint32_t k = 0; sample >= 0 && k < s->given.member_count; k++, begin += samples) {
		samples = s->members[k].sample_count / s->given.device_cores;
		if ((uint64_t)sample - begin >= samples)
			continue;
		if (first)
			*first = begin;
		return &s->members[k];
	}
	return NULL;
}
