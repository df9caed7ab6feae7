// SPDX-License-Identifier: MIT
/*
 * The steps of the engine one by one, for programs that are written for TPU embeddings: enqueue(),
 * dequeue(), apply_gradients(), discard(), flush(). Activations are copied out of the engine's memory,
 * so that an array that the program keeps does not change.
 *
 * A view that a thread has is noted in engine->viewers, guarded by the interpreter's lock or, where
 * there is none, used by one thread per replica, as the library's rules say.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

struct step {
	struct engine_object *engine;
	struct call *call;
	struct embeng_batch *batch;
	uint32_t replica;
	struct embeng_activations activations;
	struct embeng_gradients gradients;
	struct rates rates;
};

/* A wait that only this thread can end, as far as a program with one replica shows it. */
static bool is_own_wait(struct step *step, int ret, PyObject *timeout)
{
	return ret == -ETIME && (!timeout || timeout == Py_None) && step->engine->replicas == 1 &&
	       step->engine->viewers[0] == PyThread_get_thread_ident();
}

struct patient {
	int (*call)(void *arg, int64_t timeout_ns);
	struct step *step;
	PyObject *timeout;
};

/* Without a limit the library says itself when a wait is hopeless, if it is asked once more. */
static int call_patiently(void *arg, int64_t timeout_ns)
{
	struct patient *patient = arg;
	int ret = patient->call(patient->step, timeout_ns);

	if (is_own_wait(patient->step, ret, patient->timeout))
		ret = patient->call(patient->step, -1);
	return ret;
}

static int run_step(struct step *step, int (*call)(void *arg, int64_t timeout_ns),
		    PyObject *timeout)
{
	struct patient patient = {.call = call, .step = step, .timeout = timeout};
	int ret = core_wait(call_patiently, &patient, timeout);

	if (ret < 0)
		core_fail(step->engine->state);
	return ret ? -1 : 0;
}

static int read_replica(PyObject *object, uint32_t *replica)
{
	unsigned long long number;

	*replica = 0;
	if (!object)
		return 0;
	if (whole_read(object, "replica", UINT32_MAX, &number))
		return -1;
	*replica = (uint32_t)number;
	return 0;
}

static void note_viewer(struct step *step, unsigned long viewer)
{
	if (step->replica < step->engine->replicas)
		step->engine->viewers[step->replica] = viewer;
}

/* -- enqueue ----------------------------------------------------------------------- */

static int enqueue_batch(void *arg, int64_t timeout_ns)
{
	struct step *step = arg;

	return embeng_enqueue(step->engine->handle, step->batch, timeout_ns);
}

static PyObject *run_enqueue(struct step *step, PyObject **given)
{
	int train = given[1] ? PyObject_IsTrue(given[1]) : 1;

	if (train < 0)
		return NULL;
	step->batch = engine_batch(step->engine, step->call,
				   train ? EMBENG_TRAIN : EMBENG_INFERENCE, step->replica);
	if (!step->batch || inputs_fill(step->engine, step->call, step->batch, given[0]) ||
	    run_step(step, enqueue_batch, given[3]))
		return NULL;
	Py_RETURN_NONE;
}

/* -- dequeue ----------------------------------------------------------------------- */

static int dequeue_batch(void *arg, int64_t timeout_ns)
{
	struct step *step = arg;

	return embeng_dequeue(step->engine->handle, step->replica, timeout_ns, &step->activations);
}

PyObject *view_copy(struct core_state *state, const struct embeng_view *view)
{
	PyObject *object = array_new(state->empty, view->shape, (int)view->rank);
	struct array array;

	if (!object)
		return NULL;
	if (array_get_output(state, object, &(struct part){NULL, "activations"}, &array)) {
		Py_DECREF(object);
		return NULL;
	}
	if (array.count)
		memcpy(array.data, view->data, array.count * sizeof(float));
	array_put(&array);
	return object;
}

static PyObject *copy_lengths(struct step *step, const struct embeng_view *view)
{
	int64_t shape[] = {(int64_t)view->lengths_count};
	struct array array;
	PyObject *object;

	if (!view->lengths)
		return Py_NewRef(Py_None);
	object = array_new(step->engine->state->empty_ids, shape, 1);
	if (!object)
		return NULL;
	if (array_get(step->engine->state, object, true, &(struct part){NULL, "lengths"}, &array) <=
	    0) {
		Py_DECREF(object);
		return NULL;
	}
	memcpy(array.data, view->lengths, array.count * sizeof(int64_t));
	array_put(&array);
	return object;
}

static int set_item(PyObject *dict, PyObject *key, PyObject *value)
{
	int ret = value ? PyDict_SetItem(dict, key, value) : -1;

	Py_XDECREF(value);
	return ret;
}

static PyObject *copy_activations(struct step *step)
{
	const struct embeng_activations *a = &step->activations;
	PyObject *arrays = PyDict_New(), *lengths = PyDict_New(), *result = NULL;

	for (size_t k = 0; arrays && lengths && k < a->count; k++) {
		PyObject *name = step->engine->layout.features[k].name;

		if (set_item(arrays, name, view_copy(step->engine->state, &a->features[k])) ||
		    set_item(lengths, name, copy_lengths(step, &a->features[k])))
			Py_CLEAR(arrays);
	}
	if (arrays && lengths)
		result = Py_BuildValue("OOKO", arrays, lengths, (unsigned long long)a->step,
				       a->mode == EMBENG_TRAIN ? Py_True : Py_False);
	Py_XDECREF(arrays);
	Py_XDECREF(lengths);
	return result;
}

