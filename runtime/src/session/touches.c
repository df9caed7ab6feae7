// SPDX-License-Identifier: MIT
/*
 * Lists the rows that a batch touches, each with its gradient and its factor, and sorts them by row.
 * Factors are in f64: they are those of the engine before they are rounded.
 *
 * The batch and its arrays are the caller's. An array that was changed since the batch was filled
 * gives other numbers, but nothing outside of it is read. e->lock is taken for a moment by
 * touches_open() alone.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/f32.h"
#include "../../../engine/kernels/kernels.h"
#include "../../../engine/kernels/root.h"
#include "base/ask.h"
#include "base/bits.h"
#include "batch/input.h"
#include "batch/partitioned.h"
#include "touches.h"

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define ASK_EACH 1024u

static int count_activations(struct embeng *e, const struct embeng_batch *b, uint64_t *elements)
{
	size_t n = e->model->feature_count + 1;
	struct output *resolved = calloc(n, sizeof(*resolved));
	uint64_t *at = calloc(n, sizeof(*at)), bytes;
	int ret = resolved && at ? 0 : fail(-ENOMEM, "no memory for the shapes of %zu features", n);

	pthread_mutex_lock(&e->lock);
	ret = ret ? ret : batch_check(b, e->outputs, resolved);
	pthread_mutex_unlock(&e->lock);
	ret = ret ? ret : layout_outputs(e->model, resolved, at, elements, &bytes);
	free(resolved);
	free(at);
	return ret;
}

static int check_given_pair(const struct given_gradients *given)
{
	const struct embeng_gradients *g = given->g;

	if (!g || g->size < sizeof(*g))
		return fail(-EINVAL, "%s: gradients must be given, with their size", given->call);
	if (g->replica != given->b->replica)
		return fail(-EINVAL,
			    "%s: the batch is of replica %u, the gradients are of replica %u",
			    given->call, given->b->replica, g->replica);
	if (g->fence_count)
		return fail(-EINVAL,
			    "%s: it waits for no fence; wait until the gradients are there, and "
			    "give none",
			    given->call);
	return 0;
}

int touches_open(struct embeng *e, const char *call, struct embeng_batch *b,
		 const struct embeng_gradients *g, struct given_gradients *given)
{
	int ret = session_check_batch(e, b, call);

	*given = (struct given_gradients){.call = call, .b = b, .g = g};
	ret = ret ? ret : check_given_pair(given);
	if (ret)
		return ret;
	given->elements = calloc(e->model->feature_count + 1, sizeof(*given->elements));
	if (!given->elements)
		return fail(-ENOMEM, "%s: no memory for %zu features", call,
			    e->model->feature_count);
	ret = count_activations(e, b, given->elements);
	return ret ? ret : gradients_check_given(e, call, given->elements, g);
}

void touches_close(struct given_gradients *given)
{
	free(given->elements);
	given->elements = NULL;
}

size_t touches_most(const struct embeng_batch *b, uint32_t feature)
{
	return is_partitioned(b, feature) ? partitioned_most(b, feature)
					  : b->inputs[feature].id_count;
}

static int64_t id_at(const struct input *in, size_t place)
{
	return in->type == EMBENG_I32 ? ((const int32_t *)in->ids)[place]
				      : ((const int64_t *)in->ids)[place];
}

static int refuse_outside(const struct embeng_batch *b, uint32_t feature, size_t place, int64_t id)
{
	const struct embeng_cqe answer = {
		.status = EMBENG_STATUS_ID,
		.feature = feature,
		.element = place,
		.value = (uint64_t)id,
	};

	return lookup_error(b->e, b, &answer);
}

int touches_resolve(const struct embeng_batch *b, uint32_t feature, size_t place, uint64_t *row,
		    float *weight)
{
	const struct embeng_model *m = b->e->model;
	const struct feature *f = &m->features[feature];
	const struct table *t = &m->tables[f->table];
	const struct input *in = &b->inputs[feature];
	int64_t id = id_at(in, place);

	*weight = in->weights ? in->weights[place] : 1.0f;
	if (!f32_finite(bits(*weight)) && model_checks_weights_of(m, f))
		return input_weight_error(f, in, place, *weight);
	*row = (uint64_t)id;
	if (*row < (uint64_t)t->rows)
		return NAMES_ROW;
	switch (t->policy) {
	case EMBENG_POLICY_ERROR:
		break;
	case EMBENG_POLICY_CLAMP:
		*row = id < 0 ? 0 : (uint64_t)t->rows - 1;
		return NAMES_ROW;
	case EMBENG_POLICY_DROP:
		return NAMES_NOTHING;
	case EMBENG_POLICY_ZERO:
		return NAMES_ZERO;
	}
	return refuse_outside(b, feature, place, id);
}

int touches_bag(const struct embeng_batch *b, uint32_t feature, size_t sample, size_t *first,
		size_t *end)
{
	const struct input *in = &b->inputs[feature];
	int64_t from = in->offsets[sample], to = in->offsets[sample + 1];

	*first = (size_t)from;
	*end = (size_t)to;
	if (from >= 0 && from <= to && (uint64_t)to <= in->id_count && (sample || !from))
		return 0;
	return fail(-EINVAL,
		    "feature %s, sample %zu: its ids are %" PRId64 " to %" PRId64
		    " of %zu; the row splits have changed since the batch was filled",
		    b->e->model->features[feature].name, sample, from, to, in->id_count);
}

double touches_add(enum embeng_combiner_name combiner, double sum, float weight)
{
	return sum + (combiner == EMBENG_SQRTN ? (double)weight * weight : weight);
}

double touches_denominator(enum embeng_combiner_name combiner, double sum)
{
	switch (combiner) {
	case EMBENG_MEAN:
		return sum;
	case EMBENG_SQRTN:
		return root64(sum);
	default:
		return 1;
	}
}

int touches_ask(size_t done)
{
	return done % ASK_EACH == ASK_EACH - 1 ? ask_program() : 0;
}

/* The list of one feature. */
struct touching {
	const struct embeng_batch *b;
	uint32_t feature;
	uint64_t dim;
	const float *gradient;
	const uint32_t *holders;
	struct touch *to;
	size_t count;
};

