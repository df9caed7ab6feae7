// SPDX-License-Identifier: MIT
/*
 * Computes where things lie in the memory that the library shares with the engine, and how large it
 * has to be. Steps and forecasts of memory (plan/plan.c) use the same functions, so that they agree.
 *
 * Only arguments are touched; no lock is needed.
 */
#include "layout.h"

#include "base/error.h"

#define ALIGN 64u
#define STAGING_BYTES (1u << 20)
#define STAGING_LEAST 4096u

static uint64_t align_place(uint64_t at)
{
	return (at + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

void layout_arrays(struct array a[ARRAYS], uint64_t samples, uint64_t ids, enum embeng_id_type type)
{
	a[OFFSETS] = (struct array){.count = samples + 1, .width = 8};
	a[IDS] = (struct array){.count = ids, .width = type == EMBENG_I32 ? 4 : 8};
	a[WEIGHTS] = (struct array){.count = ids, .width = 4};
}

uint64_t layout_input_head(size_t features)
{
	return sizeof(struct embeng_lookup) + features * sizeof(struct embeng_lookup_feature);
}

uint64_t layout_copies(struct array *arrays, size_t count, uint64_t at)
{
	for (size_t i = 0; i < count; i++) {
		struct array *a = &arrays[i];

		if (!a->data || a->in_place)
			continue;
		a->at = align_place(at);
		at = a->at + a->count * a->width;
	}
	return at;
}

uint64_t layout_input(struct array *arrays, size_t features)
{
	return layout_copies(arrays, ARRAYS * features, layout_input_head(features));
}

int layout_outputs(const struct embeng_model *model, const struct output *outputs, uint64_t *at,
		   uint64_t *elements, uint64_t *bytes)
{
	uint64_t end = 0;

	for (size_t f = 0; f < model->feature_count; f++) {
		const struct output *o = &outputs[f];
		uint64_t n = (uint64_t)model->tables[model->features[f].table].dim, size;

		for (size_t i = 0; i < o->rank; i++)
			if (__builtin_mul_overflow(n, (uint64_t)o->shape[i], &n))
				n = UINT64_MAX;
		if (__builtin_mul_overflow(n, 4, &size) ||
		    __builtin_add_overflow(end, size, &size) || size > UINT64_MAX / 4)
			return fail(-ERANGE, "feature %s: its activations are too large for memory",
				    model->features[f].name);
		at[f] = end;
		elements[f] = n;
		end = align_place(size);
	}
	*bytes = end ? end : ALIGN;
	return 0;
}

uint64_t layout_update(const struct embeng_model *model)
{
	return sizeof(struct embeng_update) +
	       model->feature_count * sizeof(struct embeng_update_feature);
}

uint64_t layout_update_head(const struct embeng_model *model)
{
	return align_place(layout_update(model) + 4 * model->rate_count);
}

uint64_t layout_region(uint64_t bytes)
{
	return (bytes + bytes / 2 + 4095) & ~4095ull;
}

uint64_t layout_staging(uint64_t row)
{
	return row > STAGING_BYTES - STAGING_HEAD ? STAGING_HEAD + row : STAGING_BYTES;
}

uint64_t layout_staging_of(uint64_t row, uint64_t count)
{
	uint64_t all = layout_staging(row), bytes = STAGING_LEAST;

	while (bytes < all && (bytes - STAGING_HEAD) / (row ? row : 1) < count)
		bytes *= 4;
	return bytes < all ? bytes : all;
}
