// SPDX-License-Identifier: MIT
/*
 * Goes through what a batch of partitioned CSR asks for: the row, the sample and the gain of each item
 * of a feature. It is the inverse of the placing of rows and samples by stack, core and rotation.
 *
 * The batch is only read; no lock is needed.
 */
#include "partitioned.h"

/* Items of one feature. */
struct listing {
	const struct stack_input *s;
	uint32_t feature;
	int64_t table_rows;
	void (*fn)(void *arg, const struct partitioned_item *item);
	void *arg;
};

static bool pass_items(void *arg, const struct stack_place *place)
{
	struct listing *list = arg;
	const struct embeng_lookup_stack *g = &list->s->given;

	for (uint64_t at = place->at; at < place->end; at++) {
		uint64_t first;
		const struct embeng_lookup_member *m = partitioned_member(
			list->s, list->s->samples[at], &first);
		struct partitioned_item item;

		if (!m || m->feature != list->feature)
			continue;
		item.row = (list->s->tokens[at] - (int64_t)(m->column_offset / g->cores)) *
				   g->cores +
			   (place->partition + g->cores - m->rotation) % g->cores;
		item.sample = place->core * (m->sample_count / g->device_cores) +
			      ((uint64_t)list->s->samples[at] - first);
		item.gain = list->s->gains[at];
		if (item.row >= 0 && item.row < list->table_rows)
			list->fn(list->arg, &item);
	}
	return false;
}

static bool has_member(const struct stack_input *s, uint32_t feature)
{
	for (uint32_t k = 0; k < s->given.member_count; k++) {
		if (s->members[k].feature == feature)
			return true;
	}
	return false;
}

void partitioned_each(const struct embeng_batch *b, uint32_t feature,
		      void (*fn)(void *arg, const struct partitioned_item *item), void *arg)
{
	const struct embeng_model *model = b->e->model;
	struct listing list = {
		.feature = feature,
		.table_rows = model->tables[model->features[feature].table].rows,
		.fn = fn,
		.arg = arg,
	};

	for (size_t i = 0; (list.s = next_stack(b, &i));) {
		if (has_member(list.s, feature))
			partitioned_walk(list.s, pass_items, &list);
	}
}

size_t partitioned_most(const struct embeng_batch *b, uint32_t feature)
{
	const struct stack_input *s;
	size_t most = 0;

	for (size_t i = 0; (s = next_stack(b, &i));)
		most += has_member(s, feature) ? s->given.item_count : 0;
	return most;
}
