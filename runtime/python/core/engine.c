// SPDX-License-Identifier: MIT
/*
 * The type Engine: an open handle. Its methods stand in lookup.c, update.c, protocol.c, rows.c,
 * checkpoint.c, session_methods.c and stats.c.
 *
 * handles.c says when a handle is closed: each call is between engine_enter() and engine_leave(), the
 * life of a map between open_engine_keep() and engine_let_go(). open->lock guards the list of calls
 * that are kept for reuse, too.
 */
#include "group.h"

#include <errno.h>

/* -- uses of the handle -------------------------------------------------------- */

int engine_enter(struct engine_object *engine)
{
	enum open_entry entry;

	if (open_work_is_on(engine->open)) {
		/* The library would wait for the end of the work, which waits for this function. */
		core_fail_with(engine->state, -EBUSY, OPEN_WORK_TEXT);
		return -1;
	}
	entry = open_engine_enter(engine->open);
	if (entry == OPEN_ENTERED)
		return 0;
	if (entry == OPEN_CHANGING)
		core_fail_with(engine->state, -EBUSY,
			       "another thread adds tables to this engine; call again later");
	else
		PyErr_SetString(PyExc_ValueError, "the engine is closed");
	return -1;
}

static void free_call(struct call *call)
{
	embeng_batch_free(call->batches[0]);
	embeng_batch_free(call->batches[1]);
	PyMem_Free(call->inputs);
	PyMem_Free(call->outputs);
	PyMem_Free(call->places);
	PyMem_Free(call->gradients);
	PyMem_Free(call->elements);
	PyMem_Free(call);
}

static void free_calls(struct engine_object *engine)
{
	struct call *call, *next;

	pthread_mutex_lock(&engine->open->lock);
	call = engine->calls;
	engine->calls = NULL;
	pthread_mutex_unlock(&engine->open->lock);
	for (; call; call = next) {
		next = call->next;
		free_call(call);
	}
}

/*
 * Waits for updates that were handed in, and for signals only afterwards. An interpreter beside the
 * main one may be at its end together with the process: a thread that gave the lock up then would not
 * get it again, but end, and the process with it.
 */
static void shut_engine(struct open_engine *open)
{
	if (PyInterpreterState_GetID(PyInterpreterState_Get())) {
		open_engine_shut(open);
		return;
	}
	Py_BEGIN_ALLOW_THREADS
	open_engine_shut(open);
	Py_END_ALLOW_THREADS
}

void engine_leave(struct engine_object *engine)
{
	if (open_engine_leave(engine->open))
		shut_engine(engine->open);
}

void engine_let_go(struct engine_object *engine)
{
	if (open_engine_let_go(engine->open))
		shut_engine(engine->open);
}

/* -- calls ------------------------------------------------------------------------ */

static struct call *make_call(size_t count)
{
	struct call *call = PyMem_Calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->feature_count = count;
	call->inputs = PyMem_Calloc(count + 1, sizeof(*call->inputs));
	call->outputs = PyMem_Calloc(count + 1, sizeof(*call->outputs));
	call->places = PyMem_Calloc(count + 1, sizeof(*call->places));
	call->gradients = PyMem_Calloc(count + 1, sizeof(*call->gradients));
	call->elements = PyMem_Calloc(count + 1, sizeof(*call->elements));
	if (call->inputs && call->outputs && call->places && call->gradients && call->elements)
		return call;
	free_call(call);
	return NULL;
}

struct call *engine_call_get(struct engine_object *engine)
{
	struct call *call;

	pthread_mutex_lock(&engine->open->lock);
	call = engine->calls;
	if (call)
		engine->calls = call->next;
	pthread_mutex_unlock(&engine->open->lock);
	if (!call)
		call = make_call(engine->layout.feature_count);
	if (!call)
		PyErr_NoMemory();
	return call;
}

