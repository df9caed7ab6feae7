// SPDX-License-Identifier: MIT
/*
 * Keyed inputs: bags of several features in one array of ids, one feature after another, as torchrec's
 * KeyedJaggedTensor has them. Activations and gradients are one array, too: [samples][sum of dims] of
 * the features that are given, in the engine's order, or [elements] with the blocks of features one
 * after another where features have numbers of samples of their own.
 *
 * The arrays are held in the call's keyed members until engine_call_put().
 */
#include "core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Members of embeng.Keyed, in its order. */
enum { KEYED_FEATURES, KEYED_VALUES, KEYED_LENGTHS, KEYED_WEIGHTS, KEYED_SAMPLES, KEYED_COUNT };

/* One key while its bags are given to the features that want them. */
struct key {
	size_t samples, first_sample, first_id, ids;
};

struct keyed {
	struct engine_object *engine;
	struct call *call;
	struct embeng_batch *batch;
	PyObject *features;
	PyObject *samples; /* NULL: all keys have as many */
	size_t keys;
	struct key key;
};

#define KEYED_PART(text) (&(struct part){NULL, text})

bool keyed_is(const struct engine_object *engine, PyObject *object)
{
	return PyTuple_Check(object) && !PyTuple_CheckExact(object) &&
	       PyObject_TypeCheck(object, (PyTypeObject *)engine->state->keyed_type);
}

static PyObject *get_keyed_member(PyObject *tuple, int at)
{
	PyObject *member = PyTuple_GetItem(tuple, at);

	return member == Py_None ? NULL : member;
}

static int hold_keyed_arrays(struct keyed *keyed, PyObject *tuple)
{
	struct core_state *state = keyed->engine->state;
	struct input *held = &keyed->call->keyed;
	PyObject *lengths = get_keyed_member(tuple, KEYED_LENGTHS);
	PyObject *weights = get_keyed_member(tuple, KEYED_WEIGHTS);

	if (array_get_ids(state, PyTuple_GetItem(tuple, KEYED_VALUES), KEYED_PART("values"),
			  &held->ids) ||
	    (lengths && array_get_ids(state, lengths, KEYED_PART("lengths"), &held->bounds)) ||
	    (weights && array_get_floats(state, weights, KEYED_PART("weights"), &held->weights)))
		return -1;
	if (weights && held->weights.count != held->ids.count)
		return part_fail(PyExc_ValueError, KEYED_PART("weights"),
				 "there are %zu, for %zu ids", held->weights.count,
				 held->ids.count);
	return 0;
}

/* How many samples the next key has. */
static int count_key_samples(struct keyed *keyed, size_t at, size_t all)
{
	PyObject *number;

	if (!keyed->samples) {
		keyed->key.samples = all / keyed->keys;
		return 0;
	}
	number = PySequence_GetItem(keyed->samples, (Py_ssize_t)at);
	keyed->key.samples = number ? PyLong_AsSize_t(number) : 0;
	Py_XDECREF(number);
	if (PyErr_Occurred())
		return -1;
	if (keyed->key.samples <= all - keyed->key.first_sample)
		return 0;
	return part_fail(PyExc_ValueError, KEYED_PART("samples"),
			 "key %zu has %zu, and %zu are left of all", at, keyed->key.samples,
			 all - keyed->key.first_sample);
}

/* The ids of a key's samples, or -1. */
static int64_t add_key_lengths(const struct keyed *keyed)
{
	const struct array *lengths = &keyed->call->keyed.bounds;
	uint64_t sum = 0, bits = 0;

	if (!lengths->owner || !keyed->key.samples)
		return (int64_t)keyed->key.samples;
	for (size_t k = 0; k < keyed->key.samples; k++) {
		size_t at = keyed->key.first_sample + k;
		int64_t length = lengths->type == ARRAY_I32 ? ((const int32_t *)lengths->data)[at]
							    : ((const int64_t *)lengths->data)[at];

		bits |= (uint64_t)length;
		sum += (uint64_t)length;
	}
	/* No length is above all their bits together, so that the sum has not wrapped. */
	return bits > INT64_MAX / keyed->key.samples ? -1 : (int64_t)sum;
}

