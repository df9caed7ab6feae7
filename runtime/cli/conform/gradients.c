// SPDX-License-Identifier: MIT
/*
 * The step apply_gradients of a vector: reads gradients and rates, and hands them in.
 *
 * The arrays live for one step; the library copies them.
 */
#include <errno.h>
#include <stdlib.h>

#include "run.h"
#include "value.h"

/* Arrays by feature, in feature order. */
struct handed_in {
	size_t count;
	float **features;
	size_t *elements;
	struct embeng_rate *rates;
	size_t rate_count;
};

static int set_up(struct run *r, const struct json *rates, struct handed_in *in)
{
	size_t rate_count = json_length(rates);

	in->count = embeng_model_feature_count(r->model);
	in->features = calloc(in->count + 1, sizeof(*in->features));
	in->elements = calloc(in->count + 1, sizeof(*in->elements));
	in->rates = calloc(rate_count + 1, sizeof(*in->rates));
	if (!in->features || !in->elements || !in->rates)
		return run_fail(r, -ENOMEM, "out of memory");
	for (; in->rate_count < rate_count; in->rate_count++) {
		in->rates[in->rate_count].name = json_name(rates, in->rate_count);
		in->rates[in->rate_count].value = (float)value_number(
			json_at(rates, in->rate_count));
	}
	return 0;
}

static void tear_down(struct handed_in *in)
{
	for (size_t i = 0; in->features && i < in->count; i++)
		free(in->features[i]);
	free(in->features);
	free(in->elements);
	free(in->rates);
}

/* With no activations so far there is no shape: the library refuses the call as a whole. */
static int take_gradient(struct run *r, const char *name, const struct json *gradient,
			 struct handed_in *in)
{
	int feature = embeng_model_feature(r->model, name);
	const struct output_shape *shape;
	bool nested = json_is(gradient, JSON_ARRAY);
	size_t count;
	float *data;

	if (feature < 0)
		return run_fail(r, -ENOENT, "there is no feature '%s'", name);
	shape = &r->shapes[feature];
	if (json_is(gradient, JSON_NULL) || !shape->rank)
		return 0;
	if (nested && !nested_has_shape(gradient, shape->shape, shape->rank))
		return run_fail(r, -EINVAL,
				"feature '%s': the gradient must have the shape of the activations",
				name);
	count = shape_elements(shape);
	data = malloc((count + 1) * sizeof(*data));
	if (!data)
		return run_fail(r, -ENOMEM, "out of memory");
	if (nested)
		nested_flatten(gradient, data);
	else
		matrix_rows(gradient, NULL, 0, 1, count, data);
	in->features[feature] = data;
	in->elements[feature] = count;
	return 0;
}

static int hand_in(struct run *r, uint32_t replica, const struct json *multiplier,
		   const struct handed_in *in)
{
	struct embeng_gradients gradients = {
		.size = sizeof(gradients),
		.replica = replica,
		.count = in->count,
		.features = (const float *const *)in->features,
		.elements = in->elements,
		.rates = in->rates,
		.rate_count = in->rate_count,
		.multiplier = multiplier ? (float)value_number(multiplier) : 0,
		.has_multiplier = multiplier != NULL,
	};
	int err = embeng_apply_gradients(r->e, &gradients, 0);

	return err ? run_library(r, err) : 0;
}

int step_apply_gradients(struct run *r, const struct json *body)
{
	const struct json *given = member(body, "gradients");
	struct handed_in in = {0};
	uint32_t replica = 0;
	int err = step_replica(r, body, &replica);

	if (!err)
		err = set_up(r, member(body, "learning_rates"), &in);
	for (size_t i = 0; !err && i < json_length(given); i++)
		err = take_gradient(r, json_name(given, i), json_at(given, i), &in);
	if (!err)
		err = hand_in(r, replica, member(body, "multiplier"), &in);
	tear_down(&in);
	return err;
}
