// SPDX-License-Identifier: MIT
/*
 * Engine.update(), and what looks at gradients without one: norms, and the gradients of weights. The
 * gradients of a batch come as a dictionary from names of features to arrays of the activations' shape.
 */
#include "core.h"

struct update {
	struct engine_object *engine;
	struct call *call;
	struct embeng_batch *batch;
	struct embeng_gradients gradients;
	struct rates rates;
	struct embeng_gradient_norms norms;
	PyObject *wanted; /* a dict of features, for the gradients of weights */
};

static int take_gradient(struct engine_object *engine, struct call *call, size_t at,
			 PyObject *object)
{
	const struct part part = {engine->layout.features[at].name, "gradients"};
	struct array *array = &call->outputs[at].array;
	int64_t dim;

	if (array_get_floats(engine->state, object, &part, array))
		return -1;
	dim = engine->layout.features[at].dim;
	if (array->rank > 1 && array->shape[array->rank - 1] != dim)
		return part_fail(PyExc_ValueError, &part,
				 "rows have %lld numbers; those of the activations have %lld",
				 (long long)array->shape[array->rank - 1], (long long)dim);
	call->gradients[at] = array->data;
	call->elements[at] = array->count;
	return 0;
}

/* A gradient of None is zeros; one that is left out must be of a feature without samples. */
int gradients_read(struct engine_object *engine, struct call *call, PyObject *gradients)
{
	Py_ssize_t found = 0;

	if (call->is_keyed)
		return keyed_read_gradients(engine, call, gradients);
	if (!PyDict_Check(gradients)) {
		PyErr_SetString(PyExc_TypeError,
				"gradients are a dict from names of features to arrays");
		return -1;
	}
	for (size_t k = 0; k < call->feature_count; k++) {
		PyObject *name = engine->layout.features[k].name;
		PyObject *object = dict_find(gradients, name);
		int ret = 0;

		if (!object && PyErr_Occurred())
			return -1;
		call->gradients[k] = NULL;
		call->elements[k] = 0;
		if (!object && call->inputs[k].samples)
			return part_fail(PyExc_ValueError, &(struct part){name, "gradients"},
					 "there are none; None stands for zeros");
		found += object != NULL;
		/* A conversion runs methods of the program's, which may change the dict. */
		if (object && object != Py_None)
			ret = take_gradient(engine, call, k, object);
		Py_XDECREF(object);
		if (ret)
			return -1;
	}
	return found == PyDict_Size(gradients)
		       ? 0
		       : inputs_fail_unknown(engine, "gradients", gradients);
}

int multiplier_read(PyObject *object, struct embeng_gradients *gradients)
{
	if (!object || object == Py_None)
		return 0;
	gradients->multiplier = (float)PyFloat_AsDouble(object);
	gradients->has_multiplier = 1;
	if (!PyErr_Occurred())
		return 0;
	if (PyErr_ExceptionMatches(PyExc_TypeError))
		PyErr_Format(PyExc_TypeError, "multiplier: %R is no number", object);
	return -1;
}

/* Only an update needs @mode EMBENG_TRAIN, which tables without an optimizer refuse. */
static int read_update(struct update *update, enum embeng_mode mode, PyObject **given)
{
	struct embeng_gradients *g = &update->gradients;
	unsigned long long replica = 0;

	if (given[5] && whole_read(given[5], "replica", UINT32_MAX, &replica))
		return -1;
	update->batch = engine_batch(update->engine, update->call, mode, (uint32_t)replica);
	if (!update->batch || inputs_fill(update->engine, update->call, update->batch, given[0]) ||
	    gradients_read(update->engine, update->call, given[1]) ||
	    rates_read(given[2], &update->rates))
		return -1;
	g->size = sizeof(*g);
	g->replica = (uint32_t)replica;
	g->count = update->call->feature_count;
	g->features = update->call->gradients;
	g->elements = update->call->elements;
	g->rates = update->rates.items;
	g->rate_count = update->rates.count;
	return multiplier_read(given[3], g);
}

static int hand_in(void *arg, int64_t timeout_ns)
{
	struct update *update = arg;

	return open_update(update->engine->open, update->batch, &update->gradients, timeout_ns);
}

static PyObject *run_update(struct update *update, PyObject **given)
{
	int ret;

	if (read_update(update, EMBENG_TRAIN, given))
		return NULL;
	ret = core_compute(update->engine, hand_in, update, given[4]);
	if (ret)
		return ret < 0 ? core_fail(update->engine->state) : NULL;
	Py_RETURN_NONE;
}

static int measure_norm(void *arg, int64_t timeout_ns)
{
	struct update *update = arg;
	const struct embeng_gradients *gradients = &update->gradients;

	(void)timeout_ns;
	return embeng_gradient_norm(update->engine->handle, &update->batch, &gradients, 1,
				    &update->norms);
}

static PyObject *run_norm(struct update *update, PyObject **given)
{
	struct embeng_gradient_norms *norms = &update->norms;
	int ret;

	if (read_update(update, EMBENG_INFERENCE, given))
		return NULL;
	norms->size = sizeof(*norms);
	ret = core_compute(update->engine, measure_norm, update, NULL);
	if (ret)
		return ret < 0 ? core_fail(update->engine->state) : NULL;
	return Py_BuildValue("dO", norms->norm, norms->non_finite ? Py_False : Py_True);
}

typedef PyObject *(*update_fn)(struct update *update, PyObject **given);

