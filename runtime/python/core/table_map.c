// SPDX-License-Identifier: MIT
/*
 * The type TableMap: the memory of a table or slot of the soft device, by the buffer protocol. A map is
 * a use of the engine's handle: close() of the engine takes effect when the last map is gone, so that
 * no array points to memory that was freed.
 */
#include "core.h"

#include <string.h>

struct table_map {
	PyObject_HEAD
	struct engine_object *engine;
	int table;
	char *slot; /* NULL: the parameters */
	float *rows;
	Py_ssize_t shape[2], strides[2];
};

static char *copy_text(const char *text)
{
	char *copy = PyMem_Malloc(strlen(text) + 1);

	if (copy)
		strcpy(copy, text);
	else
		PyErr_NoMemory();
	return copy;
}

static int open_map(struct table_map *map)
{
	struct embeng_table_config config = EMBENG_INIT(embeng_table_config);
	struct embeng *handle = map->engine->handle;
	const struct embeng_model *model = embeng_get_model(handle);
	int64_t stride;
	int ret;

	Py_BEGIN_ALLOW_THREADS
	ret = embeng_table_map(handle, map->table, map->slot, &map->rows, &stride);
	Py_END_ALLOW_THREADS
	if (ret) {
		core_fail(map->engine->state);
		return -1;
	}
	embeng_model_get_table(model, (size_t)map->table, &config);
	map->shape[0] = (Py_ssize_t)config.vocabulary_size;
	map->shape[1] = (Py_ssize_t)embeng_model_slot_width(model, map->table, map->slot);
	map->strides[0] = (Py_ssize_t)stride * (Py_ssize_t)sizeof(float);
	map->strides[1] = sizeof(float);
	return 0;
}

PyObject *table_map_new(struct engine_object *engine, int table, const char *slot)
{
	PyTypeObject *type = engine->state->table_map_type;
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct table_map *map = (struct table_map *)alloc(type, 0);

	if (!map)
		return NULL;
	map->table = table;
	map->slot = slot ? copy_text(slot) : NULL;
	if (slot && !map->slot) {
		Py_DECREF(map);
		return NULL;
	}
	open_engine_keep(engine->open);
	map->engine = (struct engine_object *)Py_NewRef((PyObject *)engine);
	if (open_map(map))
		Py_CLEAR(map);
	return (PyObject *)map;
}

static void free_map(PyObject *object)
{
	struct table_map *map = (struct table_map *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (map->rows)
		embeng_table_unmap(map->engine->handle, map->table, map->slot);
	if (map->engine)
		engine_let_go(map->engine);
	Py_XDECREF((PyObject *)map->engine);
	PyMem_Free(map->slot);
	release(object);
	Py_DECREF(type);
}

static int give_memory(PyObject *object, Py_buffer *view, int flags)
{
	struct table_map *map = (struct table_map *)object;
	bool packed = map->strides[0] == map->shape[1] * (Py_ssize_t)sizeof(float);

	view->obj = NULL;
	if (!packed && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
		PyErr_SetString(PyExc_BufferError,
				"rows do not follow each other; ask for strides");
		return -1;
	}
	view->buf = map->rows;
	view->obj = Py_NewRef(object);
	view->len = map->shape[0] * map->shape[1] * (Py_ssize_t)sizeof(float);
	view->itemsize = sizeof(float);
	view->readonly = 0;
	view->ndim = 2;
	view->format = flags & PyBUF_FORMAT ? "f" : NULL;
	view->shape = flags & PyBUF_ND ? map->shape : NULL;
	view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? map->strides : NULL;
	view->suboffsets = NULL;
	view->internal = NULL;
	return 0;
}

static PyType_Slot map_slots[] = {
	{Py_tp_dealloc, free_map},
	{Py_bf_getbuffer, give_memory},
	{Py_tp_doc, (void *)PyDoc_STR("The memory of a table or slot.")},
	{0},
};

PyType_Spec table_map_spec = {
	.name = "embeng._core.TableMap",
	.basicsize = sizeof(struct table_map),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = map_slots,
};
