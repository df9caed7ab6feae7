// SPDX-License-Identifier: MIT
/*
 * Engine.partition(): a batch as the SparseCores of a device take it, in arrays that the program made.
 * Without arrays it says how long they have to be; embeng/jax/preprocessing.py makes them.
 *
 * The arrays are held by their buffers during the call.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

enum {
	PART_ROW_POINTERS,
	PART_TOKENS,
	PART_SAMPLES,
	PART_GAINS,
	PART_MAX_IDS,
	PART_MAX_UNIQUE,
	PART_REQUIRED,
	PART_FIRST,
	PART_END,
	PART_COUNT
};

struct partition {
	struct engine_object *engine;
	struct call *call;
	struct embeng_batch *batch;
	struct embeng_partition_options options;
	struct embeng_partitioned out;
	Py_buffer buffers[PART_COUNT];
	int held;
	size_t row_pointers, items; /* lengths of arrays */
};

static int read_flavour(const char *name, enum embeng_partition_flavour *flavour)
{
	bool tf = strcmp(name, "tf") == 0;

	if (!tf && strcmp(name, "jax") != 0) {
		PyErr_Format(PyExc_ValueError,
			     "partition: there is no flavour \"%s\"; it is \"jax\" or \"tf\"",
			     name);
		return -1;
	}
	*flavour = tf ? EMBENG_PARTITION_TF : EMBENG_PARTITION_JAX;
	return 0;
}

/* Reads the arguments of Engine.partition(). Return: NULL with an exception. */
static PyObject *read_partition(struct partition *p, PyObject *args, PyObject **features,
				PyObject **arrays)
{
	struct embeng_partition_options *o = &p->options;
	unsigned long long splits = 0, ids = 0, unique = 0, buffer = 0;
	const char *flavour = "jax";

	o->size = sizeof(*o);
	o->rotation_given = 1;
	if (!PyArg_ParseTuple(args, "OOIIIKKKppK|sI:partition", features, arrays, &o->sparse_cores,
			      &o->cores_per_device, &o->device, &ids, &unique, &buffer,
			      &o->minibatching, &o->allow_id_dropping, &splits, &flavour,
			      &o->rotation) ||
	    read_flavour(flavour, &o->flavour))
		return NULL;
	o->max_ids_per_partition = ids;
	o->max_unique_ids_per_partition = unique;
	o->buffer_size = buffer;
	o->splits = splits;
	return Py_None;
}

static int hold_array(struct partition *p, PyObject *arrays, int at, Py_ssize_t width, void **data,
		      size_t *count)
{
	PyObject *array = PyTuple_GetItem(arrays, at);

	if (!array || PyObject_GetBuffer(array, &p->buffers[at], PyBUF_WRITABLE | PyBUF_ND))
		return -1;
	p->held = at + 1;
	if (p->buffers[at].itemsize != width) {
		PyErr_Format(PyExc_ValueError,
			     "partition: array %d has elements of %zd bytes, not %zd", at,
			     p->buffers[at].itemsize, width);
		return -1;
	}
	*data = p->buffers[at].buf;
	*count = (size_t)(p->buffers[at].len / width);
	return 0;
}

static int check_room(size_t count, size_t least)
{
	if (count >= least)
		return 0;
	PyErr_SetString(PyExc_ValueError, "partition: an array is too short");
	return -1;
}

