// SPDX-License-Identifier: MIT
/*
 * Slots: the memory of one batch from its enqueue to its end. They are made when a replica starts,
 * so that a step allocates only what grows.
 *
 * A slot belongs to its replica. slot_region(), slot_oldest() and session_view() are called with
 * e->lock held, the others while no other thread has the slot.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/list.h"
#include "batch/partitioned.h"

int slot_init(struct embeng *e, struct slot *slot)
{
	size_t n = e->model->feature_count + 1; /* a model without features has slots too */

	slot->e = e;
	slot->ready = -1;
	slot->at = calloc(n, sizeof(*slot->at));
	slot->elements = calloc(n, sizeof(*slot->elements));
	slot->views = calloc(n, sizeof(*slot->views));
	slot->placed = calloc(n, sizeof(*slot->placed));
	slot->lengths = calloc(n, sizeof(*slot->lengths));
	slot->resolved = calloc(n, sizeof(*slot->resolved));
	slot->rates = calloc(e->model->rate_count + 1, sizeof(*slot->rates));
	slot->arrays = calloc((ARRAYS + STACK_ARRAYS) * n, sizeof(*slot->arrays));
	if (!slot->at || !slot->elements || !slot->views || !slot->placed || !slot->lengths ||
	    !slot->resolved || !slot->rates || !slot->arrays)
		return fail(-ENOMEM, "no memory for the steps in flight");
	return 0;
}

/* A list that is longer than it need be does no harm, so a failure half-way undoes nothing. */
int slot_grow(struct slot *slot, const struct embeng_model *larger)
{
	size_t had = slot->e->model->feature_count + 1, n = larger->feature_count + 1;

	if (list_grow(&slot->at, had, n, sizeof(*slot->at)) ||
	    list_grow(&slot->elements, had, n, sizeof(*slot->elements)) ||
	    list_grow(&slot->views, had, n, sizeof(*slot->views)) ||
	    list_grow(&slot->placed, had, n, sizeof(*slot->placed)) ||
	    list_grow(&slot->lengths, had, n, sizeof(*slot->lengths)) ||
	    list_grow(&slot->resolved, had, n, sizeof(*slot->resolved)) ||
	    list_grow(&slot->arrays, had, n, (ARRAYS + STACK_ARRAYS) * sizeof(*slot->arrays)))
		return -ENOMEM;
	return list_grow(&slot->rates, slot->e->model->rate_count + 1, larger->rate_count + 1,
			 sizeof(*slot->rates));
}

void fence_forget(struct slot *slot)
{
	if (slot->ready >= 0)
		close(slot->ready);
	slot->ready = -1;
}

void slot_free(struct slot *slot)
{
	if (!slot->e)
		return;
	fence_forget(slot);
	region_free(slot->e->device, &slot->input);
	region_free(slot->e->device, &slot->activations);
	region_free(slot->e->device, &slot->gradients);
	for (size_t f = 0; slot->lengths && f < slot->e->model->feature_count; f++)
		free(slot->lengths[f]);
	free(slot->at);
	free(slot->elements);
	free(slot->views);
	free(slot->placed);
	free(slot->lengths);
	free(slot->resolved);
	free(slot->rates);
	free(slot->arrays);
	pins_free(&slot->input_pins);
	pins_free(&slot->gradient_pins);
}

static bool lies_in(const struct region *region, const void *p)
{
	return region->data && (const char *)p >= region->data &&
	       (uint64_t)((const char *)p - region->data) < region->length;
}

const struct region *slot_region(const struct embeng *e, const struct replica *r, const void *p)
{
	for (uint32_t i = 0; r->started && i < e->slot_count; i++) {
		const struct region *const regions[] = {&r->training[i].activations,
							&r->training[i].gradients,
							&r->serving[i].activations};

		for (size_t k = 0; k < sizeof(regions) / sizeof(*regions); k++)
			if (lies_in(regions[k], p))
				return regions[k];
	}
	return NULL;
}

static struct slot *older_of(struct slot *a, struct slot *b)
{
	return !a || b->order < a->order ? b : a;
}

struct slot *slot_oldest(struct embeng *e, uint32_t replica, enum slot_state state, bool serving)
{
	struct replica *r = &e->replicas[replica];
	struct slot *found = NULL;

	for (uint32_t i = 0; r->started && i < e->slot_count; i++) {
		if (r->training[i].state == state)
			found = older_of(found, &r->training[i]);
		if (serving && r->serving[i].state == state)
			found = older_of(found, &r->serving[i]);
	}
	return found;
}

struct slot *session_view(struct embeng *e, uint32_t replica)
{
	return slot_oldest(e, replica, SLOT_VIEW, false);
}
