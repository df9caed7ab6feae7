// SPDX-License-Identifier: MIT
/*
 * Checks the contents of a serving input (order, weights, ids, room for the output), after its sizes were
 * checked in plan.c and before anything is written.
 *
 * Only arguments are read; no lock is needed.
 */
#include <inttypes.h>

#include "base/bits.h"
#include "serving.h"

#include "../../../engine/f32.h"

static int check_places(const struct plan *p)
{
	struct coo coo = plan_coo(p);
	int code = 0;

	for (size_t k = 0; !code && k < coo.count; k++)
		code = input_check_place(p->f, &coo, k);
	return code;
}

static int check_order(const struct plan *p)
{
	switch (p->in.form) {
	case EMBENG_SPARSE:
		return check_places(p);
	case EMBENG_RAGGED:
		return input_check_splits(p->f, p->in.id_count, p->in.row_splits,
					  p->in.split_count);
	default:
		return 0;
	}
}

static int check_room(const struct plan *p)
{
	if (p->in.out_elements < p->elements)
		return fail(-EINVAL, "feature %s: room for %zu floats, the output has %zu",
			    p->f->name, p->in.out_elements, p->elements);
	if (!p->in.out && p->elements)
		return fail(-EINVAL, "feature %s: out is NULL, the output has %zu floats",
			    p->f->name, p->elements);
	return 0;
}

static int refuse_id(const struct plan *p, size_t sample, int64_t id)
{
	return fail(-ERANGE,
		    "feature %s, sample %zu: id %" PRId64 " is outside table %s, which has rows 0 "
		    "to %" PRId64 "; correct the id",
		    p->f->name, sample, id, p->table->name, p->table->rows - 1);
}

static int refuse_weight(const struct plan *p, size_t k)
{
	struct bag bag = {0};
	size_t s = 0;

	for (bag = plan_bag(p, 0, 0); bag.end <= k; bag = plan_bag(p, s, bag.end))
		s++;
	return fail(-ERANGE,
		    "feature %s, sample %zu: weight %zu is %g, which is not finite; correct it%s",
		    p->f->name, s, k, (double)p->weights[k], input_weight_remedy(p->f));
}

static int check_weights_served(const struct plan *p)
{
	for (size_t k = 0; p->weights && p->finite && k < p->in.weight_count; k++) {
		if (!f32_finite(bits(p->weights[k])))
			return refuse_weight(p, k);
	}
	return 0;
}

bool plan_ids_in_table(const struct plan *p)
{
	uint64_t rows = (uint64_t)p->table->rows;
	const int32_t *narrow = p->in.ids;
	const int64_t *wide = p->in.ids;
	bool outside = false;

	for (size_t k = 0; p->in.type == EMBENG_I32 && k < p->in.id_count; k++)
		outside |= (uint64_t)narrow[k] >= rows;
	for (size_t k = 0; p->in.type == EMBENG_I64 && k < p->in.id_count; k++)
		outside |= (uint64_t)wide[k] >= rows;
	return !outside;
}

static int check_ids(const struct plan *p, const struct row_source *source)
{
	uint64_t rows = (uint64_t)p->table->rows;
	struct bag bag = {0};
	int code = 0;

	if (plan_ids_in_table(p) &&
	    (!source || !source->checkpoint ||
	     source_all_good(source, p->in.type, p->in.ids, p->in.id_count)))
		return 0;
	for (size_t s = 0; s < p->samples; s++) {
		bag = plan_bag(p, s, bag.end);
		while (plan_next(p, &bag)) {
			if ((uint64_t)bag.id >= rows)
				return refuse_id(p, s, bag.id);
			if (source && source->checkpoint && plan_reads(p, &bag))
				code = source_check(source, bag.id);
			if (code)
				return code;
		}
	}
	return 0;
}

int plan_check(const struct plan *plan, const struct row_source *source)
{
	int code = check_room(plan);

	if (!code)
		code = check_order(plan);
	if (!code)
		code = check_weights_served(plan);
	return code ? code : check_ids(plan, source);
}