void engine_call_put(struct engine_object *engine, struct call *call)
{
	bool kept;

	if (call->is_keyed) {
		/* Features have parts of its arrays, and none of their own. */
		keyed_put(call);
	}
	for (size_t k = 0; k < call->feature_count; k++) {
		array_put(&call->inputs[k].ids);
		array_put(&call->inputs[k].bounds);
		array_put(&call->inputs[k].weights);
		array_put(&call->outputs[k].array);
		Py_CLEAR(call->outputs[k].object);
	}
	pthread_mutex_lock(&engine->open->lock);
	kept = !engine->open->closed && call->feature_count == engine->layout.feature_count;
	if (kept) {
		call->next = engine->calls;
		engine->calls = call;
	}
	pthread_mutex_unlock(&engine->open->lock);
	if (!kept)
		free_call(call);
}

struct embeng_batch *engine_batch(struct engine_object *engine, struct call *call,
				  enum embeng_mode mode, uint32_t replica)
{
	if (call->batches[mode] && call->replicas[mode] != replica) {
		embeng_batch_free(call->batches[mode]);
		call->batches[mode] = NULL;
	}
	if (call->batches[mode]) {
		embeng_batch_reset(call->batches[mode], mode);
		return call->batches[mode];
	}
	call->batches[mode] = embeng_batch_new(engine->handle, mode, replica);
	call->replicas[mode] = replica;
	if (!call->batches[mode])
		core_fail(engine->state);
	return call->batches[mode];
}

/* -- names -------------------------------------------------------------------------- */

static void free_layout(struct engine_layout *layout)
{
	for (size_t k = 0; layout->features && k < layout->feature_count; k++) {
		Py_XDECREF(layout->features[k].name);
		Py_XDECREF(layout->features[k].table_name);
	}
	PyMem_Free(layout->features);
	layout->features = NULL;
	layout->feature_count = 0;
	Py_CLEAR(layout->tables);
	Py_CLEAR(layout->numbers);
}

static int name_feature(const struct embeng_model *model, size_t at, struct engine_feature *feature)
{
	struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);

	embeng_model_get_engine(model, &engine);
	embeng_model_get_feature(model, at, &config);
	embeng_model_get_table(model, (size_t)config.table, &table);
	feature->table = config.table;
	feature->dim = table.dim;
	feature->sequence_length = config.max_sequence_length;
	feature->rows = table.vocabulary_size;
	feature->strict = table.out_of_range == EMBENG_POLICY_ERROR;
	feature->whole = engine.fixed_shapes || config.output_rank || config.max_samples ||
			 config.max_ids;
	feature->name = PyUnicode_InternFromString(config.name);
	feature->table_name = PyUnicode_InternFromString(table.name);
	return feature->name && feature->table_name ? 0 : -1;
}

static int name_tables(const struct embeng_model *model, struct engine_layout *layout)
{
	layout->tables = PyDict_New();
	for (size_t k = 0; layout->tables && k < embeng_model_table_count(model); k++)
		if (settings_set(layout->tables, embeng_model_table_name(model, k),
				 PyLong_FromSize_t(k)))
			return -1;
	return layout->tables ? 0 : -1;
}

static int number_features(struct engine_layout *layout)
{
	layout->numbers = PyDict_New();
	for (size_t k = 0; layout->numbers && k < layout->feature_count; k++) {
		PyObject *number = PyLong_FromSize_t(k);
		int ret = number ? PyDict_SetItem(layout->numbers, layout->features[k].name, number)
				 : -1;

		Py_XDECREF(number);
		if (ret)
			return -1;
	}
	return layout->numbers ? 0 : -1;
}

static int read_layout(struct embeng *handle, struct engine_layout *layout)
{
	const struct embeng_model *model = embeng_get_model(handle);
	size_t count = embeng_model_feature_count(model);

	layout->features = PyMem_Calloc(count + 1, sizeof(*layout->features));
	if (!layout->features) {
		PyErr_NoMemory();
		return -1;
	}
	layout->feature_count = count;
	for (size_t k = 0; k < count; k++)
		if (name_feature(model, k, &layout->features[k]))
			return -1;
	return name_tables(model, layout) || number_features(layout) ? -1 : 0;
}

