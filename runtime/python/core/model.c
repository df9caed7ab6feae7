// SPDX-License-Identifier: MIT
/*
 * The type Model: tables, features and options, made of dictionaries, and what they say about
 * themselves. A Model does not change after it was made, so that any number of threads may use it.
 */
#include "core.h"

#include <errno.h>

/* A table's configuration, and what that points to, while the table is added. */
struct table_parts {
	struct embeng_table_config config;
	struct embeng_dynamic *dynamic;
	struct embeng_slot_start *starts;
};

/* A rate that follows a schedule, as a table's optimizer brings it. */
static int add_schedule(struct model_object *self, PyObject *name, PyObject *dict)
{
	struct embeng_schedule schedule;
	uint64_t *boundaries = NULL;
	float *values = NULL;
	const char *text = text_read(name, "schedules");
	int ret = text ? settings_read_schedule(dict, &schedule, &boundaries, &values) : -1;

	if (!ret && embeng_model_set_schedule(self->model, text, &schedule)) {
		core_fail(self->state);
		ret = -1;
	}
	PyMem_Free(boundaries);
	PyMem_Free(values);
	return ret;
}

static int read_slot_starts(PyObject *mapping, struct table_parts *parts)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	size_t count = 0;

	if (!PyDict_Check(mapping)) {
		PyErr_SetString(PyExc_TypeError, "table: slot_starts is a dict of initializers");
		return -1;
	}
	parts->starts = PyMem_Calloc((size_t)PyDict_Size(mapping) + 1, sizeof(*parts->starts));
	if (!parts->starts) {
		PyErr_NoMemory();
		return -1;
	}
	while (PyDict_Next(mapping, &at, &key, &value)) {
		struct embeng_slot_start *start = &parts->starts[count++];

		start->slot = text_read(key, "table: slot_starts");
		if (!start->slot || settings_read_initializer(value, &start->initializer))
			return -1;
	}
	parts->config.slot_starts = parts->starts;
	parts->config.slot_start_count = count;
	return 0;
}

/* A member of a dict that is given, borrowed; NULL without an exception. */
static PyObject *find_member(PyObject *dict, const char *name)
{
	PyObject *value = PyDict_GetItemString(dict, name);

	return value == Py_None ? NULL : value;
}

static int read_table(struct core_state *state, PyObject *dict, struct table_parts *parts)
{
	PyObject *value;

	parts->config.size = sizeof(parts->config);
	if (settings_read(&structure_table, dict, &parts->config))
		return -1;
	value = find_member(dict, "optimizer");
	if (value &&
	    settings_read_optimizer(state, value, &parts->config.optimizer, &parts->dynamic))
		return -1;
	value = find_member(dict, "initializer");
	if (value && settings_read_initializer(value, &parts->config.initializer))
		return -1;
	value = find_member(dict, "quantization");
	if (value && settings_read(&structure_quantization, value, &parts->config.quantization))
		return -1;
	value = find_member(dict, "part");
	if (value && settings_read(&structure_part, value, &parts->config.part))
		return -1;
	value = find_member(dict, "slot_starts");
	return value ? read_slot_starts(value, parts) : 0;
}

static int add_table(struct model_object *self, PyObject *dict)
{
	struct table_parts parts = {0};
	int ret = read_table(self->state, dict, &parts);

	if (!ret && embeng_model_add_table(self->model, &parts.config) < 0) {
		core_fail(self->state);
		ret = -1;
	}
	PyMem_Free(parts.dynamic);
	PyMem_Free(parts.starts);
	return ret;
}

static int read_output_shape(PyObject *shape, struct embeng_feature_config *config)
{
	Py_ssize_t rank = PySequence_Size(shape);

	if (rank < 0)
		return -1;
	if (rank > EMBENG_MAX_RANK) {
		PyErr_Format(PyExc_ValueError, "feature %s: output_shape has %zd lengths, of %d",
			     config->name, rank, EMBENG_MAX_RANK);
		return -1;
	}
	config->output_rank = (size_t)rank;
	for (Py_ssize_t k = 0; k < rank; k++) {
		PyObject *length = PySequence_GetItem(shape, k);

		config->output_shape[k] = length ? PyLong_AsLongLong(length) : -1;
		Py_XDECREF(length);
		if (PyErr_Occurred())
			return -1;
	}
	return 0;
}

