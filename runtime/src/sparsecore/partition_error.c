// SPDX-License-Identifier: MIT
/*
 * Turns a PARTITION that failed into an error sentence with the table, the core, the partition and
 * the limit that the caller knows.
 *
 * Only arguments are read; no lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "partition.h"

static int partition_id_error(const struct stack *stack, size_t feature, const struct embeng_cqe *c)
{
	const struct table *t = stack_table(stack, feature);

	return error_set(-ERANGE, c->status,
			 "feature %s, sample %zu: id %" PRId64
			 " is outside table %s, which has rows "
			 "0 to %" PRId64,
			 stack->b->e->model->features[feature].name,
			 input_sample(&stack->b->inputs[feature], c->element), (int64_t)c->value,
			 t->name, t->rows - 1);
}

static const char *name_of_stack(const struct stack *stack)
{
	return stack_table(stack, stack->places[0].feature)->name;
}

static int limit_error(const struct stack *stack, const struct embeng_cqe *c)
{
	uint32_t cores = stack->o->sparse_cores;
	bool unique = c->field == EMBENG_FIELD_MAX_UNIQUE_IDS;

	return error_set(
		-ERANGE, c->status,
		"stack of table %s: too many ids: core %" PRIu64 " has %" PRIu64 " %sids in "
		"partition %" PRIu64 "%s, %s allows %" PRIu64 "; raise the limit, or allow "
		"%sid dropping",
		name_of_stack(stack), (uint64_t)c->element / cores, (uint64_t)c->value,
		unique ? "unique " : "", (uint64_t)c->element % cores,
		stack->o->minibatching ? " in one bucket" : "",
		unique ? "max_unique_ids_per_partition" : "max_ids_per_partition",
		(uint64_t)c->limit, stack->o->minibatching ? "" : "minibatching or ");
}

static int buffer_error(const struct stack *stack, const struct embeng_cqe *c)
{
	const char *name = name_of_stack(stack);
	uint64_t value = c->value, limit = c->limit;

	switch (c->field) {
	case EMBENG_FIELD_BUFFER:
		return error_set(-ERANGE, c->status,
				 "stack of table %s: the buffer of %" PRIu64 " items does not hold "
				 "%" PRIu64 "; raise buffer_size, or allow id dropping",
				 name, limit, value);
	case EMBENG_FIELD_MAX_IDS:
		return error_set(-ERANGE, c->status,
				 "stack of table %s: a buffer of %" PRIu64 " items is larger than "
				 "%" PRIu64 ", the most that max_ids_per_partition asks for",
				 name, value, limit);
	}
	return error_set(-ERANGE, c->status,
			 "stack of table %s: the array for %s holds %" PRIu64 ", %" PRIu64 " are "
			 "needed; embeng_partition_room() says how many there can be",
			 name, c->field == EMBENG_FIELD_ROW_POINTERS ? "row pointers" : "items",
			 limit, value);
}

int partition_error(const struct stack *stack, const struct embeng_cqe *c)
{
	char where[160];
	size_t feature;

	if (c->status == EMBENG_STATUS_LIMIT)
		return limit_error(stack, c);
	if (c->status == EMBENG_STATUS_BUFFER)
		return buffer_error(stack, c);
	if (c->feature >= stack->count)
		return command_error("embeng_partition", c);
	feature = stack->places[c->feature].feature;
	if (c->status == EMBENG_STATUS_ID)
		return partition_id_error(stack, feature, c);
	snprintf(where, sizeof(where), "feature %s", stack->b->e->model->features[feature].name);
	return command_error(where, c);
}