int engine_table(struct engine_object *engine, PyObject *name)
{
	PyObject *index = PyDict_GetItemWithError(engine->layout.tables, name);

	if (index)
		return (int)PyLong_AsLong(index);
	if (!PyErr_Occurred())
		core_fail_with(engine->state, -ENOENT, "there is no table %R", name);
	return -1;
}

/* -- opening and closing -------------------------------------------------------------- */

/* A group that was lent is given back on an error. */
static int open_handle(struct engine_object *self, const struct embeng_open_options *options,
		       struct model_object *model, struct open_group *group)
{
	int ret;

	Py_BEGIN_ALLOW_THREADS
	if (group)
		ret = embeng_open_group(options->device, model->model, group->group, &self->handle,
					NULL);
	else
		ret = embeng_open_with(options, model->model, &self->handle, NULL);
	Py_END_ALLOW_THREADS
	if (ret) {
		core_fail_making(self->state, ret);
	} else {
		self->open = open_engine_new(self->handle);
		if (self->open) {
			self->open->group = group;
			return 0;
		}
		embeng_close(self->handle);
		PyErr_NoMemory();
	}
	if (group)
		open_group_return(group);
	return -1;
}

static int describe_handle(struct engine_object *self, struct model_object *model)
{
	struct embeng_engine_config config = EMBENG_INIT(embeng_engine_config);
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);

	if (embeng_info(self->handle, &info)) {
		core_fail(self->state);
		return -1;
	}
	self->collective = info.hosts > 1;
	embeng_model_get_engine(model->model, &config);
	self->replicas = config.replicas;
	self->viewers = PyMem_Calloc(config.replicas + 1, sizeof(*self->viewers));
	if (!self->viewers) {
		PyErr_NoMemory();
		return -1;
	}
	return read_layout(self->handle, &self->layout);
}

static int read_opening(struct engine_object *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"model",    "device", "cores", "memory", "variant",
				"prefetch", "path",   "group", NULL};
	struct embeng_open_options options = EMBENG_INIT(embeng_open_options);
	PyObject *model, *cores = NULL, *memory = NULL, *group = Py_None;
	unsigned long long number = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|zOOzzzO:Engine", names,
					 self->state->model_type, &model, &options.device, &cores,
					 &memory, &options.variant, &options.prefetch,
					 &options.path, &group))
		return -1;
	if (cores && whole_read(cores, "cores", UINT32_MAX, &number))
		return -1;
	options.cores = (uint32_t)number;
	number = 0;
	if (memory && whole_read(memory, "memory", UINT64_MAX, &number))
		return -1;
	options.memory = number;
	if (group == Py_None)
		return open_handle(self, &options, (struct model_object *)model, NULL) ||
				       describe_handle(self, (struct model_object *)model)
			       ? -1
			       : 0;
	if (!PyObject_TypeCheck(group, self->state->group_type)) {
		PyErr_Format(PyExc_TypeError, "group: %R is no Group", group);
		return -1;
	}
	if (group_lend((struct group_object *)group) ||
	    open_handle(self, &options, (struct model_object *)model,
			((struct group_object *)group)->open))
		return -1;
	return describe_handle(self, (struct model_object *)model);
}

static PyObject *make_engine(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct engine_object *self = (struct engine_object *)alloc(type, 0);

	if (!self)
		return NULL;
	self->state = core_state_of(type);
	if (read_opening(self, args, kwargs))
		Py_CLEAR(self);
	return (PyObject *)self;
}

/* Threads without Python may be in a call: the last one closes the handle then. */
static void close_open_engine(struct engine_object *self)
{
	bool last = open_engine_close(self->open);

	free_calls(self);
	if (last)
		shut_engine(self->open);
}

static void free_engine(PyObject *object)
{
	struct engine_object *self = (struct engine_object *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (self->open) {
		close_open_engine(self);
		open_engine_put(self->open);
	}
	free_layout(&self->layout);
	PyMem_Free(self->viewers);
	release(object);
	Py_DECREF(type);
}

static PyObject *close_engine(PyObject *object, PyObject *unused)
{
	(void)unused;
	close_open_engine((struct engine_object *)object);
	Py_RETURN_NONE;
}

static PyObject *is_closed(PyObject *object, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct engine_object *)object)->open->closed);
}

