// SPDX-License-Identifier: MIT
/*
 * Slots: the memory of one batch from its enqueue to its end. They are made when a replica starts,
 * so that a step allocates only what grows.
 *
 * A slot belongs to its replica. slot_region() is called with e->lock held, the others while no
 * other thread has the slot.
 */
#include <stdlib.h>
#include <unistd.h>

#include "batch/partitioned.h"

int slot_init(struct embeng *e, struct slot *slot)
{
	size_t n = e->model->feature_count + 1; /* a model without features has slots too */

	slot->e = e;
	slot->ready = -1;
	slot->at = calloc(n, sizeof(*slot->at));
	slot->elements = calloc(n, sizeof(*slot->elements));
	slot->views = calloc(n, sizeof(*slot->views));
	slot->lengths = calloc(n, sizeof(*slot->lengths));
	slot->resolved = calloc(n, sizeof(*slot->resolved));
	slot->arrays = calloc((ARRAYS + STACK_ARRAYS) * n, sizeof(*slot->arrays));
	if (!slot->at || !slot->elements || !slot->views || !slot->lengths || !slot->resolved ||
	    !slot->arrays)
		return fail(-ENOMEM, "no memory for the steps in flight");
	return 0;
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
	free(slot->lengths);
	free(slot->resolved);
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
