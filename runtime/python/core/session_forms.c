// SPDX-License-Identifier: MIT
/*
 * Inputs of a session's batches: as many samples as the activations have rows, or sequences, whose ids
 * have a row each. It is a file of its own because it is about the form of one input; session.c has the
 * order of steps.
 *
 * An engine of TPU embeddings knows sequences by their length alone, while a program gives them by the
 * shape of their activations. So a sequence is made bags of one id or none here. All memory belongs to
 * the call; there are no locks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

/* Where the ids of the samples of an input are: sample k has those from splits[k] to splits[k + 1]. */
struct sample_bounds {
	int64_t samples;
	int64_t *splits;
};

static size_t size_of_id(enum embeng_id_type type)
{
	return type == EMBENG_I32 ? sizeof(int32_t) : sizeof(int64_t);
}

static int fail_form_memory(struct embeng_error *error)
{
	return open_error_set(error, -ENOMEM, "no memory for the inputs of a batch");
}

int64_t session_count_samples(const struct raw_feature *input)
{
	int64_t samples = 1;

	if (input->positions)
		return (int64_t)input->bags.id_count;
	if (!input->indices)
		return (int64_t)input->bags.bound_count - 1;
	for (size_t k = 0; k + 1 < input->rank; k++)
		if (input->shape[k] < 0 ||
		    __builtin_mul_overflow(samples, input->shape[k], &samples))
			return -1;
	return samples;
}

/* -- bounds -------------------------------------------------------------------------- */

int64_t session_find_sample(const struct raw_feature *input, const char *name, size_t at,
			    struct embeng_error *error)
{
	const int64_t *index = input->indices + at * input->rank;
	int64_t sample = 0;

	for (size_t k = 0; k + 1 < input->rank; k++) {
		if (index[k] < 0 || index[k] >= input->shape[k]) {
			open_error_set(error, -ERANGE,
				       "feature %s: indices[%zu][%zu] is %" PRId64
				       ", and the shape has %" PRId64 " there",
				       name, at, k, index[k], input->shape[k]);
			return -1;
		}
		sample = sample * input->shape[k] + index[k];
	}
	return sample;
}

static int bound_sparse(const struct raw_feature *input, const char *name,
			struct sample_bounds *bounds, struct embeng_error *error)
{
	int64_t last = 0;

	for (size_t k = 0; k < input->bags.id_count; k++) {
		int64_t sample = session_find_sample(input, name, k, error);

		if (sample < 0)
			return error->code;
		if (sample < last)
			return open_error_set(error, -EINVAL,
					      "feature %s: the indices of its sparse tensor are "
					      "not in order; call tf.sparse.reorder()",
					      name);
		last = sample;
		bounds->splits[sample + 1]++;
	}
	for (int64_t k = 0; k < bounds->samples; k++)
		bounds->splits[k + 1] += bounds->splits[k];
	return 0;
}

int session_read_splits(const struct raw_feature *input, const char *name, int64_t samples,
			int64_t *splits, struct embeng_error *error)
{
	const struct embeng_bags *bags = &input->bags;

	for (int64_t k = 0; k <= samples; k++) {
		int64_t split = bags->bound_type == EMBENG_I32 ? ((const int32_t *)bags->bounds)[k]
							       : ((const int64_t *)bags->bounds)[k];
		int64_t most = k ? (int64_t)bags->id_count : 0;
		int64_t least = k ? splits[k - 1] : 0;

		if (k == samples)
			least = most;
		if (split < least || split > most)
			return open_error_set(error, -EINVAL,
					      "feature %s: splits[%" PRId64 "] is %" PRId64
					      "; splits start at 0, never fall, and end at the %zu "
					      "ids",
					      name, k, split, bags->id_count);
		splits[k] = split;
	}
	return 0;
}

/* -- sequences ------------------------------------------------------------------------- */

static void copy_sequence_id(struct session_input *to, const struct raw_feature *from, size_t at,
			     size_t id)
{
	size_t bytes = size_of_id(from->bags.type);

	memcpy((char *)to->ids + at * bytes, (const char *)from->bags.ids + id * bytes, bytes);
	if (to->weights)
		to->weights[at] = from->bags.weights[id];
}

/* Each of the @length rows of a sample has the bag of one id, or an empty one. */
static void spread_ids(struct session_input *to, const struct raw_feature *from,
		       const struct sample_bounds *bounds, int64_t length)
{
	size_t ids = 0, bag = 0;

	for (int64_t k = 0; k < bounds->samples; k++) {
		int64_t first = bounds->splits[k], count = bounds->splits[k + 1] - first;

		for (int64_t i = 0; i < length; i++) {
			if (i < count)
				copy_sequence_id(to, from, ids++, (size_t)(first + i));
			to->splits[++bag] = (int64_t)ids;
		}
	}
	to->input = (struct raw_feature){
		.feature = from->feature,
		.bags = {.form = EMBENG_BAGS_SPLITS,
			 .type = from->bags.type,
			 .ids = to->ids,
			 .id_count = ids,
			 .bound_type = EMBENG_I64,
			 .bounds = to->splits,
			 .bound_count = bag + 1,
			 .weights = to->weights,
			 .weight_count = to->weights ? ids : 0},
	};
}

static int spread_sequence(const struct session_feature *from, const char *name, int64_t samples,
			   struct session_input *to, struct embeng_error *error)
{
	const struct embeng_bags *bags = &from->input.bags;
	struct sample_bounds bounds = {.samples = samples};
	int ret;

	bounds.splits = calloc((size_t)samples + 1, sizeof(*bounds.splits));
	to->splits = calloc((size_t)from->samples + 1, sizeof(*to->splits));
	to->ids = malloc((bags->id_count + 1) * size_of_id(bags->type));
	to->weights = bags->weights ? malloc((bags->id_count + 1) * sizeof(float)) : NULL;
	if (!bounds.splits || !to->splits || !to->ids || (bags->weights && !to->weights))
		ret = fail_form_memory(error);
	else if (from->input.indices)
		ret = bound_sparse(&from->input, name, &bounds, error);
	else
		ret = session_read_splits(&from->input, name, samples, bounds.splits, error);
	if (!ret)
		spread_ids(to, &from->input, &bounds, from->samples / samples);
	free(bounds.splits);
	return ret;
}

int session_input_make(const struct session_feature *from, const char *name,
		       struct session_input *to, struct embeng_error *error)
{
	int64_t samples = session_count_samples(&from->input);
	bool longer = samples > 0 && from->samples > samples && from->samples % samples == 0;

	*to = (struct session_input){.input = from->input};
	if (from->weighted && from->input.bags.weight_count != from->input.bags.id_count)
		return open_error_set(error, -EINVAL,
				      "feature %s: weights: there are %zu, for %zu ids", name,
				      from->input.bags.weight_count, from->input.bags.id_count);
	if (from->input.positions)
		longer = false;
	else if (samples > 0 && from->sequence)
		longer |= from->samples == samples;
	if (longer)
		return spread_sequence(from, name, samples, to, error);
	if (samples == from->samples)
		return 0;
	return open_error_set(error, -EINVAL,
			      "feature %s: the input has %" PRId64
			      " samples, and the output shape has %" PRId64
			      "; give batches of the shape that build() or the first batch said",
			      name, samples, from->samples);
}

void session_input_put(struct session_input *input)
{
	free(input->ids);
	free(input->splits);
	free(input->weights);
}
