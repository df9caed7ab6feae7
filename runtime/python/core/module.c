// SPDX-License-Identifier: MIT
/*
 * The module embeng._core: its types, its functions, and the objects that they share. It is written
 * against the stable interface of CPython 3.11, and loads into every later version.
 *
 * The state belongs to the module object, so that each interpreter has its own.
 */
#include "core.h"

static struct PyModuleDef core_definition;

struct core_state *core_state_of(PyTypeObject *type)
{
	for (; type; type = PyType_GetSlot(type, Py_tp_base)) {
		PyObject *module = NULL;

		if (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE)
			module = PyType_GetModule(type);
		if (module && PyModule_GetDef(module) == &core_definition)
			return PyModule_GetState(module);
		PyErr_Clear();
	}
	return NULL;
}

/* -- functions ----------------------------------------------------------------------- */

static PyObject *compute_rate(PyObject *module, PyObject *args)
{
	struct embeng_schedule schedule;
	uint64_t *boundaries = NULL;
	unsigned long long step;
	float *values = NULL, rate;
	PyObject *given, *number, *dict, *result = NULL;

	if (!PyArg_ParseTuple(args, "OO:schedule_rate", &given, &number) ||
	    whole_read(number, "step", UINT64_MAX, &step))
		return NULL;
	dict = settings_hold(given);
	if (dict && !settings_read_schedule(dict, &schedule, &boundaries, &values))
		result = embeng_schedule_rate(&schedule, step, &rate)
				 ? core_fail(PyModule_GetState(module))
				 : PyFloat_FromDouble(rate);
	PyMem_Free(boundaries);
	PyMem_Free(values);
	Py_XDECREF(dict);
	return result;
}

static PyObject *describe_optimizer(PyObject *module, PyObject *given)
{
	struct embeng_optimizer optimizer = {0};
	struct embeng_dynamic *dynamic = NULL;
	PyObject *dict = settings_hold(given), *result = NULL;

	if (dict && !settings_read_optimizer(PyModule_GetState(module), dict, &optimizer, &dynamic))
		result = settings_describe_optimizer(&optimizer);
	PyMem_Free(dynamic);
	Py_XDECREF(dict);
	return result;
}

static PyMethodDef core_functions[] = {
	{"device_list", devices_list, METH_NOARGS,
	 PyDoc_STR("device_list($module, /)\n--\n\n"
		   "Return what is known of each device, the soft one last.")},
	{"device_info", devices_describe, METH_O,
	 PyDoc_STR("device_info($module, name, /)\n--\n\n"
		   "Return what a device is and what it can do; None is the default device.")},
	{"schedule_rate", compute_rate, METH_VARARGS,
	 PyDoc_STR("schedule_rate($module, schedule, step, /)\n--\n\n"
		   "Return the learning rate of a schedule at a step.")},
	{"describe_optimizer", describe_optimizer, METH_O,
	 PyDoc_STR("describe_optimizer($module, optimizer, /)\n--\n\n"
		   "Return all settings of an optimizer, with the defaults of its kind.")},
	{"xla_targets", xla_targets, METH_NOARGS,
	 PyDoc_STR("xla_targets($module, /)\n--\n\n"
		   "Return the functions that programs of XLA call, as capsules by their names.")},
	{"xla_register", xla_register, METH_O,
	 PyDoc_STR("xla_register($module, path, /)\n--\n\n"
		   "Register these functions with TensorFlow's own XLA, once in a process.")},
	{"tensorflow_register", tensorflow_register, METH_O,
	 PyDoc_STR(
		 "tensorflow_register($module, path, /)\n--\n\n"
		 "Register the operators with TensorFlow, once in a process; return their names.")},
	{"transport_load", transport_load, METH_O,
	 PyDoc_STR("transport_load($module, name, /)\n--\n\n"
		   "Return the transport of an MPI: mpi, openmpi or mpich.")},
	{"transport_threads", transport_threads, METH_O,
	 PyDoc_STR("transport_threads($module, ranks, /)\n--\n\n"
		   "Return transports between as many threads of this process.")},
	{0},
};

/* -- making the module ------------------------------------------------------------- */

struct import {
	const char *module, *name;
	PyObject **to;
};

static int import_each(const struct import *imports)
{
	for (; imports->module; imports++) {
		PyObject *module = PyImport_ImportModule(imports->module);

		if (module)
			*imports->to = PyObject_GetAttrString(module, imports->name);
		Py_XDECREF(module);
		if (!*imports->to)
			return -1;
	}
	return 0;
}

