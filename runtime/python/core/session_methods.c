// SPDX-License-Identifier: MIT
/*
 * Methods of Engine for the steps of a session (session.h): embeng.tf calls them in eager programs, and
 * from tf.py_function. They are a file of their own because session.c must not need Python.
 *
 * Arrays are held until a method returns. The interpreter's lock is not held during a call of the session,
 * which locks by itself; while the call sleeps, it looks for signals.
 */
#include "core.h"

#include <errno.h>

#include "session.h"
#include "tensorflow.h"

/* -- calls ---------------------------------------------------------------------------- */

struct method_call {
	struct engine_object *engine;
	struct session_call call;
	struct embeng_error error;
	PyThreadState *thread;
	bool failed; /* an exception is set */
};

static int ask_interpreter(void *arg)
{
	struct method_call *call = arg;

	PyEval_RestoreThread(call->thread);
	call->failed = PyErr_CheckSignals() != 0;
	call->thread = PyEval_SaveThread();
	return call->failed;
}

/* Begins a use of the engine, which stays open until end_method(). */
static int begin_method(struct method_call *call, PyObject *self, double seconds)
{
	call->engine = (struct engine_object *)self;
	call->error = EMBENG_INIT(embeng_error);
	call->call = (struct session_call){
		.engine = call->engine->open->number,
		.timeout_ns = seconds < 9e9 ? (int64_t)(seconds * 1e9) : INT64_MAX,
		.ask = ask_interpreter,
		.arg = call,
		.error = &call->error,
	};
	return engine_enter(call->engine);
}

/* Return: 0, or -1 with an exception, if @ret says that the call failed. */
static int end_method(struct method_call *call, int ret)
{
	engine_leave(call->engine);
	if (ret && !PyErr_Occurred())
		core_fail_of(call->engine->state, &call->error);
	return ret ? -1 : 0;
}

/* -- enqueue -------------------------------------------------------------------------- */

/* The arrays of a call, of which each feature has the next ones. */
struct reading {
	struct engine_object *engine;
	PyObject *objects; /* a tuple */
	struct array *arrays;
	Py_ssize_t used;
	PyObject *features, *forms, *samples; /* tuples of numbers */
	struct session_feature *items;
	Py_ssize_t count;
};

static int read_item(PyObject *tuple, Py_ssize_t at, int64_t *number)
{
	PyObject *object = PyTuple_GetItem(tuple, at);

	*number = object ? PyLong_AsLongLong(object) : -1;
	return PyErr_Occurred() ? -1 : 0;
}

/* The next array, as ids or as numbers. Return: NULL with an exception. */
static struct array *read_next(struct reading *reading, const struct part *part, bool floats)
{
	PyObject *object = PyTuple_GetItem(reading->objects, reading->used);
	struct array *array = &reading->arrays[reading->used];
	int ret = -1;

	if (object && floats)
		ret = array_get_floats(reading->engine->state, object, part, array);
	else if (object)
		ret = array_get_ids(reading->engine->state, object, part, array);
	reading->used++;
	return ret ? NULL : array;
}

static int read_ids(struct reading *reading, struct raw_feature *to, PyObject *name)
{
	const struct array *ids = read_next(reading, &(struct part){name, "ids"}, false);

	if (!ids)
		return -1;
	to->bags.type = array_id_type(ids);
	to->bags.ids = ids->data;
	to->bags.id_count = ids->count;
	return 0;
}

static int read_splits(struct reading *reading, struct raw_feature *to, PyObject *name)
{
	const struct array *splits = read_next(reading, &(struct part){name, "splits"}, false);

	if (!splits)
		return -1;
	to->bags.form = EMBENG_BAGS_SPLITS;
	to->bags.bound_type = array_id_type(splits);
	to->bags.bounds = splits->data;
	to->bags.bound_count = splits->count;
	return 0;
}