static void add_touch(struct touching *t, uint64_t row, uint64_t output, double gain,
		      uint64_t place)
{
	const float *gradient = t->gradient ? t->gradient + output * t->dim : NULL;
	const uint32_t *holders = t->holders ? t->holders + output * t->dim : NULL;

	t->to[t->count++] = (struct touch){row, gradient, gain, place, holders};
}

/* Return: 0, or an errno. */
static int add_single(struct touching *t, size_t place, size_t output, int *named)
{
	uint64_t row;
	float weight;

	*named = touches_resolve(t->b, t->feature, place, &row, &weight);
	if (*named < 0)
		return *named;
	if (*named == NAMES_ROW)
		add_touch(t, row, output, 1, place);
	return 0;
}

static int list_dense(struct touching *t)
{
	int ret = 0, named;

	for (size_t k = 0; !ret && k < t->b->inputs[t->feature].id_count; k++) {
		ret = add_single(t, k, k, &named);
		ret = ret ? ret : touches_ask(k);
	}
	return ret;
}

/* A dropped id takes no position, and ids beyond the last position are not looked at. */
static int list_sequence(struct touching *t, size_t sample, size_t first, size_t end)
{
	size_t length = (size_t)t->b->e->model->features[t->feature].max_sequence_length, at = 0;
	int ret = 0, named;

	for (size_t k = first; !ret && k < end && at < length; k++) {
		ret = add_single(t, k, sample * length + at, &named);
		at += named != NAMES_NOTHING;
	}
	return ret;
}