static int hold_arrays(struct partition *p, PyObject *arrays)
{
	struct embeng_partitioned *out = &p->out;
	size_t counts[PART_COUNT];

	if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != PART_COUNT) {
		PyErr_SetString(PyExc_TypeError, "partition: the arrays are a tuple of nine");
		return -1;
	}
	out->size = sizeof(*out);
	if (hold_array(p, arrays, PART_ROW_POINTERS, 4, (void **)&out->row_pointers, &counts[0]) ||
	    hold_array(p, arrays, PART_TOKENS, 4, (void **)&out->token_ids, &counts[1]) ||
	    hold_array(p, arrays, PART_SAMPLES, 4, (void **)&out->sample_ids, &counts[2]) ||
	    hold_array(p, arrays, PART_GAINS, 4, (void **)&out->gains, &counts[3]) ||
	    hold_array(p, arrays, PART_MAX_IDS, 4, (void **)&out->max_ids, &counts[4]) ||
	    hold_array(p, arrays, PART_MAX_UNIQUE, 4, (void **)&out->max_unique_ids, &counts[5]) ||
	    hold_array(p, arrays, PART_REQUIRED, 8, (void **)&out->required_buffer, &counts[6]) ||
	    hold_array(p, arrays, PART_FIRST, 8, (void **)&out->core_first, &counts[7]) ||
	    hold_array(p, arrays, PART_END, 8, (void **)&out->core_end, &counts[8]))
		return -1;
	out->row_pointer_capacity = counts[0];
	out->capacity = counts[1];
	if (check_room(counts[2], counts[1]) || check_room(counts[3], counts[1]) ||
	    check_room(counts[4], p->options.sparse_cores) ||
	    check_room(counts[5], p->options.sparse_cores) ||
	    check_room(counts[6], p->options.cores_per_device) ||
	    check_room(counts[7], p->options.cores_per_device))
		return -1;
	return check_room(counts[8], p->options.cores_per_device);
}

static int run_partition_call(void *arg, int64_t timeout_ns)
{
	struct partition *p = arg;

	(void)timeout_ns;
	if (!p->held)
		return embeng_partition_room(p->batch, &p->options, &p->row_pointers, &p->items);
	return embeng_partition(p->engine->handle, p->batch, &p->options, &p->out);
}

static PyObject *describe_partition(const struct partition *p)
{
	const struct embeng_partitioned *out = &p->out;

	if (!p->held)
		return Py_BuildValue("nn", (Py_ssize_t)p->row_pointers, (Py_ssize_t)p->items);
	return Py_BuildValue(
		"{snsnsnsIsKsK}", "row_pointer_count", (Py_ssize_t)out->row_pointer_count,
		"row_stride", (Py_ssize_t)out->row_stride, "buffer_size",
		(Py_ssize_t)out->buffer_size, "minibatches", out->minibatches, "dropped_ids",
		(unsigned long long)out->dropped_ids, "splits", (unsigned long long)out->splits);
}

static PyObject *run_partition(struct partition *p, PyObject *features, PyObject *arrays)
{
	int ret;

	p->batch = engine_batch(p->engine, p->call, EMBENG_INFERENCE, 0);
	if (!p->batch || inputs_fill(p->engine, p->call, p->batch, features) ||
	    (arrays != Py_None && hold_arrays(p, arrays)))
		return NULL;
	ret = core_wait(run_partition_call, p, NULL);
	if (ret)
		return ret < 0 ? core_fail(p->engine->state) : NULL;
	return describe_partition(p);
}

static PyObject *partition_batch(PyObject *self, PyObject *args)
{
	struct partition p = {.engine = (struct engine_object *)self};
	PyObject *features, *arrays, *result = NULL;

	if (!read_partition(&p, args, &features, &arrays) || engine_enter(p.engine))
		return NULL;
	p.call = engine_call_get(p.engine);
	if (p.call) {
		result = run_partition(&p, features, arrays);
		for (int k = 0; k < p.held; k++)
			PyBuffer_Release(&p.buffers[k]);
		engine_call_put(p.engine, p.call);
	}
	engine_leave(p.engine);
	return result;
}

PyMethodDef partition_methods[] = {
	{"partition", partition_batch, METH_VARARGS,
	 PyDoc_STR(
		 "partition($self, features, arrays, sparse_cores, cores_per_device, device, "
		 "max_ids, max_unique_ids, buffer_size, minibatching, allow_id_dropping, splits, "
		 "flavour=\"jax\", rotation=0, /)\n--\n\n"
		 "Fill arrays with the partitioned CSR of a batch; without arrays, return their "
		 "lengths. The flavour is \"jax\" or \"tf\"; table i of the stack is rotated by i "
		 "times the rotation.")},
	{0},
};
