// SPDX-License-Identifier: MIT
/*
 * Large lookups in pieces of samples, so that a signal is answered while they run, and so that the
 * engine's own buffers stay small. The outputs of samples do not depend on each other: the bits are
 * those of one lookup. Updates of other threads may come between two pieces.
 *
 * A batch that the library would refuse is found before the first piece: it is looked up as a whole,
 * which says what is wrong and writes nothing. The arrays of the program are held by the call; another
 * thread may write to them, so that bounds are checked where they are used.
 */
#include "core.h"

#include <errno.h>
#include <math.h>

/* Floats of a piece, with an eighth of those that its ids read: some milliseconds. */
#define PIECE_COST ((size_t)4 << 20)

struct pieces {
	struct engine_object *engine;
	struct call *call;
	struct embeng_batch *batch;
	size_t count, at;
	struct embeng_output *places; /* [features] of a piece */
	int64_t *next;		      /* [features] with lengths: the first id of the piece */
	int64_t **bounds;	      /* [features] splits of a piece */
};

/* -- whether to cut --------------------------------------------------------------------- */

static size_t estimate_cost(const struct engine_feature *feature, const struct input *input)
{
	size_t rows = input->sequence ? (size_t)feature->sequence_length : 1;

	return input->samples * rows * (size_t)feature->dim +
	       input->ids.count * (size_t)feature->dim / 8;
}

static bool has_ids_within(const struct engine_feature *feature, const struct input *input)
{
	const struct embeng_bags *bags = &input->bags;
	const int64_t *wide = input->ids.data;
	const int32_t *narrow = input->ids.data;
	bool is_narrow = input->ids.type == ARRAY_I32, bad = false;

	for (size_t k = 0; k < input->ids.count; k++) {
		int64_t id = is_narrow ? narrow[k] : wide[k];
		bool out = (uint64_t)id >= (uint64_t)feature->rows;

		bad |= out && !(bags->has_padding && id == bags->padding);
	}
	return !bad;
}

static bool has_finite_weights(const struct input *input)
{
	const float *weights = input->weights.data;
	bool bad = false;

	for (size_t k = 0; k < input->weights.count; k++)
		bad |= !isfinite(weights[k]);
	return !bad;
}

static bool is_in_order(const struct engine_feature *feature, const struct input *input)
{
	return (!feature->strict || has_ids_within(feature, input)) && has_finite_weights(input);
}

/* Sequences of more dimensions than samples and ids are summed up, which bags cannot say. */
static bool is_pooled_sequence(const struct input *input)
{
	return input->form == INPUT_SPARSE && input->sequence && input->rank > 2;
}

size_t pieces_count(struct engine_object *engine, struct call *call)
{
	const struct engine_feature *features = engine->layout.features;
	bool in_order = true;
	size_t cost = 0;

	if (engine->collective) /* hosts whose batches differ would cut them into other pieces */
		return 1;
	for (size_t k = 0; k < call->feature_count; k++) {
		if (!call->inputs[k].given)
			continue;
		if (features[k].whole || is_pooled_sequence(&call->inputs[k]))
			return 1;
		cost += estimate_cost(&features[k], &call->inputs[k]);
	}
	if (cost < 2 * PIECE_COST)
		return 1;
	Py_BEGIN_ALLOW_THREADS
	for (size_t k = 0; in_order && k < call->feature_count; k++)
		in_order = !call->inputs[k].given || is_in_order(&features[k], &call->inputs[k]);
	Py_END_ALLOW_THREADS
	return in_order ? cost / PIECE_COST : 1;
}

/* -- the inputs of a piece ------------------------------------------------------------------ */

static size_t find_first(const struct pieces *p, const struct input *input, size_t at)
{
	return (size_t)((__uint128_t)input->samples * at / p->count);
}

static int64_t read_bound(const struct input *input, size_t at)
{
	if (input->bags.form == EMBENG_BAGS_STARTS && at == input->samples)
		return (int64_t)input->ids.count;
	return input->bounds.type == ARRAY_I32 ? ((const int32_t *)input->bounds.data)[at]
					       : ((const int64_t *)input->bounds.data)[at];
}

/* The sample of an id of a sparse input. */
static uint64_t read_sample(const struct input *input, size_t at)
{
	const int64_t *index = (const int64_t *)input->bounds.data + at * input->rank;
	uint64_t sample = 0;

	for (size_t d = 0; d + 1 < input->rank; d++)
		sample = sample * (uint64_t)input->shape[d] + (uint64_t)index[d];
	return sample;
}

/* The id behind those of a sample, of which the first is @at or behind it. */
static int64_t find_sample_end(const struct input *input, size_t sample, int64_t at)
{
	while ((size_t)at < input->ids.count && read_sample(input, (size_t)at) <= sample)
		at++;
	return at;
}

static bool has_bounds(const struct input *input)
{
	return input->form == INPUT_BAGS && input->bags.form != EMBENG_BAGS_LENGTHS;
}

/* Splits of the samples [first, last), from 0. Return: the first id of the first, or -1. */
static int64_t split_samples(struct pieces *p, size_t feature, size_t first, size_t last)
{
	const struct input *input = &p->call->inputs[feature];
	int64_t *splits = p->bounds[feature], from = p->next[feature], most;

	splits[0] = 0;
	if (has_bounds(input))
		from = read_bound(input, first);
	most = (int64_t)input->ids.count - from;
	for (size_t k = first; k < last; k++) {
		int64_t end;

		if (has_bounds(input))
			end = read_bound(input, k + 1) - from;
		else if (input->form == INPUT_SPARSE)
			end = find_sample_end(input, k, from + splits[k - first]) - from;
		else if (__builtin_add_overflow(splits[k - first], read_bound(input, k), &end))
			return -1;
		if (end < splits[k - first] || end > most)
			return -1;
		splits[k - first + 1] = end;
	}
	p->next[feature] = from + splits[last - first];
	return from < 0 || most < 0 ? -1 : from;
}