static int count_key_ids(struct keyed *keyed, size_t at)
{
	size_t left = keyed->call->keyed.ids.count - keyed->key.first_id;
	int64_t ids = add_key_lengths(keyed);

	if (ids >= 0 && (uint64_t)ids <= left) {
		keyed->key.ids = (size_t)ids;
		return 0;
	}
	if (ids < 0)
		return part_fail(PyExc_ValueError, KEYED_PART("lengths"),
				 "key %zu has one that is negative or too large", at);
	return part_fail(PyExc_ValueError, KEYED_PART("lengths"),
			 "those of key %zu add up to %lld ids, and %zu values are left of %zu", at,
			 (long long)ids, left, keyed->call->keyed.ids.count);
}

static const void *element_at(const struct array *array, size_t at)
{
	return (const char *)array->data + at * (array->type == ARRAY_I64 ? 8 : 4);
}

/* A feature's part of an array, which the call's keyed members hold. */
static void point_array(struct array *part, const void *data, enum array_type type, size_t count)
{
	part->data = (void *)(uintptr_t)data;
	part->type = type;
	part->count = count;
}

static int give_key_bags(struct keyed *keyed, size_t feature)
{
	const struct input *held = &keyed->call->keyed;
	const struct key *key = &keyed->key;
	struct input *input = &keyed->call->inputs[feature];
	struct embeng_bags bags = {.size = sizeof(bags), .form = EMBENG_BAGS_EVEN, .length = 1};

	if (keyed->engine->layout.features[feature].sequence_length)
		return part_fail(PyExc_ValueError,
				 &(struct part){keyed->engine->layout.features[feature].name,
						"a keyed input"},
				 "this is a sequence feature; give a dict of inputs by feature");
	bags.type = array_id_type(&held->ids);
	bags.ids = element_at(&held->ids, key->first_id);
	bags.id_count = key->ids;
	bags.bound_count = key->samples;
	if (held->bounds.owner) {
		bags.form = EMBENG_BAGS_LENGTHS;
		bags.bound_type = array_id_type(&held->bounds);
		bags.bounds = element_at(&held->bounds, key->first_sample);
	}
	if (held->weights.owner) {
		bags.weights = element_at(&held->weights, key->first_id);
		bags.weight_count = key->ids;
	}
	input->form = INPUT_BAGS;
	input->bags = bags;
	input->samples = key->samples;
	input->sequence = false;
	input->given = true;
	point_array(&input->ids, bags.ids, held->ids.type, key->ids);
	point_array(&input->bounds, bags.bounds, held->bounds.type, bags.bounds ? key->samples : 0);
	point_array(&input->weights, bags.weights, ARRAY_F32, bags.weight_count);
	if (!embeng_batch_bags(keyed->batch, (int)feature, &bags))
		return 0;
	core_fail(keyed->engine->state);
	return -1;
}

static int give_feature(struct keyed *keyed, PyObject *name)
{
	PyObject *index = PyDict_GetItemWithError(keyed->engine->layout.numbers, name);
	size_t feature;

	if (!index && !PyErr_Occurred())
		core_fail_with(keyed->engine->state, -ENOENT,
			       "features of a keyed input: there is no feature %R", name);
	if (!index)
		return -1;
	feature = PyLong_AsSize_t(index);
	if (!keyed->call->inputs[feature].given)
		return give_key_bags(keyed, feature);
	return part_fail(PyExc_ValueError, KEYED_PART("features"), "%R is there twice", name);
}

/* A name; None if nobody wants the key; a tuple of names if several features do. */
static int give_key(struct keyed *keyed, PyObject *names)
{
	Py_ssize_t count;

	if (names == Py_None)
		return 0;
	if (!PyTuple_Check(names))
		return give_feature(keyed, names);
	count = PyTuple_Size(names);
	for (Py_ssize_t k = 0; k < count; k++)
		if (give_feature(keyed, PyTuple_GetItem(names, k)))
			return -1;
	return 0;
}

static int check_keyed_ends(struct keyed *keyed, size_t all)
{
	const struct input *held = &keyed->call->keyed;

	if (keyed->key.first_sample != all)
		return part_fail(PyExc_ValueError, KEYED_PART("lengths"),
				 "there are %zu, and the keys have %zu samples", all,
				 keyed->key.first_sample);
	if (keyed->key.first_id == held->ids.count)
		return 0;
	return part_fail(PyExc_ValueError, KEYED_PART("lengths"),
			 "they add up to %zu, for %zu values", keyed->key.first_id,
			 held->ids.count);
}

