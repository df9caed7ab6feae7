// SPDX-License-Identifier: MIT
/* The plan of a model's memory as a dictionary: one item for each thing that takes memory. */
#include "core.h"

static const char *const kinds[] = {"table",	   "slot",	"engine", "input",
				    "activations", "gradients", "rows"};

static PyObject *name_of(const char *name)
{
	return name ? PyUnicode_FromString(name) : Py_NewRef(Py_None);
}

static PyObject *describe_item(const struct embeng_model *model,
			       const struct embeng_plan_item *item)
{
	PyObject *dict = PyDict_New();
	const char *table = NULL, *feature = NULL;

	if (item->table >= 0)
		table = embeng_model_table_name(model, (size_t)item->table);
	if (item->feature >= 0)
		feature = embeng_model_feature_name(model, (size_t)item->feature);
	if (dict && (settings_set(dict, "kind", PyUnicode_FromString(kinds[item->kind])) ||
		     settings_set(dict, "table", name_of(table)) ||
		     settings_set(dict, "feature", name_of(feature)) ||
		     settings_set(dict, "slot", name_of(item->slot)) ||
		     settings_set(dict, "bytes", PyLong_FromUnsignedLongLong(item->bytes))))
		Py_CLEAR(dict);
	return dict;
}

static PyObject *describe_items(const struct embeng_model *model, const struct embeng_plan *plan)
{
	PyObject *list = PyList_New((Py_ssize_t)plan->item_count);

	for (size_t k = 0; list && k < plan->item_count; k++) {
		PyObject *item = describe_item(model, &plan->items[k]);

		if (!item || PyList_SetItem(list, (Py_ssize_t)k, item))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *describe_plan(const struct embeng_model *model, const struct embeng_plan *plan)
{
	PyObject *dict = PyDict_New();

	if (dict &&
	    (settings_set(dict, "items", describe_items(model, plan)) ||
	     settings_set(dict, "table_bytes", PyLong_FromUnsignedLongLong(plan->table_bytes)) ||
	     settings_set(dict, "buffer_bytes", PyLong_FromUnsignedLongLong(plan->buffer_bytes)) ||
	     settings_set(dict, "engine_bytes", PyLong_FromUnsignedLongLong(plan->engine_bytes)) ||
	     settings_set(dict, "total_bytes", PyLong_FromUnsignedLongLong(plan->total_bytes))))
		Py_CLEAR(dict);
	return dict;
}

PyObject *plan_compute(struct model_object *self, PyObject *options)
{
	struct embeng_plan_options given = EMBENG_INIT(embeng_plan_options, .id_type = EMBENG_I64);
	struct embeng_plan *plan;
	PyObject *dict, *held = settings_hold(options);
	int ret = held ? settings_read(&structure_plan, held, &given) : -1;

	Py_XDECREF(held); /* it has no texts that are kept */
	if (ret)
		return NULL;
	if (embeng_model_plan(self->model, &given, &plan))
		return core_fail(self->state);
	dict = describe_plan(self->model, plan);
	embeng_plan_free(plan);
	return dict;
}
