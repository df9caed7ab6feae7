// SPDX-License-Identifier: MIT
/*
 * Computes the output shapes of a model before the first batch (docs/spec/semantics.md 5.2), from a
 * batch size or from the shapes of inputs.
 *
 * All shapes are computed before any is set, so an error leaves the model as it was. The program
 * uses a model by one thread at a time; no lock is taken.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "shape.h"

/* The output's shape that an input of this shape asks for. */
static int incoming_of(const struct feature *f, const struct embeng_shape *input,
		       struct embeng_shape *output)
{
	bool sequence = f->max_sequence_length && input->rank == 2 && input->dims[1] != 1;

	if (input->rank > EMBENG_MAX_RANK)
		return fail(-EINVAL, "feature %s: an input shape of rank %zu, the most is %d",
			    f->name, input->rank, EMBENG_MAX_RANK);
	for (size_t i = 0; i < input->rank; i++) {
		if (input->dims[i] < 0)
			return fail(-ERANGE,
				    "feature %s: length %zu of its input shape is %lld; give a "
				    "length from 1, or 0 for unknown",
				    f->name, i, (long long)input->dims[i]);
	}
	*output = *input;
	if (input->rank > 1)
		output->rank--;
	if (sequence) {
		output->rank = 2;
		output->dims[1] = f->max_sequence_length;
	}
	return 0;
}

static int refuse_inconsistent(const struct feature *f, const struct embeng_shape *incoming,
			       const struct embeng_shape *known)
{
	char got[SHAPE_TEXT], allowed[SHAPE_TEXT];

	shape_text(got, incoming->dims, incoming->rank, true);
	shape_text(allowed, known->dims, known->rank, true);
	return fail(-EINVAL,
		    "feature %s: inconsistent shape: built is %s, its output_shape says %s; build "
		    "what it says, or leave it out",
		    f->name, got, allowed);
}

/* Fills the unknown lengths of either with the other's. */
static int merge_shapes(const struct feature *f, const struct embeng_shape *incoming,
			struct embeng_shape *known)
{
	struct embeng_shape merged = *incoming;

	if (!known->rank) {
		*known = merged;
		return 0;
	}
	if (incoming->rank <= 2 && known->rank > incoming->rank)
		return 0;
	if (incoming->rank != known->rank)
		return refuse_inconsistent(f, incoming, known);
	for (size_t i = 0; i < known->rank; i++) {
		if (known->dims[i] && merged.dims[i] && known->dims[i] != merged.dims[i])
			return refuse_inconsistent(f, incoming, known);
		if (known->dims[i])
			merged.dims[i] = known->dims[i];
	}
	*known = merged;
	return 0;
}

static int check_built(const struct feature *f, const struct embeng_shape *built)
{
	int64_t positions = shape_product(built->dims, built->rank, false);
	char text[SHAPE_TEXT];

	if (positions > 0)
		return 0;
	shape_text(text, built->dims, built->rank, true);
	if (positions < 0)
		return fail(-ERANGE, "feature %s: shape %s has more positions than 64 bits count",
			    f->name, text);
	return fail(-EINVAL,
		    "feature %s: its shape %s is not fully defined; give the unknown lengths, or "
		    "leave them to the batches",
		    f->name, text);
}

/* @built: out, rank 0: nothing to build. */
static int build_feature(const struct feature *f, const struct embeng_shape *input,
			 struct embeng_shape *built)
{
	struct embeng_shape incoming, known = shape_known(f);
	int ret = incoming_of(f, input, &incoming);

	*built = (struct embeng_shape){0};
	if (ret || f->built.rank || !input->rank)
		return ret;
	ret = merge_shapes(f, &incoming, &known);
	ret = ret ? ret : check_built(f, &known);
	if (!ret)
		*built = known;
	return ret;
}

static int build_features(struct embeng_model *model, const struct embeng_shape *inputs)
{
	struct embeng_shape *built = calloc(model->feature_count + 1, sizeof(*built));
	int ret = built ? 0 : fail(-ENOMEM, "no memory to build the model");

	for (size_t f = 0; !ret && f < model->feature_count; f++)
		ret = build_feature(&model->features[f], &inputs[f], &built[f]);
	for (size_t f = 0; !ret && f < model->feature_count; f++) {
		if (built[f].rank)
			model->features[f].built = built[f];
	}
	free(built);
	return ret;
}

int embeng_model_build(struct embeng_model *model, int64_t batch_size)
{
	struct embeng_shape *inputs;
	int ret;

	if (!model)
		return fail(-EINVAL, "embeng_model_build: no model given");
	if (batch_size < 1)
		return fail(-ERANGE, "embeng_model_build: batch_size %lld is below 1",
			    (long long)batch_size);
	inputs = calloc(model->feature_count + 1, sizeof(*inputs));
	if (!inputs)
		return fail(-ENOMEM, "no memory to build the model");
	/* As an input of one id each, or of any number for a sequence. */
	for (size_t f = 0; f < model->feature_count; f++)
		inputs[f] = (struct embeng_shape){
			.rank = model->features[f].max_sequence_length ? 2 : 1,
			.dims = {batch_size},
		};
	ret = build_features(model, inputs);
	free(inputs);
	return ret;
}

int embeng_model_build_shapes(struct embeng_model *model, const struct embeng_shape *shapes,
			      size_t count)
{
	if (!model || (!shapes && count))
		return fail(-EINVAL,
			    "embeng_model_build_shapes: the model and shapes must be given");
	if (count != model->feature_count)
		return fail(
			-EINVAL,
			"embeng_model_build_shapes: %zu shapes, the model has %zu features; give "
			"one for each",
			count, model->feature_count);
	return build_features(model, shapes);
}

int embeng_model_output_shape(const struct embeng_model *model, size_t feature,
			      struct embeng_shape *shape)
{
	if (!model || !shape)
		return fail(-EINVAL,
			    "embeng_model_output_shape: the model and shape must be given");
	if (feature >= model->feature_count)
		return fail(-ENOENT, "embeng_model_output_shape: feature %zu, the model has %zu",
			    feature, model->feature_count);
	*shape = shape_known(&model->features[feature]);
	return 0;
}
