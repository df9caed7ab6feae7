// SPDX-License-Identifier: MIT
/*
 * Turns a completion about a stack that the engine could not take apart into an error sentence with
 * the stack, the core, the partition and the item.
 *
 * Only arguments are read; no lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "batch/partitioned.h"

struct search {
	uint64_t item;
	struct stack_place place;
};

static bool has_item(void *arg, const struct stack_place *place)
{
	struct search *search = arg;

	search->place = *place;
	return search->item >= place->at && search->item < place->end;
}

/* "stack a_m, core 0, partition 3, item 8" */
static void say_item(const struct stack_input *s, uint64_t item, char *text, size_t size)
{
	struct search search = {.item = item};

	if (partitioned_walk(s, has_item, &search))
		snprintf(text, size, "stack %s, core %u, partition %u, item %" PRIu64, s->name,
			 search.place.core, search.place.partition, item);
	else
		snprintf(text, size, "stack %s, item %" PRIu64, s->name, item);
}

static const char *feature_name(const struct embeng_batch *b, const struct stack_input *s,
				uint64_t item)
{
	const struct embeng_lookup_member *m = item < s->given.item_count
						       ? partitioned_member(s, s->samples[item],
									    NULL)
						       : NULL;

	return m ? b->e->model->features[m->feature].name : "that it belongs to";
}

static int item_error(const struct embeng_batch *b, const struct stack_input *s,
		      const struct embeng_cqe *c)
{
	char where[160];

	say_item(s, c->element, where, sizeof(where));
	if (c->status == EMBENG_STATUS_SAMPLE)
		return error_set(-ERANGE, c->status,
				 "%s: sample %" PRId64 " is not below %" PRIu64
				 ", the samples of a core",
				 where, (int64_t)c->value, (uint64_t)c->limit);
	if (c->status == EMBENG_STATUS_ID)
		return error_set(-ERANGE, c->status,
				 "%s: token %" PRId64 " is no row of the table "
				 "of feature %s",
				 where, (int64_t)c->value, feature_name(b, s, c->element));
	return error_set(
		-ERANGE, c->status,
		"%s: the gain of feature %s is %g, which is not finite; correct the weight "
		"that it is made from",
		where, feature_name(b, s, c->element), (double)float_of((uint32_t)c->value));
}

static int pointer_error(const struct stack_input *s, const struct embeng_cqe *c)
{
	uint64_t row = c->element / s->given.row_stride;
	bool falls = (int64_t)c->value < (int64_t)c->limit;

	return error_set(-ERANGE, c->status,
			 "stack %s, core %" PRIu64 ", partition %" PRIu64 ", "
			 "minibatch %" PRIu64 ": the row pointer %" PRId64 " is %s %" PRIu64
			 "; row "
			 "pointers never fall and stay within the items of their core",
			 s->name, row / s->given.minibatches,
			 (uint64_t)c->element % s->given.row_stride, row % s->given.minibatches,
			 (int64_t)c->value, falls ? "below" : "beyond", (uint64_t)c->limit);
}

static int bounds_error(const struct stack_input *s, const struct embeng_cqe *c)
{
	uint64_t core = c->element % s->given.device_cores;

	if (c->status == EMBENG_STATUS_ALIGNMENT)
		return error_set(-EINVAL, c->status,
				 "stack %s, core %" PRIu64 ": its first item "
				 "%" PRIu64 " is not a multiple of %" PRIu64,
				 s->name, core, (uint64_t)c->value, (uint64_t)c->limit);
	return error_set(-ERANGE, c->status,
			 "stack %s, core %" PRIu64 ": its items %s %" PRIu64 ", "
			 "against %" PRIu64 "; cores stand in order, one behind the other",
			 s->name, core, c->element < s->given.device_cores ? "begin at" : "end at",
			 (uint64_t)c->value, (uint64_t)c->limit);
}

static const struct stack_input *stack_of(const struct embeng_batch *b, uint32_t index)
{
	const struct stack_input *s;
	size_t at = 0;

	while ((s = next_stack(b, &at)) && index--)
		;
	return s;
}

int partitioned_error(const struct embeng_batch *b, const struct embeng_cqe *c)
{
	const struct stack_input *s = stack_of(b, c->feature);
	bool content = c->status == EMBENG_STATUS_SAMPLE || c->status == EMBENG_STATUS_ID ||
		       c->status == EMBENG_STATUS_WEIGHT;
	char where[160];

	if (!s)
		return command_error("lookup", c);
	if (content)
		return item_error(b, s, c);
	if (c->field == EMBENG_FIELD_ROW_POINTERS && c->status == EMBENG_STATUS_BUFFER)
		return pointer_error(s, c);
	if (c->field == EMBENG_FIELD_BOUNDS &&
	    (c->status == EMBENG_STATUS_BUFFER || c->status == EMBENG_STATUS_ALIGNMENT))
		return bounds_error(s, c);
	snprintf(where, sizeof(where), "stack %s", s->name);
	return command_error(where, c);
}
