// SPDX-License-Identifier: MIT
/*
 * The sentence of a lookup that failed: it names feature, sample and id. Other commands have
 * the sentence of device/status_text.c. Batch and model are read, nothing is changed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "batch/input.h"
#include "batch/partitioned.h"

static int lookup_id_error(const struct embeng_model *m, const struct feature *f,
			   const struct input *input, const struct embeng_cqe *c)
{
	const struct table *t = &m->tables[f->table];

	return error_set(-ERANGE, c->status,
			 "feature %s, sample %zu: id %" PRId64 " is outside table %s, which has "
			 "rows 0 to %" PRId64 "; correct the id, or give the table an out_of_range "
			 "policy",
			 f->name, input_sample(input, c->element), (int64_t)c->value, t->name,
			 t->rows - 1);
}

int lookup_error(const struct embeng *e, const struct embeng_batch *b, const struct embeng_cqe *c)
{
	const struct embeng_model *m = e->model;
	const struct feature *f;
	char where[160];

	if (c->field >= EMBENG_FIELD_CORES && c->field <= EMBENG_FIELD_BOUNDS)
		return partitioned_error(b, c);
	if (c->feature >= m->feature_count)
		return command_error("lookup", c);
	f = &m->features[c->feature];
	if (c->status == EMBENG_STATUS_ID)
		return lookup_id_error(m, f, &b->inputs[c->feature], c);
	if (c->status == EMBENG_STATUS_WEIGHT)
		return input_weight_error(f, &b->inputs[c->feature], c->element,
					  float_of((uint32_t)c->value));
	snprintf(where, sizeof(where), "feature %s", f->name);
	return command_error(where, c);
}
