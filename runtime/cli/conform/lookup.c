// SPDX-License-Identifier: MIT
/*
 * The step lookup of a vector: a lookup on the CPU, over the tables of the open engine.
 *
 * Handle, inputs and answers live for one step.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "input.h"
#include "model.h"
#include "value.h"

/* One feature that is looked up. */
struct answer {
	struct embeng_serving_input in;
	const char *name;
	struct output_shape shape;
};

struct answers {
	size_t count;
	struct answer *each;
	struct arrays *kept;
};

/* Lengths of ragged rows as splits; the library takes these alone. */
static int64_t *splits_of(struct arrays *a)
{
	int64_t *splits = realloc(a->places, (a->place_count + 1) * sizeof(*splits)), total = 0;

	if (!splits)
		return NULL;
	for (size_t i = 0; i <= a->place_count; i++) {
		int64_t length = i < a->place_count ? splits[i] : 0;

		splits[i] = total;
		total += length;
	}
	a->places = splits;
	a->place_count++;
	return splits;
}

static int set_input(struct run *r, struct arrays *a, struct embeng_serving_input *in)
{
	in->size = sizeof(*in);
	in->type = EMBENG_I64;
	in->ids = a->ids;
	in->id_count = a->id_count;
	in->weights = a->weights;
	in->weight_count = a->weight_count;
	if (a->form == INPUT_LENGTHS && !splits_of(a))
		return run_fail(r, -ENOMEM, "out of memory");
	switch (a->form) {
	case INPUT_DENSE:
	case INPUT_SPARSE:
		in->form = a->form == INPUT_DENSE ? EMBENG_DENSE : EMBENG_SPARSE;
		in->indices = a->places;
		in->shape = a->shape;
		in->rank = a->rank;
		return 0;
	default:
		in->form = EMBENG_RAGGED;
		in->row_splits = a->places;
		in->split_count = a->place_count;
		return 0;
	}
}

/* The input, and room for what comes out. */
static int take_input(struct run *r, const struct embeng_serving *serving, const char *name,
		      const struct json *input, struct answers *answers)
{
	struct answer *a = &answers->each[answers->count];
	int err;

	a->name = name;
	a->in.feature = embeng_model_feature(embeng_serving_model(serving), name);
	if (a->in.feature < 0)
		return run_fail(r, -ENOENT, "there is no feature '%s'", name);
	err = input_read(r, name, input, &answers->kept);
	if (!err)
		err = set_input(r, answers->kept, &a->in);
	if (err)
		return err;
	err = embeng_serving_shape(serving, &a->in, a->shape.shape, &a->shape.rank);
	if (err)
		return run_library(r, err);
	answers->count++;
	a->in.out_elements = shape_elements(&a->shape);
	a->in.out = malloc((a->in.out_elements + 1) * sizeof(*a->in.out));
	return a->in.out ? 0 : run_fail(r, -ENOMEM, "out of memory");
}

static int look_up_features(struct run *r, const struct embeng_serving *serving,
			    const struct json *features, struct answers *answers)
{
	struct embeng_serving_input *inputs;
	int err;

	answers->each = calloc(json_length(features) + 1, sizeof(*answers->each));
	if (!answers->each)
		return run_fail(r, -ENOMEM, "out of memory");
	for (size_t i = 0; i < json_length(features); i++) {
		const char *name = json_name(features, i);
		const struct json *input = json_at(features, i);
		err = take_input(r, serving, name, input, answers);
		if (err)
			return err;
	}
	inputs = calloc(answers->count + 1, sizeof(*inputs));
	if (!inputs)
		return run_fail(r, -ENOMEM, "out of memory");
	for (size_t i = 0; i < answers->count; i++)
		inputs[i] = answers->each[i].in;
	err = embeng_serving_lookup(serving, inputs, answers->count);
	free(inputs);
	return err ? run_library(r, err) : 0;
}

static const struct answer *find_answer(const struct answers *answers, const char *name)
{
	for (size_t i = 0; i < answers->count; i++) {
		if (!strcmp(answers->each[i].name, name))
			return &answers->each[i];
	}
	return NULL;
}

static int compare_answers(struct run *r, const struct json *body, const struct answers *answers)
{
	const struct json *expect = member(body, "expect");

	for (size_t i = 0; i < json_length(expect); i++) {
		const char *name = json_name(expect, i);
		const struct json *expected = json_at(expect, i);
		const struct answer *a = find_answer(answers, name);
		int result;

		if (!a)
			return run_fail(r, -ENOENT, "feature '%s' is not looked up", name);
		result = compare_output(r, name, a->in.out, a->shape.shape, a->shape.rank, body,
					expected);
		if (result)
			return result;
	}
	return 0;
}

static void answers_free(struct answers *answers)
{
	for (size_t i = 0; i < answers->count; i++)
		free(answers->each[i].in.out);
	free(answers->each);
	inputs_free(answers->kept);
}

static int with_handle(struct run *r, const struct json *body, const struct embeng_model *config)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct answers answers = {0};
	struct embeng_serving *serving;
	int result = embeng_serving_live(r->e, config, &serving, &error);

	if (result)
		return run_fail(r, result, "%s", error.text);
	result = look_up_features(r, serving, member(body, "features"), &answers);
	if (!result)
		result = compare_answers(r, body, &answers);
	answers_free(&answers);
	embeng_serving_close(serving);
	return result;
}

int step_lookup(struct run *r, const struct json *body)
{
	const struct json *config = member(body, "config");
	struct embeng_model *model;
	int result;

	if (!config)
		return with_handle(r, body, NULL);
	model = embeng_model_new();
	if (!model)
		return run_fail(r, -ENOMEM, "out of memory");
	result = model_fill(r, config, false, model);
	if (!result)
		result = with_handle(r, body, model);
	embeng_model_free(model);
	return result;
}