static int add_feature(struct model_object *self, PyObject *dict)
{
	struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);
	PyObject *table, *shape;
	const char *name;

	if (settings_read(&structure_feature, dict, &config))
		return -1;
	table = find_member(dict, "table");
	name = text_read(table ? table : Py_None, "feature: table");
	if (!name)
		return -1;
	config.table = embeng_model_table(self->model, name);
	shape = find_member(dict, "output_shape");
	if (shape && read_output_shape(shape, &config))
		return -1;
	if (config.table < 0) {
		core_fail_with(self->state, -ENOENT, "feature %s: there is no table '%s'",
			       config.name ? config.name : "", name);
		return -1;
	}
	if (embeng_model_add_feature(self->model, &config) >= 0)
		return 0;
	core_fail(self->state);
	return -1;
}

static int add_each(struct model_object *self, PyObject *list,
		    int (*add)(struct model_object *self, PyObject *dict))
{
	Py_ssize_t count = PySequence_Size(list);

	for (Py_ssize_t k = 0; k < count; k++) {
		PyObject *dict = PySequence_GetItem(list, k);
		PyObject *held = dict ? settings_hold(dict) : NULL;
		int ret = held ? add(self, held) : -1;

		Py_XDECREF(held);
		Py_XDECREF(dict);
		if (ret)
			return -1;
	}
	return count < 0 ? -1 : 0;
}

static int set_options(struct model_object *self, PyObject *dict)
{
	struct embeng_engine_config config = EMBENG_INIT(embeng_engine_config);

	if (settings_read(&structure_engine, dict, &config))
		return -1;
	if (!embeng_model_set_engine(self->model, &config))
		return 0;
	core_fail(self->state);
	return -1;
}

static int set_schedules(struct model_object *self, PyObject *schedules)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	if (!PyDict_Check(schedules)) {
		PyErr_SetString(PyExc_TypeError, "schedules: a dict of names of rates to dicts");
		return -1;
	}
	while (PyDict_Next(schedules, &at, &key, &value))
		if (add_schedule(self, key, value))
			return -1;
	return 0;
}

/* Calls a function with a copy of a dict; not at all for None. */
static int with_held(struct model_object *self, PyObject *dict,
		     int (*use)(struct model_object *self, PyObject *dict))
{
	PyObject *held;
	int ret;

	if (dict == Py_None)
		return 0;
	held = settings_hold(dict);
	ret = held ? use(self, held) : -1;
	Py_XDECREF(held);
	return ret;
}

static int fill_model(struct model_object *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"tables", "features", "options", "schedules", NULL};
	PyObject *tables, *features, *options = Py_None, *schedules = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:Model", names, &tables, &features,
					 &options, &schedules) ||
	    add_each(self, tables, add_table) || add_each(self, features, add_feature))
		return -1;
	if (with_held(self, options, set_options))
		return -1;
	return with_held(self, schedules, set_schedules);
}

static PyObject *make_model(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct model_object *self = (struct model_object *)alloc(type, 0);

	if (!self)
		return NULL;
	self->state = core_state_of(type);
	self->model = embeng_model_new();
	if (!self->model)
		PyErr_NoMemory();
	if (!self->model || fill_model(self, args, kwargs))
		Py_CLEAR(self);
	return (PyObject *)self;
}

static void free_model(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	embeng_model_free(((struct model_object *)object)->model);
	release(object);
	Py_DECREF(type);
}

/* -- what a model says about itself ------------------------------------------------ */

static PyObject *describe_slot_starts(const struct embeng_table_config *config)
{
	PyObject *dict = PyDict_New();

	for (size_t k = 0; dict && k < config->slot_start_count; k++)
		if (settings_set(
			    dict, config->slot_starts[k].slot,
			    settings_describe_initializer(&config->slot_starts[k].initializer)))
			Py_CLEAR(dict);
	return dict;
}

static PyObject *describe_slots(const struct embeng_model *model, size_t table)
{
	PyObject *dict = PyDict_New();

	for (size_t k = 0; dict && k < embeng_model_slot_count(model, table); k++) {
		const char *slot = embeng_model_slot_name(model, table, k);
		int64_t width = embeng_model_slot_width(model, (int)table, slot);

		if (settings_set(dict, slot, PyLong_FromLongLong(width)))
			Py_CLEAR(dict);
	}
	return dict;
}