static struct embeng_bags describe_bags(const struct input *input)
{
	if (input->form == INPUT_BAGS)
		return input->bags;
	return (struct embeng_bags){
		.size = sizeof(struct embeng_bags),
		.form = EMBENG_BAGS_SPLITS,
		.type = array_id_type(&input->ids),
		.weights = input->weights.data,
	};
}

static int give_part(struct pieces *p, size_t feature, size_t first, size_t last)
{
	const struct input *input = &p->call->inputs[feature];
	size_t width = input->ids.type == ARRAY_I32 ? sizeof(int32_t) : sizeof(int64_t);
	struct embeng_bags bags = describe_bags(input);
	int64_t from;

	if (bags.form == EMBENG_BAGS_EVEN) {
		from = (int64_t)first * bags.length;
		bags.bound_count = last - first;
		bags.id_count = bags.bound_count * (size_t)bags.length;
	} else {
		from = split_samples(p, feature, first, last);
		if (from < 0)
			return -ESTALE;
		bags.form = EMBENG_BAGS_SPLITS;
		bags.bound_type = EMBENG_I64;
		bags.bounds = p->bounds[feature];
		bags.bound_count = last - first + 1;
		bags.id_count = (size_t)p->bounds[feature][last - first];
	}
	bags.ids = (const char *)input->ids.data + (size_t)from * width;
	if (bags.weights) {
		bags.weights += from;
		bags.weight_count = bags.id_count;
	}
	return embeng_batch_bags(p->batch, (int)feature, &bags);
}

static int give_input(struct pieces *p, size_t feature, size_t first, size_t last)
{
	const struct input *input = &p->call->inputs[feature];
	size_t width = input->ids.type == ARRAY_I32 ? sizeof(int32_t) : sizeof(int64_t);
	int64_t count = (int64_t)(last - first);

	if (input->form != INPUT_DENSE)
		return give_part(p, feature, first, last);
	return embeng_batch_dense(p->batch, (int)feature, array_id_type(&input->ids),
				  (const char *)input->ids.data + first * width, last - first,
				  &count, 1);
}

static struct embeng_output place_part(struct pieces *p, size_t feature, size_t first, size_t last)
{
	const struct engine_feature *layout = &p->engine->layout.features[feature];
	const struct input *input = &p->call->inputs[feature];
	struct embeng_output place = p->call->places[feature];
	size_t width = (size_t)layout->dim;

	if (!place.data || first == last)
		return (struct embeng_output){0};
	if (input->sequence)
		width *= (size_t)layout->sequence_length;
	if (!place.stride)
		place.stride = width;
	place.data += first * place.stride;
	place.elements = (last - first - 1) * place.stride + width;
	return place;
}

static int fill_piece_batch(struct pieces *p)
{
	embeng_batch_reset(p->batch, EMBENG_INFERENCE);
	for (size_t k = 0; k < p->call->feature_count; k++) {
		size_t first = find_first(p, &p->call->inputs[k], p->at);
		size_t last = find_first(p, &p->call->inputs[k], p->at + 1);
		int ret = give_input(p, k, first, last);

		if (ret)
			return ret;
		p->places[k] = place_part(p, k, first, last);
	}
	return 0;
}

/* -- running them ------------------------------------------------------------------------ */

static int look_piece_up(void *arg, int64_t timeout_ns)
{
	struct pieces *p = arg;

	return embeng_lookup(p->engine->handle, p->batch, p->places, p->call->feature_count,
			     timeout_ns);
}

static int prepare_pieces(struct pieces *p)
{
	size_t count = p->call->feature_count;

	p->places = PyMem_Calloc(count + 1, sizeof(*p->places));
	p->next = PyMem_Calloc(count + 1, sizeof(*p->next));
	p->bounds = PyMem_Calloc(count + 1, sizeof(*p->bounds));
	for (size_t k = 0; p->bounds && k < count; k++) {
		p->bounds[k] = PyMem_Malloc((p->call->inputs[k].samples / p->count + 3) *
					    sizeof(**p->bounds));
		if (!p->bounds[k])
			return -1;
	}
	return p->places && p->next && p->bounds ? 0 : -1;
}

static void free_pieces(struct pieces *p)
{
	for (size_t k = 0; p->bounds && k < p->call->feature_count; k++)
		PyMem_Free(p->bounds[k]);
	PyMem_Free(p->places);
	PyMem_Free(p->next);
	PyMem_Free(p->bounds);
}

static int run_pieces(struct pieces *p, const struct deadline *deadline)
{
	for (p->at = 0; p->at < p->count; p->at++) {
		int ret = fill_piece_batch(p);

		if (ret == -ESTALE) {
			PyErr_SetString(PyExc_RuntimeError,
					"an array of the inputs changed while it was looked up");
			return -1;
		}
		ret = ret ? ret : core_wait_until(look_piece_up, p, deadline);
		if (ret < 0)
			core_fail(p->engine->state);
		if (ret || PyErr_CheckSignals())
			return -1;
	}
	return 0;
}

int pieces_look_up(struct engine_object *engine, struct call *call, struct embeng_batch *batch,
		   size_t count, PyObject *timeout)
{
	struct pieces p = {.engine = engine, .call = call, .batch = batch, .count = count};
	struct deadline deadline;
	int ret = deadline_read(timeout, &deadline);

	if (!ret && prepare_pieces(&p)) {
		PyErr_NoMemory();
		ret = -1;
	}
	ret = ret ? ret : run_pieces(&p, &deadline);
	free_pieces(&p);
	return ret;
}
