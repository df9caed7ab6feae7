// SPDX-License-Identifier: MIT
/* Partitioned CSR as inputs of a batch: ids and gains by sample again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "partition.h"

#define WHAT "embeng_batch_partitioned"
#define ALIGN 8u

/* Ids and gains of one feature. */
struct decoded {
	int64_t *offsets; /* [samples + 1], counts at first */
	int64_t *ids;
	float *gains; /* behind @ids, in the same memory */
};

/* One call under way. */
struct decoding {
	struct embeng_batch *b;
	const struct embeng_stacking *s;
	const struct embeng_preprocessed *p;
	struct decoded *features; /* [model's features] */
	bool placing;		  /* counted before */
};

/* One stack of it. */
struct part {
	struct decoding *d;
	const struct embeng_stack *stack;
	const struct embeng_partitioned *from;
	int64_t rows; /* samples of a core */
};

/* One item. */
struct item {
	uint64_t at;
	uint32_t core, partition;
};

static int item_error(const struct part *part, const struct item *item, const char *what,
		      int64_t value, int64_t limit)
{
	return fail(-ERANGE, WHAT ": stack %s, core %u, partition %u, item %" PRIu64 ": %s %" PRId64
		    " is not below %" PRId64, part->stack->name, item->core, item->partition,
		    item->at, what, value, limit);
}

/* The feature that a core's sample belongs to. The sample is one of the stack's. */
static int feature_of(const struct part *part, int64_t sample)
{
	const struct embeng_stacking *s = part->d->s;
	size_t low = 0, high = part->stack->feature_count;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (s->features[part->stack->features[middle]].offset / s->cores_per_device <= sample)
			low = middle;
		else
			high = middle;
	}
	return part->stack->features[low];
}

/* The row of a table that stands at a token of a partition, or -1. */
static int64_t row_of(const struct embeng_table_layout *l, const struct item *item, int64_t token)
{
	int64_t cores = l->sparse_cores, k = token - l->row_offset, row;

	if (k < 0 || k >= l->padded_rows / cores)
		return -1;
	row = k * cores + (item->partition + cores - l->rotation % cores) % cores;
	return row < l->rows ? row : -1;
}

static int take_item(struct part *part, const struct item *item)
{
	const struct embeng_stacking *s = part->d->s;
	const struct embeng_partitioned *from = part->from;
	int64_t sample = from->sample_ids[item->at], token = from->token_ids[item->at], row, first;
	struct decoded *to;
	int f;

	if (sample < 0 || sample >= part->rows)
		return item_error(part, item, "sample", sample, part->rows);
	f = feature_of(part, sample);
	row = row_of(&s->tables[part->d->b->e->model->features[f].table], item, token);
	if (row < 0)
		return fail(-ERANGE, WHAT ": stack %s, core %u, partition %u, item %" PRIu64 ": token "
			    "%" PRId64 " is no row of the table of feature %s", part->stack->name,
			    item->core, item->partition, item->at, token,
			    part->d->b->e->model->features[f].name);
	to = &part->d->features[f];
	first = s->features[f].offset / s->cores_per_device;
	sample += item->core * (s->features[f].samples / s->cores_per_device) - first;
	if (!part->d->placing) {
		to->offsets[sample + 1]++;
		return 0;
	}
	to->ids[to->offsets[sample]] = row;
	to->gains[to->offsets[sample]++] = from->gains[item->at];
	return 0;
}