static PyObject *run_dequeue(struct step *step, PyObject **given)
{
	PyObject *result;

	step->activations = EMBENG_INIT(embeng_activations);
	if (run_step(step, dequeue_batch, given[3]))
		return NULL;
	result = copy_activations(step);
	if (step->activations.mode == EMBENG_TRAIN)
		note_viewer(step, PyThread_get_thread_ident());
	else
		embeng_release(step->engine->handle, &step->activations);
	return result;
}

/* -- gradients --------------------------------------------------------------------- */

static int apply_batch(void *arg, int64_t timeout_ns)
{
	struct step *step = arg;

	return embeng_apply_gradients(step->engine->handle, &step->gradients, timeout_ns);
}

/* given: gradients, rates, multiplier, timeout. */
static PyObject *run_apply(struct step *step, PyObject **given)
{
	struct embeng_gradients *g = &step->gradients;

	for (size_t k = 0; k < step->call->feature_count; k++)
		step->call->inputs[k].samples = 0; /* the engine knows them, not this call */
	if (gradients_read(step->engine, step->call, given[0]) ||
	    rates_read(given[1], &step->rates))
		return NULL;
	g->size = sizeof(*g);
	g->replica = step->replica;
	g->count = step->call->feature_count;
	g->features = step->call->gradients;
	g->elements = step->call->elements;
	g->rates = step->rates.items;
	g->rate_count = step->rates.count;
	if (multiplier_read(given[2], g) || run_step(step, apply_batch, given[3]))
		return NULL;
	note_viewer(step, 0);
	Py_RETURN_NONE;
}

static int discard_batch(void *arg, int64_t timeout_ns)
{
	struct step *step = arg;

	return embeng_discard(step->engine->handle, step->replica, timeout_ns);
}

static PyObject *run_discard(struct step *step, PyObject **given)
{
	if (run_step(step, discard_batch, given[3]))
		return NULL;
	note_viewer(step, 0);
	Py_RETURN_NONE;
}

static int flush_updates(void *arg, int64_t timeout_ns)
{
	struct step *step = arg;

	return embeng_flush(step->engine->handle, timeout_ns);
}

static PyObject *run_flush(struct step *step, PyObject **given)
{
	if (run_step(step, flush_updates, given[3]))
		return NULL;
	Py_RETURN_NONE;
}

/* -- methods ------------------------------------------------------------------------ */

typedef PyObject *(*step_fn)(struct step *step, PyObject **given);

/* @given[3] is the timeout of every function. */
static PyObject *run_for_replica(PyObject *self, PyObject *replica, step_fn run, PyObject **given)
{
	struct step step = {.engine = (struct engine_object *)self};
	PyObject *result = NULL;

	if (read_replica(replica, &step.replica) || engine_enter(step.engine))
		return NULL;
	step.call = engine_call_get(step.engine);
	if (step.call) {
		result = run(&step, given);
		rates_put(&step.rates);
		engine_call_put(step.engine, step.call);
	}
	engine_leave(step.engine);
	return result;
}

static PyObject *enqueue_features(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"features", "train", "replica", "timeout", NULL};
	PyObject *given[4] = {NULL}, *replica = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO:enqueue", names, &given[0], &given[1],
					 &replica, &given[3]))
		return NULL;
	return run_for_replica(self, replica, run_enqueue, given);
}

static PyObject *dequeue_activations(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"replica", "timeout", NULL};
	PyObject *given[4] = {NULL}, *replica = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:dequeue", names, &replica, &given[3]))
		return NULL;
	return run_for_replica(self, replica, run_dequeue, given);
}

static PyObject *apply_gradients(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"gradients", "replica", "rates", "multiplier", "timeout", NULL};
	PyObject *given[4] = {NULL}, *replica = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOO:apply_gradients", names, &given[0],
					 &replica, &given[1], &given[2], &given[3]))
		return NULL;
	return run_for_replica(self, replica, run_apply, given);
}

static PyObject *discard_step(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"replica", "timeout", NULL};
	PyObject *given[4] = {NULL}, *replica = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:discard", names, &replica, &given[3]))
		return NULL;
	return run_for_replica(self, replica, run_discard, given);
}

static PyObject *flush_engine(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"timeout", NULL};
	PyObject *given[4] = {NULL};

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:flush", names, &given[3]))
		return NULL;
	return run_for_replica(self, NULL, run_flush, given);
}

PyMethodDef protocol_methods[] = {
	{"enqueue", KEYWORDS(enqueue_features), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("enqueue($self, features, train=True, replica=0, "
		   "timeout=None)\n--\n\n"
		   "Look a batch up; dequeue() gives its activations.")},
	{"dequeue", KEYWORDS(dequeue_activations), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("dequeue($self, replica=0, timeout=None)\n--\n\n"
		   "Return (activations, lengths, step, train) of the oldest batch.")},
	{"apply_gradients", KEYWORDS(apply_gradients), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("apply_gradients($self, gradients, replica=0, rates=None, "
		   "multiplier=None, timeout=None)\n--\n\n"
		   "Hand in the gradients of the oldest dequeued training batch.")},
	{"discard", KEYWORDS(discard_step), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("discard($self, replica=0, timeout=None)\n--\n\n"
		   "Take back the oldest dequeued training batch, for which no gradients come.")},
	{"flush", KEYWORDS(flush_engine), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("flush($self, timeout=None)\n--\n\n"
		   "Wait until every complete update that was handed in is applied.")},
	{0},
};
