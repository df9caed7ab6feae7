// SPDX-License-Identifier: MIT
/* The devices of this machine, as dictionaries. */
#include "core.h"

static int add_device(void *arg, const struct embeng_device_info *info)
{
	PyObject *dict = settings_describe(&structure_device, info);
	int ret = dict ? PyList_Append(arg, dict) : -1;

	Py_XDECREF(dict);
	return ret;
}

PyObject *devices_list(PyObject *module, PyObject *unused)
{
	PyObject *list = PyList_New(0);

	(void)unused;
	if (!list || !embeng_device_list(add_device, list))
		return list;
	Py_DECREF(list);
	return PyErr_Occurred() ? NULL : core_fail(PyModule_GetState(module));
}

PyObject *devices_describe(PyObject *module, PyObject *name)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	const char *text = NULL;

	if (name != Py_None) {
		text = text_read(name, "device");
		if (!text)
			return NULL;
	}
	if (embeng_device_info(text, &info))
		return core_fail(PyModule_GetState(module));
	return settings_describe(&structure_device, &info);
}
