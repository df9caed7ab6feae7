// SPDX-License-Identifier: MIT
/*
 * One feature's input: what all forms of it check and set. A batch owns its inputs and the memory
 * that they keep between uses; a batch is one thread's at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "session/session.h"

void input_clear(struct input *input)
{
	const struct input kept = {.own_offsets = input->own_offsets,
				   .own_capacity = input->own_capacity,
				   .own_ids = input->own_ids,
				   .own_id_bytes = input->own_id_bytes,
				   .own_weights = input->own_weights,
				   .own_weight_bytes = input->own_weight_bytes};

	free(input->error_text);
	*input = kept;
}

int input_feature(const struct embeng_model *model, int feature, const struct feature **f)
{
	if (feature < 0 || (size_t)feature >= model->feature_count)
		return fail(-ENOENT, "there is no feature %d; the model has %zu features", feature,
			    model->feature_count);
	*f = &model->features[feature];
	return 0;
}

int input_end(struct input *input, int code)
{
	struct embeng_error error = {.size = sizeof(error)};

	if (!code)
		return 0;
	embeng_last_error(&error);
	input_clear(input);
	input->error = code;
	input->error_text = strdup(error.text);
	return code;
}

static int check_weights(const struct feature *f, const struct ids *in)
{
	if (!in->weights && in->weight_count)
		return fail(-EINVAL, "feature %s: weights are NULL, their count is %zu", f->name,
			    in->weight_count);
	if (!in->weights)
		return 0;
	if (f->max_sequence_length)
		return fail(-EINVAL,
			    "feature %s: a sequence feature takes no weights, its ids are not "
			    "combined",
			    f->name);
	if (f->largest)
		return fail(-EINVAL,
			    "feature %s: its table's combiner is max, which takes no weights; "
			    "leave them out, or choose another combiner",
			    f->name);
	if (in->weight_count != in->id_count)
		return fail(-EINVAL,
			    "feature %s: %zu weights for %zu ids; give one weight for each id",
			    f->name, in->weight_count, in->id_count);
	return 0;
}

const char *input_weight_remedy(const struct feature *f)
{
	return f->check_weights ? ", or take check_weights from the feature and give the model "
				  "non_finite allow"
				: ", or give the model non_finite allow";
}

int input_weight_error(const struct feature *f, const struct input *in, size_t at, float weight)
{
	return error_set(-ERANGE, EMBENG_STATUS_WEIGHT,
			 "feature %s, sample %zu: weight %zu is %g, which is not finite; correct "
			 "it%s",
			 f->name, input_sample(in, at), at, (double)weight, input_weight_remedy(f));
}

int input_check_ids(const struct feature *f, const struct ids *in)
{
	if (in->type != EMBENG_I32 && in->type != EMBENG_I64)
		return fail(-EINVAL, "feature %s: id type %d is neither EMBENG_I32 nor EMBENG_I64",
			    f->name, (int)in->type);
	if (!in->ids && in->id_count)
		return fail(-EINVAL, "feature %s: ids are NULL, their count is %zu", f->name,
			    in->id_count);
	if (in->id_count > INT64_MAX / sizeof(int64_t))
		return fail(-ERANGE, "feature %s: %zu ids are more than memory holds", f->name,
			    in->id_count);
	return check_weights(f, in);
}

int input_ids(struct input *input, const struct feature *f, const struct ids *in)
{
	int code = input_check_ids(f, in);

	if (code)
		return code;
	input->type = in->type;
	input->ids = in->ids;
	input->id_count = in->id_count;
	input->weights = in->weights;
	return 0;
}

int input_offsets(struct input *input, const struct feature *f, size_t samples)
{
	int64_t *grown = NULL;

	if (samples < input->own_capacity)
		return 0;
	if (samples < PTRDIFF_MAX / sizeof(*grown))
		grown = reallocarray(input->own_offsets, samples + 1, sizeof(*grown));
	if (!grown)
		return fail(-ENOMEM, "feature %s: no memory for the offsets of %zu samples",
			    f->name, samples);
	input->own_offsets = grown;
	input->own_capacity = samples + 1;
	return 0;
}

void input_rows(struct input *input, const struct feature *f, const int64_t *offsets,
		size_t samples)
{
	input->form = INPUT_CSR;
	input->pooled = !f->max_sequence_length;
	input->offsets = offsets;
	input->samples = samples;
	input->rank = 1;
	input->shape[0] = (int64_t)samples;
	if (f->max_sequence_length)
		input->shape[input->rank++] = f->max_sequence_length;
}

size_t input_sample(const struct input *input, size_t position)
{
	size_t low = 0, high = input->samples;

	if (input->form == INPUT_DENSE)
		return position;
	/* the last sample that begins at or before it; those of no ids come earlier */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if ((uint64_t)input->offsets[middle] <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}
