// SPDX-License-Identifier: MIT
/*
 * Finds who holds the largest numbers of bags, for tables whose combiner is max: the ids that get the
 * gradient of each column. They are found as a lookup of the device finds them, by the same kernel,
 * in the rows as they are now.
 *
 * All memory but the holders lives for one call. Each row that the bags name is read once;
 * rows_read_together() takes the locks.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/kernels.h"
#include "base/list.h"
#include "batch/input.h"
#include "rows.h"
#include "touches.h"

/*
 * struct holding - the ids of one held_bags that count
 * @rows: [@count], or KERNEL_ROW_ZERO; then their positions in @ids
 * @places: [@count] positions in the input
 * @bag: [samples + 1] where each bag begins
 * @ids: rows in their order, each once
 */
struct holding {
	uint64_t *rows, *bag;
	uint32_t *places;
	size_t count;
	int64_t *ids;
};

bool holders_are_wanted(const struct embeng_batch *b, uint32_t feature)
{
	const struct input *in = &b->inputs[feature];

	return b->e->model->features[feature].largest && in->form == INPUT_CSR && in->pooled;
}

static const struct table *table_of(const struct held_bags *bags)
{
	const struct embeng_model *m = bags->b->e->model;

	return &m->tables[m->features[bags->feature].table];
}

static int make_holding(const char *call, struct held_bags *bags, struct holding *h)
{
	const struct input *in = &bags->b->inputs[bags->feature];
	const char *name = bags->b->e->model->features[bags->feature].name;
	size_t ids = in->id_count, samples = in->samples;

	if (ids > INT32_MAX)
		return fail(-ERANGE,
			    "%s: feature %s: %zu ids; bags of the combiner max may have %d", call,
			    name, ids, INT32_MAX);
	h->rows = reallocarray(NULL, ids + 1, sizeof(*h->rows));
	h->places = reallocarray(NULL, ids + 1, sizeof(*h->places));
	h->ids = reallocarray(NULL, ids + 1, sizeof(*h->ids));
	h->bag = reallocarray(NULL, samples + 1, sizeof(*h->bag));
	bags->holders = reallocarray(NULL, samples + 1,
				     (size_t)table_of(bags)->dim * sizeof(*bags->holders));
	if (h->rows && h->places && h->ids && h->bag && bags->holders)
		return 0;
	return fail(-ENOMEM, "%s: feature %s: no memory for %zu ids", call, name, ids);
}

static int list_bag(const struct held_bags *bags, struct holding *h, size_t first, size_t end)
{
	for (size_t k = first; k < end; k++) {
		uint64_t row;
		float weight;
		int named = touches_resolve(bags->b, bags->feature, k, &row, &weight);

		if (named < 0)
			return named;
		if (named == NAMES_NOTHING)
			continue;
		h->rows[h->count] = named == NAMES_ROW ? row : KERNEL_ROW_ZERO;
		h->places[h->count++] = (uint32_t)k;
	}
	return 0;
}

static int list_held_bags(const struct held_bags *bags, struct holding *h)
{
	const struct input *in = &bags->b->inputs[bags->feature];
	size_t first, end, taken = 0;
	int ret = 0;

	for (size_t s = 0; !ret && s < in->samples; s++) {
		h->bag[s] = h->count;
		ret = touches_bag(bags->b, bags->feature, s, &first, &end);
		/* Bags that overlap would be more ids than there is room for. */
		if (!ret && end - first > in->id_count - taken)
			ret = fail(-EINVAL,
				   "feature %s, sample %zu: the row splits have changed since the "
				   "batch was filled",
				   bags->b->e->model->features[bags->feature].name, s);
		taken += ret ? 0 : end - first;
		ret = ret ? ret : list_bag(bags, h, first, end);
	}
	h->bag[in->samples] = h->count;
	return ret;
}

/* Rows become positions among those that are read. */
static int want_held_rows(const char *call, const struct held_bags *bags, struct holding *h,
			  struct rows_reading *reading)
{
	const struct table *t = table_of(bags);
	size_t count = 0, kept;

