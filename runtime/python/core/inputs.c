// SPDX-License-Identifier: MIT
/*
 * Inputs of a batch: a dictionary from names of features to what the program holds for each. An array
 * of one dimension has one id a sample, one of two dimensions has a bag in each row; embeng.Ragged
 * and embeng.Sparse are bags of any length.
 *
 * Arrays are held in the call's struct input until engine_call_put().
 */
#include "core.h"

#include <errno.h>

/* Members of embeng.Ragged, in its order. */
enum {
	RAGGED_VALUES,
	RAGGED_SPLITS,
	RAGGED_LENGTHS,
	RAGGED_STARTS,
	RAGGED_WEIGHTS,
	RAGGED_PADDING,
	RAGGED_COUNT
};
/* Members of embeng.Sparse, in its order; tuples of another length are none. */
enum { SPARSE_INDICES, SPARSE_VALUES, SPARSE_SHAPE, SPARSE_WEIGHTS, SPARSE_COUNT };

struct place {
	struct engine_object *engine;
	struct embeng_batch *batch;
	struct input *input;
	int feature;
};

#define PART(place, text) \
	(&(struct part){(place)->engine->layout.features[(place)->feature].name, text})

static int fail_call(struct place *place, int ret)
{
	if (!ret)
		return 0;
	core_fail(place->engine->state);
	return -1;
}

/* Ids that equal the padding are as if they were not there. */
static int read_padding(struct place *place, PyObject *padding, struct embeng_bags *bags)
{
	PyObject *index;

	if (!padding)
		return 0;
	index = PyNumber_Index(padding);
	if (!index && !PyErr_ExceptionMatches(PyExc_TypeError))
		return -1;
	PyErr_Clear();
	bags->has_padding = 1;
	bags->padding = index ? PyLong_AsLongLong(index) : -1;
	if (index && !PyErr_Occurred()) {
		Py_DECREF(index);
		return 0;
	}
	PyErr_Clear();
	Py_XDECREF(index);
	return part_fail(PyExc_ValueError, PART(place, "padding"),
			 "%R is no whole number of 64 bits", padding);
}

static int give_bags(struct place *place, struct embeng_bags *bags)
{
	const struct input *input = place->input;

	bags->size = sizeof(*bags);
	bags->type = array_id_type(&input->ids);
	bags->ids = input->ids.data;
	bags->id_count = input->ids.count;
	if (input->weights.owner) {
		bags->weights = input->weights.data;
		bags->weight_count = input->weights.count;
	}
	place->input->form = INPUT_BAGS;
	place->input->bags = *bags;
	place->input->sequence = place->engine->layout.features[place->feature].sequence_length > 0;
	return fail_call(place, embeng_batch_bags(place->batch, place->feature, bags));
}

/* An array alone: ids of one sample each, or a matrix of bags. */
static int give_array(struct place *place, PyObject *weights, PyObject *padding)
{
	struct input *input = place->input;
	const struct array *ids = &input->ids;
	struct embeng_bags bags = {.form = EMBENG_BAGS_EVEN, .length = 1};

	if (ids->rank < 1 || ids->rank > 2) {
		return part_fail(PyExc_ValueError, PART(place, "ids"),
				 "the array has %d dimensions; give [samples] or [samples, ids]",
				 ids->rank);
	}
	input->samples = (size_t)ids->shape[0];
	input->sequence = false;
	input->form = INPUT_DENSE;
	if (ids->rank == 1 && !weights && !padding)
		return fail_call(place, embeng_batch_dense(place->batch, place->feature,
							   array_id_type(ids), ids->data,
							   ids->count, ids->shape, 1));
	bags.bound_count = input->samples;
	if (ids->rank == 2)
		bags.length = ids->shape[1];
	return read_padding(place, padding, &bags) ? -1 : give_bags(place, &bags);
}

/* Weights have the shape of their ids, or are as many in one dimension. */
static int take_weights(struct place *place, PyObject *weights)
{
	struct input *input = place->input;

	if (!weights)
		return 0;
	if (array_get_floats(place->engine->state, weights, PART(place, "weights"),
			     &input->weights))
		return -1;
	if (input->weights.count == input->ids.count)
		return 0;
	return part_fail(PyExc_ValueError, PART(place, "weights"), "there are %zu, for %zu ids",
			 input->weights.count, input->ids.count);
}

static int give_bounded(struct place *place, PyObject *bounds, enum embeng_bags_form form,
			PyObject *padding)
{
	static const char *const forms[] = {"splits", "starts", "lengths"};
	struct input *input = place->input;
	struct embeng_bags bags = {.form = form};

	if (array_get_ids(place->engine->state, bounds, PART(place, forms[form]), &input->bounds))
		return -1;
	if (input->ids.rank > 1 || input->bounds.rank != 1) {
		return part_fail(PyExc_ValueError, PART(place, forms[form]),
				 "these and the values have one dimension");
	}
	input->samples = input->bounds.count;
	if (form == EMBENG_BAGS_SPLITS)
		input->samples -= input->samples > 0;
	bags.bound_type = array_id_type(&input->bounds);
	bags.bounds = input->bounds.data;
	bags.bound_count = input->bounds.count;
	return read_padding(place, padding, &bags) ? -1 : give_bags(place, &bags);
}

