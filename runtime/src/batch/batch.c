// SPDX-License-Identifier: MIT
/*
 * Batches: making and freeing them, the checks that all kinds of input share, and the check of a
 * whole batch before it is enqueued. Each kind of input (dense, ragged, sparse, partitioned) has a
 * file of its own.
 *
 * A batch belongs to the program. It keeps pointers to the caller's arrays, which must stay until
 * the batch is enqueued, and owns the offsets that it computes. One thread uses a batch at a time;
 * no lock is taken.
 */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "partitioned.h"

static int batch_arguments(struct embeng *e, enum embeng_mode mode, uint32_t replica)
{
	int ret = session_check_replica(e, replica, "embeng_batch_new");

	if (!ret && mode != EMBENG_TRAIN && mode != EMBENG_INFERENCE)
		ret = fail(-EINVAL, "mode %d is neither EMBENG_TRAIN nor EMBENG_INFERENCE",
			   (int)mode);
	return ret;
}

struct embeng_batch *embeng_batch_new(struct embeng *e, enum embeng_mode mode, uint32_t replica)
{
	struct embeng_batch *b;
	size_t count;

	if (batch_arguments(e, mode, replica))
		return NULL;
	count = embeng_model_feature_count(embeng_get_model(e));
	b = calloc(1, sizeof(*b));
	if (b)
		b->inputs = calloc(count + 1, sizeof(*b->inputs));
	if (!b || !b->inputs) {
		free(b);
		fail(-ENOMEM, "no memory for a batch of %zu features", count);
		return NULL;
	}
	b->e = e;
	b->mode = mode;
	b->replica = replica;
	b->count = count;
	return b;
}

/* Forgets what was handed in; the memory stays. */
static void input_clear(struct input *input)
{
	const struct input kept = {.own_offsets = input->own_offsets,
				   .own_capacity = input->own_capacity,
				   .own_ids = input->own_ids,
				   .own_id_bytes = input->own_id_bytes};

	free(input->error_text);
	*input = kept;
}

void embeng_batch_reset(struct embeng_batch *b, enum embeng_mode mode)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++)
		input_clear(&b->inputs[i]);
	partitioned_free(b->partitioned);
	b->partitioned = NULL;
	b->mode = mode;
}

void embeng_batch_free(struct embeng_batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++) {
		input_clear(&b->inputs[i]);
		free(b->inputs[i].own_offsets);
		free(b->inputs[i].own_ids);
	}
	partitioned_free(b->partitioned);
	free(b->inputs);
	free(b);
}

int input_feature(const struct embeng_model *model, int feature, const struct feature **f)
{
	if (feature < 0 || (size_t)feature >= model->feature_count)
		return fail(-ENOENT, "there is no feature %d; the model has %zu features", feature,
			    model->feature_count);
	*f = &model->features[feature];
	return 0;
}

struct input *input_begin(struct embeng_batch *b, int feature, const struct feature **f, int *code)
{
	if (!b) {
		*code = fail(-EINVAL, "an input needs a batch; NULL was given");
		return NULL;
	}
	*code = session_check(b->e, "embeng_batch");
	if (!*code)
		*code = input_feature(embeng_get_model(b->e), feature, f);
	if (*code)
		return NULL;
	input_clear(&b->inputs[feature]);
	return &b->inputs[feature];
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
	if (in->weight_count != in->id_count)
		return fail(-EINVAL,
			    "feature %s: %zu weights for %zu ids; give one weight for each id",
			    f->name, in->weight_count, in->id_count);
	return 0;
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

static int check_input(const struct feature *f, const struct input *input)
{
	if (input->error)
		return fail(input->error, "%s",
			    input->error_text ? input->error_text
					      : "an input was refused, and there was no memory to "
						"keep the reason");
	if (input->form == INPUT_NONE)
		return fail(-EINVAL,
			    "feature %s: the batch has no input for it; every feature needs "
			    "one",
			    f->name);
	return 0;
}

int batch_check(const struct embeng_batch *b, const struct output *outputs, struct output *resolved)
{
	const struct embeng_model *model = embeng_get_model(b->e);
	struct output shape;
	int code;

	for (size_t i = 0; i < b->count; i++) {
		code = check_input(&model->features[i], &b->inputs[i]);
		if (!code)
			code = shape_resolve(&model->features[i], &b->inputs[i], &outputs[i],
					     &shape);
		if (code)
			return code;
	}
	for (size_t i = 0; i < b->count; i++)
		shape_resolve(&model->features[i], &b->inputs[i], &outputs[i], &resolved[i]);
	return 0;
}
