// SPDX-License-Identifier: MIT
/* The counts of an engine, the bytes that it holds, its device, and switches of its tables. */
#include "core.h"

static PyObject *describe_hot_rows(const struct embeng_table_stats *stats)
{
	PyObject *list = PyList_New((Py_ssize_t)stats->hot_count);

	for (size_t k = 0; list && k < stats->hot_count; k++) {
		PyObject *pair = Py_BuildValue("LK", (long long)stats->hot[k].row,
					       (unsigned long long)stats->hot[k].count);

		if (!pair || PyList_SetItem(list, (Py_ssize_t)k, pair))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *describe_stats(const struct embeng_table_stats *s)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"ids", s->ids},
		{"unique_ids", s->unique_ids},
		{"dropped_ids", s->dropped_ids},
		{"clamped_ids", s->clamped_ids},
		{"zeroed_ids", s->zeroed_ids},
		{"steps", s->steps},
		{"updated_rows", s->updated_rows},
		{"untouched_rows", s->untouched_rows},
		{"nonfinite_activations", s->nonfinite_activations},
		{"nonfinite_rows", s->nonfinite_rows},
		{"nonfinite_gradient_rows", s->nonfinite_gradient_rows},
		{"hot_error", s->hot_error},
	};
	PyObject *dict = PyDict_New();

	for (size_t k = 0; dict && k < sizeof(counts) / sizeof(*counts); k++)
		if (settings_set(dict, counts[k].name,
				 PyLong_FromUnsignedLongLong(counts[k].value)))
			Py_CLEAR(dict);
	if (dict && settings_set(dict, "hot", describe_hot_rows(s)))
		Py_CLEAR(dict);
	return dict;
}

static PyObject *read_stats(PyObject *self, PyObject *args)
{
	struct engine_object *engine = (struct engine_object *)self;
	struct embeng_table_stats stats = EMBENG_INIT(embeng_table_stats);
	PyObject *name, *result = NULL;
	int table, clear = 0, ret;

	if (!PyArg_ParseTuple(args, "O|p:stats", &name, &clear) || engine_enter(engine))
		return NULL;
	table = engine_table(engine, name);
	if (table >= 0) {
		/* Over a group it waits for other hosts, as the calls on steps below. */
		Py_BEGIN_ALLOW_THREADS
		ret = embeng_stats(engine->handle, table, clear, &stats);
		Py_END_ALLOW_THREADS
		result = ret ? core_fail(engine->state) : describe_stats(&stats);
	}
	engine_leave(engine);
	return result;
}

static PyObject *read_counters(PyObject *self, PyObject *unused)
{
	struct engine_object *engine = (struct engine_object *)self;
	struct embeng_counter_values v = EMBENG_INIT(embeng_counter_values);

	(void)unused;
	if (engine_enter(engine))
		return NULL;
	embeng_counters(engine->handle, &v);
	engine_leave(engine);
	return Py_BuildValue("{sKsKsKsKsKsKsKsKsK}", "lookups", (unsigned long long)v.lookups,
			     "updates", (unsigned long long)v.updates, "bytes_copied",
			     (unsigned long long)v.bytes_copied, "time_check_ns",
			     (unsigned long long)v.time_check_ns, "time_lookup_ns",
			     (unsigned long long)v.time_lookup_ns, "time_partition_ns",
			     (unsigned long long)v.time_partition_ns, "time_update_ns",
			     (unsigned long long)v.time_update_ns, "time_ring_ns",
			     (unsigned long long)v.time_ring_ns, "time_copy_ns",
			     (unsigned long long)v.time_copy_ns);
}

static PyObject *read_usage(PyObject *self, PyObject *unused)
{
	struct engine_object *engine = (struct engine_object *)self;
	struct embeng_usage usage = EMBENG_INIT(embeng_usage);

	(void)unused;
	if (engine_enter(engine))
		return NULL;
	embeng_usage(engine->handle, &usage);
	engine_leave(engine);
	return Py_BuildValue("{sKsKsK}", "table_bytes", (unsigned long long)usage.table_bytes,
			     "buffer_bytes", (unsigned long long)usage.buffer_bytes, "engine_bytes",
			     (unsigned long long)usage.engine_bytes);
}