static int read_coordinates(struct reading *reading, struct raw_feature *to, PyObject *name)
{
	const struct part part = {name, "indices"};
	const struct array *indices = read_next(reading, &part, false);
	const struct array *shape = indices ? read_next(reading, &(struct part){name, "shape"},
							false)
					    : NULL;

	if (!shape)
		return -1;
	if (shape->count < 2 || shape->count > EMBENG_MAX_RANK || shape->type != ARRAY_I64 ||
	    indices->type != ARRAY_I64)
		return part_fail(PyExc_ValueError, &part,
				 "they and the shape are int64, and the shape has 2 to %d lengths",
				 EMBENG_MAX_RANK);
	if (indices->count != to->bags.id_count * shape->count) {
		core_fail_with(reading->engine->state, -EINVAL,
			       "feature %U: its sparse tensor has %zu indices for %zu ids", name,
			       indices->count / shape->count, to->bags.id_count);
		return -1;
	}
	to->indices = indices->data;
	to->shape = shape->data;
	to->rank = shape->count;
	return 0;
}

static int read_item_weights(struct reading *reading, struct raw_feature *to, PyObject *name)
{
	const struct array *weights = read_next(reading, &(struct part){name, "weights"}, true);

	if (!weights)
		return -1;
	to->bags.weights = weights->data;
	to->bags.weight_count = weights->count;
	return 0;
}

static int read_feature(struct reading *reading, Py_ssize_t at)
{
	struct session_feature *item = &reading->items[at];
	int64_t feature, form;
	PyObject *name;
	int ret;

	if (read_item(reading->features, at, &feature) || read_item(reading->forms, at, &form) ||
	    read_item(reading->samples, at, &item->samples))
		return -1;
	if (feature < 0 || (size_t)feature >= reading->engine->layout.feature_count) {
		PyErr_Format(PyExc_ValueError, "there is no feature %lld", (long long)feature);
		return -1;
	}
	name = reading->engine->layout.features[feature].name;
	item->input.feature = (int)feature;
	item->sequence = form & FORM_SEQUENCE;
	item->weighted = form & FORM_WEIGHTED;
	ret = read_ids(reading, &item->input, name);
	if (!ret && (form & FORM_MASK) == FORM_SPARSE)
		ret = read_coordinates(reading, &item->input, name);
	else if (!ret && (form & FORM_MASK) == FORM_SPLITS)
		ret = read_splits(reading, &item->input, name);
	else
		item->input.positions = true;
	if (!ret && form & FORM_WEIGHTED)
		ret = read_item_weights(reading, &item->input, name);
	return ret;
}

static int read_features(struct reading *reading)
{
	for (Py_ssize_t k = 0; k < reading->count; k++)
		if (read_feature(reading, k))
			return -1;
	return 0;
}

/* The features stand one replica after another, and each replica has as many. */
static struct session_batch *read_batches(const struct reading *reading, PyObject *replicas)
{
	Py_ssize_t count = PyTuple_Size(replicas), each = count ? reading->count / count : 0;
	struct session_batch *batches = PyMem_Calloc((size_t)count + 1, sizeof(*batches));

	if (!batches) {
		PyErr_NoMemory();
		return NULL;
	}
	for (Py_ssize_t k = 0; k < count; k++) {
		int64_t replica;

		if (read_item(replicas, k, &replica) || replica < 0 || replica > UINT32_MAX) {
			if (!PyErr_Occurred())
				PyErr_SetString(PyExc_ValueError, "there is no such replica");
			PyMem_Free(batches);
			return NULL;
		}
		batches[k] = (struct session_batch){.replica = (uint32_t)replica,
						    .features = reading->items + k * each,
						    .count = (size_t)each};
	}
	return batches;
}

static int enqueue_batches(struct method_call *call, struct reading *reading, PyObject *replicas,
			   int64_t mode)
{
	struct session_batch *batches = NULL;
	int ret = -1;

	reading->engine = call->engine;
	if (!read_features(reading))
		batches = read_batches(reading, replicas);
	if (batches) {
		call->thread = PyEval_SaveThread();
		ret = raw_session_enqueue(&call->call, batches, (size_t)PyTuple_Size(replicas),
					  mode);
		PyEval_RestoreThread(call->thread);
	}
	PyMem_Free(batches);
	return ret;
}

