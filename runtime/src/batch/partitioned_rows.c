// SPDX-License-Identifier: MIT
/*
 * Lists the rows that a batch of partitioned CSR asks for, which a profile counts. It is the
 * inverse of the placing of rows by stack, core and rotation.
 *
 * The rows go into memory of the caller. The batch is only read; no lock is needed.
 */
#include "partitioned.h"

/* Rows of one feature being listed. */
struct listing {
	const struct stack_input *s;
	uint32_t feature;
	int64_t table_rows;
	int64_t *rows;
	size_t count;
};

static bool list_rows(void *arg, const struct stack_place *place)
{
	struct listing *list = arg;
	uint32_t cores = list->s->given.cores;

	for (uint64_t at = place->at; at < place->end; at++) {
		const struct embeng_lookup_member *m = partitioned_member(list->s,
									  list->s->samples[at]);
		int64_t row;

		if (!m || m->feature != list->feature)
			continue;
		row = (list->s->tokens[at] - (int64_t)(m->column_offset / cores)) * cores +
		      (place->partition + cores - m->rotation) % cores;
		if (row >= 0 && row < list->table_rows)
			list->rows[list->count++] = row;
	}
	return false;
}

size_t partitioned_rows(const struct embeng_batch *b, uint32_t feature, int64_t *rows)
{
	const struct embeng_model *model = b->e->model;
	struct listing list = {.feature = feature,
			       .rows = rows,
			       .table_rows = model->tables[model->features[feature].table].rows};
	size_t most = 0;

	for (size_t i = 0; (list.s = next_stack(b, &i));) {
		bool has = false;

		for (uint32_t k = 0; k < list.s->given.member_count; k++)
			has |= list.s->members[k].feature == feature;
		if (has && rows)
			partitioned_walk(list.s, list_rows, &list);
		most += has ? list.s->given.item_count : 0;
	}
	return rows ? list.count : most;
}