/* A subclass of a named tuple may be made with any number of members. */
static int check_members(struct place *place, PyObject *tuple, int count)
{
	if (PyTuple_Size(tuple) == count)
		return 0;
	return part_fail(PyExc_ValueError, PART(place, "the input"), "%R has %zd members, not %d",
			 (PyObject *)Py_TYPE(tuple), PyTuple_Size(tuple), count);
}

static PyObject *get_member(PyObject *tuple, int at)
{
	PyObject *member = PyTuple_GetItem(tuple, at);

	return member == Py_None ? NULL : member;
}

static int give_ragged(struct place *place, PyObject *ragged)
{
	static const int members[] = {RAGGED_SPLITS, RAGGED_STARTS, RAGGED_LENGTHS};
	PyObject *padding, *weights, *bounds = NULL;
	int form = -1, count = 0;

	if (check_members(place, ragged, RAGGED_COUNT))
		return -1;
	padding = get_member(ragged, RAGGED_PADDING);
	weights = get_member(ragged, RAGGED_WEIGHTS);
	for (int k = 0; k < 3; k++)
		if (get_member(ragged, members[k])) {
			bounds = get_member(ragged, members[k]);
			form = k;
			count++;
		}
	if (count > 1) {
		return part_fail(PyExc_ValueError, PART(place, "a ragged input"),
				 "it has two of splits, lengths and starts");
	}
	if (array_get_ids(place->engine->state, PyTuple_GetItem(ragged, RAGGED_VALUES),
			  PART(place, "values"), &place->input->ids) ||
	    take_weights(place, weights))
		return -1;
	return bounds ? give_bounded(place, bounds, form, padding)
		      : give_array(place, weights, padding);
}

static int read_shape(struct place *place, PyObject *object, int64_t *shape, size_t *rank)
{
	Py_ssize_t count;

	if (!PySequence_Check(object))
		return part_fail(PyExc_TypeError, PART(place, "shape"), "%R has no lengths",
				 object);
	count = PySequence_Size(object);
	if (count < 0)
		return -1;
	if (count < 2 || count > EMBENG_MAX_RANK + 1) {
		return part_fail(PyExc_ValueError, PART(place, "shape"),
				 "it has %zd lengths; give 2 to %d", count, EMBENG_MAX_RANK + 1);
	}
	*rank = (size_t)count;
	for (Py_ssize_t k = 0; k < count; k++) {
		PyObject *length = PySequence_GetItem(object, k);

		shape[k] = length ? PyLong_AsLongLong(length) : -1;
		Py_XDECREF(length);
		if (PyErr_Occurred())
			return -1;
	}
	return 0;
}

static int give_sparse(struct place *place, PyObject *sparse)
{
	struct core_state *state = place->engine->state;
	struct input *input = place->input;
	int64_t *shape = input->shape, samples = 1;
	PyObject *weights;
	size_t rank = 0;

	if (check_members(place, sparse, SPARSE_COUNT))
		return -1;
	weights = get_member(sparse, SPARSE_WEIGHTS);
	if (read_shape(place, PyTuple_GetItem(sparse, SPARSE_SHAPE), shape, &rank) ||
	    array_get_ids(state, PyTuple_GetItem(sparse, SPARSE_VALUES), PART(place, "values"),
			  &input->ids) ||
	    take_weights(place, weights) ||
	    array_get_ids(state, PyTuple_GetItem(sparse, SPARSE_INDICES), PART(place, "indices"),
			  &input->bounds))
		return -1;
	if (input->bounds.type != ARRAY_I64 || input->bounds.count != input->ids.count * rank) {
		return part_fail(PyExc_ValueError, PART(place, "indices"),
				 "they are %zu numbers; give int64 of [%zu values][%zu lengths]",
				 input->bounds.count, input->ids.count, rank);
	}
	for (size_t k = 0; k + 1 < rank; k++)
		if (shape[k] < 0 || __builtin_mul_overflow(samples, shape[k], &samples))
			samples = 0; /* the library refuses it with the shape */
	input->samples = (size_t)samples;
	input->form = INPUT_SPARSE;
	input->rank = rank;
	input->sequence = place->engine->layout.features[place->feature].sequence_length > 0;
	return fail_call(place, embeng_batch_sparse(place->batch, place->feature,
						    array_id_type(&input->ids), input->bounds.data,
						    input->ids.data, input->ids.count, shape, rank,
						    input->weights.data, input->weights.count));
}

