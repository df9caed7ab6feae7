// SPDX-License-Identifier: MIT
/*
 * Puts the inputs of a vector's enqueue step into a batch.
 *
 * The arrays belong to the step, which frees them after the batch was enqueued.
 */
#include <errno.h>

#include "input.h"

static int add_arrays(struct embeng_batch *b, int feature, const struct arrays *a)
{
	switch (a->form) {
	case INPUT_DENSE:
		return embeng_batch_dense(b, feature, EMBENG_I64, a->ids, a->id_count, a->shape,
					  a->rank);
	case INPUT_SPARSE:
		return embeng_batch_sparse(b, feature, EMBENG_I64, a->places, a->ids, a->id_count,
					   a->shape, a->rank, a->weights, a->weight_count);
	case INPUT_LENGTHS:
		return embeng_batch_ragged(b, feature, EMBENG_I64, a->ids, a->id_count, a->places,
					   a->place_count, a->weights, a->weight_count);
	default:
		return embeng_batch_ragged_splits(b, feature, EMBENG_I64, a->ids, a->id_count,
						  a->places, a->place_count, a->weights,
						  a->weight_count);
	}
}

static int input_add(struct run *r, struct embeng_batch *b, const char *name,
		     const struct json *input, struct arrays **kept)
{
	int feature = embeng_model_feature(r->model, name), err;

	if (feature < 0)
		return run_fail(r, -ENOENT, "there is no feature '%s'", name);
	err = input_read(r, name, input, kept);
	if (err)
		return err;
	if ((*kept)->form == INPUT_DENSE && (*kept)->weights)
		return run_fail(r, -EINVAL,
				"feature '%s': dense takes no weights; give ragged or sparse",
				name);
	err = add_arrays(b, feature, *kept);
	return err ? run_library(r, err) : 0;
}

int inputs_add(struct run *r, struct embeng_batch *b, const struct json *features,
	       struct arrays **kept)
{
	for (size_t i = 0; i < json_length(features); i++) {
		const char *name = json_name(features, i);
		const struct json *input = json_at(features, i);
		int err = input_add(r, b, name, input, kept);

		if (err)
			return err;
	}
	return 0;
}

int batch_begin(struct run *r, enum embeng_mode mode, uint32_t replica, struct embeng_batch **b)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	*b = embeng_batch_new(r->e, mode, replica);
	if (*b)
		return 0;
	embeng_last_error(&error);
	return run_fail(r, error.code, "%s", error.text);
}