static PyObject *run_with_call(PyObject *self, update_fn run, PyObject **given, PyObject *wanted)
{
	struct update update = {.engine = (struct engine_object *)self, .wanted = wanted};
	PyObject *result = NULL;

	if (engine_enter(update.engine))
		return NULL;
	update.call = engine_call_get(update.engine);
	if (update.call) {
		result = run(&update, given);
		rates_put(&update.rates);
		engine_call_put(update.engine, update.call);
	}
	engine_leave(update.engine);
	return result;
}

static PyObject *update_rows(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			     PyObject *kwnames)
{
	static const char *const names[] = {"features",	  "gradients", "rates",
					    "multiplier", "timeout",   "replica"};
	static const struct arguments spec = {"update", names, 6, 2};
	PyObject *given[6];

	if (arguments_parse(&spec, args, nargs, kwnames, given))
		return NULL;
	return run_with_call(self, run_update, given, NULL);
}

static PyObject *norm_gradients(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				PyObject *kwnames)
{
	static const char *const names[] = {"features", "gradients"};
	static const struct arguments spec = {"gradient_norm", names, 2, 2};
	PyObject *given[6] = {NULL};

	if (arguments_parse(&spec, args, nargs, kwnames, given))
		return NULL;
	return run_with_call(self, run_norm, given, NULL);
}

/* -- gradients of weights ------------------------------------------------------------- */

static int take_weight_output(struct update *update, size_t at, PyObject *outputs,
			      Py_ssize_t *found, float **places, size_t *counts)
{
	PyObject *name = update->engine->layout.features[at].name;
	const struct input *input = &update->call->inputs[at];
	PyObject *object = PyDict_GetItemWithError(outputs, name);
	struct output *output = &update->call->outputs[at];
	int64_t shape[] = {(int64_t)input->ids.count};

	places[at] = NULL;
	counts[at] = 0;
	if (!object)
		return PyErr_Occurred() ? -1 : 0;
	*found += 1;
	/* The gradients are held in the same place; this array lives in the dictionary. */
	output->object = array_new(update->engine->state->empty, shape, 1);
	if (!output->object || PyDict_SetItem(outputs, name, output->object))
		return -1;
	return 0;
}

struct weight_places {
	struct update *update;
	struct array *arrays;
	float **places;
	size_t *counts;
};

static int differentiate_weights(void *arg, int64_t timeout_ns)
{
	struct weight_places *w = arg;

	(void)timeout_ns;
	return embeng_weight_gradients(w->update->engine->handle, w->update->batch,
				       &w->update->gradients, w->places, w->counts,
				       w->update->call->feature_count);
}

static int hold_weight_outputs(struct weight_places *w, PyObject *outputs)
{
	struct update *update = w->update;
	Py_ssize_t found = 0;

	for (size_t k = 0; k < update->call->feature_count; k++) {
		PyObject *name = update->engine->layout.features[k].name;

		if (take_weight_output(update, k, outputs, &found, w->places, w->counts))
			return -1;
		if (!update->call->outputs[k].object)
			continue;
		if (array_get_output(update->engine->state, update->call->outputs[k].object,
				     &(struct part){name, "out"}, &w->arrays[k]))
			return -1;
		w->places[k] = w->arrays[k].data;
		w->counts[k] = w->arrays[k].count;
	}
	return found == PyDict_Size(outputs)
		       ? 0
		       : inputs_fail_unknown(update->engine, "wanted", outputs);
}

static PyObject *run_weights(struct update *update, PyObject **given)
{
	size_t count = update->call->feature_count;
	struct weight_places w = {.update = update};
	int ret = -1;

	w.arrays = PyMem_Calloc(count + 1, sizeof(*w.arrays));
	w.places = PyMem_Calloc(count + 1, sizeof(*w.places));
	w.counts = PyMem_Calloc(count + 1, sizeof(*w.counts));
	if (!w.arrays || !w.places || !w.counts)
		PyErr_NoMemory();
	else if (!read_update(update, EMBENG_INFERENCE, given) &&
		 !hold_weight_outputs(&w, update->wanted)) {
		ret = core_compute(update->engine, differentiate_weights, &w, NULL);
		if (ret < 0)
			core_fail(update->engine->state);
	}
	for (size_t k = 0; w.arrays && k < count; k++)
		array_put(&w.arrays[k]);
	PyMem_Free(w.arrays);
	PyMem_Free(w.places);
	PyMem_Free(w.counts);
	return ret ? NULL : Py_NewRef(update->wanted);
}

static PyObject *differentiate_features(PyObject *self, PyObject *args)
{
	PyObject *given[6] = {NULL}, *wanted;

	if (!PyArg_ParseTuple(args, "OOO!:weight_gradients", &given[0], &given[1], &PyDict_Type,
			      &wanted))
		return NULL;
	return run_with_call(self, run_weights, given, wanted);
}

PyMethodDef update_methods[] = {
	{"update", KEYWORDS(update_rows), METH_FASTCALL | METH_KEYWORDS,
	 PyDoc_STR("update($self, features, gradients, rates=None, multiplier=None, "
		   "timeout=None, replica=0)\n--\n\n"
		   "Give the rows of a batch the gradients of its activations.")},
	{"gradient_norm", KEYWORDS(norm_gradients), METH_FASTCALL | METH_KEYWORDS,
	 PyDoc_STR("gradient_norm($self, features, gradients)\n--\n\n"
		   "Return the L2 norm of the rows' gradients, and whether all are finite.")},
	{"weight_gradients", differentiate_features, METH_VARARGS,
	 PyDoc_STR(
		 "weight_gradients($self, features, gradients, wanted, /)\n--\n\n"
		 "Fill the dict wanted: each of its features gets the gradients of its weights.")},
	{0},
};