/* The weights stand in the gains until all of the bag are known. */
static int list_pooled(struct touching *t, size_t sample, size_t first, size_t end)
{
	const struct embeng_model *m = t->b->e->model;
	enum embeng_combiner_name combiner = m->tables[m->features[t->feature].table].combiner;
	size_t begin = t->count;
	double sum = 0, scale;

	for (size_t k = first; k < end; k++) {
		uint64_t row;
		float weight;
		int named = touches_resolve(t->b, t->feature, k, &row, &weight);
		int ret = named < 0 ? named : touches_ask(k);

		if (ret)
			return ret;
		if (named != NAMES_NOTHING)
			sum = touches_add(combiner, sum, weight);
		if (named == NAMES_ROW)
			add_touch(t, row, sample, weight, k);
	}
	scale = touches_denominator(combiner, sum);
	scale = scale == 0 ? 0 : 1 / scale;
	for (size_t i = begin; i < t->count; i++)
		t->to[i].gain *= scale;
	return 0;
}

static int list_bags(struct touching *t)
{
	const struct input *in = &t->b->inputs[t->feature];
	size_t first, end;
	int ret = 0;

	for (size_t s = 0; !ret && s < in->samples; s++) {
		ret = touches_bag(t->b, t->feature, s, &first, &end);
		/* Bags that overlap would be more ids than there is room for. */
		if (!ret && end - first > in->id_count - t->count)
			ret = fail(-EINVAL,
				   "feature %s, sample %zu: the row splits have changed since the "
				   "batch was filled",
				   t->b->e->model->features[t->feature].name, s);
		if (!ret)
			ret = in->pooled ? list_pooled(t, s, first, end)
					 : list_sequence(t, s, first, end);
		ret = ret ? ret : touches_ask(s);
	}
	return ret;
}

static void touch_item(void *arg, const struct partitioned_item *item)
{
	struct touching *t = arg;

	add_touch(t, (uint64_t)item->row, item->sample, item->gain, t->count);
}

int touches_list(const struct embeng_batch *b, uint32_t feature, const float *gradient,
		 const uint32_t *holders, struct touch *to, size_t *count)
{
	const struct embeng_model *m = b->e->model;
	struct touching t = {
		.b = b,
		.feature = feature,
		.dim = (uint64_t)m->tables[m->features[feature].table].dim,
		.gradient = gradient,
		.holders = holders,
		.to = to,
	};
	int ret = 0;

	switch (b->inputs[feature].form) {
	case INPUT_DENSE:
		ret = list_dense(&t);
		break;
	case INPUT_CSR:
		ret = list_bags(&t);
		break;
	case INPUT_PARTITIONED:
		partitioned_each(b, feature, touch_item, &t);
		break;
	case INPUT_NONE:
		break;
	}
	*count = t.count;
	return ret;
}

void touches_quantization(const struct table *t, struct kernel_quantization *q)
{
	kernel_quantization_set(q, (uint32_t)t->quantization.num_buckets,
				bits(t->quantization.lower), bits(t->quantization.upper));
}

static int sort_digit(const struct touch *from, struct touch *to, size_t count, unsigned int shift)
{
	size_t at[DIGITS] = {0}, before = 0;
	int ret = 0;

	for (size_t i = 0; i < count; i++)
		at[from[i].row >> shift & (DIGITS - 1)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t n = at[d];

		at[d] = before;
		before += n;
	}
	for (size_t i = 0; !ret && i < count; i++) {
		to[at[from[i].row >> shift & (DIGITS - 1)]++] = from[i];
		ret = touches_ask(i);
	}
	return ret;
}

int touches_sort(struct touch *touches, struct touch *room, size_t count, uint64_t rows)
{
	struct touch *from = touches, *to = room;

	for (unsigned int shift = 0; shift < 64 && (rows - 1) >> shift; shift += DIGIT_BITS) {
		struct touch *done = from;
		int ret = sort_digit(from, to, count, shift);

		if (ret)
			return ret;
		from = to;
		to = done;
	}
	if (from != touches)
		memcpy(touches, from, count * sizeof(*touches));
	return 0;
}