	for (size_t i = 0; i < h->count; i++)
		if (h->rows[i] != KERNEL_ROW_ZERO)
			h->ids[count++] = (int64_t)h->rows[i];
	kept = list_keep_unique(h->ids, count);
	for (size_t i = 0; i < h->count; i++)
		if (h->rows[i] != KERNEL_ROW_ZERO)
			h->rows[i] = list_find_place(h->ids, kept, (int64_t)h->rows[i]);
	*reading = (struct rows_reading){
		.table = bags->b->e->model->features[bags->feature].table,
		.ids = h->ids,
		.count = kept,
		.data = reallocarray(NULL, kept + 1, (size_t)t->dim * sizeof(float)),
	};
	return reading->data ? 0
			     : fail(-ENOMEM, "%s: no memory for %zu rows of table %s", call, kept,
				    t->name);
}

static int hold_bags(struct embeng *e, const char *call, const struct held_bags *bags,
		     const struct holding *h, const float *rows)
{
	const struct table *t = table_of(bags);
	size_t samples = bags->b->inputs[bags->feature].samples, dim = (size_t)t->dim;
	struct kernel_quantization quantization;
	float *zeros = calloc(dim, sizeof(*zeros));
	float *out = reallocarray(NULL, samples + 1, dim * sizeof(*out));
	const struct kernel_bag_work work = {
		.table = rows,
		.stride = dim,
		.dim = (u32)dim,
		.rows = (const u64 *)h->rows,
		.rows_count = h->count,
		.zero_row = zeros,
		.quantization = t->quantization.num_buckets ? &quantization : NULL,
		.bag = (const u64 *)h->bag,
		.out = out,
		.out_stride = dim,
		.holders = bags->holders,
	};
	int ret = zeros && out
			  ? 0
			  : fail(-ENOMEM, "%s: no memory for the bags of table %s", call, t->name);

	if (!ret) {
		touches_quantization(t, &quantization);
		e->kernels->lookup_max(&work, 0, samples);
		/* Columns of an empty bag have no holder, and no id to compare with it. */
		for (size_t i = 0; i < samples * dim; i++)
			if (bags->holders[i] < h->count)
				bags->holders[i] = h->places[bags->holders[i]];
	}
	free(zeros);
	free(out);
	return ret;
}

static int find_all(struct embeng *e, const char *call, struct held_bags *bags, size_t count,
		    struct holding *holding, struct rows_reading *readings, int status)
{
	int ret = status;

	for (size_t i = 0; !ret && i < count; i++) {
		ret = make_holding(call, &bags[i], &holding[i]);
		ret = ret ? ret : list_held_bags(&bags[i], &holding[i]);
		ret = ret ? ret : want_held_rows(call, &bags[i], &holding[i], &readings[i]);
	}
	ret = rows_read_together(e, call, readings, count, ret);
	for (size_t i = 0; !ret && i < count; i++)
		ret = hold_bags(e, call, &bags[i], &holding[i], readings[i].data);
	return ret;
}

int holders_find(struct embeng *e, const char *call, struct held_bags *bags, size_t count,
		 int status)
{
	struct holding *holding = calloc(count + 1, sizeof(*holding));
	struct rows_reading *readings = calloc(count + 1, sizeof(*readings));
	int ret = status;

	if (!ret && (!holding || !readings))
		ret = fail(-ENOMEM, "%s: no memory for the bags of %zu features", call, count);
	if (e->calls || (!ret && count))
		ret = find_all(e, call, bags, readings ? count : 0, holding, readings, ret);
	for (size_t i = 0; holding && readings && i < count; i++) {
		free(holding[i].rows);
		free(holding[i].places);
		free(holding[i].ids);
		free(holding[i].bag);
		free(readings[i].data);
	}
	free(holding);
	free(readings);
	return ret;
}

void holders_free(struct held_bags *bags, size_t count)
{
	for (size_t i = 0; bags && i < count; i++)
		free(bags[i].holders);
}