static int check_lists(const struct reading *reading, PyObject *replicas)
{
	Py_ssize_t count = PyTuple_Size(replicas);

	if (PyTuple_Size(reading->forms) == reading->count &&
	    PyTuple_Size(reading->samples) == reading->count && count &&
	    reading->count % count == 0)
		return 0;
	PyErr_SetString(PyExc_ValueError,
			"there are not as many features, forms and samples for each replica");
	return -1;
}

static PyObject *enqueue_session(PyObject *self, PyObject *args)
{
	struct method_call call = {0};
	struct reading reading = {0};
	PyObject *replicas;
	long long mode;
	double seconds;
	int ret = -1;

	if (!PyArg_ParseTuple(args, "O!O!O!O!O!Ld:_session_enqueue", &PyTuple_Type, &replicas,
			      &PyTuple_Type, &reading.features, &PyTuple_Type, &reading.forms,
			      &PyTuple_Type, &reading.samples, &PyTuple_Type, &reading.objects,
			      &mode, &seconds))
		return NULL;
	reading.count = PyTuple_Size(reading.features);
	if (check_lists(&reading, replicas) || begin_method(&call, self, seconds))
		return NULL;
	reading.items = PyMem_Calloc((size_t)reading.count + 1, sizeof(*reading.items));
	reading.arrays = PyMem_Calloc((size_t)PyTuple_Size(reading.objects) + 1,
				      sizeof(*reading.arrays));
	if (!reading.items || !reading.arrays)
		PyErr_NoMemory();
	else
		ret = enqueue_batches(&call, &reading, replicas, mode);
	for (Py_ssize_t k = 0; reading.arrays && k < PyTuple_Size(reading.objects); k++)
		array_put(&reading.arrays[k]);
	PyMem_Free(reading.arrays);
	PyMem_Free(reading.items);
	return end_method(&call, ret) ? NULL : Py_NewRef(Py_None);
}

/* -- dequeue -------------------------------------------------------------------------- */