static int give_nothing(struct place *place)
{
	struct embeng_bags bags = {
		.size = sizeof(bags), .form = EMBENG_BAGS_EVEN, .length = 1, .type = EMBENG_I64};

	place->input->samples = 0;
	place->input->ids.count = 0;
	place->input->form = INPUT_BAGS;
	place->input->bags = bags;
	place->input->sequence = place->engine->layout.features[place->feature].sequence_length > 0;
	return fail_call(place, embeng_batch_bags(place->batch, place->feature, &bags));
}

static int give_any(struct place *place, PyObject *object)
{
	struct core_state *state = place->engine->state;

	/* A call's arrays are kept for the next one: of this one there are none yet. */
	place->input->weights.data = NULL;
	place->input->weights.count = 0;
	if (PyTuple_Check(object) && !PyTuple_CheckExact(object)) {
		if (PyObject_TypeCheck(object, (PyTypeObject *)state->bags_type))
			return give_ragged(place, object);
		if (PyObject_TypeCheck(object, (PyTypeObject *)state->sparse_type))
			return give_sparse(place, object);
	}
	if (array_get_ids(state, object, PART(place, "ids"), &place->input->ids))
		return -1;
	return give_array(place, NULL, NULL);
}

/* The first key that @known has not, as a new reference. */
static PyObject *find_stranger(PyObject *dict, PyObject *known)
{
	PyObject *keys = PyDict_Keys(dict), *found = NULL;

	for (Py_ssize_t k = 0; keys && !found && k < PyList_Size(keys); k++) {
		PyObject *key = PyList_GetItem(keys, k);
		int has = PySequence_Contains(known, key);

		if (has < 0)
			break;
		if (!has)
			found = Py_NewRef(key);
	}
	Py_XDECREF(keys);
	if (!found && !PyErr_Occurred())
		PyErr_SetString(PyExc_RuntimeError, "a dict changed while it was read");
	return found;
}

int inputs_give_nothing(struct engine_object *engine, struct call *call, struct embeng_batch *batch,
			int feature)
{
	struct place place = {.engine = engine,
			      .batch = batch,
			      .input = &call->inputs[feature],
			      .feature = feature};

	return give_nothing(&place);
}

int inputs_fail_unknown(struct engine_object *engine, const char *what, PyObject *dict)
{
	PyObject *known = PyList_New(0), *key = NULL;

	for (size_t k = 0; known && k < engine->layout.feature_count; k++)
		if (PyList_Append(known, engine->layout.features[k].name))
			Py_CLEAR(known);
	if (known)
		key = find_stranger(dict, known);
	if (key)
		core_fail_with(engine->state, -ENOENT,
			       "%s: there is no feature %R; the features are %R", what, key, known);
	Py_XDECREF(key);
	Py_XDECREF(known);
	return -1;
}

int inputs_fill(struct engine_object *engine, struct call *call, struct embeng_batch *batch,
		PyObject *features)
{
	struct place place = {.engine = engine, .batch = batch};
	Py_ssize_t found = 0;
	int ret;

	if (keyed_is(engine, features))
		return keyed_fill(engine, call, batch, features);
	if (!PyDict_Check(features)) {
		PyErr_Format(PyExc_TypeError,
			     "inputs are a dict from names of features to ids, not %R",
			     (PyObject *)Py_TYPE(features));
		return -1;
	}
	for (size_t k = 0; k < engine->layout.feature_count; k++) {
		PyObject *object = dict_find(features, engine->layout.features[k].name);

		if (!object && PyErr_Occurred())
			return -1;
		place.input = &call->inputs[k];
		place.input->given = object != NULL;
		place.feature = (int)k;
		/* Conversions run methods of the program's, which may change the dict. */
		ret = object ? give_any(&place, object) : give_nothing(&place);
		Py_XDECREF(object);
		if (ret)
			return -1;
		found += place.input->given;
	}
	return found == PyDict_Size(features) ? 0 : inputs_fail_unknown(engine, "inputs", features);
}

int rates_read(PyObject *dict, struct rates *rates)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	if (!dict || dict == Py_None)
		return 0;
	if (!PyDict_Check(dict)) {
		PyErr_SetString(PyExc_TypeError, "rates: a dict from names of rates to numbers");
		return -1;
	}
	rates->held = PyDict_Copy(dict);
	if (rates->held)
		rates->items = PyMem_Calloc((size_t)PyDict_Size(rates->held) + 1,
					    sizeof(*rates->items));
	if (!rates->items) {
		PyErr_NoMemory();
		return -1;
	}
	while (PyDict_Next(rates->held, &at, &key, &value)) {
		struct embeng_rate *rate = &rates->items[rates->count++];

		rate->name = text_read(key, "rates");
		rate->value = rate->name ? (float)PyFloat_AsDouble(value) : 0;
		if (PyErr_Occurred())
			return -1;
	}
	return 0;
}

void rates_put(struct rates *rates)
{
	PyMem_Free(rates->items);
	Py_CLEAR(rates->held);
}
