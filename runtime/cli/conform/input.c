// SPDX-License-Identifier: MIT
/*
 * Reads the inputs of a vector's steps as arrays. A nested form may hold what flat arrays cannot
 * say (weights row by row, indices of differing rank), so such faults are found here.
 *
 * The arrays are a list that the step owns until inputs_free().
 */
#include <errno.h>
#include <stdlib.h>

#include "input.h"
#include "value.h"

void inputs_free(struct arrays *inputs)
{
	while (inputs) {
		struct arrays *next = inputs->next;

		free(inputs->ids);
		free(inputs->places);
		free(inputs->shape);
		free(inputs->weights);
		free(inputs);
		inputs = next;
	}
}

static int fail_for_memory(struct run *r)
{
	return run_fail(r, -ENOMEM, "out of memory");
}

static bool is_nested(const struct json *list)
{
	return list_length(list) && json_is(json_at(list, 0), JSON_ARRAY);
}

static int64_t *flatten_integers(const struct json *lists)
{
	int64_t *out = malloc((nested_count(lists) + 1) * sizeof(*out)), *at = out;

	for (size_t i = 0; out && i < list_length(lists); i++) {
		const struct json *list = json_at(lists, i);

		for (size_t j = 0; j < list_length(list); j++)
			*at++ = json_int64(json_at(list, j));
	}
	return out;
}

static int take_flat_weights(struct run *r, const struct json *weights, const char *name,
			     struct arrays *a)
{
	if (!weights)
		return 0;
	if (is_nested(weights))
		return run_fail(r, -EINVAL,
				"feature '%s': the weights are nested, but the ids are a flat list",
				name);
	a->weights = list_floats(weights);
	a->weight_count = list_length(weights);
	return a->weights ? 0 : fail_for_memory(r);
}

static int read_dense(struct run *r, const char *name, const struct json *input, struct arrays *a)
{
	const struct json *ids = member(input, "dense"), *shape = member(input, "shape");

	a->form = INPUT_DENSE;
	a->id_count = list_length(ids);
	a->ids = list_integers(ids);
	a->rank = shape ? list_length(shape) : 1;
	a->shape = list_integers(shape);
	if (!a->ids || !a->shape)
		return fail_for_memory(r);
	if (!shape)
		a->shape[0] = (int64_t)a->id_count;
	return take_flat_weights(r, member(input, "weights"), name, a);
}

static int check_index_ranks(struct run *r, const struct json *indices, size_t rank,
			     const char *name)
{
	for (size_t i = 0; i < list_length(indices); i++) {
		size_t given = list_length(json_at(indices, i));

		if (given != rank)
			return run_fail(r, -EINVAL,
					"feature '%s': index %zu has %zu numbers; the rank is %zu",
					name, i, given, rank);
	}
	return 0;
}

static int read_sparse(struct run *r, const char *name, const struct json *input, struct arrays *a)
{
	const struct json *coo = member(input, "sparse");
	const struct json *indices = member(coo, "indices"), *values = member(coo, "values");
	int err;

	a->form = INPUT_SPARSE;
	a->rank = list_length(member(coo, "shape"));
	a->id_count = list_length(values);
	err = check_index_ranks(r, indices, a->rank, name);
	if (!err)
		err = take_flat_weights(r, member(input, "weights"), name, a);
	if (err)
		return err;
	if (list_length(indices) != a->id_count)
		return run_fail(r, -EINVAL, "feature '%s': there are %zu indices for %zu values",
				name, list_length(indices), a->id_count);
	a->ids = list_integers(values);
	a->shape = list_integers(member(coo, "shape"));
	a->places = flatten_integers(indices);
	return a->ids && a->shape && a->places ? 0 : fail_for_memory(r);
}

static int read_ragged_splits(struct run *r, const char *name, const struct json *input,
			      struct arrays *a)
{
	const struct json *ragged = member(input, "ragged");
	const struct json *values = member(ragged, "values");
	const struct json *splits = member(ragged, "row_splits");

	a->form = INPUT_SPLITS;
	a->id_count = list_length(values);
	a->place_count = list_length(splits);
	a->ids = list_integers(values);
	a->places = list_integers(splits);
	if (!a->ids || !a->places)
		return fail_for_memory(r);
	return take_flat_weights(r, member(input, "weights"), name, a);
}

/* Weights of ragged rows: as many rows, each as long. */
static int check_row_weights(struct run *r, const struct json *rows, const struct json *weights,
			     const char *name)
{
	if (list_length(weights) != list_length(rows))
		return run_fail(r, -EINVAL,
				"feature '%s': there are %zu rows of weights for %zu rows of ids",
				name, list_length(weights), list_length(rows));
	for (size_t i = 0; i < list_length(rows); i++) {
		size_t ids = list_length(json_at(rows, i));
		const struct json *row = json_at(weights, i);

		if (!json_is(row, JSON_ARRAY))
			return run_fail(r, -EINVAL,
					"feature '%s': weights must be nested like the rows", name);
		if (list_length(row) != ids)
			return run_fail(r, -EINVAL,
					"feature '%s': row %zu has %zu weights for %zu ids", name,
					i, list_length(row), ids);
	}
	return 0;
}

static int read_ragged_rows(struct run *r, const char *name, const struct json *input,
			    struct arrays *a)
{
	const struct json *rows = member(member(input, "ragged"), "rows");
	const struct json *weights = member(input, "weights");
	int err = weights ? check_row_weights(r, rows, weights, name) : 0;

	if (err)
		return err;
	a->form = INPUT_LENGTHS;
	a->place_count = list_length(rows);
	a->places = malloc((a->place_count + 1) * sizeof(*a->places));
	a->ids = flatten_integers(rows);
	if (weights)
		a->weights = list_floats(weights);
	if (!a->places || !a->ids || (weights && !a->weights))
		return fail_for_memory(r);
	for (size_t i = 0; i < a->place_count; i++) {
		size_t length = list_length(json_at(rows, i));

		a->places[i] = (int64_t)length;
		a->id_count += length;
	}
	a->weight_count = weights ? a->id_count : 0;
	return 0;
}

int input_read(struct run *r, const char *name, const struct json *input, struct arrays **kept)
{
	struct arrays *a = calloc(1, sizeof(*a));

	if (!a)
		return fail_for_memory(r);
	a->next = *kept;
	*kept = a;
	if (member(input, "dense"))
		return read_dense(r, name, input, a);
	if (member(input, "sparse"))
		return read_sparse(r, name, input, a);
	if (member(member(input, "ragged"), "rows"))
		return read_ragged_rows(r, name, input, a);
	return read_ragged_splits(r, name, input, a);
}