static PyObject *list_views(struct core_state *state, const struct embeng_activations *activations)
{
	PyObject *list = PyList_New((Py_ssize_t)activations->count);

	for (size_t k = 0; list && k < activations->count; k++) {
		PyObject *array = view_copy(state, &activations->features[k]);

		if (!array || PyList_SetItem(list, (Py_ssize_t)k, array))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *dequeue_session(PyObject *self, PyObject *args)
{
	struct method_call call = {0};
	struct session_view view;
	PyObject *list = NULL;
	unsigned int replica;
	double seconds;
	int ret;

	if (!PyArg_ParseTuple(args, "Id:_session_dequeue", &replica, &seconds) ||
	    begin_method(&call, self, seconds))
		return NULL;
	call.thread = PyEval_SaveThread();
	ret = raw_session_dequeue(&call.call, replica, &view);
	PyEval_RestoreThread(call.thread);
	if (!ret) {
		list = list_views(call.engine->state, &view.activations);
		raw_session_end_view(&view);
	}
	end_method(&call, ret);
	return list;
}

/* -- gradients ------------------------------------------------------------------------ */

struct giving {
	struct engine_object *engine;
	struct array *arrays; /* [features] */
	struct session_gradient *items;
	size_t count;
	struct rates rates;
};

static int hold_gradient(struct giving *giving, size_t feature, PyObject *object)
{
	const struct part part = {giving->engine->layout.features[feature].name, "gradients"};
	struct array *array = &giving->arrays[feature];

	if (array_get_floats(giving->engine->state, object, &part, array))
		return -1;
	giving->items[giving->count++] = (struct session_gradient){
		.feature = (int)feature,
		.data = array->data,
		.elements = array->count,
		.columns = array->rank ? array->shape[array->rank - 1] : -1,
	};
	return 0;
}

static int hold_gradients(struct giving *giving, PyObject *gradients)
{
	for (size_t k = 0; k < giving->engine->layout.feature_count; k++) {
		PyObject *object = dict_find(gradients, giving->engine->layout.features[k].name);
		int ret = object ? hold_gradient(giving, k, object) : 0;

		Py_XDECREF(object);
		if (ret || PyErr_Occurred())
			return -1;
	}
	return (Py_ssize_t)giving->count == PyDict_Size(gradients)
		       ? 0
		       : inputs_fail_unknown(giving->engine, "gradients", gradients);
}

static int give_held(struct method_call *call, struct giving *giving, unsigned int replica)
{
	int ret;

	call->thread = PyEval_SaveThread();
	ret = raw_session_apply(&call->call, replica, giving->items, giving->count,
				giving->rates.items, giving->rates.count);
	PyEval_RestoreThread(call->thread);
	return ret;
}

static PyObject *apply_session(PyObject *self, PyObject *args)
{
	struct method_call call = {0};
	struct giving giving = {.engine = (struct engine_object *)self};
	PyObject *gradients, *rates;
	unsigned int replica;
	size_t features;
	double seconds;
	int ret = -1;

	if (!PyArg_ParseTuple(args, "IO!O!d:_session_apply", &replica, &PyDict_Type, &gradients,
			      &PyDict_Type, &rates, &seconds) ||
	    begin_method(&call, self, seconds))
		return NULL;
	features = giving.engine->layout.feature_count;
	giving.arrays = PyMem_Calloc(features + 1, sizeof(*giving.arrays));
	giving.items = PyMem_Calloc(features + 1, sizeof(*giving.items));
	if (!giving.arrays || !giving.items)
		PyErr_NoMemory();
	else if (!hold_gradients(&giving, gradients) && !rates_read(rates, &giving.rates))
		ret = give_held(&call, &giving, replica);
	rates_put(&giving.rates);
	for (size_t k = 0; giving.arrays && k < features; k++)
		array_put(&giving.arrays[k]);
	PyMem_Free(giving.arrays);
	PyMem_Free(giving.items);
	return end_method(&call, ret) ? NULL : Py_NewRef(Py_None);
}

/* -- the rest -------------------------------------------------------------------------- */

static PyObject *discard_session(PyObject *self, PyObject *args)
{
	struct method_call call = {0};
	int64_t count = 0;
	double seconds;
	int ret;

	if (!PyArg_ParseTuple(args, "d:_session_discard", &seconds) ||
	    begin_method(&call, self, seconds))
		return NULL;
	call.thread = PyEval_SaveThread();
	ret = raw_session_discard(&call.call, &count);
	PyEval_RestoreThread(call.thread);
	return end_method(&call, ret) ? NULL : PyLong_FromLongLong(count);
}

/* Makes a mode, or sets that of the number if there is one. Return: its number. */
static PyObject *set_session_mode(PyObject *self, PyObject *args)
{
	struct method_call call = {0};
	long long given = -1;
	int64_t number;
	int train, ret;

	if (!PyArg_ParseTuple(args, "p|L:_session_mode", &train, &given) ||
	    begin_method(&call, self, 0))
		return NULL;
	number = given;
	call.thread = PyEval_SaveThread();
	if (given < 0)
		ret = raw_session_add_mode(&call.call, train, &number);
	else
		ret = raw_session_set_mode(&call.call, number, train);
	PyEval_RestoreThread(call.thread);
	return end_method(&call, ret) ? NULL : PyLong_FromLongLong(number);
}

PyMethodDef session_methods[] = {
	{"_session_enqueue", enqueue_session, METH_VARARGS,
	 PyDoc_STR("_session_enqueue($self, replicas, features, forms, samples, arrays, mode, "
		   "timeout, /)\n--\n\n"
		   "Look a batch up for each of some replicas, or for none after an error.")},
	{"_session_dequeue", dequeue_session, METH_VARARGS,
	 PyDoc_STR("_session_dequeue($self, replica, timeout, /)\n--\n\n"
		   "Return the activations of the oldest batch of a replica, by feature.")},
	{"_session_apply", apply_session, METH_VARARGS,
	 PyDoc_STR("_session_apply($self, replica, gradients, rates, timeout, /)\n--\n\n"
		   "Give the oldest batch of a replica that was dequeued its gradients.")},
	{"_session_discard", discard_session, METH_VARARGS,
	 PyDoc_STR("_session_discard($self, timeout, /)\n--\n\n"
		   "Take back every batch that is under way; return how many there were.")},
	{"_session_mode", set_session_mode, METH_VARARGS,
	 PyDoc_STR("_session_mode($self, train, number=-1, /)\n--\n\n"
		   "Make a mode, or set that of the number; return the number.")},
	{0},
};
