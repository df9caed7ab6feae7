// SPDX-License-Identifier: MIT
/*
 * Looks for ids and weights that a batch over all hosts is refused for, at the host that asks. It is a file of
 * its own because ids of tables and lists of rows are checked alike (ids.c, lists.c).
 *
 * Arrays may be the program's, which may change meanwhile: nothing behind them is read for that. No lock is
 * needed.
 */
#include "../../../engine/kernels/kernels.h"
#include "../../../engine/memory/offsets.h"
#include "batch/input.h"
#include "host/port.h"
#include "segment.h"

/* The number of an id that is outside, or @count. */
static uint64_t find_outside(const char *ids, uint64_t width, uint64_t count, uint64_t rows)
{
	const int32_t *narrow = (const void *)ids;
	const int64_t *wide = (const void *)ids;
	bool outside = false;
	uint64_t i = 0;

	for (uint64_t k = 0; width == 4 && k < count; k++)
		outside |= (uint64_t)narrow[k] >= rows;
	for (uint64_t k = 0; width == 8 && k < count; k++)
		outside |= (uint64_t)wide[k] >= rows;
	if (!outside)
		return count;
	while (i < count && (width == 4 ? (uint64_t)narrow[i] : (uint64_t)wide[i]) < rows)
		i++;
	return i;
}

static uint64_t find_bad_weight(const struct embeng *e, const char *weights, uint64_t count)
{
	struct port_fpu fpu;
	uint64_t at;

	port_fpu_begin(&fpu);
	at = kernel_finite_until(e->kernels, (const float *)(const void *)weights, count);
	port_fpu_end(&fpu);
	return at;
}

int ids_check(const struct embeng *e, const struct embeng_batch *b, size_t f,
	      const struct input_copy *copy)
{
	const struct feature *feature = &e->model->features[f];
	const struct table *t = &e->model->tables[feature->table];
	const struct input *in = &b->inputs[f];
	struct embeng_cqe fault = {.feature = (uint32_t)f};
	uint64_t at = in->id_count;

	if (in->form == INPUT_CSR) {
		const int64_t *offsets = (const void *)copy->offsets;

		if (offsets[0] || (uint64_t)offsets[in->samples] != in->id_count ||
		    !offsets_ascend(offsets, in->samples))
			return fail(-EINVAL,
				    "feature %s: its row splits were changed after they were given",
				    feature->name);
	}
	if (t->policy == EMBENG_POLICY_ERROR)
		at = find_outside(copy->ids, width_of_ids(in), in->id_count, (uint64_t)t->rows);
	if (at < in->id_count) {
		fault.status = EMBENG_STATUS_ID;
		fault.value = width_of_ids(in) == 4
				      ? (uint64_t)((const int32_t *)(const void *)copy->ids)[at]
				      : (uint64_t)((const int64_t *)(const void *)copy->ids)[at];
		fault.element = at;
		return lookup_error(e, b, &fault);
	}
	if (!in->weights || !model_checks_weights_of(e->model, feature))
		return 0;
	at = find_bad_weight(e, copy->weights, in->id_count);
	if (at == in->id_count)
		return 0;
	fault.status = EMBENG_STATUS_WEIGHT;
	fault.value = ((const uint32_t *)(const void *)copy->weights)[at];
	fault.element = at;
	return lookup_error(e, b, &fault);
}
