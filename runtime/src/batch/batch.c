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

#include "input.h"
#include "partitioned.h"

static int batch_arguments(struct embeng *e, enum embeng_mode mode, uint32_t replica)
{
	int ret = session_check_feeder(e, replica, mode, "embeng_batch_new");

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

void embeng_batch_reset(struct embeng_batch *b, enum embeng_mode mode)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++)
		input_clear(&b->inputs[i]);
	partitioned_free(b->partitioned);
	b->partitioned = NULL;
	b->mode = mode;
	/* As a new one, it needs an input for each feature. Without memory it is grown at its use. */
	batch_grow(b, false);
}

void embeng_batch_free(struct embeng_batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++) {
		input_clear(&b->inputs[i]);
		free(b->inputs[i].own_offsets);
		free(b->inputs[i].own_ids);
		free(b->inputs[i].own_weights);
	}
	partitioned_free(b->partitioned);
	free(b->inputs);
	free(b);
}

static int check_given_input(const struct feature *f, const struct input *input)
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
		code = check_given_input(&model->features[i], &b->inputs[i]);
		if (!code && model->engine.fixed_shapes)
			code = shape_check_filled(&model->features[i], &b->inputs[i]);
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
