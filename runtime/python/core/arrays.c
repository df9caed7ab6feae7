// SPDX-License-Identifier: MIT
/*
 * Memory of the program: arrays of numpy, tensors of torch, whatever has the buffer protocol, DLPack
 * or numpy's array interface. An array is held while a call uses it, so that it cannot be freed or
 * resized meanwhile.
 *
 * Ids of 32 or 64 bits and f32 numbers that follow each other are used where they are; anything else
 * is converted by embeng/_arrays.py, which copies it once.
 */
#include "core.h"

#include <stdarg.h>
#include <string.h>

/* The ABI of DLPack, as its specification has it; versions 0 and 1. */
#define DLPACK_CPU 1
#define DLPACK_CUDA_HOST 3
#define DLPACK_INT 0
#define DLPACK_FLOAT 2
#define DLPACK_READ_ONLY 1ull

struct dlpack_tensor {
	void *data;
	int32_t device_type, device_id;
	int32_t rank;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};

struct dlpack_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct dlpack_versioned *self);
	uint64_t flags;
	struct dlpack_tensor tensor;
};

/* -- messages -------------------------------------------------------------- */

static PyObject *part_name(const struct part *part)
{
	return part->feature ? PyUnicode_FromFormat("feature %U: %s", part->feature, part->name)
			     : PyUnicode_FromString(part->name);
}

int part_fail(PyObject *type, const struct part *part, const char *format, ...)
{
	PyObject *name = part_name(part), *text = NULL;
	va_list args;

	if (name) {
		va_start(args, format);
		text = PyUnicode_FromFormatV(format, args);
		va_end(args);
	}
	if (text)
		PyErr_Format(type, "%U: %U", name, text);
	Py_XDECREF(name);
	Py_XDECREF(text);
	return -1;
}

/* -- the buffer protocol ----------------------------------------------------- */

static enum array_type find_format(const Py_buffer *view)
{
	const char *format = view->format;

	if (!format)
		return ARRAY_OTHER;
	if (*format == '@' || *format == '=' || *format == '<')
		format++;
	if (!format[0] || format[1])
		return ARRAY_OTHER;
	if (*format == 'f')
		return ARRAY_F32;
	if (!strchr("ilq", *format))
		return ARRAY_OTHER;
	return view->itemsize == 4 ? ARRAY_I32 : view->itemsize == 8 ? ARRAY_I64 : ARRAY_OTHER;
}

static int raise_rank(const struct part *part, int rank)
{
	return part_fail(PyExc_ValueError, part, "%d dimensions; the most are %d", rank,
			 ARRAY_MAX_RANK);
}

static void count_elements(struct array *array)
{
	array->count = 1;
	for (int k = 0; k < array->rank; k++)
		array->count *= (size_t)array->shape[k];
}

static int take_buffer(PyObject *object, bool writable, const struct part *part,
		       struct array *array)
{
	Py_buffer *view = &array->view;

	if (PyObject_GetBuffer(object, view, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO)) {
		if (!PyErr_ExceptionMatches(PyExc_BufferError) &&
		    !PyErr_ExceptionMatches(PyExc_ValueError) &&
		    !PyErr_ExceptionMatches(PyExc_TypeError))
			return -1;
		PyErr_Clear();
		if (writable)
			return part_fail(PyExc_ValueError, part, "the memory is read-only");
		return 0; /* numpy may know the type of element, and has the words if not */
	}
	array->has_view = true;
	array->owner = Py_NewRef(object);
	array->type = find_format(view);
	if (view->ndim > ARRAY_MAX_RANK)
		return raise_rank(part, view->ndim);
	array->data = view->buf;
	array->rank = view->ndim;
	for (int k = 0; k < view->ndim; k++) {
		array->shape[k] = view->shape[k];
		array->strides[k] = view->strides[k];
	}
	count_elements(array);
	return array->type != ARRAY_OTHER;
}

/* -- DLPack ------------------------------------------------------------------- */

static enum array_type find_dlpack_type(const struct dlpack_tensor *tensor)
{
	if (tensor->lanes != 1)
		return ARRAY_OTHER;
	if (tensor->code == DLPACK_FLOAT && tensor->bits == 32)
		return ARRAY_F32;
	if (tensor->code != DLPACK_INT)
		return ARRAY_OTHER;
	return tensor->bits == 32 ? ARRAY_I32 : tensor->bits == 64 ? ARRAY_I64 : ARRAY_OTHER;
}

