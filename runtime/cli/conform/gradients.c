// SPDX-License-Identifier: MIT
/*
 * The steps apply_gradients, update and expect_gradients of a vector: reads gradients and rates, and
 * hands them in, or looks at what the library tells of them.
 *
 * The arrays live for one step; the library copies them.
 */
#include <errno.h>
#include <stdlib.h>

#include "compare.h"
#include "hosts.h"
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

/* @count: elements of a gradient that is no nested list. */
static int keep_gradient(struct run *r, int feature, const struct json *gradient, size_t count,
			 struct handed_in *in)
{
	bool nested = json_is(gradient, JSON_ARRAY);
	float *data;

	if (nested)
		count = nested_count(gradient);
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

/* With no activations so far there is no shape: the library refuses the call as a whole. */
static int take_shaped(struct run *r, int feature, const char *name, const struct json *gradient,
		       struct handed_in *in)
{
	const struct output_shape *shape = &r->shapes[feature];

	if (!shape->rank)
		return 0;
	if (json_is(gradient, JSON_ARRAY) && !nested_has_shape(gradient, shape->shape, shape->rank))
		return run_fail(r, -EINVAL,
				"feature '%s': the gradient must have the shape of the activations",
				name);
	return keep_gradient(r, feature, gradient, shape_elements(shape), in);
}

/* @shaped: it answers activations that were seen; otherwise the library alone knows the shape. */
static int take_gradient(struct run *r, const char *name, const struct json *gradient, bool shaped,
			 struct handed_in *in)
{
	int feature = embeng_model_feature(r->model, name);

	if (feature < 0)
		return run_fail(r, -ENOENT, "there is no feature '%s'", name);
	if (json_is(gradient, JSON_NULL))
		return 0;
	if (shaped)
		return take_shaped(r, feature, name, gradient, in);
	if (!json_is(gradient, JSON_ARRAY))
		return run_fail(r, -EINVAL,
				"feature '%s': the gradient of an update must be nested lists or "
				"null",
				name);
	return keep_gradient(r, feature, gradient, 0, in);
}

/* @b: the batch of an update, or NULL: they are for the batch that was dequeued. */
static int hand_in(struct run *r, struct embeng_batch *b, uint32_t replica, const struct json *body,
		   const struct handed_in *in)
{
	const struct json *multiplier = member(body, "multiplier");
	struct embeng_gradients gradients = EMBENG_INIT(
		embeng_gradients, .replica = replica, .count = in->count,
		.features = (const float *const *)in->features, .elements = in->elements,
		.rates = in->rates, .rate_count = in->rate_count,
		.multiplier = multiplier ? (float)value_number(multiplier) : 0,
		.has_multiplier = multiplier != NULL, .sums = bool_member(body, "sums", false));
	int err = b ? embeng_update(r->e, b, &gradients, r->wait_ns)
		    : embeng_apply_gradients(r->e, &gradients, r->wait_ns);

	return err ? run_library(r, err) : 0;
}

static int read_given(struct run *r, bool shaped, const struct json *body, uint32_t *replica,
		      struct handed_in *in)
{
	const struct json *given = member(body, "gradients");
	int err = step_replica(r, body, replica);

	if (!err)
		err = set_up(r, member(body, "learning_rates"), in);
	for (size_t i = 0; !err && i < json_length(given); i++)
		err = take_gradient(r, json_name(given, i), json_at(given, i), shaped, in);
	return err;
}

int update_made(struct run *r, struct embeng_batch *b, const struct json *body)
{
	struct handed_in in = {0};
	uint32_t replica = 0;
	int err = read_given(r, !b, body, &replica, &in);

	if (!err)
		err = hand_in(r, b, replica, body, &in);
	tear_down(&in);
	return err;
}

int step_apply_gradients(struct run *r, const struct json *body)
{
	uint32_t replica = 0;

	if (!step_replica(r, body, &replica) && vector_hosts_elsewhere(r, replica))
		return STEP_ELSEWHERE;
	return update_made(r, NULL, body);
}

static int compare_number(struct run *r, const struct json *body, const char *where,
			  const char *name, double got, const struct json *expected)
{
	struct comparison c = comparison_start(body);
	const float numbers[] = {(float)got, (float)value_number(expected)};
	const int64_t shape[] = {1};

	compare_floats(&c, &numbers[0], &numbers[1], 1);
	return comparison_end(&c, r, where, name, shape, 1);
}

static int compare_norms(struct run *r, struct embeng_batch *b, const struct embeng_gradients *g,
			 const struct json *body, double *tables)
{
	const struct json *wanted = member(body, "tables"), *norm = member(body, "norm");
	struct embeng_gradient_norms norms = {
		.size = sizeof(norms),
		.tables = tables,
		.table_count = embeng_model_table_count(r->model),
	};
	int err = embeng_gradient_norm(r->e, &b, &g, 1, &norms);

	if (err)
		return run_library(r, err);
	if (norm)
		err = compare_number(r, body, "table", "all", norms.norm, norm);
	for (size_t i = 0; !err && i < json_length(wanted); i++) {
		const char *name = json_name(wanted, i);
		int table = embeng_model_table(r->model, name);

		if (table < 0)
			return run_fail(r, -ENOENT, "there is no table '%s'", name);
		err = compare_number(r, body, "table", name, tables[table], json_at(wanted, i));
	}
	return err;
}

/* The weights of one feature, all others being left out. */
static int compare_weights(struct run *r, struct embeng_batch *b, const struct embeng_gradients *g,
			   const struct json *body, const char *name, const struct json *expected)
{
	int feature = embeng_model_feature(r->model, name), err;
	size_t count = json_is(expected, JSON_ARRAY) ? nested_count(expected) : 0;
	float **weights = calloc(g->count + 1, sizeof(*weights));
	size_t *counts = calloc(g->count + 1, sizeof(*counts));
	float *got = malloc((count + 1) * sizeof(*got));

	if (!weights || !counts || !got) {
		err = run_fail(r, -ENOMEM, "out of memory");
	} else if (feature < 0) {
		err = run_fail(r, -ENOENT, "there is no feature '%s'", name);
	} else {
		weights[feature] = got;
		counts[feature] = count;
		err = embeng_weight_gradients(r->e, b, g, weights, counts, g->count);
		err = err ? run_library(r, err)
			  : compare_output(r, name, got, (int64_t[]){(int64_t)count}, 1, body,
					   expected);
	}
	free(weights);
	free(counts);
	free(got);
	return err;
}

int gradients_made(struct run *r, struct embeng_batch *b, const struct json *body)
{
	const struct json *weights = member(body, "weights");
	double *tables = calloc(embeng_model_table_count(r->model) + 1, sizeof(*tables));
	struct embeng_gradients g = {.size = sizeof(g)};
	struct handed_in in = {0};
	int err = read_given(r, false, body, &g.replica, &in);

	g.count = in.count;
	g.features = (const float *const *)in.features;
	g.elements = in.elements;
	if (!err && !tables)
		err = run_fail(r, -ENOMEM, "out of memory");
	if (!err)
		err = compare_norms(r, b, &g, body, tables);
	for (size_t i = 0; !err && i < json_length(weights); i++)
		err = compare_weights(r, b, &g, body, json_name(weights, i), json_at(weights, i));
	tear_down(&in);
	free(tables);
	return err;
}