static int give_keys(struct keyed *keyed)
{
	const struct input *held = &keyed->call->keyed;
	size_t all = held->bounds.owner ? held->bounds.count : held->ids.count;

	if (!keyed->samples && keyed->keys && all % keyed->keys)
		return part_fail(PyExc_ValueError, KEYED_PART("lengths"),
				 "%zu are not a multiple of %zu keys", all, keyed->keys);
	for (size_t at = 0; at < keyed->keys; at++) {
		if (count_key_samples(keyed, at, all) || count_key_ids(keyed, at) ||
		    give_key(keyed, PyTuple_GetItem(keyed->features, (Py_ssize_t)at)))
			return -1;
		keyed->key.first_sample += keyed->key.samples;
		keyed->key.first_id += keyed->key.ids;
	}
	return check_keyed_ends(keyed, all);
}

static int check_keyed_tuple(struct keyed *keyed)
{
	Py_ssize_t count;

	if (!PyTuple_Check(keyed->features)) {
		PyErr_SetString(PyExc_TypeError,
				"features of a keyed input are a tuple of names, of None, and of "
				"tuples of names");
		return -1;
	}
	keyed->keys = (size_t)PyTuple_Size(keyed->features);
	if (!keyed->samples)
		return 0;
	count = PySequence_Size(keyed->samples);
	if (count < 0)
		return -1;
	if ((size_t)count == keyed->keys)
		return 0;
	return part_fail(PyExc_ValueError, KEYED_PART("samples"), "there are %zd, for %zu keys",
			 count, keyed->keys);
}

int keyed_fill(struct engine_object *engine, struct call *call, struct embeng_batch *batch,
	       PyObject *tuple)
{
	struct keyed keyed = {.engine = engine, .call = call, .batch = batch};

	if (PyTuple_Size(tuple) != KEYED_COUNT)
		return part_fail(PyExc_ValueError, KEYED_PART("a keyed input"),
				 "it has %zd members, not %d", PyTuple_Size(tuple), KEYED_COUNT);
	keyed.features = PyTuple_GetItem(tuple, KEYED_FEATURES);
	keyed.samples = get_keyed_member(tuple, KEYED_SAMPLES);
	call->is_keyed = true;
	call->keyed.sequence = keyed.samples != NULL; /* blocks one after another */
	for (size_t k = 0; k < call->feature_count; k++)
		call->inputs[k].given = false;
	if (check_keyed_tuple(&keyed) || hold_keyed_arrays(&keyed, tuple) || give_keys(&keyed))
		return -1;
	for (size_t k = 0; k < call->feature_count; k++)
		if (!call->inputs[k].given && inputs_give_nothing(engine, call, batch, (int)k))
			return -1;
	return 0;
}

/* -- activations and gradients ------------------------------------------------------ */

/* The shape of the array of all features. Return: its rank. */
static int shape_keyed(const struct engine_object *engine, const struct call *call, int64_t *shape)
{
	int64_t elements = 0, dims = 0, samples = 0;

	for (size_t k = 0; k < call->feature_count; k++) {
		const struct input *input = &call->inputs[k];

		if (!input->given)
			continue;
		samples = (int64_t)input->samples;
		dims += engine->layout.features[k].dim;
		elements += samples * engine->layout.features[k].dim;
	}
	shape[0] = call->keyed.sequence ? elements : samples;
	shape[1] = dims;
	return call->keyed.sequence ? 1 : 2;
}

static int check_keyed_shape(const struct array *array, const char *name, const int64_t *shape,
			     int rank)
{
	if (array->rank == rank && array->shape[0] == shape[0] &&
	    (rank == 1 || array->shape[1] == shape[1]))
		return 0;
	if (rank == 1)
		return part_fail(PyExc_ValueError, KEYED_PART(name),
				 "its shape is not that of the activations, (%lld,)",
				 (long long)shape[0]);
	return part_fail(PyExc_ValueError, KEYED_PART(name),
			 "its shape is not that of the activations, (%lld, %lld)",
			 (long long)shape[0], (long long)shape[1]);
}

