// SPDX-License-Identifier: MIT
/*
 * Checks gradients that are sums of a row's gradients in one replica: whether the device takes them,
 * the tables can be trained with them and the batch named one row for each. The engine checks the
 * same, but a step that it refuses ends the training of the handle.
 *
 * The forms are read from the slot's own descriptor, which stays as it was written until the step is
 * done. Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>
#include <string.h>

#include "session.h"

int sums_refuse_bags(const struct slot *slot, const char *feature)
{
	return fail(-EINVAL,
		    "step %" PRIu64
		    ": feature %s: a sum belongs to one row, so the batch names rows "
		    "with embeng_batch_dense(), one in each sample",
		    slot->step, feature);
}

int sums_check_table(const struct slot *slot, const struct table *t)
{
	const struct embeng_optimizer *o = &t->optimizer;

	if (!table_has_optimizer(t))
		return 0;
	if (o->use_gradient_accumulation != EMBENG_ON)
		return fail(-EINVAL,
			    "step %" PRIu64 ": table %s applies each gradient by itself, so there "
			    "are no sums to give; set use_gradient_accumulation",
			    slot->step, t->name);
	if (o->scale_by_frequency)
		return fail(-EINVAL,
			    "step %" PRIu64 ": table %s divides sums by the number of ids "
			    "(scale_by_frequency), which sums do not tell; give the gradients",
			    slot->step, t->name);
	return 0;
}

/* A handle over hosts knows which sums it makes. */
static int check_sums_feature(const struct embeng *e, const struct slot *slot, size_t f)
{
	const struct feature *feature = &e->model->features[f];
	struct embeng_lookup_feature given;

	memcpy(&given, slot->input.data + sizeof(struct embeng_lookup) + f * sizeof(given),
	       sizeof(given));
	if (given.form != EMBENG_FORM_DENSE && given.form != EMBENG_FORM_ROWS)
		return sums_refuse_bags(slot, feature->name);
	return e->takes_sums && e->takes_sums[f]
		       ? 0
		       : sums_check_table(slot, &e->model->tables[feature->table]);
}

int sums_take(const struct embeng *e, struct slot *slot, const struct embeng_gradients *g)
{
	int ret = 0;

	slot->sums = g->sums;
	if (!g->sums && !e->takes_sums)
		return 0;
	if (!(e->device->info.features & EMBENG_CAP_SUMS))
		return fail(-ENOTSUP,
			    "step %" PRIu64 ": %s takes no sums of gradients; its firmware may be "
			    "an older one",
			    slot->step, e->device->info.name);
	for (size_t f = 0; !ret && f < g->count; f++)
		ret = slot_takes_sums(e, slot, f) ? check_sums_feature(e, slot, f) : 0;
	return ret;
}