/* Items of one core: its minibatches, their partitions. */
static int take_core(struct part *part, uint32_t core)
{
	const struct embeng_partitioned *from = part->from;
	uint64_t first = part->d->p->from_first ? from->core_first[core] : 0;
	uint64_t end = from->core_first[core], most = from->core_end[core];
	size_t lists = from->minibatches;
	int ret = 0;

	for (size_t m = 0; m < lists; m++) {
		const int32_t *pointers = from->row_pointers + (core * lists + m) * from->row_stride;

		for (uint32_t k = 0; k < part->d->s->sparse_cores; k++) {
			struct item item = {(end + ALIGN - 1) / ALIGN * ALIGN, core, k};

			end = first + (uint64_t)(int64_t)pointers[k];
			if (pointers[k] < 0 || end > most || end > from->capacity)
				return item_error(part, &item, "the row pointer", pointers[k],
						  (int64_t)most + 1);
			for (; !ret && item.at < end; item.at++)
				ret = take_item(part, &item);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int check_part(const struct part *part)
{
	const struct embeng_stacking *s = part->d->s;
	const struct embeng_partitioned *from = part->from;
	uint64_t pointers = (uint64_t)s->cores_per_device * from->minibatches;

	if (from->size < sizeof(*from) || !from->row_pointers || !from->token_ids ||
	    !from->sample_ids || !from->gains || !from->core_first || !from->core_end)
		return fail(-EINVAL, WHAT ": stack %s: an array is missing", part->stack->name);
	if (from->row_stride < s->sparse_cores || !from->minibatches ||
	    __builtin_mul_overflow(pointers, from->row_stride, &pointers) ||
	    from->row_pointer_count != pointers || pointers > from->row_pointer_capacity)
		return fail(-EINVAL, WHAT ": stack %s: %zu row pointers, %u minibatches of %zu; the grid "
			    "has %u cores, %u of a device", part->stack->name,
			    from->row_pointer_count, from->minibatches, from->row_stride,
			    s->sparse_cores, s->cores_per_device);
	for (size_t k = 0; k < part->stack->feature_count; k++) {
		if (s->features[part->stack->features[k]].samples % s->cores_per_device)
			return fail(-EINVAL, WHAT ": stack %s: samples of its features are no multiple "
				    "of %u cores_per_device", part->stack->name,
				    s->cores_per_device);
	}
	return 0;
}

static int take_stack(struct decoding *d, size_t index)
{
	struct part part = {.d = d, .stack = &d->s->stacks[index], .from = &d->p->stacks[index]};
	int ret;

	if (!part.stack->feature_count)
		return 0;
	part.rows = part.stack->samples / d->s->cores_per_device;
	ret = check_part(&part);
	for (uint32_t c = 0; !ret && c < d->s->cores_per_device; c++)
		ret = take_core(&part, c);
	return ret;
}

static int take_all(struct decoding *d)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < d->s->stack_count; i++)
		ret = take_stack(d, i);
	return ret;
}

static int start_feature(struct decoding *d, size_t f)
{
	d->features[f].offsets = calloc((size_t)d->s->features[f].samples + 1, sizeof(int64_t));
	return d->features[f].offsets ? 0 : fail(-ENOMEM, WHAT ": no memory for the samples of "
						 "feature %s", d->b->e->model->features[f].name);
}

/* Counts become where each sample begins. */
static int reserve_feature(struct decoding *d, size_t f)
{
	struct decoded *to = &d->features[f];
	int64_t samples = d->s->features[f].samples;
	size_t ids;

	for (int64_t s = 0; s < samples; s++)
		to->offsets[s + 1] += to->offsets[s];
	ids = (size_t)to->offsets[samples];
	to->ids = malloc((ids + 1) * (sizeof(*to->ids) + sizeof(*to->gains)));
	if (!to->ids)
		return fail(-ENOMEM, WHAT ": no memory for %zu ids", ids);
	to->gains = (float *)(to->ids + ids + 1);
	return 0;
}

/* Placing moved each offset to where the next sample begins. */
static void shift_back(struct decoded *to, int64_t samples)
{
	memmove(to->offsets + 1, to->offsets, (size_t)samples * sizeof(*to->offsets));
	to->offsets[0] = 0;
}

/* As the engine's model has it; it may leave open what the stacking's had built. */
static void give_shape(const struct feature *f, struct input *in)
{
	struct embeng_shape shape = shape_known(f);

	if (!shape.rank || shape_product(shape.dims, shape.rank, false) != (int64_t)in->samples)
		shape = (struct embeng_shape){.rank = 1, .dims = {(int64_t)in->samples}};
	in->rank = shape.rank;
	memcpy(in->shape, shape.dims, sizeof(shape.dims));
}

static void give_feature(struct decoding *d, int f)
{
	struct decoded *from = &d->features[f];
	size_t samples = (size_t)d->s->features[f].samples;
	const struct feature *feature;
	int code;
	struct input *in = input_begin(d->b, f, &feature, &code);

	if (!in)
		return;
	free(in->own_offsets);
	in->own_offsets = from->offsets;
	in->own_capacity = samples + 1;
	in->own_data = from->ids;
	in->form = INPUT_CSR;
	in->pooled = in->gains = true;
	in->type = EMBENG_I64;
	in->offsets = from->offsets;
	in->samples = samples;
	in->id_count = (size_t)from->offsets[samples];
	in->ids = from->ids;
	in->weights = from->gains;
	give_shape(feature, in);
	*from = (struct decoded){0};
}

static int decode(struct decoding *d)
{
	int ret = 0;

	for (size_t f = 0; !ret && f < d->b->count; f++)
		ret = start_feature(d, f);
	ret = ret ? ret : take_all(d);
	for (size_t f = 0; !ret && f < d->b->count; f++)
		ret = reserve_feature(d, f);
	d->placing = true;
	ret = ret ? ret : take_all(d);
	for (size_t f = 0; !ret && f < d->b->count; f++) {
		shift_back(&d->features[f], d->s->features[f].samples);
		give_feature(d, (int)f);
	}
	return ret;
}

static int check(const struct embeng_batch *b, const struct embeng_stacking *stacking,
		 const struct embeng_preprocessed *preprocessed)
{
	int ret;

	if (!b)
		return fail(-EINVAL, WHAT ": no batch");
	ret = session_check(b->e, WHAT);
	ret = ret ? ret : check_stacking(WHAT, b->e, stacking);
	if (ret)
		return ret;
	if (!preprocessed || preprocessed->stack_count != stacking->stack_count)
		return fail(-EINVAL, WHAT ": not as many stacks as the stacking has");
	return 0;
}

int embeng_batch_partitioned(struct embeng_batch *b, const struct embeng_stacking *stacking,
			     const struct embeng_preprocessed *preprocessed)
{
	struct decoding d = {.b = b, .s = stacking, .p = preprocessed};
	int ret = check(b, stacking, preprocessed);

	if (ret)
		return ret;
	d.features = calloc(b->count + 1, sizeof(*d.features));
	ret = d.features ? decode(&d) : fail(-ENOMEM, WHAT ": no memory for %zu features", b->count);
	for (size_t f = 0; d.features && f < b->count; f++) {
		free(d.features[f].offsets);
		free(d.features[f].ids);
	}
	free(d.features);
	return ret;
}