static int import_objects(struct core_state *state)
{
	const struct import imports[] = {
		{"embeng._errors", "BY_CODE", &state->errors},
		{"embeng._errors", "EmbengError", &state->error},
		{"embeng._errors", "CheckpointNotFoundError", &state->not_found},
		{"embeng._inputs", "Ragged", &state->bags_type},
		{"embeng._inputs", "Sparse", &state->sparse_type},
		{"embeng._inputs", "Keyed", &state->keyed_type},
		{"embeng._arrays", "as_ids", &state->as_ids},
		{"embeng._arrays", "as_floats", &state->as_floats},
		{"embeng._arrays", "as_buffer", &state->as_buffer},
		{"embeng._arrays", "empty", &state->empty},
		{"embeng._arrays", "empty_ids", &state->empty_ids},
		{0},
	};

	state->dlpack = PyUnicode_InternFromString("__dlpack__");
	state->dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
	state->dlpack_version = Py_BuildValue("{s(ii)}", "max_version", 1, 0);
	state->write = PyUnicode_InternFromString("write");
	state->readinto = PyUnicode_InternFromString("readinto");
	if (!state->dlpack || !state->dlpack_device || !state->dlpack_version || !state->write ||
	    !state->readinto)
		return -1;
	return import_each(imports);
}

static int add_type(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **to)
{
	*to = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
	return *to ? PyModule_AddObjectRef(module, name, (PyObject *)*to) : -1;
}

static int fill_module(PyObject *module)
{
	struct core_state *state = PyModule_GetState(module);

	engine_gather_methods();
	if (import_objects(state) || add_type(module, &model_spec, "Model", &state->model_type) ||
	    add_type(module, &engine_spec, "Engine", &state->engine_type) ||
	    add_type(module, &checkpoint_spec, "Checkpoint", &state->checkpoint_type) ||
	    add_type(module, &table_map_spec, "TableMap", &state->table_map_type) ||
	    add_type(module, &transport_spec, "Transport", &state->transport_type) ||
	    add_type(module, &relay_spec, "Relay", &state->relay_type) ||
	    add_type(module, &group_spec, "Group", &state->group_type))
		return -1;
	return PyModule_AddStringConstant(module, "version", embeng_version());
}

static int visit_state(PyObject *module, visitproc visit, void *arg)
{
	struct core_state *state = PyModule_GetState(module);

	Py_VISIT(state->errors);
	Py_VISIT(state->error);
	Py_VISIT(state->not_found);
	Py_VISIT(state->bags_type);
	Py_VISIT(state->sparse_type);
	Py_VISIT(state->keyed_type);
	Py_VISIT(state->as_ids);
	Py_VISIT(state->as_floats);
	Py_VISIT(state->as_buffer);
	Py_VISIT(state->empty);
	Py_VISIT(state->empty_ids);
	Py_VISIT(state->model_type);
	Py_VISIT(state->engine_type);
	Py_VISIT(state->checkpoint_type);
	Py_VISIT(state->table_map_type);
	Py_VISIT(state->transport_type);
	Py_VISIT(state->relay_type);
	Py_VISIT(state->group_type);
	return 0;
}

static int clear_state(PyObject *module)
{
	struct core_state *state = PyModule_GetState(module);

	Py_CLEAR(state->errors);
	Py_CLEAR(state->error);
	Py_CLEAR(state->not_found);
	Py_CLEAR(state->bags_type);
	Py_CLEAR(state->sparse_type);
	Py_CLEAR(state->keyed_type);
	Py_CLEAR(state->as_ids);
	Py_CLEAR(state->as_floats);
	Py_CLEAR(state->as_buffer);
	Py_CLEAR(state->empty);
	Py_CLEAR(state->empty_ids);
	Py_CLEAR(state->dlpack);
	Py_CLEAR(state->dlpack_device);
	Py_CLEAR(state->dlpack_version);
	Py_CLEAR(state->write);
	Py_CLEAR(state->readinto);
	Py_CLEAR(state->model_type);
	Py_CLEAR(state->engine_type);
	Py_CLEAR(state->checkpoint_type);
	Py_CLEAR(state->table_map_type);
	Py_CLEAR(state->transport_type);
	Py_CLEAR(state->relay_type);
	Py_CLEAR(state->group_type);
	return 0;
}

static void free_state(void *module)
{
	clear_state(module);
}

static PyModuleDef_Slot core_slots[] = {
	{Py_mod_exec, fill_module},
#ifdef Py_GIL_DISABLED
	{Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
	{0},
};

static struct PyModuleDef core_definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "embeng._core",
	.m_doc = PyDoc_STR("The library libembeng, for the modules of the package embeng."),
	.m_size = sizeof(struct core_state),
	.m_methods = core_functions,
	.m_slots = core_slots,
	.m_traverse = visit_state,
	.m_clear = clear_state,
	.m_free = free_state,
};

PyMODINIT_FUNC PyInit__core(void)
{
	return PyModuleDef_Init(&core_definition);
}
