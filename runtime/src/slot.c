// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "session.h"

int slot_init(struct embeng *e, struct slot *slot)
{
	size_t n = e->model->feature_count + 1; /* a model without features has slots too */

	slot->e = e;
	slot->at = calloc(n, sizeof(*slot->at));
	slot->elements = calloc(n, sizeof(*slot->elements));
	slot->views = calloc(n, sizeof(*slot->views));
	slot->lengths = calloc(n, sizeof(*slot->lengths));
	slot->resolved = calloc(n, sizeof(*slot->resolved));
	slot->arrays = calloc(3 * n, sizeof(*slot->arrays));
	if (!slot->at || !slot->elements || !slot->views || !slot->lengths || !slot->resolved ||
	    !slot->arrays)
		return fail(-ENOMEM, "no memory for the steps in flight");
	return 0;
}

void slot_free(struct slot *slot)
{
	if (!slot->e)
		return;
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