int keyed_place(struct engine_object *engine, struct call *call, PyObject *out)
{
	struct output *output = &call->keyed_output;
	int64_t shape[2], stride;
	int rank = shape_keyed(engine, call, shape);
	float *data;

	output->object = out ? Py_NewRef(out) : array_new(engine->state->empty, shape, rank);
	if (!output->object ||
	    array_get_output(engine->state, output->object, KEYED_PART("out"), &output->array) ||
	    check_keyed_shape(&output->array, "out", shape, rank))
		return -1;
	data = output->array.data;
	stride = rank == 1 || shape[0] < 2 ? 0 : output->array.strides[0] / (int64_t)sizeof(float);
	for (size_t k = 0; k < call->feature_count; k++) {
		int64_t dim = engine->layout.features[k].dim;
		int64_t samples = (int64_t)call->inputs[k].samples;
		int64_t row = stride ? stride : dim;
		struct embeng_output *place = &call->places[k];

		*place = (struct embeng_output){0};
		if (!call->inputs[k].given || !samples)
			continue;
		place->data = data;
		place->stride = (size_t)row;
		place->elements = (size_t)(row * (samples - 1) + dim);
		data += rank == 1 ? samples * dim : dim;
	}
	return 0;
}

/* Floats that are copied before signals are looked at. */
#define COPY_FLOATS ((size_t)4 << 20)

/* Columns of a feature as rows of their own. Return: 0, -1. */
static int copy_columns(float *to, const float *from, size_t samples, size_t dim, size_t stride)
{
	size_t most = COPY_FLOATS / dim + 1;

	for (size_t at = 0, n; at < samples; at += n) {
		n = samples - at < most ? samples - at : most;
		Py_BEGIN_ALLOW_THREADS
		for (size_t k = at; k < at + n; k++)
			memcpy(to + k * dim, from + k * stride, dim * sizeof(*to));
		Py_END_ALLOW_THREADS
		if (n == most && PyErr_CheckSignals())
			return -1;
	}
	return 0;
}

/* Memory for gradients whose columns must stand together. Return: 0, -1. */
static int take_scratch(struct call *call, size_t elements)
{
	call->scratch = malloc((elements ? elements : 1) * sizeof(*call->scratch));
	if (call->scratch)
		return 0;
	PyErr_NoMemory();
	return -1;
}

static int spread_gradients(struct engine_object *engine, struct call *call, size_t width)
{
	const float *from = call->keyed_output.array.data;
	float *to = call->scratch;

	for (size_t k = 0; k < call->feature_count; k++) {
		size_t dim = (size_t)engine->layout.features[k].dim;
		size_t samples = call->inputs[k].samples;

		if (!call->inputs[k].given)
			continue;
		if (to) {
			if (copy_columns(to, from, samples, dim, width))
				return -1;
			call->gradients[k] = to;
			to += samples * dim;
			from += dim;
		} else {
			call->gradients[k] = from;
			from += samples * dim;
		}
		call->elements[k] = samples * dim;
	}
	return 0;
}

int keyed_read_gradients(struct engine_object *engine, struct call *call, PyObject *gradients)
{
	struct array *array = &call->keyed_output.array;
	int64_t shape[2];
	int rank = shape_keyed(engine, call, shape);

	for (size_t k = 0; k < call->feature_count; k++) {
		call->gradients[k] = NULL;
		call->elements[k] = 0;
	}
	if (gradients == Py_None)
		return 0;
	if (array_get_floats(engine->state, gradients, KEYED_PART("gradients"), array) ||
	    check_keyed_shape(array, "gradients", shape, rank) ||
	    (rank == 2 && take_scratch(call, array->count)))
		return -1;
	return spread_gradients(engine, call, rank == 2 ? (size_t)shape[1] : 0);
}

void keyed_put(struct call *call)
{
	array_put(&call->keyed.ids);
	array_put(&call->keyed.bounds);
	array_put(&call->keyed.weights);
	array_put(&call->keyed_output.array);
	Py_CLEAR(call->keyed_output.object);
	free(call->scratch);
	call->scratch = NULL;
	call->is_keyed = false;
}