static PyObject *describe_table(const struct embeng_model *model, size_t table)
{
	struct embeng_table_config config = EMBENG_INIT(embeng_table_config);
	PyObject *dict;

	embeng_model_get_table(model, table, &config);
	dict = settings_describe(&structure_table, &config);
	if (!dict)
		return NULL;
	if (settings_set(dict, "optimizer", settings_describe_optimizer(&config.optimizer)) ||
	    settings_set(dict, "initializer", settings_describe_initializer(&config.initializer)) ||
	    settings_set(dict, "slot_starts", describe_slot_starts(&config)) ||
	    settings_set(dict, "quantization",
			 config.quantization.num_buckets
				 ? settings_describe(&structure_quantization, &config.quantization)
				 : Py_NewRef(Py_None)) ||
	    settings_set(dict, "part",
			 config.part.rows ? settings_describe(&structure_part, &config.part)
					  : Py_NewRef(Py_None)) ||
	    settings_set(dict, "slots", describe_slots(model, table)))
		Py_CLEAR(dict);
	return dict;
}

static PyObject *describe_output_shape(const struct embeng_feature_config *config)
{
	PyObject *shape = PyTuple_New((Py_ssize_t)config->output_rank);

	for (size_t k = 0; shape && k < config->output_rank; k++)
		if (PyTuple_SetItem(shape, (Py_ssize_t)k,
				    PyLong_FromLongLong(config->output_shape[k])))
			Py_CLEAR(shape);
	return shape;
}

static PyObject *describe_feature(const struct embeng_model *model, size_t feature)
{
	struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);
	PyObject *dict;

	embeng_model_get_feature(model, feature, &config);
	dict = settings_describe(&structure_feature, &config);
	if (dict && (settings_set(dict, "table",
				  PyUnicode_FromString(
					  embeng_model_table_name(model, (size_t)config.table))) ||
		     settings_set(dict, "output_shape", describe_output_shape(&config))))
		Py_CLEAR(dict);
	return dict;
}

static PyObject *describe_each(const struct embeng_model *model, size_t count,
			       PyObject *(*describe)(const struct embeng_model *model, size_t at))
{
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (size_t k = 0; list && k < count; k++) {
		PyObject *dict = describe(model, k);

		if (!dict || PyList_SetItem(list, (Py_ssize_t)k, dict))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *describe_rate(const struct embeng_model *model, size_t at)
{
	return PyUnicode_FromString(embeng_model_rate_name(model, at));
}

PyObject *model_describe_all(const struct embeng_model *model)
{
	struct embeng_engine_config config = EMBENG_INIT(embeng_engine_config);
	PyObject *dict = PyDict_New();

	embeng_model_get_engine(model, &config);
	if (dict &&
	    (settings_set(dict, "tables",
			  describe_each(model, embeng_model_table_count(model), describe_table)) ||
	     settings_set(
		     dict, "features",
		     describe_each(model, embeng_model_feature_count(model), describe_feature)) ||
	     settings_set(dict, "options", settings_describe(&structure_engine, &config)) ||
	     settings_set(dict, "rates",
			  describe_each(model, embeng_model_rate_count(model), describe_rate)) ||
	     settings_set(dict, "hash", PyLong_FromUnsignedLongLong(embeng_model_hash(model)))))
		Py_CLEAR(dict);
	return dict;
}

static PyObject *describe_model(PyObject *self, PyObject *unused)
{
	(void)unused;
	return model_describe_all(((struct model_object *)self)->model);
}

static PyObject *plan_model(PyObject *self, PyObject *options)
{
	return plan_compute((struct model_object *)self, options);
}

static PyMethodDef model_methods[] = {
	{"describe", describe_model, METH_NOARGS,
	 PyDoc_STR("describe($self, /)\n--\n\n"
		   "Return tables, features, options, rates and hash as dictionaries.")},
	{"plan", plan_model, METH_O,
	 PyDoc_STR("plan($self, options, /)\n--\n\n"
		   "Return the bytes that the model will need, under these assumptions.")},
	{0},
};

static PyType_Slot model_slots[] = {
	{Py_tp_new, make_model},
	{Py_tp_dealloc, free_model},
	{Py_tp_methods, model_methods},
	{Py_tp_doc, (void *)PyDoc_STR("Tables, features and options, made of dictionaries.")},
	{0},
};

PyType_Spec model_spec = {
	.name = "embeng._core.Model",
	.basicsize = sizeof(struct model_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = model_slots,
};