static int take_tensor(const struct dlpack_tensor *tensor, const struct part *part,
		       struct array *array)
{
	int64_t width = tensor->bits / 8, next = width;

	array->type = find_dlpack_type(tensor);
	if (array->type == ARRAY_OTHER)
		return 0;
	if (tensor->rank > ARRAY_MAX_RANK)
		return raise_rank(part, tensor->rank);
	array->data = (char *)tensor->data + tensor->byte_offset;
	array->rank = tensor->rank;
	for (int k = tensor->rank - 1; k >= 0; k--) {
		array->shape[k] = tensor->shape[k];
		array->strides[k] = tensor->strides ? tensor->strides[k] * width : next;
		next *= tensor->shape[k];
	}
	count_elements(array);
	return 1;
}

/* Puts the part's name before what an object said about its memory. Return: -1. */
static int name_error(const struct part *part)
{
	PyObject *type, *value, *trace;

	if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
		return -1;
	PyErr_Fetch(&type, &value, &trace);
	if (value)
		part_fail(PyErr_GivenExceptionMatches(type, PyExc_BufferError) ? PyExc_BufferError
									       : PyExc_ValueError,
			  part, "%S", value);
	else
		PyErr_Restore(Py_NewRef(type), NULL, NULL);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return -1;
}

static int check_dlpack_device(struct core_state *state, PyObject *object, const struct part *part)
{
	PyObject *device = PyObject_CallMethodObjArgs(object, state->dlpack_device, NULL);
	int type = 0, number = 0,
	    ok = device && PyTuple_Check(device) && PyArg_ParseTuple(device, "ii", &type, &number);

	Py_XDECREF(device);
	if (!ok && !PyErr_Occurred())
		part_fail(PyExc_TypeError, part, "__dlpack_device__() gives no pair of numbers");
	if (!ok)
		return name_error(part);
	if (type == DLPACK_CPU || type == DLPACK_CUDA_HOST)
		return 0;
	return part_fail(PyExc_ValueError, part,
			 "the memory is on another device (DLPack's kind %d); copy it to the "
			 "processor's memory first",
			 type);
}

/* The capsule of an object: with its version and flags where it knows them. */
static PyObject *call_dlpack(struct core_state *state, PyObject *object)
{
	PyObject *method = PyObject_GetAttr(object, state->dlpack), *none, *capsule = NULL;

	none = method ? PyTuple_New(0) : NULL;
	if (none)
		capsule = PyObject_Call(method, none, state->dlpack_version);
	if (none && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear();
		capsule = PyObject_CallNoArgs(method);
	}
	Py_XDECREF(none);
	Py_XDECREF(method);
	return capsule;
}

static int take_capsule(PyObject *capsule, bool writable, const struct part *part,
			struct array *array)
{
	struct dlpack_versioned *versioned;

	if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
		if (versioned->major != 1)
			return 0;
		if (writable && versioned->flags & DLPACK_READ_ONLY) {
			part_fail(PyExc_ValueError, part, "the memory is read-only");
			return -1;
		}
		return take_tensor(&versioned->tensor, part, array);
	}
	/* A capsule without flags may be of memory that nobody may write to. */
	if (writable || !PyCapsule_IsValid(capsule, "dltensor"))
		return 0;
	return take_tensor(PyCapsule_GetPointer(capsule, "dltensor"), part, array);
}

static int take_dlpack(struct core_state *state, PyObject *object, bool writable,
		       const struct part *part, struct array *array)
{
	if (check_dlpack_device(state, object, part))
		return -1;
	/* The capsule is not renamed, so that it frees the tensor when it goes. */
	array->owner = call_dlpack(state, object);
	if (!array->owner)
		return name_error(part);
	return take_capsule(array->owner, writable, part, array);
}

/* -- any of them --------------------------------------------------------------- */

static int take_interface(struct core_state *state, PyObject *object, bool writable,
			  const struct part *part, struct array *array)
{
	PyObject *view = PyObject_CallFunctionObjArgs(state->as_buffer, object, NULL);
	int ret = 0;

	if (!view)
		return -1;
	if (view != Py_None)
		ret = take_buffer(view, writable, part, array);
	Py_DECREF(view);
	return ret;
}