static PyObject *read_handle(PyObject *object, void *unused)
{
	(void)unused;
	return PyLong_FromLongLong(((struct engine_object *)object)->open->number);
}

/* No other call may be under way, and none begins while self->changing is set. */
static int add_tables_alone(struct engine_object *self, struct model_object *model)
{
	struct engine_layout layout = {0};
	int ret;

	if (!open_engine_begin_change(self->open)) {
		core_fail_with(self->state, -EBUSY,
			       "add_tables: another thread is in a call of this engine");
		return -1;
	}
	Py_BEGIN_ALLOW_THREADS
	ret = embeng_add_tables(self->handle, model->model);
	Py_END_ALLOW_THREADS
	if (ret) {
		core_fail_making(self->state, ret);
		return -1;
	}
	if (read_layout(self->handle, &layout)) {
		free_layout(&layout);
		return -1;
	}
	free_calls(self);
	free_layout(&self->layout);
	self->layout = layout;
	return 0;
}

static PyObject *add_tables(PyObject *object, PyObject *model)
{
	struct engine_object *self = (struct engine_object *)object;
	int ret;

	if (!PyObject_TypeCheck(model, self->state->model_type)) {
		PyErr_Format(PyExc_TypeError, "add_tables: %R is no Model", model);
		return NULL;
	}
	if (engine_enter(self))
		return NULL;
	ret = add_tables_alone(self, (struct model_object *)model);
	open_engine_end_change(self->open);
	engine_leave(self);
	return ret ? NULL : Py_NewRef(Py_None);
}

static PyObject *describe_engine(PyObject *object, PyObject *unused)
{
	struct engine_object *self = (struct engine_object *)object;
	PyObject *dict;

	(void)unused;
	if (engine_enter(self))
		return NULL;
	dict = model_describe_all(embeng_get_model(self->handle));
	engine_leave(self);
	return dict;
}

static PyMethodDef engine_methods[] = {
	{"close", close_engine, METH_NOARGS,
	 PyDoc_STR("close($self, /)\n--\n\n"
		   "Apply what was handed in, then free all. A second call does nothing.")},
	{"add_tables", add_tables, METH_O,
	 PyDoc_STR("add_tables($self, model, /)\n--\n\n"
		   "Add the tables and features that the model has beyond those of the engine.")},
	{"describe", describe_engine, METH_NOARGS,
	 PyDoc_STR("describe($self, /)\n--\n\n"
		   "Return the model of the engine, as Model.describe() does.")},
	{0},
};

static PyGetSetDef engine_properties[] = {
	{"closed", is_closed, NULL, PyDoc_STR("Whether close() was called."), NULL},
	{"handle", read_handle, NULL,
	 PyDoc_STR("A number that no other engine of the process has or had."), NULL},
	{0},
};

/* Methods of all files, put together when the module is made. */
static PyMethodDef all_methods[64];

static PyType_Slot engine_slots[] = {
	{Py_tp_new, make_engine},
	{Py_tp_dealloc, free_engine},
	{Py_tp_methods, all_methods},
	{Py_tp_getset, engine_properties},
	{Py_tp_doc, (void *)PyDoc_STR("An open engine.")},
	{0},
};

PyType_Spec engine_spec = {
	.name = "embeng._core.Engine",
	.basicsize = sizeof(struct engine_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = engine_slots,
};

void engine_gather_methods(void)
{
	PyMethodDef *const parts[] = {engine_methods,	lookup_methods,	   update_methods,
				      protocol_methods, rows_methods,	   checkpoint_methods,
				      stats_methods,	partition_methods, session_methods};
	size_t count = 0;

	for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++)
		for (const PyMethodDef *m = parts[k]; m->ml_name; m++)
			all_methods[count++] = *m;
}
