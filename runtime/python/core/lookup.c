// SPDX-License-Identifier: MIT
/*
 * Engine.lookup(): one call from a dictionary of ids to a dictionary of activations, which are written
 * into arrays of the program or into new ones of numpy. Any number of threads may call it at once. Large
 * ones are cut into pieces (pieces.c).
 */
#include "core.h"

struct lookup {
	struct engine_object *engine;
	struct call *call;
	struct embeng_batch *batch;
	PyObject *features, *out; /* @out: NULL, there is none */
	Py_ssize_t found;	  /* features of @out */
};

/* The shape of a feature's activations. Return: its rank. */
static int shape_output(const struct engine_feature *feature, const struct input *input,
			int64_t *shape)
{
	int rank = 0;

	shape[rank++] = (int64_t)input->samples;
	if (input->sequence)
		shape[rank++] = feature->sequence_length;
	shape[rank++] = feature->dim;
	return rank;
}

static int check_shape(struct lookup *lookup, const struct engine_feature *feature,
		       const struct array *array, const int64_t *shape, int rank)
{
	bool same = array->rank == rank;

	(void)lookup;
	for (int k = 0; same && k < rank; k++)
		same = array->shape[k] == shape[k];
	if (same)
		return 0;
	if (rank == 2)
		return part_fail(PyExc_ValueError, &(struct part){feature->name, "out"},
				 "its shape is not that of the activations, (%lld, %lld)",
				 (long long)shape[0], (long long)shape[1]);
	return part_fail(PyExc_ValueError, &(struct part){feature->name, "out"},
			 "its shape is not that of the activations, (%lld, %lld, %lld)",
			 (long long)shape[0], (long long)shape[1], (long long)shape[2]);
}

/* The program's array of a feature, or a new one. */
static PyObject *find_output(struct lookup *lookup, PyObject *name, const int64_t *shape, int rank)
{
	PyObject *given = NULL;

	if (lookup->out) {
		given = dict_find(lookup->out, name);
		lookup->found += given != NULL;
		if (given || PyErr_Occurred())
			return given;
	}
	return array_new(lookup->engine->state->empty, shape, rank);
}

static int place_output(struct lookup *lookup, size_t at)
{
	const struct engine_feature *feature = &lookup->engine->layout.features[at];
	struct output *output = &lookup->call->outputs[at];
	struct embeng_output *place = &lookup->call->places[at];
	int64_t shape[3];
	int rank = shape_output(feature, &lookup->call->inputs[at], shape);

	*place = (struct embeng_output){0};
	if (!lookup->call->inputs[at].given)
		return 0;
	output->object = find_output(lookup, feature->name, shape, rank);
	if (!output->object ||
	    array_get_output(lookup->engine->state, output->object,
			     &(struct part){feature->name, "out"}, &output->array) ||
	    check_shape(lookup, feature, &output->array, shape, rank))
		return -1;
	if (!output->array.count)
		return 0;
	place->data = output->array.data;
	place->stride = shape[0] > 1 ? (size_t)output->array.strides[0] / sizeof(float) : 0;
	place->elements = place->stride * (size_t)(shape[0] - 1) +
			  output->array.count / (size_t)shape[0];
	return 0;
}

static int look_up(void *arg, int64_t timeout_ns)
{
	struct lookup *lookup = arg;

	return embeng_lookup(lookup->engine->handle, lookup->batch, lookup->call->places,
			     lookup->call->feature_count, timeout_ns);
}

/* Outputs are for features that have inputs. */
static int fail_output(struct lookup *lookup)
{
	struct call *call = lookup->call;

	for (size_t k = 0; k < call->feature_count; k++) {
		PyObject *name = lookup->engine->layout.features[k].name;

		if (!call->inputs[k].given && PyDict_GetItemWithError(lookup->out, name))
			return part_fail(PyExc_ValueError, &(struct part){name, "out"},
					 "the feature has no input");
	}
	return PyErr_Occurred() ? -1 : inputs_fail_unknown(lookup->engine, "out", lookup->out);
}

static int place_outputs(struct lookup *lookup)
{
	if (lookup->call->is_keyed)
		return keyed_place(lookup->engine, lookup->call, lookup->out);
	if (lookup->out && !PyDict_Check(lookup->out)) {
		PyErr_SetString(PyExc_TypeError, "out: a dict from names of features to arrays");
		return -1;
	}
	for (size_t k = 0; k < lookup->call->feature_count; k++)
		if (place_output(lookup, k))
			return -1;
	return lookup->out && lookup->found != PyDict_Size(lookup->out) ? fail_output(lookup) : 0;
}

static PyObject *gather_outputs(struct lookup *lookup)
{
	PyObject *result;

	if (lookup->call->is_keyed)
		return Py_NewRef(lookup->call->keyed_output.object);
	result = PyDict_New();
	for (size_t k = 0; result && k < lookup->call->feature_count; k++) {
		PyObject *object = lookup->call->outputs[k].object;

		if (object &&
		    PyDict_SetItem(result, lookup->engine->layout.features[k].name, object))
			Py_CLEAR(result);
	}
	return result;
}

static PyObject *run_lookup_call(struct lookup *lookup, PyObject *timeout)
{
	struct engine_object *engine = lookup->engine;
	size_t pieces;
	int ret;

	lookup->batch = engine_batch(engine, lookup->call, EMBENG_INFERENCE, 0);
	if (!lookup->batch || inputs_fill(engine, lookup->call, lookup->batch, lookup->features) ||
	    place_outputs(lookup))
		return NULL;
	pieces = pieces_count(engine, lookup->call);
	if (pieces > 1) {
		ret = pieces_look_up(engine, lookup->call, lookup->batch, pieces, timeout);
	} else {
		ret = core_wait(look_up, lookup, timeout);
		if (ret < 0)
			core_fail(engine->state);
	}
	return ret ? NULL : gather_outputs(lookup);
}

static PyObject *lookup_features(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				 PyObject *kwnames)
{
	static const char *const names[] = {"features", "out", "timeout"};
	static const struct arguments spec = {"lookup", names, 3, 1};
	struct lookup lookup = {.engine = (struct engine_object *)self};
	PyObject *given[3], *result = NULL;

	if (arguments_parse(&spec, args, nargs, kwnames, given) || engine_enter(lookup.engine))
		return NULL;
	lookup.features = given[0];
	lookup.out = given[1] == Py_None ? NULL : given[1];
	lookup.call = engine_call_get(lookup.engine);
	if (lookup.call) {
		result = run_lookup_call(&lookup, given[2]);
		engine_call_put(lookup.engine, lookup.call);
	}
	engine_leave(lookup.engine);
	return result;
}

PyMethodDef lookup_methods[] = {
	{"lookup", KEYWORDS(lookup_features), METH_FASTCALL | METH_KEYWORDS,
	 PyDoc_STR("lookup($self, features, out=None, timeout=None)\n--\n\n"
		   "Return the activations of each feature that is given, as float32 "
		   "arrays.\n\nLarge lookups are done in pieces; updates of other threads may come "
		   "between.")},
	{0},
};