static PyObject *read_info(PyObject *self, PyObject *unused)
{
	struct engine_object *engine = (struct engine_object *)self;
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	int ret;

	(void)unused;
	if (engine_enter(engine))
		return NULL;
	ret = embeng_info(engine->handle, &info);
	engine_leave(engine);
	return ret ? core_fail(engine->state) : settings_describe(&structure_device, &info);
}

static PyObject *read_step(PyObject *self, PyObject *unused)
{
	struct engine_object *engine = (struct engine_object *)self;
	uint64_t step;
	int ret;

	(void)unused;
	if (engine_enter(engine))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	ret = embeng_step(engine->handle, &step);
	Py_END_ALLOW_THREADS
	engine_leave(engine);
	return ret ? core_fail(engine->state) : PyLong_FromUnsignedLongLong(step);
}

static PyObject *write_step(PyObject *self, PyObject *number)
{
	struct engine_object *engine = (struct engine_object *)self;
	unsigned long long step;
	int ret;

	if (whole_read(number, "step", UINT64_MAX, &step) || engine_enter(engine))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	ret = embeng_set_step(engine->handle, step);
	Py_END_ALLOW_THREADS
	engine_leave(engine);
	return ret ? core_fail(engine->state) : Py_NewRef(Py_None);
}

static PyObject *freeze_table(PyObject *self, PyObject *args)
{
	struct engine_object *engine = (struct engine_object *)self;
	PyObject *name;
	int table, frozen = 1, ret = -1;

	if (!PyArg_ParseTuple(args, "O|p:freeze", &name, &frozen) || engine_enter(engine))
		return NULL;
	table = engine_table(engine, name);
	if (table >= 0) {
		Py_BEGIN_ALLOW_THREADS
		ret = embeng_table_freeze(engine->handle, table, frozen);
		Py_END_ALLOW_THREADS
		if (ret)
			core_fail(engine->state);
	}
	engine_leave(engine);
	return ret ? NULL : Py_NewRef(Py_None);
}

static PyObject *is_table_frozen(PyObject *self, PyObject *name)
{
	struct engine_object *engine = (struct engine_object *)self;
	PyObject *result = NULL;
	int table, ret;

	if (engine_enter(engine))
		return NULL;
	table = engine_table(engine, name);
	if (table >= 0) {
		ret = embeng_table_frozen(engine->handle, table);
		result = ret < 0 ? core_fail(engine->state) : PyBool_FromLong(ret);
	}
	engine_leave(engine);
	return result;
}

static PyObject *interrupt_waits(PyObject *self, PyObject *on)
{
	struct engine_object *engine = (struct engine_object *)self;
	int flag = PyObject_IsTrue(on);

	if (flag < 0 || engine_enter(engine))
		return NULL;
	embeng_interrupt(engine->handle, flag);
	engine_leave(engine);
	Py_RETURN_NONE;
}

PyMethodDef stats_methods[] = {
	{"stats", read_stats, METH_VARARGS,
	 PyDoc_STR("stats($self, table, clear=False, /)\n--\n\n"
		   "Return the counts of a table.")},
	{"counters", read_counters, METH_NOARGS,
	 PyDoc_STR("counters($self, /)\n--\n\n"
		   "Return what the engine did, and its time.")},
	{"usage", read_usage, METH_NOARGS,
	 PyDoc_STR("usage($self, /)\n--\n\n"
		   "Return the bytes that the engine holds.")},
	{"info", read_info, METH_NOARGS,
	 PyDoc_STR("info($self, /)\n--\n\n"
		   "Return what the device is and can do.")},
	{"get_step", read_step, METH_NOARGS,
	 PyDoc_STR("get_step($self, /)\n--\n\n"
		   "Return how many steps were counted.")},
	{"set_step", write_step, METH_O,
	 PyDoc_STR("set_step($self, number, /)\n--\n\n"
		   "Set how many steps were counted.")},
	{"freeze", freeze_table, METH_VARARGS,
	 PyDoc_STR("freeze($self, table, frozen=True, /)\n--\n\n"
		   "Have updates leave a table alone, or not.")},
	{"frozen", is_table_frozen, METH_O,
	 PyDoc_STR("frozen($self, table, /)\n--\n\n"
		   "Return whether updates leave a table alone.")},
	{"interrupt", interrupt_waits, METH_O,
	 PyDoc_STR("interrupt($self, on, /)\n--\n\n"
		   "End the waits of all threads, now and later, until it is called with False.")},
	{0},
};