static int take_any(struct core_state *state, PyObject *object, bool writable,
		    const struct part *part, struct array *array)
{
	if (PyObject_CheckBuffer(object))
		return take_buffer(object, writable, part, array);
	if (PyList_Check(object) || PyTuple_Check(object) || object == Py_None)
		return 0;
	if (PyObject_HasAttr(object, state->dlpack))
		return take_dlpack(state, object, writable, part, array);
	return take_interface(state, object, writable, part, array);
}

int array_get(struct core_state *state, PyObject *object, bool writable, const struct part *part,
	      struct array *array)
{
	int ret;

	array->owner = NULL;
	array->has_view = false;
	ret = take_any(state, object, writable, part, array);
	if (ret <= 0)
		array_put(array);
	return ret;
}

void array_put(struct array *array)
{
	if (array->has_view)
		PyBuffer_Release(&array->view);
	array->has_view = false;
	Py_CLEAR(array->owner);
}

static bool is_packed(const struct array *array, int from)
{
	int64_t next = array->type == ARRAY_I64 ? 8 : 4;

	for (int k = array->rank - 1; k >= from; k--) {
		if (array->shape[k] > 1 && array->strides[k] != next)
			return false;
		next *= array->shape[k];
	}
	return true;
}

static bool is_aligned(const struct array *array)
{
	return (uintptr_t)array->data % (array->type == ARRAY_I64 ? 8 : 4) == 0;
}

bool array_is_contiguous(const struct array *array)
{
	return !array->count || (is_packed(array, 0) && is_aligned(array));
}

static int convert_array(struct core_state *state, PyObject *converter, PyObject *object,
			 const struct part *part, struct array *array)
{
	PyObject *name = part_name(part), *converted = NULL;
	int ret;

	if (name)
		converted = PyObject_CallFunctionObjArgs(converter, object, name, NULL);
	Py_XDECREF(name);
	if (!converted)
		return -1;
	ret = array_get(state, converted, false, part, array);
	Py_DECREF(converted);
	if (!ret)
		part_fail(PyExc_TypeError, part, "not an array");
	return ret > 0 ? 0 : -1;
}

int array_get_ids(struct core_state *state, PyObject *object, const struct part *part,
		  struct array *array)
{
	int ret = array_get(state, object, false, part, array);

	if (ret < 0)
		return -1;
	if (ret && array->type != ARRAY_F32 && array_is_contiguous(array))
		return 0;
	array_put(array);
	return convert_array(state, state->as_ids, object, part, array);
}

int array_get_floats(struct core_state *state, PyObject *object, const struct part *part,
		     struct array *array)
{
	int ret = array_get(state, object, false, part, array);

	if (ret < 0)
		return -1;
	if (ret && array->type == ARRAY_F32 && array_is_contiguous(array))
		return 0;
	array_put(array);
	return convert_array(state, state->as_floats, object, part, array);
}

/* Rows apart from each other, none of which overlaps the next. */
static bool has_apart_rows(const struct array *array)
{
	if (array->rank < 1 || array->shape[0] < 2 || !array->count)
		return true;
	return array->strides[0] % 4 == 0 &&
	       array->strides[0] / 4 >= (int64_t)array->count / array->shape[0];
}

int array_get_output(struct core_state *state, PyObject *object, const struct part *part,
		     struct array *array)
{
	int ret = array_get(state, object, true, part, array);

	if (ret < 0)
		return -1;
	if (ret && array->type == ARRAY_F32 && is_packed(array, 1) && is_aligned(array) &&
	    has_apart_rows(array))
		return 0;
	array_put(array);
	return part_fail(PyExc_TypeError, part,
			 "outputs are writable float32 arrays, whose elements follow each other "
			 "behind the first dimension");
}

PyObject *array_new(PyObject *empty, const int64_t *shape, int rank)
{
	PyObject *tuple = PyTuple_New(rank), *array = NULL;

	for (int k = 0; tuple && k < rank; k++) {
		PyObject *length = PyLong_FromLongLong(shape[k]);

		if (!length || PyTuple_SetItem(tuple, k, length)) {
			Py_CLEAR(tuple);
			break;
		}
	}
	if (tuple)
		array = PyObject_CallFunctionObjArgs(empty, tuple, NULL);
	Py_XDECREF(tuple);
	return array;
}
